// The short convolution along the paths of a packed prefix tree, then SiLU, on bf16 rows
// (formulas: spec.go). Up to four taps. A thread has four channels and walks rows one after
// the other, their window in registers: it moves by one row where a row follows the one
// before it, and is read anew where a segment begins.
//
// previous [rows] is the row before a row on its path, -1 at the start of a sequence. sibling
// [rows] is the next row with the same previous row, -1 for none. Segments lie in depth-first
// order: the first row that continues row r, if any does, is r + 1.
#include "dialect.cuh"

static constexpr int TAPS = 4;
static constexpr int AHEAD = 4;          // rows under way at once
static constexpr int FORWARD_ROWS = 32;  // of a block
static constexpr int BACKWARD_ROWS = 64;

// The weights of a thread's channels; the last tap is the row's own. Fewer taps leave the first
// ones 0.
struct Weights {
    float tap[TAPS][4];
};

DEVICE Weights load_weights(const bf16* w, i64 stride, int taps, int channel, int channels) {
    Weights v;
#pragma unroll
    for (int j = 0; j < TAPS; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = j - TAPS + taps;
            v.tap[j][i] = k >= 0 && channel + i < channels ? to_f32(w[(channel + i) * stride + k]) : 0.f;
        }
    return v;
}

// What a thread reads: its channels of x, of which `count` are there.
struct Input {
    const bf16* x;
    i64 stride;
    const int* previous;
    int taps, count;

    __device__ __forceinline__ uint2 load(int row) const { return load4_packed(x + row * stride, count); }
};

// The rows that the taps of a row read; 0 before the start of the sequence.
struct Window {
    float row[TAPS][4];

    __device__ __forceinline__ void read(const Input& in, int at) {
        uint2 packed[TAPS];
#pragma unroll
        for (int j = TAPS - 1; j >= 0; j--) {
            const bool there = at >= 0 && j >= TAPS - in.taps;
            packed[j] = there ? in.load(at) : make_uint2(0, 0);
            at = there ? in.previous[at] : -1;
        }
#pragma unroll
        for (int j = 0; j < TAPS; j++) unpack4(row[j], packed[j]);
    }

    __device__ __forceinline__ void move(uint2 next) {
#pragma unroll
        for (int j = 1; j < TAPS; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) row[j - 1][i] = row[j][i];
        unpack4(row[TAPS - 1], next);
    }

    __device__ __forceinline__ float convolve(const Weights& w, int i) const {
        float p = 0;
#pragma unroll
        for (int j = 0; j < TAPS; j++) p += w.tap[j][i] * row[j][i];
        return p;
    }
};

DEVICE void activate(float (&y)[4], const Window& window, const Weights& w) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float p = window.convolve(w, i);
        y[i] = p * sigmoid(p);
    }
}

DEVICE int first_channel() { return (blockIdx.y * blockDim.x + threadIdx.x) * 4; }

// y = silu(convolution of x with w [channels, taps]). Blocks are (FORWARD_ROWS rows, run of
// channels).
extern "C" __global__ void __launch_bounds__(128)
causalconv_forward(const bf16* x, const bf16* w, const int* previous, bf16* y, int rows, int channels, int taps, i64 x_stride, i64 w_stride, i64 y_stride) {
    const int c = first_channel(), first = blockIdx.x * FORWARD_ROWS, last = min(first + FORWARD_ROWS, rows);
    if (c >= channels) return;
    const Weights weights = load_weights(w, w_stride, taps, c, channels);
    const Input in = {x + c, x_stride, previous, taps, channels - c};
    Window window;
    for (int from = first; from < last; from += AHEAD) {
        uint2 next[AHEAD];
        int before[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const int row = min(from + a, last - 1);
            next[a] = in.load(row);
            before[a] = previous[row];
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const int row = from + a;
            if (row >= last) break;
            if (row > first && before[a] == row - 1) window.move(next[a]);
            else window.read(in, row);
            float v[4];
            activate(v, window, weights);
            store4_bf16(y + row * y_stride + c, v, in.count);
        }
    }
}

// The slopes dy silu'(p) of a row.
DEVICE void slopes(float (&dp)[4], const Window& window, const Weights& w, uint2 dy) {
    unpack4(dp, dy);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float p = window.convolve(w, i), s = sigmoid(p);
        dp[i] *= s * (1 + p * (1 - s));
    }
}

// What a thread reads in the backward pass.
struct Gradient {
    Input in;
    const bf16* dy;
    i64 dy_stride;
    const int* sibling;
    int rows;

    __device__ __forceinline__ uint2 load(int row) const { return load4_packed(dy + row * dy_stride, in.count); }
};

DEVICE void add(float (&sum)[4], const float (&w)[4], const float (&dp)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += w[i] * dp[i];
}

// Adds to the gradient of a row what comes from `first`, which is `distance` rows behind it on
// its path, from the siblings that follow it, and from all that continue them.
DEVICE void add_branches(float (&dx)[4], const Gradient& g, const Weights& w, int first, int distance) {
    for (int row = first, at = distance; row >= 0;) {
        Window window;
        float tap[4], dp[4];
#pragma unroll
        for (int i = 0; i < 4; i++) tap[i] = at == 1 ? w.tap[2][i] : at == 2 ? w.tap[1][i] : w.tap[0][i];
        window.read(g.in, row);
        slopes(dp, window, w, g.load(row));
        add(dx, tap, dp);
        if (at < TAPS - 1 && row + 1 < g.rows && g.in.previous[row + 1] == row) {
            row++, at++;
            continue;
        }
        for (; g.sibling[row] < 0 && at > distance; at--) row = g.in.previous[row];
        row = g.sibling[row];
    }
}

// dx = for each row the sum of w dp over the rows whose windows it is in, stored, or added to
// what is there. Its parts of dw, sum of dp x over its rows, a block leaves in partial [blocks,
// TAPS, channels]. dx or partial may be null. Blocks are (BACKWARD_ROWS rows, run of channels).
//
// A thread is TAPS - 1 rows ahead of the row whose gradient it completes, and has the slopes of
// the rows between. Only what other branches add to the last rows of a segment that several
// continue is computed for those rows again.
extern "C" __global__ void __launch_bounds__(128)
causalconv_backward(const bf16* x, const bf16* w, const bf16* dy, bf16* dx, float* partial, const int* previous, const int* sibling,
                    int rows, int channels, int taps, i64 x_stride, i64 w_stride, i64 dy_stride, i64 dx_stride, int accumulate) {
    const int c = first_channel(), first = blockIdx.x * BACKWARD_ROWS, last = min(first + BACKWARD_ROWS, rows);
    if (c >= channels) return;
    const Weights weights = load_weights(w, w_stride, taps, c, channels);
    const Gradient g = {{x + c, x_stride, previous, taps, channels - c}, dy + c, dy_stride, sibling, rows};
    Window window;
    Weights dw = {};
    float dp[TAPS][4] = {}; // of rows row - TAPS + 1 to row
    bool follows[TAPS] = {}; // whether each continues the one before it,
    bool forks[TAPS] = {};   // and whether others do, too
    const int end = last + TAPS - 1;
    for (int from = first; from < end; from += AHEAD) {
        uint2 next[AHEAD], dys[AHEAD];
        int before[AHEAD], beside[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const int row = min(from + a, rows - 1);
            next[a] = g.in.load(row);
            dys[a] = g.load(row);
            before[a] = previous[row], beside[a] = sibling[row];
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const int row = from + a, done = row - TAPS + 1;
            if (row >= end) break;
#pragma unroll
            for (int j = 1; j < TAPS; j++) {
                follows[j - 1] = follows[j], forks[j - 1] = forks[j];
#pragma unroll
                for (int i = 0; i < 4; i++) dp[j - 1][i] = dp[j][i];
            }
            follows[TAPS - 1] = row > first && row < rows && before[a] == row - 1;
            forks[TAPS - 1] = beside[a] >= 0;
            if (row < rows) {
                if (follows[TAPS - 1]) window.move(next[a]);
                else window.read(g.in, row);
                slopes(dp[TAPS - 1], window, weights, dys[a]);
            }
            if (row < last)
#pragma unroll
                for (int j = 0; j < TAPS; j++) add(dw.tap[j], window.row[j], dp[TAPS - 1]);
            if (!dx || done < first) continue;
            float sum[4] = {};
            bf16* to = dx + done * dx_stride + c;
            if (accumulate) unpack4(sum, load4_packed(to, g.in.count));
            add(sum, weights.tap[TAPS - 1], dp[0]);
            int joined = 0; // rows that continue this one without a gap
            bool branches = false;
#pragma unroll
            for (int j = 1; j < TAPS; j++) {
                if (joined < j - 1 || !follows[j]) continue;
                add(sum, weights.tap[TAPS - 1 - j], dp[j]);
                joined = j, branches |= forks[j];
            }
#pragma unroll 1
            for (int j = 1; branches && j <= joined; j++) add_branches(sum, g, weights, sibling[done + j], j);
            store4_bf16(to, sum, g.in.count);
        }
    }
    if (partial)
#pragma unroll
        for (int j = 0; j < TAPS; j++) store_f32(partial + ((i64)blockIdx.x * TAPS + j) * channels + c, dw.tap[j], g.in.count);
}

// dw [channels, taps] += the sum of partial [blocks, TAPS, channels] over blocks. Blocks are
// (run of 32 channels, tap).
extern "C" __global__ void __launch_bounds__(256)
causalconv_weight_gradient(const float* partial, float* dw, int blocks, int channels, int taps, i64 dw_stride) {
    SHARED(float, scratch, 256);
    const int c = blockIdx.x * 32 + lane_id(), j = blockIdx.y;
    const float sum = column_sum(partial + (i64)(j + TAPS - taps) * channels, blocks, (i64)TAPS * channels, c, channels, scratch);
    if (warp_id() == 0 && c < channels) dw[c * dw_stride + j] += sum;
}

// Steps of sequences that go on from a window: step s is rows start[s] to start[s] + len[s] - 1,
// behind window from[s], none where it is -1; it leaves window to[s], which may be the same.
// windows is [windows (taps - 1), channels], oldest row first. Blocks are (step, run of channels).
extern "C" __global__ void __launch_bounds__(128)
causalconv_decode(const bf16* x, const bf16* w, bf16* windows, const int* start, const int* len, const int* from, const int* to, bf16* y,
                  int channels, int taps, i64 x_stride, i64 w_stride, i64 window_stride, i64 y_stride) {
    const int c = first_channel(), step = blockIdx.x, past = taps - 1;
    if (c >= channels) return;
    const Weights weights = load_weights(w, w_stride, taps, c, channels);
    Window window = {};
    // The row that move pushes out last of those read here is the one before the window.
#pragma unroll
    for (int j = 0; j < TAPS - 1; j++) {
        const int k = j - (TAPS - 1) + past; // of the window's rows
        window.move(k >= 0 && from[step] >= 0 ? load4_packed(windows + ((i64)from[step] * past + k) * window_stride + c, channels - c) : make_uint2(0, 0));
    }
    for (int row = start[step]; row < start[step] + len[step]; row++) {
        window.move(load4_packed(x + row * x_stride + c, channels - c));
        float v[4];
        activate(v, window, weights);
        store4_bf16(y + row * y_stride + c, v, channels - c);
    }
#pragma unroll
    for (int j = 1; j < TAPS; j++) {
        const int k = j - TAPS + past;
        if (k >= 0) store4_bf16(windows + ((i64)to[step] * past + k) * window_stride + c, window.row[j], channels - c);
    }
}
