// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which GPUs there are, by the driver's own account. Asked in a child process: cuInit keeps descriptors, threads and
 * gigabytes of address space that a daemon has no use for, and a driver that hangs must not hang it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gschedd.h"

#define TIMEOUT_MS	60000
#define CU_ATTRIBUTE_MULTIPROCESSOR_COUNT	16

static unsigned int ask(const char *path, struct device_decl *out, unsigned int max)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int), (*get_count)(int *), (*get)(int *, int), (*get_uuid)(void *, int),
		(*get_attribute)(int *, int, int);
	int count = 0, dev, sms, rc;
	unsigned int n = 0;

	if (!lib) {
		say(LOG_DEBUG, "no driver: %s", dlerror());
		return 0;
	}
	init = dlsym(lib, "cuInit");
	get_count = dlsym(lib, "cuDeviceGetCount");
	get = dlsym(lib, "cuDeviceGet");
	get_uuid = dlsym(lib, "cuDeviceGetUuid");
	if (!get_uuid)
		get_uuid = dlsym(lib, "cuDeviceGetUuid_v2");
	get_attribute = dlsym(lib, "cuDeviceGetAttribute");
	if (!init || !get_count || !get || !get_uuid || !get_attribute) {
		say(LOG_WARN, "%s: not a CUDA driver; name another one with --driver, or devices with --device", path);
		return 0;
	}
	rc = init(0);
	if (rc || get_count(&count)) {
		say(LOG_WARN, "%s: cuInit: error %d; name devices with --device", path, rc);
		return 0;
	}
	for (int i = 0; i < count && n < max; i++) {
		struct device_decl *d = &out[n];

		if (get(&dev, i) || get_uuid(d->uuid, dev) || get_attribute(&sms, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev))
			continue;
		d->sms = sms;
		snprintf(d->name, sizeof(d->name), "gpu%d", i);
		n++;
	}
	return n;
}

int driver_enumerate(const char *path, struct device_decl *out, unsigned int max)
{
	size_t got = 0;
	struct pollfd pfd;
	int pipe_fd[2], status;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = errno;

		close(pipe_fd[0]);
		close(pipe_fd[1]);
		return -err;
	}
	if (!pid) {
		struct device_decl found[DECLS_MAX] = { 0 };
		unsigned int n = ask(path, found, max < DECLS_MAX ? max : DECLS_MAX);
		size_t size = n * sizeof(found[0]);

		_exit(write(pipe_fd[1], found, size) == (ssize_t)size ? 0 : 1);
	}
	close(pipe_fd[1]);
	pfd = (struct pollfd){ .fd = pipe_fd[0], .events = POLLIN };
	/* less than a pipe's atomic write: it comes in one piece, or the end does */
	if (poll(&pfd, 1, TIMEOUT_MS) > 0) {
		ssize_t n = read(pipe_fd[0], out, max * sizeof(*out));

		if (n > 0)
			got = n / sizeof(*out);
	} else {
		say(LOG_WARN, "%s: does not answer; name devices with --device", path);
	}
	close(pipe_fd[0]);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return got;
}

int module_add(const struct device_decl *decl)
{
	struct gsched_device_add req = { .size = sizeof(req), .sms = decl->sms };
	int fd = open(GSCHED_DEVICE_NODE, O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	memcpy(req.uuid, decl->uuid, sizeof(req.uuid));
	memcpy(req.name, decl->name, sizeof(req.name));
	err = ioctl(fd, GSCHED_IOC_DEVICE_ADD, &req) ? -errno : 0;
	close(fd);
	return err;
}
