#include "fault.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <map>
#include <string>

#include "shared.h"

namespace emu {

static struct Failure {
    bool set;
    const void *at;
    Index block, thread;
    char text[768];
    // Of a signal, whose handler does no more than keep these.
    int signal;
    const void *address;
    bool writes;
} failure;

static const void *acting; // the kernel's instruction that the runtime acts for
static pthread_t launcher;

Acting::Acting(const void *at) { acting = at; }
Acting::~Acting() { acting = nullptr; }

static void record(const void *at) {
    failure.set = true;
    failure.at = at;
    failure.block = position.block;
    failure.thread = self->index;
    acting = nullptr;
}

void fail(const void *at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure.text, sizeof failure.text, format, arguments);
    va_end(arguments);
    record(at);
    leave_block();
}

bool failed() { return failure.set; }
void forget_failure() { failure = {}; }

// ---- Who waits where

void fail_deadlock() {
    struct Group { const char *primitive; const void *at; unsigned threads, first; };
    std::vector<Group> groups;
    for (const Thread &t : block.threads) {
        if (t.exited || !t.waits_in) continue;
        size_t g = 0;
        while (g < groups.size() && !(groups[g].primitive == t.waits_in && same_place(groups[g].at, t.at))) g++;
        if (g == groups.size()) groups.push_back({t.waits_in, t.at, 0, t.id});
        groups[g].threads++;
    }
    size_t most = 0;
    for (size_t g = 1; g < groups.size(); g++)
        if (groups[g].threads > groups[most].threads) most = g;
    char text[512];
    int n = 0;
    for (size_t g = 0; g < groups.size() && g < 4; g++)
        n += snprintf(text + n, sizeof text - n, "%s%u in %s at @%p (first %u)", g ? ", " : "", groups[g].threads, groups[g].primitive, groups[g].at, groups[g].first);
    if (block.exited) snprintf(text + n, sizeof text - n, ", %u exited", block.exited);
    self = &block.threads[groups[most].first];
    fail(groups[most].at, "threads wait for ever: %s", text);
}

// ---- From instructions to source lines

static const char *library_path(uintptr_t *base) {
    Dl_info info = {};
    dladdr((void *)same_place, &info);
    *base = (uintptr_t)info.dli_fbase;
    return info.dli_fname;
}

// Where kernels' texts lay, by the name that Build gives their folder.
static const std::string SOURCES = "/kernel-sources/";

static bool is_kernel_source(const std::string &file) {
    for (const char *header : {"dialect.cuh", "emulated.cuh", "builtins.h", "kernel.h"})
        if (file.size() >= strlen(header) && file.compare(file.size() - strlen(header), std::string::npos, header) == 0) return false;
    return true;
}

// The lines that an instruction stands for, innermost first, as "file:line" each:
// those of the kernel's text alone.
static const std::vector<std::string> &lines_of(const void *instruction) {
    static std::map<const void *, std::vector<std::string>> known;
    auto found = known.find(instruction);
    if (found != known.end()) return found->second;
    std::vector<std::string> &lines = known[instruction];
    uintptr_t base;
    std::string command = "addr2line -i -e '" + std::string(library_path(&base)) + "' ";
    char line[1024];
    snprintf(line, sizeof line, "%#lx", (uintptr_t)instruction - base - 1); // the call, not what follows it
    FILE *p = popen((command + line).c_str(), "r");
    while (p && fgets(line, sizeof line, p)) {
        std::string text(line, strcspn(line, "\n("));
        while (!text.empty() && text.back() == ' ') text.pop_back();
        if (text.compare(0, SOURCES.size(), SOURCES) == 0) text.erase(0, SOURCES.size());
        size_t colon = text.rfind(':');
        if (colon != std::string::npos && text[0] != '?' && is_kernel_source(text.substr(0, colon))) lines.push_back(text);
    }
    if (p) pclose(p);
    return lines;
}

bool same_place(const void *a, const void *b) { return a == b || lines_of(a) == lines_of(b); }

static std::string line_of(const void *instruction) {
    const auto &lines = lines_of(instruction);
    return lines.empty() ? "?:0" : lines.front();
}

static std::string with_lines(const char *text) {
    std::string out;
    while (const char *at = strstr(text, "@0x")) {
        out.append(text, at);
        char *end;
        const void *instruction = (const void *)strtoul(at + 1, &end, 16);
        out += line_of(instruction);
        text = end;
    }
    return out + text;
}

// ---- Signals

static struct sigaction earlier[2]; // of SIGSEGV and SIGBUS

// A fault of the running kernel's own thread ends the block: the handler returns to
// run_block. All others go where they went before, to Go's runtime for instance.
static void on_signal(int signal, siginfo_t *info, void *context) {
    if (self && pthread_equal(pthread_self(), launcher)) {
        auto &registers = ((ucontext_t *)context)->uc_mcontext.gregs;
        failure.signal = signal;
        failure.address = info->si_addr;
        failure.writes = registers[REG_ERR] & 2;
        record(acting ? acting : (const void *)(registers[REG_RIP] + 1));
        registers[REG_RDI] = (greg_t)leave_pointer();
        registers[REG_RIP] = (greg_t)emu_resume;
        return;
    }
    const struct sigaction &before = earlier[signal == SIGBUS];
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else {
        ::signal(signal, SIG_DFL); // the instruction faults again
    }
}

void catch_signals() {
    launcher = pthread_self();
    static bool installed;
    if (installed) return;
    installed = true;
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &earlier[0]);
    sigaction(SIGBUS, &action, &earlier[1]);
}

static std::string text_of_signal() {
    const char *verb = failure.writes ? "writes to" : "reads";
    const char *p = (const char *)failure.address;
    char text[256];
    for (const Thread &t : block.threads)
        if (p >= t.stack - STACK_GUARD && p < t.stack) return "stack overflow: local variables of more than " + std::to_string(STACK_BYTES >> 10) + " KiB";
    if (near_shared(p)) snprintf(text, sizeof text, "out of bounds: %s an address outside the block's shared memory (%td bytes past its end)", verb, p - shared_end());
    else snprintf(text, sizeof text, "out of bounds: %s address %#lx, where no memory is", verb, (uintptr_t)p);
    return text;
}

void describe_failure(const char *kernel, caper_emu_fault *fault) {
    std::string text = failure.signal ? text_of_signal() : with_lines(failure.text);
    std::string line = line_of(failure.at);
    size_t colon = line.rfind(':');
    snprintf(fault->file, sizeof fault->file, "%s", line.substr(0, colon).c_str());
    fault->line = atoi(line.c_str() + colon + 1);
    const Index b = failure.block, t = failure.thread;
    const uint32_t bs[] = {b.x, b.y, b.z}, ts[] = {t.x, t.y, t.z};
    memcpy(fault->block, bs, sizeof bs);
    memcpy(fault->thread, ts, sizeof ts);
    snprintf(fault->message, sizeof fault->message, "%s: kernel %s: %s (block %u,%u,%u thread %u,%u,%u)", line.c_str(), kernel, text.c_str(), b.x, b.y, b.z, t.x, t.y, t.z);
}

} // namespace emu
