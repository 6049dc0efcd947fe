// SPDX-License-Identifier: LGPL-2.1-or-later
/* The planner's report: gschedctl qos writes it, gschedctl status reads and prints it. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ctl_json.h"
#include "ctl_qos.h"
#include "libgsched/proto.h"

#define SIZE_MAX_READ	65536

static const char *const states[] = {
	[QOS_LEARNING] = "learning", [QOS_MET] = "met", [QOS_MISSED] = "missed",
	[QOS_SHORT] = "short",
};

static bool path_of(const struct ctl *ctl, const char *device, char *path, size_t size)
{
	const char *env = getenv("GSCHED_SOCKET"), *socket = ctl->open.socket;
	int n;

	if (!socket)
		socket = env && *env ? env : GSP_SOCKET_DEFAULT;
	n = snprintf(path, size, "%s.qos.%s", socket, device);
	return n > 0 && (size_t)n < size && !strchr(device, '/');
}

static cJSON *json_of(const struct qos *q, uint64_t now)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "groups"), *one;

	cJSON_AddNumberToObject(o, "pid", getpid());
	cJSON_AddNumberToObject(o, "time_ms", (double)now / 1e6);
	cJSON_AddStringToObject(o, "why", q->why ? q->why : "");
	cJSON_AddStringToObject(o, "plan", q->active ? q->text : "none");
	for (size_t i = 0; i < q->n_groups; i++) {
		const struct qos_group *g = &q->group[i];
		double us = qos_latency_us(g);

		if (g->role != QOS_FACING)
			continue;
		one = cJSON_CreateObject();
		cJSON_AddItemToArray(list, one);
		cJSON_AddStringToObject(one, "path", g->path);
		cJSON_AddNumberToObject(one, "target_us", g->target_us);
		cJSON_AddNumberToObject(one, "sms", g->sms);
		cJSON_AddStringToObject(one, "state", states[g->state]);
		if (!isnan(us))
			cJSON_AddNumberToObject(one, "latency_us", round(us));
	}
	return o;
}

/* Replaces the file atomically, so that no reader sees a part of it. */
static int write_text(const char *path, const char *text)
{
	char new[4096];
	ssize_t done;
	int fd, err = 0;

	if ((size_t)snprintf(new, sizeof(new), "%s.new", path) >= sizeof(new))
		return -ENAMETOOLONG;
	unlink(new);
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	done = write(fd, text, strlen(text));
	if (done != (ssize_t)strlen(text))
		err = done < 0 ? -errno : -ENOSPC;
	close(fd);
	if (!err && rename(new, path))
		err = -errno;
	if (err)
		unlink(new);
	return err;
}

int ctl_qos_report(const struct ctl *ctl, const char *device, const struct qos *q, uint64_t now)
{
	char path[4000], *text;
	cJSON *o;
	int err;

	if (!path_of(ctl, device, path, sizeof(path)))
		return -ENAMETOOLONG;
	o = json_of(q, now);
	text = cJSON_PrintUnformatted(o);
	err = text ? write_text(path, text) : -ENOMEM;
	free(text);
	cJSON_Delete(o);
	return err;
}

void ctl_qos_report_end(const struct ctl *ctl, const char *device)
{
	char path[4000];

	if (path_of(ctl, device, path, sizeof(path)))
		unlink(path);
}

/* Only files of root or of this user are trusted. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = NULL;
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < SIZE_MAX_READ &&
	    (!st.st_uid || st.st_uid == geteuid()))
		text = calloc(1, SIZE_MAX_READ);
	if (text)
		n = read(fd, text, SIZE_MAX_READ - 1);
	close(fd);
	if (n > 0)
		return text;
	free(text);
	return NULL;
}

static bool is_fresh(const cJSON *o)
{
	struct timespec ts;
	double now, written = ctl_number(o, "time_ms");

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
	return written <= now && now - written < CTL_QOS_FRESH_NS / 1e6;
}

cJSON *ctl_qos_read(const struct ctl *ctl, const char *device)
{
	char path[4000], *text;
	cJSON *o;

	if (!path_of(ctl, device, path, sizeof(path)))
		return NULL;
	text = read_text(path);
	o = text ? cJSON_Parse(text) : NULL;
	free(text);
	if (o && is_fresh(o))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void print_group(const cJSON *device, const cJSON *g)
{
	double us = ctl_number(g, "latency_us"), sms = ctl_number(g, "sms");
	const char *state = ctl_string(g, "state");

	printf("  qos: %s: target %g ms", ctl_text(g, "path"), ctl_number(g, "target_us") / 1000);
	if (us > 0)
		printf(", %g ms with %g of %g SMs", us / 1000, sms, ctl_number(device, "sms"));
	else
		printf(", %g of %g SMs", sms, ctl_number(device, "sms"));
	puts(!strcmp(state, "learning") ? ": measuring" :
	     !strcmp(state, "missed") ? ": the target cannot be met on this device" :
	     !strcmp(state, "short") ? ": other targets leave too little" : "");
}

void ctl_qos_print(const cJSON *device)
{
	const cJSON *qos = ctl_list(device, "qos"), *g;

	if (!qos)
		return;
	if (*ctl_string(qos, "why"))
		printf("  qos: no plan: %s\n", ctl_string(qos, "why"));
	else
		cJSON_ArrayForEach(g, ctl_list(qos, "groups"))
			print_group(device, g);
}
