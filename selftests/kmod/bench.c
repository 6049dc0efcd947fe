// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long a submit and a complete take, alone and beside other clients, and for how long the
 * device's lock is held, at worst when many kernels are adopted: numbers to compare later changes
 * with.
 */
#include <time.h>

#include "common.h"

#define TRACING	"/sys/kernel/tracing"
#define TRACED	500	/* round trips whose decisions are traced: few enough for the buffer */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static long long stat_now(const char *name)
{
	char text[512];

	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat");
	return stat_of(text, name);
}

static int round_trips(int fd, const char *what)
{
	uint64_t start = now_ns(), end = start + 500000000, t = start;
	long long before = stat_now("decisions");
	unsigned int n = 0, i;

	while (t < end) {
		for (i = 0; i < 64; i++, n++)
			if (submit(fd, 0, n + 1, 0) || complete(fd, 0, n + 1))
				return -1;
		t = now_ns();
	}
	printf("# round trips per second: %.0f (%s; %.0f ns each, %.2f decisions each)\n",
	       n * 1e9 / (t - start), what, (double)(t - start) / n,
	       (double)(stat_now("decisions") - before) / n);
	return 0;
}

/* By the tracepoint: how long the device's lock was held for a decision, mean and longest */
static int print_decisions(const char *what)
{
	unsigned long long ns, sum = 0, worst = 0;
	unsigned int n = 0;
	char line[512], *at;
	FILE *f = fopen(TRACING "/trace", "re");

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "gsched_decision: ") ? strstr(line, " ns=") : NULL;
		if (!at || sscanf(at, " ns=%llu", &ns) != 1)
			continue;
		sum += ns;
		worst = ns > worst ? ns : worst;
		n++;
	}
	if (f)
		fclose(f);
	printf("# a decision: %llu ns, at worst %llu (%s; %u traced)\n", n ? sum / n : 0, worst,
	       what, n);
	return n ? 0 : -1;
}

static int short_kernels(int fd)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < TRACED && !ret; i++)
		ret = submit(fd, 0, i + 1, 0) || complete(fd, 0, i + 1);
	return ret;
}

static int set_quota(int fd)
{
	return put("8", CONFIG "/" DEV_NAME "/capsm.max");
}

static int decision_ns(int (*op)(int fd), int fd, const char *what)
{
	int ret;

	if (access(TRACING "/trace", R_OK)) {
		printf("# no tracefs: decisions not timed\n");
		return op(fd);
	}
	if (put("1", TRACING "/events/gsched/gsched_decision/enable"))
		return -1;
	close(open(TRACING "/trace", O_WRONLY | O_TRUNC));
	put("1", TRACING "/tracing_on");
	ret = op(fd);
	put("0", TRACING "/events/gsched/gsched_decision/enable");
	return print_decisions(what) || ret ? -1 : 0;
}

static void close_all(const int *fd, unsigned int n)
{
	while (n--)
		close(fd[n]);
}

/* How many of @n could attach; less important than whoever is there, if the group is important */
static unsigned int attach_others(int *fd, unsigned int n, unsigned int flags,
				  volatile struct gsched_cl_page **page)
{
	struct gsched_attach req;
	unsigned int i;

	for (i = 0; i < n; i++) {
		fd[i] = gopen();
		if (attach_as(fd[i], flags, &req))
			return i;
		if (!page && put("0", SYSFS "/" DEV_NAME "/tasks/%d-%llu/gpu.priority", getpid(),
				 (unsigned long long)req.client_id))
			return i;
		if (page && (page[i] = map_cl(fd[i], &req)) == MAP_FAILED)
			return i;
	}
	return n;
}

static bool beside_idle(int fd)
{
	int other[16];
	unsigned int n = attach_others(other, 16, GSCHED_ATTACH_MPS, NULL);
	bool good = n == 16 && !round_trips(fd, "submit to complete, beside 16 idle clients") &&
		    !decision_ns(short_kernels, fd, "beside 16 idle clients");

	close_all(other, n);
	return good;
}

/* Most clients: a kernel that checks all invariants each time gets fewer */
static unsigned int many(void)
{
	return access("/sys/kernel/debug/kmemleak", F_OK) ? 255 : 16;
}

/* All have a kernel */
static bool beside_busy(int fd)
{
	unsigned int n = many(), i, got;
	bool good;
	char what[64];
	int other[255];

	got = attach_others(other, n, GSCHED_ATTACH_MPS, NULL);
	good = got == n;
	for (i = 0; good && i < n; i++)
		good = submit(other[i], 0, 1, GSCHED_SUBMIT_NOWAIT) >= 0;
	snprintf(what, sizeof(what), "beside %u that run", n);
	good = good && !decision_ns(short_kernels, fd, what);
	close_all(other, got);
	return good;
}

/* All have used all their slots under a lease, of which the arbiter learns when a quota is set */
static bool adopts_all(void)
{
	volatile struct gsched_cl_page *page[255];
	unsigned int n = many(), i, slot, got;
	bool good;
	char what[64];
	int other[255];

	got = attach_others(other, n, GSCHED_ATTACH_SLICE, page);
	good = got == n;
	for (i = 0; good && i < n; i++)
		for (slot = 0; slot < GSCHED_SLOTS; slot++) {
			page[i]->slot[slot].blocks = 100000;
			page[i]->slot[slot].blocks_per_sm = 8;
			page[i]->slot[slot].predicted_ns = 1000000000;
			page[i]->slot[slot].seq = 1;
		}
	snprintf(what, sizeof(what), "%u x %u kernels are adopted", n, GSCHED_SLOTS);
	good = good && !decision_ns(set_quota, -1, what) &&
	       stat_now("adopted") == n * GSCHED_SLOTS;
	put("max", CONFIG "/" DEV_NAME "/capsm.max");
	for (i = 0; i < got; i++)
		munmap((void *)page[i], sizeof(*page[i]));
	close_all(other, got);
	return good;
}

int main(void)
{
	int admin = test_device(), fd = gopen();
	bool ok;

	printf("TAP version 13\n1..1\n");
	ok = admin >= 0 && !put("512", SYSFS "/" DEV_NAME "/clients_max") &&
	     !put("10", CONFIG "/" DEV_NAME "/gpu.priority") &&
	     !attach(fd, GSCHED_ATTACH_MPS) && !round_trips(fd, "submit to complete, alone") &&
	     !decision_ns(short_kernels, fd, "alone") && beside_idle(fd) && beside_busy(fd);
	close(fd);
	ok = ok && adopts_all();
	del_device(admin, dev_uuid);
	printf("%s 1 - submit and complete in a loop\n", ok ? "ok" : "not ok");
	return !ok;
}
