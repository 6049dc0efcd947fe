// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: the expectations of a scenario. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim_json.h"

static const struct {
	const char *name;
	size_t offset;
	bool count;			/* a uint64_t, not a double */
} client_values[] = {
	{ "launches", offsetof(struct sim_client_result, launches), true },
	{ "mean_us", offsetof(struct sim_client_result, mean_us), false },
	{ "p50_us", offsetof(struct sim_client_result, p50_us), false },
	{ "p99_us", offsetof(struct sim_client_result, p99_us), false },
	{ "share", offsetof(struct sim_client_result, share), false },
	{ "evictions", offsetof(struct sim_client_result, evictions), true },
	{ "ntt", offsetof(struct sim_client_result, ntt), false },
	{ NULL, 0, false },
}, device_values[] = {
	{ "antt", offsetof(struct sim_result, antt), false },
	{ "stp", offsetof(struct sim_result, stp), false },
	{ "utilisation", offsetof(struct sim_result, utilisation), false },
	{ "makespan_us", offsetof(struct sim_result, makespan_us), false },
	{ "decisions", offsetof(struct sim_result, decisions), true },
	{ NULL, 0, false },
};

#define CLIENT_VALUES	"launches, mean_us, p50_us, p99_us, share, evictions or ntt"
#define DEVICE_VALUES	"antt, stp, utilisation, makespan_us or decisions"

static double value_at(const void *object, size_t offset, bool count)
{
	uint64_t whole;
	double value;

	memcpy(&whole, (const char *)object + offset, sizeof(whole));
	memcpy(&value, (const char *)object + offset, sizeof(value));
	return count ? (double)whole : value;
}

static double client_value(const struct sim_client_result *c, const char *name)
{
	for (size_t i = 0; client_values[i].name; i++)
		if (!strcmp(client_values[i].name, name))
			return value_at(c, client_values[i].offset, client_values[i].count);
	return NAN;
}

static double device_value(const struct sim_result *r, const char *name)
{
	for (size_t i = 0; device_values[i].name; i++)
		if (!strcmp(device_values[i].name, name))
			return value_at(r, device_values[i].offset, device_values[i].count);
	return NAN;
}

/* The mean over all copies of a client. */
static double value_in(const struct sim_check *check, const struct sim_scenario *s,
		       const struct sim_result *r)
{
	double sum = 0;
	size_t n = 0;

	if (!check->client)
		return device_value(r, check->value);
	for (size_t i = 0; i < s->n_clients; i++)
		if (!strcmp(s->clients[i].base, check->client)) {
			sum += client_value(&r->clients[i], check->value);
			n++;
		}
	return n ? sum / (double)n : NAN;
}

static size_t run_index(const struct sim_scenario *s, const char *name)
{
	size_t i = 0;

	while (i < s->n_runs && strcmp(s->runs[i].name, name))
		i++;
	return i;
}

/* @results: of one case. */
static double value_of_case(const struct sim_check *check, const struct sim_scenario *s,
			    const struct sim_result *results)
{
	double value = value_in(check, s, &results[run_index(s, check->run)]), other;

	if (!check->other)
		return value;
	other = value_in(check, s, &results[run_index(s, check->other)]);
	return check->speedup ? other / value : value / other;
}

static bool is_about(const struct sim_check *check, const cJSON *variables)
{
	const cJSON *v;

	cJSON_ArrayForEach(v, check->only)
		if (!cJSON_Compare(v, cJSON_GetObjectItemCaseSensitive(variables, v->string), true))
			return false;
	return true;
}

double sim_check_value(const struct sim_check *check, const struct sim_scenario *scenarios,
		       const struct sim_cases *cases, const struct sim_result *results)
{
	double sum = 0, least = INFINITY, most = -INFINITY, value;
	size_t n = 0;

	for (size_t i = 0; i < cases->n; i++) {
		if (!is_about(check, cases->variables[i]))
			continue;
		value = value_of_case(check, &scenarios[i], &results[i * scenarios[i].n_runs]);
		if (isnan(value))
			return NAN;
		sum += value;
		least = fmin(least, value);
		most = fmax(most, value);
		n++;
	}
	if (!strcmp(check->of, "min"))
		return least;
	return strcmp(check->of, "max") ? sum / (double)n : most;
}

bool sim_check_met(const struct sim_check *check, double value)
{
	return !isnan(value) && !(value < check->at_least) && !(value > check->at_most);
}

/* ---- reading ---- */

static bool is_client_value(const char *name)
{
	return !isnan(client_value(&(struct sim_client_result){ 0 }, name));
}

static bool is_device_value(const char *name)
{
	return !isnan(device_value(&(struct sim_result){ 0 }, name));
}

static bool check_names(struct sim_reader *r, const struct sim_scenario *s, const char *path,
			struct sim_check *c, const char *other, const char *key)
{
	char at[SIM_PATH_SIZE];
	bool found = !c->client;

	sim_path(at, path, "run");
	if (run_index(s, c->run) == s->n_runs)
		return sim_refuse(r, at, "no run is named \"%.60s\"; write one of runs", c->run);
	sim_path(at, path, key);
	if (other && run_index(s, other) == s->n_runs)
		return sim_refuse(r, at, "no run is named \"%.60s\"; write one of runs", other);
	for (size_t i = 0; i < s->n_clients; i++)
		found |= c->client && !strcmp(s->clients[i].base, c->client);
	sim_path(at, path, "client");
	if (!found)
		return sim_refuse(r, at, "no client is named \"%.60s\"; write one of clients",
				  c->client);
	sim_path(at, path, "value");
	if (c->client ? !is_client_value(c->value) : !is_device_value(c->value))
		return sim_refuse(r, at, "%s has no value \"%.60s\"; write %s",
				  c->client ? "a client" : "the device", c->value,
				  c->client ? CLIENT_VALUES : DEVICE_VALUES);
	sim_path(at, path, "of");
	if (strcmp(c->of, "mean") && strcmp(c->of, "min") && strcmp(c->of, "max"))
		return sim_refuse(r, at,
				  "\"%.60s\" of the cases cannot be had; write mean, min or max",
				  c->of);
	return true;
}

static void name_check(struct sim_check *c, size_t n_cases)
{
	char only[80] = "";

	if (c->only)
		sim_case_name(c->only, only, sizeof(only));
	snprintf(c->name, sizeof(c->name), "%s%s%s%.20s%s%.20s, %.20s%s%.20s%s%s",
		 n_cases > 1 ? c->of : "", n_cases > 1 ? " " : "",
		 !c->other ? "" : c->speedup ? "speed-up of " : "ratio of ", c->value,
		 c->client ? " of " : "", c->client ? c->client : "", c->run,
		 c->other ? " over " : "", c->other ? c->other : "", *only ? ", " : "", only);
}

/* The number of cases that it is about. */
static size_t count_cases(const struct sim_check *c, const struct sim_cases *cases)
{
	size_t n = 0;

	for (size_t i = 0; i < cases->n; i++)
		n += is_about(c, cases->variables[i]);
	return n;
}

static bool read_check(struct sim_reader *r, const struct sim_scenario *s,
		       const struct sim_cases *cases, const cJSON *o, size_t index,
		       struct sim_check *c)
{
	const char *relative = NULL, *speedup = NULL;
	char path[SIM_PATH_SIZE], at[SIM_PATH_SIZE];
	size_t n;
	const struct sim_key keys[] = {
		{ "value", SIM_TEXT, &c->value, "the name of a value", true, 0, 0 },
		{ "run", SIM_TEXT, &c->run, "the name of a run", false, 0, 0 },
		{ "client", SIM_TEXT, &c->client, "the name of a client", false, 0, 0 },
		{ "relative_to", SIM_TEXT, &relative, "the name of a run", false, 0, 0 },
		{ "speedup_over", SIM_TEXT, &speedup, "the name of a run", false, 0, 0 },
		{ "of", SIM_TEXT, &c->of, "mean, min or max of the cases", false, 0, 0 },
		{ "case", SIM_OBJECT, &c->only, "an object of variables and values", false, 0, 0 },
		{ "at_least", SIM_NUMBER, &c->at_least, "a number", false, -1e15, 1e15 },
		{ "at_most", SIM_NUMBER, &c->at_most, "a number", false, -1e15, 1e15 },
		{ "paper", SIM_NUMBER, &c->paper, "the published number", false, -1e15, 1e15 },
		{ "why", SIM_TEXT, &c->why, "a text", false, 0, 0 },
		{ 0 },
	};

	*c = (struct sim_check){ .of = "mean", .at_least = NAN, .at_most = NAN, .paper = NAN };
	sim_path_at(path, "expect", index);
	if (!sim_read_object(r, o, path, keys))
		return false;
	if (isnan(c->at_least) && isnan(c->at_most))
		return sim_refuse(r, path, "nothing is expected; write at_least, at_most or both");
	if (relative && speedup)
		return sim_refuse(r, path, "write one of relative_to and speedup_over");
	if (!c->run && s->n_runs > 1)
		return sim_refuse(r, path, "there are several runs; write the name of one as run");
	if (!c->run)
		c->run = s->runs[0].name;
	c->other = relative ? relative : speedup;
	c->speedup = speedup;
	if (!check_names(r, s, path, c, c->other, relative ? "relative_to" : "speedup_over"))
		return false;
	n = count_cases(c, cases);
	sim_path(at, path, "case");
	if (!n)
		return sim_refuse(r, at,
				  "there is no such case; write variables and values of cases");
	name_check(c, n);
	return true;
}

int sim_checks(const struct sim_scenario *s, const struct sim_cases *cases, const char *file,
	       struct sim_check **checks, size_t *n, char error[SIM_ERROR_SIZE])
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(cases->root, "expect"), *o;
	struct sim_reader r = { .file = file, .error = error };
	size_t i = 0;

	*n = cJSON_GetArraySize(list);
	*checks = calloc(*n ? *n : 1, sizeof(**checks));
	if (!*checks) {
		sim_refuse(&r, "", "out of memory");
		return -1;
	}
	cJSON_ArrayForEach(o, list) {
		if (!read_check(&r, s, cases, o, i, &(*checks)[i]))
			return -1;
		i++;
	}
	return 0;
}
