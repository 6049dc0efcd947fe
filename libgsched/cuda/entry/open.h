/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GI_OPEN_H
#define GI_OPEN_H

#include "base/base.h"

/* For trampoline.S: the dlopen() to call, and in *@name the file to open instead of *@name */
gi_dlopen_fn *gi_dlopen(const char **name);

#endif /* GI_OPEN_H */
