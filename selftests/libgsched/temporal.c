// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Contexts that take turns, from end to end: gschedd with its own arbiter, the interposer, and two
 * programs on a simulated GPU without MPS. Block-tasks of the batch program are held in their
 * middle, so when all of its workers have left for the other program, it is in their middle that
 * they were left; each looks at a word while it is held, so it is seen to go on. What the programs
 * compute is what they compute alone, whoever dies meanwhile. Run from the root of the tree.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "libgsched/include/gsched.h"
#include "run.h"

#define BLOCKS	192	/* of app.c's kernels */
#define HELD	8
#define ROUNDS	3
#define IN_GROUP(g) ctl, "run", "--strict", "--group", g, "--"
#define APP	app, "selftests/libgsched/kernels.ptx"
#define BATCH	batch_drv, "--blocks", "256", "--threads", "64", "--iters", "3000", "--kernels", "8"

static char ctl[] = BUILD "/bin/gschedctl", app[] = BUILD "/test/libgsched/app";
static char batch_drv[] = BUILD "/programs/batch-drv",
	latency_drv[] = BUILD "/programs/latency-drv";
static char dir[] = "/tmp/gsched-temporal-XXXXXX", sock[64], cache[64];
static pid_t gschedd;
static struct gsched *admin;
static struct run batch, latency, batch_alone, latency_alone;

/* ---- gschedd ---- */

static bool gschedd_start(void)
{
	unsigned int i;

	gschedd = fork();
	if (!gschedd) {
		execl(BUILD "/bin/gschedd", "gschedd", "--socket", sock, "--cache", cache,
		      "--driver", BUILD "/vgpu/libcuda.so.1", "--embedded", "--log-level",
		      "error", NULL);
		_exit(127);
	}
	for (i = 0; i < 20000 && !(admin = gsched_open(NULL)); i++)
		usleep(1000);
	return admin && !gsched_group_create(admin, NULL, "latency") &&
	       !gsched_group_create(admin, NULL, "batch") &&
	       !gsched_group_set(admin, NULL, "latency", "gpu.priority", "10");
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

/* What gschedd says of a program: its long task is the one that runs */
struct state {
	bool there, temporal;
	unsigned int block, resumable, wings, limit, launched, left;
};

static unsigned int number(const cJSON *in, const char *name)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(in, name);

	return n ? (unsigned int)n->valuedouble : 0;
}

static struct state state_of(pid_t pid)
{
	char *text = gsched_status(admin);
	cJSON *root = cJSON_Parse(text ? text : "");
	const cJSON *device = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(root, "devices"),
						 0), *client, *slot;
	const char *mode = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "mode"));
	struct state s = { .temporal = mode && !strcmp(mode, "temporal") };

	cJSON_ArrayForEach(client, cJSON_GetObjectItemCaseSensitive(device, "clients")) {
		if (number(client, "pid") != (unsigned int)pid)
			continue;
		s.there = true;
		s.block = number(cJSON_GetObjectItemCaseSensitive(client, "managed"), "block");
		s.resumable = number(client, "resumable");
		s.wings = number(client, "wings");
		cJSON_ArrayForEach(slot, cJSON_GetObjectItemCaseSensitive(client, "slots")) {
			if (number(slot, "blocks") != BLOCKS)
				continue;
			s.limit = number(slot, "limit");
			s.launched = number(slot, "launched");
			s.left = number(slot, "left");
		}
	}
	cJSON_Delete(root);
	free(text);
	return s;
}

static bool runs_twins(const struct state *s) { return s->block; }
static bool runs_resumable(const struct state *s) { return s->resumable; }
static bool has_left(const struct state *s) { return s->launched && !s->limit &&
					      s->left == s->launched; }
static bool is_gone(const struct state *s) { return !s->there; }

static struct state evicted;	/* while the other one ran */
static bool has_new_workers(const struct state *s) { return s->wings > evicted.wings &&
						     s->launched > evicted.launched; }

/* Half a minute for @pid to come to that */
static bool comes_to(pid_t pid, bool (*is)(const struct state *s), struct state *s)
{
	unsigned int i;

	for (i = 0; i < 15000; i++, usleep(2000)) {
		*s = state_of(pid);
		if (is(s))
			return true;
	}
	printf("# there %d, twins %u, resumable %u, wings %u, limit %u, launched %u, left %u\n",
	       s->there, s->block, s->resumable, s->wings, s->limit, s->launched, s->left);
	return false;
}

static unsigned int stat_of(const char *group, const char *name)
{
	char text[1024] = "";
	const char *at;

	gsched_group_get(admin, NULL, group, "gpu.stat", text, sizeof(text));
	at = strstr(text, name);
	return at ? (unsigned int)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* ---- the pair ---- */

static void start_batch(void)
{
	static char *const what[] = { IN_GROUP("batch"), APP, "held", NULL };

	start(&batch, false, what);
}

static void start_latency(void)
{
	static char *const what[] = { IN_GROUP("latency"), APP, "asked", NULL };

	start(&latency, false, what);
}

static bool asks(struct run *r, const char *byte, const char *answer)
{
	size_t from = r->len;

	tell(r, byte);
	return answers(r, from, answer);
}

/*
 * The batch program's last launch is in the resumable form, and eight of its block-tasks are held
 * in their middle
 */
static bool into_the_middle(const char *what)
{
	struct state s;

	return ok(comes_to(batch.pid, runs_resumable, &s),
		  "%s: contexts take turns, block-tasks are long: the resumable form", what) &&
	       ok(asks(&batch, "1", "held\n"), "%s: block-tasks are in their middle", what);
}

/* The other program's kernel is on the device, and stays there until it is told */
static bool evict(const char *what)
{
	struct state s = { 0 };
	bool good;

	good = asks(&latency, "r", "running\n") && comes_to(batch.pid, has_left, &s);
	return ok(good, "%s: for somebody more important all %u workers have left", what,
		  s.launched);
}

/* What it says at its end, @from on, is what it says alone */
static void end(struct run *r, const char *byte, const struct run *alone, const char *from,
		const char *what, const char *is)
{
	const char *got, *expected = strstr(alone->text, from);

	tell(r, byte);
	finish(r);
	got = strstr(r->text, from);
	if (!ok(!r->status && got && expected && !strcmp(got, expected), "%s: %s", what, is))
		printf("# status %x\n# got:\n%s# expected:\n%s", r->status, r->text, alone->text);
}

static void end_batch(const char *what)
{
	end(&batch, "2", &batch_alone, "192 began once, 192 ended once\nheld ", what,
	    "each block-task was begun and ended once, memory is as alone");
}

static void end_both(const char *what)
{
	end_batch(what);
	end(&latency, "q", &latency_alone, "asked ", what,
	    "the other program's memory is as alone");
}

static void kill_both(void)
{
	kill(batch.pid, SIGKILL);
	finish(&batch);
	kill(latency.pid, SIGKILL);
	finish(&latency);
}

static void turns(void)
{
	static const char what[] = "turns";
	unsigned int round, evictions;
	struct state s = { 0 };
	bool good;

	start_batch();
	good = ok(comes_to(batch.pid, runs_twins, &s) && !s.temporal && !s.resumable,
		  "alone on the device: the plain twin");
	start_latency();
	good = good && ok(says(&latency, "ready\n") && state_of(batch.pid).temporal,
			  "a second context without MPS: they take turns");
	good = good && into_the_middle(what);
	evictions = stat_of("batch", "evictions ");
	for (round = 1; good && round <= ROUNDS; round++) {
		good = evict(what);
		evicted = state_of(batch.pid);
		ok(stat_of("batch", "evictions ") >= evictions + round, "gpu.stat: %u evictions",
		   stat_of("batch", "evictions "));
		good = good && ok(asks(&latency, "x", "served\n"), "it is served");
		good = good && ok(asks(&batch, "?", "moving\n"), "all %u block-tasks go on", HELD);
		/* they may move before the interposer has counted them */
		good = good && comes_to(batch.pid, has_new_workers, &s);
		ok(good, "in new workers: %u wings", s.wings);
	}
	if (good)
		end_both(what);
	else
		kill_both();
}

/* ---- deaths ---- */

static bool both_in_the_middle(const char *what)
{
	start_latency();
	if (!says(&latency, "ready\n"))
		return ok(false, "%s: ready", what);
	start_batch();
	return into_the_middle(what) && evict(what);
}

static void batch_dies(void)
{
	static const char what[] = "the batch program is killed";
	struct state s;
	bool good = both_in_the_middle(what);

	kill(batch.pid, SIGKILL);
	finish(&batch);
	good = ok(comes_to(batch.pid, is_gone, &s),
		  "%s, its block-tasks in memory: gschedd lets it go", what) && good;
	good = good && ok(asks(&latency, "x", "served\n"), "%s: the other one is served", what);
	start_batch();
	if (good && into_the_middle(what) && evict(what) && ok(asks(&latency, "x", "served\n"),
							       "%s: and served again", what))
		end_both(what);
	else
		kill_both();
}

static void latency_dies(void)
{
	static const char what[] = "the latency-sensitive program is killed";
	bool good = both_in_the_middle(what);

	kill(latency.pid, SIGKILL);
	finish(&latency);
	if (good && ok(asks(&batch, "?", "moving\n"), "%s on the device: block-tasks go on",
		       what)) {
		end_batch(what);
	} else {
		kill(batch.pid, SIGKILL);
		finish(&batch);
	}
}

static void gschedd_dies(void)
{
	static const char what[] = "gschedd is killed";
	bool good = both_in_the_middle(what);

	ok(WIFSIGNALED(gschedd_stop(SIGKILL)), "%s", what);
	if (good && ok(asks(&batch, "?", "moving\n"), "%s: block-tasks go on without it", what) &&
	    ok(asks(&latency, "x", "served\n"), "%s: and so does the other program", what))
		end_both(what);
	else
		kill_both();
}

/* ---- programs by themselves ---- */

/* The example programs: one long kernel after another, and a short one every few ms */
static void by_themselves(void)
{
	static char *const alone[] = { BATCH, NULL },
		*const long_ones[] = { IN_GROUP("batch"), BATCH, NULL };
	static char *const short_ones[] = { IN_GROUP("latency"), latency_drv, "--blocks", "2",
					    "--threads", "32", "--iters", "300",
					    "--requests", "100000", "--period-us", "20000", NULL };
	unsigned int resumable = 0, evictions = stat_of("batch", "evictions ");
	siginfo_t end = { 0 };
	struct state s;
	struct run r;

	run(false, alone, &r);
	start(&latency, false, short_ones);
	start(&batch, false, long_ones);
	/* what the arbiter says of it goes with it */
	for (; !waitid(P_PID, (id_t)batch.pid, &end, WEXITED | WNOHANG | WNOWAIT) && !end.si_pid;
	     usleep(2000)) {
		s = state_of(batch.pid);
		if (s.resumable)
			resumable = s.resumable;
	}
	finish(&batch);
	kill(latency.pid, SIGTERM);
	finish(&latency);
	ok(!batch.status && !latency.status && strstr(r.text, "\"checksum\"") &&
	   strstr(batch.text, "\"checksum\"") && !strcmp(strstr(r.text, "\"checksum\""),
							 strstr(batch.text, "\"checksum\"")),
	   "the example programs: results as alone");
	ok(resumable, "of 9 launches %u in the resumable form", resumable);
	evictions = stat_of("batch", "evictions ") - evictions;
	ok(evictions, "%u evictions", evictions);
}

int main(void)
{
	static char *const held[] = { "held", NULL }, *const asked[] = { "asked", NULL };
	char clean[100];

	if (!mkdtemp(dir))
		return 1;
	snprintf(sock, sizeof(sock), "%s/socket", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	setenv("VGPU_SMS", "8", 1);
	setenv("VGPU_MPS", "0", 1);
	start(&batch_alone, false, held);
	tell(&batch_alone, "12");
	finish(&batch_alone);
	start(&latency_alone, false, asked);
	tell(&latency_alone, "rxq");
	finish(&latency_alone);
	if (ok(!batch_alone.status && !latency_alone.status && strstr(latency_alone.text, "asked"),
	       "the programs alone") &&
	    ok(gschedd_start(), "gschedd, its own arbiter")) {
		turns();
		batch_dies();
		latency_dies();
		gschedd_dies();
		ok(gschedd_start(), "a new gschedd");
		by_themselves();
		ok(!gschedd_stop(SIGTERM), "which ends as it should");
	}
	snprintf(clean, sizeof(clean), "rm -rf %s /dev/shm/%s", dir, dir + strlen("/tmp/"));
	if (system(clean))
		printf("# %s is left behind\n", dir);
	return done();
}
