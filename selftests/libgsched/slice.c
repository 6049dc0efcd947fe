// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The wrapper around ioctl() (libgsched/slice.c): which groups it sees, which slices it sets, and
 * what it leaves alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake-rm.h"
#include "libgsched/slice.h"
#include "selftests/tap.h"

#define ROOT	0xc1d00001u

static int node;
static unsigned int times_seen;
static uint8_t seen_uuid[16];

static void on_seen(const uint8_t uuid[16])
{
	times_seen++;
	memcpy(seen_uuid, uuid, 16);
}

/* ---- what libcuda does ---- */

static void alloc64(uint32_t root, uint32_t parent, uint32_t object, uint32_t class,
		    uint32_t status)
{
	uint32_t a[12] = { root, parent, object, class, [10] = status };

	ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48), a);
}

static void alloc32(uint32_t root, uint32_t parent, uint32_t object, uint32_t class,
		    uint32_t status)
{
	uint32_t a[8] = { root, parent, object, class, [7] = status };

	ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 32), a);
}

static void free_object(uint32_t root, uint32_t object)
{
	uint32_t a[4] = { root, root, object, 0 };

	ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16), a);
}

static uint32_t set_slice(int fd, uint32_t root, uint32_t group, uint64_t us)
{
	struct {
		uint32_t client, object, cmd, flags;
		uint64_t params;
		uint32_t size, status;
	} c = { root, group, 0xa06c0103, 0, (uintptr_t)&us, sizeof(us), 0 };

	ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32), &c);
	return c.status;
}

static void set_mode(uint32_t root, uint32_t sub, uint32_t group)
{
	uint32_t mode[8] = { 1, group, 0, 2 };
	struct {
		uint32_t client, object, cmd, flags;
		uint64_t params;
		uint32_t size, status;
	} c = { root, sub, 0x20801210, 0, (uintptr_t)mode, sizeof(mode), 0 };

	ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32), &c);
}

/*
 * A context on the device whose subdevice is @sub: its UUID is the low byte of that, sixteen times
 */
static void context(uint32_t root, uint32_t dev, uint32_t sub, uint32_t group)
{
	alloc64(root, root, dev, 0x80, 0);
	alloc32(root, dev, sub, 0x2080, 0);
	alloc64(root, dev, group, 0xa06c, 0);
	set_mode(root, sub, group);
	set_slice(node, root, group, 2048);
}

static void uuid_is(uint8_t uuid[16], uint8_t byte)
{
	memset(uuid, byte, 16);
}

static void first_context(void)
{
	struct gsched_slice s;
	uint8_t gpu[16], other[16];

	uuid_is(gpu, 0x11);
	uuid_is(other, 0x22);
	ok(gsched_slice_get(gpu, &s) == ENODEV && !s.groups, "before there is a context: no group");
	context(ROOT, 0x5c000002, 0x5c000011, 0x5c000015);
	ok(times_seen == 1 && !memcmp(seen_uuid, gpu, 16),
	   "the group is seen when libcuda sets its slice, and on which GPU");
	ok(!gsched_slice_get(gpu, &s) && s.groups == 1 && s.us == 2048,
	   "libcuda's slice is in force");
	ok(!gsched_slice_set(gpu, 1, false, &s) && s.us == 1 && fake_rm.last_us == 1 &&
	   fake_rm.last_group == 0x5c000015, "another is set on the same group");
	fake_rm.sets = 0;
	ok(!gsched_slice_set(gpu, 1, false, &s) && !fake_rm.sets, "the same again makes no call");
	ok(!gsched_slice_set(gpu, 0, false, &s) && fake_rm.last_us == 2048, "0 restores libcuda's");
	ok(gsched_slice_set(other, 7, false, &s) == ENODEV && !s.groups,
	   "another GPU has no group");
}

static void more_contexts(void)
{
	struct gsched_slice s;
	uint8_t gpu[16], other[16];

	uuid_is(gpu, 0x11);
	uuid_is(other, 0x22);
	gsched_slice_set(gpu, 100, false, &s);
	alloc64(ROOT, 0x5c000002, 0x5c000030, 0xa06c, 0);
	ok(!gsched_slice_get(gpu, &s) && s.groups == 1,
	   "a group whose slice libcuda does not set runs copies: left alone");
	ok(!set_slice(node, ROOT, 0x5c000030, 2048) && fake_rm.last_us == 100,
	   "a later context begins with the slice that is wanted");
	ok(!gsched_slice_get(gpu, &s) && s.groups == 2, "both are there");
	context(ROOT, 0x5c000003, 0x5c000022, 0x5c000040);
	ok(!gsched_slice_get(other, &s) && s.groups == 1 && s.us == 7,
	   "the other GPU's group had a wish of its own");
	free_object(ROOT, 0x5c000030);
	ok(!gsched_slice_get(gpu, &s) && s.groups == 1, "a context that is destroyed is forgotten");
	free_object(ROOT, 0x5c000003);
	ok(gsched_slice_get(other, &s) == ENODEV, "a device object takes its groups along");
	alloc64(ROOT, 0x5c000002, 0x5c000050, 0xa06c, 0x33);
	set_slice(node, ROOT, 0x5c000050, 2048);
	ok(!gsched_slice_get(gpu, &s) && s.groups == 1, "an allocation that failed is no group");
}

/* Where the GPU leaves a group: in the middle of thread blocks, or at their ends */
static void preemption_mode(void)
{
	struct gsched_slice s;
	uint8_t gpu[16];

	uuid_is(gpu, 0x11);
	fake_rm.modes = 0;
	ok(!gsched_slice_set(gpu, 1, true, &s) && s.block_end && fake_rm.last_mode == 1 &&
	   fake_rm.mode_group == 0x5c000015 && fake_rm.mode_object == 0x5c000011,
	   "the mode is changed by libcuda's own call, on its subdevice");
	ok(!gsched_slice_set(gpu, 1, true, &s) && fake_rm.modes == 1,
	   "the same again makes no call");
	alloc64(ROOT, 0x5c000002, 0x5c000060, 0xa06c, 0);
	set_mode(ROOT, 0x5c000011, 0x5c000060);
	set_slice(node, ROOT, 0x5c000060, 2048);
	ok(fake_rm.modes == 3 && fake_rm.last_mode == 1 && fake_rm.mode_group == 0x5c000060,
	   "a later context gets it, too");
	free_object(ROOT, 0x5c000060);
	ok(!gsched_slice_set(gpu, 1, false, &s) && !s.block_end && fake_rm.last_mode == 2,
	   "and libcuda's is restored");
	fake_rm.refuse_mode = 0x1b;
	ok(!gsched_slice_set(gpu, 1, true, &s) && !s.block_end && s.us == 1,
	   "a refusal leaves libcuda's, and the slice is set all the same");
	fake_rm.refuse_mode = 0;
	gsched_slice_set(gpu, 100, false, &s);
}

static void refusal(void)
{
	struct gsched_slice s;
	uint8_t gpu[16];

	uuid_is(gpu, 0x11);
	fake_rm.refuse = 0x1b;
	ok(gsched_slice_set(gpu, 5, false, &s) == EIO && s.error == EIO && s.status == 0x1b &&
	   s.us == 100, "a driver that refuses: EIO, its status, and the slice that is "
			"still in force");
	alloc64(ROOT, 0x5c000002, 0x5c000060, 0xa06c, 0);
	ok(!set_slice(node, ROOT, 0x5c000060, 2048) && fake_rm.last_us == 2048,
	   "libcuda's own call succeeds all the same");
	free_object(ROOT, 0x5c000060);
	fake_rm.refuse = 0;
	ok(!gsched_slice_set(gpu, 5, false, &s) && s.us == 5 && !s.status,
	   "asked again when it does not refuse");
	fake_rm.control[node] = false;
	ok(gsched_slice_set(gpu, 9, false, &s) == EIO,
	   "a descriptor that is something else by now is left alone");
	fake_rm.control[node] = true;
	ok(!gsched_slice_set(gpu, 9, false, &s) && s.us == 9, "and used again when it is the node");
}

static void others(void)
{
	int fd = open("/dev/null", O_RDWR), n;
	struct gsched_slice s;
	uint8_t gpu[16];

	uuid_is(gpu, 0x11);
	errno = 0;
	ok(ioctl(fd, FIONREAD, &n) == -1 && errno == ENOTTY,
	   "another file's ioctl has its own result and errno");
	fake_rm.sets = 0;
	set_slice(fd, ROOT, 0x5c000015, 77);
	ok(!fake_rm.sets && !gsched_slice_get(gpu, &s) && s.us != 77,
	   "the same call on another file is none of ours");
	ok(ioctl(-1, FIONREAD, &n) == -1 && errno == EBADF, "a bad descriptor: EBADF");
	close(fd);
}

static void in_child(void)
{
	struct gsched_slice s;
	uint8_t gpu[16];
	int status;
	pid_t pid;

	uuid_is(gpu, 0x11);
	pid = fork();
	if (!pid)
		_exit(gsched_slice_set(gpu, 3, false, &s) == ENODEV ? 0 : 1);
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "a child has none of its parent's groups");
	ok(!gsched_slice_get(gpu, &s) && s.groups == 1, "the parent still has its own");
	free_object(ROOT, ROOT);
	ok(gsched_slice_get(gpu, &s) == ENODEV, "the client goes with all it has");
}

static void mps_number(void)
{
	uint64_t a, b;

	setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc", 1);
	a = gsched_slice_mps_group();
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev", 1);
	b = gsched_slice_mps_group();
	ok(a && b && a != b, "two pipe directories, two numbers");
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/../dev/.", 1);
	ok(gsched_slice_mps_group() == b, "the same directory by another name has the same");
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere/at/all", 1);
	ok(!gsched_slice_mps_group(), "no directory, no number");
}

int main(void)
{
	struct gsched_slice s;
	uint8_t other[16];

	gsched_slice_seen = on_seen;
	node = open("/dev/null", O_RDWR | O_CLOEXEC);
	fake_rm.control[node & 63] = true;
	first_context();
	uuid_is(other, 0x22);
	gsched_slice_set(other, 7, false, &s);
	more_contexts();
	preemption_mode();
	refusal();
	others();
	in_child();
	mps_number();
	return done();
}
