#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

void *caper_library_open(const char *path, char *error, size_t error_size) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(error, error_size, "%s", dlerror());
    return library;
}

void *caper_library_symbol(void *library, const char *name) { return dlsym(library, name); }

const char *caper_library_path(void *library) {
    struct link_map *map = 0;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : 0;
}
