#include "mock.h"

// What is alive: "2 streams, 1 event"; empty if nothing is. The caller frees it.
char *caper_mock_alive(void) {
    static const char *const names[KINDS] = {"contexts", "modules", 0, "streams", "events", "graphs", "executable graphs", "programs", "descriptors"};
    char text[512] = "", *at = text;
    pthread_mutex_lock(&mock_lock);
    for (int k = 0; k < KINDS; k++)
        if (names[k] && object_count(k)) at += sprintf(at, "%s%d %s", at > text ? ", " : "", object_count(k), names[k]);
    if (memory_live()) sprintf(at, "%s%zu allocations", at > text ? ", " : "", memory_live());
    pthread_mutex_unlock(&mock_lock);
    return strdup(text);
}
