// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The corpus, originals against their rewritten twins (twins.h).
 *
 *	vgpu-rewrite [--seeds N] [--seed S] [--kernel NAME] [--drop N]
 *		[--resumable|--restart] [FILE.ptx...]
 *
 * Launches come from FILE.launch. --drop takes the N-th barrier or store to the task's words out of
 * the twins: then this must fail.
 */
#include <errno.h>
#include <glob.h>
#include <linux/gsched.h>
#include "test-exec.h"
#include "twins.h"

#define LOOK		64	/* short kernels look more often, too, whether to leave */

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		text = malloc((size_t)n + 1);
		if (text)
			text[*size = fread(text, 1, (size_t)n, f)] = 0;
	}
	fclose(f);
	return text;
}

struct options {
	unsigned int seeds;
	uint64_t seed;		/* the first; 0: another for each target */
	const char *kernel;
	int drop;		/* line to drop, -1 none */
	bool resumable, restart;	/* the latter only with the former */
};

struct file {
	char *text;
	size_t size;
	struct twins twins[2];	/* with all modes and without; the latter not where a line is
				 * dropped */
	char dropped[128];
};

static void file_close(struct file *f)
{
	twins_close(&f->twins[0]);
	twins_close(&f->twins[1]);
	free(f->text);
	f->text = NULL;
}

static bool file_open(struct file *f, const char *path, const struct options *opt, char *why,
		      size_t size)
{
	struct gsr_options o = { .size = sizeof(o), .name = path, .resumable = opt->resumable,
				 .restart = opt->restart ? GSR_RESTART_ALWAYS : GSR_RESTART_NEVER,
				 .look = LOOK };
	unsigned int i;

	memset(f, 0, sizeof(*f));
	f->text = read_file(path, &f->size);
	if (!f->text) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	for (i = 0; i < (opt->drop < 0 ? 2 : 1); i++) {
		o.modes = !i;
		if (!twins_load(&f->twins[i], f->text, f->size, why, size) ||
		    !twins_rewrite(&f->twins[i], f->text, f->size, &o, why, size))
			return false;
	}
	if (opt->drop < 0 || !f->twins[0].rw.ptx)
		return true;
	if (!twins_drop(&f->twins[0], (unsigned int)opt->drop, f->dropped, sizeof(f->dropped))) {
		snprintf(why, size, "no line %d to drop", opt->drop);
		return false;
	}
	return twins_reload(&f->twins[0], why, size);
}

static unsigned int arch_of(const char *ptx)
{
	const char *t = strstr(ptx, ".target sm_");

	return t ? (unsigned int)strtoul(t + strlen(".target sm_"), NULL, 10) : 0;
}

/* Seeds until the first failure, either twin in turns; -1 none failed */
static long long first_failure(const struct file *f, const struct test_launch *t,
			       const struct options *o, char *why, size_t size)
{
	uint64_t first = o->seed ? o->seed : 1 + 1000 * arch_of(f->text);
	unsigned int i;

	for (i = 0; i < o->seeds; i++)
		if (!twins_compare(&f->twins[o->drop < 0 ? (first + i) % 2 : 0], t,
				   first + i, why, size))
			return (long long)first + i;
	return -1;
}

static void test_file(const char *path, const struct options *o)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct test_launches all = { 0 };
	struct file f = { 0 };
	unsigned long long suspended;
	char why[2048] = "";
	unsigned int i;

	if (!launches_read(path, &all, why, sizeof(why)) ||
	    !file_open(&f, path, o, why, sizeof(why))) {
		if (o->drop < 0 || strncmp(why, "no line", 7))
			ok(false, "%s: %s", base, why);
		file_close(&f);
		launches_free(&all);
		return;
	}
	for (i = 0; i < all.n; i++) {
		const struct test_launch *t = &all.launch[i];
		const struct gsr_kernel *g = twins_described(&f.twins[0], t->kernel);
		long long seed;

		if (o->kernel && strcmp(o->kernel, t->kernel))
			continue;
		if (!t->block || t->arch > arch_of(f.text))
			continue;
		if (g && g->tier != GSR_TIER_BLOCK) {
			ok(false, "%s: %s is not rewritten: %s", base, t->kernel, g->reason);
			continue;
		}
		/* a twin that cannot be resumed is the other form's */
		if (o->resumable && g && !g->resume_points)
			continue;
		suspended = twins_stats.suspended;
		seed = first_failure(&f, t, o, why, sizeof(why));
		if (!ok(seed < 0, "%s: %s %ux%ux%u, %u seeds%s", base, t->kernel, t->grid[0],
			t->grid[1], t->grid[2], o->seeds,
			o->restart ? ", restarted" : o->resumable ? ", resumable" : ""))
			printf("# --seed %lld --seeds 1 --kernel %s%s: %s\n", seed, t->kernel,
			       o->restart ? " --restart" : o->resumable ? " --resumable" : "",
			       why);
		else if (o->restart && strstr(path, "/restarts.ptx"))
			/* evictions are random: the rarest kernel did so 15 to 38 times in 70 */
			ok(twins_stats.suspended > suspended + o->seeds / 8,
			   "%s: block-tasks begin again (%llu)", t->kernel,
			   twins_stats.suspended - suspended);
	}
	file_close(&f);
	launches_free(&all);
}

/*
 * The window, and until when it is good, for other workers, who would look for themselves, and for
 * who watches; at each place that looks at it. And the last barrier, at which warps keep their
 * places: twins.c notices that in kernels of several warps, once all workers stay.
 */
static bool only_tells(const char *dropped)
{
	char seen[64];

	snprintf(seen, sizeof(seen), "st.relaxed.sys.global.u32 [$d3+%zu],",
		 offsetof(struct gsched_cl_slot, seen_limit));
	return strstr(dropped, "st.relaxed.gpu.global.u64 [$d0],") || strstr(dropped, seen) ||
	       strstr(dropped, "st.relaxed.gpu.global.u64 [$d3+10752],") ||
	       strstr(dropped, "st.relaxed.gpu.global.u64 [$d7+10752],") ||
	       strstr(dropped, "st.relaxed.gpu.global.u64 [$d7+10760],") ||
	       strstr(dropped, "barrier.sync");
}

/*
 * The harness itself: a twin without any one of its barriers, reductions or stores must be caught,
 * @spare excepted: what another barrier of this kernel makes up for, and what takes a rare race;
 * and what only tells how things stand.
 */
static void test_harness(const char *path, const char *kernel, unsigned int seeds,
			 unsigned int spare, bool resumable)
{
	struct options o = { .seeds = seeds, .seed = 1, .kernel = kernel, .resumable = resumable };
	struct options all_of_it = { .drop = -1, .seeds = 2 * seeds, .seed = 1,
				     .resumable = resumable };
	const struct test_launch *t = NULL;
	struct test_launches all = { 0 };
	unsigned int i, caught = 0, missed = 0;
	struct file f = { 0 }, whole = { 0 };
	char why[2048] = "";

	/* many hang; the whole twin does with these */
	twins_slices_max = 60000;
	if (launches_read(path, &all, why, sizeof(why)) &&
	    file_open(&whole, path, &all_of_it, why, sizeof(why)))
		for (i = 0; i < all.n; i++)
			if (!strcmp(all.launch[i].kernel, kernel))
				t = &all.launch[i];
	for (o.drop = 0; t && file_open(&f, path, &o, why, sizeof(why)); o.drop++) {
		/* only what this kernel's twin has: the others' does not change it */
		char *head = strstr(f.twins[0].rw.ptx, kernel),
			*tail = head ? strstr(head, "\n}") : NULL;

		if (head && tail && memcmp(head, strstr(whole.twins[0].rw.ptx, kernel),
					   (size_t)(tail - head))) {
			if (first_failure(&f, t, &o, why, sizeof(why)) >= 0) {
				caught++;
			} else {
				missed += !only_tells(f.dropped);
				printf("# %s works without: %s\n", kernel, f.dropped);
			}
		}
		file_close(&f);
	}
	if (t && first_failure(&whole, t, &all_of_it, why, sizeof(why)) >= 0) {
		printf("# the whole %s: %s\n", kernel, why);
		missed += spare + 1;
	}
	file_close(&f);
	file_close(&whole);
	ok(caught >= 2 && missed <= spare,
	   "broken on purpose, the %stwin of %s is caught: %u ways of %u",
	   resumable ? "resumable " : "", kernel, caught, caught + missed);
	launches_free(&all);
}

static void report(void)
{
	printf("# %llu runs: %llu workers, %llu left early, %llu wings, %llu changes of the "
	       "window, %llu started after their end\n", twins_stats.runs, twins_stats.workers,
	       twins_stats.left, twins_stats.wings, twins_stats.changes, twins_stats.late);
}

int main(int argc, char **argv)
{
	struct options o = { .drop = -1 };
	bool some = false, both;
	glob_t g;
	size_t i;
	int k;

	setvbuf(stdout, NULL, _IOLBF, 0);
	twins_init();
	for (k = 1; k < argc; k++) {
		if (argv[k][0] != '-')
			some = true;
		else if (k + 1 < argc && !strcmp(argv[k], "--seeds"))
			o.seeds = (unsigned int)strtoul(argv[++k], NULL, 0);
		else if (k + 1 < argc && !strcmp(argv[k], "--seed"))
			o.seed = strtoull(argv[++k], NULL, 0);
		else if (k + 1 < argc && !strcmp(argv[k], "--kernel"))
			o.kernel = argv[++k];
		else if (k + 1 < argc && !strcmp(argv[k], "--drop"))
			o.drop = atoi(argv[++k]);
		else if (!strcmp(argv[k], "--resumable"))
			o.resumable = true;
		else if (!strcmp(argv[k], "--restart"))
			o.resumable = o.restart = true;
		else
			return fprintf(stderr, "usage: %s [--seeds N] [--seed S] [--kernel NAME] "
				       "[--drop N] [--resumable|--restart] [FILE.ptx...]\n",
				       argv[0]), 2;
	}
	/* with the three targets' files 45 a kernel */
	o.seeds = o.seeds ? o.seeds : 15;
	for (k = 1; some && k < argc; k++)
		if (argv[k][0] == '-')
			k += strncmp(argv[k], "--res", 5) != 0;
		else
			test_file(argv[k], &o);
	if (some) {
		report();
		return done();
	}
	if (glob("selftests/rewriter/corpus/*.ptx", 0, NULL, &g))
		return fprintf(stderr, "no corpus: run from the top of the tree\n"), 2;
	both = !o.resumable;
	for (i = 0; i < g.gl_pathc; i++)
		test_file(g.gl_pathv[i], &o);
	for (i = 0; i < g.gl_pathc && both; i++) {
		o.resumable = true;
		test_file(g.gl_pathv[i], &o);
	}
	for (i = 0; i < g.gl_pathc && both; i++) {
		o.restart = true;
		test_file(g.gl_pathv[i], &o);
	}
	globfree(&g);
	o.resumable = o.restart = false;
	if (o.drop < 0 && !o.kernel) {
		test_harness("selftests/rewriter/corpus/grids.sm_90.ptx", "grid2d", 60, 0, false);
		test_harness("selftests/rewriter/corpus/shared.sm_90.ptx", "reverse", 60, 0, false);
		test_harness("selftests/rewriter/corpus/barriers.ptx", "reductions_between",
			     60, 2, true);
		test_harness("selftests/rewriter/corpus/gathers.ptx", "waits_elsewhere",
			     60, 0, false);
		report();
		ok(twins_stats.left > twins_stats.runs && twins_stats.wings > twins_stats.runs,
		   "runs are evicted and grow");
		ok(8 * twins_stats.by_index > twins_stats.runs &&
		   8 * twins_stats.by_index < 7 * twins_stats.runs,
		   "their limits count SMs, or workers (%llu)", twins_stats.by_index);
		ok(8 * twins_stats.ranges > twins_stats.runs,
		   "block-tasks come from the counter, and from ranges (%llu)", twins_stats.ranges);
	}
	return done();
}
