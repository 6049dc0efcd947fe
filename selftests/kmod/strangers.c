// SPDX-License-Identifier: GPL-2.0-only
/* What one user can take from others: shares by user, places, tasks that nobody completes. */
#include <dirent.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define TASKS	SYSFS "/" DEV_NAME "/tasks"

FIXTURE(strangers) {
	int admin, fd;
	char text[4096];
};

FIXTURE_SETUP(strangers)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->fd = gopen();
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
}

FIXTURE_TEARDOWN(strangers)
{
	close(self->fd);
	rmdir(ROOT "/a");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

struct other {
	pid_t pid;
	int to, from;
};

/* A child that is @uid and runs @fn; fn hears and tells over two pipes */
static struct other start(uid_t uid, int (*fn)(int from, int to))
{
	int down[2], up[2];
	struct other o = { .pid = -1 };

	if (pipe(down) || pipe(up))
		return o;
	o.pid = fork();
	if (o.pid == 0) {
		close(down[1]);
		close(up[0]);
		if (uid && (setgid(65534) || setuid(uid)))
			_exit(255);
		_exit(fn(down[0], up[1]));
	}
	close(down[0]);
	close(up[1]);
	o.to = down[1];
	o.from = up[0];
	return o;
}

static int hear(int from)
{
	int value;

	return read(from, &value, sizeof(value)) == sizeof(value) ? value : -1000;
}

static void tell(int to, int value)
{
	if (write(to, &value, sizeof(value)) != sizeof(value))
		_exit(254);
}

static int end(struct other *o)
{
	int status;

	/* a child that was forked later has the pipe, too: its end would not be seen */
	tell(o->to, 0);
	close(o->to);
	close(o->from);
	return waitpid(o->pid, &status, 0) == o->pid ? status : -1;
}

static int attached(int from, int to)
{
	tell(to, attach(gopen(), 0));
	tell(to, getpid());
	hear(from);
	return 0;
}

/* How many files of @path can be read that are not among @settings; -errno */
static int readable_beyond(const char *path, const char *settings)
{
	char text[4096], word[300];
	struct dirent *entry;
	DIR *dir = opendir(path);
	int readable = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		snprintf(word, sizeof(word), " %s ", entry->d_name);
		if (entry->d_type == DT_REG && !strstr(settings, word) &&
		    slurp(text, sizeof(text), "%s/%s", path, entry->d_name) != -EACCES) {
			printf("# %s/%s can be read\n", path, entry->d_name);
			readable++;
		}
	}
	closedir(dir);
	return readable;
}

static int onlooker(int from, int to)
{
	char text[4096], path[256];

	snprintf(path, sizeof(path), TASKS "/%d", hear(from));
	tell(to, readable_beyond(path, ""));
	tell(to, readable_beyond(SYSFS "/" DEV_NAME,
				 " sms uuid mode mode_current policy policy_fault plan switch_us "
				 "max_overhead max_slowdown clients_max uevent "));
	tell(to, readable_beyond(ROOT "/a",
				 " capsm.max capsm.min capsm.reserve gpu.weight gpu.priority "
				 "gpu.latency_target_us gpu.band memory.max procs cgroup owner "));
	tell(to, slurp(text, sizeof(text), DEBUGFS "/" DEV_NAME "/bands"));
	tell(to, slurp(text, sizeof(text), SYSFS "/" DEV_NAME "/stat"));
	tell(to, slurp(text, sizeof(text), ROOT "/a/gpu.stat"));
	tell(to, slurp(text, sizeof(text), ROOT "/a/capsm.current"));
	tell(to, slurp(text, sizeof(text), ROOT "/a/capsm.max") > 0);
	hear(from);
	return 0;
}

/* When others' kernels run is not to be read off files; what they may have is */
TEST_F(strangers, others_see_no_times)
{
	struct other o = start(65534, attached), p = start(65533, onlooker);
	int pid;

	EXPECT_EQ(0, hear(o.from));
	pid = hear(o.from);
	tell(p.to, pid);
	EXPECT_EQ(0, hear(p.from));
	EXPECT_EQ(0, hear(p.from));
	EXPECT_EQ(0, hear(p.from));
	EXPECT_EQ(-EACCES, hear(p.from));
	EXPECT_EQ(-EACCES, hear(p.from));
	EXPECT_EQ(-EACCES, hear(p.from));
	EXPECT_EQ(-EACCES, hear(p.from));
	EXPECT_EQ(1, hear(p.from));
	EXPECT_EQ(0, end(&p));
	EXPECT_EQ(0, end(&o));
}

static int outsider(int from, int to)
{
	if (setgroups(0, NULL) || setgid(1) || setuid(65533))
		return 1;
	tell(to, open(GSCHED_DEVICE_NODE, O_RDWR) < 0 ? -errno : 0);
	hear(from);
	return 0;
}

TEST_F(strangers, the_node_is_for_its_group)
{
	struct other o = start(0, outsider);
	struct stat st;

	EXPECT_EQ(-EACCES, hear(o.from));
	EXPECT_EQ(0, end(&o));
	ASSERT_EQ(0, stat(GSCHED_DEVICE_NODE, &st));
	EXPECT_EQ(0660, st.st_mode & 07777);
}

/* As many clients as it gets, each with a task for the whole device */
static int hog(int from, int to)
{
	int n = 0, fd, ret;

	for (;;) {
		fd = gopen();
		ret = attach(fd, GSCHED_ATTACH_MPS);
		if (ret)
			break;
		submit(fd, 0, 1, GSCHED_SUBMIT_NOWAIT);
		n++;
	}
	tell(to, n);
	tell(to, ret);
	hear(from);
	return 0;
}

TEST_F(strangers, descriptors_are_no_shares)
{
	struct gsched_submit req = task(0, 1, 0);
	struct gsched_event event;
	struct other o;

	ASSERT_EQ(0, put("20", SYSFS "/" DEV_NAME "/clients_max"));
	ASSERT_EQ(0, put("0", ROOT "/a/procs"));
	ASSERT_EQ(0, attach(self->fd, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, put("0", ROOT "/procs"));
	o = start(65534, hog);
	/* half of the places that the others leave */
	EXPECT_EQ(10, hear(o.from));
	EXPECT_EQ(-EDQUOT, hear(o.from));
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	/* after 20 ms the user's tasks are late, and it makes way for them for a moment */
	while (req.window != WHOLE / 2 && next_event(self->fd, &event))
		req.window = event.window;
	EXPECT_EQ(WHOLE / 2, req.window);
	EXPECT_EQ(0, end(&o));
}

static int next_user(int from, int to)
{
	int fd = gopen();

	tell(to, attach(fd, GSCHED_ATTACH_MPS));
	hear(from);
	return 0;
}

TEST_F(strangers, one_user_leaves_places)
{
	struct other o, p;
	int fd[8], i;

	ASSERT_EQ(0, put("8", SYSFS "/" DEV_NAME "/clients_max"));
	o = start(65534, hog);
	EXPECT_EQ(4, hear(o.from));
	EXPECT_EQ(-EDQUOT, hear(o.from));
	p = start(65533, next_user);
	EXPECT_EQ(0, hear(p.from));
	/* root has no share, but the places end */
	for (i = 0; i < 3; i++) {
		fd[i] = gopen();
		EXPECT_EQ(0, attach(fd[i], GSCHED_ATTACH_MPS));
	}
	EXPECT_EQ(-ENOSPC, attach(self->fd, GSCHED_ATTACH_MPS));
	while (i--)
		close(fd[i]);
	EXPECT_EQ(0, end(&o));
	EXPECT_EQ(0, end(&p));
}

/* An opaque task on the whole device that is never completed: an equal is served all the same */
TEST_F(strangers, who_never_completes_blocks_nobody)
{
	struct gsched_submit req = task(0, 1, 0);
	struct gsched_event event;
	int other = gopen();

	ASSERT_EQ(0, attach(self->fd, GSCHED_ATTACH_MPS));
	ASSERT_EQ(0, attach(other, GSCHED_ATTACH_MPS));
	req.tier = GSCHED_TIER_LAUNCH;
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	ASSERT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_TRUE(next_event(other, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	EXPECT_EQ(WHOLE, event.window);
	EXPECT_EQ(0, complete(self->fd, 0, 1));
	close(other);
}

/* One band at a time, and the page tells that the task of the first is over */
TEST_F(strangers, the_page_tells_the_end)
{
	volatile struct gsched_cl_page *cl;
	struct gsched_event event;
	struct gsched_attach req;
	int other = gopen();

	ASSERT_EQ(0, attach_as(self->fd, 0, &req));
	ASSERT_EQ(0, attach(other, 0));
	cl = map_cl(self->fd, &req);
	ASSERT_NE(MAP_FAILED, cl);
	ASSERT_EQ(0, submit(self->fd, 0, 7, 0));
	cl->slot[0].seq = 7;
	cl->slot[0].retired = 7;
	ASSERT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_TRUE(next_event(other, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	EXPECT_EQ(-ENOENT, complete(self->fd, 0, 7));
	munmap((void *)cl, req.cl_size);
	close(other);
}

static int leave_descriptor;

/* Attaches with a descriptor that the parent has, too, takes the device, and is gone */
static int attach_and_go(int from, int to)
{
	struct gsched_submit req = task(0, 1, 0);

	req.tier = GSCHED_TIER_LAUNCH;
	tell(to, attach(leave_descriptor, GSCHED_ATTACH_MPS));
	tell(to, xioctl(leave_descriptor, GSCHED_IOC_SUBMIT, &req));
	/* with it open the exit would detach */
	close(leave_descriptor);
	return 0;
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

/* A number that is used again is not that process */
TEST_F(strangers, pid_is_used_again)
{
	struct gsched_event event;
	int other = gopen(), status;
	struct other o;
	pid_t pid;

	leave_descriptor = self->fd;
	o = start(0, attach_and_go);
	EXPECT_EQ(0, hear(o.from));
	EXPECT_EQ(0, hear(o.from));
	close(o.to);
	close(o.from);
	ASSERT_EQ(o.pid, waitpid(o.pid, &status, 0));
	slurp(self->text, sizeof(self->text), SYSFS "/" DEV_NAME "/stat");
	EXPECT_EQ(1, stat_of(self->text, "clients"));
	pid = fork_as(o.pid);
	if (!pid) {
		int fd = gopen(), ret = attach(fd, GSCHED_ATTACH_MPS);

		if (ret)
			_exit(-ret);
		_exit(system("grep -qx strangers " TASKS "/$PPID-*/comm") ? 255 : 0);
	}
	ASSERT_EQ(o.pid, pid) TH_LOG("%s", strerror(errno));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, WEXITSTATUS(status));
	/* nor does what it left on the device block others */
	ASSERT_EQ(0, attach(other, GSCHED_ATTACH_MPS));
	ASSERT_EQ(QUEUED, submit(other, 0, 1, GSCHED_SUBMIT_NOWAIT));
	ASSERT_TRUE(next_event(other, &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	slurp(self->text, sizeof(self->text), ROOT "/gpu.stat");
	EXPECT_EQ(1, stat_of(self->text, "tasks"));
	close(other);
}

#define NOBODY	65534

/* A group with its directory and procs for nobody */
static int delegate(const char *group)
{
	char path[256];

	snprintf(path, sizeof(path), ROOT "/%s", group);
	if (mkdir(path, 0755) || chown(path, NOBODY, NOBODY))
		return -errno;
	strcat(path, "/procs");
	return chown(path, NOBODY, NOBODY) ? -errno : 0;
}

static int join(const char *group)
{
	return put("0", ROOT "/%s/procs", group);
}

/* Each with what it comes to */
static int mover(int from, int to)
{
	tell(to, getpid());
	tell(to, join("a/b"));
	tell(to, join("a/b/c"));
	tell(to, join("a/b"));
	tell(to, join("a/c"));
	tell(to, join("b"));
	tell(to, join("a"));
	tell(to, put("1", ROOT "/a/b/procs"));
	tell(to, put("/", ROOT "/a/b/cgroup"));
	tell(to, put("\n", ROOT "/a/b/cgroup"));
	hear(from);
	/* it is in a now */
	tell(to, join("a/b"));
	tell(to, join("b"));
	hear(from);
	/* and now in none */
	tell(to, join("b"));
	hear(from);
	return 0;
}

/* cgroup v2's rule: the process is the writer's, and so is the common ancestor of the groups */
TEST_F(strangers, delegated_groups)
{
	static const int answers[] = {
		0, 0, 0, -EACCES, -EACCES, -EACCES, -EPERM, -EPERM, -EPERM,
	};
	struct other o;
	unsigned int i;
	int pid;

	ASSERT_EQ(0, delegate("a/b"));
	ASSERT_EQ(0, delegate("a/b/c"));
	ASSERT_EQ(0, delegate("a/c"));
	ASSERT_EQ(0, delegate("b"));
	ASSERT_EQ(0, chown(ROOT "/a/b/cgroup", NOBODY, NOBODY));
	o = start(NOBODY, mover);
	pid = hear(o.from);
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		EXPECT_EQ(answers[i], hear(o.from)) TH_LOG("%u", i);
	}
	slurp(self->text, sizeof(self->text), ROOT "/a/b/procs");
	EXPECT_EQ(pid, atoi(self->text));
	EXPECT_EQ(0, put_pid(pid, ROOT "/a/procs"));
	tell(o.to, 0);
	EXPECT_EQ(-EACCES, hear(o.from));
	EXPECT_EQ(-EACCES, hear(o.from));
	EXPECT_EQ(0, put_pid(pid, ROOT "/procs"));
	tell(o.to, 0);
	EXPECT_EQ(0, hear(o.from));
	EXPECT_EQ(0, end(&o));
	EXPECT_EQ(0, rmdir(ROOT "/a/b/c"));
	EXPECT_EQ(0, rmdir(ROOT "/a/b"));
	EXPECT_EQ(0, rmdir(ROOT "/a/c"));
	EXPECT_EQ(0, rmdir(ROOT "/b"));
}

/* In a group below its own, which it then removes */
static int leaver(int from, int to)
{
	char text[64];
	int ret = attach(gopen(), GSCHED_ATTACH_MPS) ?: join("a/b/c");

	tell(to, ret ?: rmdir(ROOT "/a/b/c") ? -errno : 0);
	slurp(text, sizeof(text), TASKS "/%d/group", getpid());
	tell(to, strcmp(text, "a/b"));
	hear(from);
	return 0;
}

/* Who may remove a group does not get out of those above by it */
TEST_F(strangers, rmdir_of_a_delegated_group)
{
	struct other o;

	ASSERT_EQ(0, delegate("a/b"));
	ASSERT_EQ(0, delegate("a/b/c"));
	o = start(NOBODY, leaver);
	EXPECT_EQ(0, hear(o.from));
	EXPECT_EQ(0, hear(o.from));
	EXPECT_EQ(0, end(&o));
	EXPECT_EQ(0, rmdir(ROOT "/a/b"));
}

/* As a set-user-ID program that nobody runs, with files of nobody's */
static int deputy(int from, int to)
{
	if (setresuid(NOBODY, 0, 0))
		return 1;
	tell(to, put("1", ROOT "/a/procs"));
	tell(to, put("/", ROOT "/a/cgroup"));
	tell(to, put("max", TASKS "/%d/capsm.max", getppid()));
	tell(to, setresuid(0, 0, 0) ? -errno : put("1", ROOT "/a/procs"));
	hear(from);
	return 0;
}

TEST_F(strangers, set_user_id_programs_are_no_deputies)
{
	struct other o;

	ASSERT_EQ(0, attach(self->fd, 0));
	o = start(0, deputy);
	EXPECT_EQ(-EPERM, hear(o.from));
	EXPECT_EQ(-EPERM, hear(o.from));
	EXPECT_EQ(-EPERM, hear(o.from));
	EXPECT_EQ(0, hear(o.from));
	EXPECT_EQ(0, put("1", ROOT "/procs"));
	EXPECT_EQ(0, end(&o));
}

static int own_pid;

static int set_own(const char *file, const char *value)
{
	return put(value, TASKS "/%d/%s", own_pid, file);
}

static int owner(int from, int to)
{
	int fd = gopen();

	if (attach(fd, GSCHED_ATTACH_MPS))
		return 1;
	own_pid = getpid();
	tell(to, own_pid);
	hear(from);
	tell(to, set_own("capsm.max", "5"));
	tell(to, set_own("capsm.max", "3"));
	tell(to, set_own("capsm.max", "4"));
	tell(to, set_own("gpu.priority", "0"));
	tell(to, set_own("gpu.priority", "max"));
	tell(to, set_own("gpu.weight", "101"));
	tell(to, set_own("gpu.weight", "50\n"));
	hear(from);
	return 0;
}

static int somebody_else(int from, int to)
{
	tell(to, set_own("capsm.max", "1"));
	hear(from);
	return 0;
}

/* Quotas of one client: root may write them, the owner may lower them, nobody else may */
TEST_F(strangers, quotas_of_a_client)
{
	static const int answers[] = { -EPERM, 0, -EPERM, 0, -EPERM, -EPERM, 0 };
	static const struct { const char *file, *good, *bad[7]; } values[] = {
		{ "capsm.max", "max", { "0", "17", "16.001", "-1", "x", "4\n4", "\n" } },
		{ "gpu.weight", "77", { "0", "10001", "1.5", "-1", "max", "4\n4", "\n" } },
		{ "gpu.priority", "max", { "100", "1.5", "-1", "x", "99 9", "4\n4", "\n" } },
	};
	struct gsched_submit req = task(0, 1, 0);
	const volatile struct gsched_arb_page *arb;
	struct gsched_attach info;
	struct other o, p;
	struct stat st;
	unsigned int i, j;

	o = start(65534, owner);
	own_pid = hear(o.from);
	slurp(self->text, sizeof(self->text), TASKS "/%d/capsm.max", own_pid);
	EXPECT_STREQ("max", self->text);
	slurp(self->text, sizeof(self->text), TASKS "/%d/gpu.priority", own_pid);
	EXPECT_STREQ("max", self->text);
	snprintf(self->text, sizeof(self->text), TASKS "/%d/capsm.max", own_pid);
	ASSERT_EQ(0, stat(self->text, &st));
	EXPECT_EQ(0600, st.st_mode & 07777);
	EXPECT_EQ(65534, st.st_uid);
	EXPECT_EQ(0, set_own("capsm.max", "4"));
	tell(o.to, 0);
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		EXPECT_EQ(answers[i], hear(o.from)) TH_LOG("%u", i);
	}
	p = start(65533, somebody_else);
	EXPECT_EQ(-EACCES, hear(p.from));
	slurp(self->text, sizeof(self->text), TASKS "/%d/capsm.max", own_pid);
	EXPECT_STREQ("3", self->text);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		EXPECT_EQ(0, set_own(values[i].file, values[i].good));
		for (j = 0; j < ARRAY_SIZE(values[i].bad); j++) {
			EXPECT_EQ(-EINVAL, set_own(values[i].file, values[i].bad[j]))
				TH_LOG("%s = %s", values[i].file, values[i].bad[j]);
		}
		slurp(self->text, sizeof(self->text), TASKS "/%d/%s", own_pid, values[i].file);
		EXPECT_STREQ(values[i].good, self->text) TH_LOG("%s", values[i].file);
	}
	EXPECT_EQ(-ENOENT, set_own("capsm.min", "1"));
	EXPECT_EQ(0, end(&p));
	EXPECT_EQ(0, end(&o));
	/* it holds for what runs, under the group's */
	own_pid = getpid();
	ASSERT_EQ(0, put("9", ROOT "/capsm.max"));
	ASSERT_EQ(0, put("50", ROOT "/gpu.priority"));
	ASSERT_EQ(0, attach_as(self->fd, GSCHED_ATTACH_MPS, &info));
	EXPECT_EQ(50, info.priority);
	arb = map_arb(self->fd, &info);
	ASSERT_NE(MAP_FAILED, arb);
	ASSERT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(9 * GSCHED_CAPSM, req.window);
	EXPECT_EQ(0, set_own("capsm.max", "12"));
	EXPECT_EQ(0, set_own("gpu.priority", "60"));
	EXPECT_EQ(9 * GSCHED_CAPSM, arb->slot[0].window);
	EXPECT_EQ(50, arb->header.priority);
	EXPECT_EQ(0, set_own("capsm.max", "2.5"));
	EXPECT_EQ(0, set_own("gpu.priority", "7"));
	EXPECT_EQ(5 * GSCHED_CAPSM / 2, arb->slot[0].window);
	EXPECT_EQ(7, arb->header.priority);
	munmap((void *)arb, info.arb_size);
}

#define CG	"/sys/fs/cgroup/gsched-charged"

/* without what is charged in advance, 64 pages for each processor: a limit below gives that back */
static long long charged(void)
{
	char text[64];

	if (put("0", CG "/memory.high") || put("max", CG "/memory.high"))
		return -1;
	return slurp(text, sizeof(text), CG "/memory.current") > 0 ? atoll(text) : -1;
}

/* Of a cgroup: the pages of 40 clients; what groups take */
static int spender(int from, int to)
{
	struct gsched_attach req;
	char path[256];
	long long before;
	int i, ret = 0;

	if (put("0", CG "/cgroup.procs"))
		return 1;
	before = charged();
	for (i = 0; i < 40 && !ret; i++)
		ret = attach_as(gopen(), 0, &req);
	tell(to, ret);
	tell(to, (int)((charged() - before) / (40 * (req.arb_size + req.cl_size) / 100)));
	before = charged();
	for (i = 0; i < 300 && !ret; i++) {
		snprintf(path, sizeof(path), ROOT "/a/%d", i);
		ret = mkdir(path, 0755);
	}
	tell(to, ret);
	tell(to, (int)((charged() - before) / 300));
	while (i--) {
		snprintf(path, sizeof(path), ROOT "/a/%d", i);
		rmdir(path);
	}
	hear(from);
	return 0;
}

/* Memory that a process has the module take counts as its own: its cgroup's limit holds */
TEST_F_TIMEOUT(strangers, memory_is_charged, 180)
{
	struct other o;

	if (put("+memory", "/sys/fs/cgroup/cgroup.subtree_control"))
		SKIP(return, "no memory controller");
	ASSERT_EQ(0, mkdir(CG, 0755));
	o = start(0, spender);
	EXPECT_EQ(0, hear(o.from));
	/* per cent of the pages alone */
	EXPECT_LT(70, hear(o.from));
	EXPECT_EQ(0, hear(o.from));
	EXPECT_LT(1000, hear(o.from));
	EXPECT_EQ(0, end(&o));
	while (rmdir(CG) && errno == EBUSY)
		usleep(10000);
}

/* What a user has of 1024 where few are there: half */
static int groups_without_end(void *arg)
{
	char path[64];
	int n, err;

	for (n = 0; n < 1100; n++) {
		snprintf(path, sizeof(path), ROOT "/a/n%d", n);
		if (mkdir(path, 0755))
			break;
	}
	err = errno;
	printf("# %d groups\n", n);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), ROOT "/a/n%d", i);
		rmdir(path);
	}
	return n > 256 && n <= 512 ? -err : -1;
}

TEST_F_TIMEOUT(strangers, groups, 180)
{
	ASSERT_EQ(0, put("65534", ROOT "/a/owner"));
	EXPECT_EQ(-EDQUOT, as_nobody(groups_without_end, NULL));
}

static int bindings_without_end(void *arg)
{
	static pid_t pid[1100];
	int n, ret = 0;

	for (n = 0; n < (int)ARRAY_SIZE(pid) && !ret; n++) {
		pid[n] = fork();
		if (pid[n] < 0)
			break;
		if (!pid[n]) {
			pause();
			_exit(0);
		}
		ret = put_pid(pid[n], ROOT "/a/procs");
	}
	printf("# %d bindings\n", n - 1);
	for (int i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	return n > 256 && n <= 513 ? ret : -1;
}

TEST_F_TIMEOUT(strangers, bindings, 180)
{
	ASSERT_EQ(0, put("65534", ROOT "/a/owner"));
	EXPECT_EQ(-EDQUOT, as_nobody(bindings_without_end, NULL));
	/* they are gone, and so are their bindings */
	slurp(self->text, sizeof(self->text), ROOT "/a/procs");
	EXPECT_STREQ("", self->text);
}

/* Is the last one of a chain of @left forks in the group of the first one? */
static int last_of_chain(int left)
{
	char text[256];
	int status;
	pid_t pid;

	if (!left) {
		if (attach(gopen(), 0))
			return 3;
		slurp(text, sizeof(text), TASKS "/%d/group", getpid());
		return !strcmp(text, "a") ? 1 : !strcmp(text, "/") ? 0 : 4;
	}
	pid = fork();
	if (!pid)
		_exit(last_of_chain(left - 1));
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

static int chain(int length)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(put("0", ROOT "/a/procs") ? 6 : last_of_chain(length));
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

/* Nobody walks further than that with the lock held */
TEST_F_TIMEOUT(strangers, ancestors, 120)
{
	EXPECT_EQ(1, chain(3));
	EXPECT_EQ(1, chain(250));
	EXPECT_EQ(0, chain(260));
}

/* A user of a namespace that user 1000 made: the parent maps it */
static int another_self(int from, int to)
{
	if (unshare(CLONE_NEWUSER)) {
		tell(to, errno);
		return 0;
	}
	tell(to, 0);
	if (hear(from) || setresgid(3, 3, 3) || setresuid(3, 3, 3))
		return 1;
	tell(to, attach(gopen(), 0));
	hear(from);
	return 0;
}

TEST_F(strangers, users_of_a_namespace)
{
	struct other first, second;
	int ret;

	ASSERT_EQ(0, put("2", SYSFS "/" DEV_NAME "/clients_max"));
	first = start(1000, attached);
	EXPECT_EQ(0, hear(first.from));
	second = start(1000, another_self);
	ret = hear(second.from);
	if (ret) {
		end(&second);
		end(&first);
		SKIP(return, "no user namespaces: %d", ret);
	}
	EXPECT_EQ(0, put("0 100000 10", "/proc/%d/uid_map", second.pid));
	EXPECT_EQ(0, put("3 65534 1", "/proc/%d/gid_map", second.pid));
	tell(second.to, 0);
	/* one user has one of two places, by whatever number */
	EXPECT_EQ(-EDQUOT, hear(second.from));
	EXPECT_EQ(0, end(&second));
	EXPECT_EQ(0, end(&first));
}

TEST_HARNESS_MAIN
