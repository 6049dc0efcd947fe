/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REWRITER_SAME_H
#define REWRITER_SAME_H

#include "rewriter/ptx/ptx.h"

/* Are the two trees the same but for line numbers? If not, @why says where. */
bool same_module(const struct gsr_module *a, const struct gsr_module *b, char *why, size_t size);

#endif /* REWRITER_SAME_H */
