// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A gschedd that is stopped (SIGSTOP) stops no program, from end to end: programs start, run and
 * end meanwhile, and compute what they compute alone. Nothing here is timed: run.h gives each
 * program two minutes. Run from the root of the tree.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "libgsched/include/gsched.h"
#include "run.h"

static char latency_drv[] = BUILD "/programs/latency-drv";
static char batch_drv[] = BUILD "/programs/batch-drv";
static char dir[] = "/tmp/gsched-stopped-XXXXXX", sock[64], cache[64];
static pid_t gschedd;
static struct gsched *admin;

static bool gschedd_start(void)
{
	gschedd = fork();
	if (!gschedd) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(BUILD "/bin/gschedd", "gschedd", "--socket", sock, "--cache", cache,
		      "--driver", BUILD "/vgpu/libcuda.so.1",
		      "--embedded", "--log-level", "error", NULL);
		_exit(127);
	}
	for (unsigned int i = 0; i < 60000 && !(admin = gsched_open(NULL)); i++)
		usleep(1000);
	return admin;
}

static void stop(void)
{
	int status;

	kill(gschedd, SIGSTOP);
	waitpid(gschedd, &status, WUNTRACED);
}

static unsigned int number(const cJSON *in, const char *name)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(in, name);

	return n ? (unsigned int)n->valuedouble : 0;
}

/* How many launches of @pid were managed; -1: it is no client */
static int managed(pid_t pid)
{
	char *text = gsched_status(admin);
	cJSON *root = cJSON_Parse(text ? text : "");
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *client, *m;
	const cJSON *device = cJSON_GetArrayItem(devices, 0);
	int n = -1;

	cJSON_ArrayForEach(client, cJSON_GetObjectItemCaseSensitive(device, "clients")) {
		m = cJSON_GetObjectItemCaseSensitive(client, "managed");
		if (number(client, "pid") == (unsigned int)pid)
			n = (int)(number(m, "block") + number(m, "launch"));
	}
	cJSON_Delete(root);
	free(text);
	return n;
}

static bool comes_to(pid_t pid, int n)
{
	unsigned int i;

	for (i = 0; i < 15000 && managed(pid) < n; i++)
		usleep(2000);
	return i < 15000;
}

static void before_start(void)
{
	static char *const what[] = { latency_drv, "--blocks", "2", "--threads", "32", "--iters",
				     "300", "--requests", "20",
				      "--period-us", "1000", NULL };
	struct run r;

	stop();
	run(true, what, &r);
	ok(!r.status && strstr(r.text, "\"requests\""),
	   "gschedd is stopped: a program starts, runs and ends");
	if (r.status)
		printf("# status %x\n%s", r.status, r.text);
	kill(gschedd, SIGCONT);
}

static void while_running(void)
{
	/* more blocks than there is room for: launches that have a window, and are managed */
	static char *const what[] = { batch_drv, "--blocks", "512", "--threads", "64", "--iters",
				     "1000", "--kernels", "40", NULL };
	static char *const idle[] = { "asked", NULL };
	struct run alone, other, r;

	run(false, what, &alone);
	/* one more on the device, or the arbiter would not be asked */
	start(&other, true, idle);
	ok(says(&other, "ready\n") && comes_to(other.pid, 0),
	   "gschedd goes on: a program is managed");
	start(&r, true, what);
	ok(comes_to(r.pid, 3), "and another one, which launches");
	stop();
	finish(&r);
	ok(!r.status && strstr(r.text, "\"checksum\"") && strstr(alone.text, "\"checksum\"") &&
	   !strcmp(strstr(r.text, "\"checksum\""), strstr(alone.text, "\"checksum\"")),
	   "gschedd is stopped while it runs: it ends, results as alone");
	tell(&other, "rxq");
	finish(&other);
	ok(!other.status, "and so does the other one");
	kill(gschedd, SIGCONT);
	for (unsigned int i = 0; i < 15000 && managed(r.pid) >= 0; i++)
		usleep(2000);
	ok(managed(r.pid) < 0, "it goes on: it finds them gone");
}

int main(void)
{
	char clean[100];
	int status;

	setenv("VGPU_SMS", "8", 1);
	setenv("VGPU_MPS", "1", 1);
	if (!mkdtemp(dir))
		abort();
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	if (!gschedd_start()) {
		printf("Bail out! gschedd does not start\n");
		return 1;
	}
	before_start();
	while_running();
	kill(gschedd, SIGTERM);
	waitpid(gschedd, &status, 0);
	ok(!status, "gschedd ends cleanly");
	gsched_close(admin);
	snprintf(clean, sizeof(clean), "rm -rf %s /dev/shm/%s", dir, dir + strlen("/tmp/"));
	if (system(clean))
		abort();
	return done();
}
