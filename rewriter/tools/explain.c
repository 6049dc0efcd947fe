// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Report on a rewrite, as text or JSON: the description of each kernel, and the register counts of
 * original and twin.
 *
 * In: a rewrite and its input. Out: the report: text on stdout, or a JSON string. Assumes a rewrite
 * that succeeded.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gsrewrite.h"

static const char *const tiers[] = { "block", "slice", "launch" };

/* Register counts of the kernels of a module; -1 not known. Index 0 of by and why: originals */
struct registers {
	int *before, *after;
	const char *by[2];
	char why[2][256];
};

static bool count_registers(const char *ptx, const struct gsr_rewrite *rw, struct registers *r)
{
	unsigned int i, n = rw->n_kernels;
	const char **names = calloc(2 * n + 1, sizeof(*names));
	char *twins = NULL;
	size_t room = 1;
	bool good;

	memset(r, 0, sizeof(*r));
	r->before = calloc(n + 1, sizeof(int));
	r->after = calloc(n + 1, sizeof(int));
	for (i = 0; i < n; i++)
		room += strlen(rw->kernels[i].name) + sizeof(GSR_SUFFIX);
	twins = malloc(room);
	good = names && r->before && r->after && twins;
	for (i = 0, room = 0; good && i < n; i++) {
		names[i] = rw->kernels[i].name;
		names[n + i] = twins + room;
		room += (size_t)sprintf(twins + room, "%s" GSR_SUFFIX, names[i]) + 1;
	}
	if (good) {
		gsr_registers(ptx, names, n, r->before, &r->by[0], r->why[0], sizeof(r->why[0]));
		for (i = 0; i < n; i++)
			r->after[i] = -1;
		if (rw->ptx)
			gsr_registers(rw->ptx, names + n, n, r->after, &r->by[1], r->why[1],
				      sizeof(r->why[1]));
	}
	free(names);
	free(twins);
	return good;
}

static void free_registers(struct registers *r)
{
	free(r->before);
	free(r->after);
}

static void print_count(int n)
{
	if (n < 0)
		printf("?");
	else
		printf("%d", n);
}

/* Prints what the twin's table holds words for: variables, or functions called by number */
static void print_table_words(const struct gsr_rewrite *rw, const struct gsr_kernel *k,
			      bool functions, const char *what)
{
	unsigned int i, n = 0;

	for (i = 0; i < k->n_variables; i++) {
		const struct gsr_variable *v = &rw->variables[k->variables[i]];

		if (functions == !v->function)
			continue;
		printf("%s%s", n++ ? ", " : what, functions ? v->function : v->name);
		if (functions)
			printf(" (%s+%llu)", v->name, (unsigned long long)v->offset);
	}
	if (n)
		printf("\n");
}

static void print_block(const struct gsr_rewrite *rw, const struct gsr_kernel *k)
{
	static const char *const what[GSR_INSERTIONS] = {
		"for block ids", "for variables", "at barriers and warp-wide instructions",
		"at mbarriers", "at heads of loops", "where functions end threads",
		"around the body",
	};
	unsigned int i, n = 0, total = 0;

	for (i = 0; i < GSR_INSERTIONS; i++)
		total += k->inserted[i];
	printf("  inserted %u instructions:", total);
	for (i = 0; i < GSR_INSERTIONS; i++)
		if (k->inserted[i])
			printf("%s %u %s", n++ ? "," : "", k->inserted[i], what[i]);
	printf("; %u bytes of %sshared memory\n",
	       k->dynamic_shared ? k->dynamic_shared : k->static_shared,
	       k->dynamic_shared ? "dynamic " : "");
	printf("  %u barriers, %u returns became jumps", k->barriers, k->returns);
	if (k->early_return)
		printf("; threads may finish early: %u places where the finished take part",
		       k->sites);
	printf("\n");
	if (k->warp_rows)
		printf("  only for blocks whose x is a multiple of 32\n");
	if (k->waits)
		printf("  may wait for other blocks: launched as it is where its grid fits the "
		       "device, and not for static ranges\n");
	print_table_words(rw, k, false, "  shares ");
	print_table_words(rw, k, true, "  calls by number ");
	for (i = 0; i < k->n_references; i++)
		printf("%s%s%s", i ? ", " : "  takes handles for ", k->references[i].name,
		       i + 1 < k->n_references ? "" : "\n");
	if (k->restarts)
		printf("  left at %u points, from where the block begins again\n",
		       k->resume_points);
	else if (k->resume_points)
		printf("  resumable at %u points, saves %u bytes a block and %u a thread\n",
		       k->resume_points, k->save_fixed, k->save_thread);
	if (k->resume_reason)
		printf("  %s: %s\n", k->resume_points ? "not everywhere" :
		       k->restarts	? "not restarted" :
					  "not resumable",
		       k->resume_reason);
}

bool gsr_explain(const char *ptx, const struct gsr_rewrite *rw)
{
	struct registers r;
	unsigned int i;

	if (!count_registers(ptx, rw, &r)) {
		free_registers(&r);
		return false;
	}
	for (i = 0; i < rw->n_kernels; i++) {
		const struct gsr_kernel *k = &rw->kernels[i];

		printf("%s: tier %s, %s\n", k->name, tiers[k->tier], k->reason);
		if (r.before[i] >= 0 || r.after[i] >= 0) {
			printf("  registers ");
			print_count(r.before[i]);
			if (k->tier == GSR_TIER_BLOCK) {
				printf(" -> ");
				print_count(r.after[i]);
			}
			printf(" (by %s)\n", r.by[r.before[i] < 0]);
		}
		if (k->tier == GSR_TIER_BLOCK)
			print_block(rw, k);
	}
	if (r.why[0][0])
		printf("registers of originals: %s\n", r.why[0]);
	if (r.why[1][0])
		printf("registers of twins: %s\n", r.why[1]);
	free_registers(&r);
	return true;
}

static bool add_count(cJSON *o, const char *name, int n)
{
	return n < 0 ? cJSON_AddNullToObject(o, name) : cJSON_AddNumberToObject(o, name, n);
}

static bool add_registers(cJSON *root, const struct registers *r)
{
	cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "kernels"), *o, *counts;
	unsigned int i = 0;

	cJSON_ArrayForEach(o, list) {
		counts = cJSON_AddObjectToObject(o, "registers");
		if (!counts || !add_count(counts, "original", r->before[i]) ||
		    !add_count(counts, "twin", r->after[i]))
			return false;
		i++;
	}
	return (!r->why[0][0] || cJSON_AddStringToObject(root, "registers_original", r->why[0])) &&
	       (!r->why[1][0] || cJSON_AddStringToObject(root, "registers_twin", r->why[1]));
}

char *gsr_explain_json(const char *ptx, const struct gsr_rewrite *rw)
{
	cJSON *root = gsr_rewrite_json(rw);
	struct registers r = { 0 };
	char *text = NULL;

	if (root && count_registers(ptx, rw, &r) && add_registers(root, &r))
		text = cJSON_Print(root);
	free_registers(&r);
	cJSON_Delete(root);
	return text;
}
