// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random kernels, each original against its twin while the window changes, memory compared bit for
 * bit.
 *
 *	fuzz-twins [--count N] [--seed S] [--runs N] [--weight NAME=N] [--dir DIR] [--no-reduce]
 *	[--resumable|--plain]
 *
 * A kernel that fails is reduced and printed with its launch, ready for selftests/rewriter/corpus;
 * --dir writes it there.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "gen.h"
#include "selftests/vgpu/test-exec.h"
#include "selftests/vgpu/twins.h"

#ifdef __SANITIZE_ADDRESS__
#define COUNT		40
#else
#define COUNT		300
#endif
#define FAILURES_MAX	10	/* then the rest is not worth the time */
#define REASONS_MAX	64
#define STEPS_MAX	(1ull << 28)
#define MEMORY_MAX	(2ul << 30)

enum outcome { FINE, REFUSED, BAD_LOAD, UNFAIR, BAD_REWRITE, DIFFERS };
static const char *const outcome_name[] = { "fine", "refused", "vgpu does not load it",
					    "the original is at fault", "the rewriter fails",
					    "the twin differs" };

struct options {
	unsigned long long count, seed;
	unsigned int runs;
	bool reduce, plain, resumable;
	bool broken;		/* a line of the twins is dropped, by the seed */
	const char *dir;
	struct gen_options gen;
};

static struct {
	unsigned long long kernels, refused, steps, restarts, features[GEN_FEATURE_COUNT];
	struct reason { char text[128]; unsigned int n; } refusal[REASONS_MAX],
		unsplit[REASONS_MAX], not_restarted[REASONS_MAX];
} total;

static char now_at[64];	/* for those that crash */

static void crashed(int sig)
{
	ssize_t r = write(STDOUT_FILENO, now_at, strlen(now_at));

	(void)r;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void note_reason(struct reason *list, const char *reason)
{
	unsigned int i;

	for (i = 0; i < REASONS_MAX - 1 && list[i].n; i++)
		if (!strcmp(list[i].text, reason))
			break;
	snprintf(list[i].text, sizeof(list[i].text), "%s", reason);
	list[i].n++;
}

/* One form of the twin */
static enum outcome compare(const char *ptx, struct twins *f, const struct test_launch *t,
			    uint64_t seed, unsigned int runs, bool resumable,
			    enum gsr_restart restart, bool broken, bool note, char *why,
			    size_t size)
{
	struct gsr_options o = { .size = sizeof(o), .name = t->kernel, .resumable = resumable,
				 .restart = restart,
				 .modes = seed / 2 % 2, .look = 1u << seed % 12,
				 .verify = true };
	const struct gsr_kernel *g;
	unsigned int i;

	gsr_rewrite_free(&f->rw);
	if (!twins_rewrite(f, ptx, strlen(ptx), &o, why, size))
		return BAD_REWRITE;
	if (broken) {
		char line[128];

		/* the first is the one that a lone worker does not need */
		if (!twins_drop(f, 1 + (unsigned int)(seed % 8), line, sizeof(line)) ||
		    !twins_reload(f, why, size))
			return REFUSED;
	}
	g = twins_described(f, t->kernel);
	if (!g || strstr(g->reason, "a bug of gsched")) {
		snprintf(why, size, "%s", g ? g->reason : "the kernel is not described");
		return BAD_REWRITE;
	}
	if (g->tier != GSR_TIER_BLOCK || (g->warp_rows && t->block_dim[0] % 32)) {
		if (note)
			note_reason(total.refusal, g->tier == GSR_TIER_BLOCK ?
				    "needs rows of whole warps" : g->reason);
		return REFUSED;
	}
	total.restarts += g->restarts;
	if (resumable && !g->resume_points)
		note_reason(restart ? total.not_restarted : total.unsplit,
			    g->resume_reason ? g->resume_reason : "no reason");
	for (i = 0; i < runs; i++)
		if (!twins_compare(f, t, seed * 1000 + i, why, size))
			return DIFFERS;
	return FINE;
}

static enum outcome examine(const char *ptx, const struct test_launch *t, uint64_t seed,
			    const struct options *o, unsigned int runs, unsigned int orders,
			    bool note, char *why, size_t size)
{
	enum outcome e = BAD_LOAD;
	uint64_t steps = 0;
	struct twins f;

	if (twins_load(&f, ptx, strlen(ptx), why, size)) {
		e = twins_fair(&f, t, seed, orders, &steps, why, size) ? FINE : UNFAIR;
		if (e == FINE && o->plain)
			e = compare(ptx, &f, t, seed, runs, false, GSR_RESTART_NEVER,
				    o->broken, note, why, size);
		if (e == FINE && o->resumable)
			e = compare(ptx, &f, t, seed, runs, true, GSR_RESTART_NEVER, o->broken,
				    note && !o->plain, why, size);
		if (e == FINE && o->resumable)
			e = compare(ptx, &f, t, seed, runs, true, GSR_RESTART_ALWAYS, o->broken,
				    false, why, size);
	}
	total.steps += steps;
	twins_close(&f);
	return e;
}

struct wanted {
	const struct options *o;
	enum outcome e;
	uint64_t seed;
};

static bool still_fails(struct gen_kernel *k, const char *ptx, void *arg)
{
	const struct wanted *w = arg;
	char why[2048];

	return examine(ptx, &k->launch, w->seed, w->o, w->o->runs * 4, w->e == UNFAIR ? 2 : 5,
		       false, why, sizeof(why)) == w->e;
}

static void show(struct gen_kernel *k, const struct options *o)
{
	char *ptx = gen_print(k), path[4096], *line, *save;
	FILE *f;

	if (!ptx)
		return;
	printf("# ");
	gen_print_launch(k, stdout);
	if (o->dir) {
		snprintf(path, sizeof(path), "%s/%s.ptx", o->dir, k->launch.kernel);
		f = fopen(path, "w");
		if (f) {
			fputs(ptx, f);
			fclose(f);
		}
		snprintf(path, sizeof(path), "%s/%s.launch", o->dir, k->launch.kernel);
		f = fopen(path, "w");
		if (f) {
			gen_print_launch(k, f);
			fclose(f);
		}
	}
	for (line = strtok_r(ptx, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		printf("# %s\n", line);
	free(ptx);
}

static bool one(uint64_t seed, const struct options *o)
{
	struct gen_kernel *k = gen_kernel_new(seed, &o->gen);
	char *ptx = k ? gen_print(k) : NULL, why[2048] = "out of memory";
	struct wanted w = { .o = o, .seed = seed };
	unsigned int i;

	snprintf(now_at, sizeof(now_at), "# crashed at --seed %llu --count 1\n",
		 (unsigned long long)seed);
	w.e = ptx ? examine(ptx, &k->launch, seed, o, o->runs, 2, true, why, sizeof(why)) :
	      BAD_LOAD;
	free(ptx);
	total.kernels++;
	for (i = 0; k && i < GEN_FEATURE_COUNT; i++)
		total.features[i] += k->count[i] != 0;
	if (w.e == REFUSED)
		total.refused++;
	if (w.e > REFUSED) {
		ok(false, "seed %llu: %s", (unsigned long long)seed, outcome_name[w.e]);
		printf("# --seed %llu --count 1: %s\n", (unsigned long long)seed, why);
		if (k && o->reduce) {
			i = gen_reduce(k, still_fails, &w);
			printf("# reduced in %u trials; runs from seed %llu\n", i,
			       (unsigned long long)seed * 1000);
			show(k, o);
		}
	}
	gen_kernel_free(k);
	return w.e <= REFUSED;
}

/* The harness itself */
static void test_broken(const struct options *o)
{
	struct options bad = *o;
	unsigned int caught = 0, n = 0, i;
	char why[2048];

	bad.broken = true;
	bad.plain = true;
	for (i = 0; i < 50; i++) {
		struct gen_kernel *k = gen_kernel_new(i, &bad.gen);
		char *ptx = k ? gen_print(k) : NULL;
		enum outcome e = ptx ? examine(ptx, &k->launch, i, &bad, 10, 1, false, why,
					       sizeof(why)) : REFUSED;

		n += e == FINE || e == DIFFERS;
		caught += e == DIFFERS;
		free(ptx);
		gen_kernel_free(k);
	}
	ok(caught * 3 > n && n > 30, "of twins broken on purpose %u of %u are caught", caught, n);
}

static void report(const struct options *o, unsigned int failed)
{
	unsigned int i, never = 0;

	for (i = 0; i < REASONS_MAX && total.refusal[i].n; i++)
		printf("# refused %u: %s\n", total.refusal[i].n, total.refusal[i].text);
	for (i = 0; i < REASONS_MAX && total.unsplit[i].n; i++)
		printf("# not resumable %u: %s\n", total.unsplit[i].n, total.unsplit[i].text);
	for (i = 0; i < REASONS_MAX && total.not_restarted[i].n; i++)
		printf("# not restarted %u: %s\n", total.not_restarted[i].n,
		       total.not_restarted[i].text);
	for (i = 0; i < GEN_FEATURE_COUNT; i++) {
		printf("%s%s %llu", i % 8 ? ", " : i ? "\n# " : "# kernels with ",
		       gen_feature_name[i], total.features[i]);
		never += o->gen.weight[i] && !total.features[i];
	}
	printf("\n# %llu kernels, %llu refused, %llu million thread-instructions of originals; "
	       "%llu runs of twins, %llu with records, %llu workers, %llu block-tasks left in "
	       "their middle, %llu workers left early, %llu wings, %llu changes of the window\n",
	       total.kernels, total.refused, total.steps / 1000000, twins_stats.runs,
	       twins_stats.resumable, twins_stats.workers, twins_stats.suspended, twins_stats.left,
	       twins_stats.wings, twins_stats.changes);
	ok(!failed, "%llu random kernels from seed %llu: originals and twins leave the same memory",
	   total.kernels, o->seed);
	if (o->count >= 100) {
		ok(!never || o->count < 300, "every feature was generated");
		ok(total.refused * 3 < total.kernels, "most of them are rewritten");
		ok(twins_stats.left > twins_stats.runs && twins_stats.wings > twins_stats.runs,
		   "runs are evicted and grow");
		if (o->resumable)
			ok(twins_stats.suspended > twins_stats.resumable,
			   "block-tasks are left in their middle and resumed");
		if (o->resumable)
			ok(total.restarts * 20 > total.kernels,
			   "some may begin block-tasks again (%llu)", total.restarts);
	}
}

int main(int argc, char **argv)
{
	struct options o = { .count = COUNT, .seed = 1, .runs = 3, .reduce = true, .plain = true,
			     .resumable = true };
	unsigned int failed = 0;
	unsigned long long i;
	int a;

	gen_options_init(&o.gen);
	for (a = 1; a < argc; a++) {
		const char *v = argv[a + 1];

		if (!strcmp(argv[a], "--no-reduce"))
			o.reduce = false;
		else if (!strcmp(argv[a], "--resumable"))
			o.plain = false;
		else if (!strcmp(argv[a], "--plain"))
			o.resumable = false;
		else if (v && !strcmp(argv[a], "--count") && ++a)
			o.count = strtoull(v, NULL, 0);
		else if (v && !strcmp(argv[a], "--seed") && ++a)
			o.seed = strtoull(v, NULL, 0);
		else if (v && !strcmp(argv[a], "--runs") && ++a)
			o.runs = (unsigned int)strtoul(v, NULL, 0);
		else if (v && !strcmp(argv[a], "--dir") && ++a)
			o.dir = v;
		else if (!v || strcmp(argv[a], "--weight") ||
			 !gen_options_weight(&o.gen, argv[++a]))
			return fprintf(stderr, "usage: %s [--count N] [--seed S] [--runs N] "
				       "[--weight NAME=N] [--dir DIR] [--no-reduce] "
				       "[--resumable|--plain]\n", argv[0]), 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
#ifndef __SANITIZE_ADDRESS__
	/* whoever goes astray fails here, and does not take the machine's memory */
	setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
#endif
	signal(SIGSEGV, crashed);
	signal(SIGABRT, crashed);
	twins_init();
	twins_steps_max = STEPS_MAX;
	for (i = 0; i < o.count && failed < FAILURES_MAX; i++)
		failed += !one(o.seed + i, &o);
	report(&o, failed);
	if (o.count >= 100)
		test_broken(&o);
	return done();
}
