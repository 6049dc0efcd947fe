// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events as an arbiter sends them: one of a later version has longer ones and others
 * (struct gsched_event).
 */
#include <errno.h>
#include <string.h>
#include "transport.h"

static bool type_is_known(uint32_t type)
{
	return type >= GSCHED_EVENT_GRANT && type <= GSCHED_EVENT_BAND;
}

int gsched_event_parse(const void *buf, size_t len, struct gsched_event *event)
{
	if (len < sizeof(*event))
		goto malformed;
	memcpy(event, buf, sizeof(*event));
	if (event->size < sizeof(*event) || event->size > len || event->size % 8)
		goto malformed;
	return type_is_known(event->type);

malformed:
	errno = EPROTO;
	return -1;
}
