/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GI_OPEN_H
#define GI_OPEN_H

#include "base/base.h"

/* trampoline.S knows both layouts. */
struct gi_dlopen_args {
	const char *name;
	long flags;			/* int */
};

/* For trampoline.S: the dlopen() to call, and in *@args what to call it with */
gi_dlopen_fn *gi_dlopen(struct gi_dlopen_args *args);

struct gi_dlmopen_args {
	long space;			/* Lmid_t */
	const char *name;
};

gi_dlmopen_fn *gi_dlmopen(struct gi_dlmopen_args *args);

/*
 * Whether the library at @path, or one that it brings along, has variables that are named as the
 * driver's functions (variables.c)
 */
bool gi_has_driver_variables(const char *path);

#endif /* GI_OPEN_H */
