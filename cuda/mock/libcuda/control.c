// The record of calls, and failures that tests plan.
#include "mock.h"

#include <stdarg.h>

pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER;

static char *record;
static size_t record_size, record_room;

static struct plan {
    char call[64];
    int nth, code;
} plan;

static void write_down(const char *line) {
    size_t n = strlen(line);
    if (record_size + n + 2 > record_room) {
        record_room = 2 * (record_room + n + 2);
        record = realloc(record, record_room);
    }
    memcpy(record + record_size, line, n);
    record_size += n;
    record[record_size++] = '\n';
    record[record_size] = 0;
}

// A lost context fails the calls that use it.
static int needs_context(const char *call) {
    static const char *const without[] = {"nvrtc", "cuInit", "cuDriver", "cuDevice"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strncmp(call, without[i], strlen(without[i])) == 0) return 0;
    return 1;
}

int mock_enter(const char *call, const char *format, ...) {
    char line[1024];
    int n = snprintf(line, sizeof line, "%s ", call);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + n, sizeof line - n, format, arguments);
    va_end(arguments);
    if (record) write_down(line);
    if (plan.nth > 0 && strcmp(plan.call, call) == 0 && --plan.nth == 0) return plan.code;
    CUcontext c = needs_context(call) ? current() : 0;
    return c ? c->lost : 0;
}

// The n-th call of this name from now on fails with a code; 0 takes the plan back.
void caper_mock_fail(const char *call, int nth, int code) {
    pthread_mutex_lock(&mock_lock);
    snprintf(plan.call, sizeof plan.call, "%s", call);
    plan.nth = nth;
    plan.code = code;
    pthread_mutex_unlock(&mock_lock);
}

// Begins a new record, one call a line.
void caper_mock_record(void) {
    pthread_mutex_lock(&mock_lock);
    record_size = 0;
    if (!record) record = malloc(record_room = 1 << 12);
    record[0] = 0;
    pthread_mutex_unlock(&mock_lock);
}

// Ends the record and returns it; the caller frees it.
char *caper_mock_recorded(void) {
    pthread_mutex_lock(&mock_lock);
    char *r = record;
    record = 0;
    pthread_mutex_unlock(&mock_lock);
    return r;
}
