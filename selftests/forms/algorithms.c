// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small computations: atomics, reduction, scan, sorts, matrix product, stencil, launches that each
 * wait for a copy
 */
#include "forms.h"

static uint32_t word_at(CUdeviceptr p)
{
	uint32_t v;

	DO(cuMemcpyDtoH(&v, p, 4));
	return v;
}

static uint32_t *host_words(size_t n)
{
	uint32_t *p = malloc(n * 4);

	if (!p)
		abort();
	for (size_t i = 0; i < n; i++)
		p[i] = mix((uint32_t)i, 2);
	return p;
}

static CUdeviceptr device_words(const uint32_t *host, size_t n)
{
	CUdeviceptr p;

	DO(cuMemAlloc(&p, n * 4));
	DO(cuMemcpyHtoD(p, host, n * 4));
	return p;
}

#define TURNS 6u

static void atomics(const char *what, const char *kernel, bool shared)
{
	uint32_t n = ROUNDS, sums[66] = { 0 }, got[66];
	CUdeviceptr p;
	CUfunction f;

	form_begin();
	f = form_function(kernel);
	p = device_words(sums, 66);
	for (uint32_t k = 0; k < TURNS; k++) {
		LAUNCH(f, form_blocks, THREADS, NULL, &p, &n);
		DO(cuMemcpyDtoH(got, p, sizeof(got)));
		for (uint32_t i = 0; i < form_blocks * THREADS; i++) {
			uint32_t x = mix(i, n);

			sums[x & 63] += i;
			if (!shared) {
				sums[64] = x > sums[64] ? x : sums[64];
				sums[65] ^= x;
			}
		}
		CHECK(!memcmp(got, sums, sizeof(sums)));
	}
	printf("%s %016llx\n", what, (unsigned long long)hash_of(got, sizeof(got)));
}

static void atomics_global(void)
{
	atomics("atomics-global", "add_global", false);
}

static void atomics_shared(void)
{
	atomics("atomics-shared", "add_shared", true);
}

/* One atomic for all lanes of a warp that come: each finds a place of its own */
static void atomics_warp(void)
{
	uint32_t n = ROUNDS, words, *places, want = 0;
	CUdeviceptr sums, at;
	unsigned char *seen;
	CUfunction f;

	form_begin();
	f = form_function("add_warp");
	words = form_blocks * THREADS;
	places = calloc(words, 4);
	seen = malloc(words);
	if (!places || !seen)
		abort();
	DO(cuMemAlloc(&sums, 4));
	DO(cuMemAlloc(&at, words * 4));
	for (uint32_t i = 0; i < words; i++)
		want += mix(i, n) & 1;
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cuMemsetD32(sums, 0, 1));
		LAUNCH(f, form_blocks, THREADS, NULL, &sums, &at, &n);
		DO(cuMemcpyDtoH(places, at, words * 4));
		CHECK(word_at(sums) == want);
		memset(seen, 0, words);
		for (uint32_t i = 0; i < want; i++) {
			CHECK(places[i] < words && !seen[places[i]] && mix(places[i], n) & 1);
			seen[places[i]] = 1;
		}
	}
	free(places);
	free(seen);
	printf("atomics-warp %u\n", want);
}

static void reduction(void)
{
	uint32_t n = ROUNDS, words, *host, want = 0;
	CUdeviceptr in, sum;
	CUfunction f;

	form_begin();
	f = form_function("reduce");
	words = form_blocks * THREADS;
	host = host_words(words);
	in = device_words(host, words);
	DO(cuMemAlloc(&sum, 4));
	for (uint32_t i = 0; i < words; i++)
		want += mix(host[i], n);
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cuMemsetD32(sum, 0, 1));
		LAUNCH(f, form_blocks, THREADS, NULL, &in, &sum, &n);
		CHECK(word_at(sum) == want);
	}
	free(host);
	printf("reduction %08x\n", want);
}

static void scan(void)
{
	CUdeviceptr totals;
	CUfunction f, add;
	struct words w;
	uint32_t *host, sum;

	form_begin();
	f = form_function("scan");
	add = form_function("scan_add");
	w = words_new(192 * THREADS);
	host = host_words(w.n);
	words_expect(&w, host);
	DO(cuMemcpyHtoD(w.at, host, w.n * 4));
	DO(cuMemAlloc(&totals, 192 * 4));
	for (uint32_t k = 0; k < 4; k++) {
		LAUNCH(f, 192, THREADS, NULL, &w.at, &totals);
		LAUNCH(add, 192, THREADS, NULL, &w.at, &totals);
		sum = 0;
		for (size_t i = 0; i < w.n; i++)
			w.want[i] = sum += w.want[i];
	}
	free(host);
	words_show("scan", &w);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void sort_bitonic(void)
{
	struct words w;
	uint32_t *host;
	CUfunction f;

	form_begin();
	f = form_function("bitonic");
	w = words_new(4096);
	host = host_words(w.n);
	DO(cuMemcpyHtoD(w.at, host, w.n * 4));
	for (uint32_t k = 2; k <= w.n; k *= 2)
		for (uint32_t j = k / 2; j; j /= 2)
			LAUNCH(f, (unsigned int)(w.n / THREADS), THREADS, NULL, &w.at, &j, &k);
	qsort(host, w.n, 4, by_value);
	words_expect(&w, host);
	free(host);
	words_show("sort-bitonic", &w);
}

/* By counting, with atomics; the positions come from the host */
static void sort_counting(void)
{
	enum { KEYS = 64 };
	CUdeviceptr keys, counts;
	CUfunction count, place;
	uint32_t host_counts[KEYS], *host, sum, c;
	struct words w;

	form_begin();
	count = form_function("count_keys");
	place = form_function("place_keys");
	w = words_new(form_blocks * THREADS);
	host = host_words(w.n);
	DO(cuMemAlloc(&counts, sizeof(host_counts)));
	for (uint32_t k = 0; k < 4; k++) {
		for (size_t i = 0; i < w.n; i++)
			host[i] = mix((uint32_t)i, 2 + k) % KEYS;
		keys = device_words(host, w.n);
		DO(cuMemsetD32(counts, 0, KEYS));
		LAUNCH(count, form_blocks, THREADS, NULL, &keys, &counts);
		DO(cuMemcpyDtoH(host_counts, counts, sizeof(host_counts)));
		sum = 0;
		for (uint32_t i = 0; i < KEYS; i++) {
			c = host_counts[i];
			host_counts[i] = sum;
			sum += c;
		}
		CHECK(sum == w.n);
		DO(cuMemcpyHtoD(counts, host_counts, sizeof(host_counts)));
		LAUNCH(place, form_blocks, THREADS, NULL, &keys, &counts, &w.at);
		DO(cuMemFree(keys));
		qsort(host, w.n, 4, by_value);
		words_expect(&w, host);
		words_check(&w);
	}
	free(host);
	words_show("sort-counting", &w);
}

/* Of small integers, so that any order of the sums gives the same */
static void matrix_product(void)
{
	enum { N = 64 };
	static float a[N * N], b[N * N], c[N * N];
	uint32_t n = N;
	CUdeviceptr da, db, dc;
	CUfunction f;
	float sum;

	form_begin();
	f = form_function("matmul");
	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 7 - 3);
		b[i] = (float)(i % 5 - 2);
	}
	DO(cuMemAlloc(&da, sizeof(a)));
	DO(cuMemAlloc(&db, sizeof(b)));
	DO(cuMemAlloc(&dc, sizeof(c)));
	DO(cuMemcpyHtoD(da, a, sizeof(a)));
	DO(cuMemcpyHtoD(db, b, sizeof(b)));
	for (int k = 0; k < 3; k++) {
		DO(cuMemsetD8(dc, 0xff, sizeof(c)));
		DO(cuLaunchKernel(f, N / 8, N / 8, 1, 8, 8, 1, 0, NULL,
				  (void *[]){ &da, &db, &dc, &n }, NULL));
		DO(cuMemcpyDtoH(c, dc, sizeof(c)));
		for (int y = 0; y < N; y++) {
			for (int x = 0; x < N; x++) {
				sum = 0;
				for (int i = 0; i < N; i++)
					sum += a[y * N + i] * b[i * N + x];
				CHECK(c[y * N + x] == sum);
			}
		}
	}
	printf("matrix-product %016llx\n", (unsigned long long)hash_of(c, sizeof(c)));
}

/* Each step waits for a copy of a few words */
static void stencil(void)
{
	enum { WIDTH = 128, HEIGHT = 96 };
	static uint32_t field[2][WIDTH * HEIGHT], row[WIDTH];
	uint32_t width = WIDTH, height = HEIGHT;
	CUdeviceptr p[2];
	CUfunction f;

	form_begin();
	f = form_function("stencil");
	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
		field[0][i] = mix(i, 3);
	for (int i = 0; i < 2; i++)
		p[i] = device_words(field[i], WIDTH * HEIGHT);
	for (int k = 0; k < 40; k++) {
		const uint32_t *in = field[k % 2];

		DO(cuLaunchKernel(f, WIDTH / 16, HEIGHT / 4, 1, 16, 4, 1, 0, NULL,
				  (void *[]){ &p[k % 2], &p[1 - k % 2], &width, &height }, NULL));
		DO(cuMemcpyDtoH(row, p[1 - k % 2] + (CUdeviceptr)(k % HEIGHT) * WIDTH * 4,
				sizeof(row)));
		for (uint32_t y = 0; y < HEIGHT; y++)
			for (uint32_t x = 0; x < WIDTH; x++)
				field[1 - k % 2][y * WIDTH + x] =
					in[y * WIDTH + x] * 5u +
					in[y * WIDTH + (x + WIDTH - 1) % WIDTH] +
					2u * in[y * WIDTH + (x + 1) % WIDTH] +
					3u * in[(y + HEIGHT - 1) % HEIGHT * WIDTH + x] +
					in[(y + 1) % HEIGHT * WIDTH + x];
		CHECK(!memcmp(row, field[1 - k % 2] + k % HEIGHT * WIDTH, sizeof(row)));
	}
	printf("stencil %016llx\n", (unsigned long long)hash_of(row, sizeof(row)));
}

/* Big launches with many registers, each followed by a synchronous copy */
static void heavy_copy(void)
{
	uint32_t n = 2 * form_scale, *got, x[48];
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("heavy");
	w = words_new((size_t)2 * form_blocks * THREADS);
	got = malloc(w.n * 4);
	if (!got)
		abort();
	for (int turn = 0; turn < 8; turn++) {
		LAUNCH(f, 2 * form_blocks, THREADS, NULL, &w.at, &n);
		DO(cuMemcpyDtoH(got, w.at, w.n * 4));
		for (uint32_t i = 0; i < w.n; i += w.stride) {
			uint32_t sum = w.want[i];

			for (uint32_t k = 0; k < 48; k++)
				x[k] = sum + i * (k + 1);
			for (uint32_t r = 0; r < n; r++)
				for (uint32_t k = 0; k < 48; k++)
					x[k] = x[k] * 1664525u +
					       (x[(k + 7) % 48] ^ (x[(k + 23) % 48] >> 3));
			for (uint32_t k = 0; k < 48; k++)
				sum = sum * 31u + x[k];
			w.want[i] = sum;
			CHECK(got[i] == sum);
		}
	}
	free(got);
	words_show("heavy-copy", &w);
}

/* One long launch: long enough to be evicted and grown many times */
static void long_kernel(void)
{
	struct words w;

	form_begin();
	w = words_new(form_blocks * THREADS);
	work(form_function("work"), NULL, &w, 80 * ROUNDS, 1);
	words_show("long-kernel", &w);
}

/* Blocks so long that they are left in their middle */
static void long_blocks(void)
{
	struct words w;

	form_begin();
	w = words_new((size_t)16 * form_scale * THREADS);
	work(form_function("work"), NULL, &w, 400 * ROUNDS, 1);
	work(form_function("work"), NULL, &w, 400 * ROUNDS, 2);
	words_show("long-blocks", &w);
}

const struct form algorithm_forms[] = {
	{ "atomics-global", atomics_global },
	{ "atomics-shared", atomics_shared },
	{ "atomics-warp", atomics_warp },
	{ "reduction", reduction },
	{ "scan", scan },
	{ "sort-bitonic", sort_bitonic },
	{ "sort-counting", sort_counting },
	{ "matrix-product", matrix_product },
	{ "stencil", stencil },
	{ "heavy-copy", heavy_copy },
	{ "long-kernel", long_kernel },
	{ "long-blocks", long_blocks },
	{ 0 },
};
