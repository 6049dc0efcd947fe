// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sizes of types, sizes and kinds of variables.
 *
 * In: a type's name or a declaration. Out: its size, alignment or kind. Assumes nothing: a size
 * that overflows is reported as one too large for any memory.
 */
#include <string.h>
#include "semantics.h"

unsigned int gsr_type_size(const char *type)
{
	const char *d = type;
	unsigned int bits = 0;

	while (*d && (*d < '0' || *d > '9'))
		d++;
	if (!*d)
		return !strcmp(type, "pred") ? 1 :
		       !strcmp(type, "texref") || !strcmp(type, "samplerref") ||
		       !strcmp(type, "surfref") ? 8 : 0;
	for (; *d >= '0' && *d <= '9'; d++)
		bits = 10 * bits + (unsigned int)(*d - '0');
	return (*d && strstr(d, "x2") ? 2 * bits : bits) / 8;
}

unsigned int gsr_var_align(const struct gsr_var *v)
{
	unsigned int n = gsr_type_size(v->type) * (v->vec ? v->vec : 1);

	return v->align ? v->align : n ? n : 1;
}

uint64_t gsr_var_size(const struct gsr_var *v)
{
	uint64_t n = gsr_type_size(v->type) * (uint64_t)(v->vec ? v->vec : 1);
	unsigned int i;

	for (i = 0; i < v->n_dims; i++)
		if (__builtin_mul_overflow(n, v->dims[i], &n))
			return UINT64_MAX / 2;
	return n;
}

bool gsr_is_global(const struct gsr_var *v)
{
	return !strcmp(v->space, "global") || !strcmp(v->space, "const");
}

bool gsr_is_reference(const struct gsr_var *v)
{
	return !strcmp(v->space, "tex") || !strcmp(v->type, "texref") ||
	       !strcmp(v->type, "surfref") || !strcmp(v->type, "samplerref");
}

bool gsr_is_surface(const struct gsr_var *v)
{
	return !strcmp(v->type, "surfref");
}
