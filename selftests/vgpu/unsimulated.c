// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The calls that the driver API has and vgpu does not simulate: each says its name on stderr and
 * returns CUDA_ERROR_NOT_SUPPORTED. No declarations of them are seen here, as none of their
 * arguments is looked at.
 */
#include "unsimulated.h"

#define STUB(name) \
	int name(void); \
	__attribute__((visibility("default"))) int name(void) \
	{ \
		return vg_unsimulated(#name); \
	}
int vg_unsimulated(const char *name);
VG_UNSIMULATED_DECLARED(STUB)
VG_UNSIMULATED(STUB)
