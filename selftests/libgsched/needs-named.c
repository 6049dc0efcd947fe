// SPDX-License-Identifier: LGPL-2.1-or-later
#include "named.h"

int needs_named_devices(void)
{
	return named_devices();
}
