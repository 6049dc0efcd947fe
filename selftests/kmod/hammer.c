// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything at once, for a few seconds: threads that open, attach, submit, complete, read, map and
 * close; threads that make and remove groups, write values, move processes and change the mode; one
 * that scribbles over its page; one whose children are killed; one that takes a processor away and
 * sets the clock. Afterwards nothing may be left: no client, no capacity in use, and the device can
 * go.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME

static atomic_bool stop;
static atomic_ulong rounds[8];

static void use(int fd, unsigned int *seed)
{
	struct gsched_event events[8];
	unsigned int i, slot = rand_r(seed) % GSCHED_SLOTS;

	for (i = 0; i < 8; i++) {
		submit(fd, (slot + i) % GSCHED_SLOTS, i + 1, GSCHED_SUBMIT_NOWAIT);
		if (read(fd, events, sizeof(events)) < 0 && errno != EAGAIN)
			break;
		report_activity(fd, rand_r(seed) % 3);
		report_slice(fd, rand_r(seed) % 3000, rand_r(seed) % 4 ? 0 : EIO);
		report_memory(fd, (rand_r(seed) % 8ULL) << 20, rand_r(seed) & 1);
		complete(fd, (slot + rand_r(seed) % 8) % GSCHED_SLOTS, i + 1);
	}
}

static void *client(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	struct gsched_attach req;
	int fd;

	while (!stop) {
		fd = gopen();
		if (fd < 0)
			continue;
		if (attach_band(fd, rand_r(&seed) % (GSCHED_ATTACH__ALL + 1), rand_r(&seed) % 4,
				&req) == 0) {
			void *arb = (void *)map_arb(fd, &req);

			use(fd, &seed);
			if (arb != MAP_FAILED)
				munmap(arb, req.arb_size);
		}
		close(fd);
		rounds[0]++;
	}
	return NULL;
}

/* Launches under leases, real and pretended */
static void *scribbler(void *arg)
{
	unsigned int seed = (uintptr_t)arg, i;
	volatile struct gsched_cl_page *cl;
	volatile unsigned int *words;
	struct gsched_attach req;
	int fd;

	while (!stop) {
		fd = gopen();
		if (attach_as(fd, 1, &req)) {
			close(fd);
			continue;
		}
		cl = map_cl(fd, &req);
		words = (volatile unsigned int *)cl->slot;
		for (i = 0; cl != MAP_FAILED && i < 3000 && !stop; i++)
			words[rand_r(&seed) % (sizeof(cl->slot) / 4)] = rand_r(&seed) % 4;
		use(fd, &seed);
		if (cl != MAP_FAILED)
			munmap((void *)cl, req.cl_size);
		close(fd);
		rounds[1]++;
	}
	return NULL;
}

static void *maker(void *arg)
{
	while (!stop) {
		mkdir(ROOT "/a", 0755);
		mkdir(ROOT "/a/b", 0755);
		put("0", ROOT "/a/b/procs");
		put("/", ROOT "/a/cgroup");
		put("65534", ROOT "/a/b/owner");
		rmdir(ROOT "/a/b");
		rmdir(ROOT "/a");
		rounds[2]++;
	}
	return NULL;
}

static void *writer(void *arg)
{
	static const char *const quotas[] = { "1", "max", "3.5", "16" };
	static const char *const modes[] = { "auto", "spatial", "temporal" };
	static const char *const policy[] = { "hpf", "ffs", "wfq", "srt", "corun" };
	unsigned int seed = (uintptr_t)arg;
	char text[4096];

	while (!stop) {
		put(quotas[rand_r(&seed) % 4], ROOT "/%s",
		    rand_r(&seed) & 1 ? "capsm.max" : "a/capsm.max");
		put(modes[rand_r(&seed) % 3], SYSFS "/" DEV_NAME "/mode");
		put(policy[rand_r(&seed) % 4], SYSFS "/" DEV_NAME "/policy");
		put(rand_r(&seed) & 1 ? "100" : "190", SYSFS "/" DEV_NAME "/switch_us");
		put(rand_r(&seed) & 1 ? "500" : "0", ROOT "/%s",
		    rand_r(&seed) & 1 ? "gpu.latency_target_us" : "a/gpu.latency_target_us");
		put(rand_r(&seed) & 1 ? "16M" : "max", ROOT "/%s",
		    rand_r(&seed) & 1 ? "memory.max" : "a/memory.max");
		put(rand_r(&seed) & 1 ? "10" : "0", ROOT "/a/%s",
		    rand_r(&seed) & 1 ? "gpu.priority" : "b/gpu.priority");
		put(rand_r(&seed) & 1 ? "red" : "\n", ROOT "/%s",
		    rand_r(&seed) & 1 ? "a/gpu.band" : "a/b/gpu.band");
		slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/bands");
		slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/band", getpid());
		put(rand_r(&seed) & 1 ? "0" : "65534", ROOT "/%s/owner",
		    rand_r(&seed) & 1 ? "a" : "a/b");
		slurp(text, sizeof(text), ROOT "/a/owner");
		slurp(text, sizeof(text), ROOT "/gpu.stat");
		slurp(text, sizeof(text), ROOT "/a/procs");
		slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots");
		slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/tasks/%d/group", getpid());
		rounds[3]++;
	}
	return NULL;
}

static void *killer(void *arg)
{
	while (!stop) {
		pid_t pid = fork();

		if (pid == 0) {
			int fd = gopen();

			attach(fd, 0);
			submit(fd, 0, 1, 0);
			submit(fd, 1, 1, 0);
			pause();
		}
		usleep(2000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		rounds[4]++;
	}
	return NULL;
}

static void *deleter(void *arg)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "come-and-go-gpu";
	int fd = gopen();

	while (!stop) {
		/* a device of its own that comes and goes, and one in use that must not */
		if (add_device(fd, "other", other, 8) == 0) {
			mkdir(CONFIG "/other/c", 0755);
			del_device(fd, other);
			rmdir(CONFIG "/other/c");
			del_device(fd, other);
		}
		rounds[5]++;
	}
	rmdir(CONFIG "/other/c");
	del_device(fd, other);
	close(fd);
	return NULL;
}

/* Triggers on pressure, of groups and devices that come and go, polled and tables read meanwhile */
static void *watcher(void *arg)
{
	static const char *const dirs[] = { ROOT, ROOT "/a", ROOT "/a/b", CONFIG "/other" };
	unsigned int seed = (uintptr_t)arg, i;
	struct pollfd p[4];
	char text[4096];
	int pressure;

	while (!stop) {
		for (i = 0; i < ARRAY_SIZE(p); i++) {
			snprintf(text, sizeof(text), "%s/gpu.pressure", dirs[rand_r(&seed) % 4]);
			pressure = open(text, O_RDONLY | O_CLOEXEC);
			p[i] = (struct pollfd) { .fd = gopen(), .events = POLLPRI };
			snprintf(text, sizeof(text), "%d some 1 500000", pressure);
			if (write(p[i].fd, text, strlen(text)) > 0)
				rounds[7]++;
			close(pressure);
		}
		poll(p, ARRAY_SIZE(p), (int)(rand_r(&seed) % 200));
		slurp(text, sizeof(text), DEBUGFS "/other/bands");
		slurp(text, sizeof(text), DEBUGFS "/other/slots");
		for (i = 0; i < ARRAY_SIZE(p); i++)
			close(p[i].fd);
	}
	return NULL;
}

/*
 * A processor goes and comes back, with the timer if it has it; and somebody sets the clock, which
 * no time of ours is taken from. It is right again afterwards.
 */
static void *disturber(void *arg)
{
	static const char cpu[] = "/sys/devices/system/cpu/cpu1/online";
	struct timespec wall, start, now;
	unsigned int seed = (uintptr_t)arg;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (!stop) {
		/* there is no such file where processors cannot go */
		if (put("0", cpu) && !access(cpu, F_OK))
			abort();
		clock_gettime(CLOCK_REALTIME, &now);
		now.tv_sec += rand_r(&seed) % 7200 - 3600;
		if (!clock_settime(CLOCK_REALTIME, &now))
			rounds[6]++;
		usleep(50000);
		put("1", cpu);
		usleep(200000);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	wall.tv_sec += now.tv_sec - start.tv_sec;
	clock_settime(CLOCK_REALTIME, &wall);
	return NULL;
}

FIXTURE(hammer) {
};

FIXTURE_SETUP(hammer)
{
}

FIXTURE_TEARDOWN(hammer)
{
}

/* as long as GSCHED_TEST_SECONDS says, and some more under a kernel that checks everything */
TEST_F_TIMEOUT(hammer, everything_at_once, 600)
{
	static void *(*const body[])(void *) = {
		client, client, client, scribbler, scribbler, maker, writer, killer, deleter,
		disturber, watcher, watcher,
	};
	const char *limit = getenv("GSCHED_TEST_SECONDS");
	int admin = test_device(), keep = gopen();
	pthread_t thread[ARRAY_SIZE(body)];
	struct timespec pause_for = { .tv_sec = limit ? atoi(limit) : 5 };
	char text[4096];
	unsigned int i;

	ASSERT_GE(admin, 0);
	ASSERT_EQ(0, attach(keep, 0));
	for (i = 0; i < ARRAY_SIZE(body); i++) {
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, body[i], (void *)(uintptr_t)(i + 1)));
	}
	nanosleep(&pause_for, NULL);
	stop = true;
	for (i = 0; i < ARRAY_SIZE(body); i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < ARRAY_SIZE(rounds); i++) {
		EXPECT_GT(atomic_load(&rounds[i]), 0) TH_LOG("threads of kind %u did nothing", i);
	}
	printf("# rounds: %lu clients, %lu scribblers, %lu groups, %lu values, %lu killed, "
	       "%lu devices, %lu clocks, %lu triggers\n",
	       rounds[0], rounds[1], rounds[2], rounds[3], rounds[4], rounds[5], rounds[6],
	       rounds[7]);
	fflush(stdout);
	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat");
	EXPECT_EQ(1, stat_of(text, "clients"));
	EXPECT_EQ(0, stat_of(text, "adopted"));
	slurp(text, sizeof(text), ROOT "/capsm.current");
	EXPECT_STREQ("0", text);
	slurp(text, sizeof(text), ROOT "/memory.current");
	EXPECT_STREQ("0", text);
	put("max", ROOT "/capsm.max");
	put("auto", SYSFS "/" DEV_NAME "/mode");
	put("hpf", SYSFS "/" DEV_NAME "/policy");
	EXPECT_EQ(0, submit(keep, 0, 1, GSCHED_SUBMIT_NOWAIT));
	close(keep);
	rmdir(ROOT "/a/b");
	rmdir(ROOT "/a");
	EXPECT_EQ(0, del_device(admin, dev_uuid));
}

TEST_HARNESS_MAIN
