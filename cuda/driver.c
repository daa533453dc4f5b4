#include "driver.h"

#include "library.h"

struct caper_driver caper_driver;

const char *caper_driver_load(void *library) {
#define CALL(name, parameters, arguments)                       \
    caper_driver.name = caper_library_symbol(library, #name); \
    if (!caper_driver.name) return #name;
#define IN_CONTEXT CALL
#include "calls.h"
    caper_driver.cuFuncGetParamInfo = caper_library_symbol(library, "cuFuncGetParamInfo");
    return 0;
}
