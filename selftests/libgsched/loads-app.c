// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program of the driver API that knows nothing of gsched: loads-app WAY FILE. Loads one kernel,
 * or its two units, in one of the ways there are (FILE is its to write), launches it and prints a
 * hash of its memory: the same for each way.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"

#define BLOCKS	48
#define THREADS	64
#define HEAD	".version 7.0\n.target sm_70\n.address_size 64\n"
#define MIX	"(.param .b32 r) mix (.param .b32 a, .param .b32 b)"

/* a device function that knows its block, */
static const char unit_mix[] = HEAD ".visible .func " MIX "\n{\n"
	"\t.reg .b32 %r<6>;\n\tld.param.b32 %r1, [a];\n\tld.param.b32 %r2, [b];\n"
	"\tmov.u32 %r3, %ctaid.x;\n"
	"\tmad.lo.u32 %r4, %r1, 1664525, %r2;\n\txor.b32 %r4, %r4, %r3;\n\tst.param.b32 [r], %r4;\n"
	"\tret;\n}\n";
/* and the kernel that calls it */
#define WORK ".visible .entry work (.param .u64 p, .param .u32 n)\n{\n" \
	"\t.reg .pred %q;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %d<3>;\n\tld.param.u64 %d1, [p];\n" \
	"\tld.param.u32 %r1, [n];\n" \
	"\tmov.u32 %r3, %ctaid.x;\n\tmov.u32 %r4, %ntid.x;\n\tmov.u32 %r5, %tid.x;\n" \
	"\tmad.lo.u32 %r6, %r3, %r4, %r5;\n" \
	"\tmul.wide.u32 %d2, %r6, 4;\n\tadd.u64 %d1, %d1, %d2;\n\tld.global.u32 %r7, [%d1];\n" \
	"$again:\n\t{\n\t.param .b32 a0;\n\t.param .b32 a1;\n\t.param .b32 r0;\n" \
	"\tst.param.b32 [a0], %r7;\n" \
	"\tst.param.b32 [a1], %r1;\n\tcall.uni (r0), mix, (a0, a1);\n" \
	"\tld.param.b32 %r7, [r0];\n\t}\n" \
	"\tsub.u32 %r1, %r1, 1;\n\tsetp.ne.u32 %q, %r1, 0;\n\t@%q bra $again;\n" \
	"\tst.global.u32 [%d1], %r7;\n\tret;\n}\n"
static const char unit_work[] = HEAD ".extern .func " MIX ";\n" WORK;

static char whole[sizeof(unit_mix) + sizeof(WORK)];
static char fat_whole[8192], fat_mix[8192], fat_work[8192], fat_empty[16];
static const void *const units[] = { fat_mix, fat_work, NULL };
static struct {
	uint32_t magic, version;
	const void *data, *files;
} wrapper = { 0x466243b1, 1, fat_whole, NULL };

static void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
#define DO(call) check(call, #call)

/* A fat binary of one entry of PTX, or of none */
static size_t fat(char *p, const char *text)
{
	size_t n = text ? (strlen(text) + 7) & ~7ul : 0;
	uint32_t magic = 0xba55ed50, head = 64, arch = 70;
	uint64_t all = text ? n + head : 0;
	uint16_t one = 1, sixteen = 16, kind = 1;

	memcpy(p, &magic, 4);
	memcpy(p + 4, &one, 2);
	memcpy(p + 6, &sixteen, 2);
	memcpy(p + 8, &all, 8);
	if (!text)
		return 16;
	memcpy(p + 16, &kind, 2);
	memcpy(p + 20, &head, 4);
	memcpy(p + 24, &n, 8);
	memcpy(p + 44, &arch, 4);
	memcpy(p + 80, text, strlen(text));
	return 80 + n;
}

static void write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		check(CUDA_ERROR_OPERATING_SYSTEM, path);
}

/* Linked at run time; the machine code is copied, as it is gone with the link */
static void *linked(const char *way, const char *file, size_t *size)
{
	void *code, *copy;
	CUlinkState l;

	DO(cuLinkCreate(0, NULL, NULL, &l));
	if (!strcmp(way, "link")) {
		DO(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)unit_work, sizeof(unit_work), "work",
				 0, NULL, NULL));
		DO(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)unit_mix, sizeof(unit_mix), "mix",
				 0, NULL, NULL));
	} else {
		size_t n = fat(fat_mix, unit_mix);

		write_file(file, unit_work, sizeof(unit_work) - 1);
		DO(cuLinkAddFile(l, CU_JIT_INPUT_PTX, file, 0, NULL, NULL));
		DO(cuLinkAddData(l, CU_JIT_INPUT_FATBINARY, fat_mix, n, "mix", 0, NULL, NULL));
	}
	DO(cuLinkComplete(l, &code, size));
	copy = malloc(*size);
	if (!copy)
		exit(1);
	memcpy(copy, code, *size);
	DO(cuLinkDestroy(l));
	return copy;
}

static CUmodule module_of(const char *way, const char *file)
{
	CUmodule m = NULL;
	size_t n = fat(fat_whole, whole);
	void *code;

	if (!strcmp(way, "data")) {
		DO(cuModuleLoadData(&m, whole));
	} else if (!strcmp(way, "data-ex")) {
		DO(cuModuleLoadDataEx(&m, whole, 0, NULL, NULL));
	} else if (!strcmp(way, "fat")) {
		DO(cuModuleLoadData(&m, fat_whole));
	} else if (!strcmp(way, "fat-binary")) {
		DO(cuModuleLoadFatBinary(&m, fat_whole));
	} else if (!strcmp(way, "wrapper")) {
		DO(cuModuleLoadFatBinary(&m, &wrapper));
	} else if (!strcmp(way, "file")) {
		write_file(file, whole, strlen(whole));
		DO(cuModuleLoad(&m, file));
	} else if (!strcmp(way, "fat-file")) {
		write_file(file, fat_whole, n);
		DO(cuModuleLoad(&m, file));
	} else if (!strncmp(way, "link", 4)) {
		code = linked(way, file, &n);
		if (!strcmp(way, "link-file")) {
			write_file(file, code, n);
			DO(cuModuleLoad(&m, file));
		} else {
			DO(cuModuleLoadData(&m, code));
		}
		free(code);
	}
	return m;
}

static CUlibrary library_of(const char *way, const char *file)
{
	CUlibrary lib = NULL;

	fat(fat_whole, whole);
	if (!strcmp(way, "library")) {
		DO(cuLibraryLoadData(&lib, whole, NULL, NULL, 0, NULL, NULL, 0));
	} else if (!strcmp(way, "library-file")) {
		write_file(file, whole, strlen(whole));
		DO(cuLibraryLoadFromFile(&lib, file, NULL, NULL, 0, NULL, NULL, 0));
	} else if (!strncmp(way, "units", 5)) {
		fat(fat_mix, unit_mix);
		fat(fat_work, unit_work);
		/* the linked binary of a program of PTX alone is empty */
		fat(fat_empty, NULL);
		wrapper.version = 2;
		wrapper.data = fat_empty;
		wrapper.files = units;
		DO(cuLibraryLoadData(&lib, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
	}
	return lib;
}

int main(int argc, char **argv)
{
	uint32_t n = 100, host[BLOCKS * THREADS];
	uint64_t h = 14695981039346656037ull;
	CUlibrary lib = NULL;
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	CUcontext ctx;
	CUkernel k;
	CUdevice dev;
	const char *way;
	void *params[] = { &p, &n };
	bool early, once;

	if (argc != 3)
		return 2;
	strcpy(whole, unit_mix);
	strcat(whole, WORK);
	way = argv[1];
	early = !strncmp(way, "early-", 6);
	way += early ? 6 : 0;
	once = !strncmp(way, "once-", 5);
	way += once ? 5 : 0;
	DO(cuInit(0));
	DO(cuDeviceGet(&dev, 0));
	if (early) {
		/* before there is a context; what was loaded may be forgotten at once */
		lib = library_of(way, argv[2]);
		if (strcmp(way, "units") != 0)
			memset(whole, 'x', sizeof(whole));
	}
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	if (!lib)
		lib = library_of(way, argv[2]);
	if (lib) {
		DO(cuLibraryGetKernel(&k, lib, "work"));
		DO(cuKernelGetFunction(&f, k));
	} else {
		m = module_of(way, argv[2]);
		DO(cuModuleGetFunction(&f, m, "work"));
	}
	DO(cuMemAlloc(&p, sizeof(host)));
	DO(cuMemsetD32(p, 12345, BLOCKS * THREADS));
	for (int i = 0; i < (once ? 1 : 4); i++) {
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
	DO(cuMemcpyDtoH(host, p, sizeof(host)));
	for (int i = 0; i < BLOCKS * THREADS; i++)
		h = (h ^ host[i]) * 1099511628211ull;
	printf("%016llx\n", (unsigned long long)h);
	if (once)
		usleep(100000);
	return 0;
}
