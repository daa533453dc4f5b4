// A linear map of a few bf16 rows to float32 scores (formulas: spec.go).
#include "dialect.cuh"

// y [count, labels] = the rows of hidden that rows [count] names, times w [labels, cols]. A warp
// has one score.
extern "C" __global__ void __launch_bounds__(256)
scorehead_forward(const bf16* hidden, const bf16* w, const int* rows, float* y, int count, int labels, int cols,
                  i64 hidden_stride, i64 w_stride, i64 y_stride) {
    const int n = blockIdx.x * 8 + warp_id(), i = n / labels, l = n % labels;
    if (i >= count) return;
    const bf16 *from = hidden + rows[i] * hidden_stride, *weights = w + l * w_stride;
    float sum = 0;
#pragma unroll 2
    for (int c = lane_id() * 8; c < cols; c += 256) {
        const uint4 hs = load8_packed(from + c, cols - c), ws = load8_packed(weights + c, cols - c);
        float h[8], v[8];
        unpack8(h, hs);
        unpack8(v, ws);
#pragma unroll
        for (int j = 0; j < 8; j++) sum += h[j] * v[j];
    }
    sum = warp_sum(sum);
    if (lane_id() == 0) y[i * y_stride + l] = sum;
}

// dhidden += dy w. A row may be named more than once: the block of its first mention adds all
// of them up, in their order. Blocks are mentions.
extern "C" __global__ void __launch_bounds__(256)
scorehead_backward_hidden(const bf16* w, const float* dy, const int* __restrict__ rows, bf16* dhidden, int count, int labels, int cols,
                          i64 w_stride, i64 dy_stride, i64 dhidden_stride) {
    const int first = blockIdx.x, row = rows[first];
    for (int from = 0; from < first; from += 32) {
        const int i = from + lane_id();
        if (__any_sync(ALL_LANES, i < first && rows[i] == row)) return;
    }
    for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
        bf16* to = dhidden + row * dhidden_stride + c;
        float sum[8];
        load8_bf16(sum, to, cols - c);
        for (int i = first; i < count; i++) {
            if (rows[i] != row) continue;
            for (int l = 0; l < labels; l++) {
                const float d = dy[i * dy_stride + l];
                float v[8];
                load8_bf16(v, w + l * w_stride + c, cols - c);
#pragma unroll
                for (int j = 0; j < 8; j++) sum[j] += d * v[j];
            }
        }
        store8_bf16(to, sum, cols - c);
    }
}

DEVICE void add(float* to, float v) { *to += v; }
DEVICE void add(bf16* to, float v) { *to = to_bf16(to_f32(*to) + v); }

// dw [labels, cols] += dy^T hidden. Blocks are (run of 256 columns, label); a lane has eight
// columns, a warp every eighth mention. parts is shared memory for 2,048 floats.
template <class Element>
DEVICE void backward_weight(const bf16* hidden, const float* dy, const int* rows, Element* dw, int count, int cols,
                            i64 hidden_stride, i64 dy_stride, i64 dw_stride, float* parts) {
    const int first = blockIdx.x * 256, c = first + lane_id() * 8, l = blockIdx.y;
    float sum[8] = {};
#pragma unroll 4
    for (int i = warp_id(); i < count; i += 8) {
        const float d = dy[i * dy_stride + l];
        float h[8];
        load8_bf16(h, hidden + rows[i] * hidden_stride + c, cols - c);
#pragma unroll
        for (int j = 0; j < 8; j++) sum[j] += d * h[j];
    }
    store_f32(parts + warp_id() * 256 + lane_id() * 8, sum, 8);
    __syncthreads();
    if (first + (int)threadIdx.x >= cols) return;
    float total = 0;
    for (int warp = 0; warp < 8; warp++) total += parts[warp * 256 + threadIdx.x];
    add(dw + l * dw_stride + first + threadIdx.x, total);
}

// For w a parameter, whose gradient is float32, and for rows of a matrix, whose gradient is not.
extern "C" __global__ void __launch_bounds__(256)
scorehead_backward_weight(const bf16* hidden, const float* dy, const int* rows, float* dw, int count, int cols,
                          i64 hidden_stride, i64 dy_stride, i64 dw_stride) {
    SHARED(float, parts, 8 * 256);
    backward_weight(hidden, dy, rows, dw, count, cols, hidden_stride, dy_stride, dw_stride, parts);
}

extern "C" __global__ void __launch_bounds__(256)
scorehead_backward_weight_bf16(const bf16* hidden, const float* dy, const int* rows, bf16* dw, int count, int cols,
                               i64 hidden_stride, i64 dy_stride, i64 dw_stride) {
    SHARED(float, parts, 8 * 256);
    backward_weight(hidden, dy, rows, dw, count, cols, hidden_stride, dy_stride, dw_stride, parts);
}
