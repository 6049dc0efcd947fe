// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Originals against their rewritten twins: the same launch, once block by block in a shuffled order, once by workers on
 * simulated SMs that are interleaved in small slices while the window changes, shrinks to nothing, moves and grows, and
 * wings replace those who left. Memory, counts and gates must come out the same. Everything follows from the seed.
 *
 *	vgpu-rewrite [--seeds N] [--seed S] [--kernel NAME] [--drop N] [FILE.ptx...]
 *
 * Launches come from FILE.launch. --drop takes the N-th barrier or store to the task's words out of the twins: then this
 * must fail.
 */
#include <errno.h>
#include <glob.h>
#include <linux/gsched.h>
#include "rewriter/gsr.h"
#include "test-exec.h"
#include "test-rewrite.h"

#define SMS_MAX		6
#define WORKERS_MAX	256
#define SEQ		77
#define SLICES_MAX	500000	/* of one run: beyond, it hangs */

static uint64_t rng, now;

static uint64_t roll64(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng * 0x2545f4914f6cdd1dull;
}

static unsigned int roll(unsigned int n)
{
	return (unsigned int)((roll64() >> 33) % n);
}

static void reseed(uint64_t seed)
{
	unsigned int i;

	rng = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	for (i = 0; i < 4; i++)
		roll64();
}

static uint64_t simulated_time(void)
{
	return now;
}

/* The buffers of a launch: what they hold at first, and where they are */
struct memory {
	unsigned int n;
	uint8_t *at[LAUNCH_PARAMS_MAX], *first[LAUNCH_PARAMS_MAX], *result[LAUNCH_PARAMS_MAX];
	size_t size[LAUNCH_PARAMS_MAX];
};

static bool memory_new(struct memory *m, const struct test_launch *l)
{
	unsigned int i, b;
	size_t k;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < l->n_params; i++) {
		const struct test_param *p = &l->params[i];

		if (p->kind != PARAM_BUFFER)
			continue;
		b = m->n++;
		m->size[b] = p->size;
		m->at[b] = aligned_alloc(256, (p->size + 511) & ~(size_t)255);
		m->first[b] = malloc(p->size + 1);
		m->result[b] = malloc(p->size + 1);
		if (!m->at[b] || !m->first[b] || !m->result[b])
			return false;
		for (k = 0; k < p->size; k++)
			m->first[b][k] = 0;
		for (k = 0; k + 4 <= p->size; k += 4) {
			uint32_t v = p->fill == FILL_ZERO ? 0 : ((uint32_t)(k / 4) * 2654435761u) >> 8;
			float f = (float)(k / 4 % 97) / 4;

			if (p->fill == FILL_FLOATS)
				memcpy(&v, &f, 4);
			memcpy(m->first[b] + k, &v, 4);
		}
	}
	return true;
}

static void memory_free(struct memory *m)
{
	unsigned int i;

	for (i = 0; i < m->n; i++) {
		free(m->at[i]);
		free(m->first[i]);
		free(m->result[i]);
	}
}

static void memory_reset(struct memory *m)
{
	unsigned int i;

	for (i = 0; i < m->n; i++)
		memcpy(m->at[i], m->first[i], m->size[i]);
}

/* What a kernel may touch: its buffers, and a twin the words of its launcher. Broken twins go astray. */
static const struct memory *mem_now;
static const struct sim *sim_now;

static bool params_fill(uint8_t *buf, const struct vgpu_kernel_info *info, const struct test_launch *l, const struct memory *m,
			char *why, size_t size)
{
	unsigned int i, b = 0;
	size_t k;

	if (info->n_params < l->n_params) {
		snprintf(why, size, "%u parameters described, kernel has %u", l->n_params, info->n_params);
		return false;
	}
	for (i = 0; i < l->n_params; i++) {
		const struct test_param *p = &l->params[i];
		uint8_t *to = buf + info->param[i].offset;
		size_t room = info->param[i].size;

		switch (p->kind) {
		case PARAM_BUFFER: {
			uint64_t a = (uintptr_t)m->at[b++];

			memcpy(to, &a, room < 8 ? room : 8);
			break;
		}
		case PARAM_VALUE:
			memcpy(to, &p->value, room < 8 ? room : 8);
			break;
		case PARAM_BYTES:
			for (k = 0; k < room; k++)
				to[k] = (uint8_t)(k * 7 + 1);
		}
	}
	return true;
}

static bool run_original(struct vgpu_kernel *k, const struct test_launch *t, struct memory *m, bool shuffle, char *why, size_t size)
{
	const struct vgpu_kernel_info *info = vgpu_kernel_info(k);
	unsigned int total = t->grid[0] * t->grid[1] * t->grid[2], i;
	unsigned int *order = calloc(total, sizeof(*order));
	uint8_t *params = calloc(1, info->param_size + 16);
	struct vgpu_launch l = { .kernel = k, .dynamic_shared = t->dynamic, .params = params, .nsmid = SMS_MAX,
				 .seed = shuffle ? roll64() : 0 };
	bool good = order && params && params_fill(params, info, t, m, why, size);

	memcpy(l.grid, t->grid, sizeof(l.grid));
	memcpy(l.block, t->block_dim, sizeof(l.block));
	memory_reset(m);
	for (i = 0; good && i < total; i++) {
		unsigned int j = shuffle ? roll(i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; good && i < total; i++) {
		unsigned int c = order[i], id[3] = { c % t->grid[0], c / t->grid[0] % t->grid[1], c / t->grid[0] / t->grid[1] };
		struct vgpu_block *b = vgpu_block_new(&l, id, roll(SMS_MAX));
		enum vgpu_result r = b ? vgpu_block_run(b, 1ull << 32, NULL) : VGPU_FAULT;

		if (r != VGPU_DONE) {
			snprintf(why, size, "original: %s", b ? vgpu_block_error(b) : "out of memory");
			good = false;
		}
		vgpu_block_free(b);
	}
	free(order);
	free(params);
	return good;
}

static struct {
	unsigned long long runs, workers, left, wings, changes, late;
} stats;

#define NOT_SEEN	0xdeadbeef

/* One run of a twin: the launcher, the arbiter and the GPU in one */
struct sim {
	struct gsr_control *control;
	uint64_t window;
	struct gsched_cl_slot stat;
	struct vgpu_block *worker[WORKERS_MAX];
	unsigned int sm[WORKERS_MAX];	/* of each worker */
	unsigned int n, pending, launched, wings, sms, per_sm, resident[SMS_MAX], weight;
	unsigned int early;		/* workers that ended while there was work to fetch */
	uint64_t changes;
};

static bool within(const void *p, size_t room, uint64_t addr, size_t size)
{
	uint64_t off = addr - (uintptr_t)p;

	return p && off < room && size <= room - off;
}

static bool may_access(uint64_t addr, size_t size, bool write)
{
	unsigned int i;

	for (i = 0; mem_now && i < mem_now->n; i++)
		if (within(mem_now->at[i], mem_now->size[i], addr, size))
			return true;
	return sim_now && (within(sim_now->control, sizeof(*sim_now->control), addr, size) ||
			   (!write && within(&sim_now->window, sizeof(sim_now->window), addr, size)) ||
			   within(&sim_now->stat, sizeof(sim_now->stat), addr, size));
}

static uint64_t any_window(const struct sim *s)
{
	unsigned int base, n;

	switch (roll(6)) {
	case 0:
	case 1:
		return GSCHED_WINDOW(0, 0);
	case 2:
		return GSCHED_WINDOW(0, s->sms * GSCHED_CAPSM);
	case 3:	/* parts of SMs */
		return GSCHED_WINDOW(roll(s->sms * GSCHED_CAPSM), roll(s->sms * GSCHED_CAPSM));
	default:
		base = roll(s->sms);
		n = 1 + roll(s->sms - base);
		return GSCHED_WINDOW(base * GSCHED_CAPSM, n * GSCHED_CAPSM);
	}
}

static void place(struct sim *s, struct vgpu_launch *l)
{
	while (s->pending && s->n < WORKERS_MAX) {
		unsigned int sm = roll(s->sms), k, id[3] = { 0 };

		for (k = 0; k < s->sms && s->resident[sm] == s->per_sm; k++)
			sm = (sm + 1) % s->sms;
		if (k == s->sms)
			return;
		id[0] = --s->pending;
		if (l->seed)
			l->seed = roll64() | 1;
		s->worker[s->n] = vgpu_block_new(l, id, sm);
		s->sm[s->n++] = sm;
		s->resident[sm]++;
	}
}

static bool finish(struct sim *s, unsigned int total, char *why, size_t size)
{
	const struct gsr_control *c = s->control;
	unsigned int i;

	if (c->done != total || c->gate != SEQ || s->stat.finished != SEQ) {
		snprintf(why, size, "done %llu of %u, gate %u, finished %u, seq %d", (unsigned long long)c->done, total, c->gate,
			 s->stat.finished, SEQ);
		return false;
	}
	for (i = 0; i < GSR_SMS_MAX; i++)
		if (c->sm_slots[i]) {
			snprintf(why, size, "SM %u: places 0x%x are still taken", i, c->sm_slots[i]);
			return false;
		}
	if (s->stat.left < s->early || s->stat.left > s->launched || s->stat.seen_limit == NOT_SEEN || !s->stat.end_ns || !s->stat.start_ns) {
		snprintf(why, size, "left %u of %u workers, %u before the last fetch, seen limit 0x%x, started %llu, ended %llu",
			 s->stat.left, s->launched, s->early, s->stat.seen_limit, (unsigned long long)s->stat.start_ns, (unsigned long long)s->stat.end_ns);
		return false;
	}
	/* the stamps are hints: a first worker may be held up before it writes its own */
	stats.late += s->stat.start_ns > s->stat.end_ns;
	return true;
}

static bool simulate(struct sim *s, struct vgpu_launch *l, unsigned int total, char *why, size_t size)
{
	unsigned int seen = 0, quiet = roll(3) ? 400 + roll(4000) : 0;
	uint64_t slices;
	bool good = true;

	for (slices = 0; slices < SLICES_MAX && good; slices++) {
		unsigned int i;
		enum vgpu_result r;

		place(s, l);
		if (s->stat.finished == SEQ && !s->n && !s->pending)
			return finish(s, total, why, size);
		now += roll(400);
		/* the arbiter changes its mind, until it has done so often enough */
		if (s->changes < quiet && roll(25) == 0) {
			s->window = any_window(s);
			s->changes++;
		} else if ((s->changes >= quiet || s->wings > 150) && s->window != GSCHED_WINDOW(0, s->sms * GSCHED_CAPSM)) {
			s->window = GSCHED_WINDOW(0, s->sms * GSCHED_CAPSM);
		}
		/* wings: for workers that left, or when nobody is there to go on */
		if (!s->pending && s->stat.finished != SEQ && (s->stat.left != seen || !s->n)) {
			if (GSCHED_WINDOW_LIMIT(s->window) && (roll(8) == 0 || !s->n)) {
				seen = s->stat.left;
				s->pending = 1 + roll(s->sms * s->per_sm);
				s->launched += s->pending;
				s->wings++;
				l->grid[0] = s->pending;
				/* a wing's window is written before it: its workers read it anew at their first look */
				if (roll(2))
					s->control->relay = s->window;
			} else if (!s->n) {
				s->changes++;
				s->window = any_window(s);
			}
		}
		if (!s->n)
			continue;
		i = roll(s->n);
		r = vgpu_block_run(s->worker[i], 1 + roll(roll(4) ? 300 : 20000), NULL);
		if (r == VGPU_RUNNING)
			continue;
		if (r == VGPU_FAULT) {
			snprintf(why, size, "twin: %s", vgpu_block_error(s->worker[i]));
			good = false;
		}
		s->early += s->control->next < total;
		vgpu_block_free(s->worker[i]);
		s->resident[s->sm[i]]--;
		s->worker[i] = s->worker[--s->n];
		s->sm[i] = s->sm[s->n];
	}
	if (good)
		snprintf(why, size, "not finished after %d slices: next %llu, done %llu of %u, %u workers, window 0x%llx", SLICES_MAX,
			 (unsigned long long)s->control->next, (unsigned long long)s->control->done, total, s->n,
			 (unsigned long long)s->window);
	return false;
}

static bool run_twin(struct vgpu_kernel *k, const struct gsr_kernel *g, const struct test_launch *t, struct memory *m, char *why,
		     size_t size)
{
	const struct vgpu_kernel_info *info = vgpu_kernel_info(k);
	unsigned int total = t->grid[0] * t->grid[1] * t->grid[2], workers;
	uint8_t *params = calloc(1, info->param_size + 16);
	struct vgpu_launch l = { .kernel = k, .dynamic_shared = t->dynamic, .params = params, .seed = roll64() | 1 };
	struct sim s = { .sms = 1 + roll(SMS_MAX), .per_sm = 1 + roll(4) };
	bool good = params && params_fill(params, info, t, m, why, size);
	struct gsr_launch a;

	if (g->launch_offset + sizeof(a) > info->param_size) {
		snprintf(why, size, "launch_offset %zu, the twin's parameters have %zu bytes", g->launch_offset, info->param_size);
		good = false;
	}
	s.control = aligned_alloc(128, (sizeof(*s.control) + 127) & ~(size_t)127);
	if (!good || !s.control)
		goto out;
	memset(s.control, 0, sizeof(*s.control));
	now = 1000000 + roll(1000000);
	s.weight = GSCHED_CAPSM / s.per_sm;
	s.window = roll(4) ? GSCHED_WINDOW(0, s.sms * GSCHED_CAPSM) : any_window(&s);
	s.control->relay = s.window;
	workers = s.sms * s.per_sm < total ? s.sms * s.per_sm : total;
	workers = roll(3) ? workers : 1 + roll(workers);
	a = (struct gsr_launch){
		.control = (uintptr_t)s.control, .window = (uintptr_t)&s.window, .stat = (uintptr_t)&s.stat,
		.grid = { t->grid[0], t->grid[1], t->grid[2] }, .seq = SEQ, .weight = s.weight, .poll_ns = 1 + roll(5000),
		.fetch_ns = 1000 + roll(20000), .fetch_max = 1 + roll(16), .workers = workers,
		.flags = roll(10) ? 0 : GSR_LAUNCH_NO_WINDOW,
	};
	memcpy(params + g->launch_offset, &a, sizeof(a));
	memcpy(l.block, t->block_dim, sizeof(l.block));
	l.grid[0] = s.pending = s.launched = workers;
	l.grid[1] = l.grid[2] = 1;
	l.nsmid = s.sms;
	s.stat.seq = SEQ;
	s.stat.seen_limit = NOT_SEEN;
	memory_reset(m);
	sim_now = &s;
	good = simulate(&s, &l, total, why, size);
	sim_now = NULL;
	stats.runs++;
	stats.workers += s.launched;
	stats.left += s.stat.left;
	stats.wings += s.wings;
	stats.changes += s.changes;
	while (s.n)
		vgpu_block_free(s.worker[--s.n]);
out:
	free(s.control);
	free(params);
	return good;
}

static bool same_memory(const struct memory *m, char *why, size_t size)
{
	unsigned int i;
	size_t k;

	for (i = 0; i < m->n; i++)
		for (k = 0; k < m->size[i]; k++)
			if (m->at[i][k] != m->result[i][k]) {
				snprintf(why, size, "buffer %u differs at byte %zu: 0x%02x, original 0x%02x", i, k, m->at[i][k],
					 m->result[i][k]);
				return false;
			}
	return true;
}

/* One launch, one seed */
static bool compare(struct vgpu_kernel *orig, struct vgpu_kernel *twin, const struct gsr_kernel *g, const struct test_launch *t,
		    uint64_t seed, char *why, size_t size)
{
	struct memory m;
	unsigned int i;
	bool good;

	reseed(seed);
	mem_now = &m;
	good = memory_new(&m, t) && run_original(orig, t, &m, true, why, size);
	if (good) {
		for (i = 0; i < m.n; i++)
			memcpy(m.result[i], m.at[i], m.size[i]);
		good = run_twin(twin, g, t, &m, why, size) && same_memory(&m, why, size);
	}
	mem_now = NULL;
	memory_free(&m);
	return good;
}

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		text = malloc((size_t)n + 1);
		if (text)
			text[*size = fread(text, 1, (size_t)n, f)] = 0;
	}
	fclose(f);
	return text;
}

/* Blank out the @n-th barrier, reduction or relaxed store of a PTX text; the line comes back. False: it has fewer. */
static bool drop_line(char *ptx, unsigned int n, char *what, size_t size)
{
	static const char *const kinds[] = { "bar.sync", "barrier.sync", "red.", "st.relaxed" };
	char *line, *end;
	unsigned int k;

	for (line = ptx; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		line += strspn(line, " \t");
		for (k = 0; k < 4 && strncmp(line, kinds[k], strlen(kinds[k])); k++)
			;
		if (k == 4 || n--)
			continue;
		snprintf(what, size, "%.*s", (int)(end - line), line);
		memset(line, ' ', (size_t)(end - line));
		return true;
	}
	return false;
}

struct options {
	unsigned int seeds;
	uint64_t seed;
	const char *kernel;
	int drop;		/* line to drop, -1 none */
};

struct file {
	char *text;
	size_t size;
	struct gsr_rewrite rw;
	struct vgpu_module *orig, *twins;
	char dropped[128];
};

static void file_close(struct file *f)
{
	vgpu_module_free(f->orig);
	vgpu_module_free(f->twins);
	gsr_rewrite_free(&f->rw);
	free(f->text);
}

static bool file_open(struct file *f, const char *path, int drop, char *why, size_t size)
{
	struct gsr_options o = { .size = sizeof(o), .name = path };
	struct gsr_error e = { 0 };

	memset(f, 0, sizeof(*f));
	f->text = read_file(path, &f->size);
	if (!f->text) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	f->orig = vgpu_module_load(f->text, f->size, why, size);
	if (!f->orig)
		return false;
	if (gsr_rewrite_ptx(f->text, f->size, &o, &f->rw, &e) != GSR_OK) {
		snprintf(why, size, "%s", e.message);
		return false;
	}
	if (drop >= 0 && f->rw.ptx && !drop_line(f->rw.ptx, (unsigned int)drop, f->dropped, sizeof(f->dropped))) {
		snprintf(why, size, "no line %d to drop", drop);
		return false;
	}
	if (f->rw.ptx)
		f->twins = vgpu_module_load(f->rw.ptx, strlen(f->rw.ptx), why, size);
	return f->twins || !f->rw.ptx;
}

static unsigned int arch_of(const char *ptx)
{
	const char *t = strstr(ptx, ".target sm_");

	return t ? (unsigned int)strtoul(t + strlen(".target sm_"), NULL, 10) : 0;
}

static const struct gsr_kernel *described(const struct file *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->rw.n_kernels; i++)
		if (!strcmp(f->rw.kernels[i].name, name))
			return &f->rw.kernels[i];
	return NULL;
}

/* Seeds until the first failure; -1 none failed */
static long long first_failure(const struct file *f, const struct test_launch *t, const struct options *o, char *why, size_t size)
{
	char twin[512];
	const struct gsr_kernel *g = described(f, t->kernel);
	struct vgpu_kernel *a = vgpu_module_kernel(f->orig, t->kernel), *b;
	unsigned int i;

	snprintf(twin, sizeof(twin), "%s" GSR_SUFFIX, t->kernel);
	b = f->twins ? vgpu_module_kernel(f->twins, twin) : NULL;
	if (!a || !b || !g) {
		snprintf(why, size, "%s", !a || !g ? "no such kernel" : "no twin");
		return (long long)o->seed;
	}
	for (i = 0; i < o->seeds; i++)
		if (!compare(a, b, g, t, o->seed + i, why, size))
			return (long long)o->seed + i;
	return -1;
}

static void test_file(const char *path, const struct options *o)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct test_launches all = { 0 };
	struct file f = { 0 };
	char why[2048] = "";
	unsigned int i;

	if (!launches_read(path, &all, why, sizeof(why)) || !file_open(&f, path, o->drop, why, sizeof(why))) {
		if (o->drop < 0 || strncmp(why, "no line", 7))
			ok(false, "%s: %s", base, why);
		file_close(&f);
		launches_free(&all);
		return;
	}
	for (i = 0; i < all.n; i++) {
		const struct test_launch *t = &all.launch[i];
		const struct gsr_kernel *g = described(&f, t->kernel);
		long long seed;

		if (o->kernel && strcmp(o->kernel, t->kernel))
			continue;
		if (!t->block || t->arch > arch_of(f.text))
			continue;
		if (g && g->tier != GSR_TIER_BLOCK) {
			ok(false, "%s: %s is not rewritten: %s", base, t->kernel, g->reason);
			continue;
		}
		seed = first_failure(&f, t, o, why, sizeof(why));
		if (!ok(seed < 0, "%s: %s %ux%ux%u, %u seeds", base, t->kernel, t->grid[0], t->grid[1], t->grid[2], o->seeds))
			printf("# --seed %lld --seeds 1 --kernel %s: %s\n", seed, t->kernel, why);
	}
	file_close(&f);
	launches_free(&all);
}

/*
 * The harness itself: a twin without any one of its barriers, reductions or stores must be caught, @spare excepted: what
 * another barrier of this kernel makes up for, and what only tells how things stand.
 */
static void test_harness(const char *path, const char *kernel, unsigned int seeds, unsigned int spare)
{
	struct options o = { .seeds = seeds, .seed = 1, .kernel = kernel };
	const struct test_launch *t = NULL;
	struct test_launches all = { 0 };
	unsigned int i, caught = 0, missed = 0;
	struct file f = { 0 }, whole = { 0 };
	char why[2048] = "";

	if (launches_read(path, &all, why, sizeof(why)) && file_open(&whole, path, -1, why, sizeof(why)))
		for (i = 0; i < all.n; i++)
			if (!strcmp(all.launch[i].kernel, kernel))
				t = &all.launch[i];
	for (o.drop = 0; t && file_open(&f, path, o.drop, why, sizeof(why)); o.drop++) {
		/* only what this kernel's twin has: the others' does not change it */
		char *head = strstr(f.rw.ptx, kernel), *tail = head ? strstr(head, "\n}") : NULL;

		if (head && tail && memcmp(head, strstr(whole.rw.ptx, kernel), (size_t)(tail - head))) {
			if (first_failure(&f, t, &o, why, sizeof(why)) >= 0) {
				caught++;
			} else {
				missed++;
				printf("# %s works without: %s\n", kernel, f.dropped);
			}
		}
		file_close(&f);
	}
	file_close(&f);
	file_close(&whole);
	ok(caught >= 2 && missed <= spare, "broken on purpose, the twin of %s is caught: %u ways of %u", kernel, caught, caught + missed);
	launches_free(&all);
}

static void report(void)
{
	printf("# %llu runs: %llu workers, %llu left early, %llu wings, %llu changes of the window, %llu started after their end\n",
	       stats.runs, stats.workers, stats.left, stats.wings, stats.changes, stats.late);
}

int main(int argc, char **argv)
{
	struct options o = { .seeds = 0, .seed = 1, .drop = -1 };
	bool some = false;
	glob_t g;
	size_t i;
	int k;

	setvbuf(stdout, NULL, _IOLBF, 0);
	vgpu_globaltimer = simulated_time;
	vgpu_access_ok = may_access;
	vgpu_strict = true;
	for (k = 1; k < argc; k++) {
		if (argv[k][0] != '-')
			some = true;
		else if (k + 1 < argc && !strcmp(argv[k], "--seeds"))
			o.seeds = (unsigned int)strtoul(argv[++k], NULL, 0);
		else if (k + 1 < argc && !strcmp(argv[k], "--seed"))
			o.seed = strtoull(argv[++k], NULL, 0);
		else if (k + 1 < argc && !strcmp(argv[k], "--kernel"))
			o.kernel = argv[++k];
		else if (k + 1 < argc && !strcmp(argv[k], "--drop"))
			o.drop = atoi(argv[++k]);
		else
			return fprintf(stderr, "usage: %s [--seeds N] [--seed S] [--kernel NAME] [--drop N] [FILE.ptx...]\n",
				       argv[0]), 2;
	}
	o.seeds = o.seeds ? o.seeds : 100;
	for (k = 1; some && k < argc; k++)
		if (argv[k][0] == '-')
			k++;
		else
			test_file(argv[k], &o);
	if (some) {
		report();
		return tap_done();
	}
	if (glob("selftests/rewriter/corpus/*.ptx", 0, NULL, &g))
		return fprintf(stderr, "no corpus: run from the top of the tree\n"), 2;
	for (i = 0; i < g.gl_pathc; i++)
		test_file(g.gl_pathv[i], &o);
	globfree(&g);
	if (o.drop < 0 && !o.kernel) {
		test_harness("selftests/rewriter/corpus/grids.sm_90.ptx", "grid2d", 60, 2);
		test_harness("selftests/rewriter/corpus/shared.sm_90.ptx", "reverse", 60, 3);
		report();
		ok(stats.left > stats.runs && stats.wings > stats.runs, "runs are evicted and grow");
	}
	return tap_done();
}
