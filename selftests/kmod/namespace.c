// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files in a container: paths of cgroups and numbers of processes are those of the namespaces
 * of who reads and writes.
 */
#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define CG	"/sys/fs/cgroup/gsched-test"

FIXTURE(namespace) {
	int admin;
	char text[4096];
};

FIXTURE_SETUP(namespace)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
	mkdir(CG, 0755);
	mkdir(CG "/deep", 0755);
}

FIXTURE_TEARDOWN(namespace)
{
	rmdir(ROOT "/b");
	rmdir(ROOT "/a");
	rmdir(CG "/deep");
	rmdir(CG);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/* The step that failed, from 1, or 0 */
static int in_cgroup_namespace(void)
{
	char text[256];

	if (put("0", CG "/cgroup.procs") || unshare(CLONE_NEWCGROUP))
		return 1;
	slurp(text, sizeof(text), ROOT "/a/cgroup");
	if (strcmp(text, "/deep"))
		return 2;
	/* what was read may be written, and is the same cgroup */
	if (put(text, ROOT "/a/cgroup"))
		return 3;
	if (put(text, ROOT "/b/cgroup") != -EBUSY)
		return 4;
	if (put("/gsched-test/deep", ROOT "/b/cgroup") != -ENOENT)
		return 5;
	if (put("/", ROOT "/b/cgroup"))
		return 6;
	slurp(text, sizeof(text), ROOT "/b/cgroup");
	return strcmp(text, "/") ? 7 : 0;
}

/* A namespace whose root is below the group's cgroup: the way there leads up */
static int below_the_cgroup(void)
{
	char text[256];

	if (put("0", CG "/deep/cgroup.procs") || unshare(CLONE_NEWCGROUP))
		return 1;
	slurp(text, sizeof(text), ROOT "/b/cgroup");
	return strcmp(text, "/..") ? 2 : 0;
}

static int run(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(namespace, cgroup)
{
	ASSERT_EQ(0, put("/gsched-test/deep", ROOT "/a/cgroup"));
	EXPECT_EQ(0, run(in_cgroup_namespace));
	slurp(self->text, sizeof(self->text), ROOT "/a/cgroup");
	EXPECT_STREQ("/gsched-test/deep", self->text);
	slurp(self->text, sizeof(self->text), ROOT "/b/cgroup");
	EXPECT_STREQ("/gsched-test", self->text);
	EXPECT_EQ(0, run(below_the_cgroup));
}

/* First process of its pid namespace; the parent, in another one, is in the group already */
static int first_process(void)
{
	char text[256];

	slurp(text, sizeof(text), ROOT "/a/procs");
	if (strcmp(text, ""))
		return 11;
	if (put("1", ROOT "/a/procs"))
		return 12;
	slurp(text, sizeof(text), ROOT "/a/procs");
	if (strcmp(text, "1"))
		return 13;
	/* a process that is not in this namespace has no number here */
	if (put("100", ROOT "/a/procs") != -ESRCH)
		return 14;
	return getpid() == 1 ? 0 : 15;
}

static int in_pid_namespace(void)
{
	if (put("0", ROOT "/a/procs") || unshare(CLONE_NEWPID))
		return 1;
	return run(first_process);
}

TEST_F(namespace, procs)
{
	EXPECT_EQ(0, run(in_pid_namespace));
	/* 1 was not taken for the first process of all */
	ASSERT_EQ(0, slurp(self->text, sizeof(self->text), ROOT "/a/procs"))
		TH_LOG("%s", self->text);
}

TEST_HARNESS_MAIN
