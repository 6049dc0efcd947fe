// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl status, gschedctl watch: the arbiter's JSON as tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_mps.h"

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
		const char *procs = ctl_text(g, "procs"), *cgroup = ctl_text(g, "cgroup");
		bool both = strcmp(procs, "-") && strcmp(cgroup, "-");

		printf("  %-24s %8s %8s %6s %8s %8s %8s %8s %8s  %s%s%s\n", group_name(ctl_text(g, "path")), ctl_text(g, "capsm.max"),
		       ctl_text(g, "capsm.min"), ctl_text(g, "gpu.weight"), ctl_text(g, "gpu.priority"), ctl_text(g, "capsm.current"),
		       ctl_text(stat, "grants"), ctl_text(stat, "evictions"), ctl_text(stat, "growths"), both ? procs : "",
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
		const char *server = ctl_text(b, "server"), *in_force = ctl_number(b, "applied_us") ? ctl_text(b, "applied_us") : "-";
		char clients[256];

		snprintf(clients, sizeof(clients), "%s%s%s", ctl_text(b, "clients"), strcmp(server, "-") ? " of server " : "",
			 strcmp(server, "-") ? server : "");
		printf("  %-24s %-28s %8s %9s %9s %-8s %-4s  %s\n", ctl_text(b, "name"), clients, ctl_text(b, "priority"),
		       ctl_number(b, "slice_us") ? ctl_text(b, "slice_us") : "-", in_force, ctl_text(b, "activity"),
		       cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(b, "turn")) ? "yes" : "-", ctl_text(b, "why"));
	}
}

static void print_slots(const cJSON *client)
{
	static const char *const tier[] = { "block", "slice", "launch" };
	const cJSON *s;

	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(client, "slots")) {
		double t = ctl_number(s, "tier"), base = ctl_number(s, "base") / 1024, limit = ctl_number(s, "limit") / 1024;
		const char *state = ctl_text(s, "state"), *stream = ctl_text(s, "stream");

		printf("          slot %s seq %s: %s%s%s, %s block-tasks, %g SMs from %g, acts on %g, %s workers launched, %s left%s%s\n",
		       ctl_text(s, "slot"), ctl_text(s, "seq"), strcmp(state, "-") ? state : "", strcmp(state, "-") ? ", " : "",
		       t == 0 || t == 1 || t == 2 ? tier[(int)t] : "?", ctl_text(s, "blocks"), limit, base,
		       ctl_number(s, "seen") / 1024, ctl_text(s, "launched"), ctl_text(s, "left"),
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
			snprintf(share, sizeof(share), "%.3g%%", ctl_number(c, "share") * 100);
		printf("  %7s %-16s %-24s %-16s %-6s %8s %9s %8s %8s %8s %9s %6s %6s %9.0f  %s\n", ctl_text(c, "pid"), ctl_text(c, "comm"),
		       group_name(ctl_text(c, "group")), ctl_text(c, "band"), ctl_text(c, "lease"), ctl_text(m, "block"), ctl_text(c, "resumable"),
		       ctl_text(m, "slice"), ctl_text(m, "launch"), ctl_text(c, "passed"), ctl_text(c, "unmanaged"), ctl_text(c, "wings"), share,
		       ctl_number(c, "held_ns") / 1e6, ctl_text(c, "why"));
		if (strcmp(ctl_text(c, "hold"), "-"))
			printf("          %s\n", ctl_text(c, "hold"));
		print_slots(c);
	}
}

static void print_status(const cJSON *root, const char *only)
{
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *d, *r;
	const cJSON *rewrites = cJSON_GetObjectItemCaseSensitive(root, "rewrites");

	if (!cJSON_GetArraySize(devices))
		printf("no devices (%s)\n", ctl_text(root, "backend"));
	cJSON_ArrayForEach(d, devices) {
		if (only && strcmp(only, ctl_text(d, "name")))
			continue;
		printf("%s: %s SMs, %s, policy %s, arbiter: %s, UUID %s\n", ctl_text(d, "name"), ctl_text(d, "sms"), ctl_text(d, "mode"),
		       ctl_text(d, "policy"), ctl_text(root, "backend"), ctl_text(d, "uuid"));
		print_groups(cJSON_GetObjectItemCaseSensitive(d, "groups"));
		print_bands(cJSON_GetObjectItemCaseSensitive(d, "bands"));
		print_clients(cJSON_GetObjectItemCaseSensitive(d, "clients"));
		ctl_print_unmanaged(d);
	}
	ctl_print_mps(root);
	if (!rewrites)
		return;
	printf("rewrites: %s served, %s of them from the cache, %s failed\n", ctl_text(rewrites, "served"), ctl_text(rewrites, "hits"),
	       ctl_text(rewrites, "failed"));
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(rewrites, "refused"))
		printf("  not preemptible: %s: %s\n", ctl_text(r, "kernel"), ctl_text(r, "reason"));
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(rewrites, "resumable")) {
		const char *reason = ctl_text(r, "reason");

		printf("  %s: %s: %s points%s%s\n", ctl_number(r, "points") ? "resumable" : "not resumable", ctl_text(r, "kernel"),
		       ctl_text(r, "points"), strcmp(reason, "-") ? ", " : "", strcmp(reason, "-") ? reason : "");
	}
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

static bool json;

static const struct argp_option status_options[] = {
	{ "json", 'j', NULL, 0, "What the arbiter says, as JSON", 0 },
	{ 0 },
};

static error_t status_option(int key, char *arg, struct argp_state *state)
{
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	json = true;
	return 0;
}

const struct argp ctl_status_options = { .options = status_options, .parser = status_option };

static int once(struct ctl *ctl, struct gsched *g)
{
	cJSON *root = ctl_read_status(g);
	char *out;

	if (!root)
		return CTL_FAIL;
	if (gsched_backend(g) == GSCHED_BACKEND_MODULE)
		add_daemon(ctl, root);
	if (json) {
		out = cJSON_PrintUnformatted(root);
		puts(out ? out : "{}");
		free(out);
	} else {
		print_status(root, ctl->device);
	}
	cJSON_Delete(root);
	return 0;
}

int ctl_status(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	int rc = g ? once(ctl, g) : CTL_FAIL;

	gsched_close(g);
	return rc;
}

static double seconds = 1;

static const struct argp_option watch_options[] = {
	{ "interval", 'n', "SECONDS", 0, "How long between two of them (default 1)", 0 },
	{ 0 },
};

static error_t watch_option(int key, char *arg, struct argp_state *state)
{
	char *end;

	if (key != 'n')
		return ARGP_ERR_UNKNOWN;
	seconds = strtod(arg, &end);
	if (!*arg || *end || !(seconds >= 0.01 && seconds <= 3600))
		argp_error(state, "-n %s: a number of seconds from 0.01 to 3600", arg);
	return 0;
}

const struct argp ctl_watch_options = { .options = watch_options, .parser = watch_option };

int ctl_watch(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	struct timespec ts;
	int rc;

	if (!g)
		return CTL_FAIL;
	ts.tv_sec = seconds;
	ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	do {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		rc = once(ctl, g);
		putchar('\n');
		if (fflush(stdout))
			rc = CTL_FAIL;
	} while (!rc && !nanosleep(&ts, NULL));
	gsched_close(g);
	return rc;
}
