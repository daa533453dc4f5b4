// RMSNorm of heads in bf16 rows, then their rotation (formulas: spec.go). A lane has eight
// columns of a head, a head a group of `width` lanes. The first lanes have the rotated
// columns, four of the first half and their partners in the second, so that a pair is in one
// thread; the others have eight in a row.
#include "dialect.cuh"

static constexpr int THREADS = 256;

// How a row is laid out; rotary is the number of rotated columns. angles [rows, rotary] holds
// the cosines of a row's angles and then their sines.
struct Heads {
    int heads, dim, head_stride, rotary, width;
    const float* angles;
    float eps, offset; // the gain is offset + w
};

// Where a thread works: columns first and second of its head, so many of each, none where its
// head is not there.
struct Place {
    i64 row;
    int head, first, second, count, second_count;
    bool turned;
};

DEVICE int within(int from, int end) { return max(0, min(4, end - from)); }

DEVICE Place place(const Heads& h, int n, int rows) {
    const int lane = threadIdx.x % h.width, half = h.rotary / 2, turning = (half + 3) / 4;
    Place at = {n / h.heads, n % h.heads, 4 * lane, half + 4 * lane, 0, 0, lane < turning};
    if (!at.turned) at.first = h.rotary + 8 * (lane - turning), at.second = at.first + 4;
    if (n >= rows * h.heads) return at;
    at.count = within(at.first, at.turned ? half : h.dim);
    at.second_count = within(at.second, at.turned ? h.rotary : h.dim);
    return at;
}

// Eight columns: four from the first one on, and four from the second.
struct Columns {
    uint2 first, second;
};

DEVICE Columns load_columns(const bf16* head, const Place& at) {
    return {load4_packed(head + at.first, at.count), load4_packed(head + at.second, at.second_count)};
}

DEVICE void unpack(float (&first)[4], float (&second)[4], const Columns& c) {
    unpack4(first, c.first);
    unpack4(second, c.second);
}

// The cosines and sines of the pairs of a thread: of an angle of 0 where nothing turns.
DEVICE void load_angles(float (&cosine)[4], float (&sine)[4], const Heads& h, const Place& at) {
    const bool turns = at.turned && at.count > 0;
    const float* row = turns ? h.angles + at.row * h.rotary + at.first : h.angles;
    load_f32(cosine, row, turns ? at.count : 0);
    load_f32(sine, row + h.rotary / 2, turns ? at.count : 0);
    if (!at.turned)
#pragma unroll
        for (int i = 0; i < 4; i++) cosine[i] = 1;
}

// y [rows, heads dim] = the heads of x, normalised and turned by the row's angles.
extern "C" __global__ void __launch_bounds__(THREADS)
rotary_forward(const bf16* x, const bf16* __restrict__ w, const float* __restrict__ angles, bf16* y,
               int rows, int heads, int dim, int head_stride, int rotary, int width, i64 x_stride, i64 y_stride, float eps, float offset) {
    const Heads h = {heads, dim, head_stride, rotary, width, angles, eps, offset};
    const Place at = place(h, (blockIdx.x * THREADS + threadIdx.x) / width, rows);
    const Columns xs = load_columns(x + at.row * x_stride + at.head * head_stride, at), ws = load_columns(w, at);
    float cosine[4], sine[4], u[4], v[4], g[4], k[4], squares = 0;
    load_angles(cosine, sine, h, at);
    unpack(u, v, xs);
    unpack(g, k, ws);
#pragma unroll
    for (int i = 0; i < 4; i++) squares += u[i] * u[i] + v[i] * v[i];
    const float inverse = rsqrtf(group_sum(squares, width) / dim + eps);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float a = u[i] * inverse * (offset + g[i]), b = v[i] * inverse * (offset + k[i]);
        u[i] = a * cosine[i] - b * sine[i];
        v[i] = b * cosine[i] + a * sine[i];
    }
    bf16* to = y + at.row * y_stride + at.head * dim;
    store4_bf16(to + at.first, u, at.count);
    store4_bf16(to + at.second, v, at.second_count);
}

DEVICE void give(const float (&d)[4], bf16* to, int count, int accumulate) {
    float sum[4] = {};
    if (accumulate) unpack4(sum, load4_packed(to, count));
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += d[i];
    store4_bf16(to, sum, count);
}

// With du, which is dy turned back, and n = r x: dx = r (du g - n mean(du g n)), stored, or
// added to what is there. Block b takes the heads b, b + blocks, ... by THREADS / width and
// leaves its part of the weight's gradient, sum of du n, in partial [blocks, dim]. dx or
// partial may be null.
extern "C" __global__ void __launch_bounds__(THREADS)
rotary_backward(const bf16* x, const bf16* __restrict__ w, const float* __restrict__ angles, const bf16* dy,
                bf16* dx, float* partial, int rows, int heads, int dim, int head_stride, int rotary, int width,
                i64 x_stride, i64 dy_stride, i64 dx_stride, float eps, float offset, int accumulate) {
    SHARED(float, parts, THREADS * 8);
    const Heads h = {heads, dim, head_stride, rotary, width, angles, eps, offset};
    const int groups = THREADS / width;
    const float share = 1.f / dim;
    float dw[8] = {};
    Place at = place(h, rows * heads, rows);
    for (int head = blockIdx.x * groups; head < rows * heads; head += gridDim.x * groups) {
        at = place(h, head + threadIdx.x / width, rows);
        const Columns xs = load_columns(x + at.row * x_stride + at.head * head_stride, at), ws = load_columns(w, at);
        const Columns dys = load_columns(dy + at.row * dy_stride + at.head * dim, at);
        float cosine[4], sine[4], u[4], v[4], g[4], k[4], d[4], e[4], squares = 0, along = 0;
        load_angles(cosine, sine, h, at);
        unpack(u, v, xs);
        unpack(g, k, ws);
        unpack(d, e, dys);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float a = d[i] * cosine[i] + e[i] * sine[i], b = e[i] * cosine[i] - d[i] * sine[i];
            d[i] = a, e[i] = b, g[i] += offset, k[i] += offset;
            squares += u[i] * u[i] + v[i] * v[i];
            along += a * g[i] * u[i] + b * k[i] * v[i];
        }
        const float inverse = rsqrtf(group_sum(squares, width) * share + eps), mean = group_sum(along, width) * inverse * share;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float n = inverse * u[i], m = inverse * v[i];
            dw[i] += d[i] * n, dw[4 + i] += e[i] * m;
            d[i] = inverse * (d[i] * g[i] - n * mean), e[i] = inverse * (e[i] * k[i] - m * mean);
        }
        if (!dx) continue;
        bf16* to = dx + at.row * dx_stride + at.head * head_stride;
        give(d, to + at.first, at.count, accumulate);
        give(e, to + at.second, at.second_count, accumulate);
    }
    if (!partial) return;
    store_f32(parts + threadIdx.x * 8, dw, 8); // [groups, 8 width], in the lanes' columns
    __syncthreads();
    const int lane = threadIdx.x / 8, i = threadIdx.x % 8; // of the first group: its columns are everyone's
    if (lane >= width) return;
    float sum = 0;
    for (int g = 0; g < groups; g++) sum += parts[g * 8 * width + threadIdx.x];
    const int half = rotary / 2, turning = (half + 3) / 4;
    const int c = lane >= turning ? rotary + 8 * (lane - turning) + i : i < 4 ? 4 * lane + i : half + 4 * lane + i - 4;
    const int end = lane >= turning ? dim : i < 4 ? half : rotary;
    if (c < end) partial[(i64)blockIdx.x * dim + c] = sum;
}

// dw [dim] += the sum of partial [blocks, dim] over blocks. A block has 32 columns.
extern "C" __global__ void __launch_bounds__(256) rotary_weight_gradient(const float* partial, float* dw, int blocks, int dim) {
    SHARED(float, scratch, 256);
    const int c = blockIdx.x * 32 + lane_id();
    const float sum = column_sum(partial, blocks, dim, c, dim, scratch);
    if (warp_id() == 0 && c < dim) dw[c] += sum;
}
