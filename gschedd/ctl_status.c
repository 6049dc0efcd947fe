// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl status, gschedctl watch: the arbiter's JSON as tables. A key that a backend does not have shows as "-". */
#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "ctl_mps.h"

/* A value as text; numbers and lists too. Each call may use one of the last sixteen buffers. */
static const char *text(const cJSON *o, const char *key)
{
	static char buf[16][256];
	static unsigned int next;
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key), *i;
	char *b = buf[next++ % 16];
	size_t used = 0;

	if (cJSON_IsString(v))
		return *v->valuestring ? v->valuestring : "-";
	if (cJSON_IsNumber(v)) {
		snprintf(b, sizeof(buf[0]), "%.15g", v->valuedouble);
		return b;
	}
	*b = '\0';
	if (cJSON_IsArray(v))
		cJSON_ArrayForEach(i, v)
			if (cJSON_IsNumber(i) && used < sizeof(buf[0]) - 16)
				used += snprintf(b + used, sizeof(buf[0]) - used, "%s%.0f", used ? "," : "", i->valuedouble);
	return *b ? b : "-";
}

static double number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static const char *group_name(const char *path)
{
	return strcmp(path, "-") ? path : "/";
}

static void print_groups(const cJSON *groups)
{
	const cJSON *g;

	printf("  %-24s %8s %8s %6s %8s %8s %8s %8s %8s  %s\n", "GROUP", "MAX", "MIN", "WEIGHT", "PRIORITY", "CURRENT", "GRANTS",
	       "EVICTED", "GROWN", "BOUND");
	cJSON_ArrayForEach(g, groups) {
		const cJSON *stat = cJSON_GetObjectItemCaseSensitive(g, "gpu.stat");
		const char *procs = text(g, "procs"), *cgroup = text(g, "cgroup");
		bool both = strcmp(procs, "-") && strcmp(cgroup, "-");

		printf("  %-24s %8s %8s %6s %8s %8s %8s %8s %8s  %s%s%s\n", group_name(text(g, "path")), text(g, "capsm.max"),
		       text(g, "capsm.min"), text(g, "gpu.weight"), text(g, "gpu.priority"), text(g, "capsm.current"),
		       text(stat, "grants"), text(stat, "evictions"), text(stat, "growths"), both ? procs : "",
		       both ? " " : "", strcmp(cgroup, "-") ? cgroup : procs);
	}
}

/* The bands that share the device in time, and what protects or limits each */
static void print_bands(const cJSON *bands)
{
	const cJSON *b;

	if (!cJSON_GetArraySize(bands))
		return;
	printf("  %-24s %-28s %8s %9s %9s %-8s %-4s  %s\n", "BAND", "CLIENTS", "PRIORITY", "SLICE_US", "IN_FORCE", "ACTIVITY", "TURN",
	       "WHY");
	cJSON_ArrayForEach(b, bands) {
		const char *server = text(b, "server"), *in_force = number(b, "applied_us") ? text(b, "applied_us") : "-";
		char clients[256];

		snprintf(clients, sizeof(clients), "%s%s%s", text(b, "clients"), strcmp(server, "-") ? " of server " : "",
			 strcmp(server, "-") ? server : "");
		printf("  %-24s %-28s %8s %9s %9s %-8s %-4s  %s\n", text(b, "name"), clients, text(b, "priority"),
		       number(b, "slice_us") ? text(b, "slice_us") : "-", in_force, text(b, "activity"),
		       cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(b, "turn")) ? "yes" : "-", text(b, "why"));
	}
}

static void print_slots(const cJSON *client)
{
	static const char *const tier[] = { "block", "slice", "launch" };
	const cJSON *s;

	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(client, "slots")) {
		double t = number(s, "tier"), base = number(s, "base") / 1024, limit = number(s, "limit") / 1024;
		const char *state = text(s, "state"), *stream = text(s, "stream");

		printf("          slot %s seq %s: %s%s%s, %s block-tasks, %g SMs from %g, acts on %g, %s workers launched, %s left%s%s\n",
		       text(s, "slot"), text(s, "seq"), strcmp(state, "-") ? state : "", strcmp(state, "-") ? ", " : "",
		       t == 0 || t == 1 || t == 2 ? tier[(int)t] : "?", text(s, "blocks"), limit, base,
		       number(s, "seen") / 1024, text(s, "launched"), text(s, "left"),
		       strcmp(stream, "-") && strcmp(stream, "0") ? ", stream " : "",
		       strcmp(stream, "-") && strcmp(stream, "0") ? stream : "");
	}
}

static void print_clients(const cJSON *clients)
{
	const cJSON *c;

	if (!cJSON_GetArraySize(clients)) {
		puts("  no clients");
		return;
	}
	printf("  %7s %-16s %-24s %-16s %-6s %8s %9s %8s %8s %8s %9s %6s %6s %9s  %s\n", "PID", "COMMAND", "GROUP", "BAND", "LEASE",
	       "BLOCK", "RESUMABLE", "SLICE", "LAUNCH", "PASSED", "UNMANAGED", "WINGS", "SHARE", "HELD_MS", "WHY");
	cJSON_ArrayForEach(c, clients) {
		const cJSON *m = cJSON_GetObjectItemCaseSensitive(c, "managed");

		bool has_share = cJSON_GetObjectItemCaseSensitive(c, "share");
		char share[16] = "-";

		if (has_share)
			snprintf(share, sizeof(share), "%.3g%%", number(c, "share") * 100);
		printf("  %7s %-16s %-24s %-16s %-6s %8s %9s %8s %8s %8s %9s %6s %6s %9.0f  %s\n", text(c, "pid"), text(c, "comm"),
		       group_name(text(c, "group")), text(c, "band"), text(c, "lease"), text(m, "block"), text(c, "resumable"),
		       text(m, "slice"), text(m, "launch"), text(c, "passed"), text(c, "unmanaged"), text(c, "wings"), share,
		       number(c, "held_ns") / 1e6, text(c, "why"));
		if (strcmp(text(c, "hold"), "-"))
			printf("          %s\n", text(c, "hold"));
		print_slots(c);
	}
}

static void print_status(const cJSON *root, const char *only)
{
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *d, *r;
	const cJSON *rewrites = cJSON_GetObjectItemCaseSensitive(root, "rewrites");

	if (!cJSON_GetArraySize(devices))
		printf("no devices (%s)\n", text(root, "backend"));
	cJSON_ArrayForEach(d, devices) {
		if (only && strcmp(only, text(d, "name")))
			continue;
		printf("%s: %s SMs, %s, policy %s, arbiter: %s, UUID %s\n", text(d, "name"), text(d, "sms"), text(d, "mode"),
		       text(d, "policy"), text(root, "backend"), text(d, "uuid"));
		print_groups(cJSON_GetObjectItemCaseSensitive(d, "groups"));
		print_bands(cJSON_GetObjectItemCaseSensitive(d, "bands"));
		print_clients(cJSON_GetObjectItemCaseSensitive(d, "clients"));
		ctl_print_unmanaged(d);
	}
	ctl_print_mps(root);
	if (!rewrites)
		return;
	printf("rewrites: %s served, %s of them from the cache, %s failed\n", text(rewrites, "served"), text(rewrites, "hits"),
	       text(rewrites, "failed"));
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(rewrites, "refused"))
		printf("  not preemptible: %s: %s\n", text(r, "kernel"), text(r, "reason"));
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(rewrites, "resumable")) {
		const char *reason = text(r, "reason");

		printf("  %s: %s: %s points%s%s\n", number(r, "points") ? "resumable" : "not resumable", text(r, "kernel"),
		       text(r, "points"), strcmp(reason, "-") ? ", " : "", strcmp(reason, "-") ? reason : "");
	}
}

/* The arbiter's JSON, parsed; NULL after saying why not. */
static cJSON *read_status(struct gsched *g, char **raw)
{
	cJSON *root;

	*raw = gsched_status(g);
	if (!*raw) {
		ctl_error("status: %s; is the arbiter still there?", strerror(errno));
		return NULL;
	}
	root = cJSON_Parse(*raw);
	if (!root) {
		ctl_error("status: the arbiter's answer is not JSON; arbiter and gschedctl are of different versions");
		free(*raw);
		*raw = NULL;
	}
	return root;
}

int ctl_groups_each(struct ctl *ctl, struct gsched *g, int (*fn)(struct ctl *ctl, struct gsched *g, const char *group))
{
	const cJSON *d, *o, *path;
	bool found = false;
	char *raw;
	cJSON *root = read_status(g, &raw);
	int rc = 0;

	if (!root)
		return CTL_FAIL;
	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(root, "devices")) {
		if (found || (ctl->device && strcmp(ctl->device, text(d, "name"))))
			continue;
		found = true;
		cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(d, "groups")) {
			path = cJSON_GetObjectItemCaseSensitive(o, "path");
			if (!rc && cJSON_IsString(path))
				rc = fn(ctl, g, path->valuestring);
		}
	}
	if (!found) {
		ctl_error("device %s: there is none; see gschedctl status", ctl->device ? ctl->device : "(first)");
		rc = CTL_FAIL;
	}
	cJSON_Delete(root);
	free(raw);
	return rc;
}

/* The module arbitrates, gschedd rewrites and runs MPS servers: its part of the status comes from there, if it runs. */
static void add_daemon(struct ctl *ctl, cJSON *root)
{
	struct gsched_open_opts opts = ctl->open;
	struct gsched *g;
	cJSON *daemon = NULL;
	char *raw;

	opts.backend = GSCHED_BACKEND_DAEMON;
	g = gsched_open(&opts);
	raw = g ? gsched_status(g) : NULL;
	if (raw)
		daemon = cJSON_Parse(raw);
	if (daemon)
		ctl_take_from_daemon(root, daemon);
	cJSON_Delete(daemon);
	free(raw);
	gsched_close(g);
}

static int once(struct ctl *ctl, struct gsched *g, bool json)
{
	char *raw;
	cJSON *root = read_status(g, &raw);

	if (!root)
		return CTL_FAIL;
	if (gsched_backend(g) == GSCHED_BACKEND_MODULE) {
		add_daemon(ctl, root);
		free(raw);
		raw = cJSON_PrintUnformatted(root);
	}
	if (json)
		puts(raw ? raw : "{}");
	else
		print_status(root, ctl->device);
	cJSON_Delete(root);
	free(raw);
	return 0;
}

int ctl_status(struct ctl *ctl, int argc, char **argv)
{
	bool json = argc == 2 && !strcmp(argv[1], "--json");
	struct gsched *g;
	int rc;

	if (argc > 1 && !json)
		return CTL_USAGE;
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	rc = once(ctl, g, json);
	gsched_close(g);
	return rc;
}

int ctl_watch(struct ctl *ctl, int argc, char **argv)
{
	double seconds = 1;
	struct timespec ts;
	struct gsched *g;
	char *end = "";
	int c, rc;

	while ((c = getopt(argc, argv, "+n:")) != -1) {
		if (c != 'n')
			return CTL_USAGE;
		seconds = strtod(optarg, &end);
	}
	if (optind != argc || *end || !(seconds >= 0.01 && seconds <= 3600))
		return CTL_USAGE;
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	ts.tv_sec = seconds;
	ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	do {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		rc = once(ctl, g, false);
		putchar('\n');
		if (fflush(stdout))
			rc = CTL_FAIL;
	} while (!rc && !nanosleep(&ts, NULL));
	gsched_close(g);
	return rc;
}
