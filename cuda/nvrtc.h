// NVRTC's calls, and a whole compilation in one.
#ifndef CAPER_CUDA_NVRTC_H
#define CAPER_CUDA_NVRTC_H

#include <stddef.h>

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

#define NVRTC_CALLS(CALL)                                                                                        \
    CALL(nvrtcVersion, (int *major, int *minor))                                                                 \
    CALL(nvrtcCreateProgram, (nvrtcProgram *program, const char *text, const char *name, int header_count,       \
                              const char *const *header_texts, const char *const *header_names))                 \
    CALL(nvrtcCompileProgram, (nvrtcProgram program, int option_count, const char *const *options))              \
    CALL(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *size))                                           \
    CALL(nvrtcGetProgramLog, (nvrtcProgram program, char *log))                                                  \
    CALL(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *size))                                                \
    CALL(nvrtcGetCUBIN, (nvrtcProgram program, char *cubin))                                                     \
    CALL(nvrtcDestroyProgram, (nvrtcProgram *program))

struct caper_nvrtc {
#define CALL(name, parameters) nvrtcResult (*name) parameters;
    NVRTC_CALLS(CALL)
#undef CALL
    const char *(*nvrtcGetErrorString)(nvrtcResult);
};
extern struct caper_nvrtc caper_nvrtc;

// Fills the table from a library. Returns null, or the name of a call that it lacks.
const char *caper_nvrtc_load(void *library);

struct caper_compilation {
    const char *failed; // the call that failed, or null
    nvrtcResult code;
    char *log, *cubin;  // to be freed; may be null
    size_t cubin_size;
};

struct caper_compilation caper_compile(const char *text, const char *name, int header_count, const char *const *header_texts,
                                       const char *const *header_names, int option_count, const char *const *options);

#endif
