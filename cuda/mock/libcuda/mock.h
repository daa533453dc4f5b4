// What the parts of the mock share. Everything happens under one lock, and work in
// streams only when somebody waits for it: whoever reads a result without having waited
// reads what was there before.
#ifndef CAPER_MOCK_H
#define CAPER_MOCK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPER_DRIVER_TYPES_ONLY
#include "driver.h"
#include "emulator/emulator.h"

enum { CUDA_ERROR_INVALID_CONTEXT = 201 };

// ---- control.c: the record of calls, and failures that tests plan

extern pthread_mutex_t mock_lock;
static inline void mock_unlock(int *held) { (void)held, pthread_mutex_unlock(&mock_lock); }

// Writes the call down and returns the code that it is to fail with, or 0.
int mock_enter(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Begins every call of the mock: takes the lock until its end, and fails if a test planned so.
#define ENTER(...)                                                              \
    __attribute__((cleanup(mock_unlock), unused)) int held = (pthread_mutex_lock(&mock_lock), 1); \
    const int planned = mock_enter(__func__, __VA_ARGS__);                      \
    if (planned) return planned

#define REFUSE_IF(condition, code) \
    if (condition) return code

// ---- objects.c: what is alive

enum kind { CONTEXT, MODULE, FUNCTION, STREAM, EVENT, GRAPH, EXEC, PROGRAM, DESCRIPTOR, KINDS };

struct object {
    enum kind kind;
    struct object *next;
};
void *object_new(enum kind, size_t size); // zeroed; begins with a struct object
void object_free(void *);
int object_alive(enum kind, const void *);
int object_count(enum kind);

// ---- device.c

enum { DEVICES = 2 };

struct CUctx_st {
    struct object object;
    int device, retained;
    CUresult lost; // what a kernel did: all further calls fail with it
};
CUcontext current(void); // the calling thread's, or null
extern char mock_fault[1024]; // the last kernel's mistake

// ---- stream.c

// A piece of work: run(data), with size bytes of data that hold no pointer to be freed.
struct op {
    struct op *next;
    CUresult (*run)(void *data);
    size_t size;
    char data[] __attribute__((aligned(128)));
};

// Appends work to a stream, or to the graph that the stream is captured into.
CUresult enqueue(CUstream, CUresult (*run)(void *), const void *data, size_t size);
CUresult drain_all(void);

// ---- memory.c

int memory_holds(CUdeviceptr at, size_t bytes); // that this range is allocated
size_t memory_live(void); // number of allocations, pinned ones too

#endif
