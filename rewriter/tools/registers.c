// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Register counts of kernels: from ptxas if it is in PATH, else from the driver if there is one.
 * Nothing else needs either, so that a failure is reported as the reason for a missing count, and
 * is not an error.
 *
 * In: PTX. Out: the register count of each kernel, or the reason why it is not known. Assumes
 * nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gsrewrite.h"

#define PATIENCE_S	10	/* a renderer's kernels of 100 000 lines take minutes */

extern char **environ;

/* The register count of @kernel in the output of `ptxas -v`; -1: not there */
static int count_in_log(const char *log, const char *kernel)
{
	static const char entry[] = "Compiling entry function '", used[] = "Used ";
	size_t n = strlen(kernel);
	const char *at, *next;

	for (at = strstr(log, entry); at; at = next) {
		at += strlen(entry);
		next = strstr(at, entry);
		if (strncmp(at, kernel, n) || at[n] != '\'')
			continue;
		at = strstr(at, used);
		return at && (!next || at < next) ? atoi(at + strlen(used)) : -1;
	}
	return -1;
}

/* "sm_90" of the PTX's .target */
static bool target_of(const char *ptx, char *out, size_t size)
{
	const char *at = strstr(ptx, "\n.target ");
	size_t n;

	if (!at)
		return false;
	at += strlen("\n.target ");
	n = strcspn(at, ", \t\r\n");
	if (n >= size)
		return false;
	memcpy(out, at, n);
	out[n] = 0;
	return true;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Reads to the end, or for PATIENCE_S at most: *@late; malloc'd and NUL-terminated */
static char *read_all(int fd, bool *late)
{
	const int64_t until = now_ms() + PATIENCE_S * 1000;
	struct pollfd in = { .fd = fd, .events = POLLIN };
	char *text = NULL, *grown;
	size_t size = 0, room = 0;
	int64_t left;
	ssize_t n;

	do {
		if (room - size < 2) {
			room = room ? room * 2 : 1 << 14;
			grown = realloc(text, room);
			if (!grown)
				break;
			text = grown;
		}
		left = until - now_ms();
		*late = left <= 0 || !poll(&in, 1, (int)left);
		n = *late ? 0 : read(fd, text + size, room - size - 1);
		size += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (text)
		text[size] = 0;
	return text;
}

/* Runs ptxas. Its output and exit status; *@late: it was ended; NULL: it could not be run */
static char *run_ptxas(const char *path, const char *target, int *status, bool *late)
{
	char arch[64];
	char *const argv[] = { (char *)"ptxas", (char *)"-v", arch, (char *)path, (char *)"-o",
			       (char *)"/dev/null", NULL };
	posix_spawn_file_actions_t actions;
	char *log = NULL;
	int pipes[2];
	pid_t pid;

	snprintf(arch, sizeof(arch), "-arch=%s", target);
	if (pipe(pipes))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
	posix_spawn_file_actions_addclose(&actions, pipes[0]);
	posix_spawn_file_actions_addclose(&actions, pipes[1]);
	if (!posix_spawnp(&pid, "ptxas", &actions, NULL, argv, environ)) {
		close(pipes[1]);
		pipes[1] = -1;
		log = read_all(pipes[0], late);
		if (*late)
			kill(pid, SIGKILL);
		while (waitpid(pid, status, 0) < 0 && errno == EINTR)
			;
		/* some implementations of posix_spawnp() report a missing program only so */
		if (WIFEXITED(*status) && WEXITSTATUS(*status) == 127) {
			free(log);
			log = NULL;
		}
	}
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[0]);
	if (pipes[1] >= 0)
		close(pipes[1]);
	return log;
}

/* False: ptxas could not be run */
static bool count_by_ptxas(const char *ptx, const char *const *kernels, unsigned int n, int *out,
			   char *why, size_t size)
{
	const char *dir = getenv("TMPDIR");
	char path[4096], target[32], *log;
	bool written, late = false;
	unsigned int i;
	int fd, status = -1;
	FILE *f;

	if (!target_of(ptx, target, sizeof(target))) {
		snprintf(why, size, "no target");
		return true;
	}
	snprintf(path, sizeof(path), "%s/gsrewrite-XXXXXX", dir && *dir ? dir : "/tmp");
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		snprintf(why, size, "%.200s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return true;
	}
	written = fputs(ptx, f) >= 0;
	written &= fclose(f) == 0;
	log = written ? run_ptxas(path, target, &status, &late) : NULL;
	unlink(path);
	if (!log)
		return false;
	for (i = 0; i < n; i++)
		out[i] = count_in_log(log, kernels[i]);
	if (late)
		snprintf(why, size, "ptxas takes longer than %d s", PATIENCE_S);
	else if (status)
		snprintf(why, size, "ptxas refuses the PTX: %.*s", (int)strcspn(log, "\n"), log);
	free(log);
	return true;
}

/* The driver's functions, by dlopen(): gsrewrite must run where there is none */

#define NUM_REGS	4	/* CU_FUNC_ATTRIBUTE_NUM_REGS */

struct driver {
	int (*init)(unsigned int flags);
	int (*device)(int *dev, int n);
	int (*retain)(void **ctx, int dev);
	int (*set)(void *ctx);
	int (*load)(void **module, const void *image);
	int (*function)(void **f, void *module, const char *name);
	int (*attribute)(int *value, int what, void *f);
	int (*unload)(void *module);
};

static bool open_driver(struct driver *d)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *ctx;
	struct {
		const char *name;
		void *to;
	} names[] = {
		{ "cuInit", &d->init }, { "cuDeviceGet", &d->device },
		{ "cuDevicePrimaryCtxRetain", &d->retain },
		{ "cuCtxSetCurrent", &d->set }, { "cuModuleLoadData", &d->load },
		{ "cuModuleGetFunction", &d->function },
		{ "cuFuncGetAttribute", &d->attribute }, { "cuModuleUnload", &d->unload },
	};
	unsigned int i;
	void *symbol;
	int dev;

	if (!lib)
		return false;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		symbol = dlsym(lib, names[i].name);
		if (!symbol)
			return false;
		memcpy(names[i].to, &symbol, sizeof(symbol));
	}
	return !d->init(0) && !d->device(&dev, 0) && !d->retain(&ctx, dev) && !d->set(ctx);
}

static void count_by_driver(const char *ptx, const char *const *kernels, unsigned int n, int *out,
			    char *why, size_t size)
{
	static struct driver d;
	static int state;	/* 0: not tried yet */
	void *module, *f;
	unsigned int i;
	int rc;

	if (!state)
		state = open_driver(&d) ? 1 : -1;
	if (state < 0) {
		snprintf(why, size, "neither ptxas in PATH nor a driver with a device");
		return;
	}
	rc = d.load(&module, ptx);
	if (rc) {
		snprintf(why, size, "the driver does not load it (error %d)", rc);
		return;
	}
	for (i = 0; i < n; i++)
		if (d.function(&f, module, kernels[i]) || d.attribute(&out[i], NUM_REGS, f))
			out[i] = -1;
	d.unload(module);
}

void gsr_registers(const char *ptx, const char *const *kernels, unsigned int n, int *out,
		   const char **by, char *why, size_t size)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		out[i] = -1;
	why[0] = 0;
	*by = "ptxas";
	if (count_by_ptxas(ptx, kernels, n, out, why, size))
		return;
	*by = "the driver";
	count_by_driver(ptx, kernels, n, out, why, size);
}
