// SPDX-License-Identifier: LGPL-2.1-or-later
/* Launches: their calls, shapes, parameters and errors */
#include <stddef.h>
#include "forms.h"

static void plain(void)
{
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 6; i++)
		work(f, NULL, &w, ROUNDS, i);
	words_show("plain", &w);
}

static void launch_ex(CUfunction f, const struct words *w, CUlaunchAttribute *attrs,
		      unsigned int n_attrs, uint32_t seed)
{
	CUlaunchConfig config = {
		.gridDimX = (unsigned int)(w->n / THREADS),
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = attrs,
		.numAttrs = n_attrs,
	};
	uint32_t n = ROUNDS * form_scale;
	CUdeviceptr at = w->at;

	DO(cuLaunchKernelEx(&config, f, (void *[]){ &at, &n, &seed }, NULL));
}

/* launch_ex() four times with one attribute */
static void with_attribute(const char *what, CUlaunchAttribute *attr)
{
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 4; i++) {
		launch_ex(f, &w, attr, !!attr, i);
		work_expect(&w, ROUNDS * form_scale, i);
	}
	words_show(what, &w);
}

static void ex(void)
{
	with_attribute("ex", NULL);
}

static void ex_priority(void)
{
	with_attribute("ex-priority", &(CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
							    .value.priority = -1 });
}

/* Each lets the next one begin early, which then waits for its results */
static void ex_programmatic(void)
{
	static const char text[] =
		".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry after (.param .u64 p, .param .u32 n)\n{\n\t.reg .b32 %r<6>;\n"
		"\t.reg .b64 %d<3>;\n"
		"\tld.param.u64 %d1, [p];\n\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, %ctaid.x;\n"
		"\tmov.u32 %r3, %ntid.x;\n"
		"\tmov.u32 %r4, %tid.x;\n\tmad.lo.u32 %r4, %r2, %r3, %r4;\n"
		"\tmul.wide.u32 %d2, %r4, 4;\n"
		"\tadd.u64 %d1, %d1, %d2;\n\tgriddepcontrol.launch_dependents;\n"
		"\tgriddepcontrol.wait;\n"
		"\tld.global.u32 %r5, [%d1];\n\tmad.lo.u32 %r5, %r5, 31, %r1;\n"
		"\tst.global.u32 [%d1], %r5;\n\tret;\n}\n";
	CUlaunchAttribute early = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
				    .value.programmaticStreamSerializationAllowed = 1 };
	CUlaunchConfig config = {
		.gridDimX = form_blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &early,
		.numAttrs = 1,
	};
	struct words w;
	CUmodule m;
	CUfunction f;

	form_begin();
	DO(cuModuleLoadData(&m, text));
	DO(cuModuleGetFunction(&f, m, "after"));
	w = words_new(form_blocks * THREADS);
	DO(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING));
	DO(cuCtxSynchronize());
	for (uint32_t n = 0; n < 20; n++) {
		DO(cuLaunchKernelEx(&config, f, (void *[]){ &w.at, &n }, NULL));
		for (size_t i = 0; i < w.n; i++)
			w.want[i] = w.want[i] * 31 + n;
	}
	DO(cuStreamSynchronize(config.hStream));
	words_show("ex-programmatic", &w);
}

static void cooperative(void)
{
	struct words w;
	CUfunction f;
	uint32_t n = ROUNDS * form_scale;

	form_begin();
	f = form_function("work");
	w = words_new(FEW * THREADS);
	for (uint32_t i = 0; i < 4; i++) {
		DO(cuLaunchCooperativeKernel(f, FEW, 1, 1, THREADS, 1, 1, 0, NULL,
					     (void *[]){ &w.at, &n, &i }));
		work_expect(&w, n, i);
	}
	words_show("cooperative", &w);
}

/* By the calls of CUDA 2, for which the function keeps shape and parameters */
static void old_calls(void)
{
	uint32_t n = ROUNDS * form_scale;
	struct words w;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	DO(cuStreamCreate(&s, CU_STREAM_DEFAULT));
	IS(INVALID_VALUE, cuLaunchGrid(f, 0, 1));
	DO(cuFuncSetBlockShape(f, THREADS, 1, 1));
	DO(cuFuncSetSharedSize(f, 0));
	DO(cuParamSetSize(f, 16));
	DO(cuParamSetv(f, 0, &w.at, sizeof(w.at)));
	DO(cuParamSeti(f, 8, n));
	for (uint32_t i = 0; i < 6; i++) {
		DO(cuParamSeti(f, 12, i));
		if (i & 1)
			DO(cuLaunchGrid(f, (int)form_blocks, 1));
		else
			DO(cuLaunchGridAsync(f, (int)form_blocks, 1, s));
		work_expect(&w, n, i);
	}
	words_show("old-calls", &w);
	w = words_new(THREADS);
	DO(cuParamSetv(f, 0, &w.at, sizeof(w.at)));
	DO(cuLaunch(f));
	work_expect(&w, n, 5);
	words_show("old-calls, one block", &w);
}

/* On each of the devices, at the same time */
static void several_devices(void)
{
	const unsigned int apart = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
				   CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
	CUDA_LAUNCH_PARAMS p = {
		.gridDimX = FEW, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1,
	};
	uint32_t n = ROUNDS * form_scale;
	struct words w;

	form_begin();
	p.function = form_function("work");
	w = words_new(FEW * THREADS);
	IS(INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&p, 0, apart));
	DO(cuStreamCreate(&p.hStream, CU_STREAM_NON_BLOCKING));
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < 4; i++) {
		p.kernelParams = (void *[]){ &w.at, &n, &i };
		DO(cuLaunchCooperativeKernelMultiDevice(&p, 1, apart));
		work_expect(&w, n, i);
	}
	DO(cuStreamSynchronize(p.hStream));
	words_show("several-devices", &w);
}

static void big_grid(void)
{
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new((size_t)form_blocks * 20 * THREADS);
	work(f, NULL, &w, 4, 1);
	work(f, NULL, &w, 4, 2);
	words_show("big-grid", &w);
}

static void small_grid(void)
{
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(THREADS);
	for (uint32_t i = 0; i < 20; i++)
		work(f, NULL, &w, ROUNDS, i);
	words_show("small-grid", &w);
}

/* One shape of grid and blocks, two launches */
static void shape(const char *what, const unsigned int g[3], const unsigned int b[3])
{
	uint32_t n = ROUNDS * form_scale, *want;
	struct words w;
	CUfunction f;
	unsigned int at[6];

	form_begin();
	f = form_function("grid3");
	w = words_new((size_t)g[0] * g[1] * g[2] * b[0] * b[1] * b[2]);
	w.stride = 1;
	for (uint32_t seed = 1; seed < 3; seed++) {
		DO(cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], 0, NULL,
				  (void *[]){ &w.at, &n, &seed }, NULL));
		want = w.want;
		for (at[5] = 0; at[5] < g[2]; at[5]++)
			for (at[4] = 0; at[4] < g[1]; at[4]++)
				for (at[3] = 0; at[3] < g[0]; at[3]++)
					for (at[2] = 0; at[2] < b[2]; at[2]++)
						for (at[1] = 0; at[1] < b[1]; at[1]++)
							for (at[0] = 0; at[0] < b[0];
							     at[0]++, want++)
								*want = mix(*want ^ seed ^
										    (at[3] +
										     31 * at[4] +
										     1009 * at[5] +
										     7 * at[0] +
										     13 * at[1] +
										     17 * at[2]),
									    n);
	}
	words_show(what, &w);
}

static void one_dimension(void)
{
	shape("1d", (const unsigned int[]){ 190, 1, 1 }, (const unsigned int[]){ 60, 1, 1 });
}

static void two_dimensions(void)
{
	shape("2d", (const unsigned int[]){ 19, 11, 1 }, (const unsigned int[]){ 8, 7, 1 });
}

static void three_dimensions(void)
{
	shape("3d", (const unsigned int[]){ 7, 6, 5 }, (const unsigned int[]){ 4, 3, 5 });
}

static void dynamic_shared(void)
{
	uint32_t n = ROUNDS, was[THREADS];
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("reverse");
	w = words_new(form_blocks * THREADS);
	w.stride = 1;
	for (size_t i = 0; i < w.n; i++)
		w.want[i] = (uint32_t)i;
	DO(cuMemcpyHtoD(w.at, w.want, w.n * 4));
	for (unsigned int k = 0; k < 3; k++) {
		DO(cuLaunchKernel(f, form_blocks, 1, 1, THREADS, 1, 1, THREADS * 4, NULL,
				  (void *[]){ &w.at, &n }, NULL));
		for (size_t i = 0; i < w.n; i += THREADS) {
			memcpy(was, w.want + i, sizeof(was));
			for (size_t t = 0; t < THREADS; t++)
				w.want[i + t] = mix(was[THREADS - 1 - t], n);
		}
	}
	words_show("dynamic-shared", &w);
}

struct many {
	CUdeviceptr out;
	uint8_t a;
	uint64_t b;
	uint16_t c;
	uint32_t d;
	uint64_t e;
	uint8_t f;
	float g;
	double h;
	uint32_t i, j, k, l;
	uint64_t m;
	uint16_t n;
	uint8_t o;
	uint32_t p, q;
	uint64_t r;
	uint32_t s;
};

static struct many many_new(const struct words *w)
{
	return (struct many){
		w->at,	       1,  0x200000003u, 4,  5,	 0x600000007u,	8, 9, 10, 11, 12, 13, 14,
		0x1500000016u, 17, 18,		 19, 20, 0x2100000022u, 23
	};
}

static void many_expect(struct words *w, const struct many *a)
{
	uint64_t sum = a->a + a->b + a->c + a->d + a->e + a->f + (uint64_t)a->g + (uint64_t)a->h +
		       a->i + a->j + a->k + a->l + a->m + a->n + a->o + a->p + a->q + a->r + a->s;

	for (size_t t = 0; t < w->n; t++)
		w->want[t] = w->want[t] * 31u + (uint32_t)sum + (uint32_t)(sum >> 32) + (uint32_t)t;
}

static void many_parameters(void)
{
	struct words w;
	struct many a;
	CUfunction f;

	form_begin();
	f = form_function("many");
	w = words_new(form_blocks * THREADS);
	a = many_new(&w);
	for (int k = 0; k < 10; k++) {
		a.d = (uint32_t)k;
		LAUNCH(f, form_blocks, THREADS, NULL, &a.out, &a.a, &a.b, &a.c, &a.d, &a.e, &a.f,
		       &a.g, &a.h, &a.i, &a.j, &a.k, &a.l, &a.m, &a.n, &a.o, &a.p, &a.q, &a.r,
		       &a.s);
		many_expect(&w, &a);
	}
	words_show("many-parameters", &w);
}

static void aligned_parameters(void)
{
	struct { uint32_t word[32]; } descriptor;
	uint32_t a = 5, b = 7;
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("aligned");
	w = words_new(form_blocks * THREADS);
	for (uint32_t k = 0; k < 10; k++) {
		for (uint32_t i = 0; i < 32; i++)
			descriptor.word[i] = (i + k) * 2654435761u;
		LAUNCH(f, form_blocks, THREADS, NULL, &descriptor, &a, &w.at, &b);
		for (size_t t = 0; t < w.n; t++)
			w.want[t] = w.want[t] * 31u + a + b + descriptor.word[t & 31] +
				    (uint32_t)t;
	}
	words_show("aligned-parameters", &w);
}

static void packed_parameters(void)
{
	struct words w;
	struct many a;
	CUfunction f;
	/* without what pads the structure */
	size_t size = offsetof(struct many, s) + sizeof(a.s);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &a, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };

	form_begin();
	f = form_function("many");
	w = words_new(form_blocks * THREADS);
	a = many_new(&w);
	for (int k = 0; k < 10; k++) {
		a.d = (uint32_t)k;
		DO(cuLaunchKernel(f, form_blocks, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
		many_expect(&w, &a);
	}
	words_show("packed-parameters", &w);
}

/* 200 kernels, each of its own, each launched twice */
static void kernels_200(void)
{
	enum { KERNELS = 200, ROOM = 700 };
	char *text = malloc(KERNELS * ROOM + 100), *p = text, name[8];
	struct words w;
	CUmodule m;
	CUfunction f;

	if (!text)
		abort();
	form_begin();
	p += sprintf(p, ".version 7.0\n.target sm_70\n.address_size 64\n");
	for (unsigned int k = 0; k < KERNELS; k++)
		p += snprintf(
			p, ROOM,
			".visible .entry k%u (.param .u64 p)\n{\n\t.reg .b32 %%r<6>;\n"
			"\t.reg .b64 %%d<3>;\n"
			"\tld.param.u64 %%d1, [p];\n\tmov.u32 %%r1, %%ctaid.x;\n"
			"\tmov.u32 %%r2, %%ntid.x;\n\tmov.u32 %%r3, %%tid.x;\n"
			"\tmad.lo.u32 %%r4, %%r1, %%r2, %%r3;\n\tmul.wide.u32 %%d2, %%r4, 4;\n"
			"\tadd.u64 %%d1, %%d1, %%d2;\n"
			"\tld.global.u32 %%r5, [%%d1];\n\tmad.lo.u32 %%r5, %%r5, 31, %u;\n"
			"\tst.global.u32 [%%d1], %%r5;\n"
			"\tret;\n}\n",
			k, k);
	DO(cuModuleLoadData(&m, text));
	free(text);
	w = words_new(FEW * THREADS);
	for (unsigned int k = 0; k < 2 * KERNELS; k++) {
		snprintf(name, sizeof(name), "k%u", k % KERNELS);
		DO(cuModuleGetFunction(&f, m, name));
		LAUNCH(f, FEW, THREADS, NULL, &w.at);
		for (size_t i = 0; i < w.n; i++)
			w.want[i] = w.want[i] * 31 + k % KERNELS;
	}
	words_show("kernels-200", &w);
}

static void tiny_2000(void)
{
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(THREADS);
	for (uint32_t i = 0; i < 2000; i++) {
		work_launch(f, NULL, &w, 1, i);
		work_expect(&w, 1, i);
		if (!(i % 8))
			DO(cuCtxSynchronize());
	}
	words_show("tiny-2000", &w);
}

/* A kernel of long blocks and behind it 1500 short ones, or memsets: more than the driver queues */
static void run_ahead(void)
{
	struct words w, tiny, set;
	uint32_t i, k;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	tiny = words_new(THREADS);
	set = words_new(THREADS);
	for (i = 0; i < 100; i++) {
		work_launch(f, NULL, &tiny, 1, i);
		work_expect(&tiny, 1, i);
		DO(cuCtxSynchronize());
	}
	for (k = 0; k < 4; k++) {
		work(f, NULL, &w, 80 * ROUNDS, k);
		for (i = 0; i < 1500; i++) {
			if (k % 2) {
				DO(cuMemsetD32Async(set.at, i, THREADS, NULL));
				continue;
			}
			work_launch(f, NULL, &tiny, 1, i);
			work_expect(&tiny, 1, i);
		}
	}
	for (i = 0; i < THREADS; i++)
		set.want[i] = 1499;
	DO(cuCtxSynchronize());
	words_show("run-ahead", &w);
	words_show("run-ahead", &tiny);
	words_show("run-ahead", &set);
}

/* Launches that cannot be: what is said natively, and none does harm */
static void bad(const char *what, const unsigned int (*shapes)[7], unsigned int n_shapes)
{
	struct words w;
	uint32_t n = 1, seed = 1;
	CUfunction f;
	int r;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	/* as a kernel that is known, with a form that gsched made of it */
	for (uint32_t i = 0; i < 3; i++)
		work(f, NULL, &w, ROUNDS, i);
	DO(cuCtxSynchronize());
	for (unsigned int i = 0; i < n_shapes; i++) {
		const unsigned int *s = shapes[i];

		r = cuLaunchKernel(f, s[0], s[1], s[2], s[3], s[4], s[5], s[6], NULL,
				   (void *[]){ &w.at, &n, &seed }, NULL);
		printf("%d\n", r);
		if (!r)
			form_fail(
				"%u x %u x %u blocks of %u x %u x %u threads were launched",
				s[0], s[1], s[2], s[3], s[4], s[5]);
	}
	work(f, NULL, &w, ROUNDS, 7);
	words_show(what, &w);
}

static void bad_block(void)
{
	bad("bad-block",
	    (const unsigned int[][7]){
		    { 1, 1, 1, 4096, 1, 1 }, { 1, 1, 1, 1, 1, 128 }, { 1, 1, 1, 0, 1, 1 } },
	    3);
}

static void bad_shared(void)
{
	bad("bad-shared", (const unsigned int[][7]){ { 1, 1, 1, 32, 1, 1, 1 << 20 } }, 1);
}

static void bad_grid(void)
{
	bad("bad-grid", (const unsigned int[][7]){ { 0, 1, 1, 32, 1, 1 }, { 1, 0, 1, 32, 1, 1 } },
	    2);
}

/* beyond what the second and third dimension may have */
static void bad_grid_size(void)
{
	bad("bad-grid-size",
	    (const unsigned int[][7]){ { 1, 70000, 1, 32, 1, 1 }, { 1, 1, 70000, 32, 1, 1 } }, 2);
}

/* A kernel that faults: its error, and that it stays */
static void fault(const char *name)
{
	CUdeviceptr nowhere = 0x100000, p;
	struct words w;

	form_begin();
	w = words_new(form_blocks * THREADS);
	work(form_function("work"), NULL, &w, ROUNDS, 1);
	words_check(&w);
	LAUNCH(form_function(name), 1, 32, NULL, &nowhere);
	printf("%d", (int)cuCtxSynchronize());
	printf(" %d", (int)cuCtxSynchronize());
	printf(" %d\n", (int)cuMemAlloc(&p, 4));
}

static void fault_address(void)
{
	fault("wild");
}

static void fault_trap(void)
{
	fault("trap");
}

const struct form launch_forms[] = {
	{ "plain", plain },
	{ "ex", ex },
	{ "ex-priority", ex_priority },
	{ "ex-programmatic", ex_programmatic },
	{ "cooperative", cooperative },
	{ "old-calls", old_calls },
	{ "several-devices", several_devices },
	{ "big-grid", big_grid },
	{ "small-grid", small_grid },
	{ "1d", one_dimension },
	{ "2d", two_dimensions },
	{ "3d", three_dimensions },
	{ "dynamic-shared", dynamic_shared },
	{ "many-parameters", many_parameters },
	{ "aligned-parameters", aligned_parameters },
	{ "packed-parameters", packed_parameters },
	{ "kernels-200", kernels_200 },
	{ "tiny-2000", tiny_2000 },
	{ "run-ahead", run_ahead },
	{ "bad-block", bad_block },
	{ "bad-shared", bad_shared },
	{ "bad-grid", bad_grid },
	{ "bad-grid-size", bad_grid_size },
	{ "fault-address", fault_address },
	{ "fault-trap", fault_trap },
	{ 0 },
};
