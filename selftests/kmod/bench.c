// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long a submit and a complete take, alone and beside other clients: numbers to compare later
 * changes with.
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

static long long decisions(void)
{
	char text[512];

	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat");
	return stat_of(text, "decisions");
}

static int round_trips(int fd, const char *what)
{
	uint64_t start = now_ns(), end = start + 500000000, t = start;
	long long before = decisions();
	unsigned int n = 0, i;

	while (t < end) {
		for (i = 0; i < 64; i++, n++)
			if (submit(fd, 0, n + 1, 0) || complete(fd, 0, n + 1))
				return -1;
		t = now_ns();
	}
	printf("# round trips per second: %.0f (%s; %.0f ns each, %.2f decisions each)\n",
	       n * 1e9 / (t - start), what, (double)(t - start) / n,
	       (double)(decisions() - before) / n);
	return 0;
}

/* By the tracepoint: how long the device's lock was held for a decision, mean and longest */
static int decision_ns(int fd, const char *what)
{
	unsigned long long ns, sum = 0, worst = 0;
	unsigned int i, n = 0;
	char line[512], *at;
	int ret = 0;
	FILE *f;

	if (access(TRACING "/trace", R_OK)) {
		printf("# no tracefs: decisions not timed\n");
		return 0;
	}
	if (put("1", TRACING "/events/gsched/gsched_decision/enable"))
		return -1;
	close(open(TRACING "/trace", O_WRONLY | O_TRUNC));
	put("1", TRACING "/tracing_on");
	for (i = 0; i < TRACED && !ret; i++)
		ret = submit(fd, 0, i + 1, 0) || complete(fd, 0, i + 1);
	put("0", TRACING "/events/gsched/gsched_decision/enable");
	f = fopen(TRACING "/trace", "re");
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
	return ret || !n ? -1 : 0;
}

int main(void)
{
	int admin = test_device(), fd = gopen(), other[16], ok = 0;
	unsigned int i;

	printf("TAP version 13\n1..1\n");
	if (admin >= 0 && attach(fd, GSCHED_ATTACH_MPS) == 0 &&
	    round_trips(fd, "submit to complete, alone") == 0 && decision_ns(fd, "alone") == 0) {
		for (i = 0; i < 16; i++) {
			other[i] = gopen();
			if (attach(other[i], GSCHED_ATTACH_MPS))
				break;
		}
		ok = i == 16 &&
		     round_trips(fd, "submit to complete, beside 16 idle clients") == 0 &&
		     decision_ns(fd, "beside 16 idle clients") == 0;
		while (i--)
			close(other[i]);
	}
	close(fd);
	del_device(admin, dev_uuid);
	printf("%s 1 - submit and complete in a loop\n", ok ? "ok" : "not ok");
	return !ok;
}
