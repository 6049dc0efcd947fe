// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random programs of system calls against the module: ioctls with each field wrong or right, reads,
 * mappings, scribbled pages, groups, files of configfs and sysfs, netlink. Under a kernel with KCOV
 * (selftests/qemu/debug-kernel, where the module alone is instrumented) a program that reaches new
 * code is kept and mutated further; elsewhere all are independent. After each program nothing may
 * be left: no client, no capacity in use, no group. A splat ends the guest.
 *
 * GSCHED_FUZZ_SECONDS, default 5; GSCHED_FUZZ_SEED, default 1. A program that fails is printed.
 *
 * GSCHED_FUZZ_THREADS, default 1: so many programs run at the same time, on the same descriptors. A
 * kernel that looks for data races finds them then; a seed no longer tells what happens.
 */
#include <linux/kcov.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "common.h"
#include "kselftest_harness.h"
#include "netlink.h"

#define ROOT		CONFIG "/" DEV_NAME
#define OPS_MAX		24
#define FDS		4
#define KEPT_MAX	4096
#define COVER_WORDS	(256 << 10)
#define SEEN_BITS	18
#define THREADS_MAX	8
/* of a program beside others, to meet them in more places */
#define REPEATS		8

enum kind {
	OP_OPEN, OP_CLOSE, OP_ATTACH, OP_SUBMIT, OP_COMPLETE, OP_REPORT, OP_RAW, OP_READ, OP_MAP,
	OP_SCRIBBLE, OP_MKDIR, OP_RMDIR, OP_GROUP_FILE, OP_DEVICE_FILE, OP_CLIENT_FILE,
	OP_READ_FILE, OP_DEVICE, OP_BIND, OP_NETLINK, OP_TRIGGER, OP_KINDS
};

struct op {
	unsigned int kind, arg[6];
};

struct program {
	unsigned int n;
	struct op op[OPS_MAX];
};

static const char *const groups[] = { "a", "a/b", "a/b/c", "b", "c", "x y" };
static const char *const group_files[] = {
	"capsm.max", "capsm.min", "capsm.reserve", "gpu.band", "gpu.weight", "gpu.priority",
	"gpu.latency_target_us", "memory.max", "cgroup", "procs", "owner", "capsm.current",
	"gpu.stat", "gpu.pressure", "gpu.events", "memory.current", "memory.peak", "nothing",
};
static const char *const device_files[] = {
	"mode", "policy", "plan", "switch_us", "max_overhead", "max_slowdown", "clients_max",
	"unmanaged_busy", "stat", "mode_current", "events", "sms",
};
static const char *const client_files[] = { "capsm.max", "gpu.weight", "gpu.priority", "usage",
					    "band", "group", "stat" };
static const char *const values[] = {
	"max", "auto", "0", "1", "0.001", "0.25", "1.5", "4", "15.999", "16", "17", "100", "99",
	"10000000", "-1", "\n", "", "spatial", "temporal", "hpf", "ffs", "wfq", "srt", "corun",
	"plan", "red", "blue", "/", "1000 a=4 a/b=2", "60000 b=16", "some 100000 1000000",
	"full 1 1", "99999999999999999999", "1e3", "a b", "x", "1M", "7K", "1024T", "1025T",
};
/* what fields are compared with, and what wraps */
static const unsigned int numbers[] = {
	0, 1, 2, 3, 4, 7, 8, 16, 32, 33, 63, 64, 65, 72, 88, 255, 1000, 1024, 4095, 4096, 4097,
	8192, 16384, 65535, 1000000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
};

/* One that executes programs; the first one is the test itself */
struct runner {
	struct program program;
	pthread_t thread;
	timer_t timer;
	int cover_fd;
	uint64_t *cover;	/* NULL: there is no KCOV */
};

static _Atomic int fds[FDS] = { -1, -1, -1, -1 };
static int nl = -1, nl_id;
static struct runner runners[THREADS_MAX];
static unsigned int n_runners;
static pthread_barrier_t begin, end;	/* of a round: a program of each runner */
static bool over;
static uint64_t seen[1 << (SEEN_BITS - 6)];
static struct program *kept;
static unsigned int n_kept, n_seen;
static uint64_t state;

static unsigned int roll(unsigned int below)
{
	/* xorshift64* */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned int)((state * 0x2545f4914f6cdd1dull) >> 33) % below;
}

static unsigned int number(void)
{
	return roll(3) ? numbers[roll(ARRAY_SIZE(numbers))] : roll(0x7fffffff);
}

/* ---- programs ---- */

static struct op random_op(void)
{
	struct op op = { .kind = roll(OP_KINDS) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(op.arg); i++)
		op.arg[i] = number();
	return op;
}

static void insert(struct program *p, unsigned int at, struct op op)
{
	if (p->n == OPS_MAX)
		return;
	memmove(&p->op[at + 1], &p->op[at], (p->n - at) * sizeof(op));
	p->op[at] = op;
	p->n++;
}

static void mutate(struct program *p)
{
	unsigned int i, rounds = 1 + roll(4);

	for (i = 0; i < rounds; i++) {
		unsigned int at = p->n ? roll(p->n) : 0;
		const struct program *other = &kept[n_kept ? roll(n_kept) : 0];

		switch (p->n ? roll(6) : 0) {
		case 0:
			insert(p, at, random_op());
			break;
		case 1:
			memmove(&p->op[at], &p->op[at + 1], (--p->n - at) * sizeof(p->op[0]));
			break;
		case 2:
		case 3:
			p->op[at].arg[roll(6)] = number();
			break;
		case 4:
			p->op[at].kind = roll(OP_KINDS);
			break;
		case 5:
			if (n_kept && other->n)
				insert(p, at, other->op[roll(other->n)]);
			break;
		}
	}
}

static struct program random_program(void)
{
	static const struct op usual[] = { { .kind = OP_OPEN },
					   { .kind = OP_ATTACH },
					   { .kind = OP_MKDIR } };
	struct program p = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(usual); i++)
		if (roll(4))
			insert(&p, p.n, usual[i]);
	for (i = roll(OPS_MAX); i; i--)
		insert(&p, p.n, random_op());
	return p;
}

/* ---- execution ---- */

/* The size that a caller says: mostly the right one */
static unsigned int stated_size(unsigned int arg, unsigned int right)
{
	return arg % 8 ? right : arg;
}

static void submit_op(int fd, const unsigned int *arg)
{
	struct gsched_submit req =
		task(arg[0] % 66, arg[1] % 4, arg[2] % 8 ? GSCHED_SUBMIT_NOWAIT : arg[3]);

	if (arg[4] & 1)
		req.tier = arg[5] % 4;
	if (arg[4] & 2)
		req.blocks_per_sm = arg[5];
	if (arg[4] & 4)
		req.blocks = arg[5];
	if (arg[4] & 8)
		req.predicted_ns = (uint64_t)arg[5] << (arg[3] % 33);
	if (arg[4] & 16)
		req.block_ns = (uint64_t)arg[5] << (arg[3] % 33);
	if (arg[4] & 32)
		req.intensity = arg[5] % 7;
	req.stream = arg[3] % 3;
	req.size = stated_size(arg[2] >> 3, sizeof(req));
	xioctl(fd, GSCHED_IOC_SUBMIT, &req);
}

/* Any call with any bytes, at the end of a page, before an unmapped one */
static void raw_op(int fd, const unsigned int *arg)
{
	static _Thread_local unsigned char *page;
	size_t size = sysconf(_SC_PAGESIZE);
	unsigned int i, at;

	if (!page) {
		page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		munmap(page + size, size);
		page += size - 4096;
	}
	for (i = 0; i < 4096; i += 4)
		memcpy(page + i, &arg[(i / 4 + arg[0]) % 6], 4);
	at = arg[1] % 3 ? 4096 - arg[2] % 128 : arg[2] % 4096;
	if (at + 4 <= 4096)
		memcpy(page + at, &(unsigned int) { stated_size(arg[3], 24 + arg[4] % 5 * 16) }, 4);
	ioctl(fd, _IO(GSCHED_IOC_TYPE, arg[5] % 9), page + at);
}

static void attach_op(int fd, const unsigned int *arg)
{
	struct gsched_attach req = {
		.size = stated_size(arg[1] + 1, sizeof(req)),
		.flags = arg[2] % 9,
		.channel_group = arg[3] % 3,
		.__reserved = arg[4] == 7,
	};

	memcpy(req.uuid, dev_uuid, sizeof(req.uuid));
	req.uuid[0] ^= arg[5] == 3;
	xioctl(fd, GSCHED_IOC_ATTACH, &req);
}

static void map_op(int fd, const unsigned int *arg)
{
	static const int prot[] = { PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC,
				    PROT_NONE };
	size_t size = arg[1] % 4 ? 8192 : arg[1] % (1 << 20) + 1;
	void *at = mmap(NULL, size, prot[arg[2] % 4], arg[3] % 4 ? MAP_SHARED : MAP_PRIVATE, fd,
			(off_t)(arg[4] % 8) << 12);

	if (at == MAP_FAILED)
		return;
	if (prot[arg[2] % 4] & PROT_READ)
		*(volatile int *)at;
	mprotect(at, 4096, PROT_READ | PROT_WRITE);
	madvise(at, 4096, MADV_DONTNEED);
	munmap(at, size);
}

/* Words of the client's page: counters, slots, whatever the GPU would write */
static void scribble_op(int fd, const unsigned int *arg)
{
	struct gsched_attach probe = { .size = sizeof(probe) };
	size_t words = sizeof(struct gsched_cl_page) / 4;
	volatile unsigned int *at;
	unsigned int offset, i;

	/* an attached descriptor says EBUSY and no offsets; these are those of a fresh one */
	memcpy(probe.uuid, dev_uuid, sizeof(probe.uuid));
	for (offset = 0; offset < 4; offset++) {
		at = mmap(NULL, sizeof(struct gsched_cl_page), PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, (off_t)offset << 14);
		if (at == MAP_FAILED)
			continue;
		for (i = 0; i < 1 + arg[1] % 16; i++)
			at[(arg[2] + i * (arg[3] % 64 + 1)) % words] = arg[4 + i % 2];
		munmap((void *)at, sizeof(struct gsched_cl_page));
	}
}

static const char *value(const unsigned int *arg, char *text, size_t size)
{
	size_t i, len;

	if (arg[4] % 4)
		return values[arg[3] % ARRAY_SIZE(values)];
	len = arg[5] % size;
	for (i = 0; i < len; i++)
		text[i] = (char)(1 + (arg[3] >> (i % 24)) % 126);
	text[len] = '\0';
	return text;
}

/* A trigger on the pressure of a group, mostly, and a poll of the file */
static void trigger_op(int fd, const unsigned int *arg)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };
	char text[5000], line[5032], path[256];
	int pressure;

	snprintf(path, sizeof(path), ROOT "/%s/%s",
		 arg[1] % 4 ? groups[arg[1] % ARRAY_SIZE(groups)] : ".",
		 arg[2] % 8 ? "gpu.pressure" : group_files[arg[2] % ARRAY_SIZE(group_files)]);
	pressure = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(line, sizeof(line), "%d %s", pressure,
		 arg[5] % 2 ? "some 1 500000" : value(arg, text, sizeof(text)));
	if (write(fd, line, strlen(line)) < 0 && errno == EFAULT)
		abort();
	poll(&p, 1, 0);
	close(pressure);
}

static void file_op(const struct op *op)
{
	const char *group = groups[op->arg[1] % ARRAY_SIZE(groups)];
	char text[5000], path[256];

	switch (op->kind) {
	case OP_MKDIR:
		snprintf(path, sizeof(path), ROOT "/%s", group);
		mkdir(path, 0755);
		break;
	case OP_RMDIR:
		snprintf(path, sizeof(path), ROOT "/%s", group);
		rmdir(path);
		break;
	case OP_GROUP_FILE:
		put(value(op->arg, text, sizeof(text)), ROOT "/%s/%s", op->arg[0] % 4 ? group : ".",
		    group_files[op->arg[2] % ARRAY_SIZE(group_files)]);
		break;
	case OP_DEVICE_FILE:
		put(value(op->arg, text, sizeof(text)), SYSFS "/" DEV_NAME "/%s",
		    device_files[op->arg[2] % ARRAY_SIZE(device_files)]);
		break;
	case OP_CLIENT_FILE:
		put(value(op->arg, text, sizeof(text)), SYSFS "/" DEV_NAME "/tasks/%d/%s", getpid(),
		    client_files[op->arg[2] % ARRAY_SIZE(client_files)]);
		break;
	case OP_READ_FILE:
		if (op->arg[0] % 16 == 15)
			slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/%s",
			      op->arg[2] % 2 ? "bands" : "slots");
		else if (op->arg[0] % 3 == 0)
			slurp(text, sizeof(text), ROOT "/%s/%s", group,
			      group_files[op->arg[2] % ARRAY_SIZE(group_files)]);
		else if (op->arg[0] % 3 == 1)
			slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/%s",
			      device_files[op->arg[2] % ARRAY_SIZE(device_files)]);
		else
			slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/%s", getpid(),
			      client_files[op->arg[2] % ARRAY_SIZE(client_files)]);
		break;
	case OP_BIND:
		put_pid(op->arg[2] % 3 ? getpid() : (pid_t)op->arg[3], ROOT "/%s/procs",
			op->arg[0] % 4 ? group : ".");
		break;
	default:
		break;
	}
}

static void device_op(int fd, const unsigned int *arg)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "fuzz-other-gpu";
	static const char *const names[] = { "other", "test0", "",
					     "x/y", "..", "abcdefghijklmnopqrstuvwxyz012345" };
	struct gsched_device_del del = { .size = sizeof(del), .flags = arg[2] % 3 };
	struct gsched_device_add add = { .size = sizeof(add), .sms = arg[3], .flags = arg[5] == 1 };
	const char *name = names[arg[1] % ARRAY_SIZE(names)];

	memcpy(del.uuid, other, sizeof(other));
	memcpy(add.uuid, other, sizeof(other));
	memcpy(add.name, name, strlen(name));	/* of 32: not terminated */
	xioctl(fd, GSCHED_IOC_DEVICE_ADD, &add);
	xioctl(fd, GSCHED_IOC_DEVICE_DEL, &del);
	/* whoever is attached may lose the device, too, but the test's has to come back */
	if (arg[4] % 16 == 0) {
		memcpy(del.uuid, dev_uuid, sizeof(dev_uuid));
		if (!xioctl(fd, GSCHED_IOC_DEVICE_DEL, &del))
			add_device(fd, DEV_NAME, dev_uuid, DEV_SMS);
	}
}

/* A request with an attribute or none, and what it and others left to read, or only a part of that
 */
static void netlink_op(const unsigned int *arg)
{
	struct nl_request req =
		nl_request(nl_id, arg[0] % (GSCHED_CMD_MAX + 2), arg[1] % 4 ? NLM_F_DUMP : 0);
	char buf[4096];
	unsigned int i;

	if (arg[2] % 3 == 0)
		nl_add(&req, arg[3] % (GSCHED_A_MAX + 2), arg, arg[4] % (6 * sizeof(*arg)));
	else if (arg[2] % 3 == 1)
		nl_add(&req, GSCHED_A_DEVICE, DEV_NAME, sizeof(DEV_NAME) - arg[3] % 2);
	if (arg[5] % 16 == 0)
		req.head.nlmsg_len -= arg[4] % 4;
	nl_send(nl, &req, req.head.nlmsg_len);
	for (i = 0; arg[5] % 4 || i < arg[4] % 3; i++)
		if (recv(nl, buf, sizeof(buf), MSG_DONTWAIT) < 0 && errno != ENOBUFS &&
		    errno != EINTR)
			break;
}

static void execute(const struct op *op)
{
	_Atomic int *at = &fds[op->arg[0] % FDS];
	int fd = *at;
	struct gsched_report report = {
		.size = stated_size(op->arg[1] + 1, sizeof(report)),
		.flags = op->arg[2] % (GSCHED_REPORT__ALL + 2),
		.activity = op->arg[3] % 4,
		.slice_us = op->arg[4],
		.slice_error = op->arg[5] % 3,
		.prioritised = op->arg[1] % 3,
		.block_us = op->arg[5],
		.__reserved = op->arg[3] == 88,
		.memory = (uint64_t)op->arg[4] << (op->arg[5] % 33),
	};
	struct gsched_complete done = {
		.size = stated_size(op->arg[4] + 1, sizeof(done)),
		.flags = op->arg[5] % 3,
		.slot = op->arg[1] % 66,
		.seq = op->arg[2] % 4,
		.ran_ns = (uint64_t)op->arg[3] << (op->arg[5] % 33),
	};
	struct gsched_event events[4];

	switch (op->kind) {
	case OP_OPEN:
		if (fd >= 0)
			break;
		fd = gopen();
		if (!atomic_compare_exchange_strong(at, &(int) { -1 }, fd))
			close(fd);
		break;
	case OP_CLOSE:
		fd = atomic_exchange(at, -1);
		if (fd >= 0)
			close(fd);
		break;
	case OP_ATTACH:
		attach_op(fd, op->arg);
		break;
	case OP_SUBMIT:
		submit_op(fd, op->arg);
		break;
	case OP_COMPLETE:
		xioctl(fd, GSCHED_IOC_COMPLETE, &done);
		break;
	case OP_REPORT:
		xioctl(fd, GSCHED_IOC_REPORT, &report);
		break;
	case OP_RAW:
		raw_op(fd, op->arg);
		break;
	case OP_READ:
		if (read(fd, events, op->arg[1] % sizeof(events)) < 0 && errno == EFAULT)
			abort();
		break;
	case OP_MAP:
		map_op(fd, op->arg);
		break;
	case OP_SCRIBBLE:
		scribble_op(fd, op->arg);
		break;
	case OP_DEVICE:
		device_op(fd, op->arg);
		break;
	case OP_NETLINK:
		netlink_op(op->arg);
		break;
	case OP_TRIGGER:
		trigger_op(fd, op->arg);
		break;
	default:
		file_op(op);
	}
}

/* Everything that a program can have made; the settings are those of a new device */
static void clean_up(int admin)
{
	static const char *const made[] = { "a/b/c", "a/b", "a", "b", "c" };
	char path[256];
	unsigned int i;

	for (i = 0; i < FDS; i++) {
		int fd = atomic_exchange(&fds[i], -1);

		if (fd >= 0)
			close(fd);
	}
	for (i = 0; i < ARRAY_SIZE(made); i++) {
		snprintf(path, sizeof(path), ROOT "/%s", made[i]);
		rmdir(path);
	}
	del_device(admin, (const unsigned char *)"fuzz-other-gpu\0\0");
	/* while one had taken the test's device away, another may have had its name */
	if (n_runners > 1)
		add_device(admin, DEV_NAME, dev_uuid, DEV_SMS);
}

/* Code of a runner's program that was not reached before by any; counts it as reached */
static unsigned int new_code(const uint64_t *cover)
{
	unsigned int found = 0;
	uint64_t i, n;

	if (!cover)
		return 0;
	n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (i = 0; i < n && i < COVER_WORDS - 1; i++) {
		unsigned int bit =
			(unsigned int)((cover[i + 1] * 0x9e3779b97f4a7c15ull) >> (64 - SEEN_BITS));

		if (!(seen[bit / 64] & 1ull << bit % 64)) {
			seen[bit / 64] |= 1ull << bit % 64;
			found++;
		}
	}
	n_seen += found;
	return found;
}

static void trace_code(const struct runner *r)
{
	if (!r->cover)
		return;
	__atomic_store_n(&r->cover[0], 0, __ATOMIC_RELAXED);
	ioctl(r->cover_fd, KCOV_ENABLE, KCOV_TRACE_PC);
}

static void run(struct runner *r)
{
	unsigned int i, n;

	trace_code(r);
	for (n = n_runners > 1 ? REPEATS : 1; n; n--)
		for (i = 0; i < r->program.n; i++)
			execute(&r->program.op[i]);
}

static void trace_no_code(const struct runner *r)
{
	if (r->cover)
		ioctl(r->cover_fd, KCOV_DISABLE, 0);
}

static void open_cover(struct runner *r)
{
	r->cover_fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (r->cover_fd < 0 || ioctl(r->cover_fd, KCOV_INIT_TRACE, COVER_WORDS))
		return;
	r->cover = mmap(NULL, COVER_WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, r->cover_fd, 0);
	if (r->cover == MAP_FAILED)
		abort();
}

/* A SUBMIT that waits is interrupted: every runner gets a signal of its own */
static void start_timer(struct runner *r)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = 20000000, .it_value.tv_nsec = 20000000,
	};
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };

	event._sigev_un._tid = (int)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &r->timer) ||
	    timer_settime(r->timer, 0, &every, NULL))
		abort();
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;

	start_timer(r);
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			break;
		run(r);
		trace_no_code(r);
		pthread_barrier_wait(&end);
	}
	timer_delete(r->timer);
	return NULL;
}

/* The programs of all runners, side by side. What they leave is traced as the first one's */
static void run_round(int admin)
{
	pthread_barrier_wait(&begin);
	run(&runners[0]);
	pthread_barrier_wait(&end);
	clean_up(admin);
	trace_no_code(&runners[0]);
}

static void print_program(const struct program *p)
{
	unsigned int i;

	for (i = 0; i < p->n; i++)
		printf("# kind %2u: %u %u %u %u %u %u\n", p->op[i].kind, p->op[i].arg[0],
		       p->op[i].arg[1], p->op[i].arg[2], p->op[i].arg[3], p->op[i].arg[4],
		       p->op[i].arg[5]);
}

/* NULL: nothing is left behind */
static const char *leftovers(void)
{
	static char text[4096];

	if (slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat") < 0)
		return "the device is gone";
	if (stat_of(text, "clients"))
		return "a client is left";
	if (slurp(text, sizeof(text), ROOT "/capsm.current") < 0 || strcmp(text, "0"))
		return "capacity is in use";
	if (slurp(text, sizeof(text), ROOT "/memory.current") < 0 || strcmp(text, "0"))
		return "memory is in use";
	return NULL;
}

static unsigned int setting(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

static void on_alarm(int sig)
{
	(void)sig;
}

FIXTURE(fuzz) {
	int admin;
};

FIXTURE_SETUP(fuzz)
{
	struct sigaction act = { .sa_handler = on_alarm };
	static const char *const mcgrps[] = { GSCHED_MCGRP_EVENTS, GSCHED_MCGRP_TASKS };
	unsigned int i;
	int mcgrp = 0;

	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	nl = nl_open();
	for (i = 0; i < ARRAY_SIZE(mcgrps); i++) {
		nl_id = nl_family(nl, mcgrps[i], &mcgrp);
		ASSERT_LT(0, nl_id);
		ASSERT_EQ(0, setsockopt(nl, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &mcgrp,
					sizeof(mcgrp)));
	}
	kept = calloc(KEPT_MAX, sizeof(*kept));
	ASSERT_NE(NULL, kept);
	sigaction(SIGALRM, &act, NULL);
	n_runners = setting("GSCHED_FUZZ_THREADS", 1);
	ASSERT_TRUE(n_runners >= 1 && n_runners <= THREADS_MAX);
	pthread_barrier_init(&begin, NULL, n_runners);
	pthread_barrier_init(&end, NULL, n_runners);
	for (i = 0; i < n_runners; i++)
		open_cover(&runners[i]);
	start_timer(&runners[0]);
	for (i = 1; i < n_runners; i++)
		ASSERT_EQ(0, pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]));
}

FIXTURE_TEARDOWN(fuzz)
{
	unsigned int i;

	over = true;
	pthread_barrier_wait(&begin);
	for (i = 1; i < n_runners; i++)
		pthread_join(runners[i].thread, NULL);
	timer_delete(runners[0].timer);
	close(nl);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
	free(kept);
}

TEST_F_TIMEOUT(fuzz, programs, 3600)
{
	unsigned int seconds = setting("GSCHED_FUZZ_SECONDS", 5), runs = 0, i;
	time_t until = time(NULL) + seconds;
	const char *left = NULL;
	struct program *p;

	state = 0x9e3779b97f4a7c15ull * (1 + setting("GSCHED_FUZZ_SEED", 1));
	while (time(NULL) < until && !left) {
		for (i = 0; i < n_runners; i++) {
			p = &runners[i].program;
			/* the same on the same descriptors meets itself most often */
			if (i && roll(2)) {
				*p = runners[0].program;
				continue;
			}
			*p = n_kept && roll(8) ? kept[roll(n_kept)] : random_program();
			if (n_kept)
				mutate(p);
		}
		run_round(self->admin);
		runs += n_runners;
		for (i = 0; i < n_runners; i++)
			if (new_code(runners[i].cover) && n_kept < KEPT_MAX)
				kept[n_kept++] = runners[i].program;
		left = leftovers();
	}
	for (i = 0; left && i < n_runners; i++)
		print_program(&runners[i].program);
	EXPECT_EQ(NULL, left) TH_LOG("after program %u: %s", runs, left);
	/* a program takes a fraction of a millisecond: with fewer the machine stood still */
	EXPECT_GT(runs, seconds);
	printf("# %u programs, %u at a time, %s: %u places of the module's code, %u kept\n",
	       runs, n_runners, runners[0].cover ? "guided by coverage" : "without coverage",
	       n_seen, n_kept);
	fflush(stdout);
}

TEST_HARNESS_MAIN
