package cuda

// typedef int (*nccl_version)(int *);
// static int version_of(void *f, int *version) { return ((nccl_version)f)(version); }
import "C"

import "fmt"

var ncclLibrary = library{
	name: "NCCL (libnccl.so.2)", variable: "CAPER_NCCL", sonames: []string{"libnccl.so.2"},
	purpose: "training on several GPUs needs",
	remedy:  "pip install nvidia-nccl-cu13==2.28.9",
}

// ncclVersion opens NCCL and returns where it is and its release, such as 2.28.9.
func ncclVersion() (path, version string, err error) {
	lib, err := ncclLibrary.open()
	if err != nil {
		return "", "", err
	}
	var n C.int
	f := lib.symbol("ncclGetVersion")
	if f == nil || C.version_of(f, &n) != 0 {
		return lib.path, "", fmt.Errorf("%s tells no version; install nvidia-nccl-cu13==2.28.9", lib.path)
	}
	return lib.path, fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100), nil
}
