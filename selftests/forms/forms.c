// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What all forms share: device, module, checked buffers; and main(), which finds the one that is
 * asked for.
 */
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>
#include "forms.h"

unsigned int form_scale = 1, form_blocks;
CUdevice form_device;
CUcontext form_context;
CUmodule form_module;
const char *form_image;

void form_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(1);
}

void form_expect(CUresult rc, CUresult want, const char *what)
{
	if (rc != want)
		form_fail("%s: result %d, not %d", what, (int)rc, (int)want);
}

/* kernels.ptx, beside the program */
void form_read_image(void)
{
	char path[PATH_MAX], *text = calloc(1, 1 << 20);
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	FILE *f;

	if (!text || n <= 0)
		abort();
	path[n] = '\0';
	strcat(dirname(path), "/kernels.ptx");
	f = fopen(path, "re");
	if (!f || !fread(text, 1, (1 << 20) - 1, f))
		form_fail("%s: cannot be read", path);
	fclose(f);
	form_image = text;
}

void form_begin(void)
{
	form_read_image();
	DO(cuInit(0));
	DO(cuDeviceGet(&form_device, 0));
	DO(cuDevicePrimaryCtxRetain(&form_context, form_device));
	DO(cuCtxSetCurrent(form_context));
	DO(cuModuleLoadData(&form_module, form_image));
}

CUfunction form_function(const char *name)
{
	CUfunction f;

	form_expect(cuModuleGetFunction(&f, form_module, name), CUDA_SUCCESS, name);
	return f;
}

struct words words_at(CUdeviceptr at, size_t n)
{
	struct words w = { .at = at, .n = n, .want = malloc(n * 4), .stride = form_scale };

	if (!w.want)
		abort();
	for (size_t i = 0; i < n; i++)
		w.want[i] = 12345;
	DO(cuMemsetD32(w.at, 12345, n));
	return w;
}

struct words words_new(size_t n)
{
	CUdeviceptr at;

	DO(cuMemAlloc(&at, n * 4));
	return words_at(at, n);
}

void words_expect(struct words *w, const uint32_t *values)
{
	memcpy(w->want, values, w->n * 4);
	w->stride = 1;
}

uint64_t hash_of(const void *data, size_t size)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < size; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 1099511628211ull;
	return h;
}

uint64_t words_check(struct words *w)
{
	uint32_t *got = malloc(w->n * 4);
	uint64_t h;

	if (!got)
		abort();
	DO(cuMemcpyDtoH(got, w->at, w->n * 4));
	for (size_t i = 0; i < w->n; i += w->stride)
		if (got[i] != w->want[i])
			form_fail("word %zu of %zu is %u, not %u", i, w->n, got[i], w->want[i]);
	h = hash_of(got, w->n * 4);
	free(got);
	return h;
}

void words_show(const char *what, struct words *w)
{
	printf("%s %016llx\n", what, (unsigned long long)words_check(w));
	fflush(stdout);
	DO(cuMemFree(w->at));
	free(w->want);
}

void launch(CUfunction f, unsigned int blocks, unsigned int threads, CUstream s, void **params)
{
	DO(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL));
}

void work_launch(CUfunction f, CUstream s, const struct words *w, uint32_t n, uint32_t seed)
{
	CUdeviceptr at = w->at;

	LAUNCH(f, (unsigned int)(w->n / THREADS), THREADS, s, &at, &n, &seed);
}

void work_expect(struct words *w, uint32_t n, uint32_t seed)
{
	for (size_t i = 0; i < w->n; i += w->stride)
		w->want[i] = mix(w->want[i] ^ seed ^ (uint32_t)i, n);
}

void work(CUfunction f, CUstream s, struct words *w, uint32_t n, uint32_t seed)
{
	work_launch(f, s, w, n * form_scale, seed);
	work_expect(w, n * form_scale, seed);
}

struct flag flag_new(void)
{
	struct flag f;
	void *p;

	DO(cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, 4096);
	f.host = p;
	DO(cuMemHostGetDevicePointer(&f.at, p, 0));
	return f;
}

void flag_set(const struct flag *f)
{
	__atomic_store_n(f->host, 1, __ATOMIC_RELEASE);
}

void flag_free(struct flag *f)
{
	DO(cuMemFreeHost((void *)f->host));
}

void hold(CUstream s, const struct flag *f)
{
	CUdeviceptr at = f->at;

	LAUNCH(form_function("hold"), 1, 1, s, &at);
}

static const struct form *const areas[] = {
	launch_forms, stream_forms, context_forms,   module_forms,
	memory_forms, graph_forms,  algorithm_forms, waiting_forms, process_forms,
	pool_forms,
};

int main(int argc, char **argv)
{
	const char *scale = getenv("FORMS_SCALE");
	bool list = argc == 2 && !strcmp(argv[1], "--list");

	if (scale)
		form_scale = (unsigned int)strtoul(scale, NULL, 10);
	form_scale += !form_scale;
	form_blocks = 192 * form_scale;
	if (argc != 2) {
		fprintf(stderr, "usage: %s NAME | --list\n", argv[0]);
		return 2;
	}
	for (size_t a = 0; a < sizeof(areas) / sizeof(*areas); a++) {
		for (const struct form *f = areas[a]; f->name; f++) {
			if (list) {
				puts(f->name);
			} else if (!strcmp(f->name, argv[1])) {
				f->run();
				return 0;
			}
		}
	}
	if (!list)
		fprintf(stderr, "%s: no form %s\n", argv[0], argv[1]);
	return list ? 0 : 2;
}
