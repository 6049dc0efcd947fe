// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gsched_status() with the module: the contents of configfs and sysfs as JSON, in the format of
 * gschedd's embedded arbiter. Only that has "bands", and something in "slots"; clients of the
 * module have an "id", by which gschedctl adds both from netlink.
 * {"backend", "devices": [{"name", "uuid", "sms", "mode", "policy", "policy_fault", "planned",
 *   "switch_us", "max_overhead", "max_slowdown",
 *   "bands": [{"name", "clients", "server", "priority", "weight", "slice_us", "applied_us",
 *     "slice_error", "block_end", "activity", "turn", "why"}],
 *   "groups": [{"path", "capsm.max", ..., "gpu.stat": {}, "gpu.events": {}, "gpu.preemption": {},
 *     "gpu.pressure": {"some": {"avg10", "avg60", "avg300", "total"}, "full": {}}}],
 *   "clients": [{"id", "memory", "pid", "comm", "group", "band", "slice_us", "applied_us",
 *     "slice_error", "block_end", "block_us", "activity", "passed", "held_ns", "paced_ns",
 *     "share", "lease", "preemption": {}, "managed": {"block", "slice", "launch"},
 *     "unmanaged", "resumable", "wings", "why",
 *     "slots": [{"slot", "seq", "tier", "blocks", "limit", "seen", "launched", "left",
 *       "start_ns", "stream"}]}]}]}
 * The key of a file that does not exist, or that the caller may not read, is left out.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "transport.h"

static bool read_text(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while (done < size - 1 && (n = read(fd, buf + done, size - 1 - done)) > 0)
		done += n;
	close(fd);
	while (done && buf[done - 1] == '\n')
		done--;
	buf[done] = 0;
	return true;
}

static void add_text(cJSON *to, const char *key, int dir, const char *name)
{
	char buf[4096];

	if (read_text(dir, name, buf, sizeof(buf)))
		cJSON_AddStringToObject(to, key, buf);
}

/* "hpf [other]": the choice among several. */
static void add_choice(cJSON *to, const char *key, int dir, const char *name)
{
	char buf[256], *open, *close;

	if (!read_text(dir, name, buf, sizeof(buf)))
		return;
	open = strchr(buf, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close) {
		*close = 0;
		cJSON_AddStringToObject(to, key, open + 1);
	} else {
		cJSON_AddStringToObject(to, key, buf);
	}
}

static void add_pids(cJSON *to, int dir)
{
	char buf[65536], *line, *save = NULL;
	cJSON *pids;

	if (!read_text(dir, "procs", buf, sizeof(buf)))
		return;
	pids = cJSON_AddArrayToObject(to, "procs");
	for (line = strtok_r(buf, "\n ", &save); line && pids; line = strtok_r(NULL, "\n ", &save))
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(strtod(line, NULL)));
}

static void add_number(cJSON *to, const char *key, int dir, const char *name)
{
	char buf[64];

	if (read_text(dir, name, buf, sizeof(buf)))
		cJSON_AddNumberToObject(to, key, strtod(buf, NULL));
}

/* Lines of "key value". */
static void add_flat(cJSON *to, char *text)
{
	char *line, *save = NULL;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strchr(line, ' '), *end;
		double v;

		if (!space)
			continue;
		*space++ = 0;
		v = strtod(space, &end);
		if (end != space && !*end)
			cJSON_AddNumberToObject(to, line, v);
		else
			cJSON_AddStringToObject(to, line, space);
	}
}

static void add_stat(cJSON *to, const char *key, int dir, const char *name)
{
	char buf[4096];
	cJSON *stat;

	if (!read_text(dir, name, buf, sizeof(buf)))
		return;
	stat = cJSON_AddObjectToObject(to, key);
	if (stat)
		add_flat(stat, buf);
}

/* Lines of "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". */
static void add_pressure(cJSON *group, int dir)
{
	char buf[512], *line, *word, *rest, *save = NULL;
	cJSON *pressure, *kind;

	if (!read_text(dir, "gpu.pressure", buf, sizeof(buf)))
		return;
	pressure = cJSON_AddObjectToObject(group, "gpu.pressure");
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		word = strtok_r(line, " ", &rest);
		kind = word ? cJSON_AddObjectToObject(pressure, word) : NULL;
		while (kind && (word = strtok_r(NULL, " ", &rest))) {
			char *value = strchr(word, '=');

			if (!value)
				continue;
			*value++ = 0;
			cJSON_AddNumberToObject(kind, word, strtod(value, NULL));
		}
	}
}

/* Sorted names of the directories in @dir; NULL-terminated, caller frees each and the list. */
static char **subdirs(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0, room = 16, i;
	struct dirent *e;
	char **list;
	DIR *d;

	if (copy < 0)
		return NULL;
	d = fdopendir(copy);
	if (!d) {
		close(copy);
		return NULL;
	}
	list = malloc(room * sizeof(*list));
	if (!list) {
		closedir(d);
		return NULL;
	}
	while ((e = readdir(d))) {
		struct stat st;
		char *name;

		if (e->d_name[0] == '.' || fstatat(dir, e->d_name, &st, 0) || !S_ISDIR(st.st_mode))
			continue;
		if (n + 1 == room) {
			char **more = realloc(list, 2 * room * sizeof(*list));

			if (!more)
				break;
			list = more;
			room *= 2;
		}
		name = strdup(e->d_name);
		if (!name)
			break;
		for (i = n++; i && strcmp(list[i - 1], name) > 0; i--)
			list[i] = list[i - 1];
		list[i] = name;
	}
	closedir(d);
	list[n] = NULL;
	return list;
}

static void free_list(char **list)
{
	char **p;

	for (p = list; p && *p; p++)
		free(*p);
	free(list);
}

static int open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void add_groups(cJSON *groups, int dir, const char *path, unsigned int depth)
{
	static const char *const texts[] = {
		"capsm.max", "capsm.min", "capsm.reserve", "gpu.weight", "gpu.priority", "gpu.band",
		"gpu.latency_target_us", "cgroup", "capsm.current", "capsm.plan", "memory.max",
		"memory.current", "memory.peak",
	};
	cJSON *group = cJSON_CreateObject();
	char **names, **p, below[PATH_MAX];
	size_t i;

	if (!group)
		return;
	cJSON_AddStringToObject(group, "path", path);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		add_text(group, texts[i], dir, texts[i]);
	add_stat(group, "gpu.stat", dir, "gpu.stat");
	add_stat(group, "gpu.events", dir, "gpu.events");
	add_stat(group, "gpu.preemption", dir, "gpu.preemption");
	add_pressure(group, dir);
	add_pids(group, dir);
	cJSON_AddItemToArray(groups, group);
	if (depth > 32)
		return;
	names = subdirs(dir);
	for (p = names; p && *p; p++) {
		int fd = open_dir(dir, *p);

		if (fd < 0)
			continue;
		if (snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "",
			     *p) < (int)sizeof(below))
			add_groups(groups, fd, below, depth + 1);
		close(fd);
	}
	free_list(names);
}

/* What the module reports to a client about its band; "name" is the band's. */
static void add_client_band(cJSON *client, int dir)
{
	static const char *const numbers[] = { "passed", "held_ns", "paced_ns" };
	char buf[4096], *rest;
	const cJSON *flag;
	size_t i;

	if (read_text(dir, "band", buf, sizeof(buf)) && !strncmp(buf, "name ", 5)) {
		rest = buf + 5;
		cJSON_AddStringToObject(client, "band", strsep(&rest, "\n"));
		if (rest)
			add_flat(client, rest);
		flag = cJSON_GetObjectItem(client, "block_end");
		if (flag)
			cJSON_ReplaceItemInObject(client, "block_end",
						  cJSON_CreateBool(flag->valuedouble != 0));
	}
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		add_number(client, numbers[i], dir, numbers[i]);
}

/* The connection's number, which tells those of a process apart, and what memory it holds */
static void add_usage(cJSON *client, int dir)
{
	char buf[4096];
	const char *at;

	if (!read_text(dir, "usage", buf, sizeof(buf)) || strncmp(buf, "id ", 3))
		return;
	cJSON_AddNumberToObject(client, "id", strtod(buf + 3, NULL));
	at = strstr(buf, "\nmemory ");
	if (at)
		cJSON_AddNumberToObject(client, "memory", strtod(at + 8, NULL));
}

static void add_client(cJSON *clients, int dir, const char *pid)
{
	cJSON *client = cJSON_CreateObject(), *managed;
	char buf[4096];

	if (!client)
		return;
	/* another user's client: only its owner and root may read the files */
	if (faccessat(dir, "comm", R_OK, AT_EACCESS)) {
		cJSON_Delete(client);
		return;
	}
	add_usage(client, dir);
	cJSON_AddNumberToObject(client, "pid", strtod(pid, NULL));
	add_text(client, "comm", dir, "comm");
	/* the root group is "" everywhere except in the module's files */
	if (read_text(dir, "group", buf, sizeof(buf)))
		cJSON_AddStringToObject(client, "group", strcmp(buf, "/") ? buf : "");
	add_client_band(client, dir);
	add_text(client, "capsm.max", dir, "capsm.max");
	add_text(client, "gpu.weight", dir, "gpu.weight");
	add_text(client, "gpu.priority", dir, "gpu.priority");
	add_text(client, "lease", dir, "lease");
	add_stat(client, "preemption", dir, "preemption");
	managed = cJSON_AddObjectToObject(client, "managed");
	if (managed && read_text(dir, "managed", buf, sizeof(buf)))
		add_flat(managed, buf);
	add_number(client, "unmanaged", dir, "unmanaged");
	add_number(client, "resumable", dir, "resumable");
	add_number(client, "wings", dir, "wings");
	add_text(client, "why", dir, "why");
	cJSON_AddArrayToObject(client, "slots");
	cJSON_AddItemToArray(clients, client);
}

static void add_device(cJSON *devices, int config, const char *sysfs, const char *name)
{
	cJSON *device = cJSON_CreateObject(), *groups, *clients;
	char path[PATH_MAX], **pids, **p;
	int dir, tasks, fd;

	if (!device)
		return;
	cJSON_AddItemToArray(devices, device);
	cJSON_AddStringToObject(device, "name", name);
	snprintf(path, sizeof(path), "%s/%s", sysfs, name);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		add_text(device, "uuid", dir, "uuid");
		add_number(device, "sms", dir, "sms");
		add_text(device, "mode", dir, "mode_current");
		add_choice(device, "policy", dir, "policy");
		add_text(device, "policy_fault", dir, "policy_fault");
		add_text(device, "planned", dir, "plan");
		add_number(device, "switch_us", dir, "switch_us");
		add_number(device, "max_overhead", dir, "max_overhead");
		add_number(device, "max_slowdown", dir, "max_slowdown");
	}
	groups = cJSON_AddArrayToObject(device, "groups");
	fd = open_dir(config, name);
	if (fd >= 0) {
		if (groups)
			add_groups(groups, fd, "", 0);
		close(fd);
	}
	clients = cJSON_AddArrayToObject(device, "clients");
	if (dir < 0)
		return;
	tasks = open_dir(dir, "tasks");
	pids = tasks >= 0 ? subdirs(tasks) : NULL;
	for (p = pids; p && *p && clients; p++) {
		fd = open_dir(tasks, *p);
		if (fd < 0)
			continue;
		add_client(clients, fd, *p);
		close(fd);
	}
	free_list(pids);
	if (tasks >= 0)
		close(tasks);
	close(dir);
}

char *gsched_files_status(const char *configfs, const char *sysfs)
{
	int config = open(configfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cJSON *root, *devices;
	char **names, **p, *text;

	if (config < 0)
		return NULL;
	root = cJSON_CreateObject();
	if (!root) {
		close(config);
		errno = ENOMEM;
		return NULL;
	}
	cJSON_AddStringToObject(root, "backend", "module");
	devices = cJSON_AddArrayToObject(root, "devices");
	names = subdirs(config);
	for (p = names; p && *p && devices; p++)
		add_device(devices, config, sysfs, *p);
	free_list(names);
	text = cJSON_Print(root);
	cJSON_Delete(root);
	close(config);
	if (!text)
		errno = ENOMEM;
	return text;
}
