// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * jit DIRECTORY LIBRARIES: what programs get from NVRTC and nvJitLink at run time, as files:
 * nvrtc.ptx, nvrtc.cubin, jitlink.cubin, jitlink.ptx. Prints the name of each that could be made.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_PTX = 2, INPUT_LTOIR = 3 };	/* nvJitLinkInputType */

static const char source[] = "extern \"C\" __global__ void k(int *p, int n) { if (blockIdx.x < n) "
			     "p[blockIdx.x] = n; }";
static void *nvrtc, *jitlink;
static const char *dir;

static void *open_library(const char *libs, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", libs, name);
	return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static void save(const char *name, const char *data, size_t size)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (f && fwrite(data, 1, size, f) == size)
		printf("%s\n", name);
	if (f)
		fclose(f);
}

/* One form of a compiled program, malloc'd */
static char *compiled(const char *arch, const char *more, const char *what, size_t *size)
{
	int (*create)(void **, const char *, const char *, int, void *, void *) =
		dlsym(nvrtc, "nvrtcCreateProgram");
	int (*compile)(void *, int, const char *const *) = dlsym(nvrtc, "nvrtcCompileProgram");
	int (*get_size)(void *, size_t *), (*get)(void *, char *);
	const char *options[] = { arch, more };
	char name[64], *out;
	void *program;

	snprintf(name, sizeof(name), "nvrtcGet%sSize", what);
	get_size = dlsym(nvrtc, name);
	snprintf(name, sizeof(name), "nvrtcGet%s", what);
	get = dlsym(nvrtc, name);
	if (!create || !compile || !get_size || !get ||
	    create(&program, source, "k.cu", 0, NULL, NULL) ||
	    compile(program, more ? 2 : 1, options) || get_size(program, size) || !*size)
		return NULL;
	out = malloc(*size);
	return out && !get(program, out) ? out : NULL;
}

static void linked(int type, const char *data, size_t size, const char *more, const char *what,
		   const char *file)
{
	int (*create)(void **, unsigned int, const char **) = dlsym(jitlink, "nvJitLinkCreate");
	int (*add)(void *, int, const void *, size_t, const char *) =
		dlsym(jitlink, "nvJitLinkAddData");
	int (*complete)(void *) = dlsym(jitlink, "nvJitLinkComplete");
	int (*get_size)(void *, size_t *), (*get)(void *, char *);
	const char *options[] = { "-arch=sm_90", "-lto", more };
	char name[64], *out;
	void *handle;
	size_t n;

	snprintf(name, sizeof(name), "nvJitLinkGetLinked%sSize", what);
	get_size = dlsym(jitlink, name);
	snprintf(name, sizeof(name), "nvJitLinkGetLinked%s", what);
	get = dlsym(jitlink, name);
	if (!data || !create || !add || !complete || !get_size || !get ||
	    create(&handle, type == INPUT_LTOIR ? more ? 3 : 2 : 1, options) ||
	    add(handle, type, data, size, "k") || complete(handle) || get_size(handle, &n) || !n)
		return;
	out = malloc(n);
	if (out && !get(handle, out))
		save(file, out, n);
	free(out);
}

int main(int argc, char **argv)
{
	char *ptx, *cubin, *lto;
	size_t n = 0, n_lto = 0, n_cubin = 0;

	if (argc != 3)
		return 2;
	dir = argv[1];
	nvrtc = open_library(argv[2], "libnvrtc.so");
	jitlink = open_library(argv[2], "libnvJitLink.so");
	if (!nvrtc)
		return 0;
	ptx = compiled("-arch=compute_80", NULL, "PTX", &n);
	if (ptx)
		save("nvrtc.ptx", ptx, n);
	cubin = compiled("-arch=sm_90", NULL, "CUBIN", &n_cubin);
	if (cubin)
		save("nvrtc.cubin", cubin, n_cubin);
	lto = compiled("-arch=compute_90", "-dlto", "LTOIR", &n_lto);
	if (jitlink) {
		linked(INPUT_PTX, ptx, n, NULL, "Cubin", "jitlink.cubin");
		linked(INPUT_LTOIR, lto, n_lto, "-ptx", "Ptx", "jitlink.ptx");
	}
	free(ptx);
	free(cubin);
	free(lto);
	return 0;
}
