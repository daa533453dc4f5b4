// The AdamW step (formulas: spec.go), on float32 master weights. A thread has eight elements of
// flat arrays. Decay and step are taken off a weight together: 1 - LR lambda, the usual
// factor, has too few digits in float32.
#include "dialect.cuh"

// What all elements share, as in spec.go; rest1 and rest2 are 1 - beta1 and 1 - beta2.
struct Update {
    float rest1, rest2, eps, scale, step, correct, decay;
};

// Moves m, v and p of eight elements by gradient g.
DEVICE void update(float (&p)[8], float (&m)[8], float (&v)[8], const float (&g)[8], const Update& u) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float x = u.scale * g[i];
        m[i] += u.rest1 * (x - m[i]);
        v[i] += u.rest2 * (x * x - v[i]);
        p[i] -= u.decay * p[i] + u.step * m[i] / (sqrtf(v[i]) * u.correct + u.eps);
    }
}

DEVICE i64 first_element() { return ((i64)blockIdx.x * 256 + threadIdx.x) * 8; }

// Updates master, m and v [n] by the gradient g, and p, which is master in bf16; p is null for
// a weight that is float32 itself.
extern "C" __global__ void __launch_bounds__(256)
adamw_step(bf16* p, float* master, const float* g, float* m, float* v, i64 n, float rest1, float rest2, float eps, float scale,
           float step, float correct, float decay) {
    const i64 at = first_element();
    if (at >= n) return;
    const int count = (int)min(n - at, (i64)8);
    float ps[8], gs[8], ms[8], vs[8];
    load_f32(gs, g + at, count);
    load_f32(ms, m + at, count);
    load_f32(vs, v + at, count);
    load_f32(ps, master + at, count);
    update(ps, ms, vs, gs, {rest1, rest2, eps, scale, step, correct, decay});
    store_f32(m + at, ms, count);
    store_f32(v + at, vs, count);
    store_f32(master + at, ps, count);
    if (p) store8_bf16(p + at, ps, count);
}

// Random bits: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011) of a counter, under a key.
DEVICE uint4 philox(u64 key, u64 counter, u32 purpose) {
    u32 x0 = (u32)counter, x1 = (u32)(counter >> 32), x2 = purpose, x3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u32 high0 = __umulhi(0xD2511F53u, x0), low0 = 0xD2511F53u * x0, high1 = __umulhi(0xCD9E8D57u, x2), low1 = 0xCD9E8D57u * x2;
        x0 = high1 ^ x1 ^ k0, x1 = low1, x2 = high0 ^ x3 ^ k1, x3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return make_uint4(x0, x1, x2, x3);
}

// The bf16 below or above x, the nearer the likelier, by 16 random bits: on average x.
DEVICE u32 round_randomly(float x, u32 random) {
    const u32 u = __float_as_uint(x);
    return (u & 0x7f800000u) == 0x7f800000u ? to_bf16(x).bits : u + (random & 0xffff) >> 16;
}

DEVICE void store8_randomly(bf16* p, const float (&x)[8], uint4 random, int count) {
    const u32 r[4] = {random.x, random.y, random.z, random.w};
    float rounded[8];
#pragma unroll
    for (int i = 0; i < 8; i++) rounded[i] = __uint_as_float(round_randomly(x[i], r[i / 2] >> i % 2 * 16) << 16);
    store8_bf16(p, rounded, count);
}

// The same with m and v in bf16, rounded at random: to the nearest, most of their changes would
// be lost. key is the step's and the parameter's.
extern "C" __global__ void __launch_bounds__(256)
adamw_step_bf16(bf16* p, float* master, const float* g, bf16* m, bf16* v, i64 n, float rest1, float rest2, float eps, float scale,
                float step, float correct, float decay, u64 key) {
    const i64 at = first_element();
    if (at >= n) return;
    const int count = (int)min(n - at, (i64)8);
    float ps[8], gs[8], ms[8], vs[8];
    const uint4 packed_m = load8_packed(m + at, count), packed_v = load8_packed(v + at, count);
    load_f32(gs, g + at, count);
    load_f32(ps, master + at, count);
    unpack8(ms, packed_m);
    unpack8(vs, packed_v);
    update(ps, ms, vs, gs, {rest1, rest2, eps, scale, step, correct, decay});
    store8_randomly(m + at, ms, philox(key, at / 8, 0), count);
    store8_randomly(v + at, vs, philox(key, at / 8, 1), count);
    store_f32(master + at, ps, count);
    if (p) store8_bf16(p + at, ps, count);
}

// master [n] = the weight p.
extern "C" __global__ void __launch_bounds__(256) adamw_to_float32(const bf16* p, float* master, i64 n) {
    const i64 at = first_element();
    if (at >= n) return;
    float v[8];
    load8_bf16(v, p + at, (int)min(n - at, (i64)8));
    store_f32(master + at, v, (int)min(n - at, (i64)8));
}
