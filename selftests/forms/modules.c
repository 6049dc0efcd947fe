// SPDX-License-Identifier: LGPL-2.1-or-later
/* Modules, libraries, the linker, variables, attributes of functions, entry points */
#include <dlfcn.h>
#include <unistd.h>
#include "forms.h"

static void launches(const char *what, CUfunction f)
{
	struct words w = words_new(form_blocks * THREADS);

	for (uint32_t i = 0; i < 4; i++)
		work(f, NULL, &w, ROUNDS, i);
	words_show(what, &w);
}

/* Other modules come and go while the work of one is in flight */
static void module_reload(void)
{
	struct words w, v;
	CUfunction f, g;
	CUmodule m;
	CUstream s;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	v = words_new(form_blocks * THREADS);
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < 8; i++) {
		work(f, s, &w, ROUNDS, i);
		DO(cuModuleLoadData(&m, form_image));
		DO(cuModuleGetFunction(&g, m, "work"));
		work(g, NULL, &v, ROUNDS, i);
		DO(cuStreamSynchronize(NULL));
		DO(cuModuleUnload(m));
	}
	DO(cuCtxSynchronize());
	words_show("module-reload", &w);
	words_show("its own", &v);
}

/* A module goes while its own kernels run */
static void module_unload_busy(void)
{
	struct words w;
	CUfunction f;
	CUmodule m;

	form_begin();
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 8; i++) {
		DO(cuModuleLoadData(&m, form_image));
		DO(cuModuleGetFunction(&f, m, "work"));
		work(f, NULL, &w, ROUNDS, 2 * i);
		work(f, NULL, &w, ROUNDS, 2 * i + 1);
		DO(cuModuleUnload(m));
	}
	words_show("module-unload-busy", &w);
}

/* Two modules with kernels and variables of the same names */
static void module_twins(void)
{
	uint32_t n = ROUNDS, counts[2];
	CUdeviceptr counter;
	CUmodule m[2];
	CUfunction f[2];
	struct words w;
	size_t size;

	form_begin();
	w = words_new(form_blocks * THREADS);
	for (int i = 0; i < 2; i++) {
		DO(cuModuleLoadData(&m[i], form_image));
		DO(cuModuleGetFunction(&f[i], m[i], "variables"));
	}
	for (uint32_t i = 0; i < 6; i++) {
		LAUNCH(f[i % 3 == 0], form_blocks, THREADS, NULL, &w.at, &n);
		for (size_t t = 0; t < w.n; t++)
			w.want[t] = mix(w.want[t], n);
	}
	DO(cuCtxSynchronize());
	for (int i = 0; i < 2; i++) {
		DO(cuModuleGetGlobal(&counter, &size, m[i], "counter"));
		CHECK(size == 4);
		DO(cuMemcpyDtoH(&counts[i], counter, 4));
	}
	CHECK(counts[0] == 5 + 4 * form_blocks && counts[1] == 5 + 2 * form_blocks);
	words_show("module-twins", &w);
}

/* Variables of device and constant memory, changed between launches */
static void module_variables(void)
{
	CUdeviceptr table, weights, counter;
	uint32_t n = ROUNDS, values[256], count;
	struct words w;
	CUfunction f;
	size_t size;

	form_begin();
	f = form_function("variables");
	w = words_new(form_blocks * THREADS);
	DO(cuModuleGetGlobal(&table, &size, form_module, "table"));
	CHECK(size == sizeof(values));
	DO(cuModuleGetGlobal(&weights, &size, form_module, "weights"));
	CHECK(size == 64 * 4);
	DO(cuModuleGetGlobal(&counter, &size, form_module, "counter"));
	for (uint32_t k = 1; k < 5; k++) {
		for (uint32_t i = 0; i < 256; i++)
			values[i] = i * k;
		DO(cuMemcpyHtoD(table, values, sizeof(values)));
		DO(cuMemcpyHtoD(weights, values, 64 * 4));
		LAUNCH(f, form_blocks, THREADS, NULL, &w.at, &n);
		for (uint32_t t = 0; t < w.n; t++)
			w.want[t] = mix(w.want[t] + (t & 255) * k + (t & 63) * k, n);
	}
	DO(cuMemcpyDtoH(&count, counter, 4));
	CHECK(count == 5 + 4 * form_blocks);
	words_show("module-variables", &w);
}

static void module_options(void)
{
	char log[512] = "";
	CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				   CU_JIT_MAX_REGISTERS };
	void *values[] = { log, (void *)sizeof(log), (void *)32 };
	CUfunction f;
	CUmodule m;

	form_begin();
	DO(cuModuleLoadDataEx(&m, form_image, 3, options, values));
	DO(cuModuleGetFunction(&f, m, "work"));
	launches("module-options", f);
}

static void module_bad(void)
{
	CUfunction f;
	CUmodule m;

	form_begin();
	printf("%d\n",
	       (int)cuModuleLoadData(
		       &m, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry x( {"));
	printf("%d\n", (int)cuModuleLoad(&m, "/there/is/no/such/file"));
	IS(NOT_FOUND, cuModuleGetFunction(&f, form_module, "nosuch"));
	launches("module-bad", form_function("work"));
}

static void module_file(void)
{
	char path[] = "/tmp/forms-XXXXXX";
	int fd;
	CUfunction f;
	CUmodule m;

	form_begin();
	fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, form_image, strlen(form_image)) == (ssize_t)strlen(form_image));
	close(fd);
	DO(cuModuleLoad(&m, path));
	unlink(path);
	DO(cuModuleGetFunction(&f, m, "work"));
	launches("module-file", f);
}

static void library(void)
{
	CUlibrary l;
	CUfunction f;
	CUkernel k;

	form_begin();
	for (int i = 0; i < 3; i++) {
		DO(cuLibraryLoadData(&l, form_image, NULL, NULL, 0, NULL, NULL, 0));
		DO(cuLibraryGetKernel(&k, l, "work"));
		DO(cuKernelGetFunction(&f, k));
		launches("library", f);
		/* a kernel is a function to the launch calls */
		launches("library", (CUfunction)k);
		DO(cuLibraryUnload(l));
	}
}

static void library_unload_busy(void)
{
	struct words w;
	CUlibrary l;
	CUkernel k;

	form_begin();
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 8; i++) {
		DO(cuLibraryLoadData(&l, form_image, NULL, NULL, 0, NULL, NULL, 0));
		DO(cuLibraryGetKernel(&k, l, "work"));
		work((CUfunction)k, NULL, &w, ROUNDS, 2 * i);
		work((CUfunction)k, NULL, &w, ROUNDS, 2 * i + 1);
		DO(cuLibraryUnload(l));
	}
	words_show("library-unload-busy", &w);
}

/* One kernel of a library in two contexts, which have it each */
static void library_contexts(void)
{
	struct words w[2];
	CUcontext ctx[2];
	CUfunction f[2];
	CUlibrary l;
	CUkernel k;

	form_begin();
	DO(cuLibraryLoadData(&l, form_image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&k, l, "work"));
	for (int i = 0; i < 2; i++) {
		DO(cuCtxCreate(&ctx[i], NULL, 0, form_device));
		DO(cuKernelGetFunction(&f[i], k));
		w[i] = words_new(form_blocks * THREADS);
	}
	for (uint32_t n = 0; n < 6; n++) {
		DO(cuCtxSetCurrent(ctx[n % 2]));
		work((CUfunction)k, NULL, &w[n % 2], ROUNDS, n);
		work(f[n % 2], NULL, &w[n % 2], ROUNDS, n + 1);
	}
	for (int i = 0; i < 2; i++) {
		DO(cuCtxSetCurrent(ctx[i]));
		words_show("library-contexts", &w[i]);
		DO(cuCtxDestroy(ctx[i]));
	}
	DO(cuCtxSetCurrent(form_context));
	launches("library-contexts", (CUfunction)k);
	DO(cuLibraryUnload(l));
}

/* Code is loaded when it is first used, or at once. */
static void loading(const char *mode)
{
	CHECK(!setenv("CUDA_MODULE_LOADING", mode, 1));
	form_begin();
	for (int i = 0; i < 2; i++)
		launches("loading", form_function("work"));
}

static void loading_eager(void)
{
	loading("EAGER");
}

static void loading_lazy(void)
{
	loading("LAZY");
}

/* Calls that the driver itself provides to kernels */
static const char calls[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
	".extern .func free(.param .b64 p);\n"
	".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,\n"
	"\t.param .b64 e);\n"
	".global .align 1 .b8 word[5] = { 119, 111, 114, 100, 0 };\n"
	".visible .entry heap(.param .u64 out)\n{\n\t.reg .b32 %r<6>;\n\t.reg .b64 %d<6>;\n"
	"\t.reg .pred %p;\n"
	"\tld.param.u64 %d1, [out];\n\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n"
	"\tmov.u32 %r3, %tid.x;\n\tmad.lo.u32 %r4, %r1, %r2, %r3;\n"
	"\tmul.wide.u32 %d2, %r4, 4;\n\tadd.u64 %d1, %d1, %d2;\n"
	"\tmov.u64 %d3, 16;\n"
	"\t{\n\t.param .b64 n;\n\t.param .b64 r;\n\tst.param.b64 [n], %d3;\n"
	"\tcall.uni (r), malloc, (n);\n\tld.param.b64 %d4, [r];\n\t}\n"
	"\tsetp.eq.u64 %p, %d4, 0;\n\t@%p bra done;\n"
	"\tst.u32 [%d4+4], %r4;\n\tld.u32 %r5, [%d4+4];\n\tadd.u32 %r5, %r5, 7;\n"
	"\tst.global.u32 [%d1], %r5;\n"
	"\t{\n\t.param .b64 p;\n\tst.param.b64 [p], %d4;\n\tcall.uni free, (p);\n\t}\n"
	"done:\n\tret;\n}\n"
	".visible .entry fails(.param .u32 at)\n{\n\t.reg .b32 %r<4>;\n\t.reg .b64 %d<3>;\n"
	"\t.reg .pred %p;\n\tld.param.u32 %r1, [at];\n\tmov.u32 %r2, %ctaid.x;\n"
	"\tsetp.ne.u32 %p, %r1, %r2;\n\t@%p bra done;\n"
	"\tmov.u64 %d1, word;\n\tcvta.global.u64 %d2, %d1;\n\tmov.u32 %r3, 1;\n"
	"\tmov.u64 %d1, 1;\n"
	"\t{\n\t.param .b64 a;\n\t.param .b64 b;\n\t.param .b32 c;\n\t.param .b64 d;\n"
	"\t.param .b64 e;\n\tst.param.b64 [a], %d2;\n\tst.param.b64 [b], %d2;\n"
	"\tst.param.b32 [c], %r3;\n\tst.param.b64 [d], %d2;\n\tst.param.b64 [e], %d1;\n"
	"\tcall.uni __assertfail, (a, b, c, d, e);\n\t}\n"
	"done:\n\tret;\n}\n";

static void device_malloc(void)
{
	struct words w;
	size_t size;
	CUmodule m;
	CUfunction f;

	form_begin();
	DO(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
	DO(cuCtxGetLimit(&size, CU_LIMIT_MALLOC_HEAP_SIZE));
	CHECK(size >= 32 << 20);
	DO(cuModuleLoadData(&m, calls));
	DO(cuModuleGetFunction(&f, m, "heap"));
	w = words_new(form_blocks * THREADS);
	w.stride = 1;
	for (int i = 0; i < 3; i++)
		LAUNCH(f, form_blocks, THREADS, NULL, &w.at);
	for (uint32_t i = 0; i < w.n; i++)
		w.want[i] = i + 7;
	words_show("device-malloc", &w);
}

/* The error of an assertion that fails on the device, and that it stays */
static void device_assert(void)
{
	uint32_t never = form_blocks, at = 3;
	CUdeviceptr p;
	CUmodule m;
	CUfunction f;

	form_begin();
	DO(cuModuleLoadData(&m, calls));
	DO(cuModuleGetFunction(&f, m, "fails"));
	LAUNCH(f, form_blocks, THREADS, NULL, &never);
	DO(cuCtxSynchronize());
	LAUNCH(f, form_blocks, THREADS, NULL, &at);
	printf("%d", (int)cuCtxSynchronize());
	printf(" %d", (int)cuCtxSynchronize());
	printf(" %d\n", (int)cuMemAlloc(&p, 4));
}

static void library_variables(void)
{
	CUdeviceptr counter;
	uint32_t n = ROUNDS, count;
	struct words w;
	CUlibrary l;
	CUmodule m;
	CUfunction f;
	size_t size;

	form_begin();
	w = words_new(form_blocks * THREADS);
	DO(cuLibraryLoadData(&l, form_image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetModule(&m, l));
	DO(cuModuleGetFunction(&f, m, "variables"));
	DO(cuLibraryGetGlobal(&counter, &size, l, "counter"));
	for (int i = 0; i < 3; i++) {
		LAUNCH(f, form_blocks, THREADS, NULL, &w.at, &n);
		for (size_t t = 0; t < w.n; t++)
			w.want[t] = mix(w.want[t], n);
	}
	DO(cuMemcpyDtoH(&count, counter, 4));
	CHECK(count == 5 + 3 * form_blocks);
	words_show("library-variables", &w);
}

static void link_units(void)
{
#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
	static char unit_mix[] = HEAD
		".visible .func (.param .b32 r) blend (.param .b32 a, .param .b32 b)\n{\n"
		"\t.reg .b32 %r<6>;\n\tld.param.b32 %r1, [a];\n\tld.param.b32 %r2, [b];\n"
		"\tmad.lo.u32 %r4, %r1, 31, %r2;\n"
		"\tst.param.b32 [r], %r4;\n\tret;\n}\n";
	static char unit_work[] = HEAD
		".extern .func (.param .b32 r) blend (.param .b32 a, .param .b32 b);\n"
		".visible .entry linked (.param .u64 p, .param .u32 n)\n{\n"
		"\t.reg .pred %q;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %d<3>;\n"
		"\tld.param.u64 %d1, [p];\n\tld.param.u32 %r1, [n];\n"
		"\tmov.u32 %r3, %ctaid.x;\n\tmov.u32 %r4, %ntid.x;\n\tmov.u32 %r5, %tid.x;\n"
		"\tmad.lo.u32 %r6, %r3, %r4, %r5;\n"
		"\tmul.wide.u32 %d2, %r6, 4;\n\tadd.u64 %d1, %d1, %d2;\n"
		"\tld.global.u32 %r7, [%d1];\n"
		"$again:\n\t{\n\t.param .b32 a0;\n\t.param .b32 a1;\n\t.param .b32 r0;\n"
		"\tst.param.b32 [a0], %r7;\n"
		"\tst.param.b32 [a1], %r1;\n\tcall.uni (r0), blend, (a0, a1);\n"
		"\tld.param.b32 %r7, [r0];\n\t}\n"
		"\tsub.u32 %r1, %r1, 1;\n\tsetp.ne.u32 %q, %r1, 0;\n\t@%q bra $again;\n"
		"\tst.global.u32 [%d1], %r7;\n\tret;\n}\n";
	CUlinkState link;
	CUmodule m;
	CUfunction f;
	struct words w;
	uint32_t n = ROUNDS;
	void *image;
	size_t size;

	form_begin();
	DO(cuLinkCreate(0, NULL, NULL, &link));
	DO(cuLinkAddData(link, CU_JIT_INPUT_PTX, unit_work, sizeof(unit_work), "work", 0, NULL,
			 NULL));
	DO(cuLinkAddData(link, CU_JIT_INPUT_PTX, unit_mix, sizeof(unit_mix), "mix", 0, NULL, NULL));
	DO(cuLinkComplete(link, &image, &size));
	DO(cuModuleLoadData(&m, image));
	DO(cuLinkDestroy(link));
	DO(cuModuleGetFunction(&f, m, "linked"));
	w = words_new(form_blocks * THREADS);
	for (int i = 0; i < 4; i++) {
		LAUNCH(f, form_blocks, THREADS, NULL, &w.at, &n);
		for (size_t t = 0; t < w.n; t++)
			for (uint32_t k = n; k; k--)
				w.want[t] = w.want[t] * 31 + k;
	}
	words_show("link", &w);
}

/* Three units: variables and functions in common, and names that two of them have for themselves */
static void link_variables(void)
{
#define STEP "(.param .b32 r) step (.param .b32 a)"
#define BLEND "(.param .b32 r) blend (.param .b32 a, .param .b32 b)"
#define CALL "\t{\n\t.param .b32 a0;\n\t.param .b32 a1;\n\t.param .b32 r0;\n"
	static char unit_step[] = HEAD
		".visible .global .align 4 .u32 total = 7;\n.global .align 4 .u32 bias = 3;\n"
		".visible .func " STEP "\n{\n\t.reg .b32 %r<4>;\n\tld.param.b32 %r1, [a];\n"
		"\tld.global.u32 %r2, [bias];\n\tmad.lo.u32 %r3, %r1, 31, %r2;\n"
		"\tst.param.b32 [r], %r3;\n\tret;\n}\n";
	static char unit_blend[] = HEAD
		".global .align 4 .u32 bias = 5;\n.extern .func " STEP ";\n"
		".visible .func " BLEND "\n{\n\t.reg .b32 %r<6>;\n"
		"\tld.param.b32 %r1, [a];\n\tld.param.b32 %r2, [b];\n" CALL
		"\tst.param.b32 [a0], %r1;\n\tcall.uni (r0), step, (a0);\n"
		"\tld.param.b32 %r3, [r0];\n\t}\n\tld.global.u32 %r4, [bias];\n"
		"\txor.b32 %r3, %r3, %r4;\n\tadd.u32 %r3, %r3, %r2;\n"
		"\tst.param.b32 [r], %r3;\n\tret;\n}\n";
	static char unit_entry[] = HEAD
		".extern .global .align 4 .u32 total;\n.extern .func " BLEND ";\n"
		".visible .entry linked (.param .u64 p, .param .u32 n)\n{\n"
		"\t.reg .pred %q;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %d<3>;\n"
		"\tld.param.u64 %d1, [p];\n\tld.param.u32 %r1, [n];\n"
		"\tmov.u32 %r3, %ctaid.x;\n\tmov.u32 %r4, %ntid.x;\n\tmov.u32 %r5, %tid.x;\n"
		"\tmad.lo.u32 %r6, %r3, %r4, %r5;\n"
		"\tmul.wide.u32 %d2, %r6, 4;\n\tadd.u64 %d1, %d1, %d2;\n"
		"\tld.global.u32 %r7, [%d1];\n$again:\n" CALL
		"\tst.param.b32 [a0], %r7;\n\tst.param.b32 [a1], %r1;\n"
		"\tcall.uni (r0), blend, (a0, a1);\n\tld.param.b32 %r7, [r0];\n\t}\n"
		"\tsub.u32 %r1, %r1, 1;\n\tsetp.ne.u32 %q, %r1, 0;\n\t@%q bra $again;\n"
		"\tst.global.u32 [%d1], %r7;\n\tsetp.ne.u32 %q, %r5, 0;\n\t@%q ret;\n"
		"\tatom.global.add.u32 %r8, [total], 1;\n\tret;\n}\n";
	char *const units[] = { unit_entry, unit_step, unit_blend };
	uint32_t n = ROUNDS, total;
	CUlinkState link;
	CUdeviceptr at;
	CUmodule m;
	CUfunction f;
	struct words w;
	size_t size;
	void *image;

	form_begin();
	DO(cuLinkCreate(0, NULL, NULL, &link));
	for (int i = 0; i < 3; i++)
		DO(cuLinkAddData(link, CU_JIT_INPUT_PTX, units[i], strlen(units[i]) + 1, "unit", 0,
				 NULL, NULL));
	DO(cuLinkComplete(link, &image, &size));
	DO(cuModuleLoadData(&m, image));
	DO(cuLinkDestroy(link));
	DO(cuModuleGetFunction(&f, m, "linked"));
	DO(cuModuleGetGlobal(&at, &size, m, "total"));
	w = words_new(form_blocks * THREADS);
	for (int i = 0; i < 4; i++) {
		LAUNCH(f, form_blocks, THREADS, NULL, &w.at, &n);
		for (size_t t = 0; t < w.n; t++)
			for (uint32_t k = n; k; k--)
				w.want[t] = ((w.want[t] * 31 + 3) ^ 5) + k;
	}
	DO(cuMemcpyDtoH(&total, at, sizeof(total)));
	CHECK(total == 7 + 4 * form_blocks);
	words_show("link-variables", &w);
}

static void function_attributes(void)
{
	static const char *const names[] = { "work", "reverse", "reduce", "heavy", "matmul" };
	CUfunction f;
	int v;

	form_begin();
	for (int again = 0; again < 2; again++) {
		for (unsigned int i = 0; i < 5; i++) {
			f = form_function(names[i]);
			for (int a = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
			     a <= CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT; a++) {
				DO(cuFuncGetAttribute(&v, a, f));
				printf("%s %d: %d\n", names[i], a, v);
			}
		}
		/* and after a launch, when gsched has its own form of it */
		launches("function-attributes", form_function("work"));
	}
}

static void function_shared_max(void)
{
	int most, blocks = 64;
	uint32_t n = ROUNDS;
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("reverse");
	w = words_new((size_t)blocks * THREADS);
	w.stride = 1;
	DO(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
				form_device));
	CHECK(most > 64 << 10);
	for (size_t i = 0; i < w.n; i++)
		w.want[i] = mix(12345, n);
	IS(INVALID_VALUE, cuLaunchKernel(f, blocks, 1, 1, THREADS, 1, 1, 64 << 10, NULL,
					 (void *[]){ &w.at, &n }, NULL));
	DO(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
	DO(cuLaunchKernel(f, blocks, 1, 1, THREADS, 1, 1, 64 << 10, NULL, (void *[]){ &w.at, &n },
			  NULL));
	words_check(&w);
	for (size_t i = 0; i < w.n; i++)
		w.want[i] = mix(w.want[i], n);
	DO(cuLaunchKernel(f, blocks, 1, 1, THREADS, 1, 1, most, NULL, (void *[]){ &w.at, &n },
			  NULL));
	words_show("function-shared-max", &w);
}

static void function_cache(void)
{
	form_begin();
	for (int c = CU_FUNC_CACHE_PREFER_NONE; c <= CU_FUNC_CACHE_PREFER_EQUAL; c++) {
		DO(cuFuncSetCacheConfig(form_function("work"), c));
		launches("function-cache", form_function("work"));
	}
	DO(cuFuncSetAttribute(form_function("work"),
			      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
	launches("function-cache", form_function("work"));
}

static void function_names(void)
{
	unsigned int n;
	const char *name;
	CUfunction *f, work_function;
	CUmodule m;
	size_t offset, size;

	form_begin();
	DO(cuModuleGetFunctionCount(&n, form_module));
	f = calloc(n, sizeof(*f));
	if (!f)
		abort();
	DO(cuModuleEnumerateFunctions(f, n, form_module));
	printf("%u\n", n);
	work_function = NULL;
	for (unsigned int i = 0; i < n; i++) {
		DO(cuFuncGetName(&name, f[i]));
		if (!strcmp(name, "work"))
			work_function = f[i];
	}
	free(f);
	CHECK(work_function);
	DO(cuFuncGetModule(&m, work_function));
	CHECK(m == form_module);
	for (size_t i = 0; cuFuncGetParamInfo(work_function, i, &offset, &size) == CUDA_SUCCESS;
	     i++)
		printf("parameter %zu: %zu bytes at %zu\n", i, size, offset);
	launches("function-names", work_function);
}

static size_t dynamic_for(int threads)
{
	return (size_t)threads * 4;
}

static void occupancy(void)
{
	static const char *const names[] = { "work", "reverse", "heavy" };
	int n, grid, block;
	size_t bytes;
	CUfunction f;

	form_begin();
	for (int again = 0; again < 2; again++) {
		for (unsigned int i = 0; i < 3; i++) {
			f = form_function(names[i]);
			DO(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, THREADS, 1024));
			DO(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, dynamic_for, 0, 0));
			DO(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, THREADS));
			printf("%s: %d blocks, %d of %d, %zu bytes\n", names[i], n, grid, block,
			       bytes);
		}
		launches("occupancy", form_function("work"));
	}
}

/* All that a launch needs, by cuGetProcAddress */
static void proc_address(void)
{
	__typeof__(cuModuleGetFunction) *get;
	__typeof__(cuLaunchKernel) *go;
	__typeof__(cuCtxSynchronize) *sync;
	CUdriverProcAddressQueryResult found;
	uint32_t n = ROUNDS * form_scale;
	struct words w;
	CUfunction f;
	void *p;

	form_begin();
	DO(cuGetProcAddress("cuModuleGetFunction", (void **)&get, 12000, 0, &found));
	CHECK(found == CU_GET_PROC_ADDRESS_SUCCESS);
	DO(cuGetProcAddress("cuLaunchKernel", (void **)&go, 12000, 0, &found));
	DO(cuGetProcAddress("cuCtxSynchronize", (void **)&sync, 12000, 0, &found));
	printf("%d", (int)cuGetProcAddress("cuNoSuchFunction", &p, 12000, 0, &found));
	printf(" %d\n", (int)found);
	DO(get(&f, form_module, "work"));
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 4; i++) {
		DO(go(f, form_blocks, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){ &w.at, &n, &i },
		      NULL));
		work_expect(&w, n, i);
	}
	DO(sync());
	/* the per-thread default stream's form */
	DO(cuGetProcAddress("cuLaunchKernel", (void **)&go, 12000,
			    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found));
	DO(go(f, form_blocks, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){ &w.at, &n, &n }, NULL));
	work_expect(&w, n, n);
	DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	words_show("proc-address", &w);
	/* by a symbol instead of a name: if the driver has that, it is the same function */
	if (!cuGetProcAddress("cuStreamDestroy", (void **)&get, 12000, 0, &found) &&
	    !cuGetProcAddress("cuStreamDestroy_v2", &p, 12000, 0, &found) && p)
		printf("%s\n", p == (void *)get ? "the same" : "another");
	/* a version to come, in which a name may stand for another function */
	if (!cuGetProcAddress("cuCtxSetLimit", (void **)&get, 12000, 0, &found) &&
	    !cuGetProcAddress("cuCtxSetLimit", &p, 90000, 0, &found) && p)
		printf("%s\n", p == (void *)get ? "the same" : "another");
}

/* The same by dlopen() and dlsym(), as a program does that is not linked against the driver */
static void by_library(const char *what, void *lib)
{
	__typeof__(cuInit) *init;
	__typeof__(cuLaunchKernel) *go;
	uint32_t n = ROUNDS * form_scale;
	struct words w;
	CUfunction f;

	if (!lib) {
		printf("%s\n", dlerror());
		exit(FORM_SKIP);
	}
	init = (__typeof__(init))dlsym(lib, "cuInit");
	go = (__typeof__(go))dlsym(lib, "cuLaunchKernel");
	CHECK(init && go && dlsym(lib, "cuCtxDestroy_v2") && !dlsym(lib, "cuNoSuchFunction"));
	DO(init(0));
	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 4; i++) {
		DO(go(f, form_blocks, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){ &w.at, &n, &i },
		      NULL));
		work_expect(&w, n, i);
	}
	words_show(what, &w);
	/* one by one: with what is linked they are the same library, also under gsched */
	printf("%s\n", go == cuLaunchKernel ? "the library that is linked" : "another library");
	dlclose(lib);
}

static void by_dlopen(const char *what, const char *name)
{
	by_library(what, dlopen(name, RTLD_NOW | RTLD_LOCAL));
}

static void dlopen_soname(void)
{
	by_dlopen("dlopen-soname", "libcuda.so.1");
}

static void dlopen_plain(void)
{
	by_dlopen("dlopen-plain", "libcuda.so");
}

/* The driver's file, where programs look for it themselves */
static const char *driver_path(void)
{
	static const char *const dirs[] = { "/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64",
					    "/usr/lib64" };
	const char *first = getenv("LD_LIBRARY_PATH");
	static char path[4096];

	if (first && *first == '/')
		snprintf(path, sizeof(path), "%.*s/libcuda.so.1", (int)strcspn(first, ":"), first);
	for (size_t i = 0; access(path, R_OK) && i < sizeof(dirs) / sizeof(dirs[0]); i++)
		snprintf(path, sizeof(path), "%s/libcuda.so.1", dirs[i]);
	return path;
}

/*
 * By the C library's own dlopen(), which a library that was loaded with RTLD_DEEPBIND finds first,
 * such as Taichi's
 */
static void dlopen_deepbind(void)
{
	__typeof__(dlopen) *open;
	void *c = dlopen("libc.so.6", RTLD_NOW);

	/* before glibc 2.34 it is in another library */
	open = c ? (__typeof__(open))dlsym(c, "dlopen") : NULL;
	by_library("dlopen-deepbind", open ? open("libcuda.so", RTLD_NOW | RTLD_LOCAL) : NULL);
}

/* By an absolute path */
static void dlopen_path(void)
{
	by_dlopen("dlopen-path", driver_path());
}

/* By a link to it of this name */
static void *open_link(const char *name)
{
	char dir[] = "/tmp/form-XXXXXX", path[64];
	void *lib;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK(!symlink(driver_path(), path));
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	rmdir(dir);
	return lib;
}

/* The name that the driver's package gives to the file */
static void dlopen_version(void)
{
	by_library("dlopen-version", open_link("libcuda.so.580.159.04"));
}

static void dlopen_link(void)
{
	by_library("dlopen-link", open_link("driver.so"));
}

static void dlmopen_base(void)
{
	by_library("dlmopen", dlmopen(LM_ID_BASE, driver_path(), RTLD_NOW | RTLD_LOCAL));
}

static void device_printf(void)
{
	static const char text[] = HEAD
		".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
		".global .align 1 .b8 format[10] = {115, 97, 121, 115, 32, 37, 117, 10, 0, 0};\n"
		".visible .entry say (.param .u32 n)\n{\n\t.local .align 8 .b8 args[8];\n"
		"\t.reg .b32 %r<3>;\n\t.reg .b64 %d<5>;\n"
		"\tmov.u64 %d1, args;\n\tcvta.local.u64 %d2, %d1;\n\tld.param.u32 %r1, [n];\n"
		"\tst.local.u32 [%d1], %r1;\n"
		"\tmov.u64 %d3, format;\n\tcvta.global.u64 %d4, %d3;\n"
		"\t{\n\t.param .b64 a;\n\t.param .b64 b;\n\t.param .b32 r;\n"
		"\tst.param.b64 [a], %d4;\n\tst.param.b64 [b], %d2;\n"
		"\tcall.uni (r), vprintf, (a, b);\n\tld.param.b32 %r2, [r];\n\t}\n\tret;\n}\n";
	uint32_t n;
	CUfunction f;
	CUmodule m;

	form_begin();
	DO(cuModuleLoadData(&m, text));
	DO(cuModuleGetFunction(&f, m, "say"));
	for (n = 0; n < 5; n++) {
		LAUNCH(f, 1, 1, NULL, &n);
		DO(cuCtxSynchronize());
	}
	fflush(stdout);
	puts("device-printf");
}

/* Texture and surface objects of an array */
static void texture(void)
{
	enum { WIDTH = 256, HEIGHT = 96 };
	CUDA_ARRAY3D_DESCRIPTOR d = { .Width = WIDTH,
				      .Height = HEIGHT,
				      .Format = CU_AD_FORMAT_UNSIGNED_INT32,
				      .NumChannels = 1,
				      .Flags = 2 /* surfaces of it */ };
	CUDA_TEXTURE_DESC how = { .addressMode = { CU_TR_ADDRESS_MODE_CLAMP,
						   CU_TR_ADDRESS_MODE_CLAMP },
				  .filterMode = CU_TR_FILTER_MODE_POINT,
				  .flags = 1 /* as integers */ };
	static uint32_t host[WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = host,
			       .srcPitch = WIDTH * 4,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .WidthInBytes = WIDTH * 4,
			       .Height = HEIGHT };
	uint32_t width = WIDTH;
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY };
	unsigned long long picture, board;
	CUarray a, b;
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("fetch");
	w = words_new(WIDTH * HEIGHT);
	w.stride = 1;
	DO(cuArray3DCreate(&a, &d));
	DO(cuArray3DCreate(&b, &d));
	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
		host[i] = i * 7;
	copy.dstArray = a;
	DO(cuMemcpy2D(&copy));
	memset(host, 0, sizeof(host));
	copy.dstArray = b;
	DO(cuMemcpy2D(&copy));
	r.res.array.hArray = a;
	DO(cuTexObjectCreate(&picture, &r, &how, NULL));
	r.res.array.hArray = b;
	DO(cuSurfObjectCreate(&board, &r));
	for (int k = 0; k < 3; k++)
		DO(cuLaunchKernel(f, WIDTH / THREADS, HEIGHT, 1, THREADS, 1, 1, 0, NULL,
				  (void *[]){ &w.at, &picture, &board, &width }, NULL));
	DO(cuCtxSynchronize());
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY,
				.srcArray = b,
				.dstMemoryType = CU_MEMORYTYPE_HOST,
				.dstHost = host,
				.dstPitch = WIDTH * 4,
				.WidthInBytes = WIDTH * 4,
				.Height = HEIGHT };
	DO(cuMemcpy2D(&copy));
	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
		w.want[i] = i * 21;
		CHECK(host[i] == i * 63);
	}
	DO(cuTexObjectDestroy(picture));
	DO(cuSurfObjectDestroy(board));
	DO(cuArrayDestroy(a));
	DO(cuArrayDestroy(b));
	words_show("texture", &w);
}

const struct form module_forms[] = {
	{ "module-reload", module_reload },
	{ "module-unload-busy", module_unload_busy },
	{ "module-twins", module_twins },
	{ "module-variables", module_variables },
	{ "module-options", module_options },
	{ "module-bad", module_bad },
	{ "module-file", module_file },
	{ "library", library },
	{ "library-unload-busy", library_unload_busy },
	{ "library-variables", library_variables },
	{ "library-contexts", library_contexts },
	{ "loading-eager", loading_eager },
	{ "loading-lazy", loading_lazy },
	{ "device-malloc", device_malloc },
	{ "device-assert", device_assert },
	{ "link", link_units },
	{ "link-variables", link_variables },
	{ "function-attributes", function_attributes },
	{ "function-shared-max", function_shared_max },
	{ "function-cache", function_cache },
	{ "function-names", function_names },
	{ "occupancy", occupancy },
	{ "proc-address", proc_address },
	{ "dlopen-soname", dlopen_soname },
	{ "dlopen-plain", dlopen_plain },
	{ "dlopen-deepbind", dlopen_deepbind },
	{ "dlopen-path", dlopen_path },
	{ "dlopen-version", dlopen_version },
	{ "dlopen-link", dlopen_link },
	{ "dlmopen", dlmopen_base },
	{ "device-printf", device_printf },
	{ "texture", texture },
	{ 0 },
};
