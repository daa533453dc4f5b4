// The gated delta rule over packed prefix trees, forward, backward and in decoding
// (recurrence: spec.go; chunked form and its adjoint: chunk.h, chunk_backward.c).
//
// A chunk is up to 64 consecutive rows of a segment; where it is shorter, its rows end in
// zeros, which change nothing. What does not depend on the state is done for all chunks at
// once (deltarule_prepare, deltarule_gradients). What does goes from chunk to chunk along a
// segment, and from segments to their children by one launch a level of the trees. There a
// warp keeps 16 columns of the state in registers, transposed, [16 columns x keys]: what mma
// leaves in an accumulator is then the left operand of the next product as it lies, so that
// warps share nothing but the tiles they read. A block is a few warps of a value head.
//
// Products are in bf16 with float sums. Forward, what goes into the state is split in two
// bf16 (16 bits in all), the readings are rounded once; backward, all are rounded once. The
// inverse, the decays and the states that segments hand on are float.
// Exponents are differences of sums of two floats and never positive. Keys have at most 128
// columns. Row pitches are multiples of 8 elements; heads may begin anywhere.
#include "dialect.cuh"

static constexpr int CHUNK = 64;
static constexpr int PITCH = CHUNK + 8; // of tiles 64 wide: eight rows of an ldmatrix in different banks
static constexpr int LOWER = CHUNK + 4; // of the float triangles
static constexpr int TILE = CHUNK * CHUNK;

// ---- Tiles in shared memory

// Starts copying a matrix to a tile of 64 rows and `width` columns (a multiple of 8), pitch
// width + 8, with zeros where the matrix has nothing.
DEVICE void load_tile(bf16* tile, int width, const bf16* x, i64 stride, int rows, int cols) {
    const bool aligned = ((u64)x | 2 * (u64)stride) % 16 == 0;
    for (int i = threadIdx.x; i < CHUNK * width / 8; i += blockDim.x) {
        const int r = i / (width / 8), c = i % (width / 8) * 8, count = r < rows ? max(0, min(8, cols - c)) : 0;
        const bf16* from = count ? x + r * stride + c : x;
        bf16* to = tile + r * (width + 8) + c;
        if (aligned)
            cp_async16(to, from, 2 * count);
        else
            for (int e = 0; e < 8; e++) to[e] = e < count ? from[e] : bf16{0};
    }
}

// Fragments of mma from tiles of any pitch. A is the left operand, 16 x 16, in rows of the
// tile, or in its columns (turned); B is the right operand of two products, 16 x 8 each,
// whose columns are rows of the tile, or its columns (turned).
DEVICE void load_a(u32 (&a)[4], const bf16* tile, int pitch, int row, int column) {
    ldmatrix_x4(a, tile + (row + lane_id() % 16) * pitch + column + lane_id() / 16 * 8);
}
DEVICE void load_a_turned(u32 (&a)[4], const bf16* tile, int pitch, int k, int m) {
    ldmatrix_x4_trans(a, tile + (k + lane_id() / 16 * 8 + lane_id() % 8) * pitch + m + lane_id() / 8 % 2 * 8);
}
DEVICE void load_b(u32 (&b)[4], const bf16* tile, int pitch, int n, int k) {
    ldmatrix_x4(b, tile + (n + lane_id() / 16 * 8 + lane_id() % 8) * pitch + k + lane_id() / 8 % 2 * 8);
}
DEVICE void load_b_turned(u32 (&b)[4], const bf16* tile, int pitch, int k, int n) {
    ldmatrix_x4_trans(b, tile + (k + lane_id() / 8 % 2 * 8 + lane_id() % 8) * pitch + n + lane_id() / 16 * 8);
}

DEVICE void multiply(float (&d0)[4], float (&d1)[4], const u32 (&a)[4], const u32 (&b)[4]) {
    mma_m16n8k16(d0, a, b[0], b[1]);
    mma_m16n8k16(d1, a, b[2], b[3]);
}

// Two neighbouring accumulators as a left operand.
DEVICE void round_a(u32 (&a)[4], const float (&d0)[4], const float (&d1)[4]) {
    a[0] = pack_bf16(d0[0], d0[1]);
    a[1] = pack_bf16(d0[2], d0[3]);
    a[2] = pack_bf16(d1[0], d1[1]);
    a[3] = pack_bf16(d1[2], d1[3]);
}

// The same as the sum of two operands.
DEVICE void split_a(u32 (&a)[4], u32 (&rest)[4], const float (&d0)[4], const float (&d1)[4]) {
    round_a(a, d0, d1);
    rest[0] = pack_bf16(d0[0] - low_f32(a[0]), d0[1] - high_f32(a[0]));
    rest[1] = pack_bf16(d0[2] - low_f32(a[1]), d0[3] - high_f32(a[1]));
    rest[2] = pack_bf16(d1[0] - low_f32(a[2]), d1[1] - high_f32(a[2]));
    rest[3] = pack_bf16(d1[2] - low_f32(a[3]), d1[3] - high_f32(a[3]));
}

// A left operand as two accumulators, its columns times factors (of their 16).
DEVICE void scale_a(float (&d0)[4], float (&d1)[4], const u32 (&a)[4], const float* factors) {
    const float* f = factors + lane_id() % 4 * 2;
    d0[0] = low_f32(a[0]) * f[0], d0[1] = high_f32(a[0]) * f[1], d0[2] = low_f32(a[1]) * f[0], d0[3] = high_f32(a[1]) * f[1];
    d1[0] = low_f32(a[2]) * f[8], d1[1] = high_f32(a[2]) * f[9], d1[2] = low_f32(a[3]) * f[8], d1[3] = high_f32(a[3]) * f[9];
}

// Column e (0 to 3) of the eight that a lane holds in an accumulator, and its row of 16.
DEVICE int column_of(int e) { return lane_id() % 4 * 2 + e % 2; }
DEVICE int row_of(int e) { return lane_id() / 4 + e / 2 * 8; }

// ---- Decays of a chunk under a value head

// In shared memory, 64 floats each: the cumulated log decay G as a sum of two; exp(G_i);
// exp(G_n - G_i), n the last row; beta. What is copied to tiles is the last three.
enum { HIGH, LOW, GAMMA, TO_END, BETA, SCALARS };

// All threads, at least 64. g and beta are at the chunk's first row.
DEVICE void fill_scalars(float* scalars, const float* g, i64 g_stride, const float* beta, i64 beta_stride, int n) {
    const int i = threadIdx.x;
    if (i < CHUNK) {
        scalars[GAMMA * CHUNK + i] = i < n ? g[i * g_stride] : 0;
        scalars[BETA * CHUNK + i] = i < n ? beta[i * beta_stride] : 0;
    }
    __syncthreads();
    double total = 0, sum = 0;
    if (i < CHUNK)
        for (int j = 0; j < CHUNK; j++) {
            sum += scalars[GAMMA * CHUNK + j];
            if (j == i) total = sum;
        }
    __syncthreads();
    if (i < CHUNK) {
        const float high = (float)total;
        scalars[HIGH * CHUNK + i] = high;
        scalars[LOW * CHUNK + i] = (float)(total - high);
        scalars[GAMMA * CHUNK + i] = expf(high);
        scalars[TO_END * CHUNK + i] = expf((float)(sum - total));
    }
    __syncthreads();
}

// exp(G_i - G_j)
DEVICE float decay(const float* scalars, int i, int j) {
    return expf((scalars[HIGH * CHUNK + i] - scalars[HIGH * CHUNK + j]) + (scalars[LOW * CHUNK + i] - scalars[LOW * CHUNK + j]));
}

// ---- What all chunks can do at once

// Inverts I + L: L is below the diagonal of `lower`, and `inverse` gets the blocks of 16 on
// and below it; product is room for 16 rows. The blocks on the diagonal come by
// substitution, a column a thread, the others from them, 16 rows at a time. 128 threads.
DEVICE void invert(float* inverse, const float* lower, float* product) {
    const int i = threadIdx.x;
    if (i < CHUNK) {
        const int corner = i / 16 * 16 * (LOWER + 1), column = i % 16;
        float x[16];
#pragma unroll
        for (int r = 0; r < 16; r++) {
            x[r] = r == column ? 1 : 0;
#pragma unroll
            for (int m = 0; m < r; m++) x[r] -= lower[corner + r * LOWER + m] * x[m];
            inverse[corner + r * LOWER + column] = x[r];
        }
    }
    const int r = i / 8, c = i % 8 * 2; // of a block of 16 x 16, two columns a thread
    for (int row = 16; row < CHUNK; row += 16) {
        __syncthreads();
        for (int block = 0; block < row; block += 16) {
            float p0 = 0, p1 = 0;
            for (int m = block; m < row; m++) {
                const float l = lower[(row + r) * LOWER + m];
                p0 += l * inverse[m * LOWER + block + c];
                p1 += l * inverse[m * LOWER + block + c + 1];
            }
            product[r * LOWER + block + c] = p0;
            product[r * LOWER + block + c + 1] = p1;
        }
        __syncthreads();
        for (int block = 0; block < row; block += 16) {
            float p0 = 0, p1 = 0;
            for (int m = 0; m < 16; m++) {
                const float d = inverse[(row + r) * LOWER + row + m];
                p0 -= d * product[m * LOWER + block + c];
                p1 -= d * product[m * LOWER + block + c + 1];
            }
            inverse[(row + r) * LOWER + block + c] = p0;
            inverse[(row + r) * LOWER + block + c + 1] = p1;
        }
    }
    __syncthreads();
}

// Writes the inverse as the sum of two bf16 matrices, one behind the other.
DEVICE void store_inverse(bf16* to, const float* inverse) {
    for (int i = threadIdx.x; i < TILE / 8; i += blockDim.x) {
        const int r = i / 8, c = i % 8 * 8;
        float x[8], high[8];
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] = c / 16 <= r / 16 ? inverse[r * LOWER + c + e] : 0;
        const uint4 rounded = pack8(x);
        unpack8(high, rounded);
#pragma unroll
        for (int e = 0; e < 8; e++) x[e] -= high[e];
        store16(to + r * CHUNK + c, rounded);
        store16(to + TILE + r * CHUNK + c, pack8(x));
    }
}

// The products of a warp's 16 rows, of keys (kk) and queries (qk), with keys up to its own.
template <int KEYS> DEVICE void match(float (&kk)[8][4], float (&qk)[8][4], const bf16* k_tile, const bf16* q_tile) {
    const int row = warp_id() * 16;
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        u32 k[4], q[4], b[4];
        load_a(k, k_tile, KEYS + 8, row, key);
        load_a(q, q_tile, KEYS + 8, row, key);
#pragma unroll
        for (int j = 0; j < 8; j += 2)
            if (8 * j <= row) {
                load_b(b, k_tile, KEYS + 8, 8 * j, key);
                multiply(kk[j], kk[j + 1], k, b);
                multiply(qk[j], qk[j + 1], q, b);
            }
    }
}

struct Prepare {
    const bf16 *q, *k;
    const float *g, *beta;
    const int *chunk_row, *chunk_len;
    bf16* matrices;
    float* decays;
    int key_heads, value_heads, key_dim, adjoint;
    i64 q_stride, k_stride, g_stride, beta_stride;
};

template <int KEYS> DEVICE void prepare(const Prepare& a, u8* shared, float* scalars) {
    const int chunk = blockIdx.x, key_head = blockIdx.y, heads = a.value_heads / a.key_heads;
    const int n = a.chunk_len[chunk];
    const i64 row0 = a.chunk_row[chunk];
    bf16 *const k_tile = (bf16*)shared, *const q_tile = k_tile + CHUNK * (KEYS + 8);
    load_tile(k_tile, KEYS, a.k + row0 * a.k_stride + key_head * a.key_dim, a.k_stride, n, a.key_dim);
    load_tile(q_tile, KEYS, a.q + row0 * a.q_stride + key_head * a.key_dim, a.q_stride, n, a.key_dim);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    float kk[8][4] = {}, qk[8][4] = {};
    match<KEYS>(kk, qk, k_tile, q_tile);
    __syncthreads();

    float *const lower = (float*)shared, *const inverse = lower + CHUNK * LOWER, *const product = inverse + CHUNK * LOWER;
    const float scale = 1 / sqrtf(a.key_dim), *beta = scalars + BETA * CHUNK;
    for (int head = key_head * heads; head < (key_head + 1) * heads; head++) {
        const i64 at = (i64)chunk * a.value_heads + head;
        fill_scalars(scalars, a.g + row0 * a.g_stride + head, a.g_stride, a.beta + row0 * a.beta_stride + head, a.beta_stride, n);
        for (int i = threadIdx.x; i < 3 * CHUNK; i += blockDim.x) a.decays[at * 3 * CHUNK + i] = scalars[GAMMA * CHUNK + i];
        bf16* const reads = a.matrices + (3 * at + 2) * TILE;
#pragma unroll
        for (int t = 0; t < 8; t++)
#pragma unroll
            for (int e = 0; e < 4; e += 2) {
                const int i = warp_id() * 16 + row_of(e), j = 8 * t + column_of(e);
                float p[2];
#pragma unroll
                for (int f = 0; f < 2; f++) {
                    const float d = j + f <= i ? decay(scalars, i, j + f) : 0;
                    lower[i * LOWER + j + f] = j + f < i ? kk[t][e + f] * d * beta[a.adjoint ? i : j + f] : 0;
                    p[f] = scale * qk[t][e + f] * d;
                }
                store4(reads + i * CHUNK + j, pack_bf16(p[0], p[1]));
            }
        __syncthreads();
        invert(inverse, lower, product);
        store_inverse(a.matrices + 3 * at * TILE, inverse);
    }
}

// For each chunk and value head, three matrices [64 x 64] in matrices: the inverse of
// I + L beta (of I + beta L if adjoint is set), what rounding it left, and the readings'
// weights P; and in decays exp(G), exp(G_n - G) and beta, 64 each. L_ij is
// <k_i, k_j> exp(G_i - G_j) below the diagonal. Grid: chunks, key heads; block 128. Dynamic
// shared memory: the tiles of K and Q, 256 (keys + 8) bytes with keys 32 or 128, and at
// least 144 rows of 68 floats.
extern "C" __global__ void __launch_bounds__(128)
deltarule_prepare(const bf16* __restrict__ q, const bf16* __restrict__ k, const float* __restrict__ g, const float* __restrict__ beta,
                  const int* __restrict__ chunk_row, const int* __restrict__ chunk_len, bf16* matrices, float* decays, int key_heads,
                  int value_heads, int key_dim, int adjoint, i64 q_stride, i64 k_stride, i64 g_stride, i64 beta_stride) {
    SHARED(float, scalars, SCALARS * CHUNK);
    DYN_SHARED(u8, shared);
    const Prepare a = {q, k, g, beta, chunk_row, chunk_len, matrices, decays, key_heads, value_heads, key_dim, adjoint, q_stride, k_stride, g_stride, beta_stride};
    if (key_dim <= 32)
        prepare<32>(a, shared, scalars);
    else
        prepare<128>(a, shared, scalars);
}

// ---- States: 16 columns a warp, transposed

template <int KEYS> using State = float[KEYS / 8][4];

// s += state [key_dim, value_dim], from its column on.
template <int KEYS> DEVICE void add_state(State<KEYS>& s, const float* state, int key_dim, int value_dim, int column) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int key = 8 * j + column_of(e), value = column + row_of(e);
            if (key < key_dim && value < value_dim) s[j][e] += state[key * value_dim + value];
        }
}

template <int KEYS> DEVICE void store_state(float* state, const State<KEYS>& s, int key_dim, int value_dim, int column) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int key = 8 * j + column_of(e), value = column + row_of(e);
            if (key < key_dim && value < value_dim) state[key * value_dim + value] = s[j][e];
        }
}

// Rounds s to a border [value_dim, pitch], pitch being key_dim filled up with zeros to a
// multiple of 8.
template <int KEYS> DEVICE void store_border(bf16* border, const State<KEYS>& s, int pitch, int value_dim, int column) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const int key = 8 * j + column_of(e), value = column + row_of(e);
            if (key < pitch && value < value_dim) store4(border + value * pitch + key, pack_bf16(s[j][e], s[j][e + 1]));
        }
}

template <int KEYS> DEVICE void scale_state(State<KEYS>& s, float by) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[j][e] *= by;
}

// s += the operand's 16 rows of tokens, times the tile's rows from `token` on.
template <int KEYS> DEVICE void add_outer(State<KEYS>& s, const u32 (&a)[4], const bf16* tile, int token) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j += 2) {
        u32 b[4];
        load_b_turned(b, tile, KEYS + 8, token, 8 * j);
        multiply(s[j], s[j + 1], a, b);
    }
}

// Values of a chunk's tokens under a warp's columns, transposed.
typedef float Columns[CHUNK / 8][4];

// Writes x, or adds it, to `rows` rows and up to 16 columns at out, through the warp's own
// columns of a tile.
DEVICE void store_columns(bf16* out, i64 stride, const Columns& x, int rows, int cols, int add, bf16* tile, int pitch) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) tile[(8 * j + column_of(e)) * pitch + row_of(e)] = to_bf16(x[j][e]);
    __syncwarp();
    for (int i = lane_id(); i < 2 * rows; i += 32) {
        const int r = i / 2, c = i % 2 * 8, count = cols - c;
        bf16* to = out + r * stride + c;
        float v[8], old[8];
        if (count <= 0) continue;
        unpack8(v, load16(tile + r * pitch + c));
        if (add) {
            load8_bf16(old, to, count);
#pragma unroll
            for (int e = 0; e < 8; e++) v[e] += old[e];
        }
        store8_bf16(to, v, count);
    }
    __syncwarp();
}

// ---- Forward

// What a walk has of a chunk in shared memory: tiles of keys and queries, the prepared
// matrices, a tile of the block's columns of values (or of gradients), and the decays.
struct Tiles {
    bf16 *k, *q, *matrices, *columns;
    float* decays;
};

// Tiles of `width` columns and `count` matrices; begins at a multiple of 16 bytes.
template <int KEYS> DEVICE Tiles tiles_at(u8* p, int stage, int count, int width) {
    const int k = CHUNK * (KEYS + 8), matrices = count * CHUNK * PITCH, columns = CHUNK * (width + 8);
    bf16* x = (bf16*)(p + stage * (2 * (2 * k + matrices + columns) + 3 * CHUNK * 4));
    return {x, x + k, x + 2 * k, x + 2 * k + matrices, (float*)(x + 2 * k + matrices + columns)};
}

struct Heads {
    int key_heads, value_heads, key_dim, value_dim;
};

// Starts copying a chunk: keys and queries of its head, of the prepared matrices those that
// `first`, `step` name, `columns` from `column` on, and the decays.
template <int KEYS>
DEVICE void load_chunk(const Tiles& t, const Heads& h, const bf16* q, const bf16* k, i64 q_stride, i64 k_stride, const bf16* matrices, int count, int step,
                       const float* decays, const bf16* columns, i64 stride, int width, int column, int chunk, i64 row, int n, int head) {
    const int key_column = head / (h.value_heads / h.key_heads) * h.key_dim;
    const i64 at = (i64)chunk * h.value_heads + head;
    load_tile(t.k, KEYS, k + row * k_stride + key_column, k_stride, n, h.key_dim);
    load_tile(t.q, KEYS, q + row * q_stride + key_column, q_stride, n, h.key_dim);
    for (int m = 0; m < count; m++) load_tile(t.matrices + m * CHUNK * PITCH, CHUNK, matrices + (3 * at + m * step) * TILE, CHUNK, CHUNK, CHUNK);
    load_tile(t.columns, width, columns + row * stride + head * h.value_dim + column, stride, n, h.value_dim - column);
    for (int i = threadIdx.x; i < 3 * CHUNK / 4; i += blockDim.x) cp_async16(t.decays + 4 * i, decays + at * 3 * CHUNK + 4 * i);
}

// r = (I + L beta)^-1 (V - gamma U) and the readings; then the state moves to the chunk's
// end. Sets x to beta r and, between, leaves r in `residuals` if that is there.
template <int KEYS>
DEVICE void forward_chunk(State<KEYS>& s, const Tiles& t, int width, int n, int cols, float scale, bf16* out, i64 out_stride, bf16* residuals, i64 residuals_stride) {
    const int pitch = width + 8, own = warp_id() * 16;
    const float *gamma = t.decays, *to_end = t.decays + CHUNK, *beta = t.decays + 2 * CHUNK;
    const bf16 *inverse = t.matrices, *rest = inverse + CHUNK * PITCH, *reads = rest + CHUNK * PITCH;
    Columns u = {}, o = {}, x = {};
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        u32 a[4], low[4], b[4];
        split_a(a, low, s[key / 8], s[key / 8 + 1]);
#pragma unroll
        for (int j = 0; j < CHUNK / 8; j += 2) {
            load_b(b, t.k, KEYS + 8, 8 * j, key);
            multiply(u[j], u[j + 1], a, b);
            multiply(u[j], u[j + 1], low, b);
            load_b(b, t.q, KEYS + 8, 8 * j, key);
            multiply(o[j], o[j + 1], a, b);
        }
    }
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j += 2) {
        u32 v[4], a[4], low[4], b[4];
        load_a_turned(v, t.columns, pitch, 8 * j, own);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            float& y = u[j + e / 4][e % 4];
            y = (e % 2 ? high_f32(v[e / 2]) : low_f32(v[e / 2])) - gamma[8 * (j + e / 4) + column_of(e)] * y;
        }
        split_a(a, low, u[j], u[j + 1]);
#pragma unroll
        for (int i = j; i < CHUNK / 8; i += 2) {
            load_b(b, inverse, PITCH, 8 * i, 8 * j);
            multiply(x[i], x[i + 1], a, b);
            multiply(x[i], x[i + 1], low, b);
            load_b(b, rest, PITCH, 8 * i, 8 * j);
            multiply(x[i], x[i + 1], a, b);
        }
    }
    if (residuals) store_columns(residuals, residuals_stride, x, n, cols, 0, t.columns + own, pitch);
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int token = 8 * j + column_of(e);
            x[j][e] *= beta[token];
            o[j][e] *= scale * gamma[token];
        }
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j += 2) {
        u32 a[4], b[4];
        round_a(a, x[j], x[j + 1]);
#pragma unroll
        for (int i = j; i < CHUNK / 8; i += 2) {
            load_b(b, reads, PITCH, 8 * i, 8 * j);
            multiply(o[i], o[i + 1], a, b);
        }
    }
    store_columns(out, out_stride, o, n, cols, 0, t.columns + own, pitch);
    scale_state<KEYS>(s, gamma[CHUNK - 1]);
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j += 2) {
        u32 a[4], low[4];
#pragma unroll
        for (int e = 0; e < 8; e++) x[j + e / 4][e % 4] *= to_end[8 * (j + e / 4) + column_of(e)];
        split_a(a, low, x[j], x[j + 1]);
        add_outer<KEYS>(s, a, t.k, 8 * j);
        add_outer<KEYS>(s, low, t.k, 8 * j);
    }
}

struct Forward {
    Heads heads;
    const bf16 *q, *k, *v, *matrices;
    const float* decays;
    const int *levels, *first_chunk, *from, *to, *chunk_row, *chunk_len;
    float* states;
    bf16 *out, *residuals;
    int level, stages;
    i64 q_stride, k_stride, v_stride, out_stride, residuals_stride;
};

template <int KEYS> DEVICE void forward(const Forward& a, u8* shared) {
    const int task = a.levels[a.level] + blockIdx.x;
    if (task >= a.levels[a.level + 1]) return;
    const Heads& h = a.heads;
    const int head = blockIdx.y, width = blockDim.x / 2, column = blockIdx.z * width, own = column + warp_id() * 16;
    const int first = a.first_chunk[task], end = a.first_chunk[task + 1], ahead = a.stages - 1;
    const i64 state = (i64)h.key_dim * h.value_dim;
    State<KEYS> s = {};
    if (a.from[task] >= 0) add_state<KEYS>(s, a.states + ((i64)a.from[task] * h.value_heads + head) * state, h.key_dim, h.value_dim, own);
    for (int c = first - ahead; c < end; c++) {
        if (const int next = c + ahead; next < end)
            load_chunk<KEYS>(tiles_at<KEYS>(shared, next % a.stages, 3, width), h, a.q, a.k, a.q_stride, a.k_stride, a.matrices, 3, 1, a.decays, a.v,
                             a.v_stride, width, column, next, a.chunk_row[next], a.chunk_len[next], head);
        cp_async_commit();
        if (c < first) continue;
        if (ahead)
            cp_async_wait<1>();
        else
            cp_async_wait<0>();
        __syncthreads();
        const i64 row = a.chunk_row[c], at = head * h.value_dim + own;
        forward_chunk<KEYS>(s, tiles_at<KEYS>(shared, c % a.stages, 3, width), width, a.chunk_len[c], h.value_dim - own, 1 / sqrtf(h.key_dim),
                            a.out + row * a.out_stride + at, a.out_stride, a.residuals ? a.residuals + row * a.residuals_stride + at : nullptr, a.residuals_stride);
        __syncthreads();
    }
    if (a.to[task] >= 0) store_state<KEYS>(a.states + ((i64)a.to[task] * h.value_heads + head) * state, s, h.key_dim, h.value_dim, own);
}

// The readings of tasks [levels[level], levels[level + 1]), and their residuals r for the
// backward pass unless that is null. Task t takes chunks first_chunk[t] to
// first_chunk[t + 1] - 1; it starts from state from[t], or from zero if that is negative, and
// leaves its own at to[t] unless that is negative. states is [states, value heads, key_dim,
// value_dim]. Grid: at least as many tasks as the level has, value heads, value_dim / (16
// warps) rounded up; block: up to 8 warps, 16 columns each. stages is how many chunks are in
// shared memory, 1 or 2, of 256 (keys + 8) + 27,648 + 128 (16 warps + 8) + 768 bytes each,
// with keys 32 or 128.
extern "C" __global__ void __launch_bounds__(256)
deltarule_forward(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v, const bf16* __restrict__ matrices,
                  const float* __restrict__ decays, const int* __restrict__ levels, const int* __restrict__ first_chunk, const int* __restrict__ from,
                  const int* __restrict__ to, const int* __restrict__ chunk_row, const int* __restrict__ chunk_len, float* states, bf16* out,
                  bf16* residuals, int key_heads, int value_heads, int key_dim, int value_dim, int level, int stages, i64 q_stride, i64 k_stride,
                  i64 v_stride, i64 out_stride, i64 residuals_stride) {
    DYN_SHARED(u8, shared);
    const Forward a = {{key_heads, value_heads, key_dim, value_dim}, q, k, v, matrices, decays, levels, first_chunk, from, to, chunk_row, chunk_len, states,
                       out, residuals, level, stages, q_stride, k_stride, v_stride, out_stride, residuals_stride};
    if (key_dim <= 32)
        forward<32>(a, shared);
    else
        forward<128>(a, shared);
}

// ---- The states at borders, made again from the residuals

struct States {
    Heads heads;
    const bf16 *k, *residuals;
    const float* decays;
    const int *levels, *first_chunk, *from, *to, *chunk_row, *chunk_len, *after;
    float* states;
    bf16* borders;
    int level, pitch;
    i64 k_stride, residuals_stride;
};

// A stage: the tile of keys, that of residuals, the decays.
template <int KEYS> DEVICE Tiles recall_tiles(u8* p, int stage, int width) {
    const int k = CHUNK * (KEYS + 8), columns = CHUNK * (width + 8);
    bf16* x = (bf16*)(p + stage * (2 * (k + columns) + 3 * CHUNK * 4));
    return {x, nullptr, nullptr, x + k, (float*)(x + k + columns)};
}

template <int KEYS> DEVICE void recall_states(const States& a, u8* shared) {
    const int task = a.levels[a.level] + blockIdx.x;
    if (task >= a.levels[a.level + 1]) return;
    const Heads& h = a.heads;
    const int head = blockIdx.y, width = blockDim.x / 2, column = blockIdx.z * width, warp = warp_id() * 16, own = column + warp;
    const int first = a.first_chunk[task], end = a.first_chunk[task + 1] - (a.after[a.first_chunk[task + 1] - 1] < 0);
    const i64 state = (i64)h.key_dim * h.value_dim;
    State<KEYS> s = {};
    if (a.from[task] >= 0) add_state<KEYS>(s, a.states + ((i64)a.from[task] * h.value_heads + head) * state, h.key_dim, h.value_dim, own);
    for (int c = first - 1; c < end; c++) {
        if (const int next = c + 1; next < end) {
            const Tiles t = recall_tiles<KEYS>(shared, next % 2, width);
            const i64 row = a.chunk_row[next], at = (i64)next * h.value_heads + head;
            const int n = a.chunk_len[next];
            load_tile(t.k, KEYS, a.k + row * a.k_stride + head / (h.value_heads / h.key_heads) * h.key_dim, a.k_stride, n, h.key_dim);
            load_tile(t.columns, width, a.residuals + row * a.residuals_stride + head * h.value_dim + column, a.residuals_stride, n, h.value_dim - column);
            for (int i = threadIdx.x; i < 3 * CHUNK / 4; i += blockDim.x) cp_async16(t.decays + 4 * i, a.decays + at * 3 * CHUNK + 4 * i);
        }
        cp_async_commit();
        if (c < first) continue;
        cp_async_wait<1>();
        __syncthreads();
        const Tiles t = recall_tiles<KEYS>(shared, c % 2, width);
        const float *gamma = t.decays, *to_end = t.decays + CHUNK, *beta = t.decays + 2 * CHUNK;
        scale_state<KEYS>(s, gamma[CHUNK - 1]);
#pragma unroll
        for (int j = 0; j < CHUNK; j += 16) {
            u32 r[4], a[4], low[4];
            float x0[4], x1[4];
            load_a_turned(r, t.columns, width + 8, j, warp);
            scale_a(x0, x1, r, beta + j);
#pragma unroll
            for (int e = 0; e < 4; e++) x0[e] *= to_end[j + column_of(e)], x1[e] *= to_end[j + 8 + column_of(e)];
            split_a(a, low, x0, x1);
            add_outer<KEYS>(s, a, t.k, j);
            add_outer<KEYS>(s, low, t.k, j);
        }
        store_border<KEYS>(a.borders + ((i64)a.after[c] * h.value_heads + head) * h.value_dim * a.pitch, s, a.pitch, h.value_dim, own);
        __syncthreads();
    }
    if (a.to[task] >= 0) store_state<KEYS>(a.states + ((i64)a.to[task] * h.value_heads + head) * state, s, h.key_dim, h.value_dim, own);
}

// The states at the borders, borders [borders, value heads, value_dim, pitch] with pitch as
// store_border has it, from what deltarule_forward left in residuals; after[c] is the border
// at chunk c's end, -1 where nothing follows. The other parameters and the launch are those
// of deltarule_forward, but for dynamic shared memory: 2 (128 (keys + 8 + 16 warps + 8) +
// 768) bytes.
extern "C" __global__ void __launch_bounds__(256)
deltarule_states(const bf16* __restrict__ k, const bf16* __restrict__ residuals, const float* __restrict__ decays, const int* __restrict__ levels,
                 const int* __restrict__ first_chunk, const int* __restrict__ from, const int* __restrict__ to, const int* __restrict__ chunk_row,
                 const int* __restrict__ chunk_len, const int* __restrict__ after, float* states, bf16* borders, int key_heads, int value_heads, int key_dim,
                 int value_dim, int level, int pitch, i64 k_stride, i64 residuals_stride) {
    DYN_SHARED(u8, shared);
    const States a = {{key_heads, value_heads, key_dim, value_dim}, k, residuals, decays, levels, first_chunk, from, to, chunk_row, chunk_len, after, states,
                      borders, level, pitch, k_stride, residuals_stride};
    if (key_dim <= 32)
        recall_states<32>(a, shared);
    else
        recall_states<128>(a, shared);
}

// ---- Backward from chunk to chunk: the gradient D of the state

// From D at the chunk's end to that at its start; xbar is dL/d(I + beta L)x of the writes x,
// (I + beta L)^-T dx.
template <int KEYS>
DEVICE void backward_chunk(State<KEYS>& s, Columns& xbar, const Tiles& t, int width, bool unused, float scale) {
    const int pitch = width + 8, own = warp_id() * 16;
    const float *gamma = t.decays, *to_end = t.decays + CHUNK, *beta = t.decays + 2 * CHUNK;
    const bf16 *inverse = t.matrices, *reads = inverse + CHUNK * PITCH;
    Columns dx = {};
    if (!unused) {
#pragma unroll
        for (int key = 0; key < KEYS; key += 16) {
            u32 a[4], b[4];
            round_a(a, s[key / 8], s[key / 8 + 1]);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j += 2) {
                load_b(b, t.k, KEYS + 8, 8 * j, key);
                multiply(dx[j], dx[j + 1], a, b);
            }
        }
#pragma unroll
        for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) dx[j][e] *= to_end[8 * j + column_of(e)];
        scale_state<KEYS>(s, gamma[CHUNK - 1]);
    }
#pragma unroll
    for (int i = 0; i < CHUNK / 8; i += 2) {
        u32 dout[4], b[4];
        load_a_turned(dout, t.columns, pitch, 8 * i, own);
#pragma unroll
        for (int j = 0; j <= i; j += 2) {
            load_b_turned(b, reads, PITCH, 8 * i, 8 * j);
            multiply(dx[j], dx[j + 1], dout, b);
        }
    }
    __syncwarp(); // here and below: loads that are moved up far would take more registers than there are
#pragma unroll
    for (int i = 0; i < CHUNK / 8; i += 2) {
        u32 a[4], b[4];
        round_a(a, dx[i], dx[i + 1]);
#pragma unroll
        for (int j = 0; j <= i; j += 2) {
            load_b_turned(b, inverse, PITCH, 8 * i, 8 * j);
            multiply(xbar[j], xbar[j + 1], a, b);
        }
    }
#pragma unroll
    for (int i = 0; i < CHUNK / 8; i += 2) {
        u32 a[4];
        float d[2][4];
        __syncwarp();
        load_a_turned(a, t.columns, pitch, 8 * i, own);
        scale_a(d[0], d[1], a, gamma + 8 * i);
#pragma unroll
        for (int e = 0; e < 8; e++) d[e / 4][e % 4] *= scale;
        round_a(a, d[0], d[1]);
        add_outer<KEYS>(s, a, t.q, 8 * i);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int token = 8 * (i + e / 4) + column_of(e);
            d[e / 4][e % 4] = -gamma[token] * beta[token] * xbar[i + e / 4][e % 4];
        }
        round_a(a, d[0], d[1]);
        add_outer<KEYS>(s, a, t.k, 8 * i);
    }
}

// The same for a state that lies in memory as a warp has it.
template <int KEYS> DEVICE void add_kept(State<KEYS>& s, const float* kept) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[j][e] += kept[(4 * j + e) * 32 + lane_id()];
}

template <int KEYS> DEVICE void keep(float* kept, const State<KEYS>& s) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) kept[(4 * j + e) * 32 + lane_id()] = s[j][e];
}

struct Backward {
    Heads heads;
    const bf16 *q, *k, *dout, *matrices;
    const float* decays;
    const int *levels, *runs, *child_runs, *first_chunk, *chunk_row, *chunk_len, *after;
    float* gradients;
    bf16 *borders, *solved, *dv;
    int level, roots, pitch, stages, add;
    i64 q_stride, k_stride, dout_stride, solved_stride, dv_stride;
};

template <int KEYS> DEVICE void backward_task(const Backward& a, u8* shared, State<KEYS>& s, int task) {
    const Heads& h = a.heads;
    const int head = blockIdx.y, width = blockDim.x / 2, column = blockIdx.z * width, warp = warp_id() * 16, own = column + warp;
    const int first = a.first_chunk[task], end = a.first_chunk[task + 1], ahead = a.stages - 1;
    for (int c = end - 1 + ahead; c >= first; c--) {
        if (const int next = c - ahead; next >= first)
            load_chunk<KEYS>(tiles_at<KEYS>(shared, next % a.stages, 2, width), h, a.q, a.k, a.q_stride, a.k_stride, a.matrices, 2, 2, a.decays, a.dout,
                             a.dout_stride, width, column, next, a.chunk_row[next], a.chunk_len[next], head);
        cp_async_commit();
        if (c >= end) continue;
        if (ahead)
            cp_async_wait<1>();
        else
            cp_async_wait<0>();
        __syncthreads();
        const Tiles t = tiles_at<KEYS>(shared, c % a.stages, 2, width);
        const int after = a.after[c], n = a.chunk_len[c], at = head * h.value_dim + own;
        const i64 row = a.chunk_row[c];
        if (after >= 0) store_border<KEYS>(a.borders + ((i64)after * h.value_heads + head) * h.value_dim * a.pitch, s, a.pitch, h.value_dim, own);
        Columns x = {};
        backward_chunk<KEYS>(s, x, t, width, after < 0, 1 / sqrtf(h.key_dim));
        store_columns(a.solved + row * a.solved_stride + at, a.solved_stride, x, n, h.value_dim - own, 0, t.columns + warp, width + 8);
        if (a.dv) {
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) x[j][e] *= t.decays[2 * CHUNK + 8 * j + column_of(e)];
            store_columns(a.dv + row * a.dv_stride + at, a.dv_stride, x, n, h.value_dim - own, a.add, t.columns + warp, width + 8);
        }
        __syncthreads();
    }
}

template <int KEYS> DEVICE void backward(const Backward& a, u8* shared) {
    const int run = a.levels[a.level] + blockIdx.x;
    if (run >= a.levels[a.level + 1]) return;
    const int own = blockIdx.z * (blockDim.x / 2) + warp_id() * 16, groups = (a.heads.value_dim + 15) / 16;
    const bool used = own < a.heads.value_dim;
    const i64 step = (i64)a.heads.value_heads * groups * 16 * KEYS;
    float* const sums = a.gradients + ((i64)blockIdx.y * groups + own / 16) * 16 * KEYS;
    for (int task = a.runs[run]; task < a.runs[run + 1]; task++) {
        State<KEYS> s = {};
        for (int child = a.child_runs[task]; used && child < a.child_runs[task + 1]; child++) add_kept<KEYS>(s, sums + (child - a.roots) * step);
        backward_task<KEYS>(a, shared, s, task);
        if (run < a.roots || !used) continue;
        if (task > a.runs[run]) add_kept<KEYS>(s, sums + (run - a.roots) * step);
        keep<KEYS>(sums + (run - a.roots) * step, s);
    }
}

// The gradient D of the states, from the last chunks to the first: leaves it at the borders,
// laid out as deltarule_states has them, and xbar [rows, value heads * value_dim] for
// deltarule_gradients; dv gets its gradient, added if add is set, unless it is null. matrices
// are deltarule_prepare's with adjoint set. Runs [levels[level], levels[level + 1]) are
// taken, the deepest level first; run r takes tasks runs[r] to runs[r + 1] - 1, siblings, one
// after the other, and leaves the sum of the gradients of the state that they start from in
// gradients[r - roots], 16 keys floats (keys 32 or 128) for each value head and 16 value
// columns; the first `roots` runs are of roots. Runs child_runs[t] to child_runs[t + 1] - 1 are those of task t's children.
// Otherwise as deltarule_forward; a stage takes 9,216 bytes less.
extern "C" __global__ void __launch_bounds__(256)
deltarule_backward(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ dout, const bf16* __restrict__ matrices,
                   const float* __restrict__ decays, const int* __restrict__ levels, const int* __restrict__ runs, const int* __restrict__ child_runs,
                   const int* __restrict__ first_chunk, const int* __restrict__ chunk_row, const int* __restrict__ chunk_len, const int* __restrict__ after,
                   float* gradients, bf16* borders, bf16* solved, bf16* dv, int key_heads, int value_heads, int key_dim, int value_dim, int level, int roots,
                   int pitch, int stages, int add, i64 q_stride, i64 k_stride, i64 dout_stride, i64 solved_stride, i64 dv_stride) {
    DYN_SHARED(u8, shared);
    const Backward a = {{key_heads, value_heads, key_dim, value_dim}, q, k, dout, matrices, decays, levels, runs, child_runs, first_chunk, chunk_row, chunk_len,
                        after, gradients, borders, solved, dv, level, roots, pitch, stages, add, q_stride, k_stride, dout_stride, solved_stride, dv_stride};
    if (key_dim <= 32)
        backward<32>(a, shared);
    else
        backward<128>(a, shared);
}

// ---- Backward for all chunks at once: gradients of q, k, g and beta

// Of a gradient's row: writes two neighbours, or adds them; the second may not be there.
DEVICE void give2(bf16* to, float x, float y, bool both, int add) {
    if (add) x += to_f32(to[0]), y += both ? to_f32(to[1]) : 0;
    if (both && (u64)to % 4 == 0) {
        store4(to, pack_bf16(x, y));
        return;
    }
    to[0] = to_bf16(x);
    if (both) to[1] = to_bf16(y);
}

struct Gradients {
    Heads heads;
    const bf16 *q, *k;
    const float *g, *beta;
    const bf16 *dout, *residuals, *solved, *states, *dstates;
    const int *chunk_row, *chunk_len, *before, *after;
    bf16 *dq, *dk;
    float *dg, *dbeta;
    int pitch, add_q, add_k, add_g, add_beta;
    i64 q_stride, k_stride, g_stride, beta_stride, dout_stride, residuals_stride, solved_stride, dq_stride, dk_stride, dg_stride, dbeta_stride;
};

static constexpr int Z_PITCH = CHUNK + 1; // of a float tile that is read along rows and columns

// Shared memory of a block: tiles of keys and queries; then either panels of 64 value columns
// (residuals, xbar and dO; the states at the chunk's start and, as gradients, its end), or
// the gradients of <q_i, k_j> and <k_i, k_j> and the tile Z.
template <int KEYS> struct Panels {
    bf16 *k, *q, *residuals, *solved, *dout, *state, *dstate;
    bf16 *dqk, *dkk;
    float* z;
};

template <int KEYS> DEVICE Panels<KEYS> panels(u8* shared) {
    constexpr int keys = CHUNK * (KEYS + 8), tile = CHUNK * PITCH;
    bf16 *x = (bf16*)shared, *p = x + 2 * keys;
    return {x, x + keys, p, p + tile, p + 2 * tile, p + 3 * tile, p + 3 * tile + keys, p, p + tile, (float*)(p + 2 * tile)};
}

// A warp takes 16 rows of the chunk and half of the keys. These are a head's sums over the value
// columns: <dO_i, r_j> and <xbar_i, r_j> of 32 columns, and parts of what the log decays of the
// thread's two rows get, <dQe_i, q_i> + <dKu_i, k_i> and <dKe_i, k_i>.
struct Sums {
    float dp[4][4], dt[4][4];
    float start[2], end[2];
    float kept; // the thread's part of <D, S>
};

template <int KEYS> DEVICE void add_pairs(Sums& s, const Panels<KEYS>& p) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
#pragma unroll 1
    for (int v = 0; v < CHUNK; v += 16) {
        u32 dout[4], solved[4], b[4];
        load_a(dout, p.dout, PITCH, row, v);
        load_a(solved, p.solved, PITCH, row, v);
#pragma unroll
        for (int j = 0; j < 4; j += 2)
            if (half * 32 + 8 * j <= row) {
                load_b(b, p.residuals, PITCH, half * 32 + 8 * j, v);
                multiply(s.dp[j], s.dp[j + 1], dout, b);
                multiply(s.dt[j], s.dt[j + 1], solved, b);
            }
    }
}

// What a panel of the state at the chunk's start gives: dQe = dO S^T, dKu = -xbar S^T, each by
// its row's factor. A panel's products go into dq and dk at once: with those of all panels kept
// until the end, registers would not suffice.
template <int KEYS>
DEVICE void add_start(float (&dq)[KEYS / 16][4], float (&dk)[KEYS / 16][4], Sums& s, const Panels<KEYS>& p, const float* scalars, float scale) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
    float x[KEYS / 16][4] = {}, y[KEYS / 16][4] = {};
#pragma unroll 1
    for (int v = 0; v < CHUNK; v += 16) {
        u32 dout[4], solved[4], b[4];
        load_a(dout, p.dout, PITCH, row, v);
        load_a(solved, p.solved, PITCH, row, v);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j += 2) {
            load_b_turned(b, p.state, KEYS + 8, v, half * KEYS / 2 + 8 * j);
            multiply(x[j], x[j + 1], dout, b);
            multiply(y[j], y[j + 1], solved, b);
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
        const int i = row + row_of(e);
        const float gamma = scalars[GAMMA * CHUNK + i], beta = scalars[BETA * CHUNK + i];
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            const int at = i * (KEYS + 8) + half * KEYS / 2 + 8 * j + column_of(0);
            const u32 q = load4(p.q + at), k = load4(p.k + at);
#pragma unroll
            for (int f = 0; f < 2; f++) {
                const float dqe = scale * gamma * x[j][e + f], dku = -gamma * beta * y[j][e + f];
                s.start[e / 2] += dqe * (f ? high_f32(q) : low_f32(q)) + dku * (f ? high_f32(k) : low_f32(k));
                dq[j][e + f] += dqe;
                dk[j][e + f] += dku;
            }
        }
    }
}

// The same of the gradient of the state at its end: dKe = r D^T.
template <int KEYS> DEVICE void add_end(float (&dk)[KEYS / 16][4], Sums& s, const Panels<KEYS>& p, const float* scalars) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
    float x[KEYS / 16][4] = {};
#pragma unroll 1
    for (int v = 0; v < CHUNK; v += 16) {
        u32 r[4], b[4];
        load_a(r, p.residuals, PITCH, row, v);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j += 2) {
            load_b_turned(b, p.dstate, KEYS + 8, v, half * KEYS / 2 + 8 * j);
            multiply(x[j], x[j + 1], r, b);
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
        const int i = row + row_of(e);
        const float by = scalars[TO_END * CHUNK + i] * scalars[BETA * CHUNK + i];
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            const u32 k = load4(p.k + i * (KEYS + 8) + half * KEYS / 2 + 8 * j + column_of(0));
#pragma unroll
            for (int f = 0; f < 2; f++) {
                const float dke = by * x[j][e + f];
                s.end[e / 2] += dke * (f ? high_f32(k) : low_f32(k));
                dk[j][e + f] += dke;
            }
        }
    }
}

template <int KEYS> DEVICE void add_kept(Sums& s, const Panels<KEYS>& p) {
    for (int i = threadIdx.x; i < CHUNK * KEYS / 8; i += blockDim.x) {
        float x[8], y[8];
        const int at = i / (KEYS / 8) * (KEYS + 8) + i % (KEYS / 8) * 8;
        unpack8(x, load16(p.state + at));
        unpack8(y, load16(p.dstate + at));
#pragma unroll
        for (int e = 0; e < 8; e++) s.kept += x[e] * y[e];
    }
}

// Leaves in `rows` what log decays get, [start, end][2 halves][64].
DEVICE void give_sums(const Sums& s, float* rows) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float sums[2] = {s.start[e], s.end[e]};
#pragma unroll
        for (int f = 0; f < 2; f++) {
            sums[f] += __shfl_xor_sync(ALL_LANES, sums[f], 1);
            sums[f] += __shfl_xor_sync(ALL_LANES, sums[f], 2);
            if (lane_id() % 4 == 0) rows[(2 * f + half) * CHUNK + row + row_of(2 * e)] = sums[f];
        }
    }
}

// From <dO_i, r_j> and <xbar_i, r_j>: the gradients of <q_i, k_j> and <k_i, k_j>, Z_ij, what
// the decay from j to i gets, and in `diagonal` <xbar_i, r_i>.
template <int KEYS> DEVICE void fill_matrices(const Sums& s, const Panels<KEYS>& p, const float* scalars, float scale, float* diagonal) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
    const float* beta = scalars + BETA * CHUNK;
    float kk[4][4] = {}, qk[4][4] = {};
#pragma unroll
    for (int key = 0; key < KEYS; key += 16) {
        u32 k[4], q[4], b[4];
        load_a(k, p.k, KEYS + 8, row, key);
        load_a(q, p.q, KEYS + 8, row, key);
#pragma unroll
        for (int j = 0; j < 4; j += 2)
            if (half * 32 + 8 * j <= row) {
                load_b(b, p.k, KEYS + 8, half * 32 + 8 * j, key);
                multiply(kk[j], kk[j + 1], k, b);
                multiply(qk[j], qk[j + 1], q, b);
            }
    }
#pragma unroll
    for (int t = 0; t < 4; t++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const int i = row + row_of(e), j = half * 32 + 8 * t + column_of(e);
            float dqk[2], dkk[2];
#pragma unroll
            for (int f = 0; f < 2; f++) {
                const float d = j + f <= i ? beta[j + f] * decay(scalars, i, j + f) : 0;
                dqk[f] = scale * d * s.dp[t][e + f];
                dkk[f] = j + f < i ? -beta[i] * d * s.dt[t][e + f] : 0;
                p.z[i * Z_PITCH + j + f] = j + f < i ? dkk[f] * kk[t][e + f] + dqk[f] * qk[t][e + f] : 0;
                if (j + f == i) diagonal[i] = s.dt[t][e + f];
            }
            store4(p.dqk + i * PITCH + j, pack_bf16(dqk[0], dqk[1]));
            store4(p.dkk + i * PITCH + j, pack_bf16(dkk[0], dkk[1]));
        }
}

// dQ += dqk K, dK += dqk^T Q + (dkk + dkk^T) K.
template <int KEYS> DEVICE void add_products(float (&dq)[KEYS / 16][4], float (&dk)[KEYS / 16][4], const Panels<KEYS>& p) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
#pragma unroll
    for (int i = 0; i < CHUNK; i += 16) {
        u32 dqk[4], dkk[4], dqk_turned[4], dkk_turned[4], b[4];
        const bool before = i <= row, behind = i >= row;
        if (before) {
            load_a(dqk, p.dqk, PITCH, row, i);
            load_a(dkk, p.dkk, PITCH, row, i);
        }
        if (behind) {
            load_a_turned(dqk_turned, p.dqk, PITCH, i, row);
            load_a_turned(dkk_turned, p.dkk, PITCH, i, row);
        }
#pragma unroll
        for (int j = 0; j < KEYS / 16; j += 2) {
            const int key = half * KEYS / 2 + 8 * j;
            load_b_turned(b, p.k, KEYS + 8, i, key);
            if (before) {
                multiply(dq[j], dq[j + 1], dqk, b);
                multiply(dk[j], dk[j + 1], dkk, b);
            }
            if (behind) {
                multiply(dk[j], dk[j + 1], dkk_turned, b);
                load_b_turned(b, p.q, KEYS + 8, i, key);
                multiply(dk[j], dk[j + 1], dqk_turned, b);
            }
        }
    }
}

// The gradient of the log decay of row t is the sum of all that spans it: of what comes from
// the state before the chunk for rows from t on, of what rows before t leave in the state at
// its end, of what passes from one to the other, and of Z_ij with j < t <= i. Each has
// exp(g_t) as a factor, so nothing cancels, however strong the decay: sums over rows minus
// sums over columns would.
DEVICE void give_decays(float* dg, i64 stride, int n, int add, float* z, const float* rows, float kept) {
    const int t = threadIdx.x;
    if (t < CHUNK) {
        float sum = 0;
        for (int i = CHUNK - 1; i > t; i--) z[i * Z_PITCH + t] = sum += z[i * Z_PITCH + t];
    }
    __syncthreads();
    if (t < n) {
        float sum = kept;
        for (int j = 0; j < t; j++) sum += z[t * Z_PITCH + j] + (rows[2 * CHUNK + j] + rows[3 * CHUNK + j]);
        for (int i = n - 1; i >= t; i--) sum += rows[i] + rows[CHUNK + i];
        dg[t * stride] = (add ? dg[t * stride] : 0) + sum;
    }
}

template <int KEYS> DEVICE void give_rows(bf16* to, i64 stride, const float (&x)[KEYS / 16][4], int n, int key_dim, int add) {
    const int row = warp_id() % 4 * 16, half = warp_id() / 4;
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const int i = row + row_of(e), key = half * KEYS / 2 + 8 * j + column_of(e);
            if (i < n && key < key_dim) give2(to + i * stride + key, x[j][e], x[j][e + 1], key + 1 < key_dim, add);
        }
}

// Shared floats: the scalars, then
enum { ROWS = SCALARS * CHUNK, DIAGONAL = ROWS + 4 * CHUNK, BLOCK_SUM = DIAGONAL + CHUNK, FLOATS = BLOCK_SUM + 32 };

template <int KEYS> DEVICE void gradients(const Gradients& a, u8* shared, float* floats) {
    const Heads& h = a.heads;
    const int chunk = blockIdx.x, key_head = blockIdx.y, heads = h.value_heads / h.key_heads;
    const int n = a.chunk_len[chunk], before = a.before[chunk], after = a.after[chunk];
    const i64 row = a.chunk_row[chunk];
    const float scale = 1 / sqrtf(h.key_dim);
    const Panels<KEYS> p = panels<KEYS>(shared);
    load_tile(p.k, KEYS, a.k + row * a.k_stride + key_head * h.key_dim, a.k_stride, n, h.key_dim);
    load_tile(p.q, KEYS, a.q + row * a.q_stride + key_head * h.key_dim, a.q_stride, n, h.key_dim);
    float dq[KEYS / 16][4] = {}, dk[KEYS / 16][4] = {};
    for (int head = key_head * heads; head < (key_head + 1) * heads; head++) {
        fill_scalars(floats, a.g + row * a.g_stride + head, a.g_stride, a.beta + row * a.beta_stride + head, a.beta_stride, n);
        Sums s = {};
        for (int v = 0; v < h.value_dim; v += CHUNK) {
            const int cols = h.value_dim - v, column = head * h.value_dim + v;
            const i64 state = ((i64)head * h.value_dim + v) * a.pitch, step = (i64)h.value_heads * h.value_dim * a.pitch;
            load_tile(p.residuals, CHUNK, a.residuals + row * a.residuals_stride + column, a.residuals_stride, n, cols);
            load_tile(p.solved, CHUNK, a.solved + row * a.solved_stride + column, a.solved_stride, n, cols);
            load_tile(p.dout, CHUNK, a.dout + row * a.dout_stride + column, a.dout_stride, n, cols);
            if (before >= 0) load_tile(p.state, KEYS, a.states + before * step + state, a.pitch, cols, a.pitch);
            if (after >= 0) load_tile(p.dstate, KEYS, a.dstates + after * step + state, a.pitch, cols, a.pitch);
            cp_async_commit();
            cp_async_wait<0>();
            __syncthreads();
            add_pairs<KEYS>(s, p);
            if (before >= 0) add_start<KEYS>(dq, dk, s, p, floats, scale);
            if (after >= 0) add_end<KEYS>(dk, s, p, floats);
            if (before >= 0 && after >= 0) add_kept<KEYS>(s, p);
            __syncthreads();
        }
        float kept[1] = {s.kept};
        block_sum(kept, floats + BLOCK_SUM);
        give_sums(s, floats + ROWS);
        fill_matrices<KEYS>(s, p, floats, scale, floats + DIAGONAL);
        __syncthreads();
        add_products<KEYS>(dq, dk, p);
        if (a.dbeta && threadIdx.x < n) {
            float* to = a.dbeta + (row + threadIdx.x) * a.dbeta_stride + head;
            *to = (a.add_beta ? *to : 0) + floats[DIAGONAL + threadIdx.x];
        }
        if (a.dg) give_decays(a.dg + row * a.dg_stride + head, a.dg_stride, n, a.add_g, p.z, floats + ROWS, floats[GAMMA * CHUNK + CHUNK - 1] * kept[0]);
        __syncthreads();
    }
    if (a.dq) give_rows<KEYS>(a.dq + row * a.dq_stride + key_head * h.key_dim, a.dq_stride, dq, n, h.key_dim, a.add_q);
    if (a.dk) give_rows<KEYS>(a.dk + row * a.dk_stride + key_head * h.key_dim, a.dk_stride, dk, n, h.key_dim, a.add_k);
}

// The gradients of q, k, g and beta, each added where its add is set, unless null: from the
// states at the borders, of deltarule_states, their gradients and xbar (solved), of
// deltarule_backward, and the residuals. before[c] and after[c] are the borders at chunk c's
// start and end, -1 for none. Grid: chunks, key heads; block 256. Dynamic shared memory: 512
// (keys + 8) + 27,648 bytes, with keys 32 or 128, and at least 256 (keys + 8) + 35,072.
extern "C" __global__ void __launch_bounds__(256)
deltarule_gradients(const bf16* __restrict__ q, const bf16* __restrict__ k, const float* __restrict__ g, const float* __restrict__ beta,
                    const bf16* __restrict__ dout, const bf16* __restrict__ residuals, const bf16* __restrict__ solved, const bf16* __restrict__ states,
                    const bf16* __restrict__ dstates, const int* __restrict__ chunk_row, const int* __restrict__ chunk_len, const int* __restrict__ before,
                    const int* __restrict__ after, bf16* dq, bf16* dk, float* dg, float* dbeta, int key_heads, int value_heads, int key_dim, int value_dim,
                    int pitch, int add_q, int add_k, int add_g, int add_beta, i64 q_stride, i64 k_stride, i64 g_stride, i64 beta_stride, i64 dout_stride,
                    i64 residuals_stride, i64 solved_stride, i64 dq_stride, i64 dk_stride, i64 dg_stride, i64 dbeta_stride) {
    SHARED(float, floats, FLOATS);
    DYN_SHARED(u8, shared);
    const Gradients a = {{key_heads, value_heads, key_dim, value_dim}, q, k, g, beta, dout, residuals, solved, states, dstates, chunk_row, chunk_len, before,
                         after, dq, dk, dg, dbeta, pitch, add_q, add_k, add_g, add_beta, q_stride, k_stride, g_stride, beta_stride, dout_stride,
                         residuals_stride, solved_stride, dq_stride, dk_stride, dg_stride, dbeta_stride};
    if (key_dim <= 32)
        gradients<32>(a, shared, floats);
    else
        gradients<128>(a, shared, floats);
}

// ---- Decoding: a row that joins an open chunk (decode.go)

struct Step {
    Heads heads;
    const bf16 *q, *k, *v;
    const float *g, *beta;
    const int *steps, *start, *from, *to, *open, *filled;
    float *states, *writes, *decays;
    bf16 *keys, *out;
    i64 q_stride, k_stride, v_stride, g_stride, beta_stride, out_stride;
};

static constexpr int STEP_COLUMNS = 128; // of values at a time: four a lane, and a part of the sums in each of 8 warps

// Shared floats: the scalars, whose GAMMA and TO_END are those of the new row; the key and the
// query; parts of their products with the chunk's keys, and what the chunk's writes count in
// the new row's residual and reading; parts of sums over columns.
enum { KEY = SCALARS * CHUNK, QUERY = KEY + 128, PARTS = QUERY + 128, IN_RESIDUAL = PARTS + 8 * CHUNK, IN_READING = IN_RESIDUAL + CHUNK,
       COLUMN_SUMS = IN_READING + CHUNK, STEP_FLOATS = COLUMN_SUMS + 16 * STEP_COLUMNS };

// Fills in all but the last. `filled` is the new row's number in the chunk.
DEVICE void match_step(const Step& a, float* floats, bf16* keys, float* decays, i64 row, int head, int filled) {
    const Heads& h = a.heads;
    const int i = threadIdx.x, key_head = head / (h.value_heads / h.key_heads), first = head % (h.value_heads / h.key_heads) == 0;
    if (i < h.key_dim) {
        const bf16 key = a.k[row * a.k_stride + key_head * h.key_dim + i];
        floats[KEY + i] = to_f32(key);
        floats[QUERY + i] = to_f32(a.q[row * a.q_stride + key_head * h.key_dim + i]);
        if (first) keys[i * CHUNK + filled] = key;
    }
    if (i == 0) decays[filled] = a.g[row * a.g_stride + head];
    __syncthreads();
    fill_scalars(floats, decays, 1, decays, 1, filled + 1);
    const int j = i % CHUNK, part = i / CHUNK;
    float kk = 0, qk = 0;
    for (int p = part; p < h.key_dim && j <= filled; p += 4) {
        const float key = j < filled ? to_f32(keys[p * CHUNK + j]) : floats[KEY + p]; // a head beside this one stores the last
        kk += floats[KEY + p] * key;
        qk += floats[QUERY + p] * key;
    }
    floats[PARTS + part * CHUNK + j] = kk;
    floats[PARTS + (4 + part) * CHUNK + j] = qk;
    __syncthreads();
    if (i < CHUNK) {
        const float *p = floats + PARTS + i, decay = floats[TO_END * CHUNK + i];
        floats[IN_RESIDUAL + i] = -decay * ((p[0] + p[CHUNK]) + (p[2 * CHUNK] + p[3 * CHUNK]));
        floats[IN_READING + i] = decay / sqrtf(h.key_dim) * ((p[4 * CHUNK] + p[5 * CHUNK]) + (p[6 * CHUNK] + p[7 * CHUNK]));
    }
    __syncthreads();
}

// What the new row writes, and its reading, in columns [column, column + 128). state is the
// one before the chunk, or null.
DEVICE void step_columns(const Step& a, float* floats, const float* state, float* writes, i64 row, int head, int filled, int column) {
    const Heads& h = a.heads;
    const int own = column + 4 * lane_id(), count = h.value_dim - own, part = warp_id();
    const float gamma = floats[GAMMA * CHUNK + CHUNK - 1], scale = gamma / sqrtf(h.key_dim);
    float r[4] = {}, y[4] = {}, x[4];
    if (state && count > 0)
#pragma unroll 8
        for (int p = part; p < h.key_dim; p += 8) {
            load_f32(x, state + p * h.value_dim + own, count);
#pragma unroll
            for (int e = 0; e < 4; e++) r[e] -= gamma * floats[KEY + p] * x[e], y[e] += scale * floats[QUERY + p] * x[e];
        }
    if (count > 0)
#pragma unroll 4
        for (int j = part; j < filled; j += 8) {
            load_f32(x, writes + j * h.value_dim + own, count);
#pragma unroll
            for (int e = 0; e < 4; e++) r[e] += floats[IN_RESIDUAL + j] * x[e], y[e] += floats[IN_READING + j] * x[e];
        }
    float* sums = floats + COLUMN_SUMS;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        sums[part * STEP_COLUMNS + 4 * lane_id() + e] = r[e];
        sums[(8 + part) * STEP_COLUMNS + 4 * lane_id() + e] = y[e];
    }
    __syncthreads();
    const int c = threadIdx.x, value = column + c;
    if (c < STEP_COLUMNS && value < h.value_dim) {
        float residual = to_f32(a.v[row * a.v_stride + head * h.value_dim + value]), reading = 0;
        for (int w = 0; w < 8; w++) {
            residual += sums[w * STEP_COLUMNS + c];
            reading += sums[(8 + w) * STEP_COLUMNS + c];
        }
        const float write = a.beta[row * a.beta_stride + head] * residual;
        writes[filled * h.value_dim + value] = write;
        a.out[row * a.out_stride + head * h.value_dim + value] = to_bf16(reading + floats[IN_READING + filled] * write);
    }
    __syncthreads();
}

// The state at the end of the full chunk, four of its rows at a time.
DEVICE void advance_columns(const Step& a, const float* floats, const float* state, float* next, const bf16* keys, const float* writes, int column) {
    const Heads& h = a.heads;
    const int own = column + 4 * lane_id(), count = h.value_dim - own;
    if (count <= 0) return;
    for (int p = 4 * warp_id(); p < h.key_dim; p += 32) {
        float s[4][4] = {}, x[4];
        for (int i = 0; i < min(4, h.key_dim - p); i++)
            if (state) {
                load_f32(x, state + (p + i) * h.value_dim + own, count);
                for (int e = 0; e < 4; e++) s[i][e] = floats[GAMMA * CHUNK + CHUNK - 1] * x[e];
            }
        for (int j = 0; j < CHUNK; j++) {
            load_f32(x, writes + j * h.value_dim + own, count);
            for (int i = 0; i < min(4, h.key_dim - p); i++) {
                const float key = j < CHUNK - 1 ? to_f32(keys[(p + i) * CHUNK + j]) : floats[KEY + p + i];
                for (int e = 0; e < 4; e++) s[i][e] += floats[TO_END * CHUNK + j] * key * x[e];
            }
        }
        for (int i = 0; i < min(4, h.key_dim - p); i++) store_f32(next + (p + i) * h.value_dim + own, s[i], count);
    }
}

// Steps of one row: step steps[i] is row start[step], which joins chunk open[step] as number
// filled[step], and reads state from[step], that before the chunk (negative: none); the
// chunk's last row leaves a state at to[step]. states is [states, value heads, key_dim,
// value_dim]; of open chunks, keys are [chunks, key heads, key_dim, 64], writes [chunks, value
// heads, 64, value_dim], decays [chunks, value heads, 64]. Grid: steps, value heads; block 256.
extern "C" __global__ void __launch_bounds__(256)
deltarule_decode(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v, const float* __restrict__ g,
                 const float* __restrict__ beta, const int* __restrict__ steps, const int* __restrict__ start, const int* __restrict__ from,
                 const int* __restrict__ to, const int* __restrict__ open, const int* __restrict__ filled, float* states, bf16* keys, float* writes,
                 float* decays, bf16* out, int key_heads, int value_heads, int key_dim, int value_dim, i64 q_stride, i64 k_stride, i64 v_stride,
                 i64 g_stride, i64 beta_stride, i64 out_stride) {
    SHARED(float, floats, STEP_FLOATS);
    const Step a = {{key_heads, value_heads, key_dim, value_dim}, q, k, v, g, beta, steps, start, from, to, open, filled, states, writes, decays, keys, out,
                    q_stride, k_stride, v_stride, g_stride, beta_stride, out_stride};
    const int step = steps[blockIdx.x], head = blockIdx.y, n = filled[step];
    const i64 size = (i64)key_dim * value_dim, at = (i64)open[step] * value_heads + head, row = start[step];
    bf16* const own_keys = keys + ((i64)open[step] * key_heads + head / (value_heads / key_heads)) * key_dim * CHUNK;
    float* const own_writes = writes + at * CHUNK * value_dim;
    const float* state = from[step] >= 0 ? states + ((i64)from[step] * value_heads + head) * size : nullptr;
    match_step(a, floats, own_keys, decays + at * CHUNK, row, head, n);
    for (int column = 0; column < value_dim; column += STEP_COLUMNS) step_columns(a, floats, state, own_writes, row, head, n, column);
    if (n == CHUNK - 1)
        for (int column = 0; column < value_dim; column += STEP_COLUMNS)
            advance_columns(a, floats, state, states + ((i64)to[step] * value_heads + head) * size, own_keys, own_writes, column);
}
