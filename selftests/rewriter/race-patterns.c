// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What compute-sanitizer makes of correct programs. Each pattern is a small kernel written by hand,
 * on which no rewriter has been; those that racecheck or synccheck has something to say of stand
 * beside others that differ in one thing and that it is content with. This runs them and looks at
 * what they computed; the tool is pointed at it (sanitizer.sh holds what it says against this
 * table).
 *
 * All have four warps that go round a loop, as workers do from block-task to block-task: each
 * thread puts a value into shared memory, and takes what the thread two warps further put there.
 * Whatever is between is what the pattern is about.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/cuda/base/cudadrv.h"

#define THREADS	128u
#define BLOCKS	4u
#define ROUNDS	6u
#define TEXT_MAX	16384

/*
 * %r1 thread, %r3 warp, %r5 its place and %r4 its partner's, %r10 round, %r13 what it puts, %r14
 * what it takes, %p6 not thread 0
 */
static const char head[] =
	".version 8.0\n"
	".target sm_%u\n"
	".address_size 64\n"
	".visible .entry pattern (.param .u64 in, .param .u64 out, .param .u32 rounds)\n"
	"{\n"
	".reg .u64 %%rd<8>;\n"
	".reg .u32 %%r<24>;\n"
	".reg .pred %%p<8>;\n"
	".shared .align 128 .b8 s[512];\n"
	".shared .align 8 .b64 m[8];\n"
	".shared .align 4 .b8 w[512];\n"
	"ld.param.u64 %%rd1, [in];\n"
	"ld.param.u64 %%rd2, [out];\n"
	"ld.param.u32 %%r20, [rounds];\n"
	"cvta.to.global.u64 %%rd1, %%rd1;\n"
	"cvta.to.global.u64 %%rd2, %%rd2;\n"
	"mov.u32 %%r1, %%tid.x;\n"
	"mov.u32 %%r2, %%ctaid.x;\n"
	"shr.u32 %%r3, %%r1, 5;\n"
	"setp.ne.u32 %%p6, %%r1, 0;\n"
	"mov.u32 %%r9, s;\n"
	"shl.b32 %%r6, %%r1, 2;\n"
	"add.u32 %%r5, %%r9, %%r6;\n"
	"xor.b32 %%r4, %%r6, 256;\n"
	"mov.u32 %%r7, w;\n"
	"add.u32 %%r21, %%r7, %%r4;\n"
	"add.u32 %%r4, %%r9, %%r4;\n"
	"add.u32 %%r7, %%r7, %%r6;\n"
	"mov.u32 %%r8, m;\n"
	"mov.u32 %%r10, 0;\n"
	"mov.u32 %%r11, 0;\n"
	"mul.lo.u32 %%r12, %%r2, 65537;\n"
	"mad.lo.u32 %%r12, %%r1, 3, %%r12;\n"
	"add.u32 %%r12, %%r12, 1;\n";
static const char round_begins[] =
	"round:\n"
	"mad.lo.u32 %r13, %r10, 257, %r12;\n";
static const char tail[] =
	"add.u32 %r11, %r11, %r14;\n"
	"add.u32 %r10, %r10, 1;\n"
	"setp.lt.u32 %p7, %r10, %r20;\n"
	"@%p7 bra round;\n"
	"mad.lo.u32 %r15, %r2, 128, %r1;\n"
	"mul.wide.u32 %rd3, %r15, 4;\n"
	"add.u64 %rd2, %rd2, %rd3;\n"
	"st.global.u32 [%rd2], %r11;\n"
	"ret;\n"
	"}\n";

/*
 * The exchange. In front of it all threads have waited for each other: nobody still takes what was
 * put there before
 */
#define ALL "bar.sync 0;\n"
#define EXCHANGE \
	"st.shared.u32 [%r5], %r13;\n" \
	ALL \
	"ld.shared.u32 %r14, [%r4];\n"

/*
 * One thread tells the others the round, as the one that fetches tells the worker what it has: the
 * first of the next warp each time
 */
#define TELL \
	"and.b32 %r16, %r10, 3;\n" \
	"shl.b32 %r16, %r16, 5;\n" \
	"setp.ne.u32 %p2, %r16, %r1;\n" \
	"@!%p2 st.shared.u32 [w], %r10;\n" \
	ALL \
	"ld.shared.u32 %r17, [w];\n" \
	"mad.lo.u32 %r14, %r17, 257, %r12;\n" \
	"xor.b32 %r18, %r1, 64;\n" \
	"sub.u32 %r18, %r18, %r1;\n" \
	"mad.lo.u32 %r14, %r18, 3, %r14;\n"

#define FIRST_PAIR \
	"setp.gt.u32 %p1, %r3, 1;\n" \
	"@%p1 bra past;\n" \
	"bar.sync 1, 64;\n" \
	"past:\n"

/* The values come by a bulk copy, which all wait for; PARITY is that of its phase */
#define BULK(MBARRIER, PARITY) \
	"mad.lo.u32 %r16, %r2, %r20, %r10;\n" \
	"mul.wide.u32 %rd4, %r16, 512;\n" \
	"add.u64 %rd4, %rd1, %rd4;\n" \
	"@%p6 bra copied;\n" \
	"fence.proxy.async;\n" \
	"mbarrier.arrive.expect_tx.shared.b64 %rd6, [" MBARRIER "], 512;\n" \
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd4], 512, [" \
		MBARRIER "];\n" \
	"copied:\n" \
	"again:\n" \
	"mbarrier.try_wait.parity.shared.b64 %p2, [" MBARRIER "], " PARITY ";\n" \
	"@!%p2 bra again;\n" \
	"ld.shared.u32 %r14, [%r4];\n" \
	"fence.proxy.async;\n" \
	ALL
#define MAKE(MBARRIER, COUNT) \
	"@!%p6 mbarrier.init.shared.b64 [" MBARRIER "], " COUNT ";\n" \
	ALL
#define UNMAKE(MBARRIER) "@!%p6 mbarrier.inval.shared.b64 [" MBARRIER "];\n" ALL

/* Each thread's word (%r7), and its partner's (%r21) */
#define WORDS \
	"mov.u32 %r16, 0;\n" \
	"st.shared.u32 [%r7], %r16;\n"

#define ARRIVE(LOOP) \
	"mbarrier.arrive.shared.b64 %rd6, [%r8];\n" \
	LOOP ":\n" \
	"mbarrier.test_wait.shared.b64 %p2, [%r8], %rd6;\n" \
	"@!%p2 bra " LOOP ";\n"

#define RACECHECK	"racecheck"
#define SYNCCHECK	"synccheck"

struct pattern {
	const char *name, *tool;
	bool reported;		/* the tool has something to say */
	unsigned int sm;
	unsigned int leave;	/* odd warps go after so many rounds; 0 with the others */
	const char *what;
	const char *before, *body;	/* the loop */
};

static const struct pattern patterns[] = {
	/* Barriers with a thread count */
	{ "all", RACECHECK, false, 75, 0, "barriers of all threads only", "", ALL EXCHANGE },
	{ "counted-all", RACECHECK, false, 75, 0, "all threads at one with a count, too", "",
	  "bar.sync 1, 128;\n" ALL EXCHANGE },
	{ "counted-pairs", RACECHECK, false, 75, 0, "each pair of warps at one of its own, once",
	  "", FIRST_PAIR
	  "@!%p1 bra all;\n"
	  "bar.sync 2, 64;\n"
	  "all:\n"
	  ALL EXCHANGE },
	{ "counted-pairs-uneven", RACECHECK, true, 75, 0, "the same, but the first pair twice", "",
	  FIRST_PAIR
	  "@!%p1 bra twice;\n"
	  "bar.sync 2, 64;\n"
	  "bra all;\n"
	  "twice:\n"
	  "bar.sync 1, 64;\n"
	  "all:\n"
	  ALL EXCHANGE },
	{ "counted-pair", RACECHECK, true, 75, 0, "two of four warps", "",
	  FIRST_PAIR ALL EXCHANGE },
	{ "counted-pair-once", RACECHECK, true, 75, 0, "two of four warps, once, before the loop",
	  FIRST_PAIR, ALL EXCHANGE },
	{ "counted-pair-then-three", RACECHECK, true, 75, 0,
	  "two of four warps, and three barriers of all threads behind it", "",
	  FIRST_PAIR ALL ALL ALL EXCHANGE },
	{ "counted-register", RACECHECK, true, 75, 0,
	  "two of four warps at one whose number is in a register", "", "setp.gt.u32 %p1, %r3, 1;\n"
	  "shr.u32 %r16, %r3, 1;\n"
	  "add.u32 %r16, %r16, 1;\n"
	  "@%p1 bra past;\n"
	  "bar.sync %r16, 64;\n"
	  "past:\n"
	  ALL EXCHANGE },
	{ "counted-arrive", RACECHECK, true, 75, 0, "one warp arrives, two wait, one does neither",
	  "", "setp.eq.u32 %p1, %r3, 3;\n"
	  "@%p1 bra past;\n"
	  "setp.eq.u32 %p1, %r3, 0;\n"
	  "@%p1 bra arrive;\n"
	  "bar.sync 5, 96;\n"
	  "bra past;\n"
	  "arrive:\n"
	  "bar.arrive 5, 96;\n"
	  "past:\n"
	  ALL EXCHANGE },
	{ "tell", RACECHECK, false, 75, 0,
	  "one thread tells all, a barrier between; barriers of all threads only", "", ALL TELL },
	{ "tell-counted", RACECHECK, true, 75, 0,
	  "the same behind a counted barrier of two of four warps", "", FIRST_PAIR ALL TELL },

	/* Bulk copies that are waited for by an mbarrier */
	{ "bulk", RACECHECK, false, 90, 0,
	  "one mbarrier, of which the phases are used one after the other", MAKE("%r8", "1"),
	  "and.b32 %r19, %r10, 1;\n" BULK("%r8", "%r19") },
	{ "bulk-places", RACECHECK, false, 90, 0,
	  "each round makes an mbarrier in another place and unmakes it", "",
	  "mad.lo.u32 %r21, %r10, 8, %r8;\n" MAKE("%r21", "1") BULK("%r21", "0") UNMAKE("%r21") },
	{ "bulk-again", RACECHECK, true, 90, 0, "each round makes it in the same place", "",
	  MAKE("%r8", "1") BULK("%r8", "0") UNMAKE("%r8") },

	/* Threads that wait for each other by words in shared memory */
	{ "mbarrier", RACECHECK, false, 80, 0, "all arrive at an mbarrier and look at its phase",
	  MAKE("%r8", "128"), "st.shared.u32 [%r5], %r13;\n"
	  ARRIVE("put")
	  "ld.shared.u32 %r14, [%r4];\n"
	  ARRIVE("taken") },
	{ "mbarrier-drop", RACECHECK, false, 80, ROUNDS / 2,
	  "the same; two warps leave early, and are no longer waited for", MAKE("%r8", "128"),
	  "st.shared.u32 [%r5], %r13;\n"
	  ARRIVE("put")
	  "ld.shared.u32 %r14, [%r4];\n"
	  "and.b32 %r16, %r3, 1;\n"
	  "setp.ne.u32 %p3, %r16, 0;\n"
	  "setp.eq.and.u32 %p3, %r10, 2, %p3;\n"
	  "@!%p3 bra stay;\n"
	  "mbarrier.arrive_drop.shared.b64 %rd6, [%r8];\n"
	  "sub.u32 %r10, %r20, 1;\n"
	  "bra left;\n"
	  "stay:\n"
	  ARRIVE("taken")
	  "left:\n" },
	{ "flags", RACECHECK, true, 75, 0,
	  "each thread's word is stored with release and loaded with acquire", WORDS, ALL
	  "add.u32 %r16, %r10, 1;\n"
	  "st.shared.u32 [%r5], %r13;\n"
	  "st.release.cta.shared.u32 [%r7], %r16;\n"
	  "look:\n"
	  "ld.acquire.cta.shared.u32 %r17, [%r21];\n"
	  "setp.ne.u32 %p1, %r17, %r16;\n"
	  "@%p1 bra look;\n"
	  "ld.shared.u32 %r14, [%r4];\n" },
	{ "flags-atomic", RACECHECK, true, 75, 0, "the same with atomics that release and acquire",
	  WORDS, ALL
	  "add.u32 %r16, %r10, 1;\n"
	  "st.shared.u32 [%r5], %r13;\n"
	  "atom.release.cta.shared.exch.b32 %r17, [%r7], %r16;\n"
	  "look:\n"
	  "atom.acquire.cta.shared.or.b32 %r17, [%r21], 0;\n"
	  "setp.ne.u32 %p1, %r17, %r16;\n"
	  "@%p1 bra look;\n"
	  "ld.shared.u32 %r14, [%r4];\n" },
	{ "count", RACECHECK, true, 75, 0, "all add one to a word, and look until all have", WORDS,
	  ALL
	  "mad.lo.u32 %r16, %r10, 128, 128;\n"
	  "st.shared.u32 [%r5], %r13;\n"
	  "atom.acq_rel.cta.shared.add.u32 %r17, [w], 1;\n"
	  "look:\n"
	  "ld.acquire.cta.shared.u32 %r17, [w];\n"
	  "setp.ne.u32 %p1, %r17, %r16;\n"
	  "@%p1 bra look;\n"
	  "ld.shared.u32 %r14, [%r4];\n" },

	/*
	 * One barrier at two instructions; each path stores on another side of its own, or the
	 * assembler would make them one
	 */
	{ "one-place", SYNCCHECK, false, 75, 0, "all at a barrier with a count", "",
	  "bar.sync 1, 128;\n" ALL EXCHANGE },
	{ "two-places", SYNCCHECK, true, 75, 0,
	  "the first two warps at one instruction, the others at another", "",
	  "setp.gt.u32 %p1, %r3, 1;\n"
	  "@%p1 bra other;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "bar.sync 1, 128;\n"
	  "bra past;\n"
	  "other:\n"
	  "bar.sync 1, 128;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "past:\n"
	  ALL EXCHANGE },
	{ "two-places-0", SYNCCHECK, false, 75, 0,
	  "the same with the barrier of all, without a count", "", "setp.gt.u32 %p1, %r3, 1;\n"
	  "@%p1 bra other;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "barrier.sync 0;\n"
	  "bra past;\n"
	  "other:\n"
	  "barrier.sync 0;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "past:\n"
	  ALL EXCHANGE },
	{ "two-places-pair", SYNCCHECK, true, 75, 0,
	  "two of four warps, each at an instruction of its own", "", "setp.gt.u32 %p1, %r3, 1;\n"
	  "@%p1 bra past;\n"
	  "setp.eq.u32 %p1, %r3, 1;\n"
	  "@%p1 bra other;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "bar.sync 1, 64;\n"
	  "bra past;\n"
	  "other:\n"
	  "bar.sync 1, 64;\n"
	  "st.volatile.shared.u32 [%r7], %r10;\n"
	  "past:\n"
	  ALL EXCHANGE },
};

#define N_PATTERNS	(sizeof(patterns) / sizeof(patterns[0]))

static const char *error(CUresult rc)
{
	const char *name = NULL;

	return cuGetErrorName(rc, &name) || !name ? "unknown error" : name;
}

#define TRY(call) \
	do { \
		CUresult rc_ = call; \
		if (rc_) { \
			printf("# %s: %s\n", #call, error(rc_)); \
			return false; \
		} \
	} while (0)

static bool text_of(const struct pattern *p, char *text)
{
	int n = snprintf(text, TEXT_MAX, head, p->sm);

	n += snprintf(text + n, TEXT_MAX - (size_t)n, "%s%s%s%s", p->before, round_begins,
		      p->body, tail);
	return n < TEXT_MAX;
}

/* What thread @t of block @b puts there in round @r */
static uint32_t value(uint32_t b, uint32_t r, uint32_t t)
{
	return b * 65537 + r * 257 + t * 3 + 1;
}

static bool right(const struct pattern *p, const uint32_t *out)
{
	unsigned int b, r, t, bad = 0;

	for (b = 0; b < BLOCKS; b++)
		for (t = 0; t < THREADS; t++) {
			unsigned int rounds = p->leave && t / 32 % 2 ? p->leave : ROUNDS;
			uint32_t sum = 0;

			for (r = 0; r < rounds; r++)
				sum += value(b, r, t ^ 64);
			bad += out[b * THREADS + t] != sum;
		}
	if (bad)
		printf("# %u of %u threads have another sum\n", bad, BLOCKS * THREADS);
	return !bad;
}

static bool run(const struct pattern *p)
{
	static uint32_t in[BLOCKS * ROUNDS * THREADS], out[BLOCKS * THREADS];
	static char text[TEXT_MAX];
	unsigned int rounds = ROUNDS, i;
	CUdeviceptr in_dev, out_dev;
	void *params[] = { &in_dev, &out_dev, &rounds };
	CUmodule module;
	CUfunction f;

	for (i = 0; i < BLOCKS * ROUNDS * THREADS; i++)
		in[i] = value(i / THREADS / ROUNDS, i / THREADS % ROUNDS, i % THREADS);
	if (!text_of(p, text))
		return false;
	TRY(cuModuleLoadData(&module, text));
	TRY(cuModuleGetFunction(&f, module, "pattern"));
	TRY(cuMemAlloc(&in_dev, sizeof(in)));
	TRY(cuMemAlloc(&out_dev, sizeof(out)));
	TRY(cuMemcpyHtoD(in_dev, in, sizeof(in)));
	TRY(cuMemsetD8(out_dev, 0, sizeof(out)));
	TRY(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	TRY(cuCtxSynchronize());
	TRY(cuMemcpyDtoH(out, out_dev, sizeof(out)));
	TRY(cuMemFree(in_dev));
	TRY(cuMemFree(out_dev));
	TRY(cuModuleUnload(module));
	return right(p, out);
}

static bool start(unsigned int *sm)
{
	int major = 0, minor = 0;
	char name[128];
	CUcontext ctx;
	CUdevice dev;

	TRY(cuInit(0));
	TRY(cuDeviceGet(&dev, 0));
	TRY(cuDevicePrimaryCtxRetain(&ctx, dev));
	TRY(cuCtxSetCurrent(ctx));
	TRY(cuDeviceGetName(name, sizeof(name), dev));
	TRY(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev));
	TRY(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev));
	*sm = (unsigned int)(major * 10 + minor);
	printf("# %s, sm_%u\n", name, *sm);
	return true;
}

int main(int argc, char **argv)
{
	bool list = argc == 2 && !strcmp(argv[1], "--list"), print = argc == 3 &&
		    !strcmp(argv[1], "--print"), good;
	unsigned int n = 0, bad = 0, sm = 0, i;
	static char text[TEXT_MAX];
	int k;

	for (k = 1 + (list || print); k < argc; k++) {
		for (i = 0; i < N_PATTERNS && strcmp(argv[k], patterns[i].name) != 0; i++)
			;
		if (i == N_PATTERNS) {
			fprintf(stderr, "race-patterns: %s: no such pattern\n"
				"usage: race-patterns [--list | --print NAME | NAME...]\n"
				"  without a name: all of them\n"
				"  --list   what there is: name, whose business, what that says "
				"(errors, none), lowest architecture, what it is\n"
				"  --print  its PTX\n", argv[k]);
			return 2;
		}
	}
	for (i = 0; i < N_PATTERNS; i++) {
		const struct pattern *p = &patterns[i];

		if (list)
			printf("%s %s %s sm_%u %s\n", p->name, p->tool, p->reported ? "errors" :
			       "none", p->sm, p->what);
		else if (print && !strcmp(argv[2], p->name))
			fputs(text_of(p, text) ? text : "", stdout);
	}
	if (list || print)
		return 0;
	if (!start(&sm)) {
		printf("Bail out! no device\n");
		return 1;
	}
	for (i = 0; i < N_PATTERNS; i++) {
		const struct pattern *p = &patterns[i];

		for (k = 1; k < argc && strcmp(argv[k], p->name) != 0; k++)
			;
		if (argc > 1 && k == argc)
			continue;
		good = p->sm > sm || run(p);
		bad += !good;
		printf("%sok %u - %s: %s%s\n", good ? "" : "not ", ++n, p->name, p->what,
		       p->sm > sm ? " # SKIP for higher architectures" : "");
		fflush(stdout);
	}
	printf("1..%u\n", n);
	return bad != 0;
}
