// SPDX-License-Identifier: GPL-2.0-only
/* The files: configfs groups and their values, bindings by pid and by cgroup, sysfs. */
#include <sys/prctl.h>

#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define PLAN	SYSFS "/" DEV_NAME "/plan"
#define TASKS	SYSFS "/" DEV_NAME "/tasks"
#define CG	"/sys/fs/cgroup/gsched-test"

FIXTURE(config) {
	int admin, fd;
	char text[4096];
};

FIXTURE_SETUP(config)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->fd = gopen();
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/a/b", 0755));
}

FIXTURE_TEARDOWN(config)
{
	close(self->fd);
	rmdir(ROOT "/a/b");
	rmdir(ROOT "/a");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

TEST_F(config, directories)
{
	struct stat st;

	EXPECT_EQ(-1, mkdir(ROOT "/a", 0755));
	EXPECT_EQ(EEXIST, errno);
	EXPECT_EQ(-1, mkdir(ROOT "/x y", 0755));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, mkdir(ROOT "/nowhere/c", 0755));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-1, mkdir(ROOT "/a/procs", 0755));
	EXPECT_EQ(EEXIST, errno);
	EXPECT_EQ(-1, mkdir(CONFIG "/gpu9", 0755));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(-1, rmdir(ROOT "/a"));
	EXPECT_EQ(ENOTEMPTY, errno);
	EXPECT_EQ(-1, rmdir(ROOT));
	EXPECT_EQ(EPERM, errno);
	ASSERT_EQ(0, stat(ROOT "/a/b/capsm.max", &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	ASSERT_EQ(0, stat(ROOT "/a/b/capsm.current", &st));
	EXPECT_EQ(0400, st.st_mode & 07777);
	ASSERT_EQ(0, stat(ROOT "/a/b/memory.max", &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	ASSERT_EQ(0, stat(ROOT "/a/b/memory.current", &st));
	EXPECT_EQ(0400, st.st_mode & 07777);
	ASSERT_EQ(0, stat(ROOT "/a/b/gpu.pressure", &st));
	EXPECT_EQ(0400, st.st_mode & 07777);
	ASSERT_EQ(0, stat(SYSFS "/" DEV_NAME "/events", &st));
	EXPECT_EQ(0400, st.st_mode & 07777);
	EXPECT_EQ(0, rmdir(ROOT "/a/b"));
	EXPECT_EQ(0, mkdir(ROOT "/a/b", 0755));
}

/* Nesting ends somewhere, with EINVAL, and comes apart again */
TEST_F(config, nested_too_deep)
{
	char path[4096] = ROOT "/a";
	int depth = 0, i;

	while (depth < 200) {
		strcat(path, "/d");
		if (mkdir(path, 0755))
			break;
		depth++;
	}
	EXPECT_EQ(EINVAL, errno);
	EXPECT_GT(depth, 2);
	EXPECT_LT(depth, 200);
	for (i = 0; i < depth; i++) {
		path[strlen(path) - 2] = '\0';
		EXPECT_EQ(0, rmdir(path));
	}
}

struct value {
	const char *file, *good, *shown;
};

TEST_F(config, good_values)
{
	static const struct value values[] = {
		{ "capsm.max", "4", "4" },
		{ "capsm.max", "1.5\n", "1.5" },
		{ "capsm.max", "16", "16" },
		{ "capsm.max", "max\n", "max" },
		{ "capsm.min", "2", "2" },
		{ "capsm.min", "0", "0" },
		{ "capsm.reserve", "2.5", "2.5" },
		{ "capsm.reserve", "0", "0" },
		{ "capsm.reserve", "auto", "auto" },
		{ "gpu.weight", "1", "1" },
		{ "gpu.weight", "200\n", "200" },
		{ "gpu.priority", "0", "0" },
		{ "gpu.priority", "99\n", "99" },
		{ "gpu.latency_target_us", "10000000", "10000000" },
		{ "gpu.latency_target_us", "0\n", "0" },
		{ "memory.max", "0", "0" },
		{ "memory.max", "4096\n", "4096" },
		{ "memory.max", "4K", "4096" },
		{ "memory.max", "3M\n", "3145728" },
		{ "memory.max", "2G", "2147483648" },
		{ "memory.max", "1024T", "1125899906842624" },
		{ "memory.max", "1125899906842624", "1125899906842624" },
		{ "memory.max", "max\n", "max" },
		{ "gpu.band", "red-1_x\n", "red-1_x" },
		{ "gpu.band", "abcdefghijklmnopqrstuvwxyz01234",
		  "abcdefghijklmnopqrstuvwxyz01234" },
		{ "gpu.band", "\n", "" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		EXPECT_EQ(0, put(values[i].good, ROOT "/a/%s", values[i].file))
			TH_LOG("%s = %s", values[i].file, values[i].good);
		slurp(self->text, sizeof(self->text), ROOT "/a/%s", values[i].file);
		EXPECT_STREQ(values[i].shown, self->text) TH_LOG("%s", values[i].file);
	}
}

TEST_F(config, bad_values_keep_the_old_one)
{
	static const char *const numbers[] = { "\n", "x", "-1", "4x",
					       "4 4", "1e3", "0x4", "99999999999999999999",
					       "1..5", "4\n5\n" };
	static const struct { const char *file, *bad; } more[] = {
		{ "capsm.max", "0" }, { "capsm.max", "17" }, { "capsm.max", "16.001" },
		{ "capsm.min", "17" }, { "capsm.reserve", "17" }, { "capsm.reserve", "max" },
		{ "gpu.weight", "0" }, { "gpu.weight", "1.5" },
		{ "gpu.priority", "100" }, { "gpu.priority", "max" }, { "gpu.weight", "max" },
		{ "gpu.latency_target_us", "10000001" }, { "gpu.latency_target_us", "max" },
		{ "memory.max", "K" }, { "memory.max", "4P" }, { "memory.max", "4KB" },
		{ "memory.max", "4 K" }, { "memory.max", "4KK" }, { "memory.max", "1.5G" },
		{ "memory.max", "1025T" }, { "memory.max", "1048577G" }, { "memory.max", "auto" },
		{ "memory.max", "1125899906842625" }, { "memory.max", "18014398509481985K" },
	};
	static const char *const files[] = {
		"capsm.max", "capsm.min", "capsm.reserve", "gpu.weight", "gpu.priority",
		"gpu.latency_target_us", "memory.max",
	};
	unsigned int i, j;
	char before[64];

	for (j = 0; j < ARRAY_SIZE(files); j++) {
		ASSERT_EQ(0, put("3", ROOT "/a/%s", files[j]));
		ASSERT_GT(slurp(before, sizeof(before), ROOT "/a/%s", files[j]), 0);
		for (i = 0; i < ARRAY_SIZE(numbers); i++) {
			EXPECT_EQ(-EINVAL, put(numbers[i], ROOT "/a/%s", files[j]))
				TH_LOG("%s = %s", files[j], numbers[i]);
		}
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			if (strcmp(more[i].file, files[j]))
				continue;
			EXPECT_EQ(-EINVAL, put(more[i].bad, ROOT "/a/%s", more[i].file))
				TH_LOG("%s = %s", more[i].file, more[i].bad);
		}
		slurp(self->text, sizeof(self->text), ROOT "/a/%s", files[j]);
		EXPECT_STREQ(before, self->text);
	}
}

TEST_F(config, band_of_a_group)
{
	static const char *const bad[] = {
		"Red", "a b", "a/b", "a.b", "a\nb", "a\n\n", "abcdefghijklmnopqrstuvwxyz012345"
	};
	unsigned int i;

	ASSERT_EQ(0, put("red", ROOT "/a/gpu.band"));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, put(bad[i], ROOT "/a/gpu.band")) TH_LOG("%s", bad[i]);
	}
	slurp(self->text, sizeof(self->text), ROOT "/a/gpu.band");
	EXPECT_STREQ("red", self->text);
	/* inherited, unless it has one itself */
	slurp(self->text, sizeof(self->text), ROOT "/a/b/gpu.band");
	EXPECT_STREQ("red", self->text);
	ASSERT_EQ(0, put("blue", ROOT "/a/b/gpu.band"));
	slurp(self->text, sizeof(self->text), ROOT "/a/b/gpu.band");
	EXPECT_STREQ("blue", self->text);
	/* a process cannot change its channel group: not while there are clients, also below */
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach(self->fd, 0));
	EXPECT_EQ(-EBUSY, put("green", ROOT "/a/b/gpu.band"));
	EXPECT_EQ(-EBUSY, put("green", ROOT "/a/gpu.band"));
	EXPECT_EQ(-EBUSY, put("\n", ROOT "/a/b/gpu.band"));
	EXPECT_EQ(-EINVAL, put("Green", ROOT "/a/b/gpu.band"));
	EXPECT_EQ(0, put("blue\n", ROOT "/a/b/gpu.band"));
	slurp(self->text, sizeof(self->text), TASKS "/%d/band", getpid());
	EXPECT_EQ(0, strncmp(self->text, "name blue\n", 10));
	close(self->fd);
	EXPECT_EQ(0, put("green", ROOT "/a/b/gpu.band"));
	self->fd = gopen();
}

TEST_F(config, embedded_nul_and_long_values)
{
	char big[3000];
	int fd = open(ROOT "/a/capsm.max", O_WRONLY);

	EXPECT_EQ(-1, write(fd, "4\0x", 3));
	EXPECT_EQ(EINVAL, errno);
	close(fd);
	memset(big, '1', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	EXPECT_EQ(-EINVAL, put(big, ROOT "/a/capsm.max"));
	EXPECT_EQ(-EINVAL, put(big, ROOT "/a/procs"));
	EXPECT_EQ(-EINVAL, put(big, ROOT "/a/cgroup"));
}

TEST_F(config, read_only_files)
{
	/* root passes the mode bits; configfs refuses the write itself, or the core does */
	EXPECT_GT(0, put("1", ROOT "/a/capsm.current"));
	EXPECT_GT(0, put("1", ROOT "/a/memory.current"));
	EXPECT_GT(0, put("1", ROOT "/a/memory.peak"));
	EXPECT_GT(0, put("1", ROOT "/a/gpu.stat"));
	EXPECT_GT(slurp(self->text, sizeof(self->text), ROOT "/a/gpu.stat"), 0);
	EXPECT_GE(stat_of(self->text, "grants"), 0);
	EXPECT_GT(0, put("some 150000 1000000", ROOT "/a/gpu.pressure"));
	slurp(self->text, sizeof(self->text), ROOT "/a/gpu.pressure");
	EXPECT_STREQ("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		     "full avg10=0.00 avg60=0.00 avg300=0.00 total=0", self->text);
	EXPECT_GT(0, put("1", ROOT "/a/gpu.events"));
	slurp(self->text, sizeof(self->text), ROOT "/a/gpu.events");
	EXPECT_STREQ("evictions 0\nthrottled 0\ngated 0\noverdue 0\nlate 0\nrefused 0\n"
		     "memory_max 0", self->text);
}

static int nobody_writes(void *arg)
{
	return put("4", "%s", (const char *)arg);
}

static int nobody_makes(void *arg)
{
	return mkdir(ROOT "/a/mine", 0755) ? -errno : 0;
}

TEST_F(config, other_peoples_groups)
{
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/a/capsm.max"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/capsm.max"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/a/procs"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/a/gpu.band"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/a/memory.max"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, SYSFS "/" DEV_NAME "/switch_us"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, SYSFS "/" DEV_NAME "/mode"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_makes, NULL));
}

static int nobody_binds_init(void *arg)
{
	return put("1", ROOT "/a/procs");
}

static int nobody_binds_itself(void *arg)
{
	return put("0", ROOT "/a/procs");
}

/* The administrator handed the group to nobody: own processes only */
TEST_F(config, delegated_group)
{
	ASSERT_EQ(0, chown(ROOT "/a/procs", 65534, 65534));
	EXPECT_EQ(-EPERM, as_nobody(nobody_binds_init, NULL));
	EXPECT_EQ(0, as_nobody(nobody_binds_itself, NULL));
}

static uid_t owner_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? (uid_t)-1 : st.st_uid;
}

/* The same by one file, and back */
TEST_F(config, owner)
{
	static const char *const bad[] = { "\n", "x", "-1", "4294967295", "4294967296", "0 0" };
	unsigned int i;

	slurp(self->text, sizeof(self->text), ROOT "/a/owner");
	EXPECT_STREQ("0", self->text);
	ASSERT_EQ(0, put("65534\n", ROOT "/a/owner"));
	slurp(self->text, sizeof(self->text), ROOT "/a/owner");
	EXPECT_STREQ("65534", self->text);
	EXPECT_EQ(65534, owner_of(ROOT "/a"));
	EXPECT_EQ(65534, owner_of(ROOT "/a/procs"));
	EXPECT_EQ(65534, owner_of(ROOT "/a/gpu.stat"));
	EXPECT_EQ(65534, owner_of(ROOT "/a/gpu.preemption"));
	EXPECT_EQ(0, owner_of(ROOT "/a/capsm.max"));
	EXPECT_EQ(0, owner_of(ROOT "/a/cgroup"));
	EXPECT_EQ(0, owner_of(ROOT "/a/owner"));
	EXPECT_EQ(0, owner_of(ROOT "/a/b"));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, put(bad[i], ROOT "/a/owner")) TH_LOG("%s", bad[i]);
	}
	EXPECT_EQ(-EINVAL, put("65534", ROOT "/owner"));
	slurp(self->text, sizeof(self->text), ROOT "/a/owner");
	EXPECT_STREQ("65534", self->text);
	EXPECT_EQ(0, as_nobody(nobody_binds_itself, NULL));
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, ROOT "/a/owner"));
	/* nor by one whom the file was given */
	ASSERT_EQ(0, chown(ROOT "/a/owner", 65534, 65534));
	EXPECT_EQ(-EPERM, as_nobody(nobody_writes, ROOT "/a/owner"));
	ASSERT_EQ(0, put("0", ROOT "/a/owner"));
	EXPECT_EQ(-EACCES, as_nobody(nobody_binds_itself, NULL));
	/* as chown(1) does it */
	ASSERT_EQ(0, chown(ROOT "/a", 65534, -1));
	slurp(self->text, sizeof(self->text), ROOT "/a/owner");
	EXPECT_STREQ("65534", self->text);
}

#define GROUP_IS(expected) do { \
		slurp(self->text, sizeof(self->text), TASKS "/%d/group", getpid()); \
		EXPECT_STREQ(expected, self->text); \
	} while (0)

TEST_F(config, procs_bad_input)
{
	EXPECT_EQ(-EINVAL, put("x", ROOT "/a/procs"));
	EXPECT_EQ(-EINVAL, put("-1", ROOT "/a/procs"));
	EXPECT_EQ(-EINVAL, put("\n", ROOT "/a/procs"));
	EXPECT_EQ(-ESRCH, put("4194304", ROOT "/a/procs"));
}

/* More processes than configfs has room for: the file does not say a part of them */
TEST_F_TIMEOUT(config, procs_of_many, 180)
{
	static pid_t pid[1500];
	int n, ret = 0;

	for (n = 0; n < (int)ARRAY_SIZE(pid) && ret >= 0; n++) {
		pid[n] = fork();
		if (pid[n] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		ASSERT_GT(pid[n], 0);
		ASSERT_EQ(0, put_pid(pid[n], ROOT "/a/procs"));
		ret = slurp(self->text, sizeof(self->text), ROOT "/a/procs");
	}
	EXPECT_EQ(-EFBIG, ret);
	EXPECT_GT(n, 500);
	kill(pid[--n], SIGKILL);
	waitpid(pid[n], NULL, 0);
	EXPECT_GT(slurp(self->text, sizeof(self->text), ROOT "/a/procs"), 0);
	while (n--) {
		kill(pid[n], SIGKILL);
		waitpid(pid[n], NULL, 0);
	}
	EXPECT_EQ(0, slurp(self->text, sizeof(self->text), ROOT "/a/procs"));
}

TEST_F(config, procs_before_attach)
{
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/a/b/procs"));
	slurp(self->text, sizeof(self->text), ROOT "/a/b/procs");
	EXPECT_EQ(getpid(), atoi(self->text));
	ASSERT_EQ(0, attach(self->fd, 0));
	GROUP_IS("a/b");
}

TEST_F(config, procs_moves_a_running_client)
{
	struct gsched_event event;

	ASSERT_EQ(0, put("6", ROOT "/a/capsm.max"));
	ASSERT_EQ(0, attach(self->fd, 0));
	GROUP_IS("/");
	ASSERT_EQ(0, submit(self->fd, 0, 1, 0));
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	GROUP_IS("a/b");
	ASSERT_TRUE(next_event(self->fd, &event));
	EXPECT_EQ(GSCHED_EVENT_EVICT, event.type);
	EXPECT_EQ(6 * GSCHED_CAPSM, event.window);
	slurp(self->text, sizeof(self->text), ROOT "/a/b/capsm.current");
	EXPECT_STREQ("6", self->text);
	/* one group at a time */
	ASSERT_EQ(0, put_pid(getpid(), ROOT "/procs"));
	GROUP_IS("/");
	slurp(self->text, sizeof(self->text), ROOT "/a/b/procs");
	EXPECT_STREQ("", self->text);
}

TEST_F(config, procs_binds_what_is_forked)
{
	int status;
	pid_t pid;

	ASSERT_EQ(0, put("0", ROOT "/a/procs"));
	pid = fork();
	if (pid == 0) {
		char text[64];

		if (attach(gopen(), 0))
			_exit(1);
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		_exit(strcmp(text, "a") ? 2 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* rmdir of a group with a client in it: the client belongs to the one above */
TEST_F(config, rmdir_with_a_client)
{
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach(self->fd, 0));
	ASSERT_EQ(0, submit(self->fd, 0, 1, 0));
	GROUP_IS("a/b");
	ASSERT_EQ(0, rmdir(ROOT "/a/b"));
	GROUP_IS("a");
	slurp(self->text, sizeof(self->text), ROOT "/a/procs");
	EXPECT_EQ(getpid(), atoi(self->text));
	ASSERT_EQ(0, rmdir(ROOT "/a"));
	GROUP_IS("/");
	EXPECT_EQ(0, complete(self->fd, 0, 1));
}

/* An attribute that is open while its group goes */
TEST_F(config, rmdir_with_an_open_file)
{
	int fd = open(ROOT "/a/b/capsm.max", O_RDWR);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, rmdir(ROOT "/a/b"));
	EXPECT_EQ(-1, write(fd, "4", 1));
	EXPECT_EQ(-1, read(fd, self->text, 16));
	close(fd);
}

TEST_F(config, cgroup_binding)
{
	int status;
	pid_t pid;

	mkdir(CG, 0755);
	mkdir(CG "/deep", 0755);
	EXPECT_EQ(-EINVAL, put("gsched-test", ROOT "/a/cgroup"));
	EXPECT_EQ(-ENOENT, put("/no/such/cgroup", ROOT "/a/cgroup"));
	ASSERT_EQ(0, put("/gsched-test\n", ROOT "/a/cgroup"));
	slurp(self->text, sizeof(self->text), ROOT "/a/cgroup");
	EXPECT_STREQ("/gsched-test", self->text);
	EXPECT_EQ(-EBUSY, put("/gsched-test", ROOT "/a/b/cgroup"));
	/* the deepest match wins */
	ASSERT_EQ(0, put("/gsched-test/deep", ROOT "/a/b/cgroup"));
	pid = fork();
	if (pid == 0) {
		char text[64];

		if (put("0", CG "/cgroup.procs") || attach(gopen(), 0))
			_exit(1);
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		if (strcmp(text, "a"))
			_exit(2);
		if (put("0", CG "/deep/cgroup.procs") || attach(gopen(), 0))
			_exit(3);
		/* the second connection of the process has a directory of its own */
		if (system("grep -qx a/b " TASKS "/$PPID-*/group"))
			_exit(4);
		/* a binding by pid is stronger */
		if (put_pid(getpid(), ROOT "/procs"))
			_exit(5);
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		_exit(strcmp(text, "/") ? 6 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(0, put("\n", ROOT "/a/b/cgroup"));
	slurp(self->text, sizeof(self->text), ROOT "/a/b/cgroup");
	EXPECT_STREQ("", self->text);
	/* a bound cgroup can go away */
	EXPECT_EQ(0, rmdir(CG "/deep"));
	EXPECT_EQ(0, rmdir(CG));
	EXPECT_GE(slurp(self->text, sizeof(self->text), ROOT "/a/cgroup"), 0);
}

/* A service that restarts has another cgroup, of the same path */
TEST_F(config, cgroup_made_anew)
{
	int status;
	pid_t pid;

	mkdir(CG, 0755);
	mkdir(CG "/deep", 0755);
	ASSERT_EQ(0, put("/gsched-test", ROOT "/a/cgroup"));
	ASSERT_EQ(0, put("/gsched-test/deep", ROOT "/a/b/cgroup"));
	ASSERT_EQ(0, rmdir(CG "/deep"));
	ASSERT_EQ(0, rmdir(CG));
	ASSERT_EQ(0, mkdir(CG, 0755));
	ASSERT_EQ(0, mkdir(CG "/deep", 0755));
	ASSERT_EQ(0, mkdir(CG "/other", 0755));
	pid = fork();
	if (pid == 0) {
		char text[64];

		if (put("0", CG "/other/cgroup.procs") || attach(gopen(), 0))
			_exit(1);
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		if (strcmp(text, "a"))
			_exit(2);
		if (put("0", CG "/deep/cgroup.procs") || attach(gopen(), 0))
			_exit(3);
		_exit(system("grep -qx a/b " TASKS "/$PPID-*/group") ? 4 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(-EBUSY, put("/gsched-test", ROOT "/a/b/cgroup"));
	EXPECT_EQ(0, put("/gsched-test", ROOT "/a/cgroup"));
	EXPECT_EQ(0, rmdir(CG "/other"));
	EXPECT_EQ(0, rmdir(CG "/deep"));
	EXPECT_EQ(0, rmdir(CG));
}

TEST_F(config, quota_of_a_parent_binds_the_child)
{
	struct gsched_submit req = task(0, 1, 0);

	ASSERT_EQ(0, put("3", ROOT "/a/capsm.max"));
	ASSERT_EQ(0, put("5", ROOT "/a/b/capsm.max"));
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach(self->fd, 0));
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(3 * GSCHED_CAPSM, req.window);
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("3", self->text);
}

TEST_F(config, priority_reaches_the_page)
{
	const volatile struct gsched_arb_page *arb;
	struct gsched_attach req;

	ASSERT_EQ(0, put("70", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, put("0", ROOT "/a/procs"));
	ASSERT_EQ(0, attach_as(self->fd, 0, &req));
	EXPECT_EQ(70, req.priority);
	arb = map_arb(self->fd, &req);
	ASSERT_EQ(0, put("80", ROOT "/a/gpu.priority"));
	EXPECT_EQ(80, arb->header.priority);
	EXPECT_EQ(80, arb->header.top_priority);
	munmap((void *)arb, req.arb_size);
}

/* Reads until the window is that. On a slow machine kernels are late, and have all for a moment */
static bool reaches(int fd, struct gsched_event *event, unsigned int window)
{
	while (next_event(fd, event))
		if (event->window == window)
			return true;
	return false;
}

/* Two clients side by side under MPS, and what the more important one needs is taken from the other
 */
TEST_F(config, priority_evicts)
{
	struct gsched_submit req = task(0, 1, 0);
	struct gsched_event event;
	int other = gopen(), status, ready[2], go[2];
	char c = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, put("70", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, attach(self->fd, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(WHOLE, req.window);
	pid = fork();
	if (pid == 0) {
		struct gsched_submit mine = task(0, 1, 0);

		if (put("0", ROOT "/a/procs") || attach(other, GSCHED_ATTACH_MPS))
			_exit(1);
		mine.blocks = 4;
		if (xioctl(other, GSCHED_IOC_SUBMIT, &mine) || mine.window < 4 * GSCHED_CAPSM)
			_exit(2);
		if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) != 1)
			_exit(3);
		_exit(0);
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	EXPECT_TRUE(reaches(self->fd, &event, 12 * GSCHED_CAPSM));
	ASSERT_EQ(1, write(go[1], "g", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* the connection outlives the child here: it is ours, and the capacity is back all the same
	 */
	EXPECT_TRUE(reaches(self->fd, &event, WHOLE));
	EXPECT_EQ(GSCHED_EVENT_GROW, event.type);
	EXPECT_EQ(-ENOTCONN, submit(other, 0, 2, 0));
	close(other);
}

/*
 * Capacity kept free for the next kernel of an important client comes back by the arbiter's timer:
 * no call is made while the growth is waited for.
 */
TEST_F(config, held_capacity_comes_back)
{
	struct gsched_submit req = task(0, 1, 0);
	struct gsched_event event;
	int status, ready[2], go[2];
	char c = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, put("70", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, attach(self->fd, GSCHED_ATTACH_MPS));
	req.block_ns = 1000000;
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	pid = fork();
	if (pid == 0) {
		struct gsched_submit mine = task(0, 1, 0);
		int fd = gopen();
		unsigned int i;

		if (put("0", ROOT "/a/procs") || attach(fd, GSCHED_ATTACH_MPS))
			_exit(1);
		mine.blocks = 4;
		mine.predicted_ns = 50000;
		for (i = 1; i < 5; i++) {
			mine.seq = i;
			if (xioctl(fd, GSCHED_IOC_SUBMIT, &mine) || complete(fd, 0, i))
				_exit(2);
		}
		if (write(ready[1], "r", 1) != 1 || read(go[0], &c, 1) != 1)
			_exit(3);
		_exit(0);
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	EXPECT_TRUE(reaches(self->fd, &event, WHOLE));
	ASSERT_EQ(1, write(go[1], "g", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(config, sysfs_device)
{
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/sms");
	EXPECT_EQ(DEV_SMS, atoi(self->text));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/uuid");
	EXPECT_STREQ("67736368-6564-2d6b-7365-6c6674657374", self->text);
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/mode");
	EXPECT_STREQ("[auto] temporal spatial", self->text);
	EXPECT_EQ(0, put("temporal", SYSFS "/" DEV_NAME "/mode"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/mode");
	EXPECT_STREQ("auto [temporal] spatial", self->text);
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/mode_current");
	EXPECT_STREQ("temporal", self->text);
	EXPECT_EQ(0, put("spatial\n", SYSFS "/" DEV_NAME "/mode"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/mode");
	EXPECT_STREQ("auto temporal [spatial]", self->text);
	EXPECT_EQ(-EINVAL, put("both", SYSFS "/" DEV_NAME "/mode"));
	EXPECT_EQ(-EINVAL, put("sliced", SYSFS "/" DEV_NAME "/mode"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/mode");
	EXPECT_STREQ("auto temporal [spatial]", self->text);
	EXPECT_EQ(0, put("auto", SYSFS "/" DEV_NAME "/mode"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
	EXPECT_STREQ("[hpf] srt ffs wfq corun plan", self->text);
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy_fault");
	EXPECT_STREQ("", self->text);
	EXPECT_EQ(0, put("ffs\n", SYSFS "/" DEV_NAME "/policy"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
	EXPECT_STREQ("hpf srt [ffs] wfq corun plan", self->text);
	EXPECT_EQ(0, put("wfq\n", SYSFS "/" DEV_NAME "/policy"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
	EXPECT_STREQ("hpf srt ffs [wfq] corun plan", self->text);
	EXPECT_EQ(-EINVAL, put("none", SYSFS "/" DEV_NAME "/policy"));
	EXPECT_EQ(-EINVAL, put("chaos", SYSFS "/" DEV_NAME "/policy"));
	EXPECT_EQ(-EINVAL,
		  put("a-name-much-longer-than-any-policy-has", SYSFS "/" DEV_NAME "/policy"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
	EXPECT_STREQ("hpf srt ffs [wfq] corun plan", self->text);
	EXPECT_EQ(0, put("hpf\n", SYSFS "/" DEV_NAME "/policy"));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/stat");
	EXPECT_EQ(0, stat_of(self->text, "clients"));
	EXPECT_EQ(0, slurp(self->text, sizeof(self->text), DEBUGFS "/" DEV_NAME "/bands"));
}

TEST_F(config, sysfs_parameters)
{
	static const struct { const char *file, *initial, *good, *bad[3]; } params[] = {
		{ "switch_us", "190", "10000", { "9", "10001", "1.5" } },
		{ "max_overhead", "50", "500", { "4", "501", "5 5" } },
		{ "max_slowdown", "200", "1000", { "99", "1001", "2x" } },
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/%s", params[i].file);
		EXPECT_STREQ(params[i].initial, self->text);
		EXPECT_EQ(0, put(params[i].good, SYSFS "/" DEV_NAME "/%s", params[i].file));
		for (j = 0; j < ARRAY_SIZE(params[i].bad); j++) {
			EXPECT_EQ(-EINVAL,
				  put(params[i].bad[j], SYSFS "/" DEV_NAME "/%s", params[i].file))
				TH_LOG("%s = %s", params[i].file, params[i].bad[j]);
		}
		EXPECT_EQ(-EINVAL, put("\n", SYSFS "/" DEV_NAME "/%s", params[i].file));
		EXPECT_EQ(-EINVAL, put("-50", SYSFS "/" DEV_NAME "/%s", params[i].file));
		slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/%s", params[i].file);
		EXPECT_STREQ(params[i].good, self->text);
	}
}

TEST_F(config, sysfs_tasks)
{
	volatile struct gsched_cl_page *cl;
	struct gsched_attach req;
	char line[256];

	ASSERT_EQ(0, attach_as(self->fd, 0, &req));
	slurp(self->text, sizeof(self->text), TASKS "/%d/lease", getpid());
	EXPECT_STREQ("free", self->text);
	slurp(self->text, sizeof(self->text), DEBUGFS "/" DEV_NAME "/slots");
	EXPECT_STREQ("", self->text);
	cl = map_cl(self->fd, &req);
	cl->slot[9].seen_limit = 111;
	cl->slot[9].launched = 22;
	cl->slot[9].left = 3;
	cl->slot[9].start_ns = 44;
	cl->header.managed[2] = 6;
	cl->header.wings = 8;
	cl->header.resumable = 4;
	strcpy((char *)cl->header.why, "because\n");
	ASSERT_EQ(0, submit(self->fd, 9, 5, 0));
	slurp(self->text, sizeof(self->text), DEBUGFS "/" DEV_NAME "/slots");
	snprintf(line, sizeof(line),
		 "client %llu pid %d slot 9 seq 5 tier 0 blocks 1000000 limit %u "
		 "seen 111 launched 22 left 3 start_ns 44 stream 0",
		 (unsigned long long)req.client_id, getpid(), WHOLE);
	EXPECT_STREQ(line, self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/usage", getpid());
	EXPECT_EQ(1, stat_of(self->text, "running"));
	EXPECT_EQ(WHOLE, stat_of(self->text, "limit"));
	EXPECT_EQ(req.client_id, stat_of(self->text, "id"));
	slurp(self->text, sizeof(self->text), TASKS "/%d/why", getpid());
	EXPECT_STREQ("because?", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/managed", getpid());
	EXPECT_EQ(6, stat_of(self->text, "launch"));
	slurp(self->text, sizeof(self->text), TASKS "/%d/wings", getpid());
	EXPECT_STREQ("8", self->text);
	cl->header.passed = 31;
	cl->header.held_ns = 32;
	cl->header.paced_ns = 33;
	cl->header.slice_us = 34;
	cl->header.block_end = ~0u;
	cl->header.activity = GSCHED_ACTIVITY_BUSY;
	slurp(self->text, sizeof(self->text), TASKS "/%d/passed", getpid());
	EXPECT_STREQ("31", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/held_ns", getpid());
	EXPECT_STREQ("32", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/paced_ns", getpid());
	EXPECT_STREQ("33", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/band", getpid());
	snprintf(line, sizeof(line), "name pid-%d\nslice_us 0\napplied_us 34\nslice_error 0\n"
		 "block_end 1\nblock_us 0\nactivity busy\nshare 1.000000", getpid());
	EXPECT_STREQ(line, self->text);
	/* what the page claims is a number, never an index; what was reported is believed rather */
	cl->header.activity = ~0u;
	ASSERT_EQ(0, report_slice(self->fd, 35, 0));
	slurp(self->text, sizeof(self->text), TASKS "/%d/band", getpid());
	snprintf(line, sizeof(line), "name pid-%d\nslice_us 0\napplied_us 35\nslice_error 0\n"
		 "block_end 1\nblock_us 0\nactivity idle\nshare 1.000000", getpid());
	EXPECT_STREQ(line, self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/resumable", getpid());
	EXPECT_STREQ("4", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/unmanaged", getpid());
	EXPECT_STREQ("0", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/comm", getpid());
	EXPECT_STREQ("config", self->text);
	ASSERT_EQ(0, complete(self->fd, 9, 5));
	slurp(self->text, sizeof(self->text), TASKS "/%d/usage", getpid());
	/* with those that it says have passed */
	EXPECT_EQ(32, stat_of(self->text, "tasks"));
	EXPECT_GT(stat_of(self->text, "usage_usec"), 0);
	EXPECT_GE(stat_of(self->text, "capsm_usec"), stat_of(self->text, "usage_usec"));
	/* a launch under the lease is shown as well */
	cl->slot[1].blocks = 77;
	cl->slot[1].seq = 3;
	slurp(self->text, sizeof(self->text), DEBUGFS "/" DEV_NAME "/slots");
	snprintf(line, sizeof(line),
		 "client %llu pid %d slot 1 seq 3 tier 0 blocks 77 limit %u "
		 "seen 0 launched 0 left 0 start_ns 0 stream 0",
		 (unsigned long long)req.client_id, getpid(), WHOLE);
	EXPECT_STREQ(line, self->text);
	munmap((void *)cl, req.cl_size);
}

/*
 * Launches that only the page tells of: counted when somebody looks, and no more of them than there
 * was time for
 */
TEST_F(config, leased_launches_are_counted)
{
	volatile struct gsched_cl_page *cl;
	struct gsched_attach req;
	unsigned long long ran;

	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach_as(self->fd, 0, &req));
	cl = map_cl(self->fd, &req);
	ASSERT_NE(MAP_FAILED, cl);
	usleep(1000);
	cl->header.leased_tasks = 7;
	cl->header.leased_ns = 500000;
	cl->header.leased_usage = 2000000;
	cl->header.paced_ns = 300000;
	slurp(self->text, sizeof(self->text), ROOT "/a/b/gpu.stat");
	EXPECT_EQ(7, stat_of(self->text, "tasks"));
	EXPECT_EQ(500, stat_of(self->text, "ran_usec"));
	EXPECT_EQ(500, stat_of(self->text, "usage_usec"));
	EXPECT_EQ(2000, stat_of(self->text, "capsm_usec"));
	EXPECT_EQ(300, stat_of(self->text, "paced_usec"));
	EXPECT_EQ(0, stat_of(self->text, "grants"));
	/* a lie is bounded by the wall clock, on all levels alike */
	cl->header.leased_tasks = ~0ULL;
	cl->header.leased_ns = ~0ULL;
	cl->header.leased_usage = ~0ULL;
	slurp(self->text, sizeof(self->text), ROOT "/gpu.stat");
	ran = stat_of(self->text, "ran_usec");
	EXPECT_LT(ran, 100000000);
	EXPECT_LE(stat_of(self->text, "capsm_usec"), (ran + 1) * DEV_SMS);
	EXPECT_LE(stat_of(self->text, "tasks"), ran + 8);
	/* going back counts nothing, and what is on the page when the client goes is in */
	cl->header.leased_tasks = 100;
	slurp(self->text, sizeof(self->text), ROOT "/gpu.stat");
	ran = stat_of(self->text, "tasks");
	usleep(1000);
	cl->header.leased_tasks = 103;
	cl->header.paced_ns = 400000;
	munmap((void *)cl, req.cl_size);
	close(self->fd);
	self->fd = gopen();
	slurp(self->text, sizeof(self->text), ROOT "/gpu.stat");
	EXPECT_EQ(ran + 3, stat_of(self->text, "tasks"));
	EXPECT_EQ(400, stat_of(self->text, "paced_usec"));
}

static bool polled(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	return poll(&p, 1, ms) == 1 && p.revents & POLLPRI;
}

/* A launch that waits is pressure and an event, and whoever polls the device's file is told */
TEST_F(config, pressure_and_events)
{
	struct gsched_submit sub = { .size = sizeof(sub),
				     .seq = 1,
				     .tier = GSCHED_TIER_LAUNCH,
				     .blocks_per_sm = 1,
				     .blocks = 1000,
				     .flags = GSCHED_SUBMIT_NOWAIT };
	struct gsched_attach req;
	int fd = gopen(), events;
	char text[256];

	slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/events");
	EXPECT_STREQ("evictions 0\nthrottled 0\ngated 0\noverdue 0\nlate 0\nrefused 0\n"
		     "memory_max 0", text);
	ASSERT_EQ(0, attach_as(fd, GSCHED_ATTACH_MPS, &req));
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach_as(self->fd, GSCHED_ATTACH_MPS, &req));
	events = open(SYSFS "/" DEV_NAME "/events", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, events);
	ASSERT_LT(0, read(events, text, sizeof(text)));
	EXPECT_FALSE(polled(events, 0));
	/* it cannot be evicted */
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &sub));
	EXPECT_FALSE(polled(events, 20));
	EXPECT_EQ(QUEUED, submit(fd, 0, 1, GSCHED_SUBMIT_NOWAIT));
	EXPECT_TRUE(polled(events, 5000));
	ASSERT_LT(0, pread(events, text, sizeof(text), 0));
	EXPECT_EQ(1, stat_of(text, "throttled"));
	EXPECT_FALSE(polled(events, 0));
	usleep(2000);
	slurp(text, sizeof(text), ROOT "/gpu.pressure");
	EXPECT_LE(2000, strtoull(strstr(text, "total=") + 6, NULL, 10)) TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"));
	slurp(text, sizeof(text), ROOT "/a/b/gpu.pressure");
	EXPECT_LE(2000, strtoull(strstr(text, "total=") + 6, NULL, 10)) TH_LOG("%s", text);
	slurp(text, sizeof(text), ROOT "/a/gpu.events");
	EXPECT_EQ(1, stat_of(text, "throttled"));
	EXPECT_EQ(0, complete(self->fd, 0, 1));
	close(fd);
	close(events);
	close(self->fd);
	self->fd = gopen();
}

/* An allocation for all groups at once, until it expires or is taken back */
TEST_F(config, plan)
{
	static const char *const bad[] = {
		"\n", "500", "0 a=1", "60001 a=1", "500 a", "500 a=0", "500 a=17", "500 a=1 a=2",
		"500 a=1 a/b=1", "500 /=1",
	};
	struct gsched_attach req;
	unsigned int i;

	slurp(self->text, sizeof(self->text), PLAN);
	EXPECT_STREQ("none", self->text);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, put(bad[i], PLAN)) TH_LOG("plan %u", i);
	EXPECT_EQ(-ENOENT, put("500 b=1", PLAN));
	EXPECT_EQ(-EINVAL, put("plan", SYSFS "/" DEV_NAME "/policy"));
	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach_as(self->fd, GSCHED_ATTACH_MPS, &req));
	ASSERT_EQ(0, submit(self->fd, 0, 1, 0));
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("16", self->text);
	EXPECT_EQ(0, put("60000 a/b=5\n", PLAN));
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("5", self->text);
	slurp(self->text, sizeof(self->text), ROOT "/a/b/capsm.plan");
	EXPECT_STREQ("5", self->text);
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
	EXPECT_STREQ("hpf srt ffs wfq corun [plan]", self->text);
	slurp(self->text, sizeof(self->text), PLAN);
	EXPECT_EQ(0, strncmp(self->text, "1 groups for 59", 15)) TH_LOG("%s", self->text);
	EXPECT_EQ(-EACCES, as_nobody(nobody_writes, PLAN));
	EXPECT_EQ(0, put("none", PLAN));
	slurp(self->text, sizeof(self->text), ROOT "/a/b/capsm.plan");
	EXPECT_STREQ("none", self->text);
	/* nobody renews it */
	EXPECT_EQ(0, put("1000 a/b=6", PLAN));
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("6", self->text);
	for (i = 0; i < 100; i++) {
		slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/policy");
		if (!strcmp(self->text, "[hpf] srt ffs wfq corun plan"))
			break;
		usleep(50000);
	}
	slurp(self->text, sizeof(self->text), PLAN);
	EXPECT_STREQ("expired without another one: hpf decides again", self->text);
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("16", self->text);
}

/* capsm.reserve keeps SMs of a running task free for a program that has nothing to run */
TEST_F(config, reserve_is_kept)
{
	struct gsched_submit sub = { .size = sizeof(sub),
				     .seq = 1,
				     .blocks_per_sm = 8,
				     .blocks = 1000000,
				     .block_ns = 5000000,
				     .flags = GSCHED_SUBMIT_NOWAIT };
	struct gsched_attach req;
	int ready[2], status;
	pid_t owner;
	char c = 0;

	ASSERT_EQ(0, put("0", ROOT "/a/procs"));
	ASSERT_EQ(0, attach_as(self->fd, GSCHED_ATTACH_MPS, &req));
	ASSERT_EQ(0, put("6", ROOT "/a/b/capsm.reserve"));
	ASSERT_EQ(0, pipe(ready));
	owner = fork();
	if (!owner) {
		int fd = gopen();

		close(ready[0]);
		if (put("0", ROOT "/a/b/procs") || attach_as(fd, GSCHED_ATTACH_MPS, &req))
			_exit(1);
		if (write(ready[1], &c, 1) == 1)
			pause();
		_exit(2);
	}
	close(ready[1]);
	EXPECT_EQ(1, read(ready[0], &c, 1));
	close(ready[0]);
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &sub));
	EXPECT_EQ((DEV_SMS - 6) * GSCHED_CAPSM, sub.window);
	EXPECT_EQ(0, put("auto", ROOT "/a/b/capsm.reserve"));
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("16", self->text);
	EXPECT_EQ(0, put("6", ROOT "/a/b/capsm.reserve"));
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("10", self->text);
	/* with its program the reserve goes */
	kill(owner, SIGKILL);
	waitpid(owner, &status, 0);
	slurp(self->text, sizeof(self->text), ROOT "/capsm.current");
	EXPECT_STREQ("16", self->text);
}

/* The counters of a group, with everything below it */
TEST_F(config, stat_counts)
{
	long long used;

	ASSERT_EQ(0, put("0", ROOT "/a/b/procs"));
	ASSERT_EQ(0, attach(self->fd, 0));
	ASSERT_EQ(0, submit(self->fd, 0, 1, 0));
	usleep(1000);
	ASSERT_EQ(0, complete(self->fd, 0, 1));
	/* it stays when the client goes */
	slurp(self->text, sizeof(self->text), ROOT "/a/b/gpu.stat");
	EXPECT_LE(1000, stat_of(self->text, "usage_usec"));
	used = stat_of(self->text, "capsm_usec");
	EXPECT_LE(1000 * DEV_SMS, used);
	close(self->fd);
	self->fd = gopen();
	slurp(self->text, sizeof(self->text), ROOT "/a/b/gpu.stat");
	EXPECT_EQ(used, stat_of(self->text, "capsm_usec"));
	EXPECT_EQ(1, stat_of(self->text, "grants"));
	EXPECT_EQ(1, stat_of(self->text, "tasks"));
	slurp(self->text, sizeof(self->text), ROOT "/gpu.stat");
	EXPECT_EQ(1, stat_of(self->text, "grants"));
	slurp(self->text, sizeof(self->text), ROOT "/a/b/capsm.current");
	EXPECT_STREQ("0", self->text);
}

TEST_HARNESS_MAIN
