// A pretended NVRTC: its cubin is an ELF header, the architecture and the text, in which
// the mock of the driver finds the names of kernels. Marks in the text make it fail:
// "#error" is an error, "mock: spills" and "mock: serialises" give what ptxas says then.
#include "mock.h"

#include <elf.h>

struct program {
    struct object object;
    char *text, *name, *log, *cubin;
    size_t cubin_size;
};
typedef struct program *nvrtcProgram;

int nvrtcVersion(int *major, int *minor) {
    ENTER("%s", "");
    *major = 13, *minor = 0;
    return 0;
}

const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : code == 7 ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE" : "NVRTC_ERROR_INTERNAL_ERROR"; }

int nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int headers, const char *const *texts, const char *const *names) {
    ENTER("%s %d", name, headers);
    for (int i = 0; i < headers; i++)
        if (!texts[i] || !names[i]) return 3;
    nvrtcProgram p = object_new(PROGRAM, sizeof *p);
    p->text = strdup(text), p->name = strdup(name);
    *program = p;
    return 0;
}

static const char *option(int count, const char *const *options, const char *start) {
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], start, strlen(start)) == 0) return options[i] + strlen(start);
    return 0;
}

// The log of ptxas -v for the kernels of a text.
static char *write_log(nvrtcProgram p, const char *arch) {
    char *log;
    size_t size;
    FILE *f = open_memstream(&log, &size);
    const int spills = strstr(p->text, "mock: spills") ? 64 : 0;
    if (strstr(p->text, "mock: serialises")) fprintf(f, "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized\n");
    for (const char *at = p->text; (at = strstr(at, "__global__ void")); at++) {
        const char *end = strchr(at + strlen("__global__ void"), '(');
        if (end && strncmp(end - strlen("__launch_bounds__"), "__launch_bounds__", strlen("__launch_bounds__")) == 0) {
            end = strchr(end, ')');
            end = end ? strchr(end, '(') : 0;
        }
        if (!end) break;
        const char *start = end;
        while (start[-1] != ' ') start--;
        fprintf(f, "ptxas info    : Compiling entry function '%.*s' for '%s'\nptxas         .     0 bytes stack frame, %d bytes spill stores, %d bytes spill loads\nptxas info    : Used 32 registers, used 1 barriers\n",
                (int)(end - start), start, arch, spills, spills);
    }
    if (strstr(p->text, "#error")) fprintf(f, "%s(1): error: #error directive\n", p->name);
    fclose(f);
    return log;
}

int nvrtcCompileProgram(nvrtcProgram p, int count, const char *const *options) {
    ENTER("%s %d", p->name, count);
    const char *arch = option(count, options, "--gpu-architecture=");
    if (!arch || !option(count, options, "--ptxas-options=-v")) return 5;
    p->log = write_log(p, arch);
    if (strstr(p->text, "#error")) return 6;
    Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F'}, .e_flags = atoi(arch + 3)};
    e.e_shoff = p->cubin_size = sizeof e + strlen(arch) + 1 + strlen(p->text) + 1;
    p->cubin = malloc(p->cubin_size);
    memcpy(p->cubin, &e, sizeof e);
    sprintf(p->cubin + sizeof e, "%s\n%s", arch, p->text);
    return 0;
}

int nvrtcGetProgramLogSize(nvrtcProgram p, size_t *size) {
    ENTER("%s", p->name);
    *size = (p->log ? strlen(p->log) : 0) + 1;
    return 0;
}

int nvrtcGetProgramLog(nvrtcProgram p, char *log) {
    ENTER("%s", p->name);
    strcpy(log, p->log ? p->log : "");
    return 0;
}

int nvrtcGetCUBINSize(nvrtcProgram p, size_t *size) {
    ENTER("%s", p->name);
    *size = p->cubin_size;
    return 0;
}

int nvrtcGetCUBIN(nvrtcProgram p, char *cubin) {
    ENTER("%s", p->name);
    memcpy(cubin, p->cubin, p->cubin_size);
    return 0;
}

int nvrtcDestroyProgram(nvrtcProgram *program) {
    ENTER("%s", "");
    nvrtcProgram p = *program;
    free(p->text), free(p->name), free(p->log), free(p->cubin);
    object_free(p);
    *program = 0;
    return 0;
}
