// The library's C interface: kernels by name, and a launch from its first block to its last.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <numeric>

#include "check.h"
#include "fault.h"
#include "kernel.h"
#include "race.h"

namespace emu {

static Registration *registered;

void Registration::add(Registration *r) {
    r->next = registered;
    registered = r;
}

void check_exit() {
    exit_copies();
    exit_warpgroups();
}

struct Call {
    const Registration *kernel;
    void **params;
};

static void call_kernel(void *p) {
    const Call *c = (Call *)p;
    c->kernel->call(c->kernel->function, c->params);
}

static void begin_block(size_t shared_bytes) {
    race::begin_block();
    reset_shared(shared_bytes);
    reset_barriers();
    reset_warps();
    reset_copies();
    reset_warpgroups();
}

static void run_grid(const caper_emu_launch &l, Call call) {
    const uint32_t *g = l.grid;
    uint64_t random = l.seed;
    std::vector<uint32_t> order((size_t)g[0] * g[1] * g[2]);
    std::iota(order.begin(), order.end(), 0u);
    if (random)
        for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[draw(&random) % i]);
    position.grid_size = {g[0], g[1], g[2]};
    position.block_size = {l.block[0], l.block[1], l.block[2]};
    block.size = l.block[0] * l.block[1] * l.block[2];
    race::begin_launch();
    for (uint32_t b : order) {
        position.block = {b % g[0], b / g[0] % g[1], b / g[0] / g[1]};
        begin_block(l.shared_bytes);
        run_block(call_kernel, &call, &random);
        if (failed()) return;
    }
}

// What is wrong with the launch itself, or null.
static const char *refusal(const caper_emu_launch &l, const Registration *kernel) {
    static char text[128];
    if (!kernel) return "there is no such kernel";
    for (int d = 0; d < 3; d++)
        if (!l.grid[d] || !l.block[d]) return "a dimension of the grid or of the block is 0";
    if (l.grid[1] > 65535 || l.grid[2] > 65535) return "the grid's second and third dimension are at most 65535";
    const uint64_t threads = (uint64_t)l.block[0] * l.block[1] * l.block[2];
    if (threads > kernel->kernel.max_threads) {
        snprintf(text, sizeof text, "%lu threads in a block, and the kernel allows %u", (unsigned long)threads, kernel->kernel.max_threads);
        return text;
    }
    if (l.shared_bytes > 227 << 10) return "more than 227 KiB of shared memory in a block";
    return nullptr;
}

static const Registration *find(const char *name) {
    for (const Registration *r = registered; r; r = r->next)
        if (strcmp(r->kernel.name, name) == 0) return r;
    return nullptr;
}

} // namespace emu

const caper_emu_kernel *caper_emu_kernels(uint32_t *count) {
    static const std::vector<caper_emu_kernel> all = [] {
        std::vector<caper_emu_kernel> v;
        for (const emu::Registration *r = emu::registered; r; r = r->next) v.push_back(r->kernel);
        return v;
    }();
    *count = all.size();
    return all.data();
}

int caper_emu_run(const caper_emu_launch *launch, void **params, caper_emu_fault *fault) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    *fault = {};
    const emu::Registration *kernel = emu::find(launch->kernel);
    pthread_mutex_lock(&one_at_a_time);
    if (const char *reason = emu::refusal(*launch, kernel)) {
        snprintf(fault->message, sizeof fault->message, "kernel %s: %s", launch->kernel, reason);
        pthread_mutex_unlock(&one_at_a_time);
        return 1;
    }
    emu::catch_signals();
    emu::run_grid(*launch, {kernel, params});
    const bool failed = emu::failed();
    if (failed) emu::describe_failure(launch->kernel, fault);
    emu::forget_failure();
    emu::self = nullptr;
    pthread_mutex_unlock(&one_at_a_time);
    return failed;
}
