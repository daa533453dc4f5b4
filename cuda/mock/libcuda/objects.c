// What is alive, so that stale handles are refused and leaks are seen.
#include "mock.h"

static struct object *objects;

void *object_new(enum kind kind, size_t size) {
    struct object *o = calloc(1, size);
    o->kind = kind;
    o->next = objects;
    return objects = o;
}

void object_free(void *p) {
    for (struct object **o = &objects; *o; o = &(*o)->next)
        if (*o == p) {
            *o = (*o)->next;
            free(p);
            return;
        }
}

int object_alive(enum kind kind, const void *p) {
    for (struct object *o = objects; o; o = o->next)
        if (o == p) return o->kind == kind;
    return 0;
}

int object_count(enum kind kind) {
    int n = 0;
    for (struct object *o = objects; o; o = o->next) n += o->kind == kind;
    return n;
}
