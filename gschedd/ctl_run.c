// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl run: into the group, the interposer in front, and exec. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"
#include "libgsched/proto.h"

#ifndef GSCHED_LIBDIR
#define GSCHED_LIBDIR	"/usr/local/lib"
#endif
#define INTERPOSER	"gsched/libcuda.so.1"

/* $GSCHED_INTERPOSER, else beside this binary (build tree and relocated installs), else where it was installed. */
static const char *find_interposer(void)
{
	static char path[PATH_MAX + 64];
	const char *env = getenv("GSCHED_INTERPOSER");
	char *slash;
	ssize_t n;

	if (env && *env) {
		if (!access(env, R_OK))
			return env;
		ctl_error("$GSCHED_INTERPOSER %s: %s", env, strerror(errno));
		return NULL;
	}
	n = readlink("/proc/self/exe", path, PATH_MAX);
	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			strcpy(slash, "/lib/" INTERPOSER);
			if (!access(path, R_OK))
				return path;
		}
	}
	if (!access(GSCHED_LIBDIR "/" INTERPOSER, R_OK))
		return GSCHED_LIBDIR "/" INTERPOSER;
	ctl_error("the interposer (lib/" INTERPOSER ") is not installed; set $GSCHED_INTERPOSER to its path");
	return NULL;
}

/* Ours first: the driver's name must resolve to it. What the user preloads stays. */
static int preload(const char *interposer)
{
	const char *old = getenv("LD_PRELOAD");
	size_t len = strlen(interposer);
	char *list;
	int rc;

	if (strpbrk(interposer, ": \t")) {
		ctl_error("%s: the dynamic linker cannot preload a path with a space or a colon; move it", interposer);
		return -1;
	}
	if (!old || !*old)
		return setenv("LD_PRELOAD", interposer, 1);
	if (!strncmp(old, interposer, len) && (!old[len] || old[len] == ':' || old[len] == ' '))
		return 0;
	if (asprintf(&list, "%s:%s", interposer, old) < 0)
		return -1;
	rc = setenv("LD_PRELOAD", list, 1);
	free(list);
	return rc;
}

static void print_setting(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		return;
	printf("export %s='", name);
	for (; *value; value++)
		if (*value == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*value);
	puts("'");
}

static int bind(struct ctl *ctl, struct gsched *g, const char *group, bool create, pid_t pid)
{
	char text[16];

	if (create && ctl_group_create(g, ctl->device, group))
		return ctl_group_error(group, NULL, NULL);
	snprintf(text, sizeof(text), "%d", (int)pid);
	if (gsched_group_set(g, ctl->device, group, "procs", text))
		return ctl_group_error(group, "procs", text);
	return 0;
}

/* The program must find the arbiter that its group is in. */
static void export_arbiter(const struct ctl *ctl, const struct gsched *g)
{
	char path[PATH_MAX];

	if (ctl->open.socket)
		setenv("GSCHED_SOCKET", realpath(ctl->open.socket, path) ? path : ctl->open.socket, 1);
	else if (gsched_backend(g) == GSCHED_BACKEND_DAEMON)
		setenv("GSCHED_SOCKET", GSP_SOCKET_DEFAULT, 0);
	if (ctl->open.backend != GSCHED_BACKEND_ANY)
		setenv("GSCHED_BACKEND", ctl->open.backend == GSCHED_BACKEND_DAEMON ? "daemon" : "module", 1);
}

/* An option that the interposer reads from the environment: one of @words */
static int set_choice(const char *option, const char *name, const char *value, const char *words)
{
	size_t len = strlen(value);
	const char *w;

	for (w = words; w; w = strchr(w, ' ')) {
		w += *w == ' ';
		if (len && !strncmp(w, value, len) && (!w[len] || w[len] == ' '))
			return setenv(name, value, 1);
	}
	ctl_error("run: --%s=%s: none of %s", option, value, words);
	return -1;
}

/* How many workers an SM gets at most */
static int set_workers(const char *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || !*value || *value == '-' || *end || !n || n > 32) {
		ctl_error("run: --workers=%s: a number from 1 to 32", value);
		return -1;
	}
	return setenv("GSCHED_WORKERS", value, 1);
}

int ctl_run(struct ctl *ctl, int argc, char **argv)
{
	static const struct option options[] = {
		{ "group", required_argument, NULL, 'g' },
		{ "create", no_argument, NULL, 'c' },
		{ "env", no_argument, NULL, 'e' },
		{ "strict", no_argument, NULL, 's' },
		{ "device", required_argument, NULL, 'd' },
		{ "limit-by", required_argument, NULL, 'l' },
		{ "dispatch", required_argument, NULL, 'D' },
		{ "workers", required_argument, NULL, 'w' },
		{ 0 },
	};
	const char *group = NULL, *interposer;
	bool create = false, env = false, strict = false;
	static const char *const of_band[] = { "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "GSCHED_BAND" };
	bool had[sizeof(of_band) / sizeof(of_band[0])];
	struct gsched *g;
	int c, rc;

	for (size_t i = 0; i < sizeof(had); i++)
		had[i] = getenv(of_band[i]);
	while ((c = getopt_long(argc, argv, "+g:ced:", options, NULL)) != -1) {
		switch (c) {
		case 'g':
			group = optarg;
			while (*group == '/')
				group++;
			break;
		case 'c':
			create = true;
			break;
		case 'e':
			env = true;
			break;
		case 's':
			strict = true;
			break;
		case 'd':
			ctl->device = optarg;
			break;
		case 'l':
			if (set_choice("limit-by", "GSCHED_LIMIT_BY", optarg, "sm rank worker"))
				return CTL_USAGE;
			break;
		case 'D':
			if (set_choice("dispatch", "GSCHED_DISPATCH", optarg, "queue static"))
				return CTL_USAGE;
			break;
		case 'w':
			if (set_workers(optarg))
				return CTL_USAGE;
			break;
		default:
			return CTL_USAGE;
		}
	}
	argv += optind;
	argc -= optind;
	if (env ? argc > 0 : !argc)
		return CTL_USAGE;
	if (create && !group) {
		ctl_error("run: --create needs --group");
		return CTL_USAGE;
	}

	g = ctl_open(ctl);
	if (g) {
		rc = group && *group ? bind(ctl, g, group, create, env ? getppid() : getpid()) : 0;
		if (!rc)
			export_arbiter(ctl, g);
		if (!rc && ctl_band(ctl, g, group && *group ? group : NULL, env ? getppid() : 0, strict))
			rc = CTL_FAIL;
		gsched_close(g);
		if (rc)
			return rc;
	}
	interposer = g ? find_interposer() : NULL;
	if (interposer && preload(interposer))
		interposer = NULL;
	if (!interposer) {
		if (strict)
			return CTL_FAIL;
		if (!env)
			ctl_error("%s runs unmanaged (--strict refuses that)", argv[0]);
	}
	if (env) {
		print_setting("LD_PRELOAD");
		for (size_t i = 0; i < sizeof(of_band) / sizeof(of_band[0]); i++)
			if (!getenv(of_band[i]) && had[i])
				printf("unset %s\n", of_band[i]);
			else
				print_setting(of_band[i]);
		print_setting("GSCHED_SOCKET");
		print_setting("GSCHED_BACKEND");
		print_setting("GSCHED_LIMIT_BY");
		print_setting("GSCHED_DISPATCH");
		print_setting("GSCHED_WORKERS");
		return interposer ? 0 : CTL_FAIL;
	}
	execvp(argv[0], argv);
	rc = errno == ENOENT ? 127 : 126;
	ctl_error("%s: %s", argv[0], strerror(errno));
	return rc;
}
