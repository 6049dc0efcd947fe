// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * memory.max from end to end: gschedd with its own arbiter, the interposer, and programs that
 * allocate device memory in every way there is. The simulated GPU gives it out in pieces of 2 MiB,
 * and a context takes 8 MiB. Run from the root of the tree.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "libgsched/include/gsched.h"
#include "run.h"

#define CONTEXT	8	/* MiB */

static char ctl[] = BUILD "/bin/gschedctl", program[] = BUILD "/test/libgsched/memory-app";
static char dir[] = "/tmp/gsched-memory-XXXXXX", sock[64];
static pid_t gschedd;
static struct gsched *admin;
/* $LD_PRELOAD: with the simulated resource manager; as the test was started, for a sanitizer */
static char preload[1024], outside[512];

static bool gschedd_start(void)
{
	gschedd = fork();
	if (!gschedd) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(BUILD "/bin/gschedd", "gschedd", "--socket", sock, "--driver",
		      BUILD "/vgpu/libcuda.so.1", "--embedded", "--log-level", "error", NULL);
		_exit(127);
	}
	for (unsigned int i = 0; i < 20000 && !(admin = gsched_open(NULL)); i++)
		usleep(1000);
	return admin;
}

static int gschedd_stop(int signal)
{
	int status;

	gsched_close(admin);
	admin = NULL;
	kill(gschedd, signal);
	waitpid(gschedd, &status, 0);
	return status;
}

static void set(const char *group, const char *value)
{
	if (gsched_group_create(admin, NULL, group) && errno != EEXIST)
		abort();
	if (gsched_group_set(admin, NULL, group, "memory.max", value))
		abort();
}

static double shown(const char *group, const char *file)
{
	char text[64];

	return gsched_group_get(admin, NULL, group, file, text, sizeof(text)) ? -1 :
	       strtod(text, NULL) / (1 << 20);
}

/* What need not be asked for is told without waiting for an answer. */
static bool comes_to(const char *group, double mib)
{
	for (unsigned int i = 0; i < 10000 && shown(group, "memory.current") != mib; i++)
		usleep(2000);
	if (shown(group, "memory.current") == mib)
		return true;
	printf("# memory.current of %s is %g MiB, not %g\n", group, shown(group, "memory.current"),
	       mib);
	return false;
}

static unsigned int refusals(const char *group)
{
	char text[512];
	const char *at;

	if (gsched_group_get(admin, NULL, group, "gpu.events", text, sizeof(text)))
		return 0;
	at = strstr(text, "memory_max ");
	return at ? strtoul(at + strlen("memory_max "), NULL, 10) : 0;
}

static bool start_in(struct run *r, char *group, char *primary)
{
	char *const what[] = { ctl, "run", "--strict", "--group", group, "--", program, primary,
			       NULL };

	start(r, false, what);
	return says(r, "context 0\n");
}

static bool does(struct run *r, const char *order, const char *answer)
{
	char line[64];
	size_t from = r->len;

	snprintf(line, sizeof(line), "%s\n", order);
	tell(r, line);
	snprintf(line, sizeof(line), "%s\n", answer);
	if (answers(r, from, line))
		return true;
	printf("# \"%s\" is not answered with \"%s\" but \"%s\"\n", order, answer, r->text + from);
	return false;
}

static void end(struct run *r)
{
	tell(r, "q\n");
	finish(r);
}

static void without_a_limit(void)
{
	struct run r = { 0 };

	set("free", "max");
	ok(start_in(&r, "free", NULL) && comes_to("free", CONTEXT), "a context is counted");
	ok(does(&r, "a30", "a 0") && comes_to("free", CONTEXT + 30), "a buffer, too");
	ok(does(&r, "a0.1", "a 0") && comes_to("free", CONTEXT + 32),
	   "a small one as the piece that the driver takes");
	ok(does(&r, "f", "f 0") && comes_to("free", CONTEXT + 30), "and no longer once it is freed");
	ok(does(&r, "x", "x 0") && comes_to("free", 2 * CONTEXT + 30) && does(&r, "X", "X 0") &&
	   comes_to("free", CONTEXT + 30), "and a second context, until it is destroyed");
	ok(does(&r, "o", "o 0") && comes_to("free", CONTEXT + 30),
	   "the child of a fork takes nothing away");
	end(&r);
	ok(!r.status && comes_to("free", 0) && shown("free", "memory.peak") == 2 * CONTEXT + 30,
	   "nothing is left when the program ends, but the peak");
}

static void every_way(char *primary, const char *what)
{
	unsigned int before = refusals("few");
	struct run r = { 0 };

	set("few", "60M");
	ok(start_in(&r, "few", primary) && does(&r, "a20", "a 0") && comes_to("few", CONTEXT + 20),
	   "%s: what fits", what);
	ok(does(&r, "i", "32 of 60, 60 i 0"), "%s: it sees what is left, and its limit", what);
	ok(does(&r, "a34", "a 2") && does(&r, "s34", "s 2") && does(&r, "c34", "c 2") &&
	   does(&r, "y34", "y 2") && does(&r, "m34", "m 2"),
	   "%s: more is out of memory: buffer, pool, physical memory, array, managed memory", what);
	ok(comes_to("few", CONTEXT + 20) && refusals("few") >= before + 5,
	   "%s: which takes nothing, and is counted", what);
	ok(does(&r, "h200", "h 0"), "%s: host memory is not limited", what);
	ok(does(&r, "c32", "c 0") && does(&r, "a1", "a 2") && does(&r, "C", "C 0") &&
	   does(&r, "y32", "y 0") && does(&r, "a1", "a 2") && does(&r, "Y", "Y 0") &&
	   does(&r, "m32", "m 0") && does(&r, "a1", "a 2") && does(&r, "M", "M 0") &&
	   does(&r, "s32", "s 0") && does(&r, "a32", "a 0"),
	   "%s: each can have all that is left, and gives it back", what);
	ok(does(&r, "x", "x 2") && does(&r, "f", "f 0") && does(&r, "x", "x 0") &&
	   does(&r, "X", "X 0"), "%s: a second context needs its own", what);
	ok(does(&r, "m20", "m 0") && comes_to("few", CONTEXT + 40),
	   "%s: managed memory counts in full", what);
	end(&r);
	ok(!r.status && comes_to("few", 0), "%s: all is given back", what);
}

static void several(void)
{
	struct run a = { 0 }, b = { 0 };

	set("few", "60M");
	set("few/less", "40M");
	ok(start_in(&a, "few", NULL) && start_in(&b, "few/less", NULL) &&
	   comes_to("few", 2 * CONTEXT), "two programs, one in a group below");
	ok(does(&b, "a33", "a 2") && does(&b, "a30", "a 0") && does(&a, "a16", "a 2") &&
	   does(&a, "a14", "a 0") && does(&b, "a2", "a 2"), "they share the limit of both");
	ok(does(&b, "i", "0 of 40, 40 i 0") && does(&a, "i", "0 of 60, 60 i 0"),
	   "and see what is left for them");
	set("few", "80M");
	ok(does(&b, "a2", "a 0") && does(&b, "a2", "a 2") && does(&a, "a18", "a 0"),
	   "a limit can be raised while they run");
	set("few", "10M");
	ok(does(&a, "a1", "a 2") && does(&a, "f", "f 0") && does(&a, "a1", "a 2"),
	   "and lowered: nothing is taken, and nothing more given");
	set("few", "max");
	set("few/less", "max");
	ok(does(&a, "a300", "a 0") && does(&b, "a300", "a 0"), "or removed");
	kill(b.pid, SIGKILL);
	finish(&b);
	ok(comes_to("few/less", 0), "one that is killed gives its memory back");
	end(&a);
	ok(!a.status && comes_to("few", 0), "so does the other");
}

/* Threads that allocate and free side by side, in two programs, also while the limit changes */
static void threads(void)
{
	static const char *const limits[] = { "12M", "max", "30M", "9M" };
	struct run a = { 0 }, b = { 0 };
	double peak;

	set("many", "30M");
	ok(start_in(&a, "many", NULL) && start_in(&b, "many", NULL) && does(&a, "t", "t 0") &&
	   does(&b, "t", "t 0") && comes_to("many", 2 * CONTEXT), "threads: all is given back");
	peak = shown("many", "memory.peak");
	ok(peak > 2 * CONTEXT && peak <= 30, "threads: never more than the limit (%g MiB)", peak);
	tell(&a, "t\n");
	tell(&b, "t\n");
	for (unsigned int i = 0; i < 40; i++) {
		set("many", limits[i % 4]);
		usleep(1000);
	}
	ok(says(&a, "t 0\nt 0\n") && says(&b, "t 0\nt 0\n") && comes_to("many", 2 * CONTEXT),
	   "threads: and under changing limits");
	end(&a);
	end(&b);
	ok(comes_to("many", 0), "threads: nothing is left");
}

/* Launches of twins by the clients of the group */
static double twins(const char *group)
{
	char *json = gsched_status(admin);
	cJSON *root = cJSON_Parse(json ? json : "");
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *c, *at;
	double n = 0;

	cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(devices, 0),
							       "clients")) {
		at = cJSON_GetObjectItemCaseSensitive(c, "group");
		if (!cJSON_IsString(at) || strcmp(at->valuestring, group))
			continue;
		at = cJSON_GetObjectItemCaseSensitive(c, "managed");
		at = cJSON_GetObjectItemCaseSensitive(at, "block");
		n += at ? at->valuedouble : 0;
	}
	cJSON_Delete(root);
	free(json);
	return n;
}

/* What gsched itself needs is not refused: who has filled its memory is managed all the same. */
static void full(void)
{
	struct run r = { 0 };
	bool good;

	set("full", "30M");
	if (gsched_group_set(admin, NULL, "full", "capsm.max", "4"))
		abort();
	good = start_in(&r, "full", NULL) && does(&r, "a22", "a 0") && does(&r, "a1", "a 2");
	for (unsigned int i = 0; i < 100 && good && !twins("full"); i++)
		good = does(&r, "k", "k 0");
	ok(good && twins("full"), "a program that has all it may have is managed");
	ok(does(&r, "a1", "a 2") && shown("full", "memory.current") > 30,
	   "what that takes is counted (%g MiB)", shown("full", "memory.current"));
	end(&r);
}

/* There is nobody to ask when the first context is made. It is destroyed again. */
static void no_room(char *primary, const char *what)
{
	char *const run_it[] = { ctl, "run", "--strict", "--group", "none", "--", program, primary,
				 NULL };
	struct run r = { 0 };

	set("none", "6M");
	start(&r, false, run_it);
	finish(&r);
	ok(!strcmp(r.text, "context 2\n") && comes_to("none", 0) && refusals("none"),
	   "%s: no context without room for it", what);
	set("none", "8M");
	ok(start_in(&r, "none", primary) && does(&r, "a1", "a 2"), "%s: with just enough there is one",
	   what);
	end(&r);
}

static void arbiter_dies(void)
{
	struct run r = { 0 };

	set("few", "60M");
	ok(start_in(&r, "few", NULL) && does(&r, "a30", "a 0") && does(&r, "a30", "a 2"),
	   "a program with a limit");
	gschedd_stop(SIGKILL);
	ok(does(&r, "a30", "a 0"), "without an arbiter there is none");
	ok(gschedd_start(), "gschedd again");
	ok(comes_to("", CONTEXT + 60), "which learns what the program holds");
	if (gsched_group_set(admin, NULL, "", "memory.max", "70M"))
		abort();
	ok(does(&r, "a4", "a 2") && does(&r, "a2", "a 0") && does(&r, "f", "f 0") &&
	   comes_to("", CONTEXT + 60), "and limits it");
	end(&r);
	ok(!r.status && !gschedd_stop(SIGTERM), "all end as they should");
}

/* Each GPU has limits of its own. CUDA's first device is gpu1, or gpu0 in the order of the bus. */
static void two_devices(void)
{
	static const char *const limit[] = { "30M", "60M" };
	char name[] = "gpu0", group[] = "two", text[64];
	struct run r = { 0 };
	unsigned int i;

	setenv("VGPU_DEVICES", "2", 1);
	snprintf(text, sizeof(text), "%s-2", dir + strlen("/tmp/"));
	setenv("VGPU_NAME", text, 1);
	ok(gschedd_start() && gsched_devices(admin) == 2, "gschedd, two devices");
	for (i = 0; i < 2; i++, name[3]++)
		if (gsched_group_create(admin, name, group) ||
		    gsched_group_set(admin, name, group, "memory.max", limit[i]))
			abort();
	ok(start_in(&r, group, NULL) && does(&r, "i", "52 of 60, 60 i 0") && does(&r, "a53", "a 2") &&
	   does(&r, "a40", "a 0") && !shown(group, "memory.current"),
	   "a program on one has the limit there");
	end(&r);
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	ok(start_in(&r, group, "primary") && does(&r, "i", "22 of 30, 30 i 0") &&
	   does(&r, "a40", "a 2") && does(&r, "a22", "a 0") && shown(group, "memory.current") == 30,
	   "and on the other the other one");
	end(&r);
	unsetenv("CUDA_DEVICE_ORDER");
	ok(!gschedd_stop(SIGTERM), "gschedd ends as it should");
}

static bool status_says(const char *what)
{
	bool says = false;

	for (unsigned int i = 0; i < 10000 && !says; i++, usleep(2000)) {
		char *json = gsched_status(admin);

		says = json && strstr(json, what);
		free(json);
	}
	return says;
}

/* A driver that allocates in another way: vgpu without its resource manager */
static void not_seen(void)
{
	struct run r = { 0 };

	setenv("LD_PRELOAD", outside, 1);
	set("few", "60M");
	ok(start_in(&r, "few", NULL) && does(&r, "a100", "a 0"),
	   "allocations that are not seen are not limited");
	ok(status_says("memory.max does not hold"), "and status says so");
	ok(does(&r, "m100", "m 2"), "managed memory is, as it is counted elsewhere");
	end(&r);
	setenv("LD_PRELOAD", preload, 1);
}

int main(void)
{
	char clean[100], cwd[400];

	if (!mkdtemp(dir) || !getcwd(cwd, sizeof(cwd)))
		return 1;
	snprintf(sock, sizeof(sock), "%s/socket", dir);
	snprintf(outside, sizeof(outside), "%s", getenv("LD_PRELOAD") ? : "");
	snprintf(preload, sizeof(preload), "%s/" BUILD "/vgpu/libvgpu-rm.so%s%s", cwd,
		 *outside ? ":" : "", outside);
	setenv("LD_PRELOAD", preload, 1);
	setenv("LD_LIBRARY_PATH", BUILD "/vgpu", 1);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	setenv("VGPU_SMS", "8", 1);
	if (ok(gschedd_start(), "gschedd, its own arbiter")) {
		setenv("VGPU_MPS", "0", 1);
		without_a_limit();
		every_way(NULL, "a context");
		every_way("primary", "the primary context");
		several();
		threads();
		no_room(NULL, "a context");
		no_room("primary", "the primary context");
		setenv("VGPU_MPS", "1", 1);
		every_way(NULL, "a client of MPS");
		full();
		not_seen();
		arbiter_dies();
		two_devices();
	}
	unsetenv("LD_PRELOAD");
	snprintf(clean, sizeof(clean), "rm -rf %s /dev/shm/%s*", dir, dir + strlen("/tmp/"));
	if (system(clean))
		printf("# %s is left behind\n", dir);
	return done();
}
