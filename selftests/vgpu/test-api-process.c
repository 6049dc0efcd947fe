// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver API of vgpu: several processes on one device, and what becomes of the others when one
 * fails or dies
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test-api.h"

static const char *program;

/*
 * This program again, in a role; says a line once it has done its part, which is read here. stderr
 * goes to @err if given
 */
static pid_t start(const char *role, int *out)
{
	int fd[2];
	pid_t pid;

	fflush(stdout);
	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fd[1], 1);
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		execl(program, "test-api", role, NULL);
		_exit(127);
	}
	close(fd[1]);
	*out = fd[0];
	return pid;
}

static bool read_until(int fd, const char *word, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;

	text[0] = '\0';
	while (!strstr(text, word) && n < size - 1 &&
	       (got = read(fd, text + n, size - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
	}
	return strstr(text, word);
}

/* Fills the device with blocks that never end, and waits to be killed */
static int hog(void)
{
	CUfunction hold;
	CUdeviceptr started;

	if (!prepare() || cuModuleGetFunction(&hold, module, "hold"))
		return 1;
	started = at(0);
	if (run(hold, 1, 512, NULL, (void *[]){ &started }))
		return 1;
	while (!host[0])
		usleep(100);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int wild(void)
{
	CUdeviceptr p;
	bool good;

	if (!prepare() || run(k_wild, 1, 32, NULL, NULL))
		return 1;
	good = cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS &&
	       cuMemAlloc(&p, 4) == CUDA_ERROR_ILLEGAL_ADDRESS &&
	       cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS &&
	       run(k_wild, 1, 32, NULL, NULL) == CUDA_ERROR_ILLEGAL_ADDRESS;
	printf("%s\n", good ? "as it should be" : "something else");
	return 0;
}

static void wait_word(void *word)
{
	while (!*(volatile uint32_t *)word)
		usleep(100);
}

static void count(void *word)
{
	++*(volatile uint32_t *)word;
}

/*
 * A node of a graph faults while a host function of the same launch runs: nothing behind either of
 * them does
 */
static int wild_graph(void)
{
	CUDA_KERNEL_NODE_PARAMS kp = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
				       .blockDimY = 1, .blockDimZ = 1 };
	CUDA_HOST_NODE_PARAMS hp = { wait_word, NULL }, after = { count, NULL };
	CUgraphNode a, b, c, d;
	CUgraphExec exec;
	CUgraph g;
	CUevent e;
	int n, polls;

	if (!prepare())
		return 1;
	kp.func = k_wild;
	hp.userData = (void *)&host[0];
	after.userData = (void *)&host[1];
	if (cuEventCreate(&e, 0) || cuGraphCreate(&g, 0) ||
	    cuGraphAddHostNode(&a, g, NULL, 0, &hp) || cuGraphAddKernelNode(&b, g, NULL, 0, &kp) ||
	    cuGraphAddHostNode(&c, g, (CUgraphNode[]){ a, b }, 2, &after) ||
	    cuGraphAddEventRecordNode(&d, g, &b, 1, e) || cuGraphInstantiate(&exec, g, 0) ||
	    cuGraphLaunch(exec, NULL))
		return 1;
	for (polls = 0; polls < 100000 && cuDeviceGetCount(&n) != CUDA_ERROR_ILLEGAL_ADDRESS;
	     polls++)
		usleep(100);
	host[0] = 1;
	printf("%s\n", cuGraphLaunch(exec, NULL) == CUDA_ERROR_ILLEGAL_ADDRESS &&
	       cuEventSynchronize(e) == CUDA_ERROR_ILLEGAL_ADDRESS && !host[1] ? "as it should be" :
	       "something else");
	return 0;
}

static int write_readonly(void)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)p;
	uint32_t v = 1;

	if (!prepare() || cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_READ_ONLY) ||
	    run(k_set, 1, 1, NULL, (void *[]){ &d, &v }))
		return 1;
	printf("%s\n", cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? "as it should be" :
	       "something else");
	return 0;
}

/* With $VGPU_CHECK */
static int use_freed(void)
{
	CUdeviceptr d, other;
	uint32_t v = 1;

	if (!prepare() || cuMemAlloc(&d, 400) || cuMemFree(d) || cuMemAlloc(&other, 400) ||
	    run(k_set, 1, 1, NULL, (void *[]){ &d, &v }))
		return 1;
	printf("%s\n", cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? "as it should be" :
	       "something else");
	return 0;
}

static int use_beyond(void)
{
	CUdeviceptr d, other, at;
	uint32_t v = 1;

	if (!prepare() || cuMemAlloc(&d, 400) || cuMemAlloc(&other, 400))
		return 1;
	at = d + 396;
	if (run(k_set, 1, 1, NULL, (void *[]){ &at, &v }) || cuCtxSynchronize())
		return 1;
	at = d + 512;
	if (run(k_set, 1, 1, NULL, (void *[]){ &at, &v }))
		return 1;
	printf("%s\n", cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? "as it should be" :
	       "something else");
	return 0;
}

static int race(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry racy(.param .u64 p)\n{\n"
		".reg .b64 %rd1; .reg .b32 %r1; ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x;\n"
		"st.global.u32 [%rd1], %r1; ret;\n}\n";
	CUmodule m;
	CUfunction f;
	CUdeviceptr d;

	if (!prepare() || cuMemAlloc(&d, 400) || cuModuleLoadData(&m, ptx) ||
	    cuModuleGetFunction(&f, m, "racy"))
		return 1;
	if (run(f, 1, 32, NULL, (void *[]){ &d }) || cuCtxSynchronize() ||
	    run(f, 3, 32, NULL, (void *[]){ &d }))
		return 1;
	printf("%s\n", cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED ? "as it should be" :
	       "something else");
	return 0;
}

static int sum(void)
{
	CUdeviceptr d;
	uint32_t v = 5, out[64] = { 0 };

	if (!prepare() || cuMemAlloc(&d, sizeof(out)) || cuMemcpyHtoD(d, out, sizeof(out)))
		return 1;
	for (int i = 0; i < 50; i++)
		if (run(k_add, 1, 64, NULL, (void *[]){ &d, &d, &v }))
			return 1;
	if (cuMemcpyDtoH(out, d, sizeof(out)))
		return 1;
	printf("%s\n", out[0] == 250 && out[63] == 250 ? "as it should be" : "something else");
	return 0;
}

static int leave_running(void)
{
	if (!prepare() || spin(NULL, 0, 1, 512))
		return 1;
	printf("as it should be\n");
	return 0;	/* with a kernel that never ends: exit has to end all the same */
}

int process_child(const char *role)
{
	if (!strcmp(role, "hog"))
		return hog();
	if (!strcmp(role, "wild"))
		return wild();
	if (!strcmp(role, "wild-graph"))
		return wild_graph();
	if (!strcmp(role, "freed"))
		return use_freed();
	if (!strcmp(role, "beyond"))
		return use_beyond();
	if (!strcmp(role, "race"))
		return race();
	if (!strcmp(role, "read-only"))
		return write_readonly();
	if (!strcmp(role, "sum"))
		return sum();
	if (!strcmp(role, "leave"))
		return leave_running();
	return 2;
}

static bool child_says(const char *role, const char *words, char *text, size_t size)
{
	int fd = -1, status;
	pid_t pid = start(role, &fd);
	bool good = pid > 0 && read_until(fd, words, text, size);

	close(fd);
	waitpid(pid, &status, 0);
	if (!good)
		printf("# %s\n", text);
	return good && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool side_by_side(void)
{
	char text[512];

	/* our kernel stays resident while the other process's come and go */
	memset((void *)host, 0, 4096);
	OK(spin(NULL, 0, 1, 32));
	CHECK(child_says("sum", "as it should be", text, sizeof(text)));
	IS(NOT_READY, cuStreamQuery(NULL));
	host[0] = 1;
	OK(cuCtxSynchronize());
	return true;
}

static bool killed(void)
{
	char text[512];
	int fd;
	pid_t pid;

	memset((void *)host, 0, 4096);
	pid = start("hog", &fd);
	CHECK(pid > 0 && read_until(fd, "ready", text, sizeof(text)));
	OK(stamp(NULL, 1, 2, 512));
	IS(NOT_READY, cuStreamQuery(NULL));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	OK(cuCtxSynchronize());
	CHECK(host[1] == 1);
	return true;
}

static bool faulting(void)
{
	char text[1024];

	CHECK(child_says("wild", "as it should be", text, sizeof(text)));
	CHECK(strstr(text, "wild") && strstr(text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
	CHECK(child_says("wild-graph", "as it should be", text, sizeof(text)));
	memset((void *)host, 0, 4096);
	OK(stamp(NULL, 1, 2, 512));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 1);
	return true;
}

/* What $VGPU_CHECK=all finds comes as an error, and is told with its place */
static bool checked(void)
{
	char text[1024];
	bool good;

	setenv("VGPU_CHECK", "all", 1);
	good = child_says("freed", "as it should be", text, sizeof(text)) &&
	       strstr(text, "which were freed");
	good = good && child_says("beyond", "as it should be", text, sizeof(text)) &&
	       strstr(text, "behind the 400 bytes at 0x");
	good = good && child_says("race", "as it should be", text, sizeof(text)) &&
	       strstr(text, "data race on global") &&
	       strstr(text, "kernel racy") && strstr(text, "line 7") &&
	       strstr(text, "CUDA_ERROR_LAUNCH_FAILED");
	setenv("VGPU_CHECK", "al", 1);
	good = good && !child_says("sum", "as it should be", text, sizeof(text)) &&
	       strstr(text, "$VGPU_CHECK is \"al\"");
	unsetenv("VGPU_CHECK");
	/* the same sums, whatever the order */
	setenv("VGPU_SEED", "7", 1);
	setenv("VGPU_SHUFFLE", "1", 1);
	good = good && child_says("sum", "as it should be", text, sizeof(text));
	unsetenv("VGPU_SEED");
	unsetenv("VGPU_SHUFFLE");
	if (!good)
		printf("# %s\n", text);
	return good;
}

static bool read_only(void)
{
	char text[1024];

	return child_says("read-only", "as it should be", text, sizeof(text));
}

static bool leaving(void)
{
	char text[512];

	CHECK(child_says("leave", "as it should be", text, sizeof(text)));
	memset((void *)host, 0, 4096);
	OK(stamp(NULL, 1, 2, 512));
	OK(cuCtxSynchronize());
	return true;
}

/*
 * Another device, without MPS: two processes that each fill it both go on, and neither has to end
 * for it
 */
static bool time_slices(void)
{
	char name[64], text[512];
	int fd;
	pid_t pid;
	bool good;

	snprintf(name, sizeof(name), "vgpu-test-slices-%d", (int)getpid());
	setenv("VGPU_NAME", name, 1);
	setenv("VGPU_MPS", "0", 1);
	setenv("VGPU_TIMESLICE_US", "1000", 1);
	pid = start("hog", &fd);
	CHECK(pid > 0 && read_until(fd, "ready", text, sizeof(text)));
	good = child_says("sum", "as it should be", text, sizeof(text));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	snprintf(name, sizeof(name), "/dev/shm/vgpu-test-slices-%d", (int)getpid());
	unlink(name);
	return good;
}

void process_tests(const char *self)
{
	program = self;
	ok(side_by_side(), "two processes share the device");
	ok(killed(), "a killed process's places are given back");
	ok(faulting(), "a kernel's fault stays with its process, is told, and sticks");
	ok(checked(), "what $VGPU_CHECK finds is told, and the launch fails; $VGPU_SEED and "
	       "$VGPU_SHUFFLE change no result");
	ok(read_only(), "a kernel cannot write to memory registered read-only");
	ok(leaving(), "a process can exit while its kernel runs");
	ok(time_slices(), "without MPS a process gets its turn while another fills the device");
}
