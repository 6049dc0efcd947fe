// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The scheduler's state in shared memory: processes that leave or die, what the environment says of
 * the device, and which MPS server's group a process is in.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shm.h"
#include "selftests/tap.h"

static const struct vg_config plain = {
	.sms = 4, .sm_threads = 512, .sm_blocks = 16, .sm_regs = 65536,
	.sm_smem = 100 << 10, .cc = 90, .timeslice_ns = 1000, .switch_ns = 200, .mem = 1 << 20,
};

static char name[64];

static struct vg_device *map(void)
{
	char err[256];
	struct vg_device *d = vg_shm_map(name, &plain, err, sizeof(err));

	if (!d)
		printf("# %s\n", err);
	return d;
}

/*
 * A child that takes a slot, fills the device and then does what @how says; it has done so when the
 * pipe is read
 */
static pid_t child(const char *how)
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		struct vg_device *d = map();
		struct vg_need n = { .threads = 512 };
		int slot = d ? vg_shm_enter(d, strcmp(how, "die in its turn") ? 1 : VG_NO_MPS) : -1;
		vg_procs wake;

		if (slot < 0)
			_exit(1);
		vg_shm_lock(d);
		vg_sched_submit(d, (uint32_t)slot, &n, 100, 0);
		vg_sched_dispatch(d);
		if (strstr(how, "beside a kernel"))	/* of the first process */
			vg_sched_submit(d, 0, &n, 4, 0);
		if (!strcmp(how, "die in its turn")) {
			vg_sched_set_slice(d, d->proc[slot].group, 1000000000, 1000);
			if (!vg_sched_turn(d, (uint32_t)slot, 1000, &wake))
				_exit(1);
		}
		if (strncmp(how, "die", 3))
			vg_shm_unlock(d);
		if (!strcmp(how, "leave"))
			vg_shm_leave(d, (uint32_t)slot);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		if (!strcmp(how, "leave"))
			_exit(0);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		printf("# the child did not start\n");
	close(ready[0]);
	return pid;
}

static bool after(const char *how, bool kill_it)
{
	struct vg_device *d = map();
	struct vg_need n = { .threads = 512 };
	int slot, e;
	pid_t pid;

	CHECK(d);
	slot = vg_shm_enter(d, 1);
	CHECK(slot >= 0);
	pid = child(how);
	CHECK(pid > 0);
	if (kill_it)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vg_shm_lock(d);	/* repairs what was left by one that died inside */
	vg_shm_reap_dead(d, (uint32_t)slot);
	e = vg_sched_submit(d, (uint32_t)slot, &n, 4, 0);
	vg_sched_dispatch(d);
	CHECK(d->entry[e].placed == 4);
	for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
		CHECK(d->proc[i].used == (i == (uint32_t)slot));
	vg_shm_unlock(d);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(d);
	return true;
}

static bool leaves(void)
{
	return after("leave", false);
}

static bool killed(void)
{
	return after("sit", true);
}

static bool killed_inside(void)
{
	return after("die in the lock", true);
}

/* What waits for the dead process's SMs gets them from whoever notices the death */
static bool handed_over(const char *how, bool enter)
{
	struct vg_device *d = map();
	int slot, other = -1, e = 0;
	bool placed;
	pid_t pid;

	CHECK(d);
	slot = vg_shm_enter(d, 1);
	CHECK(slot == 0);
	pid = child(how);
	CHECK(pid > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (enter)
		other = vg_shm_enter(d, 1);
	vg_shm_lock(d);
	while (e < VG_KERNELS_MAX && !(d->entry[e].used && d->entry[e].proc == (uint32_t)slot))
		e++;
	placed = e < VG_KERNELS_MAX && d->entry[e].placed == 4;
	vg_shm_unlock(d);
	CHECK(placed && vg_shm_wakes(d, (uint32_t)slot));
	if (enter)
		vg_shm_leave(d, (uint32_t)other);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(d);
	return true;
}

static bool handed_over_by_lock(void)
{
	return handed_over("die in the lock beside a kernel", false);
}

static bool handed_over_by_newcomer(void)
{
	return handed_over("sit beside a kernel", true);
}

/* It had the turn and a slice of a second: nobody waits for its end */
static bool killed_in_turn(void)
{
	struct vg_device *d = map();
	struct vg_need n = { .threads = 512 };
	vg_procs wake;
	pid_t pid;
	int slot;

	CHECK(d);
	slot = vg_shm_enter(d, VG_NO_MPS);
	CHECK(slot >= 0);
	pid = child("die in its turn");
	CHECK(pid > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(d->active != VG_NOBODY && d->active != d->proc[slot].group);
	vg_shm_lock(d);
	vg_sched_submit(d, (uint32_t)slot, &n, 4, 0);
	vg_sched_dispatch(d);
	CHECK(!vg_sched_turn(d, (uint32_t)slot, 2000, &wake) && d->active == d->proc[slot].group);
	CHECK(vg_sched_turn(d, (uint32_t)slot, 2200, &wake) && d->slice_end == 3200);
	vg_shm_unlock(d);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(d);
	return true;
}

static int lock_fd, alarms;

static void on_alarm(int sig)
{
	if (++alarms == 3)
		flock(lock_fd, LOCK_UN);
}

/* Whoever makes or maps the device holds the file's lock: here until the third signal */
static bool interrupted(void)
{
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, off = { 0 };
	struct sigaction sa = { .sa_handler = on_alarm };
	struct vg_device *d;
	char path[128];

	snprintf(path, sizeof(path), "/dev/shm%s", name);
	lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHECK(lock_fd >= 0 && !flock(lock_fd, LOCK_EX));
	CHECK(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &often, NULL));
	d = map();
	setitimer(ITIMER_REAL, &off, NULL);
	close(lock_fd);
	CHECK(d && alarms >= 3);
	vg_shm_unmap(d);
	return true;
}

/* Alone again, a device takes the new shape; in use, it keeps its own */
static bool shape(void)
{
	struct vg_config other = plain;
	struct vg_device *d, *e;
	char err[256];
	int slot;

	d = map();
	CHECK(d);
	slot = vg_shm_enter(d, 1);
	other.sms = 9;
	e = vg_shm_map(name, &other, err, sizeof(err));
	CHECK(e && e->config.sms == 4);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(e);
	e = vg_shm_map(name, &other, err, sizeof(err));
	CHECK(e && e->config.sms == 9);
	vg_shm_unmap(e);
	vg_shm_unmap(d);
	return true;
}

static bool environment(void)
{
	static const char *const bad[][2] = {
		{ "VGPU_SMS", "0" }, { "VGPU_SMS", "-1" }, { "VGPU_SMS", "many" },
		{ "VGPU_SMS", "257" }, { "VGPU_SWITCH_US", "1000001" },
		{ "VGPU_SM_BLOCKS", "33" }, { "VGPU_TIMESLICE_US", "1e3" },
		{ "VGPU_SM_THREADS", "99999999999999999999" },
	};
	struct vg_config c;
	char err[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK(!vg_config_from_env(&c, err, sizeof(err)) && strstr(err, bad[i][0]));
		unsetenv(bad[i][0]);
	}
	setenv("VGPU_SMS", "3", 1);
	setenv("VGPU_SWITCH_US", "7", 1);
	CHECK(vg_config_from_env(&c, err, sizeof(err)) && c.sms == 3 && c.switch_ns == 7000 &&
	      c.sm_threads == 512);
	unsetenv("VGPU_SMS");
	unsetenv("VGPU_SWITCH_US");
	return true;
}

/* The MPS server is the one of the pipe directory, by whatever name */
static bool keys(void)
{
	uint64_t none, common, fallback, one, same, other;
	char err[256];

	setenv("VGPU_MPS", "2", 1);
	CHECK(!vg_key_from_env(&one, err, sizeof(err)) && strstr(err, "VGPU_MPS"));
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc/self/fd", 1);
	setenv("VGPU_MPS", "0", 1);
	CHECK(vg_key_from_env(&none, err, sizeof(err)) && none == VG_NO_MPS);
	setenv("VGPU_MPS", "auto", 1);
	/* no daemon there */
	CHECK(vg_key_from_env(&none, err, sizeof(err)) && none == VG_NO_MPS);
	setenv("VGPU_MPS", "1", 1);
	CHECK(vg_key_from_env(&one, err, sizeof(err)));
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc/self/./task/../fd/", 1);
	CHECK(vg_key_from_env(&same, err, sizeof(err)));
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc/self/fdinfo", 1);
	CHECK(vg_key_from_env(&other, err, sizeof(err)));
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	CHECK(vg_key_from_env(&common, err, sizeof(err)));
	unsetenv("VGPU_MPS");
	CHECK(vg_key_from_env(&fallback, err, sizeof(err)) && fallback == common);
	CHECK(one == same && one != other && one != common && one != VG_NO_MPS &&
	      common != VG_NO_MPS);
	return true;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(name, sizeof(name), "/vgpu-test-shm-%d", (int)getpid());
	ok(environment(), "wrong variables are named");
	ok(keys(), "the pipe directory says which MPS server's group a process is in");
	ok(interrupted(), "a signal does not end the wait for the device");
	ok(leaves(), "a process that leaves gives everything back");
	ok(killed(), "a killed process's blocks are given back");
	ok(killed_inside(), "one that is killed inside the lock too");
	ok(handed_over_by_newcomer(),
	       "a killed process's SMs go on to what waits as the next process comes");
	ok(handed_over_by_lock(), "and as the lock is found that it held");
	ok(killed_in_turn(), "after a death inside the lock in its turn the next "
	       "group's turn begins");
	ok(shape(), "the device changes shape only when nobody uses it");
	shm_unlink(name);
	return done();
}
