// Streams, events and graphs. A stream holds what it was asked for until somebody waits:
// for the stream, for an event behind it in the stream, or, through events, for another
// stream. A query does one piece of work, so that things are ready at some time.
#include "mock.h"

#include <time.h>

struct list {
    struct op *first, **last;
};

struct CUgraph_st {
    struct object object;
    struct list ops;
    int invalid; // something was done that a capture forbids
};

struct CUgraphExec_st {
    struct object object;
    struct list ops;
};

struct CUstream_st {
    struct object object;
    CUcontext context;
    struct list ops;
    CUgraph capture;   // being captured into
    CUstream origin;   // the stream whose capture this one joined
    int unjoined;      // has work in the capture that nobody waits for yet
};

struct CUevent_st {
    struct object object;
    int timed;
    unsigned long asked, happened; // records of the event: how many, and the last one done
    CUstream stream;               // of the last record
    CUgraph capture;               // the last record was captured
    double ms;
};

static void list_init(struct list *l) { l->first = 0, l->last = &l->first; }

static void list_append(struct list *l, CUresult (*run)(void *), const void *data, size_t size) {
    struct op *o = aligned_alloc(128, (sizeof *o + size + 127) / 128 * 128);
    *o = (struct op){0, run, size};
    memcpy(o->data, data, size);
    *l->last = o;
    l->last = &o->next;
}

static void list_clear(struct list *l) {
    for (struct op *o = l->first, *next; o; o = next) next = o->next, free(o);
    list_init(l);
}

CUresult enqueue(CUstream s, CUresult (*run)(void *), const void *data, size_t size) {
    REFUSE_IF(!object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    list_append(s->capture ? &s->capture->ops : &s->ops, run, data, size);
    if (s->origin) s->unjoined = 1;
    return 0;
}

// Does the first piece of work. A mistake of it is the end of its context.
static CUresult step(CUstream s) {
    struct op *o = s->ops.first;
    if (!(s->ops.first = o->next)) s->ops.last = &s->ops.first;
    CUresult failed = o->run(o->data);
    free(o);
    if (failed) {
        s->context->lost = failed;
        list_clear(&s->ops);
    }
    return failed;
}

static CUresult drain(CUstream s) {
    while (s->ops.first) {
        CUresult failed = step(s);
        if (failed) return failed;
    }
    return 0;
}

static CUstream streams[64]; // alive
static void forget(CUstream s) {
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i] == s) streams[i] = 0;
}
static int remember(CUstream s) {
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (!streams[i]) return streams[i] = s, 1;
    return 0;
}

CUresult drain_all(void) {
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        CUresult failed = streams[i] && streams[i]->context == current() ? drain(streams[i]) : 0;
        if (failed) return failed;
    }
    return 0;
}

// To wait for a stream that is captured ends the capture.
static CUresult forbid_capture(CUstream s) {
    if (!s->capture) return 0;
    s->capture->invalid = 1;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// ---- Streams

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    ENTER("%u %d", flags, priority);
    REFUSE_IF(!current(), CUDA_ERROR_INVALID_CONTEXT);
    CUstream s = object_new(STREAM, sizeof *s);
    s->context = current();
    list_init(&s->ops);
    REFUSE_IF(!remember(s), CUDA_ERROR_OUT_OF_MEMORY);
    *stream = s;
    return 0;
}

CUresult cuStreamDestroy_v2(CUstream s) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    CUresult failed = drain(s);
    forget(s);
    object_free(s);
    return failed;
}

CUresult cuStreamSynchronize(CUstream s) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    CUresult failed = forbid_capture(s);
    return failed ? failed : drain(s);
}

CUresult cuStreamQuery(CUstream s) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    CUresult failed = forbid_capture(s);
    if (failed || !s->ops.first) return failed;
    failed = step(s);
    return failed ? failed : CUDA_ERROR_NOT_READY;
}

// ---- Events

struct moment {
    CUevent event;
    unsigned long which;
};

static CUresult run_record(void *data) {
    struct moment *m = data;
    if (!object_alive(EVENT, m->event)) return 0; // destroyed in the meantime, which is allowed
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    m->event->ms = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
    m->event->happened = m->which;
    return 0;
}

static CUresult run_wait(void *data) {
    struct moment *m = data;
    if (!object_alive(EVENT, m->event)) return 0;
    while (m->event->happened < m->which && object_alive(STREAM, m->event->stream) && m->event->stream->ops.first) {
        CUresult failed = step(m->event->stream);
        if (failed) return failed;
    }
    return 0;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    ENTER("%u", flags);
    *event = object_new(EVENT, sizeof **event);
    (*event)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    return 0;
}

CUresult cuEventDestroy_v2(CUevent e) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EVENT, e), CUDA_ERROR_INVALID_HANDLE);
    object_free(e);
    return 0;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EVENT, e) || !object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    e->stream = s;
    e->capture = s->capture;
    if (s->capture) return 0;
    struct moment m = {e, ++e->asked};
    return enqueue(s, run_record, &m, sizeof m);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
    ENTER("%u", flags);
    REFUSE_IF(!object_alive(EVENT, e) || !object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    if (e->capture) { // an edge of the graph, whose work is in a right order already
        if (!s->capture) s->capture = e->capture, s->origin = e->stream;
        else if (e->stream->origin) e->stream->unjoined = 0;
        return 0;
    }
    struct moment m = {e, e->asked};
    return enqueue(s, run_wait, &m, sizeof m);
}

CUresult cuEventSynchronize(CUevent e) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EVENT, e), CUDA_ERROR_INVALID_HANDLE);
    struct moment m = {e, e->asked};
    return run_wait(&m);
}

CUresult cuEventQuery(CUevent e) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EVENT, e), CUDA_ERROR_INVALID_HANDLE);
    if (e->happened == e->asked) return 0;
    CUresult failed = step(e->stream);
    return failed ? failed : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EVENT, start) || !object_alive(EVENT, end), CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(!start->timed || !end->timed, CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(start->happened != start->asked || end->happened != end->asked, CUDA_ERROR_NOT_READY);
    *ms = end->ms - start->ms;
    return 0;
}

// ---- Graphs

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
    ENTER("%u", mode);
    REFUSE_IF(!object_alive(STREAM, s), CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(s->capture, CUDA_ERROR_INVALID_VALUE);
    s->capture = object_new(GRAPH, sizeof *s->capture);
    list_init(&s->capture->ops);
    return 0;
}

// Ends the capture in all of its streams; tells whether one was not waited for.
static int leave_capture(CUgraph g) {
    int unjoined = 0;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (streams[i] && streams[i]->capture == g) {
            unjoined |= streams[i]->unjoined;
            streams[i]->capture = 0, streams[i]->origin = 0, streams[i]->unjoined = 0;
        }
    return unjoined;
}

// Whatever it returns, the capture is over.
CUresult cuStreamEndCapture(CUstream s, CUgraph *graph) {
    *graph = 0;
    __attribute__((cleanup(mock_unlock), unused)) int held = (pthread_mutex_lock(&mock_lock), 1);
    CUresult failed = mock_enter(__func__, "%s", "");
    CUgraph g = object_alive(STREAM, s) ? s->capture : 0;
    REFUSE_IF(!g, failed ? failed : CUDA_ERROR_INVALID_VALUE);
    const int unjoined = leave_capture(g);
    if (!failed && g->invalid) failed = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!failed && unjoined) failed = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (failed) {
        list_clear(&g->ops);
        object_free(g);
        return failed;
    }
    *graph = g;
    return 0;
}

static void list_copy(struct list *to, const struct list *from) {
    for (struct op *o = from->first; o; o = o->next) list_append(to, o->run, o->data, o->size);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags) {
    ENTER("%llu", flags);
    REFUSE_IF(!object_alive(GRAPH, g), CUDA_ERROR_INVALID_HANDLE);
    CUgraphExec e = object_new(EXEC, sizeof *e);
    list_init(&e->ops);
    list_copy(&e->ops, &g->ops);
    *exec = e;
    return 0;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *result) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EXEC, e) || !object_alive(GRAPH, g), CUDA_ERROR_INVALID_HANDLE);
    *result = (CUgraphExecUpdateResultInfo){0};
    struct op *a = e->ops.first, *b = g->ops.first;
    while (a && b && a->run == b->run) a = a->next, b = b->next;
    if (a || b) {
        result->result = 2; // the topology has changed
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    list_clear(&e->ops);
    list_copy(&e->ops, &g->ops);
    return 0;
}

CUresult cuGraphUpload(CUgraphExec e, CUstream s) {
    ENTER("%s", "");
    return object_alive(EXEC, e) && object_alive(STREAM, s) ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EXEC, e), CUDA_ERROR_INVALID_HANDLE);
    for (struct op *o = e->ops.first; o; o = o->next) {
        CUresult failed = enqueue(s, o->run, o->data, o->size);
        if (failed) return failed;
    }
    return 0;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(EXEC, e), CUDA_ERROR_INVALID_HANDLE);
    list_clear(&e->ops);
    object_free(e);
    return 0;
}

CUresult cuGraphDestroy(CUgraph g) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(GRAPH, g), CUDA_ERROR_INVALID_HANDLE);
    list_clear(&g->ops);
    object_free(g);
    return 0;
}
