#include "nvrtc.h"

#include <stdlib.h>

#include "library.h"

struct caper_nvrtc caper_nvrtc;

const char *caper_nvrtc_load(void *library) {
#define CALL(name, ...)                                      \
    caper_nvrtc.name = caper_library_symbol(library, #name); \
    if (!caper_nvrtc.name) return #name;
    NVRTC_CALLS(CALL)
    CALL(nvrtcGetErrorString)
#undef CALL
    return 0;
}

// Calls and, on failure, leaves the function that it stands in.
#define TRY(call, arguments)                     \
    if ((c->code = caper_nvrtc.call arguments)) { \
        c->failed = #call;                       \
        return;                                  \
    }

static void read_log(nvrtcProgram program, struct caper_compilation *c) {
    size_t size;
    TRY(nvrtcGetProgramLogSize, (program, &size));
    c->log = calloc(size + 1, 1);
    if (c->log) TRY(nvrtcGetProgramLog, (program, c->log));
}

static void read_cubin(nvrtcProgram program, struct caper_compilation *c) {
    TRY(nvrtcGetCUBINSize, (program, &c->cubin_size));
    c->cubin = malloc(c->cubin_size + 1);
    if (c->cubin) TRY(nvrtcGetCUBIN, (program, c->cubin));
}

static void compile(nvrtcProgram program, int option_count, const char *const *options, struct caper_compilation *c) {
    nvrtcResult compiled = caper_nvrtc.nvrtcCompileProgram(program, option_count, options);
    read_log(program, c);
    if (compiled) {
        c->code = compiled;
        c->failed = "nvrtcCompileProgram";
    } else if (!c->failed) {
        read_cubin(program, c);
    }
}

struct caper_compilation caper_compile(const char *text, const char *name, int header_count, const char *const *header_texts,
                                       const char *const *header_names, int option_count, const char *const *options) {
    struct caper_compilation c = {0};
    nvrtcProgram program;
    c.code = caper_nvrtc.nvrtcCreateProgram(&program, text, name, header_count, header_texts, header_names);
    if (c.code) {
        c.failed = "nvrtcCreateProgram";
        return c;
    }
    compile(program, option_count, options, &c);
    caper_nvrtc.nvrtcDestroyProgram(&program);
    return c;
}
