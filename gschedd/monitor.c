// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GSP_MONITOR: a line of JSON for each object, then for each event, for `gschedctl monitor`: the
 * embedded arbiter's counterpart of the module's netlink family, with the same names.
 *
 * Each reader has a socket pair of its own. The arbiter does not wait for a slow reader: lines are
 * dropped, and a line with the event "lost" says how many.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gschedd.h"

#define MONITORS_MAX	16
#define SNDBUF		(4 << 20)	/* some thousand lines */
#define LINE		1024

static struct monitor {
	int fd;
	bool tasks;			/* also gets decisions for tasks */
	unsigned long lost;
} monitors[MONITORS_MAX];
static unsigned int n_monitors, n_tasks;	/* n_tasks: those with @tasks */

static void forget_monitor(struct monitor *m)
{
	close(m->fd);
	n_tasks -= m->tasks;
	*m = monitors[--n_monitors];
}

static int send_line(struct monitor *m, const char *line, size_t len)
{
	return send(m->fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Sends a line, or counts it as lost. -EPIPE and other errors: the reader is gone */
static int send_or_drop(struct monitor *m, const char *line, size_t len)
{
	char text[64];
	int n, err = 0;

	if (m->lost) {
		n = snprintf(text, sizeof(text), "{\"event\":\"lost\",\"lines\":%lu}", m->lost);
		err = send_line(m, text, n);
		m->lost = err ? m->lost : 0;
	}
	if (!err)
		err = send_line(m, line, len);
	if (err != -EAGAIN && err != -ENOBUFS)
		return err;
	m->lost++;
	return 0;
}

/* Sends a line to @to, or, if that is NULL, to all readers that get it */
__attribute__((format(printf, 3, 4)))
static void emit(struct monitor *to, bool task, const char *format, ...)
{
	char line[LINE];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (n < 0 || n >= LINE)
		return;
	if (to) {
		send_or_drop(to, line, n);
		return;
	}
	for (unsigned int i = n_monitors; i-- > 0;)
		if ((!task || monitors[i].tasks) && send_or_drop(&monitors[i], line, n))
			forget_monitor(&monitors[i]);
}

#define ALL_HAVE	"{\"time_ns\":%llu,\"device\":\"%s\",\"event\":\"%s\""
#define OBJECTS_HAVE	"{\"device\":\"%s\",\"object\":\"%s\""

static unsigned long long event_time(void)
{
	return now_ns();
}

/* Names and paths are [A-Za-z0-9_.:@/-], which JSON does not escape. The root group is "/". */
static const char *path_of(const struct group *group)
{
	return group->parent ? group->path : "/";
}

void monitor_device(const struct device *dev, const char *event)
{
	char uuid[UUID_TEXT], why[160];

	if (!n_monitors)
		return;
	uuid_text(dev->decl.uuid, uuid);
	if (!strcmp(event, "policy")) {
		/* has no character that JSON escapes; empty: no policy was replaced */
		gsc_policy_why(&dev->core, why, sizeof(why));
		emit(NULL, false, ALL_HAVE ",\"policy\":\"%s\"%s%s%s}", event_time(),
		     dev->decl.name, event, dev->core.policy->name, *why ? ",\"fault\":\"" : "",
		     why, *why ? "\"" : "");
	} else {
		emit(NULL, false, ALL_HAVE ",\"uuid\":\"%s\",\"sms\":%u}", event_time(),
		     dev->decl.name, event, uuid, dev->core.sms);
	}
}

void monitor_group(const struct group *group, const char *event)
{
	if (n_monitors)
		emit(NULL, false, ALL_HAVE ",\"group\":\"%s\"}", event_time(),
		     group->dev->decl.name, event, path_of(group));
}

#define CLIENT		",\"client\":%llu,\"pid\":%d"
#define CLIENT_OF(c)	(unsigned long long)(c)->id, (int)(c)->conn->pid
#define BAND		",\"flags\":%u,\"slice_us\":%u,\"share\":%u"
#define BAND_OF(c)	(c)->core.arb.flags, (c)->core.arb.slice_us, (c)->core.arb.share

void monitor_client(const struct client *c, const char *event)
{
	const char *name = c->dev->decl.name;
	unsigned int uid = c->conn->uid;

	if (!n_monitors)
		return;
	if (!strcmp(event, "client-add"))
		emit(NULL, false, ALL_HAVE CLIENT ",\"uid\":%u,\"group\":\"%s\"" BAND "}",
		     event_time(), name, event, CLIENT_OF(c), uid, path_of(c->group), BAND_OF(c));
	else
		emit(NULL, false, ALL_HAVE CLIENT ",\"uid\":%u}", event_time(), name, event,
		     CLIENT_OF(c), uid);
}

void monitor_band(const struct client *c)
{
	if (n_monitors)
		emit(NULL, false, ALL_HAVE CLIENT BAND "}", event_time(), c->dev->decl.name, "band",
		     CLIENT_OF(c), BAND_OF(c));
}

#define TASK		CLIENT ",\"slot\":%u,\"seq\":%u,\"limit\":%u"
#define TASK_OF(c, task) \
	CLIENT_OF(c), (task)->slot, (task)->seq, (task)->window

static const char *const classes[GSCHED_INTENSITY__MAX + 1] = {
	[GSCHED_INTENSITY_L_C] = "L_C",
	[GSCHED_INTENSITY_M_C] = "M_C",
	[GSCHED_INTENSITY_H_C] = "H_C",
	[GSCHED_INTENSITY_M_M] = "M_M",
	[GSCHED_INTENSITY_H_M] = "H_M",
};

void monitor_task(const struct gsc_task *task, const char *event, uint64_t now)
{
	const struct client *c = container_of(task->client, struct client, core);
	const char *name = c->dev->decl.name, *class = classes[task->intensity];
	unsigned long long time = now;

	if (!n_tasks)
		return;
	if (!strcmp(event, "grant"))
		emit(NULL, true, ALL_HAVE TASK ",\"wait_ns\":%llu%s%s%s}", time, name, event,
		     TASK_OF(c, task), (unsigned long long)(task->granted - task->submitted),
		     class ? ",\"class\":\"" : "", class ? class : "", class ? "\"" : "");
	else if (!strcmp(event, "done"))
		emit(NULL, true, ALL_HAVE TASK ",\"run_ns\":%llu,\"used_ns\":%llu,\"evictions\":%u}",
		     time, name, event, TASK_OF(c, task), (unsigned long long)task->ran,
		     (unsigned long long)(task->usage / GSCHED_CAPSM), task->evictions);
	else
		emit(NULL, true, ALL_HAVE TASK "}", time, name, event, TASK_OF(c, task));
}

static void show_group(struct monitor *m, const struct group *group)
{
	const struct gsc_group *core = group->core;
	char max[32] = "", memory_max[48] = "";

	if (core->max != GSC_MAX_UNLIMITED)
		snprintf(max, sizeof(max), "\"max\":%u,", core->max);
	if (core->memory.max != GSC_MEMORY_UNLIMITED)
		snprintf(memory_max, sizeof(memory_max), "\"memory_max\":%llu,",
			 (unsigned long long)core->memory.max);
	emit(m, false,
	     OBJECTS_HAVE
	     ",\"group\":\"%s\",%s\"min\":%u,\"current\":%u,\"weight\":%u,\"priority\":%u,"
	     "\"latency_us\":%u,%s\"memory\":%llu,\"clients\":%u}",
	     group->dev->decl.name, "group", path_of(group), max, core->min, core->current_units,
	     core->weight, core->priority, core->latency_us, memory_max,
	     (unsigned long long)core->memory.current_bytes, core->clients);
}

static void show_tasks(struct monitor *m, const struct client *c)
{
	for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++) {
		const struct gsc_task *task = gsc_task_in(&c->core, slot);

		if (task)
			emit(m, true, OBJECTS_HAVE TASK ",\"state\":\"%s\",\"used_ns\":%llu,"
			     "\"evictions\":%u}", c->dev->decl.name, "task", TASK_OF(c, task),
			     task->state == GSC_TASK_RUNNING ? "running" : "waiting",
			     task->usage / GSCHED_CAPSM, task->evictions);
	}
}

/* Sends a line for each object of @dev: groups, then clients, then tasks */
static void show_device(struct monitor *m, const struct device *dev)
{
	const struct gsc_client *core;
	const struct group *group;
	char uuid[UUID_TEXT];

	uuid_text(dev->decl.uuid, uuid);
	emit(m, false,
	     OBJECTS_HAVE
	     ",\"uuid\":\"%s\",\"sms\":%u,\"policy\":\"%s\",\"clients\":%u,\"decisions\":%llu}",
	     dev->decl.name, "device", uuid, dev->core.sms, dev->core.policy->name,
	     dev->core.n_clients, (unsigned long long)dev->core.decisions);
	show_group(m, &dev->root);
	list_for_each_entry(group, &dev->groups, node)
		show_group(m, group);
	list_for_each_entry(core, &dev->core.clients, node) {
		const struct client *c = container_of(core, struct client, core);

		emit(m, false,
		     OBJECTS_HAVE CLIENT
		     ",\"uid\":%u,\"group\":\"%s\",\"current\":%u,\"memory\":%llu" BAND "}",
		     dev->decl.name, "client", CLIENT_OF(c), (unsigned int)c->conn->uid,
		     path_of(c->group), core->current_units, (unsigned long long)core->memory,
		     BAND_OF(c));
	}
	if (m->tasks)
		list_for_each_entry(core, &dev->core.clients, node)
			show_tasks(m, container_of(core, struct client, core));
}

static void forget_dead(void)
{
	for (unsigned int i = n_monitors; i-- > 0;) {
		struct pollfd p = { .fd = monitors[i].fd };

		if (poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR))
			forget_monitor(&monitors[i]);
	}
}

int monitor_add(bool tasks)
{
	const struct device *dev;
	struct monitor *m;
	int pair[2];

	forget_dead();
	if (n_monitors == MONITORS_MAX)
		return -EBUSY;
	/* a socket of packets, so that lines are dropped as a whole */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &(int) { SNDBUF }, sizeof(int)))
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int) { SNDBUF }, sizeof(int));
	m = &monitors[n_monitors++];
	*m = (struct monitor) { .fd = pair[0], .tasks = tasks };
	n_tasks += tasks;
	list_for_each_entry(dev, &devices, node)
		show_device(m, dev);
	return pair[1];
}

void monitors_close(void)
{
	while (n_monitors)
		forget_monitor(&monitors[n_monitors - 1]);
}
