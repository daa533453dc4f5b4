#include "block.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "fault.h"

asm(R"(
.text
.globl emu_switch
.hidden emu_switch
.type emu_switch, @function
emu_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rdi
.globl emu_resume
.hidden emu_resume
.type emu_resume, @function
emu_resume:
    mov %rdi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

namespace emu {

Position position;
Block block;
Thread *self;

// The ready threads, from `oldest` to the end.
static std::vector<Thread *> ready;
static size_t oldest;
static uint64_t *order;
static void *launcher; // the stack pointer of run_block
static void (*body)(void *);
static void *body_argument;

uint64_t draw(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

// The next thread to run, or null.
static Thread *take() {
    if (oldest == ready.size()) return nullptr;
    if (*order) std::swap(ready[oldest], ready[oldest + draw(order) % (ready.size() - oldest)]);
    Thread *t = ready[oldest++];
    if (oldest == ready.size() || oldest > 4096) {
        ready.erase(ready.begin(), ready.begin() + oldest);
        oldest = 0;
    }
    return t;
}

static void give_way() {
    Thread *before = self, *next = take();
    if (!next) fail_deadlock();
    if (next == before) return;
    self = next;
    position.thread = next->index;
    emu_switch(&before->stack_pointer, next->stack_pointer);
}

void wait(const char *primitive, const void *at) {
    self->waits_in = primitive;
    self->at = at;
    give_way();
}

void wake(Thread *t) {
    t->waits_in = nullptr;
    ready.push_back(t);
}

void leave_block() { emu_resume(launcher); }
void *leave_pointer() { return launcher; }

static void thread_main() {
    body(body_argument);
    check_exit();
    self->exited = true;
    block.lanes[self->warp()] &= ~(1u << self->lane());
    if (++block.exited == block.size) leave_block();
    give_way();
    abort(); // an exited thread is never ready
}

// Stacks are kept for the next block. Their tops differ in the low bits of the address,
// so that the threads' frames do not share a few lines of the cache.
static char *stack_of(unsigned id) {
    static std::vector<char *> pool;
    while (pool.size() <= id) {
        void *p = mmap(nullptr, STACK_GUARD + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) abort();
        mprotect(p, STACK_GUARD, PROT_NONE);
        pool.push_back((char *)p + STACK_GUARD);
    }
    return pool[id];
}

static void prepare(Thread &t, unsigned id) {
    const Index n = position.block_size;
    t = {};
    t.id = id;
    t.index = {id % n.x, id / n.x % n.y, id / n.x / n.y};
    t.stack = stack_of(id);
    void **top = (void **)(t.stack + STACK_BYTES - 64 - id * 192 % 4096);
    block.lanes[t.warp()] |= 1u << t.lane();
    *--top = nullptr; // where a return address would be: calls find the stack aligned
    *--top = (void *)thread_main;
    for (int registers = 0; registers < 6; registers++) *--top = nullptr;
    t.stack_pointer = top;
}

void run_block(void (*call)(void *), void *argument, uint64_t *random) {
    body = call, body_argument = argument, order = random;
    block.exited = 0;
    block.threads.resize(block.size);
    for (uint32_t &lanes : block.lanes) lanes = 0;
    ready.clear();
    oldest = 0;
    for (unsigned id = 0; id < block.size; id++) {
        prepare(block.threads[id], id);
        ready.push_back(&block.threads[id]);
    }
    self = take();
    position.thread = self->index;
    emu_switch(&launcher, self->stack_pointer);
    self = nullptr;
}

} // namespace emu
