// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl metrics: the arbiter's status in the text format of Prometheus (exposition format
 * 0.0.4), for node_exporter's textfile collector and the like. Tables map the keys of the status to
 * metrics.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_json.h"

struct metric {
	const char *name, *type, *help;
	const char *path;		/* keys below the object, separated by '/' */
	const char *label;		/* a further label, such as tier="block"; NULL: none */
	double scale;			/* factor from the status to the metric's unit */
};

#define COUNTER	"counter"
#define GAUGE	"gauge"
#define PREEMPTION	"gsched_group_preemption_seconds"
#define SHARE	"share"
#define US	1e-6
#define NS	1e-9

/* The format requires that metrics of one name are adjacent and have the same type and help */
static const struct metric device_metrics[] = {
	{ "gsched_device_sms", GAUGE, "SMs of the device", "sms", NULL, 1 },
};

static const struct metric group_metrics[] = {
	{ "gsched_group_capsm", GAUGE, "Capacity granted now, in CapSM (SMs)",
	  "capsm.current", NULL, 1 },
	{ "gsched_group_capsm_max", GAUGE, "capsm.max of the group; absent without a limit",
	  "capsm.max", NULL, 1 },
	{ "gsched_group_capsm_min", GAUGE, "capsm.min of the group; absent if it is max",
	  "capsm.min", NULL, 1 },
	{ "gsched_group_capsm_reserve", GAUGE, "capsm.reserve of the group; absent if it is auto",
	  "capsm.reserve", NULL, 1 },
	{ "gsched_group_latency_target_seconds", GAUGE, "gpu.latency_target_us of the group; 0: none",
	  "gpu.latency_target_us", NULL, US },
	{ "gsched_group_weight", GAUGE, "gpu.weight of the group", "gpu.weight", NULL, 1 },
	{ "gsched_group_priority", GAUGE, "gpu.priority of the group", "gpu.priority", NULL, 1 },
	{ "gsched_group_held_seconds_total", COUNTER, "Time that tasks held capacity",
	  "gpu.stat/usage_usec", NULL, US },
	{ "gsched_group_capsm_seconds_total", COUNTER, "The same times the capacity, CapSM-seconds",
	  "gpu.stat/capsm_usec", NULL, US },
	{ "gsched_group_demanded_capsm_seconds_total", COUNTER,
	  "Capacity that its kernels could have used, CapSM-seconds",
	  "gpu.stat/demanded_usec", NULL, US },
	{ "gsched_group_promised_capsm_seconds_total", COUNTER,
	  "Capacity that capsm.min promised while there were kernels, CapSM-seconds",
	  "gpu.stat/promised_usec", NULL, US },
	{ "gsched_group_ran_seconds_total", COUNTER, "Time of tasks by the GPU's clock",
	  "gpu.stat/ran_usec", NULL, US },
	{ "gsched_group_paced_seconds_total", COUNTER,
	  "GPU time of launches under a share of time or turns", "gpu.stat/paced_usec", NULL, US },
	{ "gsched_group_wait_seconds_total", COUNTER, "Time between asking and the grant",
	  "gpu.stat/wait_usec", NULL, US },
	{ "gsched_group_tasks_total", COUNTER, "Kernel launches that ended",
	  "gpu.stat/tasks", NULL, 1 },
	{ "gsched_group_grants_total", COUNTER, "Launches granted", "gpu.stat/grants", NULL, 1 },
	{ "gsched_group_evictions_total", COUNTER, "Windows that shrank",
	  "gpu.stat/evictions", NULL, 1 },
	{ "gsched_group_growths_total", COUNTER, "Windows that grew", "gpu.stat/growths", NULL, 1 },
	{ "gsched_group_cancelled_total", COUNTER, "Launches withdrawn",
	  "gpu.stat/cancelled", NULL, 1 },
	{ "gsched_group_pressure_seconds_total", COUNTER,
	  "Time in which some or all programs waited",
	  "gpu.pressure/some/total", "kind=\"some\"", US },
	{ "gsched_group_pressure_seconds_total", COUNTER,
	  "Time in which some or all programs waited",
	  "gpu.pressure/full/total", "kind=\"full\"", US },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/throttled",
	  "event=\"throttled\"", 1 },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/gated",
	  "event=\"gated\"", 1 },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/overdue",
	  "event=\"overdue\"", 1 },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/late",
	  "event=\"late\"", 1 },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/refused",
	  "event=\"refused\"", 1 },
	{ "gsched_group_events_total", COUNTER, "gpu.events of the group", "gpu.events/memory_max",
	  "event=\"memory_max\"", 1 },
	{ "gsched_group_memory_bytes", GAUGE, "Device memory that its programs hold",
	  "memory.current", NULL, 1 },
	{ "gsched_group_memory_peak_bytes", GAUGE, "Most device memory that they have held",
	  "memory.peak", NULL, 1 },
	{ "gsched_group_memory_limit_bytes", GAUGE,
	  "memory.max of the group; absent without a limit", "memory.max", NULL, 1 },
};

static const struct metric client_metrics[] = {
	{ "gsched_client_launches_total", COUNTER, "Kernel launches by how they were managed",
	  "managed/block", "tier=\"block\"", 1 },
	{ "gsched_client_launches_total", COUNTER, "Kernel launches by how they were managed",
	  "managed/slice", "tier=\"slice\"", 1 },
	{ "gsched_client_launches_total", COUNTER, "Kernel launches by how they were managed",
	  "managed/launch", "tier=\"launch\"", 1 },
	{ "gsched_client_launches_total", COUNTER, "Kernel launches by how they were managed",
	  "passed", "tier=\"passed\"", 1 },
	{ "gsched_client_launches_total", COUNTER, "Kernel launches by how they were managed",
	  "unmanaged", "tier=\"unmanaged\"", 1 },
	{ "gsched_client_wings_total", COUNTER, "Relaunches of workers that had been evicted",
	  "wings", NULL, 1 },
	{ "gsched_client_held_back_seconds_total", COUNTER,
	  "Time that launches were held back by turns or a share", "held_ns", NULL, NS },
	{ "gsched_client_memory_bytes", GAUGE, "Device memory that it holds", "memory", NULL, 1 },
	{ "gsched_client_share", GAUGE, "Share of the device's time that capsm.max leaves it",
	  SHARE, NULL, 1 },
};

/* Prints a label; the format requires that \, " and newlines in its value are escaped */
static void put_label(const char *name, const char *value)
{
	printf("%s=\"", name);
	for (; *value; value++)
		switch (*value) {
		case '\\':
		case '"':
			printf("\\%c", *value);
			break;
		case '\n':
			printf("\\n");
			break;
		default:
			putchar(*value);
		}
	putchar('"');
}

/* False: the value does not exist, or is not a number, such as "max" */
static bool number_at(const cJSON *o, const char *path, double *value)
{
	char word[64], *end;

	while (o && *path) {
		size_t len = strcspn(path, "/");

		snprintf(word, sizeof(word), "%.*s", (int)len, path);
		o = ctl_list(o, word);
		path += len + !!path[len];
	}
	if (o && cJSON_IsNumber(o)) {
		*value = o->valuedouble;
		return true;
	}
	if (!o || !cJSON_IsString(o) || !*o->valuestring)
		return false;
	*value = strtod(o->valuestring, &end);
	return !*end;
}

static const char *path_of(const char *group)
{
	return *group ? group : "/";
}

/* Prints the labels that identify an object: the device, group and client, unless NULL */
static void put_labels(const cJSON *device, const cJSON *group, const cJSON *client,
		       const char *more)
{
	putchar('{');
	put_label("device", ctl_string(device, "name"));
	if (group) {
		putchar(',');
		put_label("group", path_of(ctl_string(group, "path")));
	}
	if (client) {
		putchar(',');
		put_label("group", path_of(ctl_string(client, "group")));
		printf(",pid=\"%.0f\",", ctl_number(client, "pid"));
		put_label("comm", ctl_string(client, "comm"));
	}
	if (more)
		printf(",%s", more);
	putchar('}');
}

static bool same_process(const cJSON *a, const cJSON *b)
{
	return ctl_number(a, "pid") == ctl_number(b, "pid") &&
	       !strcmp(ctl_string(a, "group"), ctl_string(b, "group"));
}

/*
 * Of the process of @client, which may have several connections to the device: their sum, which is
 * that of the first; the share is that of each. False: there is none, or this is not the first.
 */
static bool number_of_process(const struct metric *m, const cJSON *client, double *value)
{
	const cJSON *c;
	bool any = false;
	double one;

	for (c = client->prev; c->next; c = c->prev)	/* the first one's prev is the last */
		if (same_process(c, client))
			return false;
	for (c = client, *value = 0; c; c = c->next)
		if (same_process(c, client) && number_at(c, m->path, &one)) {
			*value += !any || strcmp(m->path, SHARE) ? one : 0;
			any = true;
		}
	return any;
}

static void put_sample(const struct metric *m, const cJSON *device, const cJSON *group,
		       const cJSON *client)
{
	double value;

	if (client ? !number_of_process(m, client, &value) :
	    !number_at(group ? group : device, m->path, &value))
		return;
	fputs(m->name, stdout);
	put_labels(device, group, client, m->label);
	printf(" %.15g\n", value * m->scale);
}

static void put_head(const char *name, const char *type, const char *help)
{
	printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* @list: key of the objects in each device that the metrics describe; NULL: the devices */
static void put_metrics(const struct metric *m, size_t n, const cJSON *devices, const char *list)
{
	const cJSON *device, *o;

	for (size_t i = 0; i < n; i++) {
		if (!i || strcmp(m[i].name, m[i - 1].name))
			put_head(m[i].name, m[i].type, m[i].help);
		cJSON_ArrayForEach(device, devices) {
			if (!list) {
				put_sample(&m[i], device, NULL, NULL);
				continue;
			}
			cJSON_ArrayForEach(o, ctl_list(device, list))
				if (!strcmp(list, "groups"))
					put_sample(&m[i], device, o, NULL);
				else
					put_sample(&m[i], device, NULL, o);
		}
	}
}

static void put_bucket(const cJSON *device, const cJSON *group, const char *le, double count)
{
	char label[48];

	snprintf(label, sizeof(label), "le=\"%s\"", le);
	fputs(PREEMPTION "_bucket", stdout);
	put_labels(device, group, NULL, label);
	printf(" %.15g\n", count);
}

/* The lines "le_16 3" of gpu.preemption are buckets as the format wants them, in us */
static void put_preemption(const cJSON *device, const cJSON *group)
{
	const cJSON *delays = ctl_list(group, "gpu.preemption"), *line;
	char le[32];

	/* an older module, or a group that is not shown */
	if (!delays)
		return;
	cJSON_ArrayForEach(line, delays) {
		if (strncmp(line->string, "le_", 3))
			continue;
		snprintf(le, sizeof(le), "%.15g", strtod(line->string + 3, NULL) * US);
		put_bucket(device, group, le, line->valuedouble);
	}
	put_bucket(device, group, "+Inf", ctl_number(delays, "count"));
	fputs(PREEMPTION "_sum", stdout);
	put_labels(device, group, NULL, NULL);
	printf(" %.15g\n", ctl_number(delays, "total_usec") * US);
	fputs(PREEMPTION "_count", stdout);
	put_labels(device, group, NULL, NULL);
	printf(" %.15g\n", ctl_number(delays, "count"));
}

static void put_preemptions(const cJSON *devices)
{
	const cJSON *device, *group;

	put_head(PREEMPTION, "histogram",
		 "Time from an eviction's decision until the workers have left");
	cJSON_ArrayForEach(device, devices)
		cJSON_ArrayForEach(group, ctl_list(device, "groups"))
			put_preemption(device, group);
}

static void put_info(const cJSON *devices)
{
	const cJSON *device;

	put_head("gsched_device_info", GAUGE, "1, with what is in force on the device");
	cJSON_ArrayForEach(device, devices) {
		printf("gsched_device_info{");
		put_label("device", ctl_string(device, "name"));
		putchar(',');
		put_label("uuid", ctl_string(device, "uuid"));
		putchar(',');
		put_label("mode", ctl_string(device, "mode"));
		putchar(',');
		put_label("policy", ctl_string(device, "policy"));
		puts("} 1");
	}
}

#define PUT(metrics, devices, list) \
	put_metrics(metrics, sizeof(metrics) / sizeof((metrics)[0]), devices, list)

int ctl_metrics(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	const cJSON *devices;
	cJSON *status;

	if (!g)
		return CTL_FAIL;
	status = ctl_read_status(g);
	gsched_close(g);
	if (!status)
		return CTL_FAIL;
	devices = ctl_list(status, "devices");
	put_info(devices);
	PUT(device_metrics, devices, NULL);
	PUT(group_metrics, devices, "groups");
	put_preemptions(devices);
	PUT(client_metrics, devices, "clients");
	cJSON_Delete(status);
	return 0;
}
