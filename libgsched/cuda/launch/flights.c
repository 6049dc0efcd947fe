// SPDX-License-Identifier: LGPL-2.1-or-later
/* Launches bracketed by two events: flights.h. */
#include <string.h>
#include "launch/flights.h"

#define MS_MAX	1e6f	/* a longer time is an error of the measurement */

static unsigned int next_free(const struct gi_flights *f)
{
	return (f->first + f->flying) % GI_FLIGHTS;
}

static bool has_event(CUevent *e)
{
	return *e || !gi_real.cuEventCreate(e, CU_EVENT_DEFAULT);
}

int gi_flight_begin(struct gi_flights *f, struct gi_ctx *cx, CUstream stream)
{
	unsigned int i = next_free(f);

	if (f->flying == GI_FLIGHTS || (f->flying && f->cx != cx))
		return -1;
	if (f->cx != cx)
		gi_flights_drop(f);
	f->cx = cx;
	if (!has_event(&f->begin[i]) || !has_event(&f->end[i]) ||
	    gi_real.cuEventRecord(f->begin[i], stream))
		return -1;
	return (int)i;
}

bool gi_flight_end(struct gi_flights *f, CUstream stream)
{
	if (gi_real.cuEventRecord(f->end[next_free(f)], stream))
		return false;
	f->flying++;
	return true;
}

int gi_flight_poll(const struct gi_flights *f, uint64_t *ns)
{
	float ms;

	if (!f->flying || gi_real.cuEventQuery(f->end[f->first]) == CUDA_ERROR_NOT_READY)
		return -1;
	*ns = 0;
	if (!gi_real.cuEventElapsedTime(&ms, f->begin[f->first], f->end[f->first]) && ms >= 0 &&
	    ms < MS_MAX)
		*ns = (uint64_t)(ms * 1e6f) + 1;
	return (int)f->first;
}

void gi_flight_forget(struct gi_flights *f)
{
	f->first = (f->first + 1) % GI_FLIGHTS;
	f->flying--;
}

void gi_flights_drop(struct gi_flights *f)
{
	unsigned int i;

	for (i = 0; i < GI_FLIGHTS; i++) {
		if (f->begin[i])
			gi_real.cuEventDestroy_v2(f->begin[i]);
		if (f->end[i])
			gi_real.cuEventDestroy_v2(f->end[i]);
	}
	memset(f, 0, sizeof(*f));
}
