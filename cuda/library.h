// Shared libraries, opened by path or by soname: all symbols bound, visible to nobody
// else.
#ifndef CAPER_CUDA_LIBRARY_H
#define CAPER_CUDA_LIBRARY_H

#include <stddef.h>

// Returns null, and the loader's words in error, if there is no such library.
void *caper_library_open(const char *path, char *error, size_t error_size);
void *caper_library_symbol(void *library, const char *name);
const char *caper_library_path(void *library); // the file it was loaded from, or null

#endif
