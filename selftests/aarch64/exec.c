// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Under qemu-user, programs of the same architecture that a program starts: the kernel knows them
 * only where somebody registered qemu with binfmt_misc, so they are started by qemu's name, and
 * have this library preloaded, too.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QEMU		"/usr/bin/qemu-aarch64"
#define LIBRARY		BUILD "/lib/libexec-qemu.so"
#define EXPORT		__attribute__((visibility("default")))
#define ARGS_MAX	256
#define OURS		10	/* arguments of qemu's own, and NULL */
#define PRELOAD		"LD_PRELOAD="
#define LIBRARY_PATH	"LD_LIBRARY_PATH="

static const char root[] = BUILD "/root";

static bool is_ours(const char *path)
{
	Elf64_Ehdr head = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ours = fd >= 0 && read(fd, &head, sizeof(head)) == sizeof(head) &&
		    !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_machine == EM_AARCH64;

	if (fd >= 0)
		close(fd);
	return ours;
}

static size_t length(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* As the program asked for, and this library */
static char *preload(const char *wanted)
{
	char *setting;

	if (!wanted || !wanted[strlen(PRELOAD)])
		return strdup(PRELOAD LIBRARY);
	if (strstr(wanted, LIBRARY))
		return strdup(wanted);
	return asprintf(&setting, "%s:%s", wanted, LIBRARY) < 0 ? NULL : setting;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	const char *args[ARGS_MAX + OURS] = { QEMU, "-L", root, "-0", argv[0] }, *wanted = NULL;
	size_t n = 5, n_env = 0, n_args = length(argv), i;
	char **env, *setting, self[PATH_MAX];

	if (!is_ours(path))
		return (int)syscall(SYS_execve, path, argv, envp);
	if (!strcmp(path, "/proc/self/exe")) {
		ssize_t got = readlink(path, self, sizeof(self) - 1);

		self[got < 0 ? 0 : got] = '\0';
		path = self;
	}
	env = calloc(length(envp) + 1, sizeof(*env));
	if (!env || n_args > ARGS_MAX) {
		free(env);
		errno = E2BIG;
		return -1;
	}
	/* for the program and not for qemu, which is of another architecture */
	for (i = 0; envp[i]; i++)
		if (!strncmp(envp[i], PRELOAD, strlen(PRELOAD))) {
			wanted = envp[i];
		} else if (!strncmp(envp[i], LIBRARY_PATH, strlen(LIBRARY_PATH))) {
			args[5] = "-E";
			args[6] = envp[i];
			n = 7;
		} else {
			env[n_env++] = envp[i];
		}
	setting = preload(wanted);
	if (!setting) {
		free(env);
		return -1;
	}
	args[n++] = "-E";
	args[n++] = setting;
	args[n++] = path;
	for (i = 1; i <= n_args; i++)
		args[n++] = argv[i];
	syscall(SYS_execve, QEMU, args, env);
	free(setting);
	free(env);
	return -1;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	const char *dir = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(file, '/'))
		return execve(file, argv, environ);
	for (; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(dir, ":"), dir, file);
		if (!access(path, X_OK))
			return execve(path, argv, environ);
	}
	errno = ENOENT;
	return -1;
}

EXPORT int execl(const char *path, const char *arg, ...)
{
	char *argv[ARGS_MAX + 1] = { (char *)arg };
	va_list ap;
	int n = 0;

	va_start(ap, arg);
	while (n < ARGS_MAX && argv[n])
		argv[++n] = va_arg(ap, char *);
	va_end(ap);
	if (argv[n]) {
		errno = E2BIG;
		return -1;
	}
	return execve(path, argv, environ);
}
