/*
 * The inner loops of whisper.cpp for processors with AVX2, FMA and F16C. Its library for x86-64 is compiled for any processor, and has
 * only the scalar ones: nine tenths of the time is in them. It exports them and calls them through its table of types (type_traits_cpu
 * in ggml-cpu.c of the same version), so those of a library that was loaded before it, for all, take their place. Signatures and layouts
 * of blocks are those of ggml-cpu.h, ggml-common.h and quants.c; `n` is a multiple of 32 for blocks, and one row is computed at once.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/** Of 32 values each, as in ggml-common.h; `d`, `m` and `s` are 16-bit floats. */
typedef struct { uint16_t d; int8_t qs[32]; } q8_0;
typedef struct { uint16_t d, s; int8_t qs[32]; } q8_1;
typedef struct { uint16_t d; uint8_t qh[4], qs[16]; } q5_0;
typedef struct { uint16_t d, m; uint8_t qh[4], qs[16]; } q5_1;
_Static_assert(sizeof(q8_0) == 34 && sizeof(q8_1) == 36 && sizeof(q5_0) == 22 && sizeof(q5_1) == 24, "no padding");

#define UNUSED_ROWS (void)bs, (void)bx, (void)by, (void)nrc

static inline float sum_of(__m256 values)
{
	__m128 sum = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
	sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
	return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

static inline __m256 halves(const uint16_t *at)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)at));
}

void ggml_vec_dot_f16(int n, float *s, size_t bs, const uint16_t *x, size_t bx, const uint16_t *y, size_t by, int nrc)
{
	UNUSED_ROWS;
	__m256 sums[4] = {0};
	int i = 0;
	for (; i + 32 <= n; i += 32)
		for (int k = 0; k < 4; k++)
			sums[k] = _mm256_fmadd_ps(halves(x + i + 8 * k), halves(y + i + 8 * k), sums[k]);
	float sum = sum_of(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
	for (; i < n; i++)
		sum += _cvtsh_ss(x[i]) * _cvtsh_ss(y[i]);
	*s = sum;
}

void ggml_vec_dot_f32(int n, float *s, size_t bs, const float *x, size_t bx, const float *y, size_t by, int nrc)
{
	UNUSED_ROWS;
	__m256 sums[4] = {0};
	int i = 0;
	for (; i + 32 <= n; i += 32)
		for (int k = 0; k < 4; k++)
			sums[k] = _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 8 * k), _mm256_loadu_ps(y + i + 8 * k), sums[k]);
	float sum = sum_of(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
	for (; i < n; i++)
		sum += x[i] * y[i];
	*s = sum;
}

void ggml_cpu_fp32_to_fp16(const float *x, uint16_t *y, int64_t n)
{
	int64_t i = 0;
	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
	for (; i < n; i++)
		y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

/** Products of signed bytes, summed by fours. */
static inline __m256 products(__m256i x, __m256i y)
{
	const __m256i magnitudes = _mm256_sign_epi8(x, x);
	const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(y, x));
	return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static inline __m256i bytes(const int8_t *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

/** The 32 numbers of 0 to 31: nibbles, and their fifth bits. */
static inline __m256i fives(const uint8_t *qs, const uint8_t *qh)
{
	const __m128i packed = _mm_loadu_si128((const __m128i *)qs);
	const __m256i nibbles = _mm256_and_si256(
		_mm256_set_m128i(_mm_srli_epi16(packed, 4), packed), _mm256_set1_epi8(15));
	const uint32_t high = (uint32_t)qh[0] | (uint32_t)qh[1] << 8 | (uint32_t)qh[2] << 16 | (uint32_t)qh[3] << 24;
	/* Each byte of a lane gets the byte of `high` that has its bit. */
	const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)high),
		_mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
	const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201);
	const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits);
	return _mm256_or_si256(nibbles, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
}

void ggml_vec_dot_q8_0_q8_0(int n, float *s, size_t bs, const void *vx, size_t bx, const void *vy, size_t by, int nrc)
{
	UNUSED_ROWS;
	const q8_0 *x = vx, *y = vy;
	__m256 sums = _mm256_setzero_ps();
	for (int i = 0; i < n / 32; i++) {
		const __m256 scale = _mm256_set1_ps(_cvtsh_ss(x[i].d) * _cvtsh_ss(y[i].d));
		sums = _mm256_fmadd_ps(scale, products(bytes(x[i].qs), bytes(y[i].qs)), sums);
	}
	*s = sum_of(sums);
}

void ggml_vec_dot_q5_0_q8_0(int n, float *s, size_t bs, const void *vx, size_t bx, const void *vy, size_t by, int nrc)
{
	UNUSED_ROWS;
	const q5_0 *x = vx;
	const q8_0 *y = vy;
	__m256 sums = _mm256_setzero_ps();
	for (int i = 0; i < n / 32; i++) {
		const __m256 scale = _mm256_set1_ps(_cvtsh_ss(x[i].d) * _cvtsh_ss(y[i].d));
		const __m256i values = _mm256_sub_epi8(fives(x[i].qs, x[i].qh), _mm256_set1_epi8(16));
		sums = _mm256_fmadd_ps(scale, products(values, bytes(y[i].qs)), sums);
	}
	*s = sum_of(sums);
}

void ggml_vec_dot_q5_1_q8_1(int n, float *s, size_t bs, const void *vx, size_t bx, const void *vy, size_t by, int nrc)
{
	UNUSED_ROWS;
	const q5_1 *x = vx;
	const q8_1 *y = vy;
	__m256 sums = _mm256_setzero_ps();
	float offsets = 0;
	for (int i = 0; i < n / 32; i++) {
		const __m256 scale = _mm256_set1_ps(_cvtsh_ss(x[i].d) * _cvtsh_ss(y[i].d));
		sums = _mm256_fmadd_ps(scale, products(fives(x[i].qs, x[i].qh), bytes(y[i].qs)), sums);
		offsets += _cvtsh_ss(x[i].m) * _cvtsh_ss(y[i].s);
	}
	*s = sum_of(sums) + offsets;
}
