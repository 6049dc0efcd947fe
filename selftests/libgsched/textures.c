// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program with texture and surface references, which it binds anew between launches that it does
 * not wait for: textures PTX-FILE [proc | unbound | odd | objects | plain [BLOCKS FETCHES]]. Prints
 * hashes of all that is there; they are the same however it is run. proc: all functions by
 * cuGetProcAddress. unbound: references that are never bound, nor used. odd: bound by a way that
 * says no object. objects: texture and surface objects, destroyed right after the launch.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/cuda/base/cudadrv.h"

#define THREADS	64
#define ROUNDS	12
#define LINE	1024		/* floats */
#define WIDTH	64
#define HEIGHT	32
#define SURFACE	2		/* CUDA_ARRAY3D_SURFACE_LDST */
#define INTEGERS 1		/* CU_TRSF_READ_AS_INTEGER */
#define NORMAL	2		/* CU_TRSF_NORMALIZED_COORDINATES */

static char image[1 << 20];
static unsigned int blocks = 192, fetches = 60;	/* a simulated device's */

#define REFERENCE_FUNCTIONS(X) \
	X(cuModuleGetTexRef, ) X(cuModuleGetSurfRef, ) X(cuTexRefSetArray, ) \
	X(cuTexRefSetAddress, _v2) X(cuTexRefSetAddress2D, _v3) \
	X(cuTexRefSetFormat, ) X(cuTexRefSetAddressMode, ) X(cuTexRefSetFilterMode, ) \
	X(cuTexRefSetFlags, ) \
	X(cuTexRefSetBorderColor, ) X(cuTexRefSetMaxAnisotropy, ) X(cuTexRefSetMipmapFilterMode, ) \
	X(cuTexRefSetMipmapLevelBias, ) \
	X(cuTexRefSetMipmapLevelClamp, ) X(cuSurfRefSetArray, ) X(cuArrayDestroy, )

#define MEMBER(name, suffix) __typeof__(name##suffix) *p_##name;
static struct {
	REFERENCE_FUNCTIONS(MEMBER)
} api;

static void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
#define DO(call) check(call, #call)

static void functions(bool proc)
{
#define DIRECT(name, suffix) api.p_##name = name##suffix;
#define ASKED(name, suffix) DO(cuGetProcAddress(#name, (void **)&api.p_##name, 12000, 0, NULL));
	if (proc) {
		REFERENCE_FUNCTIONS(ASKED)
	} else {
		REFERENCE_FUNCTIONS(DIRECT)
	}
}

struct program {
	CUmodule module;
	CUfunction shade, gather;
	CUtexref line, picture;
	CUsurfref board;
	CUdeviceptr memory[2], rows, out[4];
	CUarray picture_array, canvas[2];
	CUstream stream;
};

static uint64_t hash_of(uint64_t h, const void *data, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 1099511628211ull;
	return h;
}

static CUarray array_new(unsigned int width, unsigned int height, CUarray_format format,
			 unsigned int channels, unsigned int salt)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { .Width = width, .Height = height, .Format = format,
				      .NumChannels = channels, .Flags = SURFACE };
	size_t row = (size_t)width * 4, i;
	uint8_t *host = calloc(height ? height : 1, row);
	CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = row,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			    .WidthInBytes = row, .Height = height ? height : 1 };

	for (i = 0; i < row * c.Height; i += 4) {
		float f = (float)((i / 4 * 7 + salt) % 113);

		if (format == CU_AD_FORMAT_FLOAT)
			memcpy(host + i, &f, 4);
		else
			memset(host + i, (int)(i / 4 * 5 + salt), 4);
	}
	DO(cuArray3DCreate(&c.dstArray, &d));
	DO(cuMemcpy2D(&c));
	free(host);
	return c.dstArray;
}

static void open_program(struct program *p, unsigned int salt)
{
	static float host[2 * WIDTH * HEIGHT];
	unsigned int i;

	DO(cuModuleLoadData(&p->module, image));
	DO(cuModuleGetFunction(&p->shade, p->module, "shade"));
	DO(cuModuleGetFunction(&p->gather, p->module, "gather"));
	DO(cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < 2 * WIDTH * HEIGHT; i++)
		host[i] = (float)((i * 11 + salt) % 251) / 8;
	DO(cuMemAlloc(&p->rows, WIDTH * HEIGHT * 4));
	DO(cuMemcpyHtoD(p->rows, host, WIDTH * HEIGHT * 4));
	for (i = 0; i < 2; i++) {
		DO(cuMemAlloc(&p->memory[i], LINE * 4 + 512));
		DO(cuMemcpyHtoD(p->memory[i], host + 100 * i, LINE * 4 + 512));
		p->canvas[i] = array_new(LINE, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, salt + i);
	}
	for (i = 0; i < 4; i++) {
		DO(cuMemAlloc(&p->out[i], (size_t)blocks * THREADS * 4));
		DO(cuMemsetD32(p->out[i], 0, (size_t)blocks * THREADS));
	}
}

static void get_references(struct program *p)
{
	CUtexref none, again;

	DO(api.p_cuModuleGetTexRef(&p->line, p->module, "line"));
	DO(api.p_cuModuleGetTexRef(&p->picture, p->module, "picture"));
	DO(api.p_cuModuleGetSurfRef(&p->board, p->module, "board"));
	if (api.p_cuModuleGetTexRef(&none, p->module, "board") == CUDA_SUCCESS)
		check(CUDA_ERROR_INVALID_VALUE, "a surface for a texture");
	DO(api.p_cuModuleGetTexRef(&again, p->module, "line"));
	if (again != p->line)
		check(CUDA_ERROR_INVALID_HANDLE, "the same again");
}

/* In each round something else is bound, or sampled in another way */
static void bind(struct program *p, unsigned int r)
{
	CUDA_ARRAY_DESCRIPTOR rows = { .Width = WIDTH, .Height = HEIGHT,
				       .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
	float color[4] = { (float)r, 1, 2, 3 };
	size_t offset = 0;
	unsigned int i;

	if (!r) {
		DO(api.p_cuTexRefSetFormat(p->line, CU_AD_FORMAT_FLOAT, 1));
		DO(api.p_cuTexRefSetMaxAnisotropy(p->line, 1));
		DO(api.p_cuTexRefSetMipmapFilterMode(p->picture, CU_TR_FILTER_MODE_POINT));
		DO(api.p_cuTexRefSetMipmapLevelBias(p->picture, 0));
		DO(api.p_cuTexRefSetMipmapLevelClamp(p->picture, 0, 0));
	}
	/* not where a texture could begin */
	DO(api.p_cuTexRefSetAddress(&offset, p->line, p->memory[r & 1] + 64 * (r % 3), LINE * 4));
	DO(api.p_cuSurfRefSetArray(p->board, p->canvas[r >> 1 & 1], 0));
	DO(api.p_cuTexRefSetBorderColor(p->picture, color));
	for (i = 0; i < 2; i++)
		DO(api.p_cuTexRefSetAddressMode(p->picture, (int)i,
						r % 5 < 3 ? CU_TR_ADDRESS_MODE_BORDER :
						CU_TR_ADDRESS_MODE_CLAMP));
	DO(api.p_cuTexRefSetFilterMode(p->picture, r & 2 ? CU_TR_FILTER_MODE_LINEAR :
				       CU_TR_FILTER_MODE_POINT));
	DO(api.p_cuTexRefSetFlags(p->picture, r % 4 == 3 ? NORMAL : 0));
	if (r % 3 == 0) {
		DO(api.p_cuTexRefSetAddress2D(p->picture, &rows, p->rows, WIDTH * 4));
		return;
	}
	/*
	 * the handle of the next array may be that of this one: what it was must be forgotten. Some
	 * time nobody waits for it
	 */
	if (p->picture_array)
		DO(api.p_cuArrayDestroy(p->picture_array));
	p->picture_array = array_new(WIDTH, HEIGHT / (1 + r % 2), r & 4 ? CU_AD_FORMAT_FLOAT :
				     CU_AD_FORMAT_UNSIGNED_INT8, r & 4 ? 1 : 4, r);
	DO(api.p_cuTexRefSetArray(p->picture, p->picture_array, CU_TRSA_OVERRIDE_FORMAT));
}

static void launch(const struct program *p, unsigned int r, uint32_t n)
{
	CUdeviceptr out = p->out[r & 3];
	void *params[] = { &out, &n };

	DO(cuLaunchKernel(p->shade, blocks, 1, 1, THREADS, 1, 1, 0, p->stream, params, NULL));
}

static void show(const struct program *p, const char *name, unsigned int r)
{
	size_t size = (size_t)blocks * THREADS * 4;
	uint64_t h = 14695981039346656037ull;
	uint32_t *host = malloc(size);
	unsigned int i;

	DO(cuStreamSynchronize(p->stream));
	for (i = 0; i < 4; i++) {
		DO(cuMemcpyDtoH(host, p->out[i], size));
		h = hash_of(h, host, size);
	}
	for (i = 0; i < 2; i++) {
		DO(cuMemcpyAtoH(host, p->canvas[i], 0, LINE * 4));
		h = hash_of(h, host, LINE * 4);
	}
	free(host);
	printf("%s %u %016llx\n", name, r, (unsigned long long)h);
	fflush(stdout);
}

static void close_program(struct program *p)
{
	unsigned int i;

	DO(cuModuleUnload(p->module));
	for (i = 0; i < 2; i++) {
		DO(cuMemFree(p->memory[i]));
		DO(api.p_cuArrayDestroy(p->canvas[i]));
	}
	if (p->picture_array)
		DO(api.p_cuArrayDestroy(p->picture_array));
	for (i = 0; i < 4; i++)
		DO(cuMemFree(p->out[i]));
	DO(cuMemFree(p->rows));
	DO(cuStreamDestroy(p->stream));
	memset(p, 0, sizeof(*p));
}

/*
 * The first launches come before a twin is there, or with it; the others are queued while it is
 * bound anew
 */
static void run(const char *name, struct program *p, unsigned int rounds)
{
	unsigned int r;

	for (r = 0; r < rounds; r++) {
		bind(p, r);
		launch(p, r, fetches);
		if (r < 2 || r % 4 == 3)
			show(p, name, r);
	}
}

static void launch_objects(const struct program *p, unsigned int r)
{
	CUDA_RESOURCE_DESC line = { .resType = CU_RESOURCE_TYPE_LINEAR };
	CUDA_RESOURCE_DESC board = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_TEXTURE_DESC plain = { .filterMode = CU_TR_FILTER_MODE_POINT };
	CUdeviceptr out = p->out[r & 3];
	CUtexObject texture;
	CUsurfObject surface;
	void *params[] = { &out, &fetches, &texture, &surface };

	line.res.linear.devPtr = p->memory[r & 1];
	line.res.linear.format = CU_AD_FORMAT_FLOAT;
	line.res.linear.numChannels = 1;
	line.res.linear.sizeInBytes = LINE * 4;
	board.res.array.hArray = p->canvas[r >> 1 & 1];
	DO(cuTexObjectCreate(&texture, &line, &plain, NULL));
	DO(cuSurfObjectCreate(&surface, &board));
	DO(cuLaunchKernel(p->gather, blocks, 1, 1, THREADS, 1, 1, 0, p->stream, params, NULL));
	DO(cuTexObjectDestroy(texture));
	DO(cuSurfObjectDestroy(surface));
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	struct program p = { 0 }, q = { 0 };
	CUcontext ctx;
	unsigned int i;
	CUdevice dev;

	if (!f || !fread(image, 1, sizeof(image) - 1, f))
		return 2;
	fclose(f);
	if (argc > 4) {
		blocks = (unsigned int)strtoul(argv[3], NULL, 10);
		fetches = (unsigned int)strtoul(argv[4], NULL, 10);
	}
	DO(cuInit(0));
	functions(!strcmp(how, "proc"));
	DO(cuDeviceGet(&dev, 0));
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	open_program(&p, 1);
	if (!strcmp(how, "unbound")) {
		for (i = 0; i < 5; i++)
			launch(&p, i, 0);
		show(&p, how, i);
		get_references(&p);
		launch(&p, i, 0);
		show(&p, how, i);
	} else if (!strcmp(how, "objects")) {
		for (i = 0; i < ROUNDS; i++) {
			launch_objects(&p, i);
			if (i % 4 == 3)
				show(&p, how, i);
		}
	} else if (!strcmp(how, "odd")) {
		get_references(&p);
		for (i = 0; i < 4; i++) {
			bind(&p, 1);
			/* the format that it is read in is not the array's any more */
			DO(api.p_cuTexRefSetFormat(p.picture, CU_AD_FORMAT_UNSIGNED_INT8,
						   4 >> (i & 1)));
			DO(api.p_cuTexRefSetFormat(p.picture, CU_AD_FORMAT_UNSIGNED_INT8, 2));
			launch(&p, i, fetches);
		}
		show(&p, how, i);
	} else {
		get_references(&p);
		run("first", &p, ROUNDS);
		/* another with references of the same names, bound to other things */
		open_program(&q, 77);
		get_references(&q);
		run("second", &q, 8);
		launch(&p, 0, fetches);
		launch(&q, 1, fetches);
		show(&p, "first again", 0);
		show(&q, "second again", 0);
		close_program(&p);
		launch(&q, 2, fetches);
		show(&q, "second alone", 0);
		open_program(&p, 5);
		get_references(&p);
		run("new", &p, 4);
		close_program(&q);
	}
	close_program(&p);
	DO(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
