// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl status, gschedctl watch: the arbiter's status as tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_mps.h"
#include "ctl_qos.h"
#include "ctl_table.h"

static const char *group_name(const char *path)
{
	return strcmp(path, "-") ? path : "/";
}

static bool is_set(const char *text)
{
	return strcmp(text, "-");
}

/* The mean time of its evictions */
static const char *evict_us(const cJSON *group, char *buf, size_t size)
{
	const cJSON *delays = ctl_list(group, "gpu.preemption");
	double count = ctl_number(delays, "count");

	if (!(count > 0))
		return "-";
	snprintf(buf, size, "%.0f", ctl_number(delays, "total_usec") / count);
	return buf;
}

/* What it holds, and the limit if it has one */
static const char *memory_of(const cJSON *group, char *buf, size_t size)
{
	const char *max = ctl_text(group, "memory.max");
	char held[CTL_BYTES_SIZE], limit[CTL_BYTES_SIZE];

	ctl_bytes(ctl_text(group, "memory.current"), held);
	if (!is_set(max) || !strcmp(max, "max"))
		snprintf(buf, size, "%s", held);
	else
		snprintf(buf, size, "%s/%s", held, ctl_bytes(max, limit));
	return buf;
}

static void print_groups(const cJSON *groups)
{
	struct libscols_table *t = ctl_table("GROUP >MAX >MIN >WEIGHT >PRIORITY >CURRENT >MEMORY "
					     ">GRANTS >EVICTED >EVICT_US >GROWN BOUND");
	const cJSON *g, *stat;

	cJSON_ArrayForEach(g, groups) {
		const char *procs = ctl_text(g, "procs"), *cgroup = ctl_text(g, "cgroup");
		char bound[4096 + 256], mean[32], memory[2 * CTL_BYTES_SIZE];

		stat = ctl_list(g, "gpu.stat");
		snprintf(bound, sizeof(bound), "%s%s%s", is_set(procs) ? procs : "",
			 is_set(procs) && is_set(cgroup) ? " " : "",
			 is_set(cgroup) ? cgroup : is_set(procs) ? "" : "-");
		ctl_row(t, group_name(ctl_text(g, "path")), ctl_text(g, "capsm.max"),
			ctl_text(g, "capsm.min"), ctl_text(g, "gpu.weight"),
			ctl_text(g, "gpu.priority"), ctl_text(g, "capsm.current"),
			memory_of(g, memory, sizeof(memory)), ctl_text(stat, "grants"),
			ctl_text(stat, "evictions"),
			evict_us(g, mean, sizeof(mean)), ctl_text(stat, "growths"), bound);
	}
	ctl_table_print(t, "  ");
}

/* The bands that share the device in time, and their protection or limits. */
static void print_bands(const cJSON *bands)
{
	struct libscols_table *t;
	const cJSON *b;

	if (!cJSON_GetArraySize(bands))
		return;
	t = ctl_table("BAND CLIENTS >PRIORITY >SLICE_US >IN_FORCE ACTIVITY TURN WHY");
	cJSON_ArrayForEach(b, bands) {
		const char *server = ctl_text(b, "server");
		char clients[300];

		snprintf(clients, sizeof(clients), "%.128s%s%.64s", ctl_text(b, "clients"),
			 is_set(server) ? " of server " : "", is_set(server) ? server : "");
		ctl_row(t, ctl_text(b, "name"), clients, ctl_text(b, "priority"),
			ctl_number(b, "slice_us") ? ctl_text(b, "slice_us") : "-",
			ctl_number(b, "applied_us") ? ctl_text(b, "applied_us") : "-",
			ctl_text(b, "activity"),
			cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(b, "turn")) ? "yes" : "-",
			ctl_text(b, "why"));
	}
	ctl_table_print(t, "  ");
}

static void add_task(struct libscols_table *t, const cJSON *client, const cJSON *s)
{
	static const char *const tier[] = { "block", "slice", "launch" };
	double number = ctl_number(s, "tier");
	const char *stream = ctl_text(s, "stream");
	char sms[32], seen[32];

	snprintf(sms, sizeof(sms), "%g", ctl_number(s, "limit") / 1024);
	snprintf(seen, sizeof(seen), "%g", ctl_number(s, "seen") / 1024);
	ctl_row(t, ctl_text(client, "pid"), ctl_text(s, "slot"), ctl_text(s, "seq"),
		ctl_text(s, "state"),
		number == 0 || number == 1 || number == 2 ? tier[(int)number] : "?",
		ctl_text(s, "blocks"), sms, seen, ctl_text(s, "launched"),
		ctl_text(s, "left"), strcmp(stream, "0") ? stream : "-");
}

static void print_tasks(const cJSON *clients)
{
	struct libscols_table *t;
	const cJSON *c, *s;
	int n = 0;

	cJSON_ArrayForEach(c, clients)
		n += cJSON_GetArraySize(ctl_list(c, "slots"));
	if (!n)
		return;
	t = ctl_table(">PID >SLOT >SEQ STATE TIER >BLOCK-TASKS >SMS >ACTS_ON "
		      ">WORKERS >LEFT STREAM");
	cJSON_ArrayForEach(c, clients)
		cJSON_ArrayForEach(s, ctl_list(c, "slots"))
			add_task(t, c, s);
	ctl_table_print(t, "  ");
}

/* The client's own quotas, if it has any. */
static void print_own(const cJSON *c)
{
	const char *max = ctl_string(c, "capsm.max"), *weight = ctl_string(c, "gpu.weight"),
		   *priority = ctl_string(c, "gpu.priority");

	if (!*max || (!strcmp(max, "max") && !strcmp(weight, "100") && !strcmp(priority, "max")))
		return;
	printf("  %s: has capsm.max %s, gpu.weight %s, gpu.priority %s in its group\n",
	       ctl_text(c, "pid"), max, weight, priority);
}

static void print_clients(const cJSON *clients)
{
	struct libscols_table *t;
	const cJSON *c, *m;

	if (!cJSON_GetArraySize(clients)) {
		puts("  no clients");
		return;
	}
	t = ctl_table(">PID COMMAND GROUP BAND LEASE >BLOCK >RESUMABLE >SLICE >LAUNCH >PASSED "
		      ">UNMANAGED >WINGS >MEMORY >SHARE >HELD_MS WHY");
	cJSON_ArrayForEach(c, clients) {
		char share[16] = "-", held[32], memory[CTL_BYTES_SIZE];

		m = ctl_list(c, "managed");
		if (cJSON_GetObjectItemCaseSensitive(c, "share"))
			snprintf(share, sizeof(share), "%.3g%%", ctl_number(c, "share") * 100);
		snprintf(held, sizeof(held), "%.0f", ctl_number(c, "held_ns") / 1e6);
		ctl_row(t, ctl_text(c, "pid"), ctl_text(c, "comm"),
			group_name(ctl_text(c, "group")), ctl_text(c, "band"), ctl_text(c, "lease"),
			ctl_text(m, "block"), ctl_text(c, "resumable"), ctl_text(m, "slice"),
			ctl_text(m, "launch"), ctl_text(c, "passed"), ctl_text(c, "unmanaged"),
			ctl_text(c, "wings"), ctl_bytes(ctl_text(c, "memory"), memory), share, held,
			ctl_text(c, "why"));
	}
	ctl_table_print(t, "  ");
	cJSON_ArrayForEach(c, clients)
		print_own(c);
	cJSON_ArrayForEach(c, clients)
		if (is_set(ctl_text(c, "hold")))
			printf("  %s: %s\n", ctl_text(c, "pid"), ctl_text(c, "hold"));
	print_tasks(clients);
}

static void print_status(const cJSON *root)
{
	const cJSON *devices = ctl_list(root, "devices"), *rewrites = ctl_list(root, "rewrites"),
		    *d, *r;

	if (!cJSON_GetArraySize(devices))
		printf("no devices (%s)\n", ctl_text(root, "backend"));
	cJSON_ArrayForEach(d, devices) {
		printf("%s: %s SMs, %s, policy %s, arbiter: %s, UUID %s\n", ctl_text(d, "name"),
		       ctl_text(d, "sms"), ctl_text(d, "mode"), ctl_text(d, "policy"),
		       ctl_text(root, "backend"), ctl_text(d, "uuid"));
		if (*ctl_string(d, "policy_fault"))
			printf("  policy: %s\n", ctl_string(d, "policy_fault"));
		if (*ctl_string(d, "planned") && strcmp(ctl_string(d, "planned"), "none"))
			printf("  plan: %s\n", ctl_string(d, "planned"));
		ctl_qos_print(d);
		print_groups(ctl_list(d, "groups"));
		print_bands(ctl_list(d, "bands"));
		print_clients(ctl_list(d, "clients"));
		ctl_print_unmanaged(d);
	}
	ctl_print_mps(root);
	if (!rewrites)
		return;
	printf("rewrites: %s served, %s of them from the cache, %s failed\n",
	       ctl_text(rewrites, "served"), ctl_text(rewrites, "hits"),
	       ctl_text(rewrites, "failed"));
	cJSON_ArrayForEach(r, ctl_list(rewrites, "refused"))
		printf("  not preemptible: %s: %s\n", ctl_text(r, "kernel"), ctl_text(r, "reason"));
	cJSON_ArrayForEach(r, ctl_list(rewrites, "resumable")) {
		const char *reason = ctl_string(r, "reason");

		printf("  %s: %s: %s points%s%s\n",
		       ctl_number(r, "points") ? "resumable" : "not resumable",
		       ctl_text(r, "kernel"), ctl_text(r, "points"), *reason ? ", " : "", reason);
	}
}

/*
 * With the module as arbiter, gschedd still rewrites and runs MPS servers: adds its part of the
 * status, if it runs.
 */
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

/* Adds the report of a running planner */
static void add_qos(const struct ctl *ctl, cJSON *devices)
{
	cJSON *d, *qos;

	cJSON_ArrayForEach(d, devices) {
		qos = ctl_qos_read(ctl, ctl_string(d, "name"));
		if (qos)
			cJSON_AddItemToObject(d, "qos", qos);
	}
}

/* Prints all devices, or the requested one. */
static int print_once(struct ctl *ctl, struct gsched *g)
{
	cJSON *root = ctl_read_status(g);
	cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices");

	if (!root)
		return CTL_FAIL;
	for (int i = cJSON_GetArraySize(devices); ctl->device && i--;)
		if (strcmp(ctl->device, ctl_text(cJSON_GetArrayItem(devices, i), "name")))
			cJSON_DeleteItemFromArray(devices, i);
	if (gsched_backend(g) == GSCHED_BACKEND_MODULE)
		add_daemon(ctl, root);
	add_qos(ctl, devices);
	if (ctl->json)
		ctl_print_json(root);
	else
		print_status(root);
	cJSON_Delete(root);
	return 0;
}

int ctl_status(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	int rc = g ? print_once(ctl, g) : CTL_FAIL;

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
		rc = print_once(ctl, g);
		putchar('\n');
		if (fflush(stdout))
			rc = CTL_FAIL;
	} while (!rc && !nanosleep(&ts, NULL));
	gsched_close(g);
	return rc;
}
