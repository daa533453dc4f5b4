// Look-ups in a table of bf16 vectors (formulas: spec.go). A thread has eight columns.
#include "dialect.cuh"

DEVICE int first_column() { return (blockIdx.y * blockDim.x + threadIdx.x) * 8; }

// y [rows, cols] = the rows of table that ids [rows] names. Blocks are (row, run of columns).
extern "C" __global__ void __launch_bounds__(256)
embedding_forward(const bf16* table, const int* ids, bf16* y, int cols, i64 table_stride, i64 y_stride) {
    const i64 row = blockIdx.x;
    const int c = first_column(), count = cols - c;
    if (count <= 0) return;
    float v[8];
    load8_bf16(v, table + ids[row] * table_stride + c, count);
    store8_bf16(y + row * y_stride + c, v, count);
}

DEVICE int warp_total(int v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

// Sorts rows by their ids, rows of one id in their order: order [rows]. uses [rows] is, where
// an id comes first in that order, how many rows have it, and 0 elsewhere. A warp counts how
// many rows come before its own.
extern "C" __global__ void __launch_bounds__(256) embedding_order(const int* ids, int* order, int* uses, int rows) {
    const int row = blockIdx.x * 8 + warp_id();
    if (row >= rows) return;
    const int id = ids[row];
    int less = 0, same = 0, earlier = 0;
    for (int r = lane_id(); r < rows; r += 32) {
        less += ids[r] < id;
        same += ids[r] == id;
        earlier += ids[r] == id && r < row;
    }
    less = warp_total(less), same = warp_total(same), earlier = warp_total(earlier);
    if (lane_id() != 0) return;
    order[less + earlier] = row;
    uses[less + earlier] = earlier == 0 ? same : 0;
}

// Rows under way at once.
static constexpr int AHEAD = 8;

// dtable [vocabulary, cols] += dy, by ids. Blocks are (place in the order, run of columns):
// the one at an id's first place adds up its rows, so that each element of dtable has one
// writer, and each sum one order.
extern "C" __global__ void __launch_bounds__(128)
embedding_backward(const bf16* dy, const int* ids, const int* order, const int* uses, float* dtable, int cols, i64 dy_stride, i64 dtable_stride) {
    const int from = blockIdx.x, to = from + uses[from];
    const int c = first_column(), count = cols - c;
    if (from == to || count <= 0) return;
    float sum[8] = {};
    for (int k = from; k < to; k += AHEAD) {
        uint4 d[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) d[a] = k + a < to ? load8_packed(dy + order[k + a] * dy_stride + c, count) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            float v[8];
            unpack8(v, d[a]);
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += v[i];
        }
    }
    float* row = dtable + ids[order[from]] * dtable_stride + c;
    float total[8];
    load_f32(total, row, count);
#pragma unroll
    for (int i = 0; i < 8; i++) total[i] += sum[i];
    store_f32(row, total, count);
}
