// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bands from end to end: gschedd with its own arbiter, the interposer, and programs without MPS on
 * a simulated GPU whose time slices can be set. The programs launch CUDA graphs, which have no
 * rewritten form, so that only time slices and the order in which launches are let through can
 * help. Run from the root of the tree.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "libgsched/include/gsched.h"
#include "run.h"

#define IN_GROUP(g) ctl, "run", "--strict", "--group", g, "--"
/*
 * requests of two kernels that fill the GPU, one behind the other; and short ones of many kernels
 */
#define LONG(n) program, "--graph", "--blocks", "256", "--threads", "64", "--iters", "60", \
	"--kernels", "2", \
		"--requests", n, "--period-us", "1", "--log", long_log
#define SHORT(n) program, "--graph", "--blocks", "2", "--threads", "32", "--iters", "20", \
	"--kernels", "20", \
		"--requests", n, "--period-us", "10000", "--log", short_log
#define ENDLESS "1000000"
#define POLLS	10000	/* of 2 ms */

static char ctl[] = BUILD "/bin/gschedctl", program[] = BUILD "/programs/latency-drv";
static char app[] = BUILD "/test/libgsched/app", streams[] = BUILD "/test/libgsched/streams-app";
static char ptx[] = "selftests/libgsched/kernels.ptx";
static char dir[] = "/tmp/gsched-bands-XXXXXX", sock[64], cache[64], long_log[64], short_log[64],
	mps_dir[64];
static pid_t gschedd;
static struct gsched *admin;

/* ---- gschedd ---- */

/* @mps: the MPS control daemon to run for each band, NULL none */
static bool gschedd_start_with(char *mps)
{
	static const char *const groups[] = { "top", "a", "b", "c" };
	unsigned int i;

	gschedd = fork();
	if (!gschedd) {
		unsetenv("LD_PRELOAD");
		alarm(300);
		execl(BUILD "/bin/gschedd", "gschedd", "--socket", sock, "--cache", cache,
		      "--driver", BUILD "/vgpu/libcuda.so.1", "--nvml", "", "--embedded",
		      "--log-level", "error", mps ? "--mps" : NULL, "--mps-program", mps,
		      "--mps-dir", mps_dir, NULL);
		_exit(127);
	}
	for (i = 0; i < POLLS && !(admin = gsched_open(NULL)); i++)
		usleep(2000);
	if (!admin)
		return false;
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (gsched_group_create(admin, NULL, groups[i]))
			return false;
	return !gsched_group_set(admin, NULL, "top", "gpu.priority", "10");
}

static bool gschedd_start(void)
{
	return gschedd_start_with(NULL);
}

static int gschedd_stop(int sig)
{
	int status;

	kill(gschedd, sig);
	waitpid(gschedd, &status, 0);
	gsched_close(admin);
	admin = NULL;
	return status;
}

/* What gschedd says of a program and its band */
struct state {
	bool there, turn;
	char mode[16], activity[16], why[256];
	double server;
	double slice_us, applied_us, slice_error, passed, held_ns, paced_ns, share, turns;
};

static double number(const cJSON *in, const char *name)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(in, name);

	return n ? n->valuedouble : 0;
}

static void text_of(const cJSON *in, const char *name, char *buf, size_t size)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(in, name));

	snprintf(buf, size, "%s", s ? s : "");
}

static struct state state_of(pid_t pid)
{
	char *text = gsched_status(admin), name[32];
	cJSON *root = cJSON_Parse(text ? text : "");
	const cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "devices"),
						 0), *o;
	struct state s = { 0 };

	snprintf(name, sizeof(name), "pid-%d", (int)pid);
	text_of(device, "mode", s.mode, sizeof(s.mode));
	cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(device, "bands")) {
		const cJSON *pids = cJSON_GetObjectItemCaseSensitive(o, "clients");
		char is[64];

		s.turns += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "turn"));
		text_of(o, "name", is, sizeof(is));
		/* without MPS it is named after its only program */
		if (strcmp(is, name) && !(cJSON_GetArraySize(pids) == 1 &&
					  (pid_t)cJSON_GetArrayItem(pids, 0)->valuedouble == pid))
			continue;
		s.server = number(o, "server");
		s.slice_us = number(o, "slice_us");
		s.applied_us = number(o, "applied_us");
		s.slice_error = number(o, "slice_error");
		s.turn = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "turn"));
		text_of(o, "activity", s.activity, sizeof(s.activity));
		text_of(o, "why", s.why, sizeof(s.why));
	}
	cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(device, "clients")) {
		if ((pid_t)number(o, "pid") != pid)
			continue;
		s.there = true;
		s.passed = number(o, "passed");
		s.held_ns = number(o, "held_ns");
		s.paced_ns = number(o, "paced_ns");
		s.share = number(o, "share");
	}
	cJSON_Delete(root);
	free(text);
	return s;
}

static bool comes_to(pid_t pid, bool (*is)(const struct state *s), struct state *s)
{
	unsigned int i;

	for (i = 0; i < POLLS; i++, usleep(2000)) {
		*s = state_of(pid);
		if (is(s))
			return true;
	}
	printf("# there %d, mode %s, slice %.0f, in force %.0f, error %.0f, activity %s, turn %d, "
	       "passed %.0f, held %.0f, paced %.0f\n", s->there, s->mode, s->slice_us,
	       s->applied_us, s->slice_error, s->activity, s->turn, s->passed, s->held_ns,
	       s->paced_ns);
	return false;
}

static bool is_whole(const struct state *s) { return s->slice_us == 1000000 &&
					      s->applied_us == 1000000; }
static bool is_tiny(const struct state *s) { return s->slice_us == 1 && s->applied_us == 1; }
static bool has_run(const struct state *s) { return s->passed > 4; }
static bool is_temporal(const struct state *s) { return s->there && !strcmp(s->mode, "temporal") &&
						 s->passed > 4; }
static bool is_paced(const struct state *s) { return s->share < 1 && s->held_ns > 0 &&
					      s->paced_ns > 0; }
static bool is_gone(const struct state *s) { return !s->there; }
static bool is_set(const struct state *s) { return s->slice_us >= 500 && s->slice_us < 1000000 &&
					    s->applied_us == s->slice_us; }

/* ---- programs ---- */

static struct run long_alone, short_alone;

static bool as_alone(const struct run *r, const struct run *alone, const char *what)
{
	if (ok(!r->status && *r->text && !strcmp(r->text, alone->text),
	       "%s: result as alone", what))
		return true;
	printf("# status %x\n# got:\n%s# expected:\n%s", r->status, r->text, alone->text);
	return false;
}

static void end(struct run *r, int sig)
{
	kill(r->pid, sig);
	finish(r);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median latency of a log, us; 0 there is none */
static double median_us(const char *path)
{
	unsigned long long start, took;
	double v[4096];
	size_t n = 0;
	FILE *f = fopen(path, "re");

	while (f && n < sizeof(v) / sizeof(v[0]) && fscanf(f, "%llu %llu", &start, &took) == 2)
		v[n++] = (double)took / 1e3;
	if (f)
		fclose(f);
	if (!n)
		return 0;
	qsort(v, n, sizeof(v[0]), by_value);
	return v[n / 2];
}

static void start_long(struct run *r, char *group)
{
	char *const what[] = { IN_GROUP(group), LONG("100"), NULL };

	start(r, false, what);
}

static void start_endless(struct run *r, char *group)
{
	char *const what[] = { IN_GROUP(group), LONG(ENDLESS), NULL };

	start(r, false, what);
}

static void start_short(struct run *r, char *group)
{
	char *const what[] = { IN_GROUP(group), SHORT("60"), NULL };

	start(r, false, what);
}

/* ---- what holds ---- */

/* median latency by time slices of 20 ms, and without another program */
static double plain_us, alone_us;

static void without_gsched(void)
{
	char *const longs[] = { LONG("100"), NULL }, *const endless[] = { LONG(ENDLESS), NULL };
	char *const shorts[] = { SHORT("60"), NULL };
	struct run other, r;

	run(false, longs, &long_alone);
	run(false, shorts, &short_alone);
	alone_us = median_us(short_log);
	start(&other, false, endless);
	run(false, shorts, &r);
	plain_us = median_us(short_log);
	end(&other, SIGTERM);
	ok(!long_alone.status && !short_alone.status && !r.status && plain_us > 0,
	   "without gsched: median latency %.0f us alone, %.0f us beside another program",
	   alone_us, plain_us);
}

static void one_below(void)
{
	static const char what[] = "an important program above one other";
	struct run top, low;
	struct state s;
	bool good;

	start_long(&low, "a");
	ok(comes_to(low.pid, has_run, &s), "%s: graphs pass", what);
	start_short(&top, "top");
	good = comes_to(top.pid, is_whole, &s);
	ok(good, "%s: its slice is %.0f us, asked and in force", what, s.applied_us);
	good = comes_to(low.pid, is_tiny, &s) && !strcmp(s.mode, "sliced");
	ok(good, "%s: the other one's is %.0f us", what, s.applied_us);
	finish(&top);
	ok(median_us(short_log) * 3 < plain_us,
	   "%s: median latency %.0f us, by time slices alone %.0f us", what,
	   median_us(short_log), plain_us);
	finish(&low);
	as_alone(&top, &short_alone, what);
	as_alone(&low, &long_alone, "the other one");
}

static void two_below(void)
{
	static const char what[] = "an important program above two others";
	unsigned int i, turns[2] = { 0 }, both = 0;
	struct run top, low[2];
	struct state s[2];

	start_long(&low[0], "a");
	start_long(&low[1], "b");
	for (i = 0; i < 2; i++)
		ok(comes_to(low[i].pid, has_run, &s[0]), "%s: graphs pass", what);
	start_short(&top, "top");
	ok(comes_to(top.pid, is_whole, &s[0]), "%s: its slice is in force", what);
	for (i = 0; i < POLLS && !(turns[0] && turns[1]); i++, usleep(2000)) {
		s[0] = state_of(low[0].pid);
		turns[0] += s[0].turn;
		both += s[0].turns > 1;
		s[1] = state_of(low[1].pid);
		turns[1] += s[1].turn;
		if (!s[0].there || !s[1].there)
			break;
	}
	ok(turns[0] && turns[1] && !both, "%s: each of these has its turn, never both", what);
	finish(&top);
	ok(median_us(short_log) * 2 < plain_us, "%s: median latency %.0f us", what,
	   median_us(short_log));
	finish(&low[0]);
	finish(&low[1]);
	as_alone(&top, &short_alone, what);
	as_alone(&low[0], &long_alone, "one of the two");
	as_alone(&low[1], &long_alone, "the other one");
}

/* Slices of three equals, once all are in force; their sum is less than a tenth of a second */
static bool settle(struct run *r, struct state *s, bool (*is)(const struct state *s))
{
	unsigned int i, k;

	for (i = 0; i < POLLS; i++, usleep(2000)) {
		bool all = true;

		for (k = 0; k < 3; k++) {
			s[k] = state_of(r[k].pid);
			all = all && is_set(&s[k]);
		}
		if (all && is(s))
			return true;
	}
	return false;
}

static bool are_equal(const struct state *s) { return s[0].slice_us == s[1].slice_us &&
					       s[1].slice_us == s[2].slice_us; }
static bool are_weighted(const struct state *s)
{
	return s[1].slice_us == s[2].slice_us && s[0].slice_us > 2.9 * s[1].slice_us &&
	       s[0].slice_us < 3.1 * s[1].slice_us;
}

static void equals(void)
{
	static char *const group[] = { "a", "b", "c" };
	struct state s[3];
	struct run r[3];
	unsigned int i;
	bool good;

	for (i = 0; i < 3; i++)
		start_endless(&r[i], group[i]);
	good = settle(r, s, are_equal);
	ok(good, "three equal programs: a slice of %.0f us each is in force", s[0].applied_us);
	gsched_group_set(admin, NULL, "a", "gpu.weight", "300");
	good = settle(r, s, are_weighted);
	ok(good, "one has three times the weight: %.0f us, the others %.0f us", s[0].applied_us,
	   s[1].applied_us);
	gsched_device_set(admin, NULL, "policy", "ffs");
	gsched_group_set(admin, NULL, "a", "gpu.priority", "5");
	good = settle(r, s, are_weighted);
	ok(good, "policy ffs: shares by weight, whatever the priorities: %.0f us and %.0f us",
	   s[0].applied_us, s[1].applied_us);
	gsched_device_set(admin, NULL, "policy", "hpf");
	ok(comes_to(r[0].pid, is_whole, &s[0]), "policy hpf: the more important one is above them");
	gsched_group_set(admin, NULL, "a", "gpu.weight", "100");
	gsched_group_set(admin, NULL, "a", "gpu.priority", "0");
	for (i = 0; i < 3; i++)
		end(&r[i], SIGTERM);
	ok(!r[0].status && !r[1].status && !r[2].status, "they end as they should");
}

static void swap(void)
{
	static const char what[] = "priorities that change under load";
	struct run a, b;
	struct state s;

	start_endless(&a, "a");
	start_endless(&b, "b");
	gsched_group_set(admin, NULL, "a", "gpu.priority", "5");
	ok(comes_to(a.pid, is_whole, &s) && comes_to(b.pid, is_tiny, &s),
	   "%s: the first one is above the other", what);
	gsched_group_set(admin, NULL, "b", "gpu.priority", "10");
	ok(comes_to(b.pid, is_whole, &s) && comes_to(a.pid, is_tiny, &s),
	   "%s: slices change places", what);
	gsched_group_set(admin, NULL, "a", "gpu.priority", "0");
	gsched_group_set(admin, NULL, "b", "gpu.priority", "0");
	end(&a, SIGTERM);
	end(&b, SIGTERM);
	ok(!a.status && !b.status, "%s: they end as they should", what);
}

static bool is_slow(const struct state *s) { return s->slice_us == 1 && s->applied_us == 1000; }
static bool is_bounded(const struct state *s) { return s->slice_us == 1000000 &&
						s->applied_us == 2000; }

/* Channel groups of one process would starve each other with the shortest slice, as bands would */
static void two_contexts(void)
{
	static const char what[] = "a program with two contexts";
	char *const two[] = { IN_GROUP("a"), streams, ptx, "waiting", NULL };
	struct run low, top;
	struct state s;

	start_endless(&top, "top");
	start(&low, false, two);
	ok(says(&low, "ready\n"), "%s", what);
	ok(comes_to(low.pid, is_slow, &s), "%s: it has no slice in which none gets on", what);
	gsched_group_set(admin, NULL, "a", "gpu.priority", "20");
	ok(comes_to(low.pid, is_bounded, &s), "%s: nor one in which the other waits long", what);
	tell(&low, "1");
	tell(&low, "2");
	ok(says(&low, "destroyed\n"), "%s: and then one", what);
	finish(&low);
	end(&top, SIGTERM);
	ok(!low.status && !top.status, "%s: they end as they should", what);
	gsched_group_set(admin, NULL, "a", "gpu.priority", "0");
}

static bool is_default(const struct state *s) { return s->slice_us == 1 && s->applied_us == 2000; }

/* The driver waits for each kernel in the call that launches it */
static void blocking_launches(void)
{
	static const char what[] = "a program whose launches wait";
	struct run top, low;
	struct state s;

	start_endless(&top, "top");
	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	start_endless(&low, "a");
	unsetenv("CUDA_LAUNCH_BLOCKING");
	ok(comes_to(low.pid, is_default, &s), "%s: it has the driver's slice at least", what);
	end(&low, SIGTERM);
	end(&top, SIGTERM);
	ok(!low.status && !top.status, "%s: they end as they should", what);
}

/*
 * The GPU waits for a launch that is measured, and the driver waits for the GPU in that launch, or
 * in another thread's call. So the agent, which had nothing to do for a while, has to end the wait.
 */
static void rare_launches(void)
{
	static const char what[] = "launches that wait, ten a second";
	char *const rare[] = { IN_GROUP("a"), program, "--blocks", "2", "--threads", "32",
			       "--iters", "20", "--requests", "8", "--period-us", "100000",
			       "--log", short_log, NULL };
	struct run top, low;

	start_endless(&top, "top");
	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	start(&low, false, rare);
	unsetenv("CUDA_LAUNCH_BLOCKING");
	if (!ok(says(&low, "checksum"), "%s: they end", what))
		kill(low.pid, SIGKILL);
	finish(&low);
	end(&top, SIGTERM);
}

static bool has_turn(const struct state *s) { return s->turn; }

static void owner_dies(void)
{
	static const char what[] = "a program is killed in its turn";
	struct run top, a, b;
	struct state s;

	start_endless(&top, "top");
	start_long(&b, "b");
	start_endless(&a, "a");
	ok(comes_to(a.pid, has_turn, &s), "%s: its turn has come", what);
	end(&a, SIGKILL);
	ok(comes_to(a.pid, is_gone, &s), "%s: it is gone", what);
	end(&top, SIGTERM);
	finish(&b);
	as_alone(&b, &long_alone, what);
}

static void gschedd_dies(void)
{
	static const char what[] = "gschedd is killed";
	struct run top, low;
	struct state s;
	bool good;

	start_endless(&top, "top");
	start_endless(&low, "a");
	ok(comes_to(low.pid, is_tiny, &s), "%s: a slice of 1 us is in force", what);
	ok(WIFSIGNALED(gschedd_stop(SIGKILL)), "%s", what);
	ok(gschedd_start(), "%s: and started again", what);
	/* whether each is put into a group again is its user's affair: both are equal now */
	good = comes_to(low.pid, is_set, &s) && comes_to(top.pid, is_set, &s);
	ok(good, "%s: both are found again, slices %.0f us", what,
	   s.applied_us);
	ok(WIFSIGNALED(gschedd_stop(SIGKILL)), "%s for good", what);
	end(&top, SIGTERM);
	end(&low, SIGTERM);
	ok(!top.status && !low.status, "%s: programs end as they should", what);
	ok(gschedd_start(), "a new gschedd");
}

static void refused(void)
{
	static const char what[] = "slices that the driver refuses";
	struct run top, low;
	struct state s;
	bool good;

	setenv("VGPU_RM_REFUSE", "1", 1);
	start_long(&low, "a");
	ok(comes_to(low.pid, has_run, &s), "%s: graphs pass", what);
	start_short(&top, "top");
	good = comes_to(low.pid, is_temporal, &s);
	ok(good, "%s: mode %s", what, s.mode);
	ok(s.slice_error == EIO || state_of(top.pid).slice_error == EIO,
	   "%s: status says so", what);
	finish(&top);
	finish(&low);
	unsetenv("VGPU_RM_REFUSE");
	as_alone(&top, &short_alone, what);
	as_alone(&low, &long_alone, "the other one");
}

/* Without the library that answers for the kernel driver, no slice can be set at all */
static void no_slices(const char *preload)
{
	static const char what[] = "a driver whose slices cannot be seen";
	struct run top, low;
	struct state s;

	unsetenv("LD_PRELOAD");
	if (strchr(preload, ':'))
		setenv("LD_PRELOAD", strchr(preload, ':') + 1, 1);
	start_long(&low, "a");
	ok(comes_to(low.pid, has_run, &s), "%s: graphs pass", what);
	start_short(&top, "top");
	ok(comes_to(top.pid, is_temporal, &s), "%s: mode temporal", what);
	finish(&top);
	finish(&low);
	setenv("LD_PRELOAD", preload, 1);
	as_alone(&top, &short_alone, what);
	as_alone(&low, &long_alone, "the other one");
}

/* Requests in a second under the quota, of those right before and after */
static double kept(const struct run *r, bool *paced)
{
	double before, during, after, n;
	struct state s;

	n = state_of(r->pid).passed;
	usleep(800000);
	before = state_of(r->pid).passed - n;
	gsched_group_set(admin, NULL, "a", "capsm.max", "4");
	*paced = comes_to(r->pid, is_paced, &s);
	n = state_of(r->pid).passed;
	usleep(1600000);
	during = (state_of(r->pid).passed - n) / 2;
	gsched_group_set(admin, NULL, "a", "capsm.max", "max");
	n = state_of(r->pid).passed;
	usleep(800000);
	after = state_of(r->pid).passed - n;
	return 2 * during / (before + after);
}

/* Of group a, us; 0: it does not say */
static double paced_usec(void)
{
	char text[1024] = "";
	const char *at;

	gsched_group_get(admin, NULL, "a", "gpu.stat", text, sizeof(text));
	at = strstr(text, "\npaced_usec ");
	return at ? strtod(at + strlen("\npaced_usec "), NULL) : 0;
}

/*
 * The host may be busy with others for seconds, which the simulated GPU's work feels: one of eight
 * tries has to be right
 */
static void quota(void)
{
	bool paced = false, right = false;
	struct run r;
	struct state s;
	double part = 0, before = paced_usec(), took;
	int i;

	start_endless(&r, "a");
	comes_to(r.pid, has_run, &s);
	for (i = 0; i < 8 && !right; i++) {
		part = kept(&r, &paced);
		right = part > 0.35 && part < 0.65;
	}
	ok(paced, "half of the device: launches wait");
	ok(right, "half of the device: %.2f of the requests", part);
	s = state_of(r.pid);
	took = paced_usec() - before;
	/* both numbers are rounded down */
	ok(took + 1 >= s.paced_ns / 1e3 && s.paced_ns > 0,
	   "half of the device: its group has the time of its launches, %.0f us of %.0f", took,
	   s.paced_ns / 1e3);
	end(&r, SIGTERM);
	ok(!r.status, "half of the device: it ends as it should");
	comes_to(r.pid, is_gone, &s);
	ok(paced_usec() - before >= took, "half of the device: and keeps it");
}

static struct run app_alone;

/*
 * Threads, contexts and streams that come and go, and a kernel that stays until others behind it
 * are over
 */
#define STEPS app, "selftests/libgsched/kernels.ptx", "graphs", "threads", "second", \
	"beside", "dropped"

/*
 * A share of time begins while threads capture graphs: the wait for what is on the GPU until then
 * must not invalidate a capture. Whether the two meet is chance; without delays they hardly do.
 */
static void captures_as_a_share_begins(void)
{
	static char *const alone[] = { app, "selftests/libgsched/kernels.ptx", "graphs", "threads",
				       "threads", NULL };
	static char *const managed[] = { IN_GROUP("a"), app, "selftests/libgsched/kernels.ptx",
					 "graphs", "threads", "threads", NULL };
	struct run native, r;
	char delays[16];
	unsigned int i;

	run(false, alone, &native);
	for (i = 1; i <= 4; i++) {
		snprintf(delays, sizeof(delays), "%u:300", i);
		setenv("VGPU_DELAYS", delays, 1);
		start(&r, false, managed);
		usleep(i * 15000);
		gsched_group_set(admin, NULL, "a", "capsm.max", "2");
		finish(&r);
		unsetenv("VGPU_DELAYS");
		as_alone(&r, &native, "captures as a share of time begins");
		gsched_group_set(admin, NULL, "a", "capsm.max", "max");
	}
}

static void many_ways(void)
{
	static char *const alone[] = { STEPS, NULL },
		*const managed[] = { IN_GROUP("a"), STEPS, NULL };
	static char *const others[] = { "b", "top" };
	struct run r, other[2];
	unsigned int i;
	struct state s;

	run(false, alone, &app_alone);
	ok(!app_alone.status && *app_alone.text,
	   "launches from threads, in contexts and streams that come and go");
	gsched_group_set(admin, NULL, "a", "capsm.max", "2");
	run(false, managed, &r);
	as_alone(&r, &app_alone, "the same with a quarter of the device");
	gsched_group_set(admin, NULL, "a", "capsm.max", "max");
	for (i = 0; i < 2; i++) {
		start_endless(&other[i], others[i]);
		comes_to(other[i].pid, has_run, &s);
	}
	run(false, managed, &r);
	as_alone(&r, &app_alone, "the same in turns with another program, below a third");
	for (i = 0; i < 2; i++)
		end(&other[i], SIGTERM);
	ok(!other[0].status && !other[1].status, "the others end as they should: %x, %x%s%s",
	   other[0].status, other[1].status, other[0].text, other[1].text);
}

/* Below another program a thread waits for what is on the GPU, in every context that is there */
static void green_contexts(void)
{
#define GREEN app, "selftests/libgsched/kernels.ptx", "green", "green", "green"
	static char *const alone[] = { GREEN, NULL }, *const managed[] = { IN_GROUP("a"), GREEN, NULL };
	static char *const top[] = { IN_GROUP("top"), SHORT("100000"), NULL };
	static const char what[] = "green contexts, below another program";
	struct run native, r, other;
	struct state s;

	run(false, alone, &native);
	start(&other, false, top);
	ok(comes_to(other.pid, has_run, &s), "%s: it runs", what);
	run(false, managed, &r);
	as_alone(&r, &native, what);
	end(&other, SIGTERM);
	ok(!other.status, "%s: it ends as it should", what);
}

/*
 * The servers set the slices. gschedd starts control daemons without its own preloads: a script has
 * what the simulation needs
 */
static void servers(const char *cwd)
{
	static const char what[] = "MPS servers of two bands";
	struct run top, low;
	struct state s, t;
	char mps[64];
	bool good;
	FILE *f;

	snprintf(mps, sizeof(mps), "%s/control", dir);
	f = fopen(mps, "we");
	if (f) {
		fprintf(f, "#!/bin/sh\nLD_PRELOAD=$LD_PRELOAD:%s/"
			BUILD "/vgpu/libvgpu-rm.so exec %s/"
			BUILD "/vgpu/nvidia-cuda-mps-control \"$@\"\n", cwd, cwd);
		fclose(f);
		chmod(mps, 0755);
	}
	setenv("LD_LIBRARY_PATH", BUILD "/vgpu", 1);
	setenv("VGPU_MPS", "auto", 1);
	ok(f && gschedd_start_with(mps) && !gsched_group_set(admin, NULL, "top",
							     "gpu.band", "first") &&
	   !gsched_group_set(admin, NULL, "a", "gpu.band", "second"),
	   "gschedd that runs MPS servers");
	start_long(&low, "a");
	start_endless(&top, "top");
	good = comes_to(top.pid, is_whole, &s);
	good = comes_to(low.pid, is_tiny, &t) && good;
	ok(good && s.server && t.server && s.server != t.server,
	   "%s: %.0f sets %.0f us, %.0f sets %.0f us", what, s.server, s.applied_us, t.server,
	   t.applied_us);
	end(&top, SIGTERM);
	finish(&low);
	as_alone(&low, &long_alone, what);
	ok(!top.status && !gschedd_stop(SIGTERM), "%s: all end as they should", what);
	setenv("VGPU_MPS", "0", 1);
}

int main(void)
{
	char clean[100], preload[1024], cwd[400];

	if (!mkdtemp(dir) || !getcwd(cwd, sizeof(cwd)))
		return 1;
	snprintf(sock, sizeof(sock), "%s/socket", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	snprintf(long_log, sizeof(long_log), "%s/long", dir);
	snprintf(mps_dir, sizeof(mps_dir), "%s/mps", dir);
	snprintf(short_log, sizeof(short_log), "%s/short", dir);
	/* behind it what the test itself runs under: a sanitizer */
	snprintf(preload, sizeof(preload), "%s/" BUILD "/vgpu/libvgpu-rm.so%s%s", cwd,
		 getenv("LD_PRELOAD") ? ":" : "", getenv("LD_PRELOAD") ? : "");
	setenv("LD_PRELOAD", preload, 1);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	setenv("VGPU_SMS", "8", 1);
	setenv("VGPU_MPS", "0", 1);
	setenv("VGPU_TIMESLICE_US", "20000", 1);
	without_gsched();
	if (ok(gschedd_start(), "gschedd, its own arbiter")) {
		one_below();
		two_below();
		equals();
		swap();
		two_contexts();
		blocking_launches();
		rare_launches();
		owner_dies();
		refused();
		no_slices(preload);
		quota();
		many_ways();
		green_contexts();
		captures_as_a_share_begins();
		gschedd_dies();
		ok(!gschedd_stop(SIGTERM), "gschedd ends as it should");
		servers(cwd);
	}
	unsetenv("LD_PRELOAD");
	snprintf(clean, sizeof(clean), "rm -rf %s /dev/shm/%s", dir, dir + strlen("/tmp/"));
	if (system(clean))
		printf("# %s is left behind\n", dir);
	return done();
}
