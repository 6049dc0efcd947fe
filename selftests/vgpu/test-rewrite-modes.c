// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a window means, mode by mode (rewriter/abi.h, GSR_LAUNCH_BY_*): a twin's workers on
 * simulated SMs with ids that are not dense, in slices by chance, until nobody leaves any more;
 * then as many are there as the window says. And what static ranges and stripes mean: who runs
 * which block-task, in which order.
 */
#include <stdlib.h>
#include <string.h>
#include "exec.h"
#include "rewriter/gsr.h"
#include "test-exec.h"
#include "uapi/linux/gsched.h"

#define SMS		8
#define PER_SM		4
#define WEIGHT		(GSCHED_CAPSM / PER_SM)
#define WORKERS_MAX	(SMS * PER_SM)
#define FOR_EVER	0x7fffffff	/* block-tasks */

static const char kernel[] =
	".version 8.6\n.target sm_75\n.address_size 64\n"
	".visible .entry count (.param .u64 log)\n{\n"
	".reg .u64 %rd<2>; .reg .u32 %r<3>;\n"
	"ld.param.u64 %rd1, [log];\n"
	"mov.u32 %r2, %ctaid.x;\n"
	"st.global.u32 [%rd1+4], %r2;\n"
	"atom.global.add.u32 %r1, [%rd1], 1;\n"
	"ret;\n}\n";

/* The hardware: SMs by any id, some of them somebody else's */
struct device {
	struct gsr_control *control;
	uint64_t window;
	struct gsched_cl_slot stat;
	uint8_t params[256];
	struct gsr_launch *arg;
	struct vgpu_launch l;
	unsigned int id[SMS], resident[SMS], n;
	bool taken[SMS];	/* by another program */
	struct vgpu_block *worker[WORKERS_MAX];
	unsigned int sm[WORKERS_MAX];
};

static struct vgpu_kernel *twin;
static size_t launch_offset;
static uint32_t logged[2];	/* block-tasks run, the last one that began */
static uint64_t ticks, rng = 88172645463325252ull;

static unsigned int roll(unsigned int n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned int)((rng >> 33) % n);
}

static uint64_t timer(void)
{
	return ticks += 100;
}

static void device_new(struct device *d, uint32_t mode, uint64_t window)
{
	static const unsigned int ids[SMS] = { 17, 3, 900, 44, 5, 1023, 60, 2 };
	uintptr_t to = (uintptr_t)logged;
	unsigned int i;

	memset(d, 0, sizeof(*d));
	d->control = aligned_alloc(128, (sizeof(*d->control) + 127) & ~(size_t)127);
	if (!d->control)
		exit(1);
	d->window = window;
	gsr_control_init(d->control, window);
	d->stat.seq = 1;
	for (i = 0; i < SMS; i++)
		d->id[i] = ids[i];
	memcpy(d->params, &to, sizeof(to));
	d->arg = (void *)(d->params + launch_offset);
	*d->arg = (struct gsr_launch){
		.control = (uintptr_t)d->control, .window = (uintptr_t)&d->window,
		.stat = (uintptr_t)&d->stat, .grid = { FOR_EVER, 1, 1 },
		.seq = 1, .weight = WEIGHT, .poll_quarter = 1, .fetch_ns = 200, .fetch_max = 4,
		.workers = WORKERS_MAX, .flags = mode,
	};
	gsr_launch_order(d->arg, GSR_ORDER_STRICT, WORKERS_MAX, 4);
	d->l = (struct vgpu_launch){ .kernel = twin, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 },
				     .nsmid = GSR_SMS_MAX, .params = d->params };
}

static void device_free(struct device *d)
{
	while (d->n)
		vgpu_block_free(d->worker[--d->n]);
	free(d->control);
}

/*
 * A launch or a wing: one worker after another goes where there is most room, as the hardware does
 */
static void bring(struct device *d, unsigned int workers, unsigned int first)
{
	unsigned int id[3] = { 0 }, i, best;

	d->arg->first = first;
	d->l.grid[0] = workers;
	for (id[0] = 0; id[0] < workers; id[0]++) {
		for (i = 0, best = SMS; i < SMS; i++)
			if (!d->taken[i] && d->resident[i] < PER_SM &&
			    (best == SMS || d->resident[i] < d->resident[best]))
				best = i;
		if (best == SMS)
			return;
		d->worker[d->n] = vgpu_block_new(&d->l, id, d->id[best]);
		d->sm[d->n++] = best;
		d->resident[best]++;
	}
}

/* Worker @i is done, or at fault, which is said: then false. The last takes its number */
static bool gone(struct device *d, unsigned int i, enum vgpu_result r)
{
	if (r == VGPU_FAULT) {
		printf("# %s\n", vgpu_block_error(d->worker[i]));
		return false;
	}
	vgpu_block_free(d->worker[i]);
	d->resident[d->sm[i]]--;
	d->worker[i] = d->worker[--d->n];
	d->sm[i] = d->sm[d->n];
	return true;
}

/* Until each has looked at the window several times */
static bool settle(struct device *d)
{
	unsigned int slices;

	for (slices = 0; slices < 6000 && d->n; slices++) {
		unsigned int i = roll(d->n);
		enum vgpu_result r = vgpu_block_run(d->worker[i], 1 + roll(100), NULL);

		if (r != VGPU_RUNNING && !gone(d, i, r))
			return false;
	}
	return true;
}

static unsigned int sms_used(const struct device *d)
{
	unsigned int i, n = 0;

	for (i = 0; i < SMS; i++)
		n += d->resident[i] > 0;
	return n;
}

static void are_there(struct device *d, unsigned int sms, unsigned int workers, const char *what)
{
	bool good = settle(d) && d->n == workers && (!sms || sms_used(d) == sms);

	if (!ok(good, "%s", what))
		printf("# %u workers of %u, on %u SMs of %u\n", d->n, workers, sms_used(d), sms);
}

static uint64_t sms_window(unsigned int quarters)
{
	return quarters * GSCHED_CAPSM / 4;
}

static void by_rank(void)
{
	bool first[SMS];
	struct device d;
	unsigned int i;

	device_new(&d, 0, sms_window(4 * SMS));
	bring(&d, WORKERS_MAX, 0);
	are_there(&d, SMS, WORKERS_MAX, "by rank: the whole device, whatever the SMs' ids");
	d.window = sms_window(4 * 3);
	are_there(&d, 3, 3 * PER_SM, "by rank: a window of 3 SMs is 3 SMs");
	for (i = 0; i < SMS; i++)
		first[i] = d.resident[i];
	d.window = sms_window(4 * 6);
	d.control->relay = d.window;
	/* on more SMs than are wanted: those outside leave at once */
	bring(&d, 5 * PER_SM, sms_used(&d));
	are_there(&d, 6, 6 * PER_SM, "by rank: grown to 6");
	for (i = 0; i < SMS && (!first[i] || d.resident[i]); i++)
		;
	ok(i == SMS, "by rank: the 3 are among them");
	d.window = sms_window(10);
	are_there(&d, 3, 10, "by rank: 2 and a half, the third with half its workers");
	d.window = sms_window(0);
	are_there(&d, 0, 0, "by rank: none");
	/* meanwhile others have taken the SMs it had first */
	for (i = 0; i < SMS; i++)
		d.taken[i] = i < 4;
	d.window = sms_window(4 * 3);
	d.control->relay = d.window;
	bring(&d, WORKERS_MAX, 0);
	are_there(&d, 3, 3 * PER_SM, "by rank: on other SMs than before 3 are 3 again");
	/* a wing on the SMs that it is on already */
	d.window = sms_window(4 * 4);
	d.control->relay = d.window;
	bring(&d, PER_SM, 0);
	are_there(&d, 4, 4 * PER_SM, "by rank: a wing that reckons wrong comes all the same");
	device_free(&d);
	device_new(&d, 0, sms_window(4 * 5));
	bring(&d, WORKERS_MAX, 0);
	are_there(&d, 5, 5 * PER_SM, "by rank: launched with more than the window holds");
	d.window = 0;
	settle(&d);
	for (i = 0; i < GSR_SMS_MAX && !d.control->sm[i] && !d.control->ranks[i / 64]; i++)
		;
	ok(!d.n && i == GSR_SMS_MAX, "by rank: places and ranks are given back");
	device_free(&d);
	/* as on a large device, where words of ranks fill up before others */
	device_new(&d, 0, sms_window(4 * 132));
	d.control->ranks[0] = ~0ull;
	d.control->ranks[1] = ~0x00100200300c0800ull;
	bring(&d, WORKERS_MAX, 0);
	are_there(&d, SMS, WORKERS_MAX, "by rank: free numbers behind words that are full are found");
	device_free(&d);
}

static void by_index(void)
{
	struct device d;
	unsigned int i;

	device_new(&d, GSR_LAUNCH_BY_INDEX, sms_window(4 * SMS));
	bring(&d, WORKERS_MAX, 0);
	are_there(&d, SMS, WORKERS_MAX, "by index: the whole device");
	d.window = sms_window(7);
	are_there(&d, 0, 7, "by index: a limit of 7 workers is 7 workers");
	d.window = sms_window(20);
	d.control->relay = d.window;
	bring(&d, 13, d.n);
	are_there(&d, 0, 20, "by index: grown to 20");
	d.window = sms_window(26);
	d.control->relay = d.window;
	bring(&d, 12, 3);
	are_there(&d, 0, 26, "by index: a wing that is too large, and reckons wrong");
	d.window = sms_window(2);
	are_there(&d, 0, 2, "by index: 2");
	for (i = 0; i < SMS; i++)
		d.taken[i] = i < 4;
	d.window = sms_window(9);
	d.control->relay = d.window;
	bring(&d, WORKERS_MAX, 2);
	are_there(&d, 0, 9, "by index: wherever the hardware finds room");
	d.window = 0;
	settle(&d);
	for (i = 0; i < GSR_SMS_MAX && !d.control->sm[i]; i++)
		;
	ok(!d.n && i == GSR_SMS_MAX, "by index: indexes are given back");
	device_free(&d);
}

/* ---- static ranges ---- */

#define EACH	10	/* block-tasks of a range */
#define TOTAL	(WORKERS_MAX * EACH)

struct ranges {
	struct gsr_ranges *at;
	unsigned int number[WORKERS_MAX];	/* of each block, by d->worker */
	unsigned int by[TOTAL], times[TOTAL];	/* block-task: number of the worker that ran it, how
						 * often */
	unsigned int order[WORKERS_MAX][TOTAL], n[WORKERS_MAX];	/* by worker's number */
};

static void ranges_new(struct device *d, struct ranges *r, uint32_t mode)
{
	size_t size = sizeof(*r->at) + WORKERS_MAX * sizeof(*r->at->next);

	device_new(d, mode, SMS * GSCHED_CAPSM);
	memset(r, 0, sizeof(*r));
	r->at = aligned_alloc(128, (size + 127) & ~(size_t)127);
	if (!r->at)
		exit(1);
	memset(r->at, 0, size);
	d->arg->grid[0] = TOTAL;
	gsr_launch_order(d->arg, GSR_ORDER_STRICT, WORKERS_MAX, 4);
	d->arg->ranges = (uintptr_t)r->at;
}

/* Before it runs on: its number is its place */
static void ranges_bring(struct device *d, struct ranges *r, unsigned int workers)
{
	unsigned int i, had = d->n;

	bring(d, workers, had);
	/* one after the other up to its first look: places go in this order */
	for (i = had; i < d->n; i++) {
		unsigned int k, place = 0;

		for (k = 0; k < i; k++)
			place += d->sm[k] == d->sm[i];
		r->number[i] = d->arg->flags & GSR_LAUNCH_BY_INDEX ? i : d->sm[i] * PER_SM + place;
		while (!d->control->sm[d->arg->flags & GSR_LAUNCH_BY_INDEX ? 0 : d->id[d->sm[i]]] ||
		       (unsigned int)__builtin_popcountll(d->control->sm[d->arg->flags &
									 GSR_LAUNCH_BY_INDEX ? 0 :
									 d->id[d->sm[i]]]) < place +
		       1)
			if (vgpu_block_run(d->worker[i], 1, NULL) != VGPU_RUNNING)
				break;
	}
}

/*
 * One block-task, or its end, of each worker whose number is in [@first, @end), in turns, until
 * each has run @tasks or none is left
 */
static bool ranges_run(struct device *d, struct ranges *r, unsigned int first, unsigned int end,
		       unsigned int tasks)
{
	unsigned int done[WORKERS_MAX] = { 0 }, i;
	bool more = true;

	while (more) {
		more = false;
		for (i = 0; i < d->n; i++) {
			unsigned int me = r->number[i];
			enum vgpu_result res = VGPU_RUNNING;
			uint32_t before = logged[0];

			if (me < first || me >= end || done[me] == tasks)
				continue;
			while (res == VGPU_RUNNING && logged[0] == before)
				res = vgpu_block_run(d->worker[i], 1, NULL);
			more = true;
			if (logged[0] != before) {
				r->by[logged[1]] = me;
				r->times[logged[1]]++;
				r->order[me][r->n[me]++] = logged[1];
				done[me]++;
			}
			if (res == VGPU_RUNNING)
				continue;
			if (!gone(d, i, res))
				return false;
			r->number[i] = r->number[d->n];
			i--;
		}
	}
	return true;
}

static void ranges_free(struct device *d, struct ranges *r)
{
	free(r->at);
	device_free(d);
}

static bool once(const struct ranges *r)
{
	unsigned int i;

	for (i = 0; i < TOTAL && r->times[i] == 1; i++)
		;
	return i == TOTAL;
}

/* eq. 3, 4: from number * EACH on, in their order */
static bool own_first(const struct ranges *r, unsigned int me, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && i < r->n[me] && r->order[me][i] == me * EACH + i; i++)
		;
	return i == n;
}

static void undisturbed(uint32_t mode, const char *what)
{
	struct ranges r;
	struct device d;
	unsigned int i;
	bool good;

	ranges_new(&d, &r, mode);
	ranges_bring(&d, &r, WORKERS_MAX);
	good = ranges_run(&d, &r, 0, WORKERS_MAX, TOTAL) && once(&r);
	for (i = 0; i < WORKERS_MAX; i++)
		good = good && own_first(&r, i, EACH) && r.n[i] == EACH;
	ok(good, "static, %s: each worker runs its own range, in order", what);
	ok(!d.control->exhausted && !d.control->counter[0].next &&
	   r.at->taken_count == WORKERS_MAX && d.control->gate == 1 && d.control->done == TOTAL,
	   "static, %s: without the counter, and the gate opens", what);
	ranges_free(&d, &r);
}

/*
 * SMGuard's algorithm 2: 8 CapSMs, the last 3 are evicted; by eq. 5 to 7 CapSM 0 goes on with 5, 1
 * with 6, 2 with 7
 */
static void remapped(uint32_t mode, const char *what)
{
	const unsigned int stay = SMS - 3;
	unsigned int i, place, from, to;
	struct ranges r;
	struct device d;
	bool good;

	ranges_new(&d, &r, mode);
	ranges_bring(&d, &r, WORKERS_MAX);
	good = ranges_run(&d, &r, 0, WORKERS_MAX, 4);
	d.window = stay * GSCHED_CAPSM;
	/* the evicted run what they have fetched, and leave */
	good = good && ranges_run(&d, &r, stay * PER_SM, WORKERS_MAX, TOTAL);
	ok(good && d.n == stay * PER_SM && r.at->taken_count == stay * PER_SM &&
	   d.stat.left == 3 * PER_SM, "static, %s: 3 of 8 CapSMs are evicted, and "
				      "leave their ranges", what);
	/*
	 * those that have something to take over first: the others would take it as what nobody has
	 */
	good = ranges_run(&d, &r, 0, 3 * PER_SM, TOTAL);
	for (i = 0; i < 3 * PER_SM; i++) {
		unsigned int left = 0, me, k;

		place = i % PER_SM;
		me = i / PER_SM * PER_SM + place;
		from = (stay + i / PER_SM) * PER_SM + place;
		while (left < EACH && r.by[from * EACH + left] == from)
			left++;
		to = (from + 1) * EACH;
		good = good && left >= 4 && left < EACH && own_first(&r, me, EACH) &&
		       r.n[me] == EACH + EACH - left;
		for (k = EACH; good && k < r.n[me]; k++)
			good = r.order[me][k] == from * EACH + left + k - EACH &&
			       r.order[me][k] < to;
	}
	ok(good, "static, %s: after its own a worker goes on where the one that it stands for "
	   "stopped (eq. 5 to 8)", what);
	good = ranges_run(&d, &r, 0, WORKERS_MAX, TOTAL);
	ok(good && once(&r) && !d.n && d.control->gate == 1,
	   "static, %s: each block-task once, and no wing was needed", what);
	ranges_free(&d, &r);
}

static void winged(void)
{
	struct ranges r;
	struct device d;
	bool good;

	ranges_new(&d, &r, 0);
	ranges_bring(&d, &r, WORKERS_MAX);
	good = ranges_run(&d, &r, 0, WORKERS_MAX, 3);
	d.window = 0;
	good = good && ranges_run(&d, &r, 0, WORKERS_MAX, TOTAL);
	ok(good && !d.n && !r.at->taken_count && d.stat.left == WORKERS_MAX && d.control->gate != 1,
	   "static: all are evicted, all ranges are left");
	d.window = d.control->relay = SMS * GSCHED_CAPSM;
	ranges_bring(&d, &r, 5);
	good = ranges_run(&d, &r, 0, WORKERS_MAX, TOTAL);
	ok(good && once(&r) && d.control->gate == 1, "static: a wing of 5 workers ends them all");
	ranges_free(&d, &r);
}

/* Worker @i up to its next block-task: its number; FOR_EVER: it has none */
static uint32_t next_of(struct device *d, unsigned int i)
{
	uint32_t before = logged[0];

	while (logged[0] == before)
		if (vgpu_block_run(d->worker[i], 1, NULL) != VGPU_RUNNING)
			return FOR_EVER;
	return logged[1];
}

/*
 * Workers that keep step run neighbours, in rows, as the hardware would start them; in a strict
 * order each runs what it has fetched
 */
static void in_stripes(enum gsr_order order, const char *how)
{
	enum { TOTAL_STRIPES = 151, ROWS = 4, WIDE = 4 };
	unsigned int round, i, times[TOTAL_STRIPES] = { 0 }, more = 1, odd = 0, missing = 0;
	struct device d;
	bool row;

	device_new(&d, 0, SMS * GSCHED_CAPSM);
	d.arg->grid[0] = TOTAL_STRIPES;
	d.arg->fetch_ns = 100000;
	d.arg->workers = WIDE;
	gsr_launch_order(d.arg, order, WIDE, ROWS);
	bring(&d, WIDE, 0);
	for (round = 0; more; round++) {
		uint32_t seen = 0;

		for (i = more = 0; i < WIDE; i++) {
			uint32_t b = next_of(&d, i);

			more |= b < TOTAL_STRIPES;
			if (b < TOTAL_STRIPES)
				times[b]++;
			seen |= b / WIDE == round ? 1u << b % WIDE : 0;
		}
		row = seen == (1u << WIDE) - 1;
		if (round < 2 * ROWS)
			odd += row != (order == GSR_ORDER_STRIPES || !round);
	}
	for (i = 0; i < TOTAL_STRIPES; i++)
		missing += times[i] != 1;
	ok(!odd, "%s: the first rows (%u are not so)", how, odd);
	ok(!missing && d.control->done == TOTAL_STRIPES && d.control->gate == 1,
	   "%s: each block-task once (%u are not)", how, missing);
	device_free(&d);
}

/*
 * The factors by which block-tasks' numbers are divided, for all sizes of a grid and numbers of 31
 * bits
 */
static void divided(void)
{
	unsigned int i, k, wrong = 0;

	for (i = 0; i < 3000; i++) {
		uint32_t x = i < 1000 ? i + 1 : 1 + roll(0x7fffffff) / (1u << roll(31));
		struct gsr_launch a = { .grid = { x, 1, 1 } };

		gsr_launch_order(&a, GSR_ORDER_STRIPES, 4, 4);
		for (k = 0; k < 100; k++) {
			uint32_t n = k < 20 ? 0x7fffffff - k :
				     k < 60 ? x * (roll(0x7fffffff) / x) - (k & 1) :
				     roll(0x7fffffff);

			n &= 0x7fffffff;
			wrong += (uint32_t)((uint64_t)(2 * n) * a.divide[0].factor >> 32) >>
				a.divide[0].shift != n / x;
		}
	}
	ok(!wrong, "numbers are divided exactly");
}

/*
 * The page lies behind a slow bus: how often all workers together read it, when it says something
 * else each time
 */
static void polls(unsigned int copies)
{
	const uint64_t poll_ns = 40000;
	unsigned int slices, n = 0, stale = 0, k;
	uint64_t seen, begin, took;
	struct device d;

	device_new(&d, 0, sms_window(4 * SMS));
	d.arg->poll_quarter = (uint32_t)poll_ns / 4;
	d.arg->last_copy = copies - 1;
	bring(&d, WORKERS_MAX, 0);
	/* a window above the device would have ranks that are outside of it for those that start */
	settle(&d);
	begin = ticks;
	seen = d.control->relay;
	for (slices = 0; slices < 200000 && d.n == WORKERS_MAX; slices++) {
		d.window = SMS * GSCHED_CAPSM + slices;
		if (vgpu_block_run(d.worker[roll(d.n)], 1 + roll(100), NULL) != VGPU_RUNNING)
			break;
		n += seen != d.control->relay;
		seen = d.control->relay;
	}
	took = ticks - begin;
	/* what each copy says is that once those that are just being written are */
	settle(&d);
	seen = d.control->relay;
	for (k = 0; k < copies; k++)
		stale += d.control->copy[k].window != seen;
	if (!ok(slices == 200000 && n <= took / poll_ns + 1 &&
		n >= took / poll_ns / 2 && !stale,
		"%u copies of the relay: the page is read once in poll_ns", copies))
		printf("# %u workers, %u polls in %llu ns, %u stale copies\n", d.n, n,
		       (unsigned long long)took, stale);
	device_free(&d);
}

int main(void)
{
	const struct gsr_options opts = { .size = sizeof(opts), .modes = true };
	struct vgpu_module *m;
	struct gsr_rewrite rw;
	struct gsr_error err;
	char why[512] = "";

	vgpu_globaltimer = timer;
	if (gsr_rewrite_ptx(kernel, strlen(kernel), &opts, &rw, &err) != GSR_OK || !rw.ptx) {
		ok(false, "rewritten: %s", err.message);
		return done();
	}
	m = vgpu_module_load(rw.ptx, rw.ptx_size, why, sizeof(why));
	twin = m ? vgpu_module_kernel(m, "count" GSR_SUFFIX) : NULL;
	launch_offset = rw.kernels[0].launch_offset;
	if (!ok(twin, "loaded %s", why))
		return done();
	by_rank();
	by_index();
	undisturbed(0, "by rank");
	undisturbed(GSR_LAUNCH_BY_INDEX, "by index");
	remapped(0, "by rank");
	remapped(GSR_LAUNCH_BY_INDEX, "by index");
	winged();
	in_stripes(GSR_ORDER_STRIPES, "stripes");
	in_stripes(GSR_ORDER_STRICT, "strict order");
	divided();
	polls(1);
	polls(8);
	polls(GSR_RELAY_COPIES);
	vgpu_module_free(m);
	gsr_rewrite_free(&rw);
	return done();
}
