// Attention over a packed prefix tree in bf16, with a running softmax (formulas: spec.go; Dao 2023,
// arXiv 2307.08691). The host's tables (tiles.go) turn the tree into causal attention by positions:
//
// - A tile of queries is 64 (row, query head) pairs of one segment under one key head; pair p is row
//   p / group, head p % group of the group, so that a key head's keys are read once for its whole group.
// - A tile of keys is 64 positions of a path, aligned to multiples of 64 from the start of the sequence. How
//   a row is computed so depends on its path alone: its bits are the same in a tree and in its sequence alone.
//
// A head has a multiple of 8 columns and is computed as 64, 128 or 256, the others being zeros. Tensors' rows
// and heads begin at multiples of 16 bytes. Scores and their logarithms are in base 2.
#include "dialect.cuh"

static constexpr int TILE = 64;        // pairs or keys
static constexpr float LOG2E = 1.4426950408889634f;
static constexpr float MASKED = -3e38f; // below any score

// ---- Tiles in shared memory

// A tile [64, D] consists of panels of 64 columns. In a panel a row has 128 bytes, and its units of 16 bytes are
// exchanged by the row's number, as a bulk copy with a swizzle of 128 bytes does it: the eight rows that
// ldmatrix reads then lie in different banks.
DEVICE int unit_at(int row, int unit) { return unit / 8 * (TILE * 64) + row * 64 + ((unit ^ row) & 7) * 8; }

// Starts the copy of a tile by threads of whom this is number threadIdx.x % THREADS. Row r begins at element offset_of(r)
// of x, and is zeros where that is negative; so are columns from dim on.
template <int D, int THREADS, class OffsetOf> DEVICE void load_tile(bf16* tile, const bf16* x, int dim, OffsetOf offset_of) {
#pragma unroll 2
    for (int i = threadIdx.x % THREADS; i < TILE * D / 8; i += THREADS) {
        const int row = i / (D / 8), unit = i % (D / 8);
        const i64 offset = offset_of(row);
        const bool there = offset >= 0 && unit * 8 < dim;
        cp_async16(tile + unit_at(row, unit), there ? x + offset + unit * 8 : x, there ? 16 : 0);
    }
}

// Starts the copy of a tile of keys, or their values. tile_rows is the tile's entry in the table: its first row, if 64 rows
// follow each other, else the complement of a list's number in lists [., 64], where -1 is no row.
template <int D, int THREADS> DEVICE void load_keys(bf16* tile, const bf16* x, i64 stride, int dim, int tile_rows, const int* lists) {
    load_tile<D, THREADS>(tile, x, dim, [=](int r) -> i64 { return (i64)(tile_rows >= 0 ? tile_rows + r : lists[(i64)~tile_rows * TILE + r]) * stride; });
}

// ---- Products of a warp. Sums are mma_m16n8k16's d: n tiles of 8 columns.

// d [16, 8 N] += a [16, D] b [8 N, D]^T for the rows of tiles from a_row and b_row on.
template <int D, int N> DEVICE void multiply_transposed(float (&d)[N][4], const bf16* a, int a_row, const bf16* b, int b_row) {
    const int lane = lane_id();
#pragma unroll 8 // two panels: more would take registers for the swizzled addresses
    for (int unit = 0; unit < D / 8; unit += 2) {
        u32 fa[4];
        ldmatrix_x4(fa, a + unit_at(a_row + lane % 16, unit + lane / 16));
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            u32 fb[4];
            ldmatrix_x4(fb, b + unit_at(b_row + n * 8 + lane / 16 * 8 + lane % 8, unit + lane / 8 % 2));
            mma_m16n8k16(d[n], fa, fb[0], fb[1]);
            mma_m16n8k16(d[n + 1], fa, fb[2], fb[3]);
        }
    }
}

// d [16, 8 N] += a [16, 16] b [16, 8 N] for the 16 rows of a tile from b_row on, and columns from 8 unit on.
template <int N> DEVICE void multiply_step(float (&d)[N][4], const u32 (&a)[4], const bf16* b, int b_row, int unit) {
    const int lane = lane_id();
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        u32 fb[4];
        ldmatrix_x4_trans(fb, b + unit_at(b_row + lane % 16, unit + n + lane / 16));
        mma_m16n8k16(d[n], a, fb[0], fb[1]);
        mma_m16n8k16(d[n + 1], a, fb[2], fb[3]);
    }
}

// d [16, 8 N] += a [16, 64] b [64, 8 N] for the rows of tile a from a_row on and the columns of b from 8 unit on.
template <int N> DEVICE void multiply(float (&d)[N][4], const bf16* a, int a_row, const bf16* b, int unit) {
    const int lane = lane_id();
#pragma unroll
    for (int k = 0; k < TILE; k += 16) {
        u32 fa[4];
        ldmatrix_x4(fa, a + unit_at(a_row + lane % 16, k / 8 + lane / 16));
        multiply_step(d, fa, b, k, unit);
    }
}

DEVICE float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, 1));
    return fmaxf(v, __shfl_xor_sync(ALL_LANES, v, 2));
}

DEVICE float quad_sum(float v) {
    v += __shfl_xor_sync(ALL_LANES, v, 1);
    return v + __shfl_xor_sync(ALL_LANES, v, 2);
}

// ---- Where things are

// Query heads of a key head are neighbours. scale is that of the scores, times log2(e).
struct Heads {
    int heads, kv_heads, dim;
    float scale;
    __device__ __forceinline__ int group() const { return heads / kv_heads; }
};

// The pairs of a query tile, from pair `first` on, under one key head. The last ones, past the segment's end, repeat
// its last pair, and nothing is stored for them.
template <int PAIRS> struct Queries {
    int first, end, shift; // pairs of the whole tree; position is row + shift
    const int* keys;       // the table of its segment's key tiles
    int group, head;       // the group's first query head

    __device__ __forceinline__ Queries(const int4* table, const int* key_tiles, Heads h) {
        const int4 q = table[blockIdx.y];
        first = q.x, end = q.y, shift = q.z, keys = key_tiles + q.w;
        group = h.group(), head = blockIdx.x * group;
    }
    __device__ __forceinline__ int pair(int i) const { return min(first + i, end - 1); }
    __device__ __forceinline__ bool there(int i) const { return first + i < end; }
    __device__ __forceinline__ int position(int i) const { return pair(i) / group + shift; }
    __device__ __forceinline__ int head_of(int i) const { return head + pair(i) % group; }
    __device__ __forceinline__ i64 row(int i) const { return pair(i) / group; }
    // Key tiles that any pair sees, and those that all see in full.
    __device__ __forceinline__ int tiles() const { return position(PAIRS - 1) / TILE + 1; }
    __device__ __forceinline__ int full_tiles() const { return (position(0) + 1) / TILE; }
};

// ---- Forward

// The running softmax of the two pairs that a lane has scores of: i and i + 8 of the tile. fade is what sums so far
// are to be multiplied by.
struct Softmax {
    int position[2];
    float top[2] = {MASKED, MASKED}, total[2] = {0, 0}, fade[2];

    template <int PAIRS> __device__ __forceinline__ Softmax(const Queries<PAIRS>& q, int i) : position{q.position(i), q.position(i + 8)} {}

    // Masks what the pairs do not see of the tile of keys from `first` on.
    __device__ __forceinline__ void mask(float (&s)[TILE / 8][4], int first) const {
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (first + n * 8 + (int)lane_id() % 4 * 2 + e % 2 > position[e / 2]) s[n][e] = MASKED;
    }

    // Makes weights of scores. The first tile has a key that all see, so top is then finite.
    __device__ __forceinline__ void add(float (&s)[TILE / 8][4], float scale) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float high = MASKED;
#pragma unroll
            for (int n = 0; n < TILE / 8; n++) high = fmaxf(high, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
            const float before = top[i];
            top[i] = fmaxf(before, quad_max(high) * scale);
            fade[i] = fast_exp2(before - top[i]);
            total[i] *= fade[i];
#pragma unroll
            for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                for (int e = 2 * i; e < 2 * i + 2; e++) total[i] += s[n][e] = fast_exp2(fmaf(s[n][e], scale, -top[i]));
        }
    }

    template <int N> __device__ __forceinline__ void fade_sums(float (&sums)[N][4]) const {
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[n][e] *= fade[e / 2];
    }
};

// The weights of 16 keys, from n tile n on, as mma's a.
DEVICE void pack_weights(u32 (&a)[4], const float (&s)[TILE / 8][4], int n) {
    a[0] = pack_bf16(s[n][0], s[n][1]), a[1] = pack_bf16(s[n][2], s[n][3]);
    a[2] = pack_bf16(s[n + 1][0], s[n + 1][1]), a[3] = pack_bf16(s[n + 1][2], s[n + 1][3]);
}

// Where results go. gate is null, or at the first head's gate; the next head's is gate_head elements on.
struct Outputs {
    bf16* y;
    float* lse;
    const bf16* gate;
    i64 y_stride, gate_stride;
    int gate_head;
};

template <int D, int PAIRS> DEVICE void store_outputs(const float (&sums)[D / 8][4], const Softmax& softmax, const Queries<PAIRS>& queries, int first, Heads heads, Outputs out) {
    const int lane = lane_id();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float total = quad_sum(softmax.total[i]), weight = 1 / total;
        if (!queries.there(first + 8 * i)) continue;
        const i64 row = queries.row(first + 8 * i);
        const int head = queries.head_of(first + 8 * i);
        if (lane % 4 == 0) out.lse[row * heads.heads + head] = softmax.top[i] + fast_log2(total);
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            const int column = n * 8 + lane % 4 * 2;
            if (column >= heads.dim) continue;
            float a = sums[n][2 * i] * weight, b = sums[n][2 * i + 1] * weight;
            if (out.gate) {
                const u32 z = load4(out.gate + row * out.gate_stride + head * out.gate_head + column);
                a *= sigmoid(low_f32(z)), b *= sigmoid(high_f32(z));
            }
            store4(out.y + row * out.y_stride + head * heads.dim + column, pack_bf16(a, b));
        }
    }
}

// y = softmax(q k^T) v sigma(gate) for one tile of queries by four warps, 16 pairs each. While a warp multiplies with
// keys, values arrive, and the other way round.
template <int D> DEVICE void forward(const bf16* q, const bf16* k, const bf16* v, i64 q_stride, i64 k_stride, i64 v_stride,
                                     Heads heads, Queries<TILE> queries, const int* lists, Outputs out) {
    DYN_SHARED(bf16, q_tile);
    bf16* const k_tile = q_tile + TILE * D;
    bf16* const v_tile = k_tile + TILE * D;
    const int lane = lane_id(), at = warp_id() * 16, mine = at + lane / 4; // this lane's pairs are mine and mine + 8
    const int dim = heads.dim, tiles = queries.tiles(), full = queries.full_tiles();
    k += blockIdx.x * dim, v += blockIdx.x * dim;

    load_tile<D, 128>(q_tile, q, dim, [&](int r) { return queries.row(r) * q_stride + queries.head_of(r) * dim; });
    load_keys<D, 128>(k_tile, k, k_stride, dim, queries.keys[0], lists);
    cp_async_commit();
    Softmax softmax(queries, mine);
    float sums[D / 8][4] = {};
    for (int t = 0; t < tiles; t++) {
        cp_async_wait<0>();
        __syncthreads(); // the keys are there, and nobody reads values
        load_keys<D, 128>(v_tile, v, v_stride, dim, queries.keys[t], lists);
        cp_async_commit();

        float s[TILE / 8][4] = {};
        multiply_transposed<D>(s, q_tile, at, k_tile, 0);
        if (t >= full) softmax.mask(s, t * TILE);
        softmax.add(s, heads.scale);
        softmax.fade_sums(sums);

        cp_async_wait<0>();
        __syncthreads(); // the values are there, and nobody reads keys
        if (t + 1 < tiles) load_keys<D, 128>(k_tile, k, k_stride, dim, queries.keys[t + 1], lists);
        cp_async_commit();
#pragma unroll
        for (int n = 0; n < TILE / 8; n += 2) {
            u32 p[4];
            pack_weights(p, s, n);
            multiply_step(sums, p, v_tile, n * 8, 0);
        }
    }
    store_outputs<D>(sums, softmax, queries, mine, heads, out);
}

// y [N, heads dim], and lse [N, heads], the logarithm to base 2 of each softmax's denominator. q is [N, heads dim], k
// and v are [N, kv_heads dim]. gate is null, or at the first head's gate; the next head's is gate_head elements on.
// Block (h, t) takes tile t of queries under key head h. Dynamic shared memory: 384 D bytes.
#define FORWARD                                                                                                                         \
    const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v, const bf16 *__restrict__ gate, bf16 *y,         \
        float *lse, i64 q_stride, i64 k_stride, i64 v_stride, i64 gate_stride, i64 y_stride, int gate_head, int heads, int kv_heads,   \
        int dim, float scale, const int4 *__restrict__ queries, const int *__restrict__ keys, const int *__restrict__ lists
#define FORWARD_ARGUMENTS(pairs)                                                                              \
    Heads{heads, kv_heads, dim, scale}, Queries<pairs>(queries, keys, Heads{heads, kv_heads, dim, scale}), lists, \
        Outputs{y, lse, gate, y_stride, gate_stride, gate_head}
#define FORWARD_INPUTS q, k, v, q_stride, k_stride, v_stride

extern "C" __global__ void __launch_bounds__(128, 3) attention_forward_64(FORWARD) { forward<64>(FORWARD_INPUTS, FORWARD_ARGUMENTS(TILE)); }
extern "C" __global__ void __launch_bounds__(128, 2) attention_forward_128(FORWARD) { forward<128>(FORWARD_INPUTS, FORWARD_ARGUMENTS(TILE)); }
extern "C" __global__ void __launch_bounds__(128, 1) attention_forward_256(FORWARD) { forward<256>(FORWARD_INPUTS, FORWARD_ARGUMENTS(TILE)); }

#if HAS_WGMMA
// The same on Hopper, for heads of D columns: a warp copies tiles of keys and values into rings, in boxes of 64 x 64 where a
// tile's rows follow each other, else row by row; two warpgroups multiply, 64 pairs each. A group's weights are
// computed while its product of the weights before with their values is under way.
template <int D> struct Ring {
    static constexpr int STAGES = D == 256 ? 2 : 4;
    bf16* tiles;
    Mbarrier *full, *empty;
    int number = 0; // of the next tile
    __device__ __forceinline__ bf16* tile() const { return tiles + number % STAGES * TILE * D; }
    __device__ __forceinline__ void wait_full() const { mbarrier_wait(&full[number % STAGES], number / STAGES % 2); }
    __device__ __forceinline__ void wait_empty() const { mbarrier_wait(&empty[number % STAGES], number / STAGES % 2 ^ 1); }
    // The warpgroup has read the tile.
    __device__ __forceinline__ void release() {
        if (threadIdx.x % 128 == 0) mbarrier_arrive(&empty[number % STAGES]);
        number++;
    }

    // Fills the next stage. A warp's lanes come together.
    __device__ __forceinline__ void fill(const bf16* x, i64 stride, const TensorMap* map, int tile_rows, const int* lists) {
        Mbarrier* const b = &full[number % STAGES];
        wait_empty();
        if (tile_rows < 0) {
            load_keys<D, 32>(tile(), x, stride, D, tile_rows, lists);
            cp_async_commit();
            cp_async_wait<0>();
            fence_async_shared();
            __syncwarp();
            if (lane_id() == 0) mbarrier_arrive(b);
        } else if (lane_id() == 0) {
            mbarrier_arrive_expect(b, TILE * D * 2);
            for (int c = 0; c < D; c += 64) tma_load_2d(tile() + c * TILE, map, blockIdx.x * D + c, tile_rows, b);
        }
        number++;
    }
};

static constexpr u32 PANEL = TILE * 64 * 2 >> 4; // of a tile, as descriptors count

// s = q k^T, not waited for.
template <int D> DEVICE void issue_scores(float (&s)[TILE / 8][4], const bf16* q, const bf16* k) {
    const u64 a = wgmma_tile(q), b = wgmma_tile(k);
#pragma unroll
    for (int i = 0; i < D / 16; i++) wgmma<TILE>((float(&)[TILE / 2])s, a + i / 4 * PANEL + i % 4 * 2, b + i / 4 * PANEL + i % 4 * 2, i > 0);
    wgmma_commit();
}

// sums += p v, not waited for.
template <int D> DEVICE void issue_values(float (&sums)[D / 8][4], const u32 (&p)[4][4], const bf16* v) {
    const u64 b = wgmma_tile(v, 1024, TILE * 128);
#pragma unroll
    for (int i = 0; i < 4; i++) wgmma<D, 1>((float(&)[D / 2])sums, p[i], b + i * 128, true);
    wgmma_commit();
}

template <int D> DEVICE void multiply_rings(const bf16* q, i64 q_stride, bf16* q_tile, Ring<D> keys, Ring<D> values, int group,
                                            Heads heads, Queries<2 * TILE> queries, Outputs out) {
    const int mine = group * TILE + warp_id() % 4 * 16 + lane_id() / 4, tiles = queries.tiles(), full = queries.full_tiles();
    load_tile<D, 128>(q_tile, q, D, [&](int r) { return queries.row(group * TILE + r) * q_stride + queries.head_of(group * TILE + r) * D; });
    cp_async_commit();
    cp_async_wait<0>();
    fence_async_shared();
    barrier_sync(1 + group, 128);
    Softmax softmax(queries, mine);
    float sums[D / 8][4] = {}, s[TILE / 8][4];
    u32 p[4][4];
    keys.wait_full();
    wgmma_fence();
    issue_scores<D>(s, q_tile, keys.tile());
    wgmma_wait<0>();
    keys.release();
    if (full == 0) softmax.mask(s, 0);
    softmax.add(s, heads.scale);
#pragma unroll
    for (int i = 0; i < 4; i++) pack_weights(p[i], s, 2 * i);
    for (int t = 1; t < tiles; t++) {
        keys.wait_full();
        values.wait_full();
        wgmma_fence();
        issue_scores<D>(s, q_tile, keys.tile());
        issue_values<D>(sums, p, values.tile());
        wgmma_wait<1>();
        keys.release();
        if (t >= full) softmax.mask(s, t * TILE);
        softmax.add(s, heads.scale);
        wgmma_wait<0>();
        values.release();
        softmax.fade_sums(sums);
#pragma unroll
        for (int i = 0; i < 4; i++) pack_weights(p[i], s, 2 * i);
    }
    values.wait_full();
    wgmma_fence();
    issue_values<D>(sums, p, values.tile());
    wgmma_wait<0>();
    store_outputs<D>(sums, softmax, queries, mine, heads, out);
}

template <int D> DEVICE void forward_hopper(const bf16* q, const bf16* k, const bf16* v, const TensorMap* k_map, const TensorMap* v_map, i64 q_stride, i64 k_stride, i64 v_stride,
                                            Heads heads, Queries<2 * TILE> queries, const int* lists, Outputs out) {
    constexpr int STAGES = Ring<D>::STAGES;
    DYN_SHARED(bf16, q_tiles);
    SHARED(Mbarrier, barriers, 4 * STAGES);
    const int group = threadIdx.x / 128, groups = queries.there(TILE) ? 2 : 1; // groups with pairs
    Ring<D> keys = {q_tiles + 2 * TILE * D, barriers, barriers + STAGES};
    Ring<D> values = {keys.tiles + STAGES * TILE * D, barriers + 2 * STAGES, barriers + 3 * STAGES};
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(&keys.full[s], 1), mbarrier_init(&values.full[s], 1);
            mbarrier_init(&keys.empty[s], groups), mbarrier_init(&values.empty[s], groups);
        }
        mbarrier_fence_init();
    }
    __syncthreads();
    if (group == 2) {
        registers_release<40>();
        if (warp_id() % 4 > 0) return;
        k += blockIdx.x * D, v += blockIdx.x * D;
        const int tiles = queries.tiles();
        for (int t = 0; t <= tiles; t++) { // in the order in which they are read
            if (t < tiles) keys.fill(k, k_stride, k_map, queries.keys[t], lists);
            if (t > 0) values.fill(v, v_stride, v_map, queries.keys[t - 1], lists);
        }
    } else {
        registers_acquire<232>();
        if (group < groups) multiply_rings<D>(q, q_stride, q_tiles + group * TILE * D, keys, values, group, heads, queries, out);
    }
}

// attention_forward with tiles of 128 pairs in queries, and maps that cut k and v [N, kv_heads D] into boxes of 64 x 64 with a
// swizzle of 128 bytes. dim is D. Dynamic shared memory: 768 D bytes for D 256, else 1,280 D.
#define HOPPER const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map, FORWARD
#define HOPPER_INPUTS q, k, v, &k_map, &v_map, q_stride, k_stride, v_stride

extern "C" __global__ void __launch_bounds__(384, 1) attention_forward_hopper_64(HOPPER) { forward_hopper<64>(HOPPER_INPUTS, FORWARD_ARGUMENTS(2 * TILE)); }
extern "C" __global__ void __launch_bounds__(384, 1) attention_forward_hopper_128(HOPPER) { forward_hopper<128>(HOPPER_INPUTS, FORWARD_ARGUMENTS(2 * TILE)); }
extern "C" __global__ void __launch_bounds__(384, 1) attention_forward_hopper_256(HOPPER) { forward_hopper<256>(HOPPER_INPUTS, FORWARD_ARGUMENTS(2 * TILE)); }
#endif

// ---- Backward

// For each row and head: delta = sum of dy y, which is that of p dp; da = dy sigma(gate), the gradient before the gate; and
// dgate = dy y (1 - sigma(gate)), stored or added. A warp takes one head of one row. Without a gate, gate, da and dgate are
// null, and dy is da.
extern "C" __global__ void __launch_bounds__(256)
attention_backward_rows(const bf16* __restrict__ dy, const bf16* __restrict__ y, const bf16* __restrict__ gate, bf16* da, bf16* dgate, float* delta,
                        i64 dy_stride, i64 y_stride, i64 gate_stride, i64 da_stride, i64 dgate_stride, int gate_head, int rows, int heads, int dim, int accumulate) {
    const i64 at = (i64)blockIdx.x * 8 + warp_id(), row = at / heads;
    const int head = at % heads, column = lane_id() * 8;
    if (row >= rows) return;
    float sum = 0;
    if (column < dim) {
        float d[8], o[8];
        unpack8(d, load16(dy + row * dy_stride + head * dim + column));
        unpack8(o, load16(y + row * y_stride + head * dim + column));
#pragma unroll
        for (int i = 0; i < 8; i++) sum += d[i] * o[i];
        if (gate) {
            float z[8], g[8] = {};
            unpack8(z, load16(gate + row * gate_stride + head * gate_head + column));
            bf16* const to = dgate + row * dgate_stride + head * gate_head + column;
            if (dgate && accumulate) unpack8(g, load16(to));
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float f = sigmoid(z[i]);
                g[i] += d[i] * o[i] * (1 - f);
                d[i] *= f;
            }
            if (dgate) store16(to, pack8(g));
            store16(da + row * da_stride + head * dim + column, pack8(d));
        }
    }
    sum = warp_sum(sum);
    if (lane_id() == 0) delta[at] = sum;
}

// Stores a warp's weights as rows of a tile [64, 64], from `row` and column on.
template <int N> DEVICE void store_weights(bf16* tile, int row, int column, const float (&w)[N][4]) {
    const int lane = lane_id();
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            store4(tile + unit_at(row + lane / 4 + 8 * i, column / 8 + n) + lane % 4 * 2, pack_bf16(w[n][2 * i], w[n][2 * i + 1]));
}

// Stores two neighbouring elements of a gradient, or adds them to it.
DEVICE void add_pair(bf16* to, float a, float b, bool accumulate) {
    if (accumulate) {
        const u32 before = load4(to);
        a += low_f32(before), b += high_f32(before);
    }
    store4(to, pack_bf16(a, b));
}

// dq = scale sum of ds k, with ds = p (dp - delta), for one tile of queries by eight warps: warp w takes pairs
// 16 (w % 4), and half of the keys in scores, then half of the columns.
template <int D> DEVICE void backward_queries(const bf16* q, const bf16* k, const bf16* v, const bf16* da, const float* lse, const float* delta, bf16* dq,
                                              i64 q_stride, i64 k_stride, i64 v_stride, i64 da_stride, i64 dq_stride,
                                              Heads heads, Queries<TILE> queries, const int* lists, int accumulate) {
    DYN_SHARED(bf16, q_tile);
    bf16* const da_tile = q_tile + TILE * D;
    bf16* const k_tile = da_tile + TILE * D;
    bf16* const v_tile = k_tile + TILE * D;
    bf16* const ds_tile = v_tile + TILE * D;
    const int lane = lane_id(), at = warp_id() % 4 * 16, half = warp_id() / 4, mine = at + lane / 4;
    const int dim = heads.dim, tiles = queries.tiles(), full = queries.full_tiles();
    k += blockIdx.x * dim, v += blockIdx.x * dim;

    load_tile<D, 256>(q_tile, q, dim, [&](int r) { return queries.row(r) * q_stride + queries.head_of(r) * dim; });
    load_tile<D, 256>(da_tile, da, dim, [&](int r) { return queries.row(r) * da_stride + queries.head_of(r) * dim; });
    load_keys<D, 256>(v_tile, v, v_stride, dim, queries.keys[0], lists);
    cp_async_commit();
    int position[2];
    float denominator[2], mean[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const i64 row = queries.row(mine + 8 * i) * heads.heads + queries.head_of(mine + 8 * i);
        position[i] = queries.position(mine + 8 * i), denominator[i] = lse[row], mean[i] = delta[row];
    }
    float sums[D / 16][4] = {};
    for (int t = 0; t < tiles; t++) {
        cp_async_wait<0>();
        __syncthreads(); // the values are there, and nobody reads keys or ds
        load_keys<D, 256>(k_tile, k, k_stride, dim, queries.keys[t], lists);
        cp_async_commit();
        float dp[TILE / 16][4] = {}, s[TILE / 16][4] = {};
        multiply_transposed<D>(dp, da_tile, at, v_tile, half * 32);

        cp_async_wait<0>();
        __syncthreads(); // the keys are there, and nobody reads values
        if (t + 1 < tiles) load_keys<D, 256>(v_tile, v, v_stride, dim, queries.keys[t + 1], lists);
        cp_async_commit();
        multiply_transposed<D>(s, q_tile, at, k_tile, half * 32);
#pragma unroll
        for (int n = 0; n < TILE / 16; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const bool seen = t < full || t * TILE + half * 32 + n * 8 + lane % 4 * 2 + e % 2 <= position[e / 2];
                const float p = fast_exp2(fmaf(s[n][e], heads.scale, -denominator[e / 2]));
                s[n][e] = seen ? p * (dp[n][e] - mean[e / 2]) : 0;
            }
        store_weights(ds_tile, at, half * 32, s);
        __syncthreads();
        multiply(sums, ds_tile, at, k_tile, half * (D / 16));
    }
    const float scale = heads.scale / LOG2E;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (!queries.there(mine + 8 * i)) continue;
        bf16* const to = dq + queries.row(mine + 8 * i) * dq_stride + queries.head_of(mine + 8 * i) * dim;
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            const int column = half * (D / 2) + n * 8 + lane % 4 * 2;
            if (column < dim) add_pair(to + column, scale * sums[n][2 * i], scale * sums[n][2 * i + 1], accumulate);
        }
    }
}

// dq [N, heads dim], stored or added. da is attention_backward_rows', or dy. Blocks are attention_forward's.
// Dynamic shared memory: 512 D + 8,192 bytes.
#define BACKWARD_QUERIES                                                                                                               \
    const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v, const bf16 *__restrict__ da,                    \
        const float *__restrict__ lse, const float *__restrict__ delta, bf16 *dq, i64 q_stride, i64 k_stride, i64 v_stride,             \
        i64 da_stride, i64 dq_stride, int heads, int kv_heads, int dim, float scale, const int4 *__restrict__ queries,                  \
        const int *__restrict__ keys, const int *__restrict__ lists, int accumulate
#define BACKWARD_QUERIES_ARGUMENTS                                                                                      \
    q, k, v, da, lse, delta, dq, q_stride, k_stride, v_stride, da_stride, dq_stride, Heads{heads, kv_heads, dim, scale}, \
        Queries<TILE>(queries, keys, Heads{heads, kv_heads, dim, scale}), lists, accumulate

extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_queries_64(BACKWARD_QUERIES) { backward_queries<64>(BACKWARD_QUERIES_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_queries_128(BACKWARD_QUERIES) { backward_queries<128>(BACKWARD_QUERIES_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_queries_256(BACKWARD_QUERIES) { backward_queries<256>(BACKWARD_QUERIES_ARGUMENTS); }

// dv = sum of p da and dk = scale sum of ds q for 64 rows of keys by eight warps: warp w takes keys 16 (w % 4), and half
// of the pairs in scores, then half of the columns. Segments are in depth-first order, so the rows that see
// key j are those from j to before its segment's last descendant's end, ends[j]: tiles of pairs run from the first
// key to the furthest of these ends, over all heads of the group.
template <int D> DEVICE void backward_keys(const bf16* q, const bf16* k, const bf16* v, const bf16* da, const float* lse, const float* delta, bf16* dk, bf16* dv,
                                           i64 q_stride, i64 k_stride, i64 v_stride, i64 da_stride, i64 dk_stride, i64 dv_stride,
                                           Heads heads, const int* ends, int rows, int accumulate_k, int accumulate_v) {
    DYN_SHARED(bf16, k_tile);
    bf16* const v_tile = k_tile + TILE * D;
    bf16* const q_tile = v_tile + TILE * D;
    bf16* const da_tile = q_tile + TILE * D;
    bf16* const p_tile = da_tile + TILE * D;
    bf16* const ds_tile = p_tile + TILE * TILE;
    SHARED(float, denominator, TILE);
    SHARED(float, mean, TILE);
    SHARED(int, seeing, TILE); // the pairs' rows
    const int lane = lane_id(), at = warp_id() % 4 * 16, half = warp_id() / 4;
    const int dim = heads.dim, group = heads.group(), head = blockIdx.x * group, first = blockIdx.y * TILE;
    k += blockIdx.x * dim, v += blockIdx.x * dim;
    const auto key_rows = [=](i64 stride) { return [=](int r) -> i64 { return first + r < rows ? (first + r) * stride : -1; }; };
    load_tile<D, 256>(k_tile, k, dim, key_rows(k_stride));
    load_tile<D, 256>(v_tile, v, dim, key_rows(v_stride));

    int end = 0; // the furthest
    for (int r = lane; r < TILE && first + r < rows; r += 32) end = max(end, ends[first + r]);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) end = max(end, __shfl_xor_sync(ALL_LANES, end, o));
    const int end_pair = end * group;
    const auto pair_rows = [=](int pair, i64 stride) {
        return [=](int r) -> i64 { return pair + r < end_pair ? (pair + r) / group * stride + (head + (pair + r) % group) * dim : -1; };
    };
    const auto load_queries = [&](int pair) {
        load_tile<D, 256>(q_tile, q, dim, pair_rows(pair, q_stride));
        if (threadIdx.x < TILE) {
            const int p = pair + threadIdx.x;
            const i64 number = (i64)(p / group) * heads.heads + head + p % group;
            seeing[threadIdx.x] = p / group;
            denominator[threadIdx.x] = p < end_pair ? lse[number] : 0;
            mean[threadIdx.x] = p < end_pair ? delta[number] : 0;
        }
    };
    int key[2], key_end[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        key[i] = first + at + lane / 4 + 8 * i;
        key_end[i] = key[i] < rows ? ends[key[i]] : 0;
    }
    load_queries(first * group);
    cp_async_commit();
    float dk_sums[D / 16][4] = {}, dv_sums[D / 16][4] = {};
    for (int pair = first * group; pair < end_pair; pair += TILE) {
        cp_async_wait<0>();
        __syncthreads(); // the queries are there, and nobody reads da, p and ds
        load_tile<D, 256>(da_tile, da, dim, pair_rows(pair, da_stride));
        cp_async_commit();
        float p[TILE / 16][4] = {};
        multiply_transposed<D>(p, k_tile, at, q_tile, half * 32);
#pragma unroll
        for (int n = 0; n < TILE / 16; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = half * 32 + n * 8 + lane % 4 * 2 + e % 2, row = seeing[column];
                const float weight = fast_exp2(fmaf(p[n][e], heads.scale, -denominator[column]));
                p[n][e] = key[e / 2] <= row && row < key_end[e / 2] ? weight : 0;
            }
        store_weights(p_tile, at, half * 32, p);

        cp_async_wait<0>();
        __syncthreads(); // da is there
        float ds[TILE / 16][4] = {};
        multiply_transposed<D>(ds, v_tile, at, da_tile, half * 32);
#pragma unroll
        for (int n = 0; n < TILE / 16; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) ds[n][e] = p[n][e] * (ds[n][e] - mean[half * 32 + n * 8 + lane % 4 * 2 + e % 2]);
        store_weights(ds_tile, at, half * 32, ds);
        __syncthreads();
        multiply(dk_sums, ds_tile, at, q_tile, half * (D / 16));
        __syncthreads(); // nobody reads the queries
        if (pair + TILE < end_pair) load_queries(pair + TILE);
        cp_async_commit();
        multiply(dv_sums, p_tile, at, da_tile, half * (D / 16));
    }
    const float scale = heads.scale / LOG2E;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (key[i] >= rows) continue;
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            const int column = half * (D / 2) + n * 8 + lane % 4 * 2;
            if (column >= dim) continue;
            const i64 to = blockIdx.x * dim + column;
            if (dk) add_pair(dk + key[i] * dk_stride + to, scale * dk_sums[n][2 * i], scale * dk_sums[n][2 * i + 1], accumulate_k);
            if (dv) add_pair(dv + key[i] * dv_stride + to, dv_sums[n][2 * i], dv_sums[n][2 * i + 1], accumulate_v);
        }
    }
}

// dk and dv [N, kv_heads dim], each stored, added or, if null, left out. Block (h, t) takes rows 64 t to 64 t + 63 of
// key head h. Dynamic shared memory: 512 D + 16,384 bytes. For heads of 256 that is 144 KiB, and 136 for the queries' kernel, more than cards
// of compute capability 8.6, 8.9 and 12.0 have.
#define BACKWARD_KEYS                                                                                                                  \
    const bf16 *__restrict__ q, const bf16 *__restrict__ k, const bf16 *__restrict__ v, const bf16 *__restrict__ da,                    \
        const float *__restrict__ lse, const float *__restrict__ delta, bf16 *dk, bf16 *dv, i64 q_stride, i64 k_stride, i64 v_stride,   \
        i64 da_stride, i64 dk_stride, i64 dv_stride, int heads, int kv_heads, int dim, float scale, const int *__restrict__ ends,       \
        int rows, int accumulate_k, int accumulate_v
#define BACKWARD_KEYS_ARGUMENTS                                                                                                  \
    q, k, v, da, lse, delta, dk, dv, q_stride, k_stride, v_stride, da_stride, dk_stride, dv_stride, Heads{heads, kv_heads, dim, scale}, \
        ends, rows, accumulate_k, accumulate_v

extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_keys_64(BACKWARD_KEYS) { backward_keys<64>(BACKWARD_KEYS_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_keys_128(BACKWARD_KEYS) { backward_keys<128>(BACKWARD_KEYS_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_keys_256(BACKWARD_KEYS) { backward_keys<256>(BACKWARD_KEYS_ARGUMENTS); }

// ---- Decoding: new rows over a cache of blocks of 64 positions. On the card keys and values are both
// [blocks, kv_heads, 64, dim], a position a row.

// Stores the rows' keys and values in their places: places of decode.go. A warp takes one key head of one row.
extern "C" __global__ void __launch_bounds__(256)
attention_decode_store(const bf16* __restrict__ k, const bf16* __restrict__ v, bf16* keys, bf16* values, i64 k_stride, i64 v_stride,
                       const int* __restrict__ position, const int* __restrict__ table, const int* __restrict__ blocks, int rows, int kv_heads, int dim) {
    const int at = blockIdx.x * 8 + warp_id(), row = at / kv_heads, head = at % kv_heads, column = lane_id() * 8;
    if (row >= rows || column >= dim) return;
    const i64 block = blocks[table[row] + position[row] / TILE];
    const i64 to = ((block * kv_heads + head) * TILE + position[row] % TILE) * dim + column;
    store16(keys + to, load16(k + row * k_stride + head * dim + column));
    store16(values + to, load16(v + row * v_stride + head * dim + column));
}

// Copies the first n positions of block from into block to. A block takes one head.
extern "C" __global__ void __launch_bounds__(256)
attention_copy_block(bf16* keys, bf16* values, i64 to, i64 from, int n, int kv_heads, int dim) {
    const i64 head = (i64)TILE * dim, d = (to * kv_heads + blockIdx.x) * head, s = (from * kv_heads + blockIdx.x) * head;
    for (int i = threadIdx.x * 8; i < n * dim; i += 256 * 8) {
        store16(keys + d + i, load16(keys + s + i));
        store16(values + d + i, load16(values + s + i));
    }
}

static constexpr int SPLIT = 2 * TILE; // positions that a block takes

// A unit of work: pairs [first, end), 64 at most, of rows that have the blocks of this split in common, or of one row.
// All sums of a pair are made in one order, whatever pairs are beside it.
struct Unit { int first, end, split; };

// The softmax over the positions of one split, and its sum of values, left for attention_decode_combine in
// sums [splits, heads, dim] and statistics [splits, heads, 2]: the highest score, and the sum of weights. Warp w takes
// positions 16 w to 16 w + 15 of each block of the cache in scores, and a quarter of the columns in sums.
template <int D> DEVICE void decode(const bf16* q, const bf16* keys, const bf16* values, i64 q_stride, Heads heads, Unit unit,
                                    const int* position, const int* table, const int* blocks, const int* slots, float* sums, float* statistics) {
    constexpr int PAGE = TILE * D;
    DYN_SHARED(bf16, q_tile);
    bf16* const p_tile = q_tile; // [64, 128], once scores are made
    bf16* const pages = q_tile + (D < SPLIT ? TILE * SPLIT : PAGE);
    SHARED(float, highs, 4 * TILE);
    SHARED(float, totals, 4 * TILE);
    const int lane = lane_id(), warp = warp_id(), dim = heads.dim, group = heads.group(), head = blockIdx.x * group;
    const int count = unit.end - unit.first, tiles = (count + 15) / 16, start = unit.split * SPLIT;
    const int first_row = unit.first / group, seen = position[(unit.end - 1) / group] + 1 - start; // by the last, and by all if they are several
    const int* const own = blocks + table[first_row] + unit.split * 2;
    const auto load_page = [&](const bf16* x, int page) {
        if (page * TILE < seen) {
            const i64 block = ((i64)own[page] * heads.kv_heads + blockIdx.x) * TILE;
            load_tile<D, 128>(pages + page * PAGE, x, dim, [&](int r) -> i64 { return page * TILE + r < seen ? (block + r) * dim : -1; });
        }
        cp_async_commit();
    };
    load_tile<D, 128>(q_tile, q, dim, [&](int r) -> i64 {
        const int pair = unit.first + r;
        return r < count ? pair / group * q_stride + (head + pair % group) * dim : -1;
    });
    load_page(keys, 0);
    load_page(keys, 1);

    float s[4][4][4]; // of 16 pairs: two n tiles of each page
#pragma unroll
    for (int page = 0; page < 2; page++) {
        if (page == 0) cp_async_wait<1>();
        else cp_async_wait<0>();
        __syncthreads();
#pragma unroll
        for (int m = 0; m < 4; m++) {
            float d[2][4] = {};
            if (m < tiles && page * TILE < seen) multiply_transposed<D>(d, q_tile, m * 16, pages + page * PAGE, warp * 16);
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int key = page * TILE + warp * 16 + n * 8 + lane % 4 * 2 + e % 2;
                    s[m][2 * page + n][e] = key < seen ? d[n][e] * heads.scale : MASKED;
                }
        }
    }
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float high = MASKED;
#pragma unroll
            for (int n = 0; n < 4; n++) high = fmaxf(high, fmaxf(s[m][n][2 * i], s[m][n][2 * i + 1]));
            high = quad_max(high);
            if (lane % 4 == 0) highs[warp * TILE + m * 16 + i * 8 + lane / 4] = high;
        }
    __syncthreads(); // nobody reads queries or keys
    load_page(values, 0);
    load_page(values, 1);
    const auto top = [&](int pair) { return fmaxf(fmaxf(highs[pair], highs[TILE + pair]), fmaxf(highs[2 * TILE + pair], highs[3 * TILE + pair])); };
#pragma unroll
    for (int m = 0; m < 4; m++) {
        if (m >= tiles) break;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int pair = m * 16 + i * 8 + lane / 4;
            const float high = top(pair);
            float total = 0;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const float a = fast_exp2(s[m][n][2 * i] - high), b = fast_exp2(s[m][n][2 * i + 1] - high);
                total += a + b;
                store4(p_tile + unit_at(pair, n / 2 * 8 + warp * 2 + n % 2) + lane % 4 * 2, pack_bf16(a, b));
            }
            total = quad_sum(total);
            if (lane % 4 == 0) totals[warp * TILE + pair] = total;
        }
    }
    cp_async_wait<0>();
    __syncthreads();
    for (int m = 0; m < tiles; m++) {
        float d[D / 32][4] = {};
        multiply(d, p_tile, m * 16, pages, warp * (D / 32));
        if (TILE < seen) multiply(d, p_tile + TILE * TILE, m * 16, pages + PAGE, warp * (D / 32));
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int pair = m * 16 + i * 8 + lane / 4;
            if (pair >= count) continue;
            const int row = (unit.first + pair) / group;
            const i64 to = (i64)(slots[row] + unit.split) * heads.heads + head + (unit.first + pair) % group;
            if (warp == 0 && lane % 4 == 0) {
                statistics[2 * to] = top(pair);
                statistics[2 * to + 1] = totals[pair] + totals[TILE + pair] + totals[2 * TILE + pair] + totals[3 * TILE + pair];
            }
#pragma unroll
            for (int n = 0; n < D / 32; n++) {
                const int column = warp * (D / 4) + n * 8 + lane % 4 * 2;
                if (column >= dim) continue;
                sums[to * dim + column] = d[n][2 * i];
                sums[to * dim + column + 1] = d[n][2 * i + 1];
            }
        }
    }
}

// Block (h, u) takes unit u of units [units][4] under key head h. Dynamic shared memory: 128 max(D, 128) + 256 D bytes.
#define DECODE                                                                                                                       \
    const bf16 *__restrict__ q, const bf16 *__restrict__ keys, const bf16 *__restrict__ values, i64 q_stride, int heads, int kv_heads, \
        int dim, float scale, const int4 *__restrict__ units, const int *__restrict__ position, const int *__restrict__ table,         \
        const int *__restrict__ blocks, const int *__restrict__ slots, float *sums, float *statistics
#define DECODE_ARGUMENTS                                                                                                           \
    q, keys, values, q_stride, Heads{heads, kv_heads, dim, scale}, Unit{units[blockIdx.y].x, units[blockIdx.y].y, units[blockIdx.y].z}, \
        position, table, blocks, slots, sums, statistics

extern "C" __global__ void __launch_bounds__(128, 2) attention_decode_64(DECODE) { decode<64>(DECODE_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(128, 2) attention_decode_128(DECODE) { decode<128>(DECODE_ARGUMENTS); }
extern "C" __global__ void __launch_bounds__(128, 2) attention_decode_256(DECODE) { decode<256>(DECODE_ARGUMENTS); }

// y [., heads dim], rows first_row to before end_row: the splits of each row, from slots[row] on, put together in their order.
// A warp takes one head of one row.
extern "C" __global__ void __launch_bounds__(256)
attention_decode_combine(const float* __restrict__ sums, const float* __restrict__ statistics, const bf16* __restrict__ gate, bf16* y, i64 gate_stride, i64 y_stride,
                         int gate_head, const int* __restrict__ position, const int* __restrict__ slots, int first_row, int end_row, int heads, int dim) {
    const int at = blockIdx.x * 8 + warp_id(), row = first_row + at / heads, head = at % heads, column = lane_id() * 8;
    if (row >= end_row || column >= dim) return;
    const int splits = position[row] / SPLIT + 1;
    const i64 first = (i64)slots[row] * heads + head;
    float top = MASKED, total = 0, y8[8] = {};
    for (int i = 0; i < splits; i++) top = fmaxf(top, statistics[2 * (first + (i64)i * heads)]);
    for (int i = 0; i < splits; i++) {
        const i64 from = first + (i64)i * heads;
        const float weight = fast_exp2(statistics[2 * from] - top);
        total += weight * statistics[2 * from + 1];
#pragma unroll
        for (int e = 0; e < 8; e++) y8[e] += weight * sums[from * dim + column + e];
    }
    float z[8];
    if (gate) unpack8(z, load16(gate + row * gate_stride + head * gate_head + column));
#pragma unroll
    for (int e = 0; e < 8; e++) y8[e] *= (gate ? sigmoid(z[e]) : 1) / total;
    store16(y + row * y_stride + head * dim + column, pack8(y8));
}
