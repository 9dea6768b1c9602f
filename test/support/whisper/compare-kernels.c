/* compare-kernels LIBRARY KERNELS: the largest difference between the loops of two libraries, for random values, relative to the sizes. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void dot(int, float *, size_t, const void *, size_t, const void *, size_t, int);
typedef void convert(const float *, uint16_t *, int64_t);
static void *libraries[2];
static uint64_t state = 42;

static uint32_t number(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* A half of 2^-4 to 2^3, of either sign. */
static uint16_t half(void) { return (uint16_t)((number() & 0x83ff) | ((11 + number() % 8) << 10)); }
static float single(void) { return (float)((int)(number() % 20001) - 10000) / 1000; }

/* Blocks of 32 values, of so many bytes, that begin with halves. */
struct layout { size_t bytes, halves; };

static void fill(uint8_t *at, int n, struct layout layout)
{
	if (layout.halves == 0 && layout.bytes == 128)
		for (int i = 0; i < n; i++)
			memcpy(at + 4 * i, &(float){single()}, 4);
	else if (layout.halves == 0)
		for (int i = 0; i < n; i++)
			memcpy(at + 2 * i, &(uint16_t){half()}, 2);
	else
		for (int block = 0; block < n / 32; block++, at += layout.bytes) {
			for (size_t i = 0; i < layout.bytes; i++)
				at[i] = (uint8_t)(number() % 255 + 129);
			for (size_t i = 0; i < layout.halves; i++)
				memcpy(at + 2 * i, &(uint16_t){half()}, 2);
		}
}

static int compare(const char *name, struct layout of_x, struct layout of_y, int step)
{
	static uint8_t x[1 << 16], y[1 << 16];
	dot *functions[2];
	for (int i = 0; i < 2; i++)
		functions[i] = (dot *)dlsym(libraries[i], name);
	if (!functions[0] || !functions[1]) return printf("%s is missing\n", name), 1;
	double worst = 0;
	for (int n = step; n <= 4096; n += n < 256 ? step : 37 * step)
		for (int round = 0; round < 20; round++) {
			float results[2];
			fill(x, n, of_x);
			fill(y, n, of_y);
			for (int i = 0; i < 2; i++)
				functions[i](n, &results[i], 0, x, 0, y, 0, 1);
			/* The sum of n products, each of at most some hundreds of thousands, in another order. */
			const double error = fabs((double)results[0] - results[1]) / (n * 1e4);
			if (!(error <= worst)) worst = error;
		}
	printf("%s %.1e\n", name, worst);
	return worst < 1e-6 ? 0 : 1;
}

static int compare_conversion(void)
{
	convert *functions[2];
	static float from[5003];
	static uint16_t to[2][5003];
	for (int i = 0; i < 5003; i++) from[i] = i < 20 ? ldexpf(single(), -i) : single() * (i % 7 == 0 ? 9000 : 1);
	for (int i = 0; i < 2; i++) {
		functions[i] = (convert *)dlsym(libraries[i], "ggml_cpu_fp32_to_fp16");
		if (!functions[i]) return printf("the conversion is missing\n"), 1;
		for (int at = 0, n = 1; at + n <= 5003; at += n++) functions[i](from + at, to[i] + at, n);
	}
	const int is_same = memcmp(to[0], to[1], sizeof(to[0])) == 0;
	printf("ggml_cpu_fp32_to_fp16 %s\n", is_same ? "same" : "other");
	return !is_same;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 2 && argc == 3; i++)
		if (!(libraries[i] = dlopen(argv[1 + i], RTLD_LAZY | RTLD_LOCAL))) return printf("%s\n", dlerror()), 1;
	/* The library fills its tables with the first context. */
	void (*init)(void) = (void (*)(void))dlsym(libraries[0], "ggml_cpu_init");
	if (!init) return printf("the library has no ggml_cpu_init\n"), 1;
	init();
	const struct layout singles = {128, 0}, halves = {64, 0}, q8_0 = {34, 1}, q8_1 = {36, 2}, q5_0 = {22, 1}, q5_1 = {24, 2};
	return compare("ggml_vec_dot_f32", singles, singles, 1) + compare("ggml_vec_dot_f16", halves, halves, 1) +
		compare("ggml_vec_dot_q8_0_q8_0", q8_0, q8_0, 32) + compare("ggml_vec_dot_q5_0_q8_0", q5_0, q8_0, 32) +
		compare("ggml_vec_dot_q5_1_q8_1", q5_1, q8_1, 32) + compare_conversion();
}
