// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GSP_STATUS: everything as JSON, in the format that libgsched uses for the module too. A user who
 * is not an administrator sees only own objects: own clients, the bands and groups of these, groups
 * that the user owns, own kernels.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "gschedd.h"

#define load(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)

bool status_shows(const struct conn *to, uid_t uid)
{
	return to->admin || to->uid == uid;
}

static bool shows_client(const struct conn *to, const struct gsc_client *core)
{
	return status_shows(to, container_of(core, struct client, core)->conn->uid);
}

static bool shows_band(const struct conn *to, const struct gsc_band *band)
{
	struct gsc_client *core;

	list_for_each_entry(core, &band->members, member)
		if (shows_client(to, core))
			return true;
	return false;
}

/* @all: everything is shown, because the user owns it. Otherwise a client of the user is in it. */
static bool shows_group(const struct conn *to, const struct group *group, bool *all)
{
	struct gsc_client *core;

	*all = to->admin || group_owned(group, to->uid);
	if (*all || !group->parent)
		return true;
	list_for_each_entry(core, &group->dev->core.clients, node) {
		if (!shows_client(to, core))
			continue;
		for (const struct group *g = container_of(core, struct client, core)->group; g;
		     g = g->parent)
			if (g == group)
				return true;
	}
	return false;
}

/* For the root group: everything that the device does. */
bool status_shows_file(const struct conn *to, const struct group *group, const char *file)
{
	int f = gsc_file_find(file);
	bool all, shown;

	if (f < 0 || gsc_file_writable(f))
		return true;
	shown = shows_group(to, group, &all);
	return all || (shown && group->parent);
}

int memfd_from(const char *name, const void *data, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), err;
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < size) {
		ssize_t n = write(fd, (const char *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? errno : ENOSPC;
			close(fd);
			return -err;
		}
		done += n;
	}
	return fd;
}

/* Adds text that a process chose: only its printable ASCII. */
static void add_foreign(cJSON *to, const char *key, const char *text, size_t size)
{
	char buf[257];
	size_t i;

	for (i = 0; i < sizeof(buf) - 1 && i < size; i++) {
		unsigned char c = load(&text[i]);

		if (!c)
			break;
		buf[i] = c < 0x20 || c > 0x7e ? '?' : c;
	}
	buf[i] = '\0';
	cJSON_AddStringToObject(to, key, buf);
}

/* Lines of "key value". */
static void add_flat(cJSON *to, char *text)
{
	char *save = NULL, *line;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strchr(line, ' ');

		if (!space)
			continue;
		*space = '\0';
		cJSON_AddNumberToObject(to, line, strtod(space + 1, NULL));
	}
}

/* Lines of "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". */
static void add_pressure(cJSON *to, char *text)
{
	char *save = NULL, *line, *word, *rest;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		cJSON *kind = cJSON_AddObjectToObject(to, strtok_r(line, " ", &rest));

		while ((word = strtok_r(NULL, " ", &rest))) {
			char *value = strchr(word, '=');

			*value++ = '\0';
			cJSON_AddNumberToObject(kind, word, strtod(value, NULL));
		}
	}
}

static void add_group(cJSON *list, struct group *group, const struct conn *to)
{
	struct bound_pid *b;
	struct proc_stat st;
	cJSON *g, *procs;
	char buf[3072];
	bool all;

	if (!shows_group(to, group, &all))
		return;
	g = cJSON_CreateObject();
	cJSON_AddItemToArray(list, g);
	cJSON_AddStringToObject(g, "path", group->path);
	for (int f = 0; f < GSC_FILE_COUNT; f++) {
		if (!status_shows_file(to, group, gsc_file_name[f]) ||
		    gsc_group_show(group->core, f, buf, sizeof(buf)) < 0)
			continue;
		if (f == GSC_FILE_GPU_PRESSURE) {
			add_pressure(cJSON_AddObjectToObject(g, gsc_file_name[f]), buf);
			continue;
		}
		if (f == GSC_FILE_GPU_STAT || f == GSC_FILE_GPU_EVENTS ||
		    f == GSC_FILE_GPU_PREEMPTION) {
			add_flat(cJSON_AddObjectToObject(g, gsc_file_name[f]), buf);
			continue;
		}
		buf[strcspn(buf, "\n")] = '\0';
		cJSON_AddStringToObject(g, gsc_file_name[f], buf);
	}
	procs = cJSON_AddArrayToObject(g, "procs");
	list_for_each_entry(b, &group->procs, node)
		if (all || (!proc_stat(b->pid, &st) && status_shows(to, st.uid)))
			cJSON_AddItemToArray(procs, cJSON_CreateNumber(b->pid));
	cJSON_AddStringToObject(g, "cgroup",
				group->cgroup ? *group->cgroup ? group->cgroup : "/" : "");
	cJSON_AddNumberToObject(g, "owner", group->owner);
}

static const char *activity_name(uint32_t activity)
{
	static const char *const name[] = {
		[GSCHED_ACTIVITY_IDLE] = "idle", [GSCHED_ACTIVITY_WAITING] = "waiting",
		[GSCHED_ACTIVITY_BUSY] = "busy",
	};

	return name[activity];
}

static struct client *client_of(struct gsc_client *core)
{
	return container_of(core, struct client, core);
}

/* Without a request for reports, the page is the only source. */
static uint32_t client_activity(const struct client *c)
{
	uint32_t says;

	if (c->core.arb.flags & GSCHED_ARB_REPORT)
		return c->core.activity;
	says = load(&c->cl->header.activity);
	return says <= GSCHED_ACTIVITY_BUSY ? says : GSCHED_ACTIVITY_IDLE;
}

static void add_bands(cJSON *list, const struct device *dev, const struct conn *to)
{
	struct gsc_client *core;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->core.bands, node) {
		struct gsc_client *owner = gsc_band_owner(band);
		uint32_t activity = GSCHED_ACTIVITY_IDLE;
		cJSON *o, *pids;
		char text[256];

		if (!shows_band(to, band))
			continue;
		o = cJSON_CreateObject();
		cJSON_AddItemToArray(list, o);
		gsc_band_name(band, text, sizeof(text));
		cJSON_AddStringToObject(o, "name", text);
		pids = cJSON_AddArrayToObject(o, "clients");
		list_for_each_entry(core, &band->members, member) {
			if (core->flags & GSCHED_ATTACH_SERVER) {
				if (core == owner)
					cJSON_AddNumberToObject(o, "server",
								client_of(core)->conn->pid);
				continue;
			}
			if (shows_client(to, core))
				cJSON_AddItemToArray(
					pids, cJSON_CreateNumber(client_of(core)->conn->pid));
			if (client_activity(client_of(core)) > activity)
				activity = client_activity(client_of(core));
		}
		cJSON_AddNumberToObject(o, "priority", band->priority);
		cJSON_AddNumberToObject(o, "weight", (double)band->weight / GSC_BAND_WEIGHT_SCALE);
		cJSON_AddNumberToObject(o, "slice_us", band->slice_us);
		cJSON_AddNumberToObject(o, "applied_us", owner ? owner->slice_us : 0);
		cJSON_AddNumberToObject(o, "slice_error", owner ? owner->slice_error : 0);
		cJSON_AddBoolToObject(o, "block_end",
				      owner && load(&client_of(owner)->cl->header.block_end));
		cJSON_AddStringToObject(o, "activity", activity_name(activity));
		cJSON_AddBoolToObject(o, "turn", band == dev->core.turn);
		gsc_band_why(band, text, sizeof(text));
		cJSON_AddStringToObject(o, "why", text);
	}
}

/* What a client's header and page tell about its band. */
static void add_client_band(cJSON *o, const struct client *c)
{
	const struct gsched_cl_header *h = &c->cl->header;
	const struct gsc_arb *arb = &c->core.arb;
	char name[GSC_BAND_NAME_SIZE], hold[384];

	gsc_band_name(c->core.band, name, sizeof(name));
	cJSON_AddStringToObject(o, "band", name);
	cJSON_AddNumberToObject(o, "slice_us", arb->slice_us);
	cJSON_AddNumberToObject(o, "applied_us", c->core.slice_us ? c->core.slice_us :
				load(&h->slice_us));
	cJSON_AddNumberToObject(o, "slice_error", c->core.slice_error ? c->core.slice_error :
				load(&h->slice_error));
	cJSON_AddBoolToObject(o, "block_end", load(&h->block_end));
	cJSON_AddNumberToObject(o, "block_us", c->core.block_us);
	cJSON_AddStringToObject(o, "activity", activity_name(client_activity(c)));
	cJSON_AddNumberToObject(o, "passed", load(&h->passed));
	cJSON_AddNumberToObject(o, "held_ns", load(&h->held_ns));
	cJSON_AddNumberToObject(o, "paced_ns", load(&h->paced_ns));
	cJSON_AddNumberToObject(o, "share", (double)arb->share / GSCHED_SHARE_ALL);
	gsc_client_why(&c->core, hold, sizeof(hold));
	cJSON_AddStringToObject(o, "hold", hold);
}

static void add_slot(cJSON *list, const struct client *c, unsigned int slot)
{
	const struct gsched_cl_slot *s = &c->cl->slot[slot];
	const struct gsc_task *task = gsc_task_in(&c->core, slot);
	uint32_t seq = task ? task->seq : load(&s->seq);
	char stream[24];
	cJSON *o;

	/* it has more digits than a double */
	snprintf(stream, sizeof(stream), "%llu", task ? (unsigned long long)task->stream : 0);
	/* a launch under a lease is only in the page */
	if (!task && !gsc_page_leased(&c->core, slot))
		return;
	o = cJSON_CreateObject();
	cJSON_AddItemToArray(list, o);
	cJSON_AddNumberToObject(o, "slot", slot);
	cJSON_AddNumberToObject(o, "seq", seq);
	cJSON_AddStringToObject(o, "state", !task ? "leased" :
				task->state == GSC_TASK_WAITING ? "waiting" : "running");
	cJSON_AddNumberToObject(o, "tier", task ? task->tier : load(&s->tier));
	cJSON_AddNumberToObject(o, "blocks", task ? task->blocks : load(&s->blocks));
	cJSON_AddNumberToObject(o, "limit", c->arb->slot[slot].window);
	cJSON_AddNumberToObject(o, "seen", load(&s->seen_limit));
	cJSON_AddNumberToObject(o, "launched", load(&s->launched));
	cJSON_AddNumberToObject(o, "left", load(&s->left));
	cJSON_AddNumberToObject(o, "start_ns", load(&s->start_ns));
	cJSON_AddStringToObject(o, "stream", stream);
}

static void add_client(cJSON *list, const struct client *c)
{
	static const char *const lease[] = { "none", "notify", "free" };
	static const char *const tier[] = { "block", "slice", "launch" };
	const struct gsched_cl_header *h = &c->cl->header;
	cJSON *o = cJSON_CreateObject(), *managed, *slots;
	struct proc_stat st;
	char delays[1024];

	cJSON_AddItemToArray(list, o);
	cJSON_AddNumberToObject(o, "pid", c->conn->pid);
	cJSON_AddStringToObject(o, "comm", proc_stat(c->conn->pid, &st) ? "" : st.comm);
	cJSON_AddStringToObject(o, "group", c->group->path);
	cJSON_AddStringToObject(o, "lease", lease[c->arb->header.lease % 3]);
	for (int f = 0; f < GSC_FILE_COUNT; f++) {
		char value[32];

		if (gsc_client_show(&c->core, f, value, sizeof(value)) < 0)
			continue;
		value[strcspn(value, "\n")] = '\0';
		cJSON_AddStringToObject(o, gsc_file_name[f], value);
	}
	gsc_group_show(&c->core.own, GSC_FILE_GPU_PREEMPTION, delays, sizeof(delays));
	add_flat(cJSON_AddObjectToObject(o, "preemption"), delays);
	managed = cJSON_AddObjectToObject(o, "managed");
	for (int i = 0; i < 3; i++)
		cJSON_AddNumberToObject(managed, tier[i], load(&h->managed[i]));
	cJSON_AddNumberToObject(o, "unmanaged", load(&h->unmanaged));
	cJSON_AddNumberToObject(o, "resumable", load(&h->resumable));
	cJSON_AddNumberToObject(o, "wings", load(&h->wings));
	cJSON_AddNumberToObject(o, "memory", c->core.memory);
	add_foreign(o, "why", h->why, sizeof(h->why));
	add_client_band(o, c);
	slots = cJSON_AddArrayToObject(o, "slots");
	for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++)
		add_slot(slots, c, slot);
}

static void add_device(cJSON *list, struct device *dev, const struct conn *to)
{
	static const char *const mode[] = {
		[GSCHED_MODE_TEMPORAL] = "temporal", [GSCHED_MODE_SPATIAL] = "spatial",
		[GSCHED_MODE_SLICED] = "sliced",
	};
	cJSON *o = cJSON_CreateObject(), *groups, *clients;
	struct gsc_client *core;
	char uuid[UUID_TEXT], why[160];
	struct group *g;

	gsc_tick(&dev->core, now_ns());	/* brings statistics up to date */
	device_settle(dev);
	gsc_device_count(&dev->core, now_ns());
	uuid_text(dev->decl.uuid, uuid);
	cJSON_AddItemToArray(list, o);
	cJSON_AddStringToObject(o, "name", dev->decl.name);
	cJSON_AddStringToObject(o, "uuid", uuid);
	cJSON_AddNumberToObject(o, "sms", dev->core.sms);
	cJSON_AddStringToObject(o, "mode", mode[dev->core.mode % 3]);
	cJSON_AddStringToObject(o, "policy", dev->core.policy->name);
	gsc_policy_why(&dev->core, why, sizeof(why));
	cJSON_AddStringToObject(o, "policy_fault", why);
	gsc_plan_show(&dev->core, why, sizeof(why));
	cJSON_AddStringToObject(o, "planned", why);
	for (int i = 0; i < GSC_PARAM_COUNT; i++)
		cJSON_AddNumberToObject(o, gsc_param_name[i], dev->core.param[i]);
	cJSON_AddNumberToObject(o, "clients_max", dev->clients_max);
	add_bands(cJSON_AddArrayToObject(o, "bands"), dev, to);
	groups = cJSON_AddArrayToObject(o, "groups");
	add_group(groups, &dev->root, to);
	list_for_each_entry(g, &dev->groups, node)
		add_group(groups, g, to);
	clients = cJSON_AddArrayToObject(o, "clients");
	list_for_each_entry(core, &dev->core.clients, node)
		if (shows_client(to, core))
			add_client(clients, container_of(core, struct client, core));
	nvml_status_device(o, dev, to);
}

/* The rewriter's notes about kernels, oldest first. */
static void add_notes(cJSON *list, enum note_kind kind, const struct conn *to)
{
	uint64_t n = rewrite_stats.n_notes[kind];

	for (uint64_t i = n > NOTES_MAX ? n - NOTES_MAX : 0; i < n; i++) {
		const struct note *note = &rewrite_stats.note[kind][i % NOTES_MAX];
		cJSON *o;

		if (!status_shows(to, rewrite_stats.uid[kind][i % NOTES_MAX]))
			continue;
		o = cJSON_CreateObject();
		cJSON_AddItemToArray(list, o);
		add_foreign(o, "kernel", note->kernel, sizeof(note->kernel));
		if (kind == NOTE_RESUMABLE)
			cJSON_AddNumberToObject(o, "points", note->points);
		add_foreign(o, "reason", note->reason, sizeof(note->reason));
	}
}

static char *status_json(const struct conn *to)
{
	cJSON *root = cJSON_CreateObject(), *list;
	struct device *dev;
	char *text;

	cJSON_AddStringToObject(root, "backend", opt.arbiter == ARBITER_MODULE ?
				"module" : "daemon");
	list = cJSON_AddArrayToObject(root, "devices");
	list_for_each_entry(dev, &devices, node)
		add_device(list, dev, to);
	list = cJSON_AddObjectToObject(root, "rewrites");
	cJSON_AddNumberToObject(list, "served", rewrite_stats.served);
	cJSON_AddNumberToObject(list, "hits", rewrite_stats.hits);
	cJSON_AddNumberToObject(list, "failed", rewrite_stats.failed);
	add_notes(cJSON_AddArrayToObject(list, "refused"), NOTE_REFUSED, to);
	add_notes(cJSON_AddArrayToObject(list, "resumable"), NOTE_RESUMABLE, to);
	mps_status(root, to);
	nvml_status(root, to);
	/* cJSON accepts NULL for any object, so running out of memory shows here */
	text = root ? cJSON_PrintUnformatted(root) : NULL;
	cJSON_Delete(root);
	return text;
}

void status_reply(struct conn *conn, const struct gsp_header *h)
{
	char *text = status_json(conn);
	int fd = text ? memfd_from("gsched-status", text, strlen(text)) : -ENOMEM;

	free(text);
	conn_reply(conn, h, fd < 0 ? fd : 0, NULL, 0, &fd, fd >= 0);
}
