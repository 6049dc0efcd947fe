// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl simulate: reads one case of a scenario from JSON. Quotas and parameters are strings as
 * a user writes them, and are checked by the core's own parsers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl_files.h"
#include "sim_json.h"

#define TIME_MAX_US	1e9
#define COPIES_MAX	256

/* On an H200: from storing a window until workers act on it; a launch (docs/measurements) */
#define EVICT_US	10
#define LAUNCH_US	5

static uint64_t ns_of(double us)
{
	return (uint64_t)llround(us * 1000);
}

static void *array_of(struct sim_reader *r, size_t n, size_t size)
{
	void *array = calloc(n ? n : 1, size);

	if (!array)
		sim_refuse(r, "", "out of memory");
	return array;
}

/* ---- device ---- */

static bool read_device(struct sim_reader *r, struct sim_scenario *s, const cJSON *o)
{
	double evict = EVICT_US, launch = LAUNCH_US, switched = GSC_SWITCH_US_DEFAULT;
	uint64_t sms = 0;
	const struct sim_key keys[] = {
		{ "sms", SIM_WHOLE, &sms, "the number of SMs", true, 1, GSCHED_SMS_MAX },
		{ "mps", SIM_FLAG, &s->mps, "true or false: whether programs share the GPU by MPS",
		  false, 0, 0 },
		{ "evict_us", SIM_NUMBER, &evict, "how long until workers see a smaller window",
		  false, 0, 1e6 },
		{ "launch_us", SIM_NUMBER, &launch, "how long until what is launched starts", false,
		  0, 1e6 },
		{ "switch_us", SIM_NUMBER, &switched,
		  "how long a switch between programs takes without MPS", false, 0, 1e6 },
		{ "overhead", SIM_NUMBER, &s->overhead,
		  "how much longer a block-task takes in the preemptible form, as a part of 1",
		  false, 0, 10 },
		{ 0 },
	};

	s->mps = true;
	if (!sim_read_object(r, o, "device", keys))
		return false;
	s->sms = (uint32_t)sms;
	s->evict = ns_of(evict);
	s->launch = ns_of(launch);
	s->switched = ns_of(switched);
	return true;
}

/* ---- kernels ---- */

static uint64_t rounds_of(const struct sim_scenario *s, uint64_t blocks, uint64_t per_sm)
{
	uint64_t at_once = s->sms * per_sm;

	return (blocks + at_once - 1) / at_once;
}

static bool read_class(struct sim_reader *r, const char *path, const char *text,
		       struct sim_kernel *k)
{
	static const char *const names[] = { "L_C", "M_C", "H_C", "M_M", "H_M" };
	char at[SIM_PATH_SIZE];

	if (!text)
		return true;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i]))
			k->intensity = i + 1;
	sim_path(at, path, "class");
	return k->intensity ||
	       sim_refuse(r, at, "\"%.60s\" is no class; write L_C, M_C, H_C, M_M or H_M", text);
}

static bool read_kernel(struct sim_reader *r, const struct sim_scenario *s, const cJSON *o,
			struct sim_kernel *k)
{
	const char *tier = "block", *class = NULL;
	double block_us = 0, alone_us = 0;
	uint64_t blocks = 0, per_sm = 0, rounds;
	char path[SIM_PATH_SIZE], at[SIM_PATH_SIZE];
	const struct sim_key keys[] = {
		{ "per_sm", SIM_WHOLE, &per_sm, "how many blocks an SM hosts", true, 1,
		  GSC_BLOCKS_PER_SM_MAX },
		{ "blocks", SIM_WHOLE, &blocks, "the number of blocks", false, 1, 1e9 },
		{ "block_us", SIM_NUMBER, &block_us, "the time of a block", false, 0.001,
		  TIME_MAX_US },
		{ "alone_us", SIM_NUMBER, &alone_us, "the kernel's time with the device for itself",
		  false, 0.001, TIME_MAX_US },
		{ "tier", SIM_TEXT, &tier, "block (preemptible) or launch", false, 0, 0 },
		{ "class", SIM_TEXT, &class, "L_C, M_C, H_C, M_M or H_M", false, 0, 0 },
		{ 0 },
	};

	sim_path(path, "kernels", o->string);
	if (!sim_read_object(r, o, path, keys))
		return false;
	if (!blocks + !block_us + !alone_us != 1)
		return sim_refuse(r, path,
				  "write two of blocks, block_us and alone_us: the third follows");
	if (!read_class(r, path, class, k))
		return false;
	k->name = o->string;
	k->per_sm = (uint32_t)per_sm;
	k->opaque = !strcmp(tier, "launch");
	if (!k->opaque && strcmp(tier, "block")) {
		sim_path(at, path, "tier");
		return sim_refuse(r, at,
				  "\"%.60s\" is no tier; write block (preemptible) or launch",
				  tier);
	}
	if (!blocks) {
		rounds = (uint64_t)fmax(1, round(alone_us / block_us));
		blocks = rounds * s->sms * per_sm;
	}
	if (alone_us)
		block_us = alone_us / (double)rounds_of(s, blocks, per_sm);
	k->blocks = blocks;
	k->block_ns = ns_of(block_us);
	if (!k->block_ns)
		return sim_refuse(
			r, path,
			"its blocks take less than a nanosecond; write fewer blocks or "
			"a longer time");
	return true;
}

static bool read_kernels(struct sim_reader *r, struct sim_scenario *s, const cJSON *list)
{
	const cJSON *o;

	s->kernels = array_of(r, cJSON_GetArraySize(list), sizeof(*s->kernels));
	cJSON_ArrayForEach(o, list)
		if (!s->kernels || !read_kernel(r, s, o, &s->kernels[s->n_kernels++]))
			return false;
	return true;
}

static const struct sim_kernel *find_kernel(const struct sim_scenario *s, const char *name)
{
	for (size_t i = 0; i < s->n_kernels; i++)
		if (!strcmp(s->kernels[i].name, name))
			return &s->kernels[i];
	return NULL;
}

/* ---- groups ---- */

static int find_group(const struct sim_scenario *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n_groups; i++)
		if (strlen(s->groups[i].name) == len && !strncmp(s->groups[i].name, name, len))
			return (int)i;
	return -1;
}

static bool read_file(struct sim_reader *r, struct gsc_group *scratch, const char *path,
		      const cJSON *file)
{
	const struct ctl_file *known = ctl_file_find(ctl_group_files, file->string);
	char at[SIM_PATH_SIZE];
	int nr = gsc_file_find(file->string);

	sim_path(at, path, file->string);
	/* memory is not simulated */
	if (nr < 0 || !gsc_file_writable(nr) || nr == GSC_FILE_MEMORY_MAX)
		return sim_refuse(
			r, at,
			"no such file; a simulated group has capsm.max, capsm.min, capsm.reserve, "
			"gpu.weight, gpu.priority, gpu.band and gpu.latency_target_us");
	if (!cJSON_IsString(file))
		return sim_refuse(r, at, "write a text in quotes, as it is written to the file: %s",
				  known && known->takes ? known->takes : "");
	if (gsc_group_store(scratch, nr, file->valuestring, 0))
		return sim_refuse(r, at, "\"%.60s\" is refused; %s", file->valuestring,
				  known && known->takes ? known->takes : "");
	return true;
}

static bool read_group(struct sim_reader *r, struct sim_scenario *s, const cJSON *o,
		       struct gsc_group *scratch)
{
	struct sim_group *g = &s->groups[s->n_groups];
	const char *name = o->string, *slash = strrchr(name, '/');
	char path[SIM_PATH_SIZE];
	const cJSON *file;

	sim_path(path, "groups", *name ? name : "\"\"");
	g->name = name;
	g->files = o;
	g->parent = -1;
	if (!cJSON_IsObject(o))
		return sim_refuse(
			r, path,
			"write an object of files and their texts, such as {\"capsm.max\": \"4\"}");
	if (strcmp(name, "/")) {
		if (!*name || *name == '/' || name[strlen(name) - 1] == '/' || strstr(name, "//"))
			return sim_refuse(
				r, path,
				"this is no name of a group; write a, a/b for b below a, or / for "
				"the root group");
		if (slash)
			g->parent = find_group(s, name, slash - name);
		if (slash && g->parent < 0)
			return sim_refuse(r, path,
					  "there is no group above it; write one in front of it");
	}
	if (find_group(s, name, strlen(name)) >= 0)
		return sim_refuse(r, path, "the group is there twice; leave one out");
	cJSON_ArrayForEach(file, o)
		if (!read_file(r, scratch, path, file))
			return false;
	s->n_groups++;
	return true;
}

static bool read_groups(struct sim_reader *r, struct sim_scenario *s, const cJSON *list)
{
	static const struct gsc_ops no_ops;
	struct gsc_device *device = array_of(r, 1, sizeof(*device));
	struct gsc_group *group = array_of(r, 1, sizeof(*group));
	bool good = device && group && !gsc_device_init(device, &no_ops, s->sms) &&
		    !gsc_group_init(group, &device->root);
	const cJSON *o;

	s->groups = array_of(r, cJSON_GetArraySize(list), sizeof(*s->groups));
	good = good && s->groups;
	cJSON_ArrayForEach(o, list)
		good = good && read_group(r, s, o, group);
	free(group);
	free(device);
	return good;
}

/* ---- clients ---- */

static bool read_client_kernels(struct sim_reader *r, const struct sim_scenario *s,
				const cJSON *list, const char *path, struct sim_client *c)
{
	char at[SIM_PATH_SIZE];
	const cJSON *name;

	c->n_kernels = cJSON_GetArraySize(list);
	c->kernels = array_of(r, c->n_kernels, sizeof(*c->kernels));
	if (!c->n_kernels)
		return sim_refuse(
			r, path,
			"the list is empty; write names of kernels, which are launched in turn");
	for (size_t i = 0; i < c->n_kernels && c->kernels; i++) {
		name = cJSON_GetArrayItem(list, (int)i);
		sim_path_at(at, path, i);
		if (!cJSON_IsString(name))
			return sim_refuse(r, at, "write the name of a kernel");
		c->kernels[i] = find_kernel(s, name->valuestring);
		if (!c->kernels[i])
			return sim_refuse(r, at,
					  "no kernel is named \"%.60s\"; describe it in kernels",
					  name->valuestring);
	}
	return c->kernels;
}

/* One of gap_us, period_us and poisson_us, which are negative if they are absent. */
static bool read_pace(struct sim_reader *r, const char *path, double gap, double period,
		      double poisson, struct sim_client *c)
{
	if ((gap >= 0) + (period >= 0) + (poisson >= 0) > 1)
		return sim_refuse(r, path,
				  "write one of gap_us (closed loop), period_us and poisson_us");
	if (c->in_flight > 1 && (period >= 0 || poisson >= 0))
		return sim_refuse(
			r, path,
			"in_flight is for closed loops; leave it out, or period_us and poisson_us");
	c->pace = period >= 0 ? SIM_PERIOD : poisson >= 0 ? SIM_POISSON : SIM_CLOSED;
	c->interval = ns_of(period >= 0 ? period : poisson >= 0 ? poisson : gap >= 0 ? gap : 0);
	return true;
}

static bool is_client(const struct sim_scenario *s, const char *name)
{
	for (size_t i = 0; i < s->n_clients; i++)
		if (s->clients[i].base && !strcmp(s->clients[i].base, name))
			return true;
	return false;
}

static bool read_client(struct sim_reader *r, struct sim_scenario *s, const cJSON *o, size_t index)
{
	double start = 0, gap = -1, period = -1, poisson = -1;
	struct sim_client c = {
		.base = "", .group = -1, .predicted = 1, .count = UINT64_MAX, .in_flight = 1
	};
	char path[SIM_PATH_SIZE], at[SIM_PATH_SIZE];
	const cJSON *kernels = NULL;
	const char *group = "/";
	uint64_t copies = 0;
	const struct sim_key keys[] = {
		{ "name", SIM_TEXT, &c.base, "a name", true, 0, 0 },
		{ "copies", SIM_WHOLE, &copies, "how many such programs there are", false, 1,
		  COPIES_MAX },
		{ "group", SIM_TEXT, &group, "the name of a group", false, 0, 0 },
		{ "own_group", SIM_FLAG, &c.own_group,
		  "true for a group of its own below that one, which each copy gets", false, 0, 0 },
		{ "kernels", SIM_ARRAY, &kernels,
		  "a list of names of kernels, which are launched in turn", true, 0, 0 },
		{ "start_us", SIM_NUMBER, &start, "when it begins", false, 0, TIME_MAX_US },
		{ "count", SIM_WHOLE, &c.count, "how many launches", false, 1, SIM_LAUNCHES_MAX },
		{ "gap_us", SIM_NUMBER, &gap, "the time from an end to the next launch", false, 0,
		  TIME_MAX_US },
		{ "in_flight", SIM_WHOLE, &c.in_flight,
		  "how many launches a closed loop has at once", false, 1, GSCHED_SLOTS },
		{ "period_us", SIM_NUMBER, &period, "the time from launch to launch", false, 0.001,
		  TIME_MAX_US },
		{ "poisson_us", SIM_NUMBER, &poisson, "the mean time from launch to launch", false,
		  0.001, TIME_MAX_US },
		{ "seed", SIM_WHOLE, &c.seed, "a number that the arrivals are drawn from", false, 0,
		  9e15 },
		{ "predicted", SIM_NUMBER, &c.predicted,
		  "what is predicted as a factor of the true time, 0 for nothing", false, 0, 1000 },
		{ 0 },
	};

	sim_path_at(path, "clients", index);
	if (!sim_read_object(r, o, path, keys) || !read_pace(r, path, gap, period, poisson, &c))
		return false;
	sim_path(at, path, "name");
	if (!*c.base)
		return sim_refuse(r, at, "the name is empty; write one");
	if (is_client(s, c.base))
		return sim_refuse(r, at, "another client is named \"%.60s\", too; choose "
				  "another name, or write copies", c.base);
	c.start = ns_of(start);
	if (strcmp(group, "/")) {
		c.group = find_group(s, group, strlen(group));
		sim_path(at, path, "group");
		if (c.group < 0)
			return sim_refuse(r, at,
					  "no group is named \"%.60s\"; describe it in groups",
					  group);
	}
	sim_path(at, path, "count");
	if (c.count == UINT64_MAX && !s->duration)
		return sim_refuse(
			r, at,
			"the key is missing; write how many launches, or duration_us "
			"of the scenario");
	if (c.pace != SIM_CLOSED && s->duration && s->duration / c.interval > SIM_LAUNCHES_MAX)
		return sim_refuse(
			r, path,
			"these are more than %d launches; write a longer time between them or a "
			"shorter duration_us", SIM_LAUNCHES_MAX);
	for (uint64_t i = 0; i < (copies ? copies : 1); i++) {
		sim_path(at, path, "kernels");
		c.copy = copies ? (uint32_t)i + 1 : 0;
		s->clients[s->n_clients] = c;
		s->clients[s->n_clients].seed += i;
		if (!read_client_kernels(r, s, kernels, at, &s->clients[s->n_clients++]))
			return false;
	}
	return true;
}

static bool read_clients(struct sim_reader *r, struct sim_scenario *s, const cJSON *list)
{
	size_t i = 0;
	const cJSON *o;

	if (!cJSON_GetArraySize(list))
		return sim_refuse(r, "clients", "the list is empty; write a client");
	s->clients = array_of(r, COPIES_MAX * (size_t)cJSON_GetArraySize(list),
			      sizeof(*s->clients));
	cJSON_ArrayForEach(o, list)
		if (!s->clients || !read_client(r, s, o, i++))
			return false;
	return true;
}

/* ---- runs ---- */

static bool is_policy(const char *name)
{
	/* chaos is for testing programs */
	return !strcmp(name, SIM_BASELINE) || !strcmp(name, SIM_TIME_SLICING) ||
	       !strcmp(name, SIM_QOS) ||
	       (strcmp(name, "chaos") && strcmp(name, "plan") && gsc_policy_find(name));
}

static bool read_mode(struct sim_reader *r, const char *path, const char *text,
		      struct sim_policy *run)
{
	char at[SIM_PATH_SIZE];

	sim_path(at, path, "mode");
	if (!strcmp(text, "auto"))
		run->mode = -1;
	else if (!strcmp(text, "temporal"))
		run->mode = GSCHED_MODE_TEMPORAL;
	else if (!strcmp(text, "spatial"))
		run->mode = GSCHED_MODE_SPATIAL;
	else
		return sim_refuse(r, at, "\"%.60s\" is no mode; write auto, spatial or temporal",
				  text);
	return true;
}

static bool read_params(struct sim_reader *r, const struct sim_scenario *s, const char *path,
			const struct sim_policy *run)
{
	static const struct gsc_ops no_ops;
	struct gsc_device *device = array_of(r, 1, sizeof(*device));
	const struct ctl_file *known;
	char at[SIM_PATH_SIZE];

	if (!device || gsc_device_init(device, &no_ops, s->sms)) {
		free(device);
		return false;
	}
	for (int i = 0; i < GSC_PARAM_COUNT && !r->failed; i++) {
		sim_path(at, path, gsc_param_name[i]);
		known = ctl_file_find(ctl_device_files, gsc_param_name[i]);
		if (run->param[i] && gsc_device_set_param(device, i, run->param[i], 0))
			sim_refuse(r, at, "\"%.60s\" is refused; %s", run->param[i],
				   known && known->takes ? known->takes : "");
	}
	free(device);
	return !r->failed;
}

static bool read_run(struct sim_reader *r, struct sim_scenario *s, const cJSON *o, size_t index)
{
	const char *mode = "auto",
		   *takes = "a text in quotes, as it is written to the device's file";
	struct sim_policy *run = &s->runs[index];
	char path[SIM_PATH_SIZE], at[SIM_PATH_SIZE];
	const struct sim_key keys[] = {
		{ "policy", SIM_TEXT, &run->policy,
		  "hpf, srt, ffs, wfq, corun, qos, mps or time-slicing", true, 0, 0 },
		{ "plan", SIM_TEXT, &run->plan, "a text in quotes, such as 60000 web=4 train=8",
		  false, 0, 0 },
		{ "name", SIM_TEXT, &run->name, "a name of the run", false, 0, 0 },
		{ "mode", SIM_TEXT, &mode, "auto, spatial or temporal", false, 0, 0 },
		{ gsc_param_name[GSC_PARAM_SWITCH_US], SIM_TEXT, &run->param[GSC_PARAM_SWITCH_US],
		  takes, false, 0, 0 },
		{ gsc_param_name[GSC_PARAM_MAX_OVERHEAD], SIM_TEXT,
		  &run->param[GSC_PARAM_MAX_OVERHEAD], takes, false, 0, 0 },
		{ gsc_param_name[GSC_PARAM_MAX_SLOWDOWN], SIM_TEXT,
		  &run->param[GSC_PARAM_MAX_SLOWDOWN], takes, false, 0, 0 },
		{ 0 },
	};

	sim_path_at(path, "runs", index);
	if (!sim_read_object(r, o, path, keys) || !read_mode(r, path, mode, run) ||
	    !read_params(r, s, path, run))
		return false;
	if (!is_policy(run->policy)) {
		sim_path(at, path, "policy");
		return sim_refuse(
			r, at,
			"\"%.60s\" is no policy; write hpf, srt, ffs, wfq, corun or qos, or mps or "
			"time-slicing for the GPU without gsched", run->policy);
	}
	if (!run->name)
		run->name = run->policy;
	for (size_t i = 0; i < index; i++)
		if (!strcmp(s->runs[i].name, run->name))
			return sim_refuse(r, path,
					  "another run is named \"%.60s\", too; write another name",
					  run->name);
	return true;
}

static bool read_runs(struct sim_reader *r, struct sim_scenario *s, const cJSON *list)
{
	const cJSON *o;

	if (!cJSON_GetArraySize(list))
		return sim_refuse(r, "runs",
				  "the list is empty; write a run, such as {\"policy\": \"hpf\"}");
	s->runs = array_of(r, cJSON_GetArraySize(list), sizeof(*s->runs));
	cJSON_ArrayForEach(o, list)
		if (!s->runs || !read_run(r, s, o, s->n_runs++))
			return false;
	return true;
}

/* ---- all of it ---- */

int sim_read(struct sim_scenario *s, const char *file, cJSON *tree, char error[SIM_ERROR_SIZE])
{
	const cJSON *device = NULL, *kernels = NULL, *groups = NULL, *clients = NULL, *runs = NULL,
		    *cases = NULL, *checked = NULL;
	struct sim_reader r = { .file = file, .error = error };
	double duration = 0;
	const struct sim_key keys[] = {
		{ "about", SIM_TEXT, &s->about, "what the scenario shows", false, 0, 0 },
		{ "device", SIM_OBJECT, &device, "the device, such as {\"sms\": 132}", true, 0, 0 },
		{ "kernels", SIM_OBJECT, &kernels, "an object of kernels by name", true, 0, 0 },
		{ "groups", SIM_OBJECT, &groups, "an object of groups by name", false, 0, 0 },
		{ "clients", SIM_ARRAY, &clients, "a list of clients", true, 0, 0 },
		{ "runs", SIM_ARRAY, &runs, "a list of runs, such as [{\"policy\": \"hpf\"}]", true,
		  0, 0 },
		{ "duration_us", SIM_NUMBER, &duration, "how long a run takes", false, 1,
		  TIME_MAX_US },
		{ "cases", SIM_ANY, &cases, "variables, and the values that they take", false, 0,
		  0 },
		{ "expect", SIM_ARRAY, &checked, "a list of what is expected", false, 0, 0 },
		{ 0 },
	};

	memset(s, 0, sizeof(*s));
	s->tree = tree;
	if (!sim_read_object(&r, tree, "", keys))
		return -1;
	s->duration = ns_of(duration);
	return read_device(&r, s, device) && read_kernels(&r, s, kernels) &&
			       read_groups(&r, s, groups) && read_clients(&r, s, clients) &&
			       read_runs(&r, s, runs) ?
		       0 :
		       -1;
}

void sim_free(struct sim_scenario *s)
{
	for (size_t i = 0; i < s->n_clients; i++)
		free(s->clients[i].kernels);
	free(s->clients);
	free(s->kernels);
	free(s->groups);
	free(s->runs);
	cJSON_Delete(s->tree);
	memset(s, 0, sizeof(*s));
}
