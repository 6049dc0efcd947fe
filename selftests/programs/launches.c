/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An unmodified program whose kernels are those of PTX files with a launch list beside them
 * (selftests/rewriter/corpus/README): launches each, in order, on one stream, and prints a line
 * with the checksum of all its buffers.
 *
 *	launches-drv [--rounds N] FILE.ptx...
 *
 * A round launches on what the one before left; kernels that must not be rewritten are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "selftests/programs/drv.h"
#include "selftests/vgpu/test-rewrite.h"

static CUstream stream;

static void *room(size_t size)
{
	void *p = calloc(1, size + 1);

	if (!p)
		abort();
	return p;
}

static uint64_t checksum(uint64_t h, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	return h;
}

static void run(const char *path, CUmodule module, const struct test_launch *t, unsigned int rounds)
{
	uint8_t bytes[LAUNCH_PARAMS_MAX][256];
	CUdeviceptr buffer[LAUNCH_PARAMS_MAX] = { 0 };
	void *params[LAUNCH_PARAMS_MAX];
	uint64_t sum = 14695981039346656037u;
	CUfunction f;

	check(cuModuleGetFunction(&f, module, t->kernel), t->kernel);
	for (unsigned int i = 0; i < t->n_params; i++) {
		const struct test_param *p = &t->params[i];
		uint8_t *host;

		params[i] = bytes[i];
		for (unsigned int k = 0; k < sizeof(bytes[i]); k++)
			bytes[i][k] = (uint8_t)(k * 7 + 1);
		if (p->kind == PARAM_VALUE)
			memcpy(bytes[i], &p->value, sizeof(p->value));
		if (p->kind != PARAM_BUFFER)
			continue;
		host = room(p->size);
		launch_fill(p, host);
		check(cuMemAlloc(&buffer[i], p->size ? p->size : 1), "cuMemAlloc");
		check(cuMemcpyHtoD(buffer[i], host, p->size), "cuMemcpyHtoD");
		params[i] = &buffer[i];
		free(host);
	}
	for (unsigned int r = 0; r < rounds; r++)
		check(cuLaunchKernel(f, t->grid[0], t->grid[1], t->grid[2], t->block_dim[0],
				     t->block_dim[1], t->block_dim[2], (unsigned int)t->dynamic,
				     stream, params, NULL), t->kernel);
	check(cuStreamSynchronize(stream), t->kernel);
	for (unsigned int i = 0; i < t->n_params; i++) {
		uint8_t *host;

		if (!buffer[i])
			continue;
		host = room(t->params[i].size);
		check(cuMemcpyDtoH(host, buffer[i], t->params[i].size), "cuMemcpyDtoH");
		sum = checksum(sum, host, t->params[i].size);
		free(host);
		check(cuMemFree(buffer[i]), "cuMemFree");
	}
	printf("%s %s %016llx\n", path, t->kernel, (unsigned long long)sum);
}

int main(int argc, char **argv)
{
	unsigned int rounds = 1;
	CUcontext ctx;
	CUdevice device;
	char why[1024];
	int i = 1;

	if (argc > 2 && !strcmp(argv[1], "--rounds")) {
		rounds = (unsigned int)strtoul(argv[2], NULL, 10);
		i = 3;
	}
	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	for (; i < argc; i++) {
		char *ptx = read_text(argv[i]), *at = strstr(ptx, ".target sm_");
		unsigned int arch = at ? (unsigned int)strtoul(at + strlen(".target sm_"),
							       NULL, 10) : 0;
		struct test_launches all;
		CUmodule module;

		if (!launches_read(argv[i], &all, why, sizeof(why))) {
			fprintf(stderr, "%s\n", why);
			return 1;
		}
		check(cuModuleLoadData(&module, ptx), argv[i]);
		for (unsigned int k = 0; k < all.n; k++)
			if (all.launch[k].block && all.launch[k].arch <= arch)
				run(argv[i], module, &all.launch[k], rounds);
		check(cuModuleUnload(module), "cuModuleUnload");
		launches_free(&all);
		free(ptx);
	}
	return 0;
}
