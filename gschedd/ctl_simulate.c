// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: what policies and quotas would do, without a GPU or an arbiter. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl_json.h"
#include "ctl_table.h"
#include "sim.h"

#define TEXT_MAX	(16 << 20)
#define OPTION_JSON	256

static const struct argp_option options[] = {
	{ "output", 'o', "table|json", 0, "How to print it (default: table)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "The same as --output=json", 0 },
	{ "quiet", 'q', NULL, 0, "Print only what was expected, and what came", 0 },
	{ 0 },
};

static bool quiet;

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct ctl *ctl = state->input;

	if (key == 'q') {
		quiet = true;
		return 0;
	}
	if (key != 'o' && key != OPTION_JSON)
		return ARGP_ERR_UNKNOWN;
	ctl->json = key == OPTION_JSON || !strcmp(arg, "json");
	if (!ctl->json && strcmp(arg, "table"))
		argp_error(state, "--output %s: it is table or json", arg);
	return 0;
}

const struct argp ctl_simulate_options = { .options = options, .parser = option };

/* A scenario file and its results: result[case * n_runs + run] */
struct simulation {
	const char *file;
	struct sim_cases cases;
	struct sim_scenario first;	/* the first case, for names */
	struct sim_scenario *scenarios;
	struct sim_result *results;
	struct sim_check *checks;
	double *values;			/* values of the checks */
	size_t n_checks;
};

/* The whole file; NULL after printing the error. */
static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *text = malloc(TEXT_MAX + 1);

	*size = f && text ? fread(text, 1, TEXT_MAX + 1, f) : 0;
	if (!f || !text || ferror(f)) {
		ctl_error("%s: %s", path, strerror(errno));
	} else if (*size > TEXT_MAX) {
		ctl_error("%s: more than %d bytes: this is no scenario", path, TEXT_MAX);
	} else {
		text[*size] = '\0';
		fclose(f);
		return text;
	}
	if (f)
		fclose(f);
	free(text);
	return NULL;
}

static int run_case(struct simulation *s, size_t i, char *error)
{
	struct sim_scenario *scenario = &s->scenarios[i];
	struct sim_samples *alone;
	int err;

	if (sim_read(scenario, s->file, sim_case_tree(&s->cases, i), error))
		return -1;
	alone = calloc(scenario->n_clients, sizeof(*alone));
	if (!alone) {
		snprintf(error, SIM_ERROR_SIZE, "out of memory");
		return -1;
	}
	err = sim_alone(scenario, s->file, alone, error);
	for (size_t run = 0; run < scenario->n_runs && !err; run++)
		err = sim_run(scenario, &scenario->runs[run], s->file, alone,
			      &s->results[i * scenario->n_runs + run], error);
	for (size_t k = 0; k < scenario->n_clients; k++)
		sim_samples_free(&alone[k]);
	free(alone);
	return err;
}

static int run_simulation(struct simulation *s, const char *text, size_t size, char *error)
{
	if (sim_cases(&s->cases, s->file, text, size, error) ||
	    sim_read(&s->first, s->file, sim_case_tree(&s->cases, 0), error) ||
	    sim_checks(&s->first, &s->cases, s->file, &s->checks, &s->n_checks, error))
		return -1;
	s->scenarios = calloc(s->cases.n, sizeof(*s->scenarios));
	s->results = calloc(s->cases.n * s->first.n_runs, sizeof(*s->results));
	s->values = calloc(s->n_checks ? s->n_checks : 1, sizeof(*s->values));
	if (!s->scenarios || !s->results || !s->values) {
		snprintf(error, SIM_ERROR_SIZE, "%s", "out of memory");
		return -1;
	}
	for (size_t i = 0; i < s->cases.n; i++)
		if (run_case(s, i, error))
			return -1;
	for (size_t i = 0; i < s->n_checks; i++)
		s->values[i] = sim_check_value(&s->checks[i], s->scenarios, &s->cases, s->results);
	return 0;
}

static void free_simulation(struct simulation *s)
{
	for (size_t i = 0; s->results && i < s->cases.n * s->first.n_runs; i++)
		sim_result_free(&s->results[i]);
	for (size_t i = 0; s->scenarios && i < s->cases.n; i++)
		sim_free(&s->scenarios[i]);
	free(s->scenarios);
	free(s->results);
	free(s->checks);
	free(s->values);
	sim_free(&s->first);
	sim_cases_free(&s->cases);
}

/* ---- as tables ---- */

static const char *num_text(char buf[32], const char *format, double value)
{
	if (isnan(value))
		return "-";
	snprintf(buf, 32, format, value);
	return buf;
}

static const char *client_name(const struct sim_client *c, char *buf, size_t size)
{
	if (!c->copy)
		return c->base;
	snprintf(buf, size, "%s.%u", c->base, c->copy);
	return buf;
}

static void add_clients(struct libscols_table *table, const char *name,
			const struct sim_scenario *s, size_t run, const struct sim_result *r)
{
	char cell[7][32], client[128];

	for (size_t i = 0; i < r->n_clients; i++) {
		const struct sim_client_result *c = &r->clients[i];

		ctl_row(table, name, s->runs[run].name,
			client_name(&s->clients[i], client, sizeof(client)),
			num_text(cell[0], "%.0f", (double)c->launches),
			num_text(cell[1], "%.1f", c->mean_us), num_text(cell[2], "%.1f", c->p50_us),
			num_text(cell[3], "%.1f", c->p99_us), num_text(cell[4], "%.3f", c->share),
			num_text(cell[5], "%.0f", (double)c->evictions),
			num_text(cell[6], "%.2f", c->ntt));
	}
}

static void add_device(struct libscols_table *table, const char *name, const struct sim_scenario *s,
		       size_t run, const struct sim_result *r)
{
	char cell[5][32];

	ctl_row(table, name, s->runs[run].name, num_text(cell[0], "%.2f", r->antt),
		num_text(cell[1], "%.2f", r->stp), num_text(cell[2], "%.3f", r->utilisation),
		num_text(cell[3], "%.1f", r->makespan_us),
		num_text(cell[4], "%.0f", (double)r->decisions));
}

/* Omits the column of cases if there is only one. */
static struct libscols_table *table_of(const struct simulation *s, const char *columns)
{
	struct libscols_table *table = ctl_table(columns);

	if (table && s->cases.n == 1)
		scols_column_set_flags(scols_table_get_column(table, 0), SCOLS_FL_HIDDEN);
	return table;
}

static void print_results(const struct simulation *s)
{
	struct libscols_table *clients, *devices;
	char name[200];

	clients = table_of(
		s, "CASE RUN CLIENT >LAUNCHES >MEAN_US >P50_US >P99_US >SHARE >EVICTIONS >NTT");
	devices = table_of(s, "CASE RUN >ANTT >STP >UTILISATION >MAKESPAN_US >DECISIONS");
	for (size_t i = 0; i < s->cases.n; i++) {
		sim_case_name(s->cases.variables[i], name, sizeof(name));
		for (size_t run = 0; run < s->first.n_runs; run++) {
			const struct sim_result *r = &s->results[i * s->first.n_runs + run];

			add_clients(clients, name, &s->scenarios[i], run, r);
			add_device(devices, name, &s->scenarios[i], run, r);
		}
	}
	ctl_table_print(clients, "");
	putchar('\n');
	ctl_table_print(devices, "");
}

static void print_checks(const struct simulation *s)
{
	struct libscols_table *table =
		ctl_table("EXPECTED >PAPER >SIMULATED >AT_LEAST >AT_MOST MET");
	char cell[4][32];

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct sim_check *c = &s->checks[i];

		ctl_row(table, c->name, num_text(cell[0], "%.4g", c->paper),
			num_text(cell[1], "%.4g", s->values[i]),
			num_text(cell[2], "%.4g", c->at_least),
			num_text(cell[3], "%.4g", c->at_most),
			sim_check_met(c, s->values[i]) ? "yes" : "no");
	}
	ctl_table_print(table, "");
}

static void print_tables(const struct simulation *s)
{
	ctl_put_safely(stdout, s->file);
	if (s->first.about) {
		fputs(": ", stdout);
		ctl_put_safely(stdout, s->first.about);
	}
	putchar('\n');
	if (!quiet) {
		putchar('\n');
		print_results(s);
		if (s->n_checks)
			putchar('\n');
	}
	if (s->n_checks)
		print_checks(s);
}

/* ---- as JSON ---- */

static void add_number(cJSON *o, const char *key, double value)
{
	if (isnan(value))
		cJSON_AddNullToObject(o, key);
	else
		cJSON_AddNumberToObject(o, key, value);
}

static cJSON *json_client(const struct sim_client *spec, const struct sim_client_result *c)
{
	cJSON *o = cJSON_CreateObject();
	char name[128];

	cJSON_AddStringToObject(o, "name", client_name(spec, name, sizeof(name)));
	add_number(o, "launches", (double)c->launches);
	add_number(o, "mean_us", c->mean_us);
	add_number(o, "p50_us", c->p50_us);
	add_number(o, "p99_us", c->p99_us);
	add_number(o, "share", c->share);
	add_number(o, "evictions", (double)c->evictions);
	add_number(o, "ntt", c->ntt);
	return o;
}

static cJSON *json_run(const struct sim_scenario *s, size_t run, const struct sim_result *r)
{
	cJSON *o = cJSON_CreateObject(), *clients = cJSON_AddArrayToObject(o, "clients");

	cJSON_AddStringToObject(o, "run", s->runs[run].name);
	add_number(o, "antt", r->antt);
	add_number(o, "stp", r->stp);
	add_number(o, "utilisation", r->utilisation);
	add_number(o, "makespan_us", r->makespan_us);
	add_number(o, "decisions", (double)r->decisions);
	for (size_t i = 0; i < r->n_clients; i++)
		cJSON_AddItemToArray(clients, json_client(&s->clients[i], &r->clients[i]));
	return o;
}

static cJSON *json_check(const struct simulation *s, size_t i)
{
	const struct sim_check *c = &s->checks[i];
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "expected", c->name);
	add_number(o, "paper", c->paper);
	add_number(o, "simulated", s->values[i]);
	add_number(o, "at_least", c->at_least);
	add_number(o, "at_most", c->at_most);
	cJSON_AddBoolToObject(o, "met", sim_check_met(c, s->values[i]));
	if (c->why)
		cJSON_AddStringToObject(o, "why", c->why);
	return o;
}

static cJSON *json_of(const struct simulation *s)
{
	cJSON *o = cJSON_CreateObject(), *cases, *checks, *one, *runs;

	cJSON_AddStringToObject(o, "file", s->file);
	if (s->first.about)
		cJSON_AddStringToObject(o, "about", s->first.about);
	cases = cJSON_AddArrayToObject(o, "cases");
	for (size_t i = 0; !quiet && i < s->cases.n; i++) {
		one = cJSON_CreateObject();
		cJSON_AddItemToObject(one, "case", cJSON_Duplicate(s->cases.variables[i], true));
		runs = cJSON_AddArrayToObject(one, "runs");
		for (size_t run = 0; run < s->first.n_runs; run++)
			cJSON_AddItemToArray(runs,
					     json_run(&s->scenarios[i], run,
						      &s->results[i * s->first.n_runs + run]));
		cJSON_AddItemToArray(cases, one);
	}
	checks = cJSON_AddArrayToObject(o, "expect");
	for (size_t i = 0; i < s->n_checks; i++)
		cJSON_AddItemToArray(checks, json_check(s, i));
	return o;
}

/* ---- the command ---- */

/* Returns 0 if all expectations are met; prints those that are not. */
static int check_expectations(const struct simulation *s)
{
	int rc = 0;

	for (size_t i = 0; i < s->n_checks; i++) {
		const struct sim_check *c = &s->checks[i];
		bool less = s->values[i] < c->at_least;
		char value[32], limit[32];

		if (sim_check_met(c, s->values[i]))
			continue;
		ctl_error("%s: expect[%zu]: %s is %s, %s %s was expected", s->file, i, c->name,
			  num_text(value, "%.6g", s->values[i]),
			  less || isnan(c->at_most) ? "at least" : "at most",
			  num_text(limit, "%.6g",
				   less || isnan(c->at_most) ? c->at_least : c->at_most));
		rc = CTL_FAIL;
	}
	return rc;
}

static int simulate_file(const char *path, cJSON *list)
{
	struct simulation s = { .file = path };
	char error[SIM_ERROR_SIZE] = "";
	size_t size;
	char *text = read_file(path, &size);
	int rc = CTL_FAIL;

	if (!text)
		return CTL_FAIL;
	if (run_simulation(&s, text, size, error)) {
		ctl_error("%s", error);
	} else {
		if (list)
			cJSON_AddItemToArray(list, json_of(&s));
		else
			print_tables(&s);
		rc = check_expectations(&s);
	}
	free_simulation(&s);
	free(text);
	return rc;
}

int ctl_simulate(struct ctl *ctl, int argc, char **argv)
{
	cJSON *list = ctl->json ? cJSON_CreateArray() : NULL;
	int rc = 0;

	for (int i = 0; i < argc; i++) {
		if (i && !list)
			putchar('\n');
		if (simulate_file(argv[i], list))
			rc = CTL_FAIL;
	}
	if (list)
		ctl_print_json(list);
	cJSON_Delete(list);
	return rc;
}
