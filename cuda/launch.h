// A launch whose parameters come as one run of bytes, so that no memory of Go's that
// holds pointers crosses over.
#ifndef CAPER_CUDA_LAUNCH_H
#define CAPER_CUDA_LAUNCH_H

#include "driver.h"

enum { CAPER_MAX_PARAMETERS = 128, CAPER_MAX_PARAMETER_BYTES = 4096 };

struct caper_launch {
    uint32_t grid[3], block[3], cluster[3]; // no cluster where cluster[0] is 0
    uint32_t shared_bytes;
    uint32_t cooperative;
};

// Parameter i is at bytes + offsets[i], at a multiple of its alignment from bytes.
CUresult caper_launch(CUcontext context, CUfunction function, CUstream stream, const struct caper_launch *launch,
                      const void *bytes, size_t size, const uint32_t *offsets, int count);

// cuTensorMapEncodeTiled to memory of any alignment.
CUresult caper_tensor_map(CUcontext context, void *map, CUtensorMapDataType type, uint32_t rank, CUdeviceptr address,
                          const uint64_t *sizes, const uint64_t *strides, const uint32_t *box, CUtensorMapSwizzle swizzle);

#endif
