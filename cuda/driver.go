package cuda

// #include "driver.h"
import "C"

import (
	"fmt"
	"sync"
)

var driverLibrary = library{
	name: "the CUDA driver (libcuda.so.1)", variable: "CAPER_CUDA_DRIVER", sonames: []string{"libcuda.so.1"}, system: true,
	purpose: "every use of a GPU needs",
	remedy:  "install the NVIDIA driver (525 or later), in a container start it with --gpus all",
}

// Version is that of a CUDA release, such as 13.0.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// oldestDriver is the first release whose driver exports every call of calls.h.
const oldestDriver = 12

// loadDriver opens libcuda and finds its calls, once in the life of the process.
var loadDriver = sync.OnceValues(func() (*sharedLibrary, error) {
	lib, err := driverLibrary.open()
	if err != nil {
		return nil, err
	}
	missing := C.caper_driver_load(lib.handle)
	if missing != nil {
		return nil, fmt.Errorf("%s is too old: it has no %s; install NVIDIA driver 525 or later", lib.path, C.GoString(missing))
	}
	return lib, nil
})

// initDriver loads libcuda and initialises it.
func initDriver() (Version, error) {
	lib, err := loadDriver()
	if err != nil {
		return Version{}, err
	}
	v, err := driverVersion()
	if err != nil {
		return v, err
	}
	if v.Major < oldestDriver {
		return v, fmt.Errorf("%s is of CUDA %v; install NVIDIA driver 525 (CUDA 12.0) or later", lib.path, v)
	}
	if r := C.cuInit(0); r != 0 {
		return v, failure(r, "cuInit", "of "+lib.path)
	}
	return v, nil
}

// presentDriver is the version of the driver, if there is one.
func presentDriver() (Version, bool) {
	if _, err := loadDriver(); err != nil {
		return Version{}, false
	}
	v, err := driverVersion()
	return v, err == nil
}

func driverVersion() (Version, error) {
	var n C.int
	if r := C.cuDriverGetVersion(&n); r != 0 {
		return Version{}, failure(r, "cuDriverGetVersion", "")
	}
	return Version{int(n) / 1000, int(n) % 1000 / 10}, nil
}
