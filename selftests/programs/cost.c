/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What driver calls cost the program that makes them: times each call of one form and prints one
 * JSON line with percentiles in ns.
 *
 *	cost-drv FORM [CALLS]
 *
 * launch     one kernel, one shape             sync    a launch and the wait for it
 * shapes     200 shapes in turn                graph   a CUDA graph of 10 kernels
 * default the default stream start nothing but a context: for who times the process
 * ex cuLaunchKernelEx rest memory of the process and the device, and how often threads wake
 * threads two threads, a stream each in two seconds in which the program does nothing
 * code       launch, of a kernel of which there is machine code only
 *
 * Calls come in bursts with a wait between them, so none stands behind a full queue. With
 * $BENCH_SWITCH (selftests/bench/bypass.c) two bursts of four bypass gsched, and the line has the
 * percentiles and the mean of each burst of both kinds.
 */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "selftests/bench/bypass.h"
#include "selftests/programs/drv.h"

#define BURST	100
#define SHAPES	200

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nothing(.param .u64 p, .param .u32 n)\n{\n\tret;\n}\n";

enum form { LAUNCH, SHAPES_, DEFAULT, EX, THREADS, SYNC, GRAPH, START, REST, CODE, FORMS };
static const char *const names[] = { "launch", "shapes", "default", "ex", "threads", "sync",
				     "graph", "start", "rest", "code" };

static CUcontext context;
static CUfunction kernel;
static CUgraphExec graph;
static unsigned long calls = 20000;
static enum form form;
static volatile struct bench_switch *bench_switch;	/* NULL: none */

static unsigned long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long)ts.tv_sec * 1000000000 + (unsigned long)ts.tv_nsec;
}

static void one_call(CUstream stream, unsigned long i)
{
	unsigned long long p = 0;
	unsigned int n = 0;
	void *params[] = { &p, &n };
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
				  .blockDimY = 1, .blockDimZ = 1, .hStream = stream };

	switch (form) {
	case EX:
		DO(cuLaunchKernelEx(&config, kernel, params, NULL));
		break;
	case GRAPH:
		DO(cuGraphLaunch(graph, stream));
		break;
	case SHAPES_:
		DO(cuLaunchKernel(kernel, 1 + i % SHAPES, 1, 1, 32, 1, 1, 0, stream, params, NULL));
		break;
	default:
		DO(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	}
	if (form == SYNC)
		DO(cuStreamSynchronize(stream));
}

/* Whether call @i bypasses gsched: in an order in which both kinds have the same mean place */
static bool is_bypassed(unsigned long i)
{
	return bench_switch && ((i / BURST + 1) & 2);
}

static void open_switch(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED :
			    mmap(NULL, sizeof(*bench_switch), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	bench_switch = at;
	if (!bench_switch->present) {
		fprintf(stderr, "BENCH_SWITCH: the interposer here is not bench/bypass's\n");
		exit(2);
	}
}

/* Times of @calls calls, ns, malloc'd */
static unsigned long *measure(CUstream stream)
{
	unsigned long *took = calloc(calls, sizeof(*took)), i, begin, end;

	if (!took)
		abort();
	for (i = 0; i < BURST; i++)
		one_call(stream, i);
	DO(cuStreamSynchronize(stream));
	for (i = 0; i < calls; i++) {
		if (bench_switch && !(i % BURST))
			bench_switch->bypass = is_bypassed(i);
		begin = now_ns();
		one_call(stream, i);
		end = now_ns();
		took[i] = end - begin;
		if (i % BURST == BURST - 1)
			DO(cuStreamSynchronize(stream));
	}
	DO(cuStreamSynchronize(stream));
	return took;
}

static void *thread(void *unused)
{
	CUstream stream;

	DO(cuCtxSetCurrent(context));
	DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return measure(stream);
}

static int compare(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

static void print_percentiles(unsigned long *took, unsigned long n)
{
	qsort(took, n, sizeof(*took), compare);
	printf("\"calls\":%lu,\"p50_ns\":%lu,\"p90_ns\":%lu,\"p99_ns\":%lu", n, took[n / 2],
	       took[n * 9 / 10], took[n * 99 / 100]);
}

/* Of the calls that do or do not bypass gsched, as a member of a JSON object */
static void print_kind(const char *name, const unsigned long *took, bool bypassed)
{
	unsigned long *of = calloc(calls, sizeof(*of)), i, n = 0, sum = 0;

	if (!of)
		abort();
	printf(",\"%s\":{\"bursts_ns\":[", name);
	for (i = 0; i < calls; i++) {
		if (is_bypassed(i) != bypassed)
			continue;
		of[n++] = took[i];
		sum += took[i];
		if (i % BURST < BURST - 1)
			continue;
		printf("%s%lu", n == BURST ? "" : ",", sum / BURST);
		sum = 0;
	}
	printf("],");
	print_percentiles(of, n);
	printf("}");
	free(of);
}

/* As if it had come without its PTX: in the header is a byte that nobody reads */
static CUmodule load_code(void)
{
	CUlinkState link;
	CUmodule module;
	size_t size;
	char *copy;
	void *code;

	DO(cuLinkCreate(0, NULL, NULL, &link));
	DO(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)ptx, sizeof(ptx), "nothing",
			 0, NULL, NULL));
	DO(cuLinkComplete(link, &code, &size));
	copy = malloc(size);
	if (!copy)
		abort();
	memcpy(copy, code, size);
	copy[EI_NIDENT - 1] = 1;
	DO(cuLinkDestroy(link));
	DO(cuModuleLoadData(&module, copy));
	free(copy);
	return module;
}

static void make_graph(CUstream stream)
{
	CUgraph captured;
	unsigned int i;

	form = LAUNCH;
	DO(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (i = 0; i < 10; i++)
		one_call(stream, i);
	DO(cuStreamEndCapture(stream, &captured));
	DO(cuGraphInstantiateWithFlags(&graph, captured, 0));
	DO(cuGraphDestroy(captured));
	form = GRAPH;
}

/* The number behind @key in a file of "key: number" lines */
static unsigned long number_in(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	unsigned long v = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			v = strtoul(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return v;
}

/* How often threads of the process, but this one, have slept so far */
static unsigned long sleeps(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned long n = 0;
	char path[300];

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		n += number_in(path, "voluntary_ctxt_switches:");
	}
	if (dir)
		closedir(dir);
	return n;
}

static void rest(CUstream stream)
{
	unsigned long before;
	size_t left, all;

	one_call(stream, 0);
	DO(cuStreamSynchronize(stream));
	DO(cuMemGetInfo_v2(&left, &all));
	sleep(1);	/* what a launch wakes lies down again */
	before = sleeps();
	sleep(2);
	printf("{\"form\":\"rest\",\"rss_kib\":%lu,\"device_kib\":%zu,\"wakes\":%lu}\n",
	       number_in("/proc/self/status", "VmRSS:"), (all - left) / 1024, sleeps() - before);
}

int main(int argc, char **argv)
{
	const char *path = getenv("BENCH_SWITCH");
	unsigned long *took, n;
	CUstream stream = NULL;
	CUmodule module;
	CUdevice device;
	pthread_t other = 0;
	void *result = NULL;

	for (form = 0; argc > 1 && form < FORMS && strcmp(argv[1], names[form]); form++)
		;
	if (argc < 2 || argc > 3 || form == FORMS ||
	    (argc == 3 && !(calls = strtoul(argv[2], NULL, 10)))) {
		fprintf(stderr, "usage: cost-drv "
			"launch|shapes|default|ex|threads|sync|graph|start|rest|code [CALLS]\n");
		return 2;
	}
	if (path)
		open_switch(path);
	if (bench_switch && (form == THREADS || calls % (4 * BURST))) {
		fprintf(stderr, "cost-drv: BENCH_SWITCH is for one thread and multiples of %d calls\n",
			4 * BURST);
		return 2;
	}
	DO(cuInit(0));
	DO(cuDeviceGet(&device, 0));
	DO(cuDevicePrimaryCtxRetain(&context, device));
	DO(cuCtxSetCurrent(context));
	if (form != START) {
		if (form == CODE)
			module = load_code();
		else
			DO(cuModuleLoadData(&module, ptx));
		DO(cuModuleGetFunction(&kernel, module, "nothing"));
		if (form != DEFAULT)
			DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	}
	if (form == START) {
		printf("{\"form\":\"start\"}\n");
	} else if (form == REST) {
		rest(stream);
	} else {
		if (form == GRAPH)
			make_graph(stream);
		if (form == THREADS && pthread_create(&other, NULL, thread, NULL))
			abort();
		took = measure(stream);
		n = calls;
		if (form == THREADS) {
			pthread_join(other, &result);
			took = realloc(took, 2 * calls * sizeof(*took));
			if (!took)
				abort();
			memcpy(took + calls, result, calls * sizeof(*took));
			free(result);
			n = 2 * calls;
		}
		printf("{\"form\":\"%s\",", names[form]);
		if (bench_switch) {
			printf("\"burst\":%d", BURST);
			print_kind("gsched", took, false);
			print_kind("bypassed", took, true);
		} else {
			print_percentiles(took, n);
		}
		printf("}\n");
		free(took);
	}
	DO(cuDevicePrimaryCtxRelease(device));
	return 0;
}
