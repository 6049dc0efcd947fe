// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl run: binds to the group, preloads the interposer, and executes the program. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"
#include "ctl_bind.h"
#include "ctl_scope.h"
#include "libgsched/proto.h"

#ifndef GSCHED_LIBDIR
#define GSCHED_LIBDIR	"/usr/local/lib"
#endif
#define INTERPOSER	"gsched/libcuda.so.1"

/*
 * $GSCHED_INTERPOSER, else beside this binary (build tree and relocated installations), else where
 * it was installed. NULL: @why has the problem and the remedy.
 */
static const char *find_interposer(char *why, size_t size)
{
	static char path[PATH_MAX];
	const char *env = getenv("GSCHED_INTERPOSER"), *found = NULL;
	char *slash;
	ssize_t n;

	n = readlink("/proc/self/exe", path, PATH_MAX - sizeof("/lib/" INTERPOSER));
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	slash = strrchr(path, '/');
	if (slash)
		strcpy(slash, "/lib/" INTERPOSER);
	if (env && *env)
		found = env;
	else if (slash && !access(path, R_OK))
		found = path;
	else if (!access(GSCHED_LIBDIR "/" INTERPOSER, R_OK))
		found = GSCHED_LIBDIR "/" INTERPOSER;
	if (!found)
		snprintf(why, size,
			 "the interposer (lib/" INTERPOSER ") is not installed; set "
			 "$GSCHED_INTERPOSER to its path");
	else if (access(found, R_OK))
		snprintf(why, size, "$GSCHED_INTERPOSER %s: %s", found, strerror(errno));
	else if (strpbrk(found, ": \t"))
		snprintf(why, size,
			 "%s: the dynamic linker takes no path with a space or a colon; move it",
			 found);
	else
		return found;
	return NULL;
}

/* Ours comes first, because the driver's name must resolve to it. The user's preloads stay. */
static int set_preload(const char *interposer)
{
	const char *old = getenv("LD_PRELOAD");
	size_t len = strlen(interposer);
	char *list;
	int rc;

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

/* The program must use the arbiter that its group belongs to. */
static void export_arbiter(const struct ctl *ctl, const struct gsched *g)
{
	const char *env = getenv("GSCHED_SOCKET"), *socket = ctl->open.socket;
	char path[PATH_MAX];

	/* the program may change its directory */
	if (!socket && env && *env && *env != '/')
		socket = env;
	if (socket)
		setenv("GSCHED_SOCKET", realpath(socket, path) ? path : socket, 1);
	else if (gsched_backend(g) == GSCHED_BACKEND_DAEMON)
		setenv("GSCHED_SOCKET", GSP_SOCKET_DEFAULT, 0);
	if (ctl->open.backend != GSCHED_BACKEND_ANY)
		setenv("GSCHED_BACKEND",
		       ctl->open.backend == GSCHED_BACKEND_DAEMON ? "daemon" : "module", 1);
}

/* Sets an option that the interposer reads from the environment to one of @words. */
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
	return EINVAL;
}

/* Sets the most workers per SM. */
static int set_workers(const char *value)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || *value < '0' || *value > '9' || *end || !n || n > 32) {
		ctl_error("run: --workers=%s: a number from 1 to 32", value);
		return EINVAL;
	}
	return setenv("GSCHED_WORKERS", value, 1);
}

static struct {
	const char *group;
	bool create, env, strict, best_effort, no_scope, verbose;
} opt;

static const struct argp_option options[] = {
	{ "group", 'g', "GROUP", 0, "Put the program, and what it starts, into this group on every "
	  "device, or on those of --device, names with commas", 0 },
	{ "create", 'c', NULL, 0, "Make the group, and those above it, if they are not there", 0 },
	{ "strict", 's' + 256, NULL, 0, "Do not run the program outside its band's MPS server", 0 },
	{ "best-effort", 'b' + 256, NULL, 0,
	  "Run it unmanaged if there is no arbiter or no interposer", 0 },
	{ "limit-by", 'l' + 256, "rank|worker", 0,
	  "What the program's limits count (default: rank, SMs)", 0 },
	{ "dispatch", 'd' + 256, "queue|static", 0,
	  "How preemptible kernels hand out their blocks (default: queue)", 0 },
	{ "workers", 'w' + 256, "N", 0,
	  "At most N blocks of a preemptible kernel on an SM (1 to 32)", 0 },
	{ "class", 'c' + 256, "CLASS", 0,
	  "What the program's kernels demand most: L_C, M_C, H_C, M_M or H_M (for policy corun)",
	  0 },
	{ "no-scope", 'n' + 256, NULL, 0, "Leave the program in the cgroup that it is in", 0 },
	{ "verbose", 'v', NULL, 0, "Say what cgroup the program is in, or why in no other one", 0 },
	{ "env", 'e', NULL, 0,
	  "Bind the calling shell instead and print its settings, for eval", 0 },
	{ 0 },
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'g':
		opt.group = ctl_group_path(arg);
		return opt.group ? 0 : EINVAL;
	case 'c':
		opt.create = true;
		return 0;
	case 'e':
		opt.env = true;
		return 0;
	case 'n' + 256:
		opt.no_scope = true;
		return 0;
	case 'v':
		opt.verbose = true;
		return 0;
	case 's' + 256:
		opt.strict = true;
		return 0;
	case 'b' + 256:
		opt.best_effort = true;
		return 0;
	case 'l' + 256:
		return set_choice("limit-by", "GSCHED_LIMIT_BY", arg, "rank worker");
	case 'd' + 256:
		return set_choice("dispatch", "GSCHED_DISPATCH", arg, "queue static");
	case 'c' + 256:
		return set_choice("class", "GSCHED_CLASS", arg, "L_C M_C H_C M_M H_M");
	case 'w' + 256:
		return set_workers(arg);
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp ctl_run_options = { .options = options, .parser = option };

#define N_OF_BAND	3
static const char *const of_band[N_OF_BAND] = {
	"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "GSCHED_BAND",
};

/* Prints settings for a shell's eval; @had: which variables of the band were set before. */
static void print_settings(const bool *had)
{
	print_setting("LD_PRELOAD");
	for (size_t i = 0; i < N_OF_BAND; i++)
		if (!getenv(of_band[i]) && had[i])
			printf("unset %s\n", of_band[i]);
		else
			print_setting(of_band[i]);
	print_setting("GSCHED_SOCKET");
	print_setting("GSCHED_BACKEND");
	print_setting("GSCHED_LIMIT_BY");
	print_setting("GSCHED_DISPATCH");
	print_setting("GSCHED_WORKERS");
	print_setting("GSCHED_CLASS");
}

/*
 * Joins the group and its band, and sets the program's environment. Returns CTL_FAIL after printing
 * the error.
 */
static int join_group(struct ctl *ctl, struct gsched *g)
{
	const char *group = opt.group && *opt.group ? opt.group : NULL;
	/* 0, the caller: its number may be another one in the arbiter's pid namespace */
	pid_t pid = opt.env ? getppid() : 0;
	struct ctl_devices devices;
	int rc = CTL_FAIL;

	if (ctl_devices_get(&devices, ctl, g, group) &&
	    !(group && ctl_bind(ctl, g, &devices, group, opt.create, pid))) {
		export_arbiter(ctl, g);
		if (group && !opt.env && !opt.no_scope)
			ctl_scope(g, &devices, group, opt.verbose);
		rc = ctl_bind_band(ctl, g, &devices, group, pid, opt.strict);
	}
	ctl_devices_put(&devices);
	return rc;
}

/*
 * Finds an arbiter and the interposer, or neither with --best-effort. Returns CTL_FAIL after
 * printing the error.
 */
static int set_up_gsched(struct ctl *ctl, const char *program)
{
	char why[PATH_MAX + 128] = "";
	const char *interposer = find_interposer(why, sizeof(why));
	struct gsched *g;
	int rc;

	if (!interposer && !opt.best_effort) {
		ctl_error("%s; or --best-effort to run the program unmanaged", why);
		return CTL_FAIL;
	}
	g = interposer ? gsched_open(&ctl->open) : NULL;
	if (!g && !opt.best_effort) {
		ctl_no_arbiter(ctl, ", or --best-effort to run the program unmanaged");
		return CTL_FAIL;
	}
	if (!interposer)
		ctl_error("%s; %s runs unmanaged", why, program);
	else if (!g)
		ctl_error("no arbiter: %s: %s; %s runs unmanaged", ctl_arbiter_path(ctl),
			  strerror(errno), program);
	if (!g)
		return 0;
	rc = join_group(ctl, g);
	gsched_close(g);
	if (!rc && set_preload(interposer)) {
		ctl_error("LD_PRELOAD: %s", strerror(errno));
		rc = CTL_FAIL;
	}
	return rc;
}

int ctl_run(struct ctl *ctl, int argc, char **argv)
{
	bool had[N_OF_BAND];
	int rc;

	for (size_t i = 0; i < N_OF_BAND; i++)
		had[i] = getenv(of_band[i]);
	if (opt.env && argc) {
		ctl_error("run: --env runs nothing: leave the program out");
		return CTL_USAGE;
	}
	if (!opt.env && !argc) {
		ctl_error("run: name the program to run: gschedctl run -- PROGRAM [ARG...]");
		return CTL_USAGE;
	}
	if (opt.create && !opt.group) {
		ctl_error("run: --create needs --group");
		return CTL_USAGE;
	}
	if (opt.strict && opt.best_effort) {
		ctl_error("run: --strict and --best-effort: choose one");
		return CTL_USAGE;
	}
	rc = set_up_gsched(ctl, opt.env ? "what this shell starts" : argv[0]);
	if (rc)
		return rc;
	if (opt.env) {
		print_settings(had);
		return 0;
	}
	execvp(argv[0], argv);
	rc = errno == ENOENT ? 127 : 126;
	ctl_error("%s: %s", argv[0], strerror(errno));
	return rc;
}
