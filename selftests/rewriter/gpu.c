// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rewriter's corpus on a device, simulated or real: every kernel that is rewritten, original
 * against twin, while the window of the twin changes. Each kernel runs in a process of its own, so
 * that one that hangs or faults is named and the others go on.
 */
#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gpu.h"

#define START_S		60	/* to start the driver, compile and load */

static const char usage[] =
	"usage: corpus-gpu [--overhead] [--resumable|--restart] [--full] [--small] [--real] "
	"[--sanitizer [--tool T]] [--rounds N]\n"
	"                  [--limit-by rank|worker] [--static]\n"
	"                  [--seed S] [--kernel NAME] [--scale N] [--arch N] [--pairs N] "
	"[--target-ms N] [--all-workers] [--link]\n"
	"                  [--fetch-ns N] [--order strict|stripes]\n"
	"                  [--table FILE] [--json FILE] [--timeout SECONDS] [--corpus DIR] [--dump "
	"DIR] [--list]\n"
	"  --overhead   then time original and twin in turns, full size, and how soon an evicted "
	"twin is gone; print a table\n"
	"  --resumable  twins that can also leave a block-task in its middle\n"
	"  --restart    twins that begin such a block-task again\n"
	"  --full       sizes for a real device\n"
	"  --real       only kernels that have such sizes: what programs do, not one thing that "
	"rewriting could break\n"
	"  --small      sizes for a simulated one, with --overhead too\n"
	"  --sanitizer  small sizes, few rounds, long patience, all in one process: for runs under "
	"compute-sanitizer\n"
	"  --limit-by W what a window counts (any, each time another; timed: rank)\n"
	"  --static     ranges in place of the counter, each time (now and then; "
	"timed: the counter)\n"
	"  --tool T     leave out the kernels that its tool T is known to be wrong about, and say "
	"why (racecheck, synccheck);\n"
	"               racecheck: launches one after the other\n"
	"  --rounds N   runs of each twin while the window changes (20)\n"
	"  --seed S     where chance begins; round I of seed S is round 1 of seed S + I - 1\n"
	"  --kernel K   this kernel only\n"
	"  --scale N    once more with N times as many blocks, where they leave the same memory, "
	"so that evictions hit the middle\n"
	"  --arch N     PTX for sm_N at most, though the device takes better\n"
	"  --pairs N    of timings (40)\n"
	"  --all-workers  time as many workers as fit, and not as many as are fastest\n"
	"  --link       compile the twins by cuLinkComplete(), not by loading them\n"
	"  --fetch-ns N  aim at so much work in a fetch, in place of the interposer's choice\n"
	"  --order O    of block-tasks: strict or stripes, likewise; not for kernels that may "
	"wait\n"
	"  --target-ms N  at least so long a kernel, where more of the same blocks may run (10)\n"
	"  --table F    write the table there, - for the standard output (-)\n"
	"  --json F     write all numbers there as JSON\n"
	"  --timeout S  of one run (10)\n"
	"  --corpus D   where NAME.ptx and NAME.launch are (corpus beside the program)\n"
	"  --dump D     write the PTX of each kernel, original and twin, there\n"
	"  --list       the kernels, and do nothing\n";

static unsigned int tap_n, tap_bad, tap_skipped;

static void ok(bool good, const char *name)
{
	tap_bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++tap_n, name);
}

static void kill_and_wait(pid_t pid)
{
	struct timespec ts = { .tv_nsec = 10000000 };
	unsigned int i;

	kill(pid, SIGKILL);
	/* one that hangs in the driver may take its time, or for ever */
	for (i = 0; i < 1000 && !waitpid(pid, NULL, WNOHANG); i++)
		nanosleep(&ts, NULL);
}

/* false: it did not come to its end; @r->why says how */
static bool watch(pid_t pid, struct gpu_report *r, unsigned int quiet_s)
{
	struct timespec second = { .tv_sec = 1 };
	uint64_t beats = 0;
	unsigned int quiet;
	sigset_t child;
	int status;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (quiet = 0; quiet < quiet_s; quiet++) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid) {
			if (r->done)
				return true;
			if (WIFSIGNALED(status))
				snprintf(r->why, sizeof(r->why), "killed by signal %d",
					 WTERMSIG(status));
			else
				snprintf(r->why, sizeof(r->why), "exit status %d",
					 WEXITSTATUS(status));
			return false;
		}
		if (beats != r->beats) {
			beats = r->beats;
			quiet = 0;
		}
		if (sigtimedwait(&child, NULL, &second) == SIGCHLD && quiet)
			quiet--;
	}
	kill_and_wait(pid);
	/* what it found out counts, though it could not even leave */
	if (r->done)
		return true;
	snprintf(r->why, sizeof(r->why), "hangs in the driver: killed after %u s", quiet_s);
	return false;
}

static struct gpu_report *now;

/* Under a sanitizer, which may take for ever: where that was */
static void stopped(int sig)
{
	(void)sig;
	if (write(STDOUT_FILENO, "# stopped in: ", 14) < 0 ||
	    write(STDOUT_FILENO, now->stage, strlen(now->stage)) < 0 ||
	    write(STDOUT_FILENO, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

static struct gpu_report *apart(const char *path, const struct test_launch *t,
				const struct gpu_options *o)
{
	static struct gpu_report *r;
	sigset_t child;
	pid_t pid;

	if (!r)
		r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	memset(r, 0, sizeof(*r));
	snprintf(r->stage, sizeof(r->stage), "starting the driver");
	if (o->sanitizer) {
		now = r;
		signal(SIGTERM, stopped);
		if (path)
			gpu_run(path, t, o, r);
		else
			gpu_probe(r);
		return r;
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (!pid) {
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		if (path)
			gpu_run(path, t, o, r);
		else
			gpu_probe(r);
		/* a kernel that hangs would hold up what the driver does in exit */
		if (!r->good)
			_exit(1);
		exit(0);
	}
	if (!watch(pid, r, START_S + o->timeout_s))
		r->good = false;
	return r;
}

static struct gpu_row *rows;
static unsigned int n_rows;

static void keep(const char *base, const struct test_launch *t, const struct gpu_report *r)
{
	struct gpu_row *more = realloc(rows, (n_rows + 1) * sizeof(*rows)), *row;

	if (!more)
		return;
	rows = more;
	row = &rows[n_rows++];
	memset(row, 0, sizeof(*row));
	snprintf(row->file, sizeof(row->file), "%.*s", (int)strcspn(base, "."), base);
	snprintf(row->kernel, sizeof(row->kernel), "%s", t->kernel);
	row->threads = t->block_dim[0] * t->block_dim[1] * t->block_dim[2];
	row->scale = t->scale;
	row->r = *r;
}

static void one(const char *path, const struct test_launch *t, const struct gpu_options *o)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const struct gpu_report *r = apart(path, t, o);
	const struct gpu_timing *m = &r->timing;
	char name[512], cap[48] = "";

	if (o->overhead)
		keep(base, t, r);

	if (r->cap)
		snprintf(cap, sizeof(cap), " (capped at %u)", r->cap);
	snprintf(name, sizeof(name), "%s: %s: registers %d -> %d%s, blocks per SM %d -> %d", base,
		 t->kernel, r->regs[0], r->regs[1], cap, r->per_sm[0], r->per_sm[1]);
	ok(r->good, name);
	if (!r->good)
		printf("# FAIL %s, %s: %s\n", t->kernel, r->stage, r->why);
	if (r->note[0])
		printf("# %s\n", r->note);
	if (r->local[0] || r->local[1])
		printf("# local memory %d -> %d bytes\n", r->local[0], r->local[1]);
	printf("# %u runs, scale %u: %llu workers, %llu left early in %u of the runs, %u wings, %u "
	       "changes of the window, %.1f us alone\n", r->runs, r->scale,
	       (unsigned long long)r->launched, (unsigned long long)r->left, r->evicted, r->wings,
	       r->changes, (double)r->twin_ns / 1000);
	if (m->pairs)
		printf("# %.3f ms, twin %.3f ms: %+.2f %% (%+.2f..%+.2f, drift %+.2f), block-tasks "
		       "of %.2f us, evicted after %.0f us, at most %.0f\n", (double)m->median_ms[0],
		       (double)m->median_ms[1], 100 * (double)m->overhead, 100 * (double)m->low,
		       100 * (double)m->high, 100 * (double)m->drift, (double)m->block_us,
		       (double)m->evict_us, (double)m->evict_max_us);
	if (o->resumable)
		printf("# %u resume points\n", r->resume_points);
	fflush(stdout);
	/* what comes after it in this process would prove nothing, and leaving by exit may hang */
	if (o->sanitizer && !r->good) {
		printf("Bail out! the rest is not run\n");
		fflush(stdout);
		_exit(1);
	}
}

static void left_out(const char *path, const struct test_launch *t, const char *why)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	printf("ok %u - %s: %s # SKIP the tool %s\n", ++tap_n, base, t->kernel, why);
	fflush(stdout);
	tap_skipped++;
}

/* "NAME" of NAME.ptx and NAME.sm_90.ptx */
static size_t stem(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *end = strstr(base, ".sm_");

	if (!end)
		end = strrchr(base, '.');
	return (size_t)(end - path);
}

/* The best of several files for one source: the highest target that the device can run */
static bool best(const glob_t *g, size_t i, unsigned int arch)
{
	unsigned int mine = gpu_arch_of(g->gl_pathv[i]), other;
	size_t k, n = stem(g->gl_pathv[i]);

	if (!mine || mine > arch)
		return false;
	for (k = 0; k < g->gl_pathc; k++) {
		if (k == i || stem(g->gl_pathv[k]) != n ||
		    strncmp(g->gl_pathv[k], g->gl_pathv[i], n))
			continue;
		other = gpu_arch_of(g->gl_pathv[k]);
		if (other <= arch && (other > mine || (other == mine && k < i)))
			return false;
	}
	return true;
}

static void file(const char *path, const struct gpu_options *o, unsigned int arch, bool list)
{
	struct test_launches all = { 0 };
	char why[2048] = "";
	unsigned int i;

	if (!(o->full ? launches_read_full : launches_read)(path, &all, why, sizeof(why))) {
		ok(false, path);
		printf("# %s\n", why);
	}
	for (i = 0; i < all.n; i++) {
		const struct test_launch *t = &all.launch[i];
		const char *reason = gpu_tool_leaves_out(o->tool, path, t->kernel);

		if ((o->kernel && strcmp(o->kernel, t->kernel)) || !t->block || t->arch > arch ||
		    (o->real && t->scale < 2))
			continue;
		if (list)
			printf("%s %s\n", path, t->kernel);
		else if (reason)
			left_out(path, t, reason);
		else
			one(path, t, o);
	}
	launches_free(&all);
}

static unsigned long long number(const char *what, const char *text, unsigned long long least,
				 unsigned long long most)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = text ? strtoull(text, &end, 10) : 0;
	if (!text || errno || end == text || *end || *text == '-' || n < least || n > most) {
		fprintf(stderr, "corpus-gpu: %s: a number from %llu to %llu\n%s", what, least,
			most, usage);
		exit(2);
	}
	return n;
}

static bool limit_of(const char *word, uint32_t *limit)
{
	*limit = !strcmp(word, "worker") ? GSR_LAUNCH_BY_INDEX : 0;
	return *limit || !strcmp(word, "rank");
}

int main(int argc, char **argv)
{
	struct gpu_options o = { .rounds = 20, .scale = 1, .timeout_s = 10, .seed = 1,
				 .arch = UINT_MAX, .pairs = 40, .order = -1, .target_ms = 10,
				 .tune = true,
				 .limit = ANY_LIMIT };
	const char *table = "-", *json = NULL;
	struct gpu_report device = { 0 };
	bool rounds_given = false, small = false;
	char self[PATH_MAX] = "", corpus[PATH_MAX + 16], pattern[PATH_MAX + 32];
	unsigned int arch;
	bool list = false;
	glob_t g;
	size_t k;
	int i;

	for (i = 1; i < argc; i++) {
		const char *a = argv[i], *v = argv[i + 1];

		if (!strcmp(a, "--list")) {
			list = true;
			continue;
		}
		if (!strcmp(a, "--real")) {
			o.real = true;
			continue;
		}
		if (!strcmp(a, "--all-workers")) {
			o.tune = false;
			continue;
		}
		if (!strcmp(a, "--link")) {
			o.link = true;
			continue;
		}
		if (!strcmp(a, "--restart")) {
			o.resumable = o.restart = true;
			continue;
		}
		if (!strcmp(a, "--static")) {
			o.ranges = true;
			continue;
		}
		if (!strcmp(a, "--overhead") || !strcmp(a, "--resumable") || !strcmp(a, "--full") ||
		    !strcmp(a, "--small")) {
			o.overhead |= a[2] == 'o';
			o.resumable |= a[2] == 'r';
			o.full |= a[2] == 'f';
			small |= a[2] == 's';
			continue;
		}
		if (!strcmp(a, "--sanitizer")) {
			o.rounds = rounds_given ? o.rounds : 3;
			rounds_given = small = o.sanitizer = true;
			o.timeout_s = 300;
			continue;
		}
		if (!strcmp(a, "--rounds")) {
			o.rounds = (unsigned int)number(a, v, 0, 1000000);
			rounds_given = true;
		} else if (!strcmp(a, "--pairs"))
			o.pairs = (unsigned int)number(a, v, 1, 100000);
		else if (!strcmp(a, "--fetch-ns"))
			o.fetch_ns = (unsigned int)number(a, v, 1, 10000000);
		else if (!strcmp(a, "--order") && v &&
			 (!strcmp(v, "strict") || !strcmp(v, "stripes")))
			o.order = strcmp(v, "strict") ? GSR_ORDER_STRIPES : GSR_ORDER_STRICT;
		else if (!strcmp(a, "--target-ms"))
			o.target_ms = (unsigned int)number(a, v, 1, 10000);
		else if (!strcmp(a, "--table") && v)
			table = v;
		else if (!strcmp(a, "--tool") && v && gpu_tool_known(v))
			o.tool = v;
		else if (!strcmp(a, "--json") && v)
			json = v;
		else if (!strcmp(a, "--seed"))
			o.seed = number(a, v, 0, 1ull << 62);
		else if (!strcmp(a, "--scale"))
			o.scale = (unsigned int)number(a, v, 1, 65535);
		else if (!strcmp(a, "--arch"))
			o.arch = (unsigned int)number(a, v, 50, 999);
		else if (!strcmp(a, "--timeout"))
			o.timeout_s = (unsigned int)number(a, v, 1, 3600);
		else if (!strcmp(a, "--limit-by") && v && limit_of(v, &o.limit))
			;
		else if (!strcmp(a, "--kernel") && v)
			o.kernel = v;
		else if (!strcmp(a, "--corpus") && v)
			o.corpus = v;
		else if (!strcmp(a, "--dump") && v)
			o.dump = v;
		else {
			fputs(usage, stderr);
			return 2;
		}
		i++;
	}
	if (o.overhead && o.sanitizer) {
		fputs("corpus-gpu: --overhead under a sanitizer would time the sanitizer: give "
		      "one of the two\n", stderr);
		return 2;
	}
	if (o.tool && !o.sanitizer) {
		fputs("corpus-gpu: --tool is of --sanitizer: give both\n", stderr);
		return 2;
	}
	/* under it, cuStreamQuery has not come back now and then where two kernels ran */
	o.one_launch = o.tool && !strcmp(o.tool, "racecheck");
	/* what timing takes is not for the rounds before it */
	if (o.overhead && !rounds_given)
		o.rounds = 5;
	o.full = (o.full || o.overhead) && !small;
	if (!o.corpus) {
		if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
			return perror("/proc/self/exe"), 1;
		snprintf(corpus, sizeof(corpus), "%s/corpus", dirname(self));
		o.corpus = corpus;
	}
	snprintf(pattern, sizeof(pattern), "%.4096s/*.ptx", o.corpus);
	if (glob(pattern, 0, NULL, &g)) {
		fprintf(stderr, "corpus-gpu: %s: no such file; --corpus says where they are\n",
			pattern);
		return 1;
	}
	arch = o.arch;
	if (!list) {
		const struct gpu_report *r = apart(NULL, NULL, &o);

		if (!r->good) {
			printf("Bail out! %s: %s\n", r->stage, r->why);
			return 1;
		}
		device = *r;
		arch = r->arch < arch ? r->arch : arch;
		o.simulated = strstr(r->device, "simulated");
		printf("# %s, sm_%u, %u SMs, driver's CUDA %u.%u; seed %llu\n", r->device, r->arch,
		       r->sms, r->driver / 1000, r->driver % 1000 / 10, (unsigned long long)o.seed);
	}
	for (k = 0; k < g.gl_pathc; k++)
		if (best(&g, k, arch))
			file(g.gl_pathv[k], &o, arch, list);
	globfree(&g);
	if (list)
		return 0;
	if (!tap_n) {
		printf("Bail out! no such kernel: --list names them\n");
		return 1;
	}
	printf("1..%u\n# %u ok, %u FAIL", tap_n, tap_n - tap_bad - tap_skipped, tap_bad);
	if (tap_skipped)
		printf(", %u left out", tap_skipped);
	printf("\n");
	fflush(stdout);
	if (o.overhead && !gpu_table(table, rows, n_rows, &device, &o))
		return 1;
	if (json && !gpu_json(json, rows, n_rows, &device, &o))
		return 1;
	free(rows);
	return tap_bad != 0;
}
