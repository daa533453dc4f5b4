#include "launch.h"

#include <string.h>

CUresult caper_launch(CUcontext context, CUfunction function, CUstream stream, const struct caper_launch *l,
                      const void *bytes, size_t size, const uint32_t *offsets, int count) {
    // Tensor maps are the parameters with the largest alignment.
    _Alignas(128) unsigned char values[CAPER_MAX_PARAMETER_BYTES];
    void *parameters[CAPER_MAX_PARAMETERS];
    if (size > sizeof values || count > CAPER_MAX_PARAMETERS) return CUDA_ERROR_INVALID_VALUE;
    memcpy(values, bytes, size);
    for (int i = 0; i < count; i++) parameters[i] = values + offsets[i];

    CUlaunchAttribute attributes[2] = {0};
    CUlaunchConfig config = {.shared_bytes = l->shared_bytes, .stream = stream, .attributes = attributes};
    memcpy(config.grid, l->grid, sizeof config.grid);
    memcpy(config.block, l->block, sizeof config.block);
    if (l->cluster[0]) {
        CUlaunchAttribute *a = &attributes[config.attribute_count++];
        a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        memcpy(a->value.cluster, l->cluster, sizeof a->value.cluster);
    }
    if (l->cooperative) {
        CUlaunchAttribute *a = &attributes[config.attribute_count++];
        a->id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        a->value.number = 1;
    }
    return cuLaunchKernelEx(context, &config, function, parameters, 0);
}

CUresult caper_tensor_map(CUcontext context, void *out, CUtensorMapDataType type, uint32_t rank, CUdeviceptr address,
                          const uint64_t *sizes, const uint64_t *strides, const uint32_t *box, CUtensorMapSwizzle swizzle) {
    static const uint32_t every_element[5] = {1, 1, 1, 1, 1};
    _Alignas(128) CUtensorMap map;
    CUresult failed = cuTensorMapEncodeTiled(context, &map, type, rank, (void *)address, sizes, strides, box, every_element,
                                             0, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 0);
    if (!failed) memcpy(out, &map, sizeof map);
    return failed;
}
