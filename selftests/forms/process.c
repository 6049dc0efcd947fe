// SPDX-License-Identifier: LGPL-2.1-or-later
/* Processes: fork, exec, threads and signals beside CUDA, and all the ways to end */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "forms.h"

#define TURNS 4u

extern char **environ;

static struct words words;

/* Work in flight, on `words` */
static void begin_busy(uint32_t n)
{
	form_begin();
	words = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < TURNS; i++)
		work(form_function("work"), NULL, &words, n, i);
}

static void wait_for(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	printf("child: %d\n", status);
}

static void no_cuda(void)
{
	puts("no-cuda");
}

static void init_only(void)
{
	int n;

	DO(cuInit(0));
	DO(cuDeviceGetCount(&n));
	puts("init-only");
}

static void context_only(void)
{
	DO(cuInit(0));
	DO(cuDeviceGet(&form_device, 0));
	DO(cuCtxCreate(&form_context, NULL, 0, form_device));
	puts("context-only");
}

/* Parent and child each for themselves */
static void fork_before(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		begin_busy(ROUNDS);
		words_show("fork-before, child", &words);
		exit(0);
	}
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	wait_for(pid);
	words_show("fork-before, parent", &words);
}

/* Children that use no CUDA come and go while work is in flight; @way: how they end */
static void fork_after(const char *what, void (*way)(int))
{
	pid_t pid;

	begin_busy(ROUNDS);
	fflush(stdout);
	for (uint32_t i = 0; i < TURNS; i++) {
		pid = fork();
		if (!pid)
			way(3);
		work(form_function("work"), NULL, &words, ROUNDS, i);
		wait_for(pid);
		fflush(stdout);
	}
	words_show(what, &words);
}

static void fork_after_end(void)
{
	fork_after("fork-after", _exit);
}

static void fork_after_exit(void)
{
	fork_after("fork-after-exit", exit);
}

static void true_program(int status)
{
	execl("/bin/sh", "sh", "-c", "exit 5", NULL);
	_exit(127);
}

static void fork_exec(void)
{
	fork_after("fork-exec", true_program);
}

/* What it starts uses CUDA itself, and inherits its environment */
static void spawn_cuda(void)
{
	char *argv[] = { "drv", "plain", NULL };
	pid_t pid;

	begin_busy(ROUNDS);
	fflush(stdout);
	CHECK(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ));
	for (uint32_t i = 0; i < TURNS; i++)
		work(form_function("work"), NULL, &words, ROUNDS, i);
	DO(cuCtxSynchronize());
	wait_for(pid);
	words_show("spawn-cuda", &words);
}

/* The program becomes another one while its work is in flight */
static void exec_busy(void)
{
	begin_busy(20 * ROUNDS);
	fflush(stdout);
	execl("/proc/self/exe", "drv", "plain", NULL);
	_exit(127);
}

static void exit_busy(void)
{
	begin_busy(20 * ROUNDS);
	puts("exit-busy");
}

static void exit_idle(void)
{
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	puts("exit-idle");
}

static void exit_at_once(void)
{
	begin_busy(20 * ROUNDS);
	puts("exit-at-once");
	fflush(stdout);
	_exit(4);
}

static void exit_killed(void)
{
	begin_busy(20 * ROUNDS);
	puts("exit-killed");
	fflush(stdout);
	raise(SIGKILL);
}

static void exit_aborted(void)
{
	struct rlimit none = { 0, 0 };

	begin_busy(20 * ROUNDS);
	CHECK(!setrlimit(RLIMIT_CORE, &none));
	puts("exit-aborted");
	fflush(stdout);
	abort();
}

static void at_exit(void)
{
	DO(cuCtxSynchronize());
	words_show("at exit", &words);
}

/* A handler that waits for what is in flight */
static void exit_synchronize(void)
{
	begin_busy(20 * ROUNDS);
	CHECK(!atexit(at_exit));
}

/* A handler that launches more, and frees what there is */
static void at_exit_launch(void)
{
	for (uint32_t i = 0; i < TURNS; i++)
		work(form_function("work"), NULL, &words, ROUNDS, i);
	words_show("at exit", &words);
	DO(cuModuleUnload(form_module));
	DO(cuDevicePrimaryCtxRelease(form_device));
}

static void exit_launch(void)
{
	begin_busy(ROUNDS);
	CHECK(!atexit(at_exit_launch));
}

static CUcontext last_context;

/* Runs when the libraries end, too; what a driver that has ended says then is its own affair */
__attribute__((destructor)) static void destructor(void)
{
	if (last_context) {
		cuCtxSynchronize();
		cuCtxDestroy(last_context);
	}
}

static void exit_destructor(void)
{
	form_begin();
	DO(cuCtxCreate(&last_context, NULL, 0, form_device));
	DO(cuModuleLoadData(&form_module, form_image));
	words = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < TURNS; i++)
		work(form_function("work"), NULL, &words, 10 * ROUNDS, i);
	puts("exit-destructor");
}

static void *launch_for_ever(void *arg)
{
	uint32_t n = ROUNDS;

	if (cuCtxSetCurrent(form_context))
		return NULL;
	for (uint32_t i = 0;; i++)
		if (cuLaunchKernel(arg, form_blocks, 1, 1, THREADS, 1, 1, 0, CU_STREAM_PER_THREAD,
				   (void *[]){ &words.at, &n, &i }, NULL))
			return NULL;
}

/* main() returns while another thread goes on launching */
static void exit_launching(void)
{
	pthread_t t;

	begin_busy(ROUNDS);
	if (pthread_create(&t, NULL, launch_for_ever, form_function("work")))
		abort();
	usleep(50000);
	puts("exit-launching");
}

static void *exit_here(void *arg)
{
	usleep(30000);
	puts("exit-thread");
	exit(6);
}

/* Another thread than main() ends the process, while main() waits for the device */
static void exit_thread(void)
{
	struct flag flag;
	pthread_t t;

	form_begin();
	flag = flag_new();
	hold(NULL, &flag);
	if (pthread_create(&t, NULL, exit_here, NULL))
		abort();
	/* exit() does not return, and neither does this */
	cuCtxSynchronize();
	pause();
}

static void *last_thread(void *arg)
{
	DO(cuCtxSetCurrent(form_context));
	usleep(20000);
	for (uint32_t i = 0; i < TURNS; i++)
		work(form_function("work"), NULL, &words, ROUNDS, i);
	words_show("exit-main-thread", &words);
	exit(0); /* the driver's own threads would keep the process */
}

/* main()'s thread is gone before the others */
static void exit_main_thread(void)
{
	pthread_t t;

	begin_busy(ROUNDS);
	if (pthread_create(&t, NULL, last_thread, NULL))
		abort();
	pthread_detach(t);
	pthread_exit(NULL);
}

/* Threads that come, use CUDA and go */
static void *short_thread(void *arg)
{
	struct words *w = arg;

	DO(cuCtxSetCurrent(form_context));
	work(form_function("work"), CU_STREAM_PER_THREAD, w, ROUNDS, 1);
	DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return NULL;
}

static void threads_short(void)
{
	pthread_t t[4];
	struct words w[4];

	form_begin();
	for (int i = 0; i < 4; i++)
		w[i] = words_new(form_blocks * THREADS);
	DO(cuCtxSynchronize());
	for (uint32_t k = 0; k < TURNS; k++) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&t[i], NULL, short_thread, &w[i]))
				abort();
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	for (int i = 0; i < 4; i++)
		words_show("threads-short", &w[i]);
}

static void on_alarm(int sig)
{
}

/* Signals all the time: system calls that wait end early */
static void signals(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct sigaction sa = { .sa_handler = on_alarm };

	CHECK(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	begin_busy(ROUNDS);
	for (uint32_t i = 0; i < 10; i++) {
		work(form_function("work"), NULL, &words, ROUNDS, i);
		DO(cuCtxSynchronize());
	}
	words_show("signals", &words);
}

/* Descriptor 0 is free when CUDA begins: whoever opens one gets it */
static void closed_input(void)
{
	close(0);
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	words_show("closed-input", &words);
}

#define PIPES	40

static int pipes[PIPES][2];

/*
 * As a program does that becomes a daemon: descriptors that others have opened go, and its own get
 * their numbers.
 */
static void close_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (int i = 0; i < PIPES; i++)
		CHECK(!pipe2(pipes[i], O_NONBLOCK) && write(pipes[i][1], &i, sizeof(i)) == sizeof(i));
}

/* Nobody has read, written or closed them */
static void check_pipes(void)
{
	for (int i = 0; i < PIPES; i++) {
		char rest[16];
		int n = -1;

		CHECK(read(pipes[i][0], &n, sizeof(n)) == sizeof(n) && n == i);
		CHECK(read(pipes[i][0], rest, sizeof(rest)) < 0 && errno == EAGAIN);
	}
	puts("all pipes as they were");
}

static void closed_descriptors(void)
{
	if (form_scale > 1) {
		puts("a GPU's driver reads from what has the numbers of its descriptors");
		exit(FORM_SKIP);
	}
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	words_show("closed-descriptors", &words);
	close_descriptors();
	sleep(2);
	check_pipes();
}

static void closed_descriptors_work(void)
{
	if (form_scale > 1) {
		puts("a GPU's driver needs its descriptors");
		exit(FORM_SKIP);
	}
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	close_descriptors();
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < TURNS; k++)
			work(form_function("work"), NULL, &words, ROUNDS, k + i);
		DO(cuCtxSynchronize());
		words_check(&words);
		usleep(50000);
	}
	words_show("closed-descriptors-work", &words);
	check_pipes();
}

/* Descriptors go while tasks run, or just after */
static void closed_descriptors_busy(void)
{
	if (form_scale > 1) {
		puts("a GPU's driver needs its descriptors");
		exit(FORM_SKIP);
	}
	begin_busy(ROUNDS);
	close_descriptors();
	for (uint32_t k = 0; k < TURNS; k++)
		work(form_function("work"), NULL, &words, ROUNDS, k);
	DO(cuCtxSynchronize());
	words_show("closed-descriptors-busy", &words);
	check_pipes();
}

/* The linker knows it as it was when the program began */
static void library_path(void)
{
	CHECK(!setenv("LD_LIBRARY_PATH", "/nowhere", 1));
	begin_busy(ROUNDS);
	DO(cuCtxSynchronize());
	words_show("library-path", &words);
}

static void *return_at_once(void *arg)
{
	return arg;
}

/* Threads with little stack: some that use CUDA, and some with the least that there was */
static void small_stacks(void)
{
	struct words w = { 0 };
	pthread_attr_t attr;
	pthread_t t;

	form_begin();
	w = words_new(form_blocks * THREADS);
	DO(cuCtxSynchronize());
	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 64 << 10));
	for (uint32_t k = 0; k < TURNS; k++)
		CHECK(!pthread_create(&t, &attr, short_thread, &w) && !pthread_join(t, NULL));
	CHECK(!pthread_attr_setstacksize(&attr, 16384));
	CHECK(!pthread_create(&t, &attr, return_at_once, NULL) && !pthread_join(t, NULL));
	words_show("small-stacks", &w);
}

const struct form process_forms[] = {
	{ "no-cuda", no_cuda },
	{ "init-only", init_only },
	{ "context-only", context_only },
	{ "fork-before", fork_before },
	{ "fork-after", fork_after_end },
	{ "fork-after-exit", fork_after_exit },
	{ "fork-exec", fork_exec },
	{ "spawn-cuda", spawn_cuda },
	{ "exec-busy", exec_busy },
	{ "exit-busy", exit_busy },
	{ "exit-idle", exit_idle },
	{ "exit-at-once", exit_at_once },
	{ "exit-killed", exit_killed },
	{ "exit-aborted", exit_aborted },
	{ "exit-synchronize", exit_synchronize },
	{ "exit-launch", exit_launch },
	{ "exit-destructor", exit_destructor },
	{ "exit-launching", exit_launching },
	{ "exit-thread", exit_thread },
	{ "exit-main-thread", exit_main_thread },
	{ "threads-short", threads_short },
	{ "signals", signals },
	{ "closed-input", closed_input },
	{ "closed-descriptors", closed_descriptors },
	{ "closed-descriptors-work", closed_descriptors_work },
	{ "closed-descriptors-busy", closed_descriptors_busy },
	{ "library-path", library_path },
	{ "small-stacks", small_stacks },
	{ 0 },
};
