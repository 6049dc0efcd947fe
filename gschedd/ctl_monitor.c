// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl monitor: prints a line for each object, then for each event. The module sends them by
 * netlink, gschedd as lines of JSON from a descriptor.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_monitor.h"

#define LINE	1024

static bool with_tasks;
static unsigned long count;		/* lines to print; 0: no limit */
static const char *device;		/* NULL: all */
static bool as_json;
static unsigned long printed;

/* Names of the bits of GSCHED_ARB_*, from bit 0 */
static const char *const flags[] = {
	"closed", "report", "paced", "alone", "yields", "private", "resumable", "timed",
	"block-end", "pass", NULL,
};

/* ---- lines ---- */

/* A value that is printed at the beginning of the line, without its name */
static bool is_head(const char *name)
{
	return !strcmp(name, "time_ns") || !strcmp(name, "device") || !strcmp(name, "event") ||
	       !strcmp(name, "object");
}

static void print_flags(unsigned long value)
{
	const char *between = "";

	for (int i = 0; flags[i]; i++)
		if (value & 1ul << i) {
			printf("%s%s", between, flags[i]);
			between = "|";
		}
	if (!*between)
		putchar('-');
}

/* Numbers that a double cannot represent are raw text */
static const char *value_of(const cJSON *v)
{
	static char text[32];

	if (cJSON_IsString(v) || cJSON_IsRaw(v))
		return v->valuestring;
	snprintf(text, sizeof(text), "%.15g", cJSON_IsNumber(v) ? v->valuedouble : 0);
	return text;
}

/* Prints the other values as NAME=VALUE; of @nested objects, only those that are not 0 */
static void print_values(const cJSON *o, bool nested)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, o) {
		const char *value = value_of(v);
		/* the only value that may contain spaces */
		const char *quote = strcmp(v->string, "fault") ? "" : "\"";

		if (cJSON_IsObject(v)) {
			print_values(v, true);
		} else if (!strcmp(v->string, "flags")) {
			printf(" flags=");
			print_flags(strtoul(value, NULL, 10));
		} else if (!is_head(v->string) && (!nested || strcmp(value, "0"))) {
			printf(" %s=%s%s%s", v->string, quote, value, quote);
		}
	}
}

static void print_text(const cJSON *o)
{
	const cJSON *time = ctl_list(o, "time_ns");
	uint64_t us = time ? strtoull(value_of(time), NULL, 10) / 1000 : 0;

	/* in seconds since boot, as in the kernel's log */
	if (time)
		printf("[%5" PRIu64 ".%06" PRIu64 "] ", us / 1000000, us % 1000000);
	printf("%s %s%s", ctl_string(o, "device"), ctl_string(o, "event"), ctl_string(o, "object"));
	print_values(o, false);
	putchar('\n');
}

static bool print_line(const cJSON *o)
{
	if (device && strcmp(device, ctl_string(o, "device")))
		return true;
	if (as_json)
		ctl_print_json(o);
	else
		print_text(o);
	return ++printed != count && !ferror(stdout);
}

/* Output is flushed only when no event is pending */
static int print_pause(void)
{
	fflush(stdout);
	return -1;
}

static void say_lost(void)
{
	ctl_error("events came faster than they were printed, and some are lost");
}

bool ctl_monitor_wait(const struct monitor *to, int fd)
{
	struct pollfd more = { .fd = fd, .events = POLLIN };
	int ms = 0;

	while (poll(&more, 1, ms) <= 0) {
		ms = to->pause();
		if (ms == MONITOR_END)
			return false;
	}
	return true;
}

/* ---- gschedd ---- */

static bool take_line(const struct monitor *to, const char *text)
{
	cJSON *o = cJSON_Parse(text);
	bool more = true;

	if (!o)
		ctl_error("a line that is no JSON; gschedd and gschedctl are of different "
			  "versions");
	else if (!strcmp(ctl_string(o, "event"), "lost"))
		to->lost();
	else
		more = to->line(o);
	cJSON_Delete(o);
	return more;
}

static int read_lines(const struct monitor *to, int fd)
{
	char text[LINE + 1];
	ssize_t n;

	do {
		if (!ctl_monitor_wait(to, fd))
			return 0;
		n = read(fd, text, LINE);
		if (n <= 0) {
			ctl_error("gschedd has ended");
			return CTL_FAIL;
		}
		text[n] = '\0';
	} while (take_line(to, text));
	return 0;
}

static int daemon_monitor(struct gsched *g, const struct monitor *to)
{
	int fd = gsched_monitor(g, to->tasks), rc;

	if (fd < 0) {
		ctl_error("monitor: %s%s", strerror(errno),
			  errno != EPERM ? "" : "; what the programs of all users do is shown to "
			  "the administrator only");
		return CTL_FAIL;
	}
	rc = read_lines(to, fd);
	close(fd);
	return rc;
}

int ctl_monitor_events(struct gsched *g, const struct monitor *to)
{
	if (gsched_backend(g) == GSCHED_BACKEND_MODULE)
		return ctl_netlink_monitor(to);
	return daemon_monitor(g, to);
}

int ctl_monitor(struct ctl *ctl, int argc, char **argv)
{
	const struct monitor to = {
		.device = ctl->device,
		.tasks = with_tasks,
		.line = print_line,
		.pause = print_pause,
		.lost = say_lost,
	};
	struct gsched *g = ctl_open(ctl);
	int rc;

	if (!g)
		return CTL_FAIL;
	device = ctl->device;
	as_json = ctl->json;
	rc = ctl_monitor_events(g, &to);
	gsched_close(g);
	return rc;
}

/* ---- options ---- */

static const struct argp_option options[] = {
	{ "tasks", 't', NULL, 0,
	  "Also each decision for a task: up to several lines a kernel launch", 0 },
	{ "count", 'n', "LINES", 0, "End after so many lines", 0 },
	{ 0 },
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		return 0;
	case 't':
		with_tasks = true;
		return 0;
	case 'n':
		errno = 0;
		count = strtoul(arg, &end, 10);
		if (!*arg || *end || errno || *arg == '-' || !count)
			argp_error(state, "-n %s: a number of lines, at least 1", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &ctl_output_options, 0, NULL, 0 }, { 0 } };
const struct argp ctl_monitor_options = {
	.options = options, .parser = option, .children = children,
};
