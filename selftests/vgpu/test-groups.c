// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Channel groups through the control calls, with several processes. This program is libcuda's user
 * and, as it defines ioctl(), what a preloaded library is to libcuda's control calls: it sees each
 * and makes its own with the same handles. libcuda is loaded as the interposer loads it
 * (RTLD_LOCAL), libvgpu-rm.so is preloaded.
 *
 * The processes of a test are this program in the role "client", one command a line on standard
 * input, one answer a line.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"
#include "rm.h"
#include "selftests/tap.h"

#define DEFAULT_US	20000u
#define ANSWER_MS	60000	/* longer than anything takes, also with sanitizers */

/* count: *counter counts until *stop. work: n rounds */
static const char kernels[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry count(.param .u64 stop, .param .u64 counter)\n{\n"
	".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [stop]; ld.param.u64 %rd2, [counter]; mov.u32 %r2, 0;\n"
	"$L: add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd2], %r2; "
	"ld.volatile.global.u32 %r1, [%rd1];\n"
	"setp.eq.u32 %p, %r1, 0; @%p bra $L;\nret;\n}\n"
	".visible .entry work(.param .u32 n)\n{\n.reg .pred %p; .reg .b32 %r<3>;\n"
	"ld.param.u32 %r1, [n];\n$L: sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra $L;\n"
	"ret;\n}\n";

#define CUDA(X) \
	X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuCtxCreate_v2) \
	X(cuCtxDestroy_v2) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction) \
	X(cuLaunchKernel) \
	X(cuCtxSynchronize) X(cuMemHostAlloc) X(cuDeviceGetAttribute) X(cuDeviceGetUuid)
static struct {
#define MEMBER(name) __typeof__(name) *name;
	CUDA(MEMBER)
} cu;

/* What stands between libcuda and the kernel */

static struct call {
	unsigned long request;
	int fd;
	uint32_t root, parent, object, class, cmd, status;
	uint64_t value;
} calls[64];
static unsigned int n_calls;

static int (*next_ioctl(void))(int, unsigned long, ...)
{
	return (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	struct call c = { .request = request, .fd = fd };
	va_list ap;
	void *arg;
	int r;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	r = next_ioctl()(fd, request, arg);
	if (request == NV_IOCTL_ALLOC_RIGHTS) {
		const struct nv_alloc_rights *a = arg;

		c.root = a->root;
		c.parent = a->parent;
		c.object = a->object;
		c.class = a->class;
		c.status = a->status;
	} else if (request == NV_IOCTL_FREE) {
		const struct nv_free *f = arg;

		c.root = f->root;
		c.object = f->object;
		c.status = f->status;
	} else if (request == NV_IOCTL_CONTROL) {
		const struct nv_control *k = arg;

		c.root = k->client;
		c.object = k->object;
		c.cmd = k->cmd;
		c.status = k->status;
		c.value = *(const uint64_t *)(uintptr_t)k->params;
	} else {
		return r;
	}
	if (n_calls < sizeof(calls) / sizeof(calls[0]))
		calls[n_calls++] = c;
	return r;
}

static const struct call *alloc_of(uint32_t class)
{
	for (unsigned int i = 0; i < n_calls; i++)
		if (calls[i].request == NV_IOCTL_ALLOC_RIGHTS && calls[i].class == class)
			return &calls[i];
	return NULL;
}

static uint32_t control_size(uint32_t client, uint32_t object, uint32_t cmd, void *params,
			     uint32_t size)
{
	struct nv_control c = {
		.client = client, .object = object, .cmd = cmd, .params = (uintptr_t)params,
		.params_size = size,
	};

	return next_ioctl()(calls[0].fd, NV_IOCTL_CONTROL, &c) ? UINT32_MAX : c.status;
}
#define control(client, object, cmd, params) control_size(client, object, cmd, params, \
							  sizeof(*(params)))

static uint32_t alloc(uint32_t root, uint32_t parent, uint32_t *object, uint32_t class,
		      void *params, uint32_t size)
{
	struct nv_alloc a = {
		.root = root, .parent = parent, .object = *object, .class = class,
		.params = (uintptr_t)params, .params_size = size,
	};

	if (next_ioctl()(calls[0].fd, NV_IOCTL_ALLOC, &a))
		return UINT32_MAX;
	*object = a.object;
	return a.status;
}

static uint32_t release(uint32_t root, uint32_t object)
{
	struct nv_free f = { .root = root, .object = object };

	return next_ioctl()(calls[0].fd, NV_IOCTL_FREE, &f) ? UINT32_MAX : f.status;
}

static char directory[PATH_MAX];	/* of vgpu */

static bool load(void)
{
	char path[PATH_MAX + 32];
	void *lib;

	snprintf(path, sizeof(path), "%s/libcuda.so.1", directory);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("# %s\n", dlerror());
		return false;
	}
#define RESOLVE(name) CHECK((cu.name = (__typeof__(cu.name))dlsym(lib, #name)));
	CUDA(RESOLVE)
	CHECK(!cu.cuInit(0));
	return true;
}

/* Roles that test in their own process */

static bool the_calls(void)
{
	static const uint32_t classes[] = { NV01_ROOT_CLIENT, NV01_DEVICE_0, NV20_SUBDEVICE_0,
					    KEPLER_CHANNEL_GROUP_A };
	const struct call *memory = &calls[6];
	uint32_t object[4];
	struct stat st;
	CUcontext ctx;

	CHECK(load() && !n_calls);
	CHECK(!cu.cuCtxCreate_v2(&ctx, 0, 0));
	CHECK(n_calls == 7);
	for (unsigned int i = 0; i < 4; i++) {
		CHECK(calls[i].request == NV_IOCTL_ALLOC_RIGHTS && calls[i].class == classes[i] &&
		      calls[i].status == NV_OK);
		object[i] = calls[i].object;
		CHECK(i == 0 || calls[i].root == object[0]);
	}
	CHECK(calls[1].parent == object[0] && calls[2].parent == object[1] &&
	      calls[3].parent == object[1]);
	CHECK(calls[4].cmd == NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE &&
	      calls[4].root == object[0] && calls[4].object == object[2] &&
	      calls[4].status == NV_OK);
	CHECK(calls[5].cmd == NVA06C_CTRL_CMD_SET_TIMESLICE && calls[5].root == object[0] &&
	      calls[5].object == object[3]);
	CHECK(calls[5].value == DEFAULT_US && calls[5].status == NV_OK);
	CHECK(memory->class == NV01_MEMORY_LOCAL_USER && memory->root == object[0] &&
	      memory->parent == object[1] && memory->status == NV_OK);
	CHECK(NV_IOCTL_CONTROL == 0xc020462a && NV_IOCTL_ALLOC_RIGHTS == 0xc030462b &&
	      NV_IOCTL_FREE == 0xc0104629);
	CHECK(!fstat(calls[4].fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(195, 255));
	CHECK(!fstat(0, &st) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(195, 255)));
	/* client, device and subdevice stay */
	CHECK(!cu.cuCtxDestroy_v2(ctx) && n_calls == 9);
	for (unsigned int i = 7; i < 9; i++)
		CHECK(calls[i].request == NV_IOCTL_FREE && calls[i].root == object[0] &&
		      calls[i].status == NV_OK);
	CHECK(calls[7].object == memory->object && calls[8].object == object[3]);
	n_calls = 0;
	CHECK(!cu.cuDevicePrimaryCtxRetain(&ctx, 0) && n_calls == 4);
	CHECK(calls[0].class == KEPLER_CHANNEL_GROUP_A && calls[0].parent == object[1]);
	CHECK(!cu.cuDevicePrimaryCtxRelease_v2(0) && n_calls == 6);
	return true;
}

static bool statuses(void)
{
	struct nv_device_params device = { .device = 0 };
	struct nv_preempt preempt = { .wait = 1 };
	struct nv_gid_info gid = { .flags = NV2080_GPU_GID_BINARY };
	uint32_t root, group, subdevice, mine, below;
	uint64_t us = 0;
	CUuuid uuid;
	CUcontext ctx;
	int fd;

	CHECK(load() && !cu.cuDevicePrimaryCtxRetain(&ctx, 0) && n_calls == 7);
	root = calls[0].object;
	subdevice = calls[2].object;
	group = calls[3].object;
	fd = calls[0].fd;
	CHECK(control(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, &us) == NV_OK &&
	      us == DEFAULT_US);
	us = 1;
	CHECK(control(root, group, NVA06C_CTRL_CMD_SET_TIMESLICE, &us) == NV_OK);
	us = 7;
	CHECK(control(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, &us) == NV_OK && us == 1);
	us = 0;
	CHECK(control(root, group, NVA06C_CTRL_CMD_SET_TIMESLICE, &us) == NV_ERR_INVALID_ARGUMENT);
	us = 1ULL << 40;
	CHECK(control(root, group, NVA06C_CTRL_CMD_SET_TIMESLICE, &us) == NV_ERR_INVALID_ARGUMENT);
	CHECK(control(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, &us) == NV_OK && us == 1);
	CHECK(control_size(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, &us,
			   4) == NV_ERR_INVALID_ARGUMENT);
	CHECK(control_size(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, NULL,
			   8) == NV_ERR_INVALID_ARGUMENT);
	CHECK(control(root, group + 77, NVA06C_CTRL_CMD_GET_TIMESLICE,
		      &us) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(control(root + 77, group, NVA06C_CTRL_CMD_GET_TIMESLICE,
		      &us) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(control(root, subdevice, NVA06C_CTRL_CMD_GET_TIMESLICE, &us) == NV_ERR_NOT_SUPPORTED);
	CHECK(control(root, group, 0xa06c0101, &us) == NV_ERR_NOT_SUPPORTED);
	CHECK(control(root, group, NVA06C_CTRL_CMD_PREEMPT, &preempt) == NV_OK);
	preempt.manual_timeout = 1;
	preempt.timeout_us = NVA06C_PREEMPT_MAX_US + 1;
	CHECK(control(root, group, NVA06C_CTRL_CMD_PREEMPT, &preempt) == NV_ERR_INVALID_ARGUMENT);
	CHECK(control(root, subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &gid) == NV_OK &&
	      gid.length == 16);
	CHECK(!cu.cuDeviceGetUuid(&uuid, 0) && !memcmp(gid.data, &uuid, 16));
	gid.flags = NV2080_GPU_GID_ASCII;
	CHECK(control(root, subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &gid) == NV_OK &&
	      gid.length == 41 && strlen((char *)gid.data) == 40 &&
	      !strncmp((char *)gid.data, "GPU-76677075-2d73-696d-", 23));
	CHECK(control(root, group, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &gid) == NV_ERR_NOT_SUPPORTED);

	/* objects of one's own, by the other form of the call */
	mine = below = 0;
	CHECK(alloc(0, 0, &mine, NV01_ROOT_CLIENT, NULL, 0) == NV_OK && mine && mine != root);
	CHECK(alloc(mine, mine, &below, KEPLER_CHANNEL_GROUP_A, NULL,
		    0) == NV_ERR_INVALID_ARGUMENT);
	CHECK(alloc(mine, mine, &below, 0xc7c0, NULL, 0) == NV_ERR_NOT_SUPPORTED);
	CHECK(alloc(mine, mine + 1, &below, NV01_DEVICE_0, &device,
		    sizeof(device)) == NV_ERR_INVALID_OBJECT_HANDLE);
	device.device = 1;
	CHECK(alloc(mine, mine, &below, NV01_DEVICE_0, &device,
		    sizeof(device)) == NV_ERR_INVALID_ARGUMENT);
	device.device = 0;
	CHECK(alloc(mine, mine, &below, NV01_DEVICE_0, &device, sizeof(device)) == NV_OK && below);
	CHECK(alloc(mine, mine, &below, NV01_DEVICE_0, &device,
		    sizeof(device)) == NV_ERR_INVALID_ARGUMENT);
	subdevice = 0x99;
	CHECK(alloc(mine, below, &subdevice, NV20_SUBDEVICE_0, NULL, 0) == NV_OK &&
	      subdevice == 0x99);
	CHECK(release(mine, below + 1) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(release(mine, mine) == NV_OK);
	gid.flags = NV2080_GPU_GID_BINARY;
	CHECK(control(mine, subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO,
		      &gid) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(control(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE, &us) == NV_OK && us == 1);

	errno = 0;
	CHECK(next_ioctl()(fd, _IOWR(NV_IOCTL_MAGIC, 0x7f, uint64_t), &us) == -1 &&
	      errno == EINVAL);
	errno = 0;
	CHECK(next_ioctl()(fd, NV_IOCTL_CONTROL, NULL) == -1 && errno == EFAULT);
	errno = 0;
	CHECK(next_ioctl()(-1, NV_IOCTL_CONTROL, &us) == -1 && errno == EBADF);
	CHECK(!cu.cuDevicePrimaryCtxRelease_v2(0));
	CHECK(control(root, group, NVA06C_CTRL_CMD_GET_TIMESLICE,
		      &us) == NV_ERR_INVALID_OBJECT_HANDLE);
	return true;
}

static bool refused(void)
{
	uint64_t us = 5000;
	CUcontext ctx;

	CHECK(load() && !cu.cuDevicePrimaryCtxRetain(&ctx, 0) && n_calls == 7 &&
	      calls[4].status == NV_OK);
	CHECK(control(calls[0].object, calls[3].object, NVA06C_CTRL_CMD_SET_TIMESLICE, &us) ==
	      NV_ERR_INSUFFICIENT_PERMISSIONS);
	CHECK(control(calls[0].object, calls[3].object, NVA06C_CTRL_CMD_GET_TIMESLICE,
		      &us) == NV_OK && us == DEFAULT_US);
	return true;
}

/* Without libvgpu-rm.so, and as a client of an MPS server: no group */
static bool no_calls(void)
{
	CUcontext ctx;

	CHECK(load() && !cu.cuDevicePrimaryCtxRetain(&ctx, 0));
	CHECK(n_calls == 0);
	return true;
}

static bool mps_client_calls(void)
{
	uint32_t group = 0;
	CUcontext ctx;

	CHECK(load() && !cu.cuDevicePrimaryCtxRetain(&ctx, 0));
	CHECK(n_calls == 4 && alloc_of(NV20_SUBDEVICE_0) && !alloc_of(KEPLER_CHANNEL_GROUP_A) &&
	      alloc_of(NV01_MEMORY_LOCAL_USER));
	CHECK(alloc(calls[0].object, calls[1].object, &group, KEPLER_CHANNEL_GROUP_A, NULL,
		    0) == NV_ERR_NOT_SUPPORTED);
	return true;
}

/* The role "client" */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int client(void)
{
	volatile uint32_t *word;
	CUfunction count, work;
	CUdeviceptr stop, counter;
	CUmodule module;
	CUcontext ctx;
	char line[128];
	int mps;
	void *p;

	if (!load() || cu.cuDevicePrimaryCtxRetain(&ctx, 0) || cu.cuCtxSetCurrent(ctx) ||
	    cu.cuModuleLoadData(&module, kernels) ||
	    cu.cuModuleGetFunction(&count, module, "count") ||
	    cu.cuModuleGetFunction(&work, module, "work") ||
	    cu.cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP))
		return 1;
	word = p;
	stop = (CUdeviceptr)(uintptr_t)p;
	counter = stop + 4;
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t us = strtoull(line + 1, NULL, 10), start = now();
		uint32_t n = (uint32_t)us, status = 0;

		switch (*line) {
		case 's':	/* slice */
			status = control(calls[0].object, calls[3].object,
					 NVA06C_CTRL_CMD_SET_TIMESLICE, &us);
			us = 0;
			if (!status)
				status = control(calls[0].object, calls[3].object,
						 NVA06C_CTRL_CMD_GET_TIMESLICE, &us);
			break;
		case 'c':	/* count on and on */
			word[0] = word[1] = 0;
			status = cu.cuLaunchKernel(count, 1, 1, 1, 32, 1, 1, 0, NULL,
						   (void *[]){ &stop, &counter }, NULL);
			break;
		case 'e':	/* end that */
			word[0] = 1;
			status = cu.cuCtxSynchronize();
			break;
		case 'n':	/* how far is it */
			us = word[1];
			break;
		case 'w':	/* a kernel of n rounds: how long, in ns */
			status = cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, NULL,
						   (void *[]){ &n }, NULL);
			status |= cu.cuCtxSynchronize();
			us = now() - start;
			break;
		case 'm':
			status = cu.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0);
			us = (uint64_t)mps;
			break;
		default:
			return 2;
		}
		printf("%u %llu\n", status, (unsigned long long)us);
		fflush(stdout);
	}
	return 0;
}

/* The tests' side */

struct process {
	pid_t pid;
	int in, out;
};

static bool spawn(struct process *p, const char *role)
{
	int to[2], from[2];
	pid_t parent = getpid();

	fflush(stdout);
	CHECK(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
	p->pid = fork();
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		dup2(to[0], 0);
		if (!strcmp(role, "client"))
			dup2(from[1], 1);
		execl("/proc/self/exe", "test-groups", role, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p->in = to[1];
	p->out = from[0];
	return p->pid > 0;
}

static bool wait_for(struct process *p, int *status)
{
	pid_t pid = p->pid;

	if (pid <= 0)
		return false;
	close(p->in);
	close(p->out);
	p->pid = 0;
	return waitpid(pid, status, 0) == pid;
}

/* It ends by itself, with 0 */
static bool finish(struct process *p)
{
	int status;

	return wait_for(p, &status) && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void murder(struct process *p)
{
	int status;

	if (p->pid > 0)
		kill(p->pid, SIGKILL);
	wait_for(p, &status);
}

static bool answered(struct process *p, char *line, size_t size)
{
	struct pollfd f = { .fd = p->out, .events = POLLIN };
	size_t n = 0;

	while (n < size - 1) {
		if (poll(&f, 1, ANSWER_MS) <= 0 || read(p->out, line + n, 1) != 1)
			return false;
		if (line[n++] == '\n')
			break;
	}
	line[n] = '\0';
	return true;
}

/* A command; its number in @value. false: no answer or a status other than 0 */
/* @want: the status of the answer */
static bool ask_for(struct process *p, const char *command, unsigned int want, uint64_t *value)
{
	unsigned long long v;
	unsigned int status;
	char line[64];

	if (dprintf(p->in, "%s\n", command) < 0 || !answered(p, line, sizeof(line)) ||
	    sscanf(line, "%u %llu", &status, &v) != 2) {
		printf("# process %d does not answer \"%s\"\n", (int)p->pid, command);
		return false;
	}
	if (value)
		*value = v;
	if (status != want)
		printf("# \"%s\": status %#x\n", command, status);
	return status == want;
}

static bool ask(struct process *p, const char *command, uint64_t *value)
{
	return ask_for(p, command, 0, value);
}

static bool slice(struct process *p, unsigned int us)
{
	char command[32];
	uint64_t got;

	snprintf(command, sizeof(command), "s%u", us);
	CHECK(ask(p, command, &got) && got == us);
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#define WORK "w100000"

/*
 * The time of some kernels, one after another: a quarter took less. The host's scheduler disturbs
 * the others.
 */
static bool requests(struct process *p, uint64_t *quartile)
{
	uint64_t ns[9];

	for (unsigned int i = 0; i < 9; i++)
		CHECK(ask(p, WORK, &ns[i]));
	qsort(ns, 9, sizeof(ns[0]), by_value);
	*quartile = ns[2];
	return true;
}

/* How far a counting kernel comes in a second, by what it does in some tenths of one */
static bool rate(struct process *p, double *per_second)
{
	uint64_t a, b, start, end;

	CHECK(ask(p, "n", &a));
	start = now();
	poll(NULL, 0, 300);
	CHECK(ask(p, "n", &b));
	end = now();
	*per_second = (double)(b - a) * 1e9 / (double)(end - start);
	return true;
}

/* It gets on by some rounds, in bounded time */
static bool gets_on(struct process *p)
{
	uint64_t a, b = 0;

	CHECK(ask(p, "n", &a));
	for (int i = 0; i < 1000 && b < a + 1000; i++) {
		CHECK(ask(p, "n", &b));
		poll(NULL, 0, 10);
	}
	CHECK(b >= a + 1000);
	return true;
}

static bool in_process(const char *role)
{
	struct process p;

	CHECK(spawn(&p, role) && finish(&p));
	return true;
}

static bool by_themselves(void)
{
	bool good = in_process("calls") && in_process("statuses");

	setenv("VGPU_RM_REFUSE", "1", 1);
	good = in_process("refused") && good;
	unsetenv("VGPU_RM_REFUSE");
	setenv("VGPU_MPS", "1", 1);
	good = in_process("mps-client-calls") && good;
	setenv("VGPU_MPS", "0", 1);
	return good;
}

static bool without_rm(void)
{
	char *preload = strdup(getenv("LD_PRELOAD") ?: "");
	bool good;

	setenv("LD_PRELOAD", "", 1);
	good = in_process("no-calls");
	setenv("LD_PRELOAD", preload, 1);
	free(preload);
	return good;
}

static struct process important, lower;

/*
 * A busy process with a tiny slice hardly delays one with a long slice, and goes on between that
 * one's kernels
 */
static bool important_first(void)
{
	uint64_t alone, beside, taking_turns;

	CHECK(spawn(&important, "client") && requests(&important, &alone));
	CHECK(spawn(&lower, "client") && ask(&lower, "c", NULL) && gets_on(&lower));
	CHECK(requests(&important, &taking_turns));
	CHECK(slice(&lower, 1) && slice(&important, 1000000) && gets_on(&lower));
	CHECK(requests(&important, &beside));
	printf("# a kernel alone %llu us, beside slices of 20 ms %llu us, beside a slice of "
	       "1 us %llu us\n", (unsigned long long)alone / 1000,
	       (unsigned long long)taking_turns / 1000, (unsigned long long)beside / 1000);
	CHECK(taking_turns > alone && beside < alone + (taking_turns - alone) / 2);
	CHECK(gets_on(&lower));
	return true;
}

/* While the one with the long slice is busy, the other one stands still */
static bool busy_both(void)
{
	double alone, below, above, tiny[2];

	CHECK(ask(&lower, "e", NULL) && ask(&lower, "c", NULL) &&
	      rate(&lower, &alone) && alone > 0);
	CHECK(ask(&important, "c", NULL) && gets_on(&important));
	CHECK(rate(&important, &above) && rate(&lower, &below));
	printf("# rounds a second: alone %.0f; slice 1 s %.0f beside slice 1 us %.0f", alone,
	       above, below);
	CHECK(slice(&important, 1) && gets_on(&lower));
	CHECK(rate(&important, &tiny[0]) && rate(&lower, &tiny[1]));
	printf("; 1 us each %.0f and %.0f\n", tiny[0], tiny[1]);
	CHECK(above > alone / 4 && below < alone / 20);
	CHECK(tiny[0] + tiny[1] < alone / 4);
	/* equal slices: each about half */
	CHECK(slice(&important, 4000) && slice(&lower, 4000));
	CHECK(rate(&important, &above) && rate(&lower, &below));
	CHECK(above > alone / 10 && below > alone / 10);
	return true;
}

static bool owner_killed(void)
{
	CHECK(slice(&lower, 1) && slice(&important, 1000000) && gets_on(&important));
	murder(&important);
	CHECK(gets_on(&lower));
	/* the device is whole: a new process, and the old one's end */
	CHECK(spawn(&important, "client") && ask(&important, WORK, NULL) && finish(&important));
	CHECK(ask(&lower, "e", NULL) && finish(&lower));
	return true;
}

/* MPS */

static char pipe_directory[64];

static bool mps_control(const char *command, char *reply, size_t size)
{
	char line[PATH_MAX + 128];
	size_t n;
	FILE *f;

	snprintf(line, sizeof(line), "echo %s | timeout 30 %s/nvidia-cuda-mps-control 2>/dev/null",
		 command, directory);
	f = popen(line, "re");
	if (!f)
		return false;
	n = fread(reply, 1, size - 1, f);
	reply[n] = '\0';
	return !pclose(f);
}

static bool mps_start(unsigned int slice_us)
{
	char *preload = strdup(getenv("LD_PRELOAD") ?: ""), both[2 * PATH_MAX + 64],
		line[PATH_MAX + 64], us[16];
	int r;

	snprintf(both, sizeof(both), "%s/../test/libtest-slice.so:%s", directory, preload);
	snprintf(us, sizeof(us), "%u", slice_us);
	snprintf(line, sizeof(line), "timeout 30 %s/nvidia-cuda-mps-control -d 2>/dev/null",
		 directory);
	setenv("LD_PRELOAD", both, 1);
	setenv("TEST_SLICE_US", us, 1);
	r = system(line);
	setenv("LD_PRELOAD", preload, 1);
	unsetenv("TEST_SLICE_US");
	free(preload);
	return !r;
}

static bool is_mps(struct process *p)
{
	uint64_t mps = 2;

	return ask(p, "m", &mps) && mps == 1;
}

/*
 * Two clients of a server whose slice a preloaded library made tiny, beside a process without MPS
 * with a long one
 */
static bool mps_group(void)
{
	struct process client[2] = { { 0 } };
	double alone[2], below[2];
	char reply[64];
	pid_t server;
	bool good;

	CHECK(mps_start(1) && mps_control("get_server_list", reply, sizeof(reply)));
	server = atoi(reply);
	CHECK(server > 0 && !kill(server, 0));
	setenv("VGPU_MPS", "auto", 1);
	good = spawn(&client[0], "client") && spawn(&client[1], "client") && is_mps(&client[0]) &&
	       is_mps(&client[1]);
	setenv("VGPU_MPS", "0", 1);
	CHECK(good && spawn(&important, "client") && !is_mps(&important) &&
	      slice(&important, 1000000));
	/* they share in space: both run at once */
	CHECK(ask(&client[0], "c", NULL) && ask(&client[1], "c", NULL) && gets_on(&client[0]) &&
	      gets_on(&client[1]));
	CHECK(rate(&client[0], &alone[0]) && rate(&client[1], &alone[1]) && alone[0] > 0 &&
	      alone[1] > 0);
	CHECK(ask(&important, "c", NULL) && gets_on(&important));
	CHECK(rate(&client[0], &below[0]) && rate(&client[1], &below[1]));
	printf("# rounds a second: clients %.0f and %.0f; beside a slice of 1 s %.0f and %.0f\n",
	       alone[0], alone[1], below[0], below[1]);
	CHECK(below[0] < alone[0] / 10 && below[1] < alone[1] / 10);
	CHECK(ask(&important, "e", NULL) && gets_on(&client[0]) && gets_on(&client[1]));
	/* a client dies: the other goes on; then the server: the other has lost its context */
	murder(&client[0]);
	CHECK(gets_on(&client[1]) && !kill(server, SIGKILL) && ask(&important, WORK, NULL));
	CHECK(ask_for(&client[1], WORK, CUDA_ERROR_MPS_RPC_FAILURE, NULL) &&
	      ask_for(&client[1], "e", CUDA_ERROR_MPS_RPC_FAILURE, NULL) && finish(&client[1]) &&
	      finish(&important));
	CHECK(mps_control("start_server", reply, sizeof(reply)) &&
	      mps_control("get_server_list", reply, sizeof(reply)));
	CHECK(atoi(reply) > 0 && atoi(reply) != server);
	return true;
}

static bool mps_end(void)
{
	char reply[64], rest[64], path[96];

	snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", pipe_directory);
	CHECK(!access(path, F_OK) && mps_control("get_server_list", reply, sizeof(reply)));
	CHECK(!mps_start(1));	/* one in a directory */
	CHECK(mps_control("quit", rest, sizeof(rest)) && access(path, F_OK));
	CHECK(atoi(reply) > 0 && kill(atoi(reply), 0) && errno == ESRCH);
	CHECK(!mps_control("get_server_list", reply, sizeof(reply)));
	return true;
}

static void prepare_environment(char **argv)
{
	char self[PATH_MAX], path[2 * PATH_MAX], name[64];
	const char *preload;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "%s/../vgpu", dirname(self));
	if (!realpath(path, directory))
		exit(1);
	if (getenv("TEST_GROUPS"))
		return;
	/* again, with the kernel's side preloaded */
	snprintf(name, sizeof(name), "vgpu-test-groups-%d", (int)getpid());
	preload = getenv("LD_PRELOAD");
	snprintf(path, sizeof(path), "%s/libvgpu-rm.so:%s", directory, preload ?: "");
	setenv("TEST_GROUPS", "1", 1);
	setenv("LD_PRELOAD", path, 1);
	setenv("VGPU_NAME", name, 1);
	setenv("VGPU_SMS", "2", 1);
	setenv("VGPU_MPS", "0", 1);
	execv("/proc/self/exe", argv);
	exit(127);
}

int main(int argc, char **argv)
{
	static const struct { const char *role; bool (*test)(void); } roles[] = {
		{ "calls", the_calls }, { "statuses", statuses }, { "refused", refused },
		{ "no-calls", no_calls },
		{ "mps-client-calls", mps_client_calls },
	};
	char shm[96], rest[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	prepare_environment(argv);
	if (argc > 1 && !strcmp(argv[1], "client"))
		return client();
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[1], roles[i].role))
			return !roles[i].test();
	signal(SIGPIPE, SIG_IGN);
	snprintf(pipe_directory, sizeof(pipe_directory), "/tmp/vgpu-test-groups-%d", (int)getpid());
	setenv("CUDA_MPS_PIPE_DIRECTORY", pipe_directory, 1);
	ok(by_themselves(), "control calls of a context: their order, the answers to them "
	       "and to others");
	ok(without_rm(), "without libvgpu-rm.so there are none");
	ok(important_first(), "kernels of a process with a long slice finish soon beside one "
	       "with a tiny slice");
	ok(busy_both(), "busy processes run by their slices; with two tiny ones hardly at all");
	ok(owner_killed(), "a process is killed in its slice: the other one goes on");
	murder(&important);
	murder(&lower);
	ok(mps_group(), "an MPS server's slice is its clients'; they share in space, beside a "
	       "process without MPS");
	if (!ok(mps_end(), "the control daemon ends with its server"))
		mps_control("quit", rest, sizeof(rest));
	rmdir(pipe_directory);
	snprintf(shm, sizeof(shm), "/dev/shm/%s", getenv("VGPU_NAME"));
	unlink(shm);
	return done();
}
