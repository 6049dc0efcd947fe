// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: expands the cases of a scenario file to scenarios without variables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim_json.h"

#define CASES_MAX	1000
#define VARIABLES_MAX	8

static bool is_value(const cJSON *v)
{
	return cJSON_IsString(v) || cJSON_IsNumber(v);
}

static bool equal_values(const cJSON *a, const cJSON *b)
{
	return cJSON_Compare(a, b, true);
}

static bool is_name(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

static bool add_case(struct sim_reader *r, struct sim_cases *cases, cJSON *variables)
{
	if (!variables)
		return sim_refuse(r, "", "out of memory");
	if (cases->n == CASES_MAX) {
		cJSON_Delete(variables);
		return sim_refuse(r, "cases", "these are more than %d cases; write fewer values",
				  CASES_MAX);
	}
	cases->variables[cases->n++] = variables;
	return true;
}

static bool check_variables(struct sim_reader *r, const cJSON *o, const char *path, bool lists)
{
	char at[SIM_PATH_SIZE];
	const cJSON *v, *item;
	size_t n = 0;

	cJSON_ArrayForEach(v, o) {
		sim_path(at, path, v->string);
		if (!is_name(v->string))
			return sim_refuse(
				r, at,
				"this is no name of a variable; write letters, digits and _");
		if (n++ == VARIABLES_MAX)
			return sim_refuse(r, at, "these are more than %d variables; write fewer",
					  VARIABLES_MAX);
		if (!lists && !is_value(v))
			return sim_refuse(r, at, "write a text or a number");
		if (lists && (!cJSON_IsArray(v) || !v->child))
			return sim_refuse(r, at, "write a list of texts or numbers");
		if (lists)
			cJSON_ArrayForEach(item, v)
				if (!is_value(item))
					return sim_refuse(r, at,
							  "write a list of texts or numbers");
	}
	return n ? true :
		   sim_refuse(r, path, "there are no variables; write some, or leave cases out");
}

/* Adds all combinations of one value per list, from @list on, in which no two values are equal. */
static bool add_combinations(struct sim_reader *r, struct sim_cases *cases, const cJSON *list,
			     const cJSON *chosen)
{
	const cJSON *value, *other;
	cJSON *next;
	bool good = true, taken;

	if (!list)
		return add_case(r, cases, cJSON_Duplicate(chosen, true));
	cJSON_ArrayForEach(value, list) {
		taken = false;
		cJSON_ArrayForEach(other, chosen)
			taken |= equal_values(value, other);
		if (taken)
			continue;
		next = cJSON_Duplicate(chosen, true);
		if (next)
			cJSON_AddItemToObject(next, list->string, cJSON_Duplicate(value, true));
		good = next && add_combinations(r, cases, list->next, next);
		cJSON_Delete(next);
		if (!good)
			return false;
	}
	return true;
}

static bool read_cases(struct sim_reader *r, struct sim_cases *cases, const cJSON *list)
{
	cJSON *none = cJSON_CreateObject();
	char at[SIM_PATH_SIZE];
	const cJSON *o;
	bool good = none;
	size_t i = 0;

	if (!list) {
		good = add_case(r, cases, cJSON_CreateObject());
	} else if (cJSON_IsObject(list)) {
		good = good && check_variables(r, list, "cases", true) &&
		       add_combinations(r, cases, list->child, none);
	} else if (cJSON_IsArray(list)) {
		cJSON_ArrayForEach(o, list) {
			sim_path_at(at, "cases", i++);
			if (good && !cJSON_IsObject(o))
				good = sim_refuse(r, at,
						  "write an object of variables and their values");
			good = good && check_variables(r, o, at, false) &&
			       add_case(r, cases, cJSON_Duplicate(o, true));
		}
	} else {
		good = sim_refuse(r, "cases", "write an object of lists, or a list of objects");
	}
	cJSON_Delete(none);
	if (good && !cases->n)
		good = sim_refuse(r, "cases", "there is no case; write values that differ");
	return good;
}

int sim_cases(struct sim_cases *cases, const char *file, const char *text, size_t size,
	      char error[SIM_ERROR_SIZE])
{
	struct sim_reader r = { .file = file, .error = error };
	const char *end = text;
	unsigned int line = 1;

	memset(cases, 0, sizeof(*cases));
	cases->root = cJSON_ParseWithLengthOpts(text, size + 1, &end, true);
	cases->variables = calloc(CASES_MAX, sizeof(*cases->variables));
	if (!cases->root || memchr(text, '\0', size)) {
		for (const char *c = text; c < end && c < text + size; c++)
			line += *c == '\n';
		snprintf(error, SIM_ERROR_SIZE,
			 "%.200s:%u: this is no JSON; see the example in gschedctl(1)", file, line);
		return -1;
	}
	if (!cJSON_IsObject(cases->root)) {
		sim_refuse(&r, "", "write an object; see the example in gschedctl(1)");
		return -1;
	}
	if (!cases->variables ||
	    !read_cases(&r, cases, cJSON_GetObjectItemCaseSensitive(cases->root, "cases")))
		return -1;
	return 0;
}

/*
 * Substitutes variables in @text. If it is just one variable, a number stays a number. NULL: out of
 * memory.
 */
static cJSON *substituted(const char *text, const cJSON *variables)
{
	const cJSON *v, *found;
	char *out = NULL;
	size_t size, len;
	cJSON *item;
	FILE *f;

	cJSON_ArrayForEach(v, variables)
		if (*text == '$' && !strcmp(text + 1, v->string))
			return cJSON_Duplicate(v, true);
	f = open_memstream(&out, &size);
	if (!f)
		return NULL;
	for (; *text; text += len) {
		found = NULL;
		len = 1;
		cJSON_ArrayForEach(v, variables)
			if (*text == '$' && !strncmp(text + 1, v->string, strlen(v->string)) &&
			    strlen(v->string) >= len) {
				found = v;
				len = 1 + strlen(v->string);
			}
		if (!found)
			fputc(*text, f);
		else if (cJSON_IsString(found))
			fputs(found->valuestring, f);
		else
			fprintf(f, "%.15g", found->valuedouble);
	}
	fclose(f);
	item = cJSON_CreateString(out);
	free(out);
	return item;
}

static bool substitute_tree(cJSON *tree, const cJSON *variables)
{
	cJSON *item, *next, *new;

	for (item = tree->child; item; item = next) {
		next = item->next;
		if (!cJSON_IsString(item)) {
			if (!substitute_tree(item, variables))
				return false;
			continue;
		}
		if (!strchr(item->valuestring, '$'))
			continue;
		new = substituted(item->valuestring, variables);
		if (!new)
			return false;
		/* the copy keeps the item's key, not the variable's */
		cJSON_free(new->string);
		new->string = item->string;
		item->string = NULL;
		cJSON_ReplaceItemViaPointer(tree, item, new);
	}
	return true;
}

cJSON *sim_case_tree(const struct sim_cases *cases, size_t i)
{
	cJSON *tree = cJSON_Duplicate(cases->root, true);

	if (!tree)
		return NULL;
	cJSON_DeleteItemFromObjectCaseSensitive(tree, "cases");
	if (!substitute_tree(tree, cases->variables[i])) {
		cJSON_Delete(tree);
		return NULL;
	}
	return tree;
}

void sim_case_name(const cJSON *variables, char *buf, size_t size)
{
	const cJSON *v;
	size_t used = 0;

	*buf = '\0';
	cJSON_ArrayForEach(v, variables) {
		if (used >= size)
			break;
		if (cJSON_IsString(v))
			used += snprintf(buf + used, size - used, "%s%s=%s", used ? " " : "",
					 v->string, v->valuestring);
		else
			used += snprintf(buf + used, size - used, "%s%s=%.15g", used ? " " : "",
					 v->string, v->valuedouble);
	}
}

void sim_cases_free(struct sim_cases *cases)
{
	for (size_t i = 0; i < cases->n; i++)
		cJSON_Delete(cases->variables[i]);
	free(cases->variables);
	cJSON_Delete(cases->root);
	memset(cases, 0, sizeof(*cases));
}
