// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bands: the mode that follows from them, time slices, turns by reports and by the timer, MPS
 * servers, and what sysfs shows.
 */
#include "common.h"
#include "kselftest_harness.h"

#define ROOT	CONFIG "/" DEV_NAME
#define DEVICE	SYSFS "/" DEV_NAME

#define LIMITED	(GSCHED_ARB_REPORT | GSCHED_ARB_ALONE)	/* by a share of the time */
/*
 * Flags of a lower band with one client: on its own, with the turn while another one contends,
 * without
 */
#define ASKED	(GSCHED_ARB_REPORT | GSCHED_ARB_ALONE | GSCHED_ARB_TIMED)
#define PACED	(ASKED | GSCHED_ARB_PACED)
#define CLOSED	(PACED | GSCHED_ARB_CLOSED)

FIXTURE(band) {
	int admin, top, low[2];
	pid_t pid[3];
	struct gsched_attach req[3];
	const volatile struct gsched_arb_page *arb[3];
	char text[4096];
};

FIXTURE_SETUP(band)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	self->top = gopen();
	self->low[0] = gopen();
	self->low[1] = gopen();
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/b", 0755));
	ASSERT_EQ(0, put("50", ROOT "/a/gpu.priority"));
}

FIXTURE_TEARDOWN(band)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(self->pid); i++) {
		if (self->arb[i])
			munmap((void *)self->arb[i], self->req[i].arb_size);
		if (!self->pid[i])
			continue;
		kill(self->pid[i], SIGKILL);
		waitpid(self->pid[i], NULL, 0);
	}
	close(self->top);
	close(self->low[0]);
	close(self->low[1]);
	rmdir(ROOT "/a");
	rmdir(ROOT "/b");
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/*
 * A group is one of processes: another process attaches @fd in @group and stays until it is killed.
 * The file is ours as well
 */
static pid_t attach_in(int fd, const char *group, unsigned int flags,
		       unsigned long long channel_group, struct gsched_attach *req)
{
	int fds[2], i;
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (pid == 0) {
		/* or a file that the test closes stays attached */
		for (i = 3; i < 64; i++)
			if (i != fd && i != fds[1])
				close(i);
		if (put("0", ROOT "/%s/procs", group) ||
		    attach_band(fd, flags, channel_group, req) ||
		    write(fds[1], req, sizeof(*req)) != sizeof(*req))
			_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], req, sizeof(*req)) != sizeof(*req)) {
		close(fds[0]);
		waitpid(pid, NULL, 0);
		return -1;
	}
	close(fds[0]);
	return pid;
}

/* Until the words of the page are so, told by events: each one says that something changed */
static bool flags_become(int fd, const volatile struct gsched_arb_page *arb, unsigned int flags)
{
	struct gsched_event event;

	while (arb->header.flags != flags)
		if (!any_event(fd, &event))
			return false;
	return true;
}

/* The line of the table of bands that has @name; "" none */
static const char *band_line(char *text, size_t size, const char *name)
{
	char *line, *save = NULL;
	size_t len = strlen(name);

	slurp(text, size, DEBUGFS "/" DEV_NAME "/bands");
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "name ", 5) && !strncmp(line + 5, name, len) &&
		    line[5 + len] == ' ')
			return line;
	return "";
}

TEST_F(band, modes)
{
	int fd = gopen();
	struct gsched_attach req;

	ASSERT_EQ(0, attach_band(self->top, GSCHED_ATTACH_SLICE, 1, &self->req[0]));
	EXPECT_EQ(GSCHED_MODE_SPATIAL, self->req[0].mode);
	self->arb[0] = map_arb(self->top, &self->req[0]);
	ASSERT_NE(MAP_FAILED, self->arb[0]);
	/* one channel group is one band, MPS or not */
	EXPECT_EQ(GSCHED_ARB_ALONE, self->arb[0]->header.flags);
	ASSERT_EQ(0, attach_band(self->low[0], 0, 1, &req));
	EXPECT_EQ(GSCHED_MODE_SPATIAL, req.mode);
	/* equals without windows */
	EXPECT_EQ(GSCHED_ARB_PASS, self->arb[0]->header.flags);
	EXPECT_EQ(1, self->arb[0]->header.bands);
	/* another one whose slice can be set */
	ASSERT_EQ(0, attach_band(self->low[1], GSCHED_ATTACH_SLICE, 2, &req));
	EXPECT_EQ(GSCHED_MODE_SLICED, req.mode);
	EXPECT_EQ(GSCHED_MODE_SLICED, self->arb[0]->header.mode);
	EXPECT_EQ(2, self->arb[0]->header.bands);
	slurp(self->text, sizeof(self->text), DEVICE "/mode_current");
	EXPECT_STREQ("sliced", self->text);
	/* and one whose slice cannot: that is its own affair */
	ASSERT_EQ(0, attach_band(fd, 0, 3, &req));
	EXPECT_EQ(GSCHED_MODE_SLICED, req.mode);
	EXPECT_NE(0, self->arb[0]->header.slice_us);
	close(fd);
	EXPECT_EQ(GSCHED_MODE_SLICED, self->arb[0]->header.mode);
	/* the driver refuses what was asked for, of one band, then of the last */
	ASSERT_NE(0, self->arb[0]->header.slice_us);
	ASSERT_EQ(0, report_slice(self->top, 0, EIO));
	EXPECT_EQ(GSCHED_MODE_SLICED, self->arb[0]->header.mode);
	ASSERT_EQ(0, report_slice(self->low[1], 0, EIO));
	EXPECT_EQ(GSCHED_MODE_TEMPORAL, self->arb[0]->header.mode);
	EXPECT_EQ(0, self->arb[0]->header.slice_us);
	slurp(self->text, sizeof(self->text), DEVICE "/tasks/%d/band", getpid());
	EXPECT_EQ(EIO, stat_of(self->text, "slice_error"));
	ASSERT_EQ(0, put("spatial", DEVICE "/mode"));
	EXPECT_EQ(GSCHED_MODE_SPATIAL, self->arb[0]->header.mode);
	EXPECT_EQ(1, self->arb[0]->header.bands);
}

/* In sliced mode the bands have the device each: both are granted all of it */
TEST_F(band, windows_are_each_bands_own)
{
	struct gsched_submit req = task(0, 1, GSCHED_SUBMIT_NOWAIT);

	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[0]));
	ASSERT_EQ(0, attach_band(self->low[1], GSCHED_ATTACH_SLICE, 2, &self->req[1]));
	ASSERT_EQ(0, xioctl(self->low[0], GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(WHOLE, req.window);
	ASSERT_EQ(0, xioctl(self->low[1], GSCHED_IOC_SUBMIT, &req));
	EXPECT_EQ(WHOLE, req.window);
}

TEST_F(band, slices_by_priority)
{
	struct gsched_report report = {
		.size = sizeof(report), .flags = GSCHED_REPORT_BLOCKS, .block_us = 40,
	};
	volatile struct gsched_cl_page *cl;
	char line[512];
	const char *shown;

	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[1]));
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	ASSERT_NE(MAP_FAILED, self->arb[1]);
	EXPECT_EQ(0, self->arb[1]->header.slice_us);
	self->pid[0] = attach_in(self->top, "a", GSCHED_ATTACH_SLICE, 2, &self->req[0]);
	ASSERT_GT(self->pid[0], 0);
	self->arb[0] = map_arb(self->top, &self->req[0]);
	ASSERT_NE(MAP_FAILED, self->arb[0]);
	EXPECT_EQ(1000000, self->arb[0]->header.slice_us);
	EXPECT_EQ(1, self->arb[1]->header.slice_us);
	EXPECT_EQ(GSCHED_ARB_ALONE, self->arb[0]->header.flags);
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	ASSERT_EQ(0, report_slice(self->low[0], 1, 0));
	snprintf(line, sizeof(line), "pid-%d", getpid());
	shown = band_line(self->text, sizeof(self->text), line);
	snprintf(line, sizeof(line),
		 "name pid-%d clients %d priority 0 weight 100.000 slice_us 1 applied_us 1 "
		 "slice_error 0 block_end 0 activity idle turn 0 why gives way",
		 getpid(), getpid());
	EXPECT_EQ(0, strncmp(line, shown, strlen(line))) TH_LOG("%s", shown);
	snprintf(line, sizeof(line), "pid-%d", self->pid[0]);
	shown = band_line(self->text, sizeof(self->text), line);
	snprintf(line, sizeof(line),
		 "name pid-%d clients %d priority 50 weight 100.000 slice_us 1000000 applied_us 0 "
		 "slice_error 0",
		 self->pid[0], self->pid[0]);
	EXPECT_EQ(0, strncmp(line, shown, strlen(line))) TH_LOG("%s", shown);
	slurp(self->text, sizeof(self->text), DEVICE "/tasks/%d/band", getpid());
	EXPECT_EQ(1, stat_of(self->text, "slice_us"));
	EXPECT_EQ(1, stat_of(self->text, "applied_us"));
	/* priorities mean nothing to ffs: both have a slice of the epoch */
	ASSERT_EQ(0, put("ffs", DEVICE "/policy"));
	EXPECT_EQ(3800, self->arb[0]->header.slice_us);
	EXPECT_EQ(3800, self->arb[1]->header.slice_us);
	ASSERT_EQ(0, put("hpf", DEVICE "/policy"));
	EXPECT_EQ(1, self->arb[1]->header.slice_us);
	/* what the one that gives way says of its thread blocks, and of where the GPU leaves it */
	slurp(self->text, sizeof(self->text), DEVICE "/tasks/%d/band", getpid());
	EXPECT_EQ(0, stat_of(self->text, "block_us"));
	EXPECT_EQ(0, stat_of(self->text, "block_end"));
	ASSERT_EQ(0, xioctl(self->low[0], GSCHED_IOC_REPORT, &report));
	cl = map_cl(self->low[0], &self->req[1]);
	ASSERT_NE(MAP_FAILED, cl);
	cl->header.block_end = 1;
	slurp(self->text, sizeof(self->text), DEVICE "/tasks/%d/band", getpid());
	EXPECT_EQ(40, stat_of(self->text, "block_us"));
	EXPECT_EQ(1, stat_of(self->text, "block_end"));
	snprintf(line, sizeof(line), "pid-%d", getpid());
	shown = band_line(self->text, sizeof(self->text), line);
	EXPECT_NE(NULL, strstr(shown, " block_end 1 ")) TH_LOG("%s", shown);
	munmap((void *)cl, self->req[1].cl_size);
	/* a process that dies takes its band along */
	kill(self->pid[0], SIGKILL);
	ASSERT_EQ(self->pid[0], waitpid(self->pid[0], NULL, 0));
	self->pid[0] = 0;
	EXPECT_EQ(0, self->arb[1]->header.slice_us);
	EXPECT_EQ(1, self->arb[1]->header.bands);
}

/* Until the word is so, for ten seconds */
static bool slice_becomes(const volatile struct gsched_arb_page *arb, unsigned int us)
{
	int i;

	for (i = 0; i < 10000 && arb->header.slice_us != us; i++)
		usleep(1000);
	return arb->header.slice_us == us;
}

static void on_gpu(const char *list, pid_t client, unsigned int percent)
{
	char fresh[64];
	FILE *f;

	snprintf(fresh, sizeof(fresh), "%s.new", list);
	f = fopen(fresh, "w");
	if (!f)
		return;
	fprintf(f, "%d 10 busy 30\n1 10 busy %u\n", client, percent);
	fclose(f);
	rename(fresh, list);
}

/* Beside a busy program without gsched, by the file, and by gschedd, which writes it */
TEST_F(band, unmanaged)
{
	char list[] = "/tmp/gsched-nvml-XXXXXX", sock[64];
	pid_t daemon;

	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[1]));
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	ASSERT_NE(MAP_FAILED, self->arb[1]);
	self->pid[0] = attach_in(self->top, "a", GSCHED_ATTACH_SLICE, 2, &self->req[0]);
	ASSERT_GT(self->pid[0], 0);
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(1, self->arb[1]->header.slice_us);
	EXPECT_EQ(-EINVAL, put("2", DEVICE "/unmanaged_busy"));
	EXPECT_EQ(0, put("1", DEVICE "/unmanaged_busy"));
	EXPECT_EQ(1000, self->arb[1]->header.slice_us);
	slurp(self->text, sizeof(self->text), DEVICE "/unmanaged_busy");
	EXPECT_STREQ("1", self->text);

	ASSERT_GE(mkstemp(list), 0);
	on_gpu(list, getpid(), 5);
	snprintf(sock, sizeof(sock), "%s.sock", list);
	setenv("FAKENVML_PIDS", list, 1);
	setenv("FAKENVML_UUID", "GPU-67736368-6564-2d6b-7365-6c6674657374", 1);
	daemon = fork();
	if (daemon == 0) {
		execl(BUILD "/bin/gschedd", "gschedd", "--module", "--socket", sock, "--device",
		      DEV_NAME ":GPU-67736368-6564-2d6b-7365-6c6674657374:16", "--nvml",
		      BUILD "/selftests/gschedd/fakenvml.so", NULL);
		_exit(127);
	}
	EXPECT_TRUE(slice_becomes(self->arb[1], 1)) TH_LOG("gschedd: they do little");
	on_gpu(list, getpid(), 60);
	EXPECT_TRUE(slice_becomes(self->arb[1], 1000)) TH_LOG("gschedd: they are busy");
	on_gpu(list, 2, 60);
	EXPECT_TRUE(slice_becomes(self->arb[1], 1)) TH_LOG("gschedd: other process ids");
	on_gpu(list, getpid(), 60);
	EXPECT_TRUE(slice_becomes(self->arb[1], 1000)) TH_LOG("gschedd: they are busy again");
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
	EXPECT_TRUE(slice_becomes(self->arb[1], 1)) TH_LOG("gschedd has ended");
	unlink(list);
}

/*
 * Equals, by weight. hpf: the driver's slice on average; ffs: the shortest epoch with no more than
 * max_overhead of switching
 */
TEST_F(band, slices_by_weight)
{
	ASSERT_EQ(0, put("0", ROOT "/a/gpu.priority"));
	ASSERT_EQ(0, put("300", ROOT "/a/gpu.weight"));
	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[1]));
	self->pid[0] = attach_in(self->top, "a", GSCHED_ATTACH_SLICE, 2, &self->req[0]);
	ASSERT_GT(self->pid[0], 0);
	self->arb[0] = map_arb(self->top, &self->req[0]);
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	ASSERT_NE(MAP_FAILED, self->arb[0]);
	ASSERT_NE(MAP_FAILED, self->arb[1]);
	EXPECT_EQ(3072, self->arb[0]->header.slice_us);
	EXPECT_EQ(1024, self->arb[1]->header.slice_us);
	ASSERT_EQ(0, put("ffs", DEVICE "/policy"));
	EXPECT_EQ(5700, self->arb[0]->header.slice_us);
	EXPECT_EQ(1900, self->arb[1]->header.slice_us);
	ASSERT_EQ(0, put("100", DEVICE "/switch_us"));
	EXPECT_EQ(3000, self->arb[0]->header.slice_us);
	EXPECT_EQ(1000, self->arb[1]->header.slice_us);
	ASSERT_EQ(0, put("25", DEVICE "/max_overhead"));
	EXPECT_EQ(6000, self->arb[0]->header.slice_us);
	EXPECT_EQ(2000, self->arb[1]->header.slice_us);
	/* what the others take together, of one with a target */
	ASSERT_EQ(0, put("700", ROOT "/a/gpu.latency_target_us"));
	EXPECT_EQ(6000, self->arb[0]->header.slice_us);
	EXPECT_EQ(700, self->arb[1]->header.slice_us);
	ASSERT_EQ(0, put("0", ROOT "/a/gpu.latency_target_us"));
	EXPECT_EQ(2000, self->arb[1]->header.slice_us);
}

/* One above, and two below it that take turns */
static bool attach_three(FIXTURE_DATA(band) *self)
{
	self->pid[0] = attach_in(self->top, "a", GSCHED_ATTACH_SLICE, 3, &self->req[0]);
	self->pid[2] = attach_in(self->low[1], "b", GSCHED_ATTACH_SLICE, 2, &self->req[2]);
	if (self->pid[0] < 0 || self->pid[2] < 0 ||
	    attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[1]))
		return false;
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	self->arb[2] = map_arb(self->low[1], &self->req[2]);
	return self->arb[1] != MAP_FAILED && self->arb[2] != MAP_FAILED;
}

/*
 * Equals: who has had its time waits for the other. No call is made here, so it is the timer, in
 * softirq, that ends turns
 */
TEST_F(band, turns_by_the_timer)
{
	char line[64];
	unsigned int i;

	ASSERT_TRUE(attach_three(self));
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	EXPECT_EQ(ASKED, self->arb[2]->header.flags);
	EXPECT_EQ(0, self->arb[1]->header.in_flight_us);
	/* one has work: the other's gate closes */
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	EXPECT_EQ(ASKED | GSCHED_ARB_CLOSED, self->arb[2]->header.flags);
	snprintf(line, sizeof(line), "pid-%d", getpid());
	EXPECT_NE(NULL, strstr(band_line(self->text, sizeof(self->text), line),
			       " activity busy turn 1 "));
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_WAITING));
	EXPECT_NE(0, self->arb[1]->header.flags & GSCHED_ARB_PACED);
	EXPECT_EQ(2000, self->arb[1]->header.in_flight_us);
	for (i = 0; i < 2; i++) {
		/*
		 * a holder that never says that its work has drained is waited for no longer than
		 * 0.2 s
		 */
		EXPECT_TRUE(flags_become(self->low[0], self->arb[1], CLOSED));
		EXPECT_TRUE(flags_become(self->low[1], self->arb[2], PACED));
		EXPECT_TRUE(flags_become(self->low[1], self->arb[2], CLOSED));
		EXPECT_TRUE(flags_become(self->low[0], self->arb[1], PACED));
	}
	/* both have work on the GPU: neither may have the shortest slice */
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(2048, self->arb[1]->header.slice_us);
	EXPECT_EQ(2048, self->arb[2]->header.slice_us);
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_WAITING));
	EXPECT_EQ(1, self->arb[1]->header.slice_us);
	EXPECT_EQ(1, self->arb[2]->header.slice_us);
}

/*
 * The more important of two below takes the turn at once, and gives it up when it has nothing more
 * to do
 */
TEST_F(band, turns_by_reports)
{
	struct gsched_event event;

	ASSERT_EQ(0, put("10", ROOT "/b/gpu.priority"));
	ASSERT_TRUE(attach_three(self));
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_WAITING));
	EXPECT_EQ(CLOSED, self->arb[1]->header.flags);
	/* what was in flight has drained: the gate opens in that call */
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_WAITING));
	EXPECT_EQ(CLOSED, self->arb[1]->header.flags);
	EXPECT_EQ(PACED, self->arb[2]->header.flags);
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(PACED, self->arb[2]->header.flags);
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_IDLE));
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	EXPECT_EQ(ASKED | GSCHED_ARB_CLOSED, self->arb[2]->header.flags);
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_IDLE));
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	EXPECT_EQ(ASKED, self->arb[2]->header.flags);
	/* the holder is killed while the other one waits: nobody is left to wait for */
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_BUSY));
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_WAITING));
	EXPECT_EQ(CLOSED, self->arb[1]->header.flags);
	/* what it submits waits, too, and there is no lease to launch on */
	EXPECT_EQ(GSCHED_LEASE_NONE, self->arb[1]->header.lease);
	EXPECT_EQ(QUEUED, submit(self->low[0], 0, 1, GSCHED_SUBMIT_NOWAIT));
	kill(self->pid[2], SIGKILL);
	ASSERT_EQ(self->pid[2], waitpid(self->pid[2], NULL, 0));
	self->pid[2] = 0;
	EXPECT_EQ(ASKED, self->arb[1]->header.flags);
	EXPECT_EQ(GSCHED_LEASE_FREE, self->arb[1]->header.lease);
	ASSERT_TRUE(next_event(self->low[0], &event));
	EXPECT_EQ(GSCHED_EVENT_GRANT, event.type);
	EXPECT_EQ(0, complete(self->low[0], 0, 1));
}

/* The slice of MPS clients is their server's to set; without it the driver's slice is left in force
 */
TEST_F(band, mps_server)
{
	const char *shown;
	char line[128];
	int server = gopen();
	struct gsched_attach req;
	const volatile struct gsched_arb_page *arb;

	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_MPS, 7, &self->req[1]));
	ASSERT_EQ(0, attach_band(self->low[1], GSCHED_ATTACH_SLICE, 8, &self->req[2]));
	EXPECT_EQ(GSCHED_MODE_SLICED, self->req[2].mode);
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	self->arb[2] = map_arb(self->low[1], &self->req[2]);
	ASSERT_NE(MAP_FAILED, self->arb[1]);
	ASSERT_NE(MAP_FAILED, self->arb[2]);
	EXPECT_EQ(0, self->arb[1]->header.slice_us);
	EXPECT_EQ(2048, self->arb[2]->header.slice_us);
	ASSERT_EQ(0, attach_band(server, GSCHED_ATTACH_SERVER | GSCHED_ATTACH_SLICE, 7, &req));
	arb = map_arb(server, &req);
	ASSERT_NE(MAP_FAILED, arb);
	EXPECT_EQ(2048, arb->header.slice_us);
	EXPECT_EQ(0, self->arb[1]->header.slice_us);
	EXPECT_EQ(2, arb->header.bands);
	EXPECT_EQ(GSCHED_LEASE_NONE, arb->header.lease);
	/* it counts for nobody's lease */
	EXPECT_EQ(GSCHED_LEASE_FREE, self->arb[1]->header.lease);
	snprintf(line, sizeof(line), "mps-%d", getpid());
	shown = band_line(self->text, sizeof(self->text), line);
	snprintf(line, sizeof(line), " clients %d server %d priority 0 ", getpid(), getpid());
	EXPECT_NE(NULL, strstr(shown, line)) TH_LOG("%s", shown);
	munmap((void *)arb, req.arb_size);
	close(server);
	EXPECT_EQ(GSCHED_MODE_SLICED, self->arb[1]->header.mode);
}

/*
 * A quota is a share of the device's time for work that no window can hold, divided among those who
 * are active
 */
TEST_F(band, share_of_a_quota)
{
	ASSERT_EQ(0, put("4", ROOT "/capsm.max"));
	ASSERT_EQ(0, attach_band(self->low[0], GSCHED_ATTACH_SLICE, 1, &self->req[1]));
	ASSERT_EQ(0, attach_band(self->low[1], GSCHED_ATTACH_SLICE, 2, &self->req[2]));
	self->arb[1] = map_arb(self->low[0], &self->req[1]);
	ASSERT_NE(MAP_FAILED, self->arb[1]);
	EXPECT_EQ(LIMITED, self->arb[1]->header.flags);
	EXPECT_EQ(GSCHED_SHARE_ALL / 4, self->arb[1]->header.share);
	ASSERT_EQ(0, report_activity(self->low[0], GSCHED_ACTIVITY_BUSY));
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_BUSY));
	EXPECT_EQ(GSCHED_SHARE_ALL / 8, self->arb[1]->header.share);
	slurp(self->text, sizeof(self->text), DEVICE "/tasks/%d/band", getpid());
	EXPECT_NE(NULL, strstr(self->text, "\nactivity busy\nshare 0.125000"));
	ASSERT_EQ(0, report_activity(self->low[1], GSCHED_ACTIVITY_IDLE));
	EXPECT_EQ(GSCHED_SHARE_ALL / 4, self->arb[1]->header.share);
}

/* A client that was sent away is asked for nothing more, and nobody limits its time */
TEST_F(band, client_sent_away)
{
	struct gsched_device_del del = { .size = sizeof(del), .flags = GSCHED_DEVICE_DEL_FORCE };

	ASSERT_EQ(0, put("4", ROOT "/capsm.max"));
	ASSERT_EQ(0, attach_band(self->top, GSCHED_ATTACH_SLICE, 3, &self->req[0]));
	self->arb[0] = map_arb(self->top, &self->req[0]);
	ASSERT_NE(MAP_FAILED, self->arb[0]);
	EXPECT_EQ(LIMITED, self->arb[0]->header.flags);
	ASSERT_EQ(0, rmdir(ROOT "/a"));
	ASSERT_EQ(0, rmdir(ROOT "/b"));
	memcpy(del.uuid, dev_uuid, sizeof(del.uuid));
	ASSERT_EQ(0, xioctl(self->admin, GSCHED_IOC_DEVICE_DEL, &del));
	EXPECT_EQ(0, self->arb[0]->header.flags);
	EXPECT_EQ(GSCHED_SHARE_ALL, self->arb[0]->header.share);
	EXPECT_EQ(-ENODEV, report_activity(self->top, GSCHED_ACTIVITY_IDLE));
	ASSERT_EQ(0, add_device(self->admin, DEV_NAME, dev_uuid, DEV_SMS));
}

/* More bands than one read(2) has room for: a line for each */
TEST_F_TIMEOUT(band, more_bands_than_a_page, 120)
{
	/* lines have more than 160 characters */
	const unsigned int bands = sysconf(_SC_PAGESIZE) / 128;
	struct gsched_attach req;
	unsigned int i, lines = 0;
	int fd[1000];
	char *line = NULL;
	size_t room = 0;
	FILE *table;

	ASSERT_GE(ARRAY_SIZE(fd), bands);
	ASSERT_EQ(0, put("1000", DEVICE "/clients_max"));
	for (i = 0; i < bands; i++) {
		fd[i] = gopen();
		ASSERT_EQ(0, attach_band(fd[i], GSCHED_ATTACH_SLICE, 1 + i, &req));
	}
	table = fopen(DEBUGFS "/" DEV_NAME "/bands", "re");
	ASSERT_NE(NULL, table);
	while (getline(&line, &room, table) > 0) {
		EXPECT_EQ(0, strncmp(line, "name pid-", 9));
		EXPECT_NE(NULL, strstr(line, " why "));
		lines++;
	}
	EXPECT_EQ(bands, lines);
	EXPECT_GT(ftell(table), sysconf(_SC_PAGESIZE));
	fclose(table);
	free(line);
	for (i = 0; i < bands; i++)
		close(fd[i]);
}

TEST_HARNESS_MAIN
