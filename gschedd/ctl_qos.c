// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl qos: the QoS planner (qos.h) as a client of either arbiter. It learns of kernels from
 * the events that gschedctl monitor reads, of groups from the status after objects were added or
 * removed, and of their targets from their files, once a second. Plans are written to the devices'
 * files. If it dies, the plan expires.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_monitor.h"
#include "ctl_qos.h"

#define POLL_NS		1000000000ULL	/* interval of reading the groups' files */
/* interval of reading the status, for which gschedd may wait for NVML */
#define STATUS_NS	10000000000ULL
#define STATUS_SOON_NS	20000000ULL	/* ... after a change */
#define REPORT_NS	500000000ULL

struct planner {
	struct planner *next;
	char device[64];
	struct qos qos;
	uint64_t reported;
	int error;			/* the last one that was printed */
};

static struct qos_options opt = QOS_OPTIONS_DEFAULT;
static bool verbose;
static struct planner *planners;
static struct ctl *self;
static struct gsched *arbiter;
static uint64_t polled, status_read;
static bool changed;			/* objects were added or removed: read the status */
static bool failed;
static volatile sig_atomic_t stopped;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct planner *find_planner(const char *device)
{
	struct planner *p = planners;

	while (p && strcmp(p->device, device))
		p = p->next;
	return p;
}

static void add_planner(const char *device, uint32_t sms)
{
	struct planner *p;

	if (!sms || strlen(device) >= sizeof(p->device) || find_planner(device))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		ctl_error("qos: %s: out of memory", device);
		return;
	}
	snprintf(p->device, sizeof(p->device), "%s", device);
	qos_init(&p->qos, &opt, sms);
	p->next = planners;
	planners = p;
}

static void free_planner(struct planner **at)
{
	struct planner *p = *at;

	ctl_qos_report_end(self, p->device);
	*at = p->next;
	free(p);
}

static void del_planner(const char *device)
{
	for (struct planner **at = &planners; *at; at = &(*at)->next)
		if (!strcmp((*at)->device, device)) {
			free_planner(at);
			return;
		}
}

/* ---- groups ---- */

/* The root group is "" to the planner */
static const char *planner_path(const char *path)
{
	return strcmp(path, "/") ? path : "";
}

static double capacity_of(const cJSON *g, const char *file)
{
	const char *text = ctl_string(g, file);

	return strcmp(text, "max") ? strtod(text, NULL) : 0;
}

/* Follows processes that were moved to another group, of which there are no events. */
static void move_clients(struct planner *p, const cJSON *clients)
{
	const cJSON *c;

	cJSON_ArrayForEach(c, clients) {
		uint32_t pid = (uint32_t)ctl_number(c, "pid");

		for (size_t i = 0; i < p->qos.n_clients; i++)
			if (p->qos.client[i].pid == pid)
				qos_client_add(&p->qos, p->qos.client[i].id, pid,
					       planner_path(ctl_string(c, "group")));
	}
}

/* An MPS server launches nothing: it has no use for a share */
static void drop_servers(struct planner *p, const cJSON *bands)
{
	const cJSON *b;

	cJSON_ArrayForEach(b, bands) {
		uint32_t pid = (uint32_t)ctl_number(b, "server");

		for (size_t i = 0; pid && i < p->qos.n_clients; i++)
			if (p->qos.client[i].pid == pid)
				qos_client_del(&p->qos, p->qos.client[i--].id);
	}
}

static void take_groups(struct planner *p, const cJSON *device)
{
	const cJSON *g;

	qos_groups_begin(&p->qos, !strcmp(ctl_string(device, "mode"), "spatial"));
	cJSON_ArrayForEach(g, ctl_list(device, "groups"))
		qos_group(&p->qos, planner_path(ctl_string(g, "path")),
			  (uint32_t)strtoul(ctl_string(g, "gpu.latency_target_us"), NULL, 10),
			  (uint32_t)strtoul(ctl_string(g, "gpu.weight"), NULL, 10),
			  capacity_of(g, "capsm.max"), capacity_of(g, "capsm.min"));
	qos_groups_end(&p->qos);
	move_clients(p, ctl_list(device, "clients"));
	drop_servers(p, ctl_list(device, "bands"));
}

static void read_status(uint64_t now)
{
	cJSON *status = ctl_read_status(arbiter);
	const cJSON *d;
	struct planner *p;

	status_read = now;
	polled = now;
	changed = false;
	failed |= !status;
	cJSON_ArrayForEach(d, ctl_list(status, "devices")) {
		p = find_planner(ctl_string(d, "name"));
		if (p)
			take_groups(p, d);
	}
	cJSON_Delete(status);
}

static bool read_file(const struct planner *p, const char *group, const char *file, char *buf,
		      size_t size)
{
	if (gsched_group_get(arbiter, p->device, group, file, buf, size))
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* Reads the files of the known groups. A group that was deleted is missing in the next status. */
static void read_files(struct planner *p)
{
	char target[32], weight[32], max[32], min[32], path[QOS_PATH];

	qos_groups_begin(&p->qos, p->qos.space);
	for (size_t i = 0; i < p->qos.n_groups; i++) {
		snprintf(path, sizeof(path), "%s", p->qos.group[i].path);
		if (!read_file(p, path, "gpu.latency_target_us", target, sizeof(target)) ||
		    !read_file(p, path, "gpu.weight", weight, sizeof(weight)) ||
		    !read_file(p, path, "capsm.max", max, sizeof(max)) ||
		    !read_file(p, path, "capsm.min", min, sizeof(min))) {
			changed = true;
			continue;
		}
		qos_group(&p->qos, path, (uint32_t)strtoul(target, NULL, 10),
			  (uint32_t)strtoul(weight, NULL, 10),
			  strcmp(max, "max") ? strtod(max, NULL) : 0, strtod(min, NULL));
	}
	qos_groups_end(&p->qos);
}

static uint64_t next_status(void)
{
	return status_read + (changed ? STATUS_SOON_NS : STATUS_NS);
}

static void poll_groups(uint64_t now)
{
	if (now >= next_status()) {
		read_status(now);
	} else if (now >= polled + POLL_NS) {
		polled = now;
		for (struct planner *p = planners; p; p = p->next)
			read_files(p);
	}
}

/* ---- plans ---- */

static void say_refused(struct planner *p, const char *text)
{
	if (p->error == errno)
		return;
	p->error = errno;
	ctl_error("qos: %s: plan \"%s\": %s%s", p->device, text, strerror(errno),
		  errno == EPERM || errno == EACCES ?
			  "; run gschedctl as root or as gschedd's user" : "");
}

static void write_plan(struct planner *p, const char *text)
{
	if (!gsched_device_set(arbiter, p->device, "plan", text)) {
		if (verbose)
			printf("%s: %s\n", p->device, text);
		p->error = 0;
		return;
	}
	qos_refused(&p->qos);
	changed = true;
	say_refused(p, text);
	/* a group was deleted, or a maximum changed: the next plan takes it into account */
	if (errno != EINVAL && errno != ENOENT && errno != ESRCH)
		failed = true;
}

static void write_report(struct planner *p, uint64_t now)
{
	static int printed;
	int err = ctl_qos_report(self, p->device, &p->qos, now);

	p->reported = now;
	if (err && err != printed)
		ctl_error("qos: the status will not tell of targets: beside gschedd's socket: %s",
			  strerror(-err));
	printed = err;
}

static void run_planner(struct planner *p, uint64_t now)
{
	const char *text;

	if (now >= qos_next(&p->qos)) {
		text = qos_plan(&p->qos, now);
		if (text)
			write_plan(p, text);
	}
	if (now >= p->reported + REPORT_NS)
		write_report(p, now);
}

static void run_planners(void)
{
	uint64_t now = now_ns();

	poll_groups(now);
	for (struct planner *p = planners; p; p = p->next)
		run_planner(p, now);
	if (verbose)
		fflush(stdout);
}

/* ---- events ---- */

static uint64_t number_of(const cJSON *o, const char *key)
{
	const cJSON *v = ctl_list(o, key);

	/* numbers that a double cannot represent are raw text */
	if (cJSON_IsRaw(v))
		return strtoull(v->valuestring, NULL, 10);
	return cJSON_IsNumber(v) && v->valuedouble >= 0 ? (uint64_t)v->valuedouble : 0;
}

static uint32_t intensity_of(const cJSON *o)
{
	static const char *const names[] = { "L_C", "M_C", "H_C", "M_M", "H_M" };
	const char *class = ctl_string(o, "class");

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(class, names[i]))
			return i + 1;
	return 0;
}

static void take_event(struct planner *p, const cJSON *o, const char *what)
{
	uint64_t id = number_of(o, "client"), time = number_of(o, "time_ns");
	unsigned int slot = (unsigned int)number_of(o, "slot");

	if (!strcmp(what, "grant")) {
		qos_granted(&p->qos, id, slot, time, number_of(o, "wait_ns"),
			    (uint32_t)number_of(o, "limit"), intensity_of(o));
	} else if (!strcmp(what, "evict") || !strcmp(what, "grow")) {
		qos_resized(&p->qos, id, slot);
	} else if (!strcmp(what, "done")) {
		qos_done(&p->qos, id, slot, time, number_of(o, "run_ns"));
	} else if (!strcmp(what, "client") || !strcmp(what, "client-add")) {
		qos_client_add(&p->qos, id, (uint32_t)number_of(o, "pid"),
			       planner_path(ctl_string(o, "group")));
		changed = true;
	} else if (!strcmp(what, "client-delete")) {
		qos_client_del(&p->qos, id);
		changed = true;
	} else if (strcmp(what, "task")) {
		changed = true;
	}
}

static bool take_line(const cJSON *o)
{
	const char *event = ctl_string(o, "event"), *device = ctl_string(o, "device");
	const char *what = *event ? event : ctl_string(o, "object");
	struct planner *p;

	if (self->device && strcmp(device, self->device))
		return !stopped;
	if (!strcmp(what, "device") || !strcmp(what, "device-add"))
		add_planner(device, (uint32_t)number_of(o, "sms"));
	else if (!strcmp(what, "device-delete"))
		del_planner(device);
	p = find_planner(device);
	if (p)
		take_event(p, o, what);
	run_planners();
	return !stopped && !failed;
}

static int wait_ms(void)
{
	uint64_t now = now_ns(), next = polled + POLL_NS;

	if (next_status() < next)
		next = next_status();
	for (struct planner *p = planners; p; p = p->next)
		next = qos_next(&p->qos) < next ? qos_next(&p->qos) : next;
	return next > now ? (int)((next - now + 999999) / 1000000) : 0;
}

static int pause_line(void)
{
	run_planners();
	return stopped || failed ? MONITOR_END : wait_ms();
}

static void lose_lines(void)
{
	for (struct planner *p = planners; p; p = p->next)
		qos_lost(&p->qos);
	changed = true;
}

/* ---- the command ---- */

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* Two planners of one device would overwrite each other's plans. */
static bool is_alone(void)
{
	cJSON *status = ctl_read_status(arbiter), *other = NULL;
	const cJSON *d;

	cJSON_ArrayForEach(d, ctl_list(status, "devices")) {
		const char *name = ctl_string(d, "name");

		if (other || (self->device && strcmp(name, self->device)))
			continue;
		other = ctl_qos_read(self, name);
		if (other && kill((pid_t)ctl_number(other, "pid"), 0) && errno == ESRCH) {
			cJSON_Delete(other);
			other = NULL;
		}
		if (other)
			ctl_error("qos: %s: process %.0f plans it already", name,
				  ctl_number(other, "pid"));
	}
	cJSON_Delete(status);
	cJSON_Delete(other);
	return status && !other;
}

static void end_plans(void)
{
	while (planners) {
		if (planners->qos.active)
			gsched_device_set(arbiter, planners->device, "plan", "none");
		free_planner(&planners);
	}
}

int ctl_qos(struct ctl *ctl, int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	const struct monitor to = {
		.device = ctl->device,
		.tasks = true,
		.line = take_line,
		.pause = pause_line,
		.lost = lose_lines,
	};
	int rc = CTL_FAIL;

	self = ctl;
	arbiter = ctl_open(ctl);
	if (!arbiter)
		return CTL_FAIL;
	if (is_alone()) {
		sigaction(SIGTERM, &sa, NULL);
		sigaction(SIGINT, &sa, NULL);
		rc = ctl_monitor_events(arbiter, &to);
		end_plans();
	}
	gsched_close(arbiter);
	return failed ? CTL_FAIL : rc;
}

static const struct argp_option options[] = {
	{ "margin", 'm', "PERCENT", 0,
	  "Part of a target to leave for what is not predicted (default 10)", 0 },
	{ "ttl", 't', "MS", 0, "How long a plan outlives this process (default 1000)", 0 },
	{ "verbose", 'v', NULL, 0, "Print each plan that is written", 0 },
	{ 0 },
};

static unsigned long parse_number(struct argp_state *state, const char *name, const char *text,
				  unsigned long least, unsigned long most)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		argp_error(state, "--%s %s: a number from %lu to %lu", name, text, least, most);
	return n;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'm':
		opt.margin = (double)parse_number(state, "margin", arg, 0, 90) / 100;
		return 0;
	case 't':
		opt.ttl_ms = (uint32_t)parse_number(state, "ttl", arg, 300, 60000);
		return 0;
	case 'v':
		verbose = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp ctl_qos_options = { .options = options, .parser = option };
