// The walk over the trees. A task is a key head of a group of trees; it visits
// segments depth first and keeps states only for the path it is on, so memory grows
// with the longest sequence and not with the number of branches.
//
// Forward keeps the state at the end of each segment on the path, and the residuals of
// every row. Backward needs the state at the start of every chunk: entering a segment,
// it makes them again from the residuals; leaving it, after its children have left
// their gradients, it takes the chunks from last to first.
#include "deltarule.h"

#include <string.h>

#include "chunk.h"
#include "vector.h"

struct task {
    const struct deltarule *a;
    int key_head, heads; // heads: value heads of the key head
    long size;           // of a state
    float *states;
};

static struct task task_at(const struct deltarule *a, int task) {
    int heads = a->value_heads / a->key_heads;
    long size = (long)a->key_dim * a->value_dim;
    return (struct task){a, task % a->key_heads, heads, size, a->states + task * (long)a->task_states * heads * size};
}

// The n-th state of the task's j-th value head.
static float *state(const struct task *t, int n, int j) { return t->states + ((long)n * t->heads + j) * t->size; }

static void zero_states(const struct task *t, int n) { memset(state(t, n, 0), 0, sizeof(float) * t->heads * t->size); }

// Group of the tree that starts at `row`: about equally many rows each.
static int group_of(const struct deltarule *a, int row) { return (long)row * a->groups / a->rows; }

// Calls visit for the task's segments in order.
static void each_segment(const struct task *t, int group, void (*visit)(void *, int segment), void *arg) {
    for (int s = 0, mine = 0; s < t->a->segments; s++) {
        if (t->a->parent[s] < 0) mine = group_of(t->a, t->a->start[s]) == group;
        if (mine) visit(arg, s);
    }
}

static int chunks(const struct deltarule *a, int s) { return (a->len[s] + CHUNK - 1) / CHUNK; }

static int chunk_length(const struct deltarule *a, int s, int i) {
    int left = a->len[s] - i * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static int level(const struct deltarule *a, int s) {
    int n = 0;
    while ((s = a->parent[s]) >= 0) n++;
    return n;
}

// A leaf's final state is needed by nobody. Depth first, a first child follows its
// parent.
static int is_leaf(const struct deltarule *a, int s) { return s + 1 == a->segments || a->parent[s + 1] != s; }

// State 0 is zero, state 1 + level is where the segment of that level on the path
// ended.
static void forward_segment(void *arg, int s) {
    const struct task *t = arg;
    const struct deltarule *a = t->a;
    int from = level(a, s), to = from + 1;
    struct chunk c;
    for (int i = 0; i < chunks(a, s); i++, from = to) {
        chunk_open(&c, a, a->start[s] + i * CHUNK, chunk_length(a, s, i), t->key_head);
        chunk_match(&c);
        for (int j = 0; j < t->heads; j++) {
            chunk_turn(&c, t->key_head * t->heads + j);
            chunk_solve(&c, state(t, from, j));
            chunk_output(&c, state(t, from, j));
            if (i + 1 < chunks(a, s) || !is_leaf(a, s)) chunk_advance(&c, state(t, from, j), state(t, to, j));
        }
    }
}

static void forward_task(void *arg, int task) {
    struct task t = task_at(arg, task);
    zero_states(&t, 0);
    each_segment(&t, task / t.a->key_heads, forward_segment, &t);
}

void deltarule_forward(struct deltarule a) { parallel_for(a.cpu, forward_task, &a, a.groups * a.key_heads); }

// The first path_states states are those at the starts of the path's chunks, root
// first; the one after a segment's last chunk is where its children start. Behind
// them, one per level, is the gradient of the state at the end of the segment.
struct walk {
    struct task task;
    int top; // the segment at the end of the path, -1 for none
};

static int first_state(const struct deltarule *a, int s) {
    int n = 0;
    while ((s = a->parent[s]) >= 0) n += chunks(a, s);
    return n;
}

static void enter(const struct task *t, int s) {
    const struct deltarule *a = t->a;
    int at = first_state(a, s), n = chunks(a, s) - is_leaf(a, s);
    struct chunk c;
    if (a->parent[s] < 0) zero_states(t, at);
    zero_states(t, a->path_states + level(a, s));
    for (int i = 0; i < n; i++) {
        chunk_open(&c, a, a->start[s] + i * CHUNK, chunk_length(a, s, i), t->key_head);
        for (int j = 0; j < t->heads; j++) {
            chunk_turn(&c, t->key_head * t->heads + j);
            chunk_recall(&c);
            chunk_advance(&c, state(t, at + i, j), state(t, at + i + 1, j));
        }
    }
}

static void leave(const struct task *t, int s) {
    const struct deltarule *a = t->a;
    int at = first_state(a, s), gradient = a->path_states + level(a, s);
    struct chunk c;
    struct chunk_gradient d;
    for (int i = chunks(a, s) - 1; i >= 0; i--) {
        chunk_open(&c, a, a->start[s] + i * CHUNK, chunk_length(a, s, i), t->key_head);
        chunk_match(&c);
        chunk_gradient_open(&c, &d);
        for (int j = 0; j < t->heads; j++) {
            chunk_turn(&c, t->key_head * t->heads + j);
            chunk_recall(&c);
            chunk_backward(&c, &d, state(t, at + i, j), state(t, gradient, j), is_leaf(a, s) && i + 1 == chunks(a, s));
        }
        chunk_gradient_close(&c, &d);
    }
    if (a->parent[s] < 0) return;
    float *parent = state(t, gradient - 1, 0);
    const float *own = state(t, gradient, 0);
    for (long i = 0; i < t->heads * t->size; i++) parent[i] += own[i];
}

static void leave_up_to(struct walk *w, int segment) {
    for (; w->top != segment; w->top = w->task.a->parent[w->top]) leave(&w->task, w->top);
}

static void walk_to(void *arg, int s) {
    struct walk *w = arg;
    leave_up_to(w, w->task.a->parent[s]);
    enter(&w->task, s);
    w->top = s;
}

static void backward_task(void *arg, int task) {
    struct walk w = {task_at(arg, task), -1};
    each_segment(&w.task, task / w.task.a->key_heads, walk_to, &w);
    leave_up_to(&w, -1);
}

void deltarule_backward(struct deltarule a) { parallel_for(a.cpu, backward_task, &a, a.groups * a.key_heads); }
