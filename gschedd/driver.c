// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Enumerates the GPUs by asking the driver. This is done in a child process: cuInit() keeps
 * descriptors, threads and gigabytes of address space that a daemon does not need, and a driver
 * that hangs must not hang the daemon.
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gschedd.h"

#define TIMEOUT_MS	60000
#define CU_ERROR_NO_DEVICE	100
#define CU_ATTRIBUTE_MULTIPROCESSOR_COUNT	16
#define CU_ATTRIBUTE_PCI_BUS_ID			33
#define CU_ATTRIBUTE_PCI_DEVICE_ID		34
#define CU_ATTRIBUTE_PCI_DOMAIN_ID		50

#define EXIT_SAID	2	/* of the process that asks: it has logged why */

struct found {
	struct device_decl decl;
	int pci[3];			/* domain, bus, device */
};

static int by_pci(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	for (unsigned int i = 0; i < 3; i++)
		if (x->pci[i] != y->pci[i])
			return x->pci[i] < y->pci[i] ? -1 : 1;
	return memcmp(x->decl.uuid, y->decl.uuid, GSCHED_UUID_SIZE);
}

/*
 * In the order of the PCI bus, whatever CUDA's order: names must be the same after each boot, and
 * match those of nvidia-smi.
 */
static void name_devices(struct found *found, unsigned int n, struct device_decl *out)
{
	qsort(found, n, sizeof(*found), by_pci);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(found[i].decl.name, sizeof(found[i].decl.name), "gpu%u", i);
		out[i] = found[i].decl;
	}
}

/* -1: it cannot tell, which is logged. */
static int query_driver(const char *path, struct device_decl *out, unsigned int max)
{
	const int attribute[3] = {
		CU_ATTRIBUTE_PCI_DOMAIN_ID, CU_ATTRIBUTE_PCI_BUS_ID, CU_ATTRIBUTE_PCI_DEVICE_ID,
	};
	int (*init)(unsigned int), (*get_count)(int *), (*get)(int *, int),
		(*get_uuid)(void *, int),
		(*get_uuid_v2)(void *, int), (*get_attribute)(int *, int, int);
	struct found found[DECLS_MAX] = { 0 };
	int count = 0, dev, sms, rc;
	int n = 0;
	void *lib;

	/* the numbers in CUDA_VISIBLE_DEVICES then mean the same as for nvidia-smi */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		say(opt.driver_given ? LOG_ERROR : LOG_DEBUG, "no driver: %s", dlerror());
		return 0;
	}
	init = dlsym(lib, "cuInit");
	get_count = dlsym(lib, "cuDeviceGetCount");
	get = dlsym(lib, "cuDeviceGet");
	/* for a MIG device, _v2 returns its own UUID, the older one that of its GPU */
	get_uuid_v2 = dlsym(lib, "cuDeviceGetUuid_v2");
	get_uuid = dlsym(lib, "cuDeviceGetUuid");
	get_attribute = dlsym(lib, "cuDeviceGetAttribute");
	if (!init || !get_count || !get || !(get_uuid || get_uuid_v2) || !get_attribute) {
		say(LOG_WARN, "%s: not a CUDA driver; name another one with --driver, or devices "
		    "with --device", path);
		return 0;
	}
	rc = init(0);
	if (rc == CU_ERROR_NO_DEVICE)
		return 0;
	if (rc || (rc = get_count(&count))) {
		say(LOG_ERROR, "%s: its devices are not known: error %d of CUDA; name them with "
		    "--device", path, rc);
		return -1;
	}
	for (int i = 0; i < count && n < (int)max && n < DECLS_MAX; i++) {
		struct found *f = &found[n];

		if (get(&dev, i) || get_attribute(&sms, CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev))
			continue;
		if ((!get_uuid_v2 || get_uuid_v2(f->decl.uuid, dev)) &&
		    (!get_uuid || get_uuid(f->decl.uuid, dev)))
			continue;
		for (unsigned int k = 0; k < 3; k++)
			if (get_attribute(&f->pci[k], attribute[k], dev))
				f->pci[k] = 0;
		f->decl.sms = sms;
		n++;
	}
	name_devices(found, n, out);
	return n;
}

/* Why its process has ended without an answer; 0: it has no devices. -errno, logged. */
static int why_none(const char *path, int status)
{
	if (WIFSIGNALED(status))
		say(LOG_ERROR, "%s: its devices are not known: it was ended by signal %d (%s); "
		    "name them with --device", path, WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) && WEXITSTATUS(status) != EXIT_SAID)
		say(LOG_ERROR, "%s: its devices are not known: its process ended with status %d; "
		    "name them with --device", path, WEXITSTATUS(status));
	return status ? -EIO : 0;
}

/* Is there an answer? -errno, which is logged but for EINTR: @stop_fd can be read first. */
static int wait_answer(const char *path, int fd, int stop_fd)
{
	struct pollfd pfd[2] = { { .fd = fd, .events = POLLIN },
				 { .fd = stop_fd, .events = POLLIN } };
	int n = poll(pfd, 2, TIMEOUT_MS), err = n < 0 ? errno : ETIMEDOUT;

	if (n > 0)
		return pfd[0].revents ? 0 : -EINTR;
	say(LOG_ERROR, "%s: its devices are not known: %s; name them with --device", path,
	    n ? strerror(err) : "it does not answer");
	return -err;
}

int driver_enumerate(const char *path, struct device_decl *out, unsigned int max, int stop_fd)
{
	int pipe_fd[2], status, err;
	ssize_t got = 0;
	pid_t pid;

	if (getenv("CUDA_VISIBLE_DEVICES"))
		say(LOG_INFO, "CUDA_VISIBLE_DEVICES=%s: of the driver's devices only those are "
		    "arbitrated", getenv("CUDA_VISIBLE_DEVICES"));
	if (pipe2(pipe_fd, O_CLOEXEC)) {
		err = errno;
		say(LOG_ERROR, "%s: it cannot be asked for its devices: %m", path);
		return -err;
	}
	pid = fork();
	if (pid < 0) {
		err = errno;
		say(LOG_ERROR, "%s: it cannot be asked for its devices: %m", path);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		return -err;
	}
	if (!pid) {
		struct device_decl found[DECLS_MAX] = { 0 };
		ssize_t size;
		int n;

		/* it has the descriptor that the state is locked by: the next gschedd waits for it */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		n = query_driver(path, found, max < DECLS_MAX ? max : DECLS_MAX);
		size = n * (ssize_t)sizeof(found[0]);
		_exit(n < 0 ? EXIT_SAID : write(pipe_fd[1], found, (size_t)size) != size);
	}
	close(pipe_fd[1]);
	err = wait_answer(path, pipe_fd[0], stop_fd);
	/* smaller than a pipe's atomic write, so it arrives in one piece or not at all */
	if (!err)
		got = read(pipe_fd[0], out, max * sizeof(*out));
	close(pipe_fd[0]);
	/* without an answer it has ended, so this changes nothing */
	kill(pid, SIGKILL);
	/* it may not end for long if it is in the kernel */
	if (err == -EINTR)
		return err;
	waitpid(pid, &status, 0);
	if (!err && got <= 0)
		err = why_none(path, status);
	return err ? err : (int)(got / (ssize_t)sizeof(*out));
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
