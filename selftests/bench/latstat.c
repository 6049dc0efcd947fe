/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * latstat LOG BEGIN_NS END_NS: count, median, p90, p99 and maximum in us of the latencies
 * ("start_ns latency_ns" a line) whose request began inside the interval, as JSON. The percentile
 * is the nearest rank.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double rank(const uint64_t *v, size_t n, unsigned int percent)
{
	size_t i = (n * percent + 99) / 100;

	return (double)v[i ? i - 1 : 0] / 1e3;
}

int main(int argc, char **argv)
{
	uint64_t begin, end, start, took, *v = NULL, *more;
	size_t n = 0, room = 0;
	FILE *f;

	if (argc != 4) {
		fprintf(stderr, "usage: latstat LOG BEGIN_NS END_NS\n");
		return 2;
	}
	begin = strtoull(argv[2], NULL, 10);
	end = strtoull(argv[3], NULL, 10);
	f = fopen(argv[1], "re");
	if (!f) {
		perror(argv[1]);
		return 1;
	}
	while (fscanf(f, "%" SCNu64 " %" SCNu64, &start, &took) == 2) {
		if (start < begin || start > end)
			continue;
		if (n == room) {
			room = room ? 2 * room : 1024;
			more = realloc(v, room * sizeof(*v));
			if (!more) {
				fprintf(stderr, "latstat: out of memory\n");
				return 1;
			}
			v = more;
		}
		v[n++] = took;
	}
	fclose(f);
	if (!n) {
		fprintf(stderr, "latstat: %s: no request between %s and %s\n", argv[1],
			argv[2], argv[3]);
		return 1;
	}
	qsort(v, n, sizeof(*v), by_value);
	printf("{\"requests\":%zu,\"median_us\":%.1f,\"p90_us\":%.1f,\"p99_us\":%.1f,"
	       "\"max_us\":%.1f}\n", n, rank(v, n, 50), rank(v, n, 90),
	       rank(v, n, 99), (double)v[n - 1] / 1e3);
	free(v);
	return 0;
}
