// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several threads of a process on one file: what one thread reads without a lock, others write. All
 * that is looked for is what a kernel with KCSAN (make check-kcsan) says of it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "common.h"
#include "kselftest_harness.h"

static int file = -1, rival = -1;	/* of the round, and one that competes with it */
static atomic_bool stop;		/* of all threads */

static void *submitter(void *arg)
{
	unsigned int slot = 0, seq = 1;

	while (!stop) {
		submit(file, slot, seq, GSCHED_SUBMIT_NOWAIT);
		submit(rival, slot, seq, GSCHED_SUBMIT_NOWAIT);
		complete(rival, slot, seq);
		complete(file, slot, seq++);
		slot = (slot + 1) % GSCHED_SLOTS;
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct gsched_event events[4];
	struct pollfd p = { .events = POLLIN };

	while (!stop) {
		p.fd = file;
		poll(&p, 1, 0);
		if (read(file, events, sizeof(events)) < 0)
			poll(&p, 1, 0);
		report_activity(file, GSCHED_ACTIVITY_BUSY);
	}
	return NULL;
}

static void *looker(void *arg)
{
	static const char *const files[] = { "lease", "band", "usage", "capsm.max", "group" };
	struct gsched_info info = { .size = sizeof(info) };
	char path[128], text[4096];
	unsigned int i;
	int fd;

	while (!stop) {
		for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
			snprintf(path, sizeof(path), SYSFS "/" DEV_NAME "/tasks/%d/%s", getpid(),
				 files[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0 && read(fd, text, sizeof(text)) < 0 && errno != ENODEV)
				abort();
			close(fd);
		}
		slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/slots");
		slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/bands");
		xioctl(file, GSCHED_IOC_INFO, &info);
	}
	return NULL;
}

/* Other devices come and go, and so do limits of this one */
static void *changer(void *arg)
{
	static const unsigned char other[GSCHED_UUID_SIZE] = "another-device!";
	int fd = gopen();

	while (!stop) {
		add_device(fd, "other", other, 4);
		put("4", SYSFS "/" DEV_NAME "/clients_max");
		put("3", CONFIG "/" DEV_NAME "/capsm.max");
		del_device(fd, other);
		put("256", SYSFS "/" DEV_NAME "/clients_max");
		put("max", CONFIG "/" DEV_NAME "/capsm.max");
	}
	close(fd);
	return NULL;
}

static long seconds(void)
{
	const char *limit = getenv("GSCHED_TEST_SECONDS");

	return limit ? atol(limit) : 3;
}

/* As the module is asked to: a client is sent away in the middle of it, and the next one comes */
TEST(threads_of_one_file)
{
	static void *(*const body[])(void *) = { submitter, reader, looker, changer };
	enum { N = sizeof(body) / sizeof(body[0]) };
	pthread_t thread[N];
	time_t end = time(NULL) + seconds();
	struct timespec nap = { .tv_nsec = 20000000 };
	struct gsched_device_del del = {
		.size = sizeof(del), .flags = GSCHED_DEVICE_DEL_FORCE,
	};
	int admin, i, rounds = 0;

	memcpy(del.uuid, dev_uuid, sizeof(del.uuid));
	while (time(NULL) < end) {
		admin = test_device();
		ASSERT_GE(admin, 0);
		file = gopen();
		rival = gopen();
		stop = false;
		for (i = 0; i < N; i++)
			ASSERT_EQ(0, pthread_create(&thread[i], NULL, body[i], NULL));
		EXPECT_EQ(0, attach(file, GSCHED_ATTACH_MPS));
		EXPECT_EQ(0, attach(rival, GSCHED_ATTACH_MPS));
		nanosleep(&nap, NULL);
		EXPECT_EQ(0, xioctl(admin, GSCHED_IOC_DEVICE_DEL, &del));
		stop = true;
		for (i = 0; i < N; i++)
			pthread_join(thread[i], NULL);
		close(file);
		close(rival);
		close(admin);
		rounds++;
	}
	EXPECT_LT(0, rounds);
	printf("# %d rounds\n", rounds);
}

TEST_HARNESS_MAIN
