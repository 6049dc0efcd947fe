// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: groups, quotas and status of gsched, and the way to run programs under it. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"

static const struct subcommand {
	const char *name;
	int (*fn)(struct ctl *ctl, int argc, char **argv);
	const char *args, *help;
} subcommands[] = {
	{ "run", ctl_run, "[-g GROUP] [-c] [--strict] [--limit-by=sm|rank|worker] [--dispatch=queue|static] [--workers=N] -- PROGRAM [ARG ...]",
	  "run a CUDA program under gsched, in GROUP (-c: make the group if there is none)" },
	{ "run", ctl_run, "[-g GROUP] [-c] -e",
	  "bind the calling shell instead and print its settings: eval \"$(gschedctl run -g GROUP -e)\"" },
	{ "group", ctl_group, "create NAME", "make a group; a/b is b below a" },
	{ "group", ctl_group, "set NAME FILE=VALUE ...", "for example: group set batch capsm.max=4 gpu.priority=0" },
	{ "group", ctl_group, "get NAME FILE", "print one file" },
	{ "group", ctl_group, "show [NAME]", "print all files of a group, or of every group" },
	{ "group", ctl_group, "delete NAME", "remove a group without clients and groups below it" },
	{ "device", ctl_device, "set [NAME] FILE=VALUE ...", "mode=auto|spatial|temporal, policy=hpf|ffs, clients_max=N ..." },
	{ "device", ctl_device, "delete NAME [--force]", "forget a device; --force: its programs go on unmanaged" },
	{ "status", ctl_status, "[--json]", "devices, groups, clients, and why a kernel is not preemptible" },
	{ "watch", ctl_watch, "[-n SECONDS]", "status again and again" },
};
#define N_SUBCOMMANDS	(sizeof(subcommands) / sizeof(subcommands[0]))

void ctl_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("gschedctl: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static void usage(FILE *to, const char *only)
{
	if (!only)
		fputs("Usage: gschedctl [-d DEVICE] [-s SOCKET] [-b module|daemon] COMMAND ...\n\n", to);
	else
		fputs("Usage:\n", to);
	for (size_t i = 0; i < N_SUBCOMMANDS; i++)
		if (!only || !strcmp(only, subcommands[i].name))
			fprintf(to, "  gschedctl %s %s\n        %s\n", subcommands[i].name, subcommands[i].args,
				subcommands[i].help);
	if (!only)
		fputs("\n  -d, --device NAME   the device (default: the first)\n"
		      "  -s, --socket PATH   gschedd's socket (default $GSCHED_SOCKET)\n"
		      "  -b, --backend NAME  module or daemon (default: the module if it is loaded)\n"
		      "  -h, --help, -V, --version\n", to);
}

struct gsched *ctl_open(struct ctl *ctl)
{
	struct gsched *g = gsched_open(&ctl->open);

	if (!g && errno == EACCES)
		ctl_error("the arbiter may not be used by this user: %s; see the permissions of /dev/gsched or of gschedd's "
			  "socket", strerror(errno));
	else if (!g)
		ctl_error("no arbiter: %s; load the module (modprobe gsched) or start gschedd", strerror(errno));
	return g;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "socket", required_argument, NULL, 's' },
		{ "backend", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct ctl ctl = { .open.size = sizeof(ctl.open) };
	int c, rc;

	while ((c = getopt_long(argc, argv, "+d:s:b:hV", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			ctl.device = optarg;
			break;
		case 's':
			ctl.open.socket = optarg;
			break;
		case 'b':
			if (!strcmp(optarg, "module")) {
				ctl.open.backend = GSCHED_BACKEND_MODULE;
			} else if (!strcmp(optarg, "daemon")) {
				ctl.open.backend = GSCHED_BACKEND_DAEMON;
			} else {
				ctl_error("--backend %s: it is module or daemon", optarg);
				return CTL_USAGE;
			}
			break;
		case 'h':
			usage(stdout, NULL);
			return 0;
		case 'V':
			puts("gschedctl 0.1");
			return 0;
		default:
			usage(stderr, NULL);
			return CTL_USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	optind = 0;
	if (!argc) {
		usage(stderr, NULL);
		return CTL_USAGE;
	}
	for (size_t i = 0; i < N_SUBCOMMANDS; i++) {
		if (strcmp(argv[0], subcommands[i].name))
			continue;
		rc = subcommands[i].fn(&ctl, argc, argv);
		if (rc == CTL_USAGE)
			usage(stderr, argv[0]);
		if (fflush(stdout) || ferror(stdout)) {
			ctl_error("output: %s", strerror(errno));
			return CTL_FAIL;
		}
		return rc;
	}
	ctl_error("%s: no such command", argv[0]);
	usage(stderr, NULL);
	return CTL_USAGE;
}
