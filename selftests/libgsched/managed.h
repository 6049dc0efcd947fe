/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program under the interposer, on a simulated GPU and with a stand-in arbiter of its own */
#ifndef SELFTESTS_LIBGSCHED_MANAGED_H
#define SELFTESTS_LIBGSCHED_MANAGED_H

#include "arbiter.h"
#include "run.h"

extern struct fake f;

/* Devices of this process, of 8 SMs: several tests may run at a time */
void device_begin(const char *test);
void device_end(void);

/* Starts the arbiter, for as many SMs */
void fake_begin(uint32_t lease);
/* Windows of running tasks change all the time, to anything, and never stay closed. */
void stir_begin(void);
void stir_end(void);

/* Waits for a word of a page to become what it should */
bool becomes(const uint32_t *word, uint32_t least);
bool becomes_64(const __u64 *word, uint64_t least);
/* The line of a task that has not ended, NULL: there is none */
struct gsched_cl_slot *running_slot(void);

#endif
