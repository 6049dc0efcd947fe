/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GI_OPEN_H
#define GI_OPEN_H

#include "base/base.h"

/* For trampoline.S: the dlopen() to call, and in *@name the file to open instead of *@name */
gi_dlopen_fn *gi_dlopen(const char **name);

/* The same for dlmopen(). trampoline.S knows this layout. */
struct gi_dlmopen_args {
	long space;			/* Lmid_t */
	const char *name;
};

gi_dlmopen_fn *gi_dlmopen(struct gi_dlmopen_args *args);

#endif /* GI_OPEN_H */
