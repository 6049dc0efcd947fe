// SPDX-License-Identifier: LGPL-2.1-or-later
#include "forms.h"

const struct form graph_forms[] = { { 0 } };
