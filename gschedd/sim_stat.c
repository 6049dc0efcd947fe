// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: latencies of a program, and metrics of the system. */
#include <math.h>
#include <stdlib.h>
#include "sim_stat.h"

int sim_samples_add(struct sim_samples *samples, uint64_t ns)
{
	size_t size = samples->size ? 2 * samples->size : 16;
	uint64_t *new;

	if (samples->n == samples->size) {
		new = realloc(samples->ns, size * sizeof(*new));
		if (!new)
			return -1;
		samples->ns = new;
		samples->size = size;
	}
	samples->ns[samples->n++] = ns;
	return 0;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double quantile_us(const struct sim_samples *samples, unsigned int percent)
{
	size_t rank = (samples->n * percent + 99) / 100;

	return (double)samples->ns[rank ? rank - 1 : 0] / 1000;
}

void sim_samples_take(struct sim_samples *samples, struct sim_client_result *result)
{
	double sum = 0;

	result->launches = samples->n;
	result->mean_us = NAN;
	result->p50_us = NAN;
	result->p99_us = NAN;
	if (!samples->n)
		return;
	for (size_t i = 0; i < samples->n; i++)
		sum += (double)samples->ns[i] / 1000;
	result->mean_us = sum / (double)samples->n;
	qsort(samples->ns, samples->n, sizeof(*samples->ns), compare_ns);
	result->p50_us = quantile_us(samples, 50);
	result->p99_us = quantile_us(samples, 99);
}

void sim_samples_free(struct sim_samples *samples)
{
	free(samples->ns);
	*samples = (struct sim_samples){ 0 };
}

double sim_stat_ntt(const struct sim_samples *samples, const struct sim_samples *alone)
{
	size_t n = samples->n < alone->n ? samples->n : alone->n;
	double sum = 0, sum_alone = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (double)samples->ns[i];
		sum_alone += (double)alone->ns[i];
	}
	return n ? sum / sum_alone : NAN;
}

void sim_stat_system(struct sim_result *result)
{
	result->antt = 0;
	result->stp = 0;
	for (size_t i = 0; i < result->n_clients; i++) {
		result->antt += result->clients[i].ntt / (double)result->n_clients;
		result->stp += 1 / result->clients[i].ntt;
	}
}
