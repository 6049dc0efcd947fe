/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kselftests of the module share: calls that return -errno, files, a device of their own.
 */
#ifndef KMOD_COMMON_H
#define KMOD_COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/gsched.h>

#define CONFIG		"/sys/kernel/config/gsched"
#define SYSFS		"/sys/class/gsched"
#define DEBUGFS		"/sys/kernel/debug/gsched"
#define DEV_NAME	"test0"
#define DEV_SMS		16
#define WHOLE		(DEV_SMS * GSCHED_CAPSM)

/* After a fixture's SKIP the harness still runs test and teardown */
#define RETURN_IF_SKIPPED() do { if (_metadata->skip) return; } while (0)

static const unsigned char dev_uuid[GSCHED_UUID_SIZE] = "gsched-kselftest";

static inline int xioctl(int fd, unsigned long nr, void *arg)
{
	return ioctl(fd, nr, arg) < 0 ? -errno : 0;
}

static inline int gopen(void)
{
	return open(GSCHED_DEVICE_NODE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static inline int add_device(int fd, const char *name, const unsigned char *uuid, unsigned int sms)
{
	struct gsched_device_add req = { .size = sizeof(req), .sms = sms };

	memcpy(req.uuid, uuid, sizeof(req.uuid));
	strncpy(req.name, name, sizeof(req.name));
	return xioctl(fd, GSCHED_IOC_DEVICE_ADD, &req);
}

static inline int del_device(int fd, const unsigned char *uuid)
{
	struct gsched_device_del req = { .size = sizeof(req) };

	memcpy(req.uuid, uuid, sizeof(req.uuid));
	return xioctl(fd, GSCHED_IOC_DEVICE_DEL, &req);
}

static inline int attach_as(int fd, unsigned int flags, struct gsched_attach *req)
{
	*req = (struct gsched_attach) { .size = sizeof(*req), .flags = flags };
	memcpy(req->uuid, dev_uuid, sizeof(req->uuid));
	return xioctl(fd, GSCHED_IOC_ATTACH, req);
}

static inline int attach(int fd, unsigned int flags)
{
	struct gsched_attach req;

	return attach_as(fd, flags, &req);
}

/* Without MPS, and able to set its time slice */
static inline int attach_band(int fd, unsigned int flags, unsigned long long channel_group,
			      struct gsched_attach *req)
{
	*req = (struct gsched_attach){ .size = sizeof(*req),
				       .flags = flags,
				       .channel_group = channel_group };
	memcpy(req->uuid, dev_uuid, sizeof(req->uuid));
	return xioctl(fd, GSCHED_IOC_ATTACH, req);
}

static inline int report_activity(int fd, unsigned int activity)
{
	struct gsched_report req = { .size = sizeof(req),
				     .flags = GSCHED_REPORT_ACTIVITY,
				     .activity = activity };

	return xioctl(fd, GSCHED_IOC_REPORT, &req);
}

static inline int report_slice(int fd, unsigned int slice_us, unsigned int slice_error)
{
	struct gsched_report req = {
		.size = sizeof(req),
		.flags = GSCHED_REPORT_SLICE,
		.slice_us = slice_us,
		.slice_error = slice_error,
	};

	return xioctl(fd, GSCHED_IOC_REPORT, &req);
}

static inline int report_memory(int fd, unsigned long long bytes, bool asks)
{
	struct gsched_report req = {
		.size = sizeof(req),
		.flags = GSCHED_REPORT_MEMORY | (asks ? GSCHED_REPORT_ASKS : 0),
		.memory = bytes,
	};

	return xioctl(fd, GSCHED_IOC_REPORT, &req);
}

static inline struct gsched_submit task(unsigned int slot, unsigned int seq, unsigned int flags)
{
	return (struct gsched_submit) {
		.size = sizeof(struct gsched_submit),
		.flags = flags,
		.slot = slot,
		.seq = seq,
		.tier = GSCHED_TIER_BLOCK,
		.blocks_per_sm = 1,
		.blocks = 1000000,
		.predicted_ns = 1000000000,
		.block_ns = 20000,
	};
}

/* A task that was taken and has to wait: only with GSCHED_SUBMIT_NOWAIT */
#define QUEUED	1

/* 0 granted, QUEUED, or -errno */
static inline int submit(int fd, unsigned int slot, unsigned int seq, unsigned int flags)
{
	struct gsched_submit req = task(slot, seq, flags);

	int ret = xioctl(fd, GSCHED_IOC_SUBMIT, &req);

	if (ret)
		return ret;
	if (req.state == GSCHED_STATE_QUEUED)
		return req.window ? -EPROTO : QUEUED;
	return req.state == GSCHED_STATE_GRANTED ? 0 : -EPROTO;
}

static inline int complete(int fd, unsigned int slot, unsigned int seq)
{
	struct gsched_complete req = { .size = sizeof(req), .slot = slot, .seq = seq };

	return xioctl(fd, GSCHED_IOC_COMPLETE, &req);
}

/* The pages of an attached descriptor */
static inline const volatile struct gsched_arb_page *map_arb(int fd,
							     const struct gsched_attach *req)
{
	return mmap(NULL, req->arb_size, PROT_READ, MAP_SHARED, fd, req->arb_offset);
}

static inline volatile struct gsched_cl_page *map_cl(int fd, const struct gsched_attach *req)
{
	return mmap(NULL, req->cl_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, req->cl_offset);
}

/* Returns -errno, or the length; text is NUL-terminated and without its last newline */
__attribute__((format(printf, 3, 4)))
static inline int slurp(char *buf, size_t size, const char *format, ...)
{
	char path[512];
	va_list args;
	ssize_t len;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	buf[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	if (len < 0)
		len = -errno;
	close(fd);
	if (len < 0)
		return len;
	buf[len] = '\0';
	if (len && buf[len - 1] == '\n')
		buf[len - 1] = '\0';
	return len;
}

__attribute__((format(printf, 2, 3)))
static inline int put(const char *text, const char *format, ...)
{
	char path[512];
	va_list args;
	int fd, ret = 0;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

__attribute__((format(printf, 2, 3)))
static inline int put_pid(pid_t pid, const char *format, ...)
{
	char path[512], text[24];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	snprintf(text, sizeof(text), "%d\n", pid);
	return put(text, "%s", path);
}

/* The number behind "key " in a flat-keyed file; -1 none */
static inline long long stat_of(const char *text, const char *key)
{
	size_t len = strlen(key);
	const char *line;

	for (line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, len) && line[len] == ' ')
			return atoll(line + len + 1);
	return -1;
}

/* Next event, waiting for at most ten seconds: true if there was one */
static inline bool any_event(int fd, struct gsched_event *event)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 10000) == 1 && (p.revents & POLLIN) &&
	       read(fd, event, sizeof(*event)) == sizeof(*event) && event->size == sizeof(*event);
}

/* The same, of a slot: what the client is told of its band is passed over */
static inline bool next_event(int fd, struct gsched_event *event)
{
	do {
		if (!any_event(fd, event))
			return false;
	} while (event->type == GSCHED_EVENT_BAND);
	return true;
}

/*
 * Read all that is there: how many events of slots it was, or -errno of a read that failed for
 * another reason than EAGAIN
 */
static inline int drain(int fd)
{
	struct gsched_event event;
	ssize_t got;
	int n = 0;

	while ((got = read(fd, &event, sizeof(event))) == sizeof(event))
		n += event.type != GSCHED_EVENT_BAND;
	return got < 0 && errno == EAGAIN ? n : -errno;
}

/* Run as nobody; the function's result (an errno or 0) comes back */
static inline int as_nobody(int (*fn)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(255);
		_exit(-fn(arg));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -255;
	return -WEXITSTATUS(status);
}

/* A device of the test's own; groups left behind by a test that died are removed */
static inline int test_device(void)
{
	static const char *const groups[] = { "a/b/c", "a/b", "a/c", "a", "b", "c" };
	int fd = gopen();
	unsigned int i;

	if (fd < 0)
		return fd;
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		char path[256];

		snprintf(path, sizeof(path), CONFIG "/" DEV_NAME "/%s", groups[i]);
		rmdir(path);
	}
	del_device(fd, dev_uuid);
	if (add_device(fd, DEV_NAME, dev_uuid, DEV_SMS)) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif /* KMOD_COMMON_H */
