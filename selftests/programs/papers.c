/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One kernel of a PTX file, launched when told: for selftests/bench/papers.
 *
 *	papers-drv FILE KERNEL X,Y,Z PARAMETER...
 *
 * X,Y,Z is the size of a block. Parameters of the kernel, in its order:
 *
 *	float=N   device buffer of N words, f32, word k holds (k mod 97) / 4
 *	zero=N    device buffer of N words of 0
 *	index=N%M device buffer of N words, pseudo-random below M
 *	row=N/M   device buffer of N words: where rows of M words on average begin
 *	u32=V f32=V
 *
 * Then a line of JSON on standard output has the number of SMs and of blocks that fit one, and
 * commands come on standard input, a line each; the answer to each is a line of JSON. Times are
 * CLOCK_MONOTONIC in ns. HIGH is 1 for a stream of the highest priority, else 0.
 *
 *	at TIME HIGH GRIDX GRIDY GRIDZ
 *		One launch at TIME, and the wait for it: {"begin", "end"}.
 *	loop TIME UNTIL PERIOD HIGH GRIDX GRIDY GRIDZ
 *		Launches from TIME on. PERIOD 0: two are in flight until UNTIL. Otherwise one each
 *		PERIOD ns or, where it took longer, when it is done: {"ends": [...], "took": [...]},
 *		ends since TIME and, with a period, the time of each launch.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "selftests/programs/drv.h"

#define PARAMETERS_MAX	16
#define LOOP_MAX	200000
#define SPIN_NS		300000	/* before the time of a launch: a sleep may end that late */

struct size {
	unsigned int x, y, z;
};

static CUfunction kernel;
static CUstream streams[2];	/* by HIGH; the second one is made when it is first asked for */
static struct size block;
static void *params[PARAMETERS_MAX];
static CUdeviceptr buffers[PARAMETERS_MAX];
static union { uint32_t u; float f; } values[PARAMETERS_MAX];
static uint64_t ends[LOOP_MAX], took[LOOP_MAX];

static void fail(const char *what)
{
	fprintf(stderr, "papers-drv: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void wait_until(uint64_t at)
{
	struct timespec ts;
	uint64_t rest;

	if (at > now_ns() + SPIN_NS) {
		rest = at - SPIN_NS;
		ts.tv_sec = (time_t)(rest / 1000000000);
		ts.tv_nsec = (long)(rest % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	while (now_ns() < at)
		;
}

static void fill(uint32_t *host, uint32_t words, const char *kind, uint32_t m)
{
	bool index = !strcmp(kind, "index"), row = !strcmp(kind, "row");
	union { uint32_t u; float f; } v;
	uint32_t k, random;

	for (k = 0; k < words; k++) {
		random = (k * 2654435761U >> 8) % m;
		v.f = (float)(k % 97) / 4;
		host[k] = index ? random : row ? k * m + random : v.u;
	}
}

static CUdeviceptr buffer(const char *kind, uint32_t words, uint32_t m)
{
	CUdeviceptr ptr;
	uint32_t *host;

	DO(cuMemAlloc(&ptr, (size_t)words * 4));
	if (!strcmp(kind, "zero")) {
		DO(cuMemsetD8(ptr, 0, (size_t)words * 4));
		return ptr;
	}
	host = malloc((size_t)words * 4);
	if (!host)
		abort();
	fill(host, words, kind, m);
	DO(cuMemcpyHtoD(ptr, host, (size_t)words * 4));
	free(host);
	return ptr;
}

static void parameter(unsigned int i, char *text)
{
	char *value = strchr(text, '='), *more;
	unsigned long words, m = 1;

	if (!value || i >= PARAMETERS_MAX)
		fail("bad parameters");
	*value++ = '\0';
	params[i] = &values[i];
	if (!strcmp(text, "u32")) {
		values[i].u = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(text, "f32")) {
		values[i].f = strtof(value, NULL);
	} else if (!strcmp(text, "float") || !strcmp(text, "zero") || !strcmp(text, "index") ||
		   !strcmp(text, "row")) {
		words = strtoul(value, &more, 10);
		if (*more)
			m = strtoul(more + 1, NULL, 10);
		if (!words || words > UINT32_MAX || !m || m > UINT32_MAX)
			fail("a buffer of that size is not possible");
		buffers[i] = buffer(text, (uint32_t)words, (uint32_t)m);
		params[i] = &buffers[i];
	} else {
		fail("unknown kind of parameter");
	}
}

static CUstream stream(unsigned int high)
{
	int least, greatest;

	if (!streams[high]) {
		DO(cuCtxGetStreamPriorityRange(&least, &greatest));
		if (high)
			DO(cuStreamCreateWithPriority(&streams[1],
						      CU_STREAM_NON_BLOCKING, greatest));
		else
			DO(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
	}
	return streams[high];
}

static void launch(CUstream s, const struct size *grid)
{
	DO(cuLaunchKernel(kernel, grid->x, grid->y, grid->z, block.x, block.y, block.z,
			  0, s, params, NULL));
}

static void at(uint64_t time, unsigned int high, const struct size *grid)
{
	CUstream s = stream(high);
	uint64_t begin;

	wait_until(time);
	begin = now_ns();
	launch(s, grid);
	DO(cuStreamSynchronize(s));
	printf("{\"begin\":%lu,\"end\":%lu}\n", begin, now_ns());
}

/* Two launches in flight; how many */
static unsigned int busy(uint64_t time, uint64_t until, CUstream s, const struct size *grid)
{
	static CUevent done[2];
	unsigned int i, n = 0;

	for (i = 0; i < 2; i++)
		if (!done[i])
			DO(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	for (i = 0; i < 2; i++) {
		launch(s, grid);
		DO(cuEventRecord(done[i], s));
	}
	while (n < LOOP_MAX && now_ns() < until) {
		DO(cuEventSynchronize(done[n % 2]));
		ends[n] = now_ns() - time;
		launch(s, grid);
		DO(cuEventRecord(done[n++ % 2], s));
	}
	DO(cuStreamSynchronize(s));
	return n;
}

static unsigned int periodic(uint64_t time, uint64_t until, uint64_t period, CUstream s,
			     const struct size *grid)
{
	uint64_t next = time, begin;
	unsigned int n = 0;

	while (n < LOOP_MAX && next < until) {
		wait_until(next);
		begin = now_ns();
		launch(s, grid);
		DO(cuStreamSynchronize(s));
		ends[n] = now_ns() - time;
		took[n++] = now_ns() - begin;
		while (next <= now_ns())
			next += period;
	}
	return n;
}

static void print_list(const char *name, const uint64_t *list, unsigned int n)
{
	unsigned int i;

	printf("\"%s\":[", name);
	for (i = 0; i < n; i++)
		printf("%s%lu", i ? "," : "", list[i]);
	printf("]");
}

static void loop(uint64_t time, uint64_t until, uint64_t period, unsigned int high,
		 const struct size *grid)
{
	CUstream s = stream(high);
	unsigned int n;

	wait_until(time);
	n = period ? periodic(time, until, period, s, grid) : busy(time, until, s, grid);
	printf("{");
	print_list("ends", ends, n);
	printf(",");
	print_list("took", took, period ? n : 0);
	printf("}\n");
}

static void command(const char *line)
{
	unsigned long time, until, period;
	unsigned int high;
	struct size g;

	if (sscanf(line, "at %lu %u %u %u %u", &time, &high, &g.x, &g.y, &g.z) == 5 && high < 2)
		at(time, high, &g);
	else if (sscanf(line, "loop %lu %lu %lu %u %u %u %u", &time, &until, &period,
			&high, &g.x, &g.y, &g.z) == 7 && high < 2)
		loop(time, until, period, high, &g);
	else
		fail("unknown command");
}

int main(int argc, char **argv)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	char line[256], *ptx;
	int i, sms, per_sm;

	if (argc < 5 || sscanf(argv[3], "%u,%u,%u", &block.x, &block.y, &block.z) != 3)
		fail("usage: papers-drv FILE KERNEL X,Y,Z PARAMETER...");
	ptx = read_text(argv[1]);
	DO(cuInit(0));
	DO(cuDeviceGet(&device, 0));
	DO(cuDevicePrimaryCtxRetain(&context, device));
	DO(cuCtxSetCurrent(context));
	DO(cuModuleLoadData(&module, ptx));
	free(ptx);
	DO(cuModuleGetFunction(&kernel, module, argv[2]));
	for (i = 4; i < argc; i++)
		parameter((unsigned int)i - 4, argv[i]);
	DO(cuCtxSynchronize());
	stream(0);
	DO(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	DO(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel,
						       (int)(block.x * block.y * block.z), 0));
	printf("{\"sms\":%d,\"per_sm\":%d}\n", sms, per_sm);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		command(line);
		fflush(stdout);
	}
	return 0;
}
