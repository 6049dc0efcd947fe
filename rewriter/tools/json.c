// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The description of a rewrite as JSON.
 *
 * In: the description of a rewrite. Out: a cJSON tree, which the caller frees. Assumes a rewrite
 * that succeeded.
 */
#include <cjson/cJSON.h>
#include "gsrewrite.h"

static const char *const tiers[] = { "block", "slice", "launch" };
static const char *const spaces[] = { "global", "const" };

static const char *const insertions[GSR_INSERTIONS] = {
	"block_ids", "variables", "sites", "mbarriers", "resume_points", "exits", "loop",
};

static bool add_inserted(cJSON *o, const struct gsr_kernel *k)
{
	cJSON *counts = cJSON_AddObjectToObject(o, "inserted");
	unsigned int i;

	for (i = 0; counts && i < GSR_INSERTIONS; i++)
		if (!cJSON_AddNumberToObject(counts, insertions[i], k->inserted[i]))
			return false;
	return counts;
}

static bool add_list(cJSON *o, const struct gsr_kernel *k)
{
	cJSON *list = cJSON_AddArrayToObject(o, "variables"), *n;
	unsigned int i;

	for (i = 0; list && i < k->n_variables; i++) {
		n = cJSON_CreateNumber(k->variables[i]);
		if (!n || !cJSON_AddItemToArray(list, n)) {
			cJSON_Delete(n);
			return false;
		}
	}
	return list;
}

static bool add_references(cJSON *o, const struct gsr_kernel *k)
{
	cJSON *list = cJSON_AddArrayToObject(o, "references"), *r;
	unsigned int i;

	for (i = 0; list && i < k->n_references; i++) {
		r = cJSON_CreateObject();
		if (!r || !cJSON_AddItemToArray(list, r)) {
			cJSON_Delete(r);
			return false;
		}
		if (!cJSON_AddStringToObject(r, "name", k->references[i].name) ||
		    !cJSON_AddBoolToObject(r, "surface", k->references[i].surface))
			return false;
	}
	return list;
}

static bool add_variable(cJSON *list, const struct gsr_variable *v)
{
	cJSON *o = cJSON_CreateObject();

	if (!o || !cJSON_AddItemToArray(list, o)) {
		cJSON_Delete(o);
		return false;
	}
	return cJSON_AddStringToObject(o, "name", v->name) &&
	       cJSON_AddStringToObject(o, "space", spaces[v->space]) &&
	       cJSON_AddNumberToObject(o, "size", (double)v->size) &&
	       cJSON_AddBoolToObject(o, "copied", v->copied) &&
	       (!v->function || (cJSON_AddStringToObject(o, "function", v->function) &&
				 cJSON_AddNumberToObject(o, "offset", (double)v->offset)));
}

static bool add_layout(cJSON *o, const struct gsr_kernel *k)
{
	cJSON *list = cJSON_AddArrayToObject(o, "layout");
	unsigned int i;

	for (i = 0; list && i < k->params; i++) {
		int place[2] = { (int)k->layout[i].offset, (int)k->layout[i].size };
		cJSON *pair = cJSON_CreateIntArray(place, 2);

		if (!pair || !cJSON_AddItemToArray(list, pair)) {
			cJSON_Delete(pair);
			return false;
		}
	}
	return list;
}

static bool add_kernel(cJSON *list, const struct gsr_kernel *k)
{
	cJSON *o = cJSON_CreateObject();

	if (!o)
		return false;
	if (!cJSON_AddItemToArray(list, o)) {
		cJSON_Delete(o);
		return false;
	}
	return cJSON_AddStringToObject(o, "name", k->name) &&
	       cJSON_AddStringToObject(o, "tier", tiers[k->tier]) &&
	       cJSON_AddStringToObject(o, "reason", k->reason) &&
	       cJSON_AddNumberToObject(o, "params", k->params) &&
	       cJSON_AddNumberToObject(o, "param_size", (double)k->param_size) &&
	       add_layout(o, k) &&
	       cJSON_AddNumberToObject(o, "launch_offset", (double)k->launch_offset) &&
	       cJSON_AddNumberToObject(o, "barriers", k->barriers) &&
	       cJSON_AddNumberToObject(o, "returns", k->returns) &&
	       cJSON_AddBoolToObject(o, "early_return", k->early_return) &&
	       cJSON_AddBoolToObject(o, "warp_rows", k->warp_rows) &&
	       cJSON_AddBoolToObject(o, "waits", k->waits) &&
	       cJSON_AddNumberToObject(o, "static_shared", k->static_shared) &&
	       cJSON_AddNumberToObject(o, "dynamic_shared", k->dynamic_shared) &&
	       cJSON_AddNumberToObject(o, "sites", k->sites) && add_inserted(o, k) &&
	       cJSON_AddNumberToObject(o, "resume_points", k->resume_points) &&
	       cJSON_AddBoolToObject(o, "restarts", k->restarts) &&
	       (!k->resume_reason ||
		cJSON_AddStringToObject(o, "resume_reason", k->resume_reason)) &&
	       cJSON_AddNumberToObject(o, "save_fixed", k->save_fixed) &&
	       cJSON_AddNumberToObject(o, "save_thread", k->save_thread) && add_list(o, k) &&
	       cJSON_AddNumberToObject(o, "references_offset", (double)k->references_offset) &&
	       add_references(o, k);
}

cJSON *gsr_rewrite_json(const struct gsr_rewrite *rw)
{
	cJSON *root = cJSON_CreateObject(), *list;
	unsigned int i;

	if (!root)
		return NULL;
	if (!cJSON_AddNumberToObject(root, "abi", GSR_ABI_VERSION))
		goto out;
	if (rw->ptx && !cJSON_AddStringToObject(root, "ptx", rw->ptx))
		goto out;
	if (rw->addresses && !cJSON_AddStringToObject(root, "addresses", rw->addresses))
		goto out;
	list = cJSON_AddArrayToObject(root, "variables");
	if (!list)
		goto out;
	for (i = 0; i < rw->n_variables; i++)
		if (!add_variable(list, &rw->variables[i]))
			goto out;
	list = cJSON_AddArrayToObject(root, "kernels");
	for (i = 0; list && i < rw->n_kernels; i++)
		if (!add_kernel(list, &rw->kernels[i]))
			goto out;
	if (list)
		return root;
out:
	cJSON_Delete(root);
	return NULL;
}
