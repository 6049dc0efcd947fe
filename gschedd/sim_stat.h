/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl simulate: latencies of a program, and metrics of the system. */
#ifndef GSCHED_SIM_STAT_H
#define GSCHED_SIM_STAT_H

#include "sim.h"

int sim_samples_add(struct sim_samples *samples, uint64_t ns);	/* -1: out of memory */
/* Number, mean and quantiles (nearest rank), NAN if there are no samples; sorts them. */
void sim_samples_take(struct sim_samples *samples, struct sim_client_result *result);
/*
 * NTT: time of the launches divided by that of the same ones @alone, as far as both ended; NAN:
 * none.
 */
double sim_stat_ntt(const struct sim_samples *samples, const struct sim_samples *alone);
/*
 * Metrics of NTT_i, the normalised turnaround time of client i: ANTT is their mean, STP the sum of
 * 1 / NTT_i (Eyerman and Eeckhout, System-level performance metrics for multiprogram workloads,
 * IEEE Micro 28(3), 2008; FLEP 6.1, SMGuard equations 9 and 10).
 */
void sim_stat_system(struct sim_result *result);

#endif /* GSCHED_SIM_STAT_H */
