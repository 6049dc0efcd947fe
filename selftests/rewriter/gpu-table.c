// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the twins cost, as a table for people and as JSON for programs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "gpu.h"

struct sum {
	double log, worst;
	unsigned int n;
	const char *who;
};

static bool timed(const struct gpu_row *row)
{
	return row->r.good && row->r.timing.pairs;
}

/* Kernels with sizes for a real device, or all */
static struct sum sum_of(const struct gpu_row *rows, unsigned int n, bool all)
{
	struct sum s = { .worst = -1 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!timed(&rows[i]) || (!all && rows[i].scale < 2))
			continue;
		s.log += log1p(rows[i].r.timing.overhead);
		s.n++;
		if (rows[i].r.timing.overhead > s.worst) {
			s.worst = rows[i].r.timing.overhead;
			s.who = rows[i].kernel;
		}
	}
	return s;
}

static double mean(const struct sum *s)
{
	return s->n ? expm1(s->log / s->n) : 0;
}

/* Of each file once: lines rewritten, and how long that took */
static void rewriting(const struct gpu_row *rows, unsigned int n, double *ms, unsigned int *lines)
{
	unsigned int i;

	*ms = 0;
	*lines = 0;
	for (i = 0; i < n; i++)
		if (rows[i].r.lines && (!i || strcmp(rows[i].file, rows[i - 1].file))) {
			*ms += (double)rows[i].r.rewrite_ns / 1e6;
			*lines += rows[i].r.lines;
		}
}

static FILE *begin(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (!f)
		fprintf(stderr, "corpus-gpu: %s: %s\n", path, strerror(errno));
	return f;
}

static bool end(FILE *f, const char *path)
{
	bool bad = ferror(f) != 0;

	bad |= f == stdout ? fflush(f) != 0 : fclose(f) != 0;
	if (bad)
		fprintf(stderr, "corpus-gpu: %s: %s\n", path, strerror(errno));
	return !bad;
}

static void line(FILE *f, const struct gpu_row *row)
{
	const struct gpu_report *r = &row->r;
	const struct gpu_timing *t = &r->timing;
	char used[32] = "";

	if (r->workers_per_sm && r->workers_per_sm < r->per_sm[1])
		snprintf(used, sizeof(used), " (%d used)", r->workers_per_sm);
	fprintf(f, "| %s | %s | %llu x %u | %.2f | %.3f (%.3f) | %.3f (%.3f) | %+.2f "
		"(%+.2f..%+.2f) | %+.2f | %d -> %d%s | %d -> %d%s |", row->file, row->kernel,
		(unsigned long long)t->blocks, row->threads, (double)t->block_us,
		(double)t->median_ms[0], (double)t->p99_ms[0], (double)t->median_ms[1],
		(double)t->p99_ms[1], 100 * (double)t->overhead, 100 * (double)t->low,
		100 * (double)t->high, 100 * (double)t->drift, r->regs[0], r->regs[1],
		r->cap ? " (capped)" : "", r->per_sm[0], r->per_sm[1], used);
	if (t->evictions)
		fprintf(f, " %.0f (%.0f) |", (double)t->evict_us, (double)t->evict_max_us);
	else
		fprintf(f, " - |");
	fprintf(f, " %.0f, %.0f |\n", (double)r->load_ns[0] / 1e6, (double)r->load_ns[1] / 1e6);
}

bool gpu_table(const char *path, const struct gpu_row *rows, unsigned int n,
	       const struct gpu_report *device, const struct gpu_options *o)
{
	struct sum real = sum_of(rows, n, false), all = sum_of(rows, n, true);
	FILE *f = begin(path);
	unsigned int i, lines;
	double ms;

	if (!f)
		return false;
	fprintf(f, "%s, sm_%u, %u SMs, driver's CUDA %u.%u%s. Original and twin in turns, %u "
		"pairs; times by the device's events, launch parameters as the interposer's.\n\n",
		device->device, device->arch, device->sms, device->driver / 1000,
		device->driver % 1000 / 10,
		o->restart   ? "; twins that leave block-tasks in their middle, to begin again" :
		o->resumable ? "; twins that can leave block-tasks in their middle" :
			       "",
		o->pairs);
	fprintf(f, "| file | kernel | blocks x threads | block-task, us | original, ms: median "
		"(p99) | twin | overhead, %%: median (quartiles) | original's drift, %% | "
		"registers | blocks per SM | evicted after, us: median (most) | file's load, "
		"original and twins, ms |\n"
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (i = 0; i < n; i++)
		if (timed(&rows[i]))
			line(f, &rows[i]);
	fprintf(f, "\n");
	if (real.n)
		fprintf(f, "Kernels of real size (%u): geometric mean %+.2f %%, worst "
			"%+.2f %% (%s). ", real.n, 100 * mean(&real), 100 * real.worst, real.who);
	if (all.n)
		fprintf(f, "All %u: %+.2f %%, worst %+.2f %% (%s).\n", all.n, 100 * mean(&all),
			100 * all.worst, all.who);
	rewriting(rows, n, &ms, &lines);
	if (lines)
		fprintf(f, "Rewriting: %.2f ms for %u lines of PTX, %.3f ms for 1000.\n", ms, lines,
			ms * 1000 / lines);
	for (i = 0; i < n; i++)
		if (!timed(&rows[i]))
			fprintf(f, "%s %s: %s\n", rows[i].file, rows[i].kernel,
				rows[i].r.why[0] ? rows[i].r.why : "not timed");
	return end(f, path);
}

static void text(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 32)
			fputc(' ', f);
		else
			fputc(*s, f);
	fputc('"', f);
}

bool gpu_json(const char *path, const struct gpu_row *rows, unsigned int n,
	      const struct gpu_report *device, const struct gpu_options *o)
{
	struct sum real = sum_of(rows, n, false), all = sum_of(rows, n, true);
	FILE *f = begin(path);
	unsigned int i, lines;
	double ms;

	if (!f)
		return false;
	rewriting(rows, n, &ms, &lines);
	fprintf(f, "{\n\"device\": ");
	text(f, device->device);
	fprintf(f, ", \"arch\": %u, \"sms\": %u, \"cuda\": %u, \"resumable\": %s,\n", device->arch,
		device->sms, device->driver, o->resumable ? "true" : "false");
	fprintf(f, "\"mean\": %.6f, \"worst\": %.6f, \"mean_all\": %.6f, \"worst_all\": %.6f,\n",
		mean(&real), real.n ? real.worst : 0, mean(&all), all.n ? all.worst : 0);
	fprintf(f, "\"rewrite_ms\": %.4f, \"rewrite_lines\": %u,\n\"kernels\": [", ms, lines);
	for (i = 0; i < n; i++) {
		const struct gpu_report *r = &rows[i].r;
		const struct gpu_timing *t = &r->timing;

		fprintf(f, "%s\n{\"file\": ", i ? "," : "");
		text(f, rows[i].file);
		fprintf(f, ", \"kernel\": ");
		text(f, rows[i].kernel);
		fprintf(f, ", \"real_size\": %s, \"good\": %s, ", rows[i].scale > 1 ? "true" :
			"false", r->good ? "true" : "false");
		fprintf(f, "\"registers\": [%d, %d], \"cap\": %u, \"blocks_per_sm\": [%d, %d], "
			"\"workers_per_sm\": %d, \"local\": [%d, %d], \"resume_points\": %u, ",
			r->regs[0], r->regs[1], r->cap, r->per_sm[0], r->per_sm[1],
			r->workers_per_sm, r->local[0], r->local[1], r->resume_points);
		fprintf(f, "\"load_ms\": [%.3f, %.3f], \"pairs\": %u, \"blocks\": %llu, "
			"\"threads\": %u, ", (double)r->load_ns[0] / 1e6,
			(double)r->load_ns[1] / 1e6, t->pairs, (unsigned long long)t->blocks,
			rows[i].threads);
		fprintf(f, "\"median_ms\": [%.6f, %.6f], \"p99_ms\": [%.6f, %.6f], \"overhead\": "
			"%.6f, \"quartiles\": [%.6f, %.6f], \"drift\": %.6f, \"block_us\": %.4f, "
			"\"evictions\": %u, \"evict_us\": %.2f, \"evict_max_us\": %.2f",
			(double)t->median_ms[0], (double)t->median_ms[1], (double)t->p99_ms[0],
			(double)t->p99_ms[1], (double)t->overhead, (double)t->low, (double)t->high,
			(double)t->drift, (double)t->block_us, t->evictions, (double)t->evict_us,
			(double)t->evict_max_us);
		if (!r->good) {
			fprintf(f, ", \"why\": ");
			text(f, r->why);
		}
		fprintf(f, "}");
	}
	fprintf(f, "\n]\n}\n");
	return end(f, path);
}
