// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams and events: order, waiting, priorities, host functions, threads, memory operations */
#include <pthread.h>
#include <unistd.h>
#include "forms.h"

static CUstream stream_new(unsigned int flags)
{
	CUstream s;

	DO(cuStreamCreate(&s, flags));
	return s;
}

/* One buffer, launches in @n streams in turn; @order: what makes each wait for the one before */
static void in_turn(const char *what, CUstream *streams, unsigned int n,
		    void (*order)(CUstream before, CUstream next))
{
	CUfunction f = form_function("work");
	struct words w = words_new(form_blocks * THREADS);

	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < 12; i++) {
		if (order && i)
			order(streams[(i - 1) % n], streams[i % n]);
		work(f, streams[i % n], &w, ROUNDS, i);
	}
	DO(cuCtxSynchronize());
	words_show(what, &w);
}

static void stream_default(void)
{
	form_begin();
	in_turn("stream-default", (CUstream[]){ NULL }, 1, NULL);
}

static void stream_one(void)
{
	form_begin();
	in_turn("stream-one", (CUstream[]){ stream_new(CU_STREAM_NON_BLOCKING) }, 1, NULL);
}

/* The default stream waits for blocking streams, and they for it: no more is needed */
static void stream_blocking(void)
{
	form_begin();
	in_turn("stream-blocking",
		(CUstream[]){ stream_new(0), NULL, stream_new(0), CU_STREAM_LEGACY }, 4, NULL);
}

static void by_event(CUstream before, CUstream next)
{
	CUevent e;

	DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	DO(cuEventRecord(e, before));
	DO(cuStreamWaitEvent(next, e, 0));
	DO(cuEventDestroy(e));
}

static void event_wait(void)
{
	CUstream s[4];

	form_begin();
	for (int i = 0; i < 4; i++)
		s[i] = stream_new(CU_STREAM_NON_BLOCKING);
	in_turn("event-wait", s, 4, by_event);
}

static void by_synchronize(CUstream before, CUstream next)
{
	DO(cuStreamSynchronize(before));
}

static void stream_synchronize(void)
{
	form_begin();
	in_turn("stream-synchronize",
		(CUstream[]){ stream_new(CU_STREAM_NON_BLOCKING), stream_new(0) }, 2,
		by_synchronize);
}

static void by_query(CUstream before, CUstream next)
{
	CUresult r;

	while ((r = cuStreamQuery(before)) == CUDA_ERROR_NOT_READY)
		;
	DO(r);
}

static void stream_query(void)
{
	form_begin();
	in_turn("stream-query", (CUstream[]){ stream_new(CU_STREAM_NON_BLOCKING), stream_new(0) },
		2, by_query);
}

/* A non-blocking stream does not wait for the default one, and the other way round */
static void stream_non_blocking(void)
{
	CUstream a, b;
	struct words w;
	struct flag flag;
	CUfunction f;

	form_begin();
	a = stream_new(CU_STREAM_NON_BLOCKING);
	b = stream_new(CU_STREAM_NON_BLOCKING);
	w = words_new(form_blocks * THREADS);
	f = form_function("work");
	flag = flag_new();
	DO(cuCtxSynchronize());
	hold(a, &flag);
	for (uint32_t i = 0; i < 4; i++) {
		work(f, b, &w, ROUNDS, 2 * i);
		DO(cuStreamSynchronize(b));
		work(f, NULL, &w, ROUNDS, 2 * i + 1);
		DO(cuStreamSynchronize(NULL));
	}
	IS(NOT_READY, cuStreamQuery(a));
	flag_set(&flag);
	DO(cuStreamSynchronize(a));
	flag_free(&flag);
	words_show("stream-non-blocking", &w);
}

static void stream_priority(void)
{
	int least, greatest, p;
	CUstream s[2];

	form_begin();
	DO(cuCtxGetStreamPriorityRange(&least, &greatest));
	DO(cuStreamCreateWithPriority(&s[0], CU_STREAM_NON_BLOCKING, least));
	DO(cuStreamCreateWithPriority(&s[1], CU_STREAM_NON_BLOCKING, greatest));
	for (int i = 0; i < 2; i++) {
		DO(cuStreamGetPriority(s[i], &p));
		printf("%d: %d\n", i, p);
	}
	in_turn("stream-priority", s, 2, by_event);
}

/* 40 streams, more than slots and queues of the hardware want to be */
static void stream_many(void)
{
	struct words w[40];
	CUstream s[40];
	CUfunction f;

	form_begin();
	f = form_function("work");
	for (int i = 0; i < 40; i++) {
		s[i] = stream_new(CU_STREAM_NON_BLOCKING);
		w[i] = words_new((size_t)FEW * form_scale * THREADS);
	}
	DO(cuCtxSynchronize());
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i < 40; i++)
			work(f, s[i], &w[i], ROUNDS, i + k);
	for (int i = 0; i < 40; i++) {
		DO(cuStreamSynchronize(s[i]));
		words_show("stream-many", &w[i]);
		DO(cuStreamDestroy(s[i]));
	}
}

/* As Megatron has it: all streams share a queue of the hardware */
static void one_connection(void)
{
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	stream_many();
}

/* As a program of an MPS server has it, and under gsched there */
static void two_connections(void)
{
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 1);
	stream_many();
}

static void four_connections(void)
{
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
	stream_many();
}

/* What is in a stream that is destroyed still runs */
static void stream_destroy_busy(void)
{
	struct words w;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 6; i++) {
		s = stream_new(0);
		work(f, s, &w, ROUNDS, 2 * i);
		work(f, s, &w, ROUNDS, 2 * i + 1);
		DO(cuStreamDestroy(s));
		/* a stream destroyed is one that the default stream need not wait for */
		DO(cuCtxSynchronize());
	}
	words_show("stream-destroy-busy", &w);
}

static void event_query(void)
{
	struct flag flag;
	CUstream s;
	CUevent e;

	form_begin();
	s = stream_new(CU_STREAM_NON_BLOCKING);
	flag = flag_new();
	DO(cuEventCreate(&e, 0));
	DO(cuEventQuery(e));
	hold(s, &flag);
	DO(cuEventRecord(e, s));
	IS(NOT_READY, cuEventQuery(e));
	flag_set(&flag);
	DO(cuEventSynchronize(e));
	DO(cuEventQuery(e));
	DO(cuEventDestroy(e));
	flag_free(&flag);
	puts("event-query");
}

static void event_timing(void)
{
	float ab, bc, ac;
	struct words w;
	CUevent e[3];
	CUfunction f;
	CUstream s;

	form_begin();
	s = stream_new(CU_STREAM_NON_BLOCKING);
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < 3; i++) {
		DO(cuEventCreate(&e[i], 0));
		DO(cuEventRecord(e[i], s));
		work(f, s, &w, ROUNDS, i);
		work(f, s, &w, ROUNDS, i);
	}
	DO(cuEventSynchronize(e[2]));
	DO(cuEventElapsedTime(&ab, e[0], e[1]));
	DO(cuEventElapsedTime(&bc, e[1], e[2]));
	DO(cuEventElapsedTime(&ac, e[0], e[2]));
	CHECK(ab > 0 && bc > 0 && ac >= ab && ac >= bc);
	DO(cuStreamSynchronize(s));
	words_show("event-timing", &w);
}

/* Work, then a host function that sees its result, in turn */
struct host {
	volatile uint32_t *word;
	uint32_t saw[8], n;
};

static void on_host(void *user)
{
	struct host *h = user;

	h->saw[h->n++] = *h->word;
	*h->word += 1000;
}

static void on_callback(CUstream s, CUresult status, void *user)
{
	if (!status)
		on_host(user);
}

static void host_calls(const char *what, bool callback)
{
	CUfunction f, step;
	struct host h = { 0 };
	struct words w;
	struct flag flag;
	CUdeviceptr saw;
	uint32_t n = 3, want = 0;
	CUstream s;

	form_begin();
	s = stream_new(CU_STREAM_NON_BLOCKING);
	f = form_function("work");
	step = form_function("step");
	w = words_new(form_blocks * THREADS);
	flag = flag_new();
	h.word = flag.host;
	saw = flag.at + 4;
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < 8; i++) {
		work(f, s, &w, ROUNDS, i);
		LAUNCH(step, 1, 32, s, &flag.at, &saw, &n);
		if (callback)
			DO(cuStreamAddCallback(s, on_callback, &h, 0));
		else
			DO(cuLaunchHostFunc(s, on_host, &h));
	}
	DO(cuStreamSynchronize(s));
	CHECK(h.n == 8);
	for (uint32_t i = 0; i < 8; i++) {
		want = mix(want, n);
		CHECK(h.saw[i] == want);
		want += 1000;
	}
	flag_free(&flag);
	words_show(what, &w);
}

static void host_function(void)
{
	host_calls("host-function", false);
}

static void callback(void)
{
	host_calls("callback", true);
}

struct job {
	CUfunction f;
	CUstream s;
	struct words w, shared;
	uint32_t seed;
	bool per_thread;
};

#define BUMPS 40u

static void *bump_and_work(void *arg)
{
	uint32_t n = ROUNDS * form_scale;
	struct job *j = arg;
	CUfunction bump;

	DO(cuCtxSetCurrent(form_context));
	bump = form_function("bump");
	for (uint32_t i = 0; i < BUMPS; i++) {
		if (j->shared.n)
			LAUNCH(bump, (unsigned int)(j->shared.n / THREADS), THREADS, j->s,
			       &j->shared.at, &n);
		if (i % 8)
			continue;
		if (j->per_thread) {
			DO(cuLaunchKernel_ptsz(j->f, (unsigned int)(j->w.n / THREADS), 1, 1,
					       THREADS, 1, 1, 0, NULL,
					       (void *[]){ &j->w.at, &n, &i }, NULL));
			work_expect(&j->w, n, i);
		} else {
			work(j->f, j->s, &j->w, ROUNDS, i + j->seed);
		}
	}
	DO(cuStreamSynchronize(j->per_thread ? CU_STREAM_PER_THREAD : j->s));
	return NULL;
}

/* @shared: both add to the same words, in one stream: nothing of it may overlap */
static void threads(const char *what, CUstream a, CUstream b, bool shared, bool per_thread)
{
	struct words all = shared ? words_new(form_blocks * THREADS) : (struct words){ 0 };
	struct job j[2];
	pthread_t t[2];

	for (uint32_t i = 0; i < 2; i++)
		j[i] = (struct job){ form_function("work"),
				     i ? b : a,
				     words_new(form_blocks * THREADS),
				     all,
				     i,
				     per_thread };
	DO(cuCtxSynchronize());
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, bump_and_work, &j[i]))
			abort();
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		words_show(what, &j[i].w);
	}
	if (shared) {
		for (size_t i = 0; i < all.n; i += all.stride)
			all.want[i] += 2 * BUMPS * mix((uint32_t)i, ROUNDS * form_scale);
		words_show("shared", &all);
	}
}

static void threads_one_stream(void)
{
	CUstream s;

	form_begin();
	s = stream_new(CU_STREAM_NON_BLOCKING);
	threads("threads-one-stream", s, s, true, false);
}

static void threads_default_stream(void)
{
	form_begin();
	threads("threads-default-stream", NULL, NULL, true, false);
}

static void threads_own_streams(void)
{
	form_begin();
	threads("threads-own-streams", stream_new(CU_STREAM_NON_BLOCKING),
		stream_new(CU_STREAM_NON_BLOCKING), false, false);
}

static void threads_per_thread_stream(void)
{
	form_begin();
	threads("threads-per-thread-stream", NULL, NULL, false, true);
}

/*
 * Blocking streams of two threads and the default stream's work between: all of it on the same
 * words
 */
static void threads_legacy(void)
{
	form_begin();
	threads("threads-legacy", NULL, stream_new(0), true, false);
}

static void stream_per_thread(void)
{
	form_begin();
	in_turn("stream-per-thread", (CUstream[]){ CU_STREAM_PER_THREAD }, 1, NULL);
}

/* Each stream goes on when the other has written its number */
static void by_value(CUstream before, CUstream next)
{
	static CUdeviceptr word;
	static uint32_t number;

	if (!word) {
		DO(cuMemAlloc(&word, 4));
		DO(cuMemsetD32(word, 0, 1));
		DO(cuCtxSynchronize());
	}
	DO(cuStreamWaitValue32(next, word, ++number, CU_STREAM_WAIT_VALUE_GEQ));
	DO(cuStreamWriteValue32(before, word, number, 0));
}

static void stream_value(void)
{
	form_begin();
	in_turn("stream-value",
		(CUstream[]){ stream_new(CU_STREAM_NON_BLOCKING),
			      stream_new(CU_STREAM_NON_BLOCKING) },
		2, by_value);
}

static void stream_batch_value(void)
{
	CUstreamBatchMemOpParams ops[2] = { 0 };
	struct flag flag;
	struct words w;
	CUfunction f;
	CUstream s;

	form_begin();
	s = stream_new(CU_STREAM_NON_BLOCKING);
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	flag = flag_new();
	ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = flag.at;
	ops[0].waitValue.value = 1;
	ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[1].writeValue.address = flag.at + 4;
	ops[1].writeValue.value = 77;
	DO(cuCtxSynchronize());
	work(f, s, &w, ROUNDS, 1);
	DO(cuStreamBatchMemOp(s, 2, ops, 0));
	work(f, s, &w, ROUNDS, 2);
	usleep(5000);
	CHECK(!flag.host[1]);
	IS(NOT_READY, cuStreamQuery(s));
	flag_set(&flag);
	DO(cuStreamSynchronize(s));
	CHECK(flag.host[1] == 77);
	flag_free(&flag);
	words_show("stream-batch-value", &w);
}

const struct form stream_forms[] = {
	{ "stream-default", stream_default },
	{ "stream-one", stream_one },
	{ "stream-blocking", stream_blocking },
	{ "stream-non-blocking", stream_non_blocking },
	{ "stream-per-thread", stream_per_thread },
	{ "stream-synchronize", stream_synchronize },
	{ "stream-query", stream_query },
	{ "stream-priority", stream_priority },
	{ "stream-many", stream_many },
	{ "one-connection", one_connection },
	{ "two-connections", two_connections },
	{ "four-connections", four_connections },
	{ "stream-destroy-busy", stream_destroy_busy },
	{ "stream-value", stream_value },
	{ "stream-batch-value", stream_batch_value },
	{ "event-wait", event_wait },
	{ "event-query", event_query },
	{ "event-timing", event_timing },
	{ "host-function", host_function },
	{ "callback", callback },
	{ "threads-one-stream", threads_one_stream },
	{ "threads-default-stream", threads_default_stream },
	{ "threads-own-streams", threads_own_streams },
	{ "threads-per-thread-stream", threads_per_thread_stream },
	{ "threads-legacy", threads_legacy },
	{ 0 },
};
