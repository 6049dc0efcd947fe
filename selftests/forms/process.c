// SPDX-License-Identifier: LGPL-2.1-or-later
#include "forms.h"

const struct form process_forms[] = { { 0 } };
