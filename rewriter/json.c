// SPDX-License-Identifier: LGPL-2.1-or-later
/* The description of a rewrite as JSON: what the cache stores and the daemon sends. */
#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arena.h"
#include "gsr.h"

#define KERNELS_MAX	(1 << 20)
#define VARIABLE_MAX	(1ULL << 48)
#define SIZE_MOST	(1 << 20)	/* of parameters; a kernel that claims more is not rewritten */

static const char *const tiers[] = { "block", "slice", "launch" };
static const char *const spaces[] = { "global", "const" };

const char *const gsr_insertion_names[GSR_INSERTIONS] = { "block_ids", "variables", "sites", "mbarriers", "resume_points",
								 "exits", "loop" };

static bool add_inserted(cJSON *o, const struct gsr_kernel *k)
{
	cJSON *counts = cJSON_AddObjectToObject(o, "inserted");
	unsigned int i;

	for (i = 0; counts && i < GSR_INSERTIONS; i++)
		if (!cJSON_AddNumberToObject(counts, gsr_insertion_names[i], k->inserted[i]))
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
	return cJSON_AddStringToObject(o, "name", v->name) && cJSON_AddStringToObject(o, "space", spaces[v->space]) &&
	       cJSON_AddNumberToObject(o, "size", (double)v->size) && cJSON_AddBoolToObject(o, "copied", v->copied) &&
	       (!v->function || (cJSON_AddStringToObject(o, "function", v->function) &&
				 cJSON_AddNumberToObject(o, "offset", (double)v->offset)));
}

static double size_number(size_t n)
{
	return (double)(n < SIZE_MOST ? n : SIZE_MOST);
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
	return cJSON_AddStringToObject(o, "name", k->name) && cJSON_AddStringToObject(o, "tier", tiers[k->tier]) &&
	       cJSON_AddStringToObject(o, "reason", k->reason) && cJSON_AddNumberToObject(o, "params", k->params) &&
	       cJSON_AddNumberToObject(o, "param_size", size_number(k->param_size)) &&
	       cJSON_AddNumberToObject(o, "launch_offset", size_number(k->launch_offset)) &&
	       cJSON_AddNumberToObject(o, "barriers", k->barriers) && cJSON_AddNumberToObject(o, "returns", k->returns) &&
	       cJSON_AddBoolToObject(o, "early_return", k->early_return) &&
	       cJSON_AddBoolToObject(o, "warp_rows", k->warp_rows) && cJSON_AddBoolToObject(o, "waits", k->waits) &&
	       cJSON_AddNumberToObject(o, "static_shared", k->static_shared) &&
	       cJSON_AddNumberToObject(o, "sites", k->sites) && add_inserted(o, k) &&
	       cJSON_AddNumberToObject(o, "resume_points", k->resume_points) &&
	       (!k->resume_reason || cJSON_AddStringToObject(o, "resume_reason", k->resume_reason)) &&
	       cJSON_AddNumberToObject(o, "save_fixed", k->save_fixed) &&
	       cJSON_AddNumberToObject(o, "save_thread", k->save_thread) && add_list(o, k) &&
	       cJSON_AddNumberToObject(o, "references_offset", size_number(k->references_offset)) && add_references(o, k);
}

char *gsr_rewrite_to_json(const struct gsr_rewrite *rw)
{
	cJSON *root = cJSON_CreateObject(), *list;
	char *text = NULL;
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
		text = cJSON_Print(root);
out:
	cJSON_Delete(root);
	return text;
}

static bool number(const cJSON *o, const char *name, double max, double *out)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, name);

	if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble <= max) || (double)(uint64_t)n->valuedouble != n->valuedouble)
		return false;
	*out = n->valuedouble;
	return true;
}

static bool uint_of(const cJSON *o, const char *name, unsigned int *out)
{
	double v;

	if (!number(o, name, UINT32_MAX, &v))
		return false;
	*out = (unsigned int)v;
	return true;
}

static bool size_of(const cJSON *o, const char *name, size_t *out)
{
	double v;

	if (!number(o, name, SIZE_MOST, &v))
		return false;
	*out = (size_t)v;
	return true;
}

static bool bool_of(const cJSON *o, const char *name, bool *out)
{
	const cJSON *b = cJSON_GetObjectItemCaseSensitive(o, name);

	*out = cJSON_IsTrue(b);
	return cJSON_IsBool(b);
}

static const char *string_of(struct gsr_arena *a, const cJSON *o, const char *name)
{
	const cJSON *s = cJSON_GetObjectItemCaseSensitive(o, name);

	return cJSON_IsString(s) ? gsr_strndup(a, s->valuestring, strlen(s->valuestring)) : NULL;
}

static bool variable(struct gsr_arena *a, const cJSON *o, struct gsr_variable *v)
{
	const char *space = string_of(a, o, "space");
	double size, offset = 0;

	v->name = string_of(a, o, "name");
	if (!v->name || !*v->name || !space || !number(o, "size", VARIABLE_MAX, &size) || !bool_of(o, "copied", &v->copied))
		return false;
	v->size = (uint64_t)size;
	v->function = string_of(a, o, "function");
	if (v->function && (!number(o, "offset", VARIABLE_MAX, &offset) || offset + 8 > size || v->copied))
		return false;
	v->offset = (uint64_t)offset;
	v->space = strcmp(space, spaces[GSR_SPACE_CONST]) ? GSR_SPACE_GLOBAL : GSR_SPACE_CONST;
	return !strcmp(space, spaces[v->space]);
}

/* Indices into the @n variables */
static bool list_of(struct gsr_arena *a, const cJSON *o, unsigned int n, struct gsr_kernel *k)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "variables"), *i;
	unsigned int *out;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > (int)n)
		return false;
	k->variables = out = gsr_alloc_array(a, n + 1, sizeof(*out));
	cJSON_ArrayForEach(i, list) {
		if (!cJSON_IsNumber(i) || !(i->valuedouble >= 0 && i->valuedouble < n) ||
		    (unsigned int)i->valuedouble != i->valuedouble)
			return false;
		out[k->n_variables++] = (unsigned int)i->valuedouble;
	}
	return true;
}

static bool references_of(struct gsr_arena *a, const cJSON *o, struct gsr_kernel *k)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "references"), *i;
	struct gsr_reference *out;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > (int)GSR_REFERENCES_MAX)
		return false;
	k->references = out = gsr_alloc_array(a, (size_t)cJSON_GetArraySize(list) + 1, sizeof(*out));
	cJSON_ArrayForEach(i, list) {
		out->name = string_of(a, i, "name");
		if (!out->name || !bool_of(i, "surface", &out->surface))
			return false;
		k->n_references++;
		out++;
	}
	return size_of(o, "references_offset", &k->references_offset) && (!k->n_references ||
		(k->references_offset % 8 == 0 && k->references_offset >= k->param_size &&
		 k->references_offset + 8 * (size_t)k->n_references <= k->launch_offset));
}

static bool inserted_of(const cJSON *o, struct gsr_kernel *k)
{
	const cJSON *counts = cJSON_GetObjectItemCaseSensitive(o, "inserted");
	unsigned int i;

	for (i = 0; i < GSR_INSERTIONS; i++)
		if (!uint_of(counts, gsr_insertion_names[i], &k->inserted[i]))
			return false;
	return true;
}

static bool kernel(struct gsr_arena *a, const cJSON *o, unsigned int n_variables, struct gsr_kernel *k)
{
	const char *tier = string_of(a, o, "tier");
	unsigned int t;

	for (t = 0; tier && t < 3 && strcmp(tiers[t], tier); t++)
		;
	k->tier = (enum gsr_tier)t;
	k->name = string_of(a, o, "name");
	k->reason = string_of(a, o, "reason");
	k->resume_reason = string_of(a, o, "resume_reason");
	return tier && t < 3 && k->name && k->reason && uint_of(o, "params", &k->params) &&
	       size_of(o, "param_size", &k->param_size) && size_of(o, "launch_offset", &k->launch_offset) &&
	       uint_of(o, "barriers", &k->barriers) && uint_of(o, "returns", &k->returns) &&
	       bool_of(o, "early_return", &k->early_return) && bool_of(o, "warp_rows", &k->warp_rows) &&
	       bool_of(o, "waits", &k->waits) &&
	       uint_of(o, "static_shared", &k->static_shared) && uint_of(o, "sites", &k->sites) && inserted_of(o, k) &&
	       uint_of(o, "resume_points", &k->resume_points) && uint_of(o, "save_fixed", &k->save_fixed) &&
	       uint_of(o, "save_thread", &k->save_thread) && list_of(a, o, n_variables, k) && references_of(a, o, k) && k->save_fixed < 1 << 20 && k->save_thread < 1 << 16 &&
	       (k->tier != GSR_TIER_BLOCK || (k->launch_offset % 16 == 0 && k->launch_offset >= k->param_size));
}

static enum gsr_status fill(const cJSON *root, struct gsr_arena *a, struct gsr_rewrite *out)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "kernels"), *o;
	const cJSON *variables = cJSON_GetObjectItemCaseSensitive(root, "variables");
	const cJSON *ptx = cJSON_GetObjectItemCaseSensitive(root, "ptx");
	jmp_buf nomem;
	double abi;
	int n;

	if (setjmp(nomem))
		return GSR_ERR_NOMEM;
	gsr_arena_escape(a, &nomem);
	n = cJSON_GetArraySize(list);
	if (!number(root, "abi", GSR_ABI_VERSION, &abi) || abi != GSR_ABI_VERSION || !cJSON_IsArray(list) || n > KERNELS_MAX ||
	    (ptx && !cJSON_IsString(ptx)) || !cJSON_IsArray(variables) || cJSON_GetArraySize(variables) > (int)GSR_VARIABLES_MAX)
		return GSR_ERR_FORMAT;
	out->variables = gsr_alloc_array(a, (size_t)cJSON_GetArraySize(variables) + 1, sizeof(*out->variables));
	cJSON_ArrayForEach(o, variables)
		if (!variable(a, o, &out->variables[out->n_variables++]))
			return GSR_ERR_FORMAT;
	out->addresses = string_of(a, root, "addresses");
	if (out->n_variables && (!out->addresses || !*out->addresses))
		return GSR_ERR_FORMAT;
	out->kernels = gsr_alloc_array(a, (size_t)n + 1, sizeof(*out->kernels));
	cJSON_ArrayForEach(o, list)
		if (!kernel(a, o, out->n_variables, &out->kernels[out->n_kernels++]))
			return GSR_ERR_FORMAT;
	gsr_arena_escape(a, NULL);
	if (ptx) {
		out->ptx = strdup(ptx->valuestring);
		if (!out->ptx)
			return GSR_ERR_NOMEM;
		out->ptx_size = strlen(out->ptx);
	}
	return GSR_OK;
}

enum gsr_status gsr_rewrite_from_json(const char *json, size_t size, struct gsr_rewrite *out, struct gsr_error *err)
{
	struct gsr_arena *a = gsr_arena_new();
	cJSON *root = a ? cJSON_ParseWithLength(json, size) : NULL;
	enum gsr_status status = a ? GSR_ERR_FORMAT : GSR_ERR_NOMEM;

	memset(out, 0, sizeof(*out));
	if (root)
		status = fill(root, a, out);
	cJSON_Delete(root);
	if (err)
		memset(err, 0, sizeof(*err));
	if (status == GSR_OK) {
		out->arena = a;
		return GSR_OK;
	}
	if (err) {
		err->status = status;
		snprintf(err->message, sizeof(err->message), "<json>: %s", status == GSR_ERR_NOMEM ? "out of memory" :
			 "not the description of a rewrite of this version");
	}
	gsr_arena_free(a);
	memset(out, 0, sizeof(*out));
	return status;
}
