// SPDX-License-Identifier: LGPL-2.1-or-later
#include "forms.h"

const struct form module_forms[] = { { 0 } };
