// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many SMs a client's recurring kernels need. A kernel of 132 short blocks spreads over 132
 * SMs, but may be as fast on 16. SMs that are kept free for it cost the others their part of the
 * device all the time, while the kernel uses them for microseconds. So it is given the smallest
 * size on which it takes, with its launch, no more than max_slowdown of its best time, or than what
 * its group's latency target leaves it. A client that keeps the device busy would lose throughput:
 * it is given nearly its best time. So is, without a target, one whose kernels need less than a
 * twentieth of the device for that: a kernel of 8 blocks, of which two run on an SM as fast as one,
 * has 4 SMs for 3 % of the device, where twice its time would be 1.5 %.
 *
 * Times are measured. Class k is a 2^(k/3)-th of what the kernel can fill; each completion is a
 * sample of the class that the kernel ran in. Smaller classes are tried now and then: half the size
 * while that is fast enough, then between the smallest that was and the largest that was not. One
 * fast sample accepts a class, for noise makes kernels slower; it takes three to reject one.
 *
 * All blocks fit on that size at once, unless they take an eighth of what they spread over: the
 * hardware gives those that do not to SMs where a worker is missing, and there they may stall.
 *
 * The size limits what is kept free between two kernels and what block-tasks of less important
 * clients are evicted for; the allocator still grants the rest where it would be idle. Times come
 * from the client: wrong ones only change which part of its own demand it is given.
 */
#include "decide.h"

#define TRIAL_EVERY	16	/* requests between two trials of a smaller class */
/* samples after which the next smaller class, too slow so far, may be tried again */
#define FORGET_EVERY	512
#define ENOUGH		3	/* samples to reject a class by */
#define OCTAVE		3	/* classes to half the size */
#define FEW_WAVES	8	/* the part of its SMs on which a kernel is to fit at once */
#define TOLERATED_NS	5000
/* What a program waits beside the kernel itself, if it launches one for it: 14 to 20 us (H200) */
#define LAUNCH_NS	20000
#define BUSY_EVERY	64	/* requests between two looks at how busy the client is */
#define NEAR_PERCENT	125	/* of its best time is nearly that */
#define CHEAP_PART	20	/* of the device, for nearly its best time */

static u32 class_sms(const struct gsc_sizes *sizes, u32 class)
{
	static const u32 part[OCTAVE] = { 1024, 813, 645 };	/* 1024 / 2^(i/3) */
	u32 sms = (u32)((u64)sizes->whole * part[class % OCTAVE] / 1024) >> class / OCTAVE;

	return max_t(u32, sms, 1);
}

/*
 * The class of a kernel that had @sms SMs; GSC_SIZE_CLASSES if it had fewer than the smallest one
 */
static u32 class_of(const struct gsc_sizes *sizes, u32 sms)
{
	u32 class;

	for (class = 0; class < GSC_SIZE_CLASSES && class_sms(sizes, class) > sms; class++)
		;
	return class;
}

static u32 find_best(const struct gsc_sizes *sizes)
{
	u32 best = 0, class;

	for (class = 0; class < GSC_SIZE_CLASSES; class++)
		if (sizes->ns[class] && (!best || sizes->ns[class] < best))
			best = sizes->ns[class];
	return best;
}

/* Longest time that a kernel may take on the size that is chosen for it */
struct limit {
	u64 ns;
	u64 cheap_ns;			/* on fewer than @cheap SMs */
	u32 cheap;
};

static struct limit limit_for(const struct gsc_client *client)
{
	const struct gsc_device *dev = client->dev;
	u64 percent = dev->param[GSC_PARAM_MAX_SLOWDOWN], best = client->sizes.best_ns;
	u64 near, far, target;

	near = max(div_u64(best * min_t(u64, percent, NEAR_PERCENT), 100), best + TOLERATED_NS);
	if (client->sizes.busy)
		return (struct limit){ .ns = near };
	far = max(div_u64((best + LAUNCH_NS) * percent, 100) - LAUNCH_NS, best + TOLERATED_NS);
	if (!client->group->latency_us)
		return (struct limit){ far, near, DIV_ROUND_UP(dev->sms, CHEAP_PART) };
	/* half of the target is for launching and waiting; a request's kernels share the rest */
	target = div_u64((u64)client->group->latency_us * 1000 / 2, gsc_burst(client));
	far = max(far, target);
	return (struct limit){ .ns = far };
}

static u64 limit_on(const struct gsc_sizes *sizes, const struct limit *limit, u32 class)
{
	return class_sms(sizes, class) < limit->cheap ? limit->cheap_ns : limit->ns;
}

/* Third highest of seven: a mixture counts as its slower kernel, and two outliers as nothing */
static u32 typical_ns(const struct gsc_size_samples *samples)
{
	u32 sorted[GSC_SIZE_SAMPLES] = { 0 }, i, k;

	for (i = 0; i < samples->n; i++) {
		for (k = i; k && sorted[k - 1] < samples->ns[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = samples->ns[i];
	}
	return sorted[samples->n / 3];
}

static void record(struct gsc_sizes *sizes, u32 class, u64 ran)
{
	struct gsc_size_samples *samples = &sizes->samples[class];

	samples->ns[samples->next] = min_t(u64, ran, U32_MAX);
	samples->next = (u8)((samples->next + 1) % GSC_SIZE_SAMPLES);
	samples->n = (u8)min(samples->n + 1, GSC_SIZE_SAMPLES);
	sizes->ns[class] = typical_ns(samples);
	sizes->best_ns = find_best(sizes);
	sizes->n_measured++;
}

/* The one in force may be a little slower, or noise would move it to and fro */
static bool is_fast(const struct gsc_sizes *sizes, u32 class, const struct limit *limit)
{
	u64 ns = limit_on(sizes, limit, class);

	return sizes->ns[class] && sizes->ns[class] <= (class == sizes->chosen ? ns + ns / 4 : ns);
}

static bool is_slow(const struct gsc_sizes *sizes, u32 class, const struct limit *limit)
{
	return sizes->samples[class].n >= ENOUGH &&
	       sizes->ns[class] > limit_on(sizes, limit, class);
}

/*
 * The smallest class that is fast enough. Nothing can be said before the time on the whole is
 * known.
 */
static u32 choose(const struct gsc_sizes *sizes, const struct limit *limit)
{
	u32 class = sizes->ns[0] ? sizes->last : 0;

	while (class && !is_fast(sizes, class, limit))
		class--;
	return class;
}

/* The largest class below the chosen one that is too slow; GSC_SIZE_CLASSES none */
static u32 next_slow(const struct gsc_sizes *sizes, const struct limit *limit)
{
	u32 class = sizes->chosen + 1;

	while (class < GSC_SIZE_CLASSES && !is_slow(sizes, class, limit))
		class++;
	return class;
}

static void forget(struct gsc_sizes *sizes, u32 first, u32 last)
{
	u32 class;

	for (class = first; class <= last && class < GSC_SIZE_CLASSES; class++) {
		memset(&sizes->samples[class], 0, sizeof(sizes->samples[class]));
		sizes->ns[class] = 0;
	}
	sizes->best_ns = find_best(sizes);
}

/*
 * Now and then a class that was too slow gets another chance: first the next smaller one alone,
 * since each trial costs the client slow kernels. If that is fast now, all that is known of smaller
 * ones may be wrong.
 */
static void reconsider(struct gsc_sizes *sizes, const struct limit *limit)
{
	u32 slow;

	if (sizes->retried && sizes->chosen >= sizes->retried) {
		forget(sizes, sizes->chosen + 1, GSC_SIZE_CLASSES - 1);
		sizes->retried = 0;
	} else if (sizes->n_measured >= FORGET_EVERY) {
		slow = next_slow(sizes, limit);
		forget(sizes, slow, slow);
		sizes->retried = slow;
		sizes->n_measured = 0;
	}
}

/* The class to try next; the chosen one: there is none */
static u32 candidate(const struct gsc_sizes *sizes, const struct limit *limit)
{
	u32 chosen = sizes->chosen, slow = next_slow(sizes, limit), class;

	if (slow < GSC_SIZE_CLASSES)
		class = chosen + (slow - chosen) / 2;
	else
		class = min_t(u32, chosen + OCTAVE, sizes->last);
	/* small wholes: of several classes of one size the first counts */
	class = class_of(sizes, class_sms(sizes, class));
	return max(class, chosen);
}

/*
 * A trial lasts until it is decided: kernels that are queued behind a running one still have what
 * that one has, and not every kernel is measured.
 */
static void plan_trial(struct gsc_sizes *sizes, const struct limit *limit)
{
	u32 tried = sizes->tried;

	sizes->n_requests++;
	if (tried > sizes->chosen && !is_slow(sizes, tried, limit) &&
	    tried == candidate(sizes, limit))
		return;
	sizes->tried = sizes->chosen;
	if (sizes->n_requests % TRIAL_EVERY == 0 && sizes->ns[sizes->chosen])
		sizes->tried = candidate(sizes, limit);
}

/*
 * Is the device busy with it for a quarter of the time? By its best time: independent of its size
 */
static void note_busy(struct gsc_sizes *sizes, u64 now)
{
	u64 busy, passed = now - sizes->since;

	if (sizes->n_requests % BUSY_EVERY)
		return;
	busy = (u64)sizes->best_ns * BUSY_EVERY;
	if (sizes->since)
		sizes->busy = busy > (sizes->busy ? passed / 8 : passed / 4);
	sizes->since = now;
}

/* By more than a factor of two */
static bool differs(u64 a, u64 b)
{
	return a >> 1 > b || b >> 1 > a;
}

static void find_last(struct gsc_sizes *sizes, const struct gsc_task *ended)
{
	u32 least = gsc_sms(gsc_packed(ended, sizes->whole * GSCHED_CAPSM)), class = 0;

	if (least == sizes->least)
		return;
	sizes->least = least;
	while (class < GSC_SIZE_CLASSES - 1 &&
	       (least * FEW_WAVES > sizes->whole || class_sms(sizes, class + 1) >= least))
		class++;
	sizes->last = class;
}

/* Of which class the time of a task that ended is a sample, if of any */
static void note_time(struct gsc_sizes *sizes, const struct gsc_task *ended)
{
	u32 class = GSC_SIZE_CLASSES;
	u64 ran = ended->ran;

	if (ended->late) {
		/* others may have made it so; but if that goes on, the smaller size did */
		if (sizes->tried > sizes->chosen)
			class = sizes->tried;
		ran = max(ran, ended->client->dev->now - ended->granted);
	} else if (ended->room && (!gsc_is_block(ended) || gsc_sms(ended->window) == ended->room)) {
		/* a window that changed says nothing about either size */
		class = class_of(sizes, ended->room);
	}
	if (ran && class < GSC_SIZE_CLASSES)
		record(sizes, class, ran);
}

void gsc_size_learn(struct gsc_client *client, const struct gsc_task *ended, u32 whole, u64 blocks)
{
	struct gsc_sizes *sizes = &client->sizes;
	struct limit limit;

	if (!gsc_is_recurring(client))
		return;
	if (!sizes->whole || differs(whole, sizes->whole) || differs(blocks, sizes->blocks))
		memset(sizes, 0, sizeof(*sizes));
	if (whole != sizes->whole)
		sizes->least = 0;
	sizes->whole = whole;
	sizes->blocks = blocks;
	/* smaller kernels than the largest say nothing about it */
	if (!differs(ended->blocks, blocks)) {
		find_last(sizes, ended);
		note_time(sizes, ended);
	}
	limit = limit_for(client);
	sizes->chosen = choose(sizes, &limit);
	reconsider(sizes, &limit);
	plan_trial(sizes, &limit);
	note_busy(sizes, client->dev->now);
}

bool gsc_size_is_known(const struct gsc_client *client)
{
	const struct gsc_sizes *sizes = &client->sizes;
	const struct limit limit = limit_for(client);

	return gsc_is_recurring(client) && sizes->n_requests >= GSC_SIZE_LEARNED &&
	       sizes->tried == sizes->chosen && candidate(sizes, &limit) == sizes->chosen;
}

u32 gsc_size_units(const struct gsc_client *client)
{
	const struct gsc_sizes *sizes = &client->sizes;

	return sizes->tried && gsc_is_recurring(client) ?
		       class_sms(sizes, sizes->tried) * GSCHED_CAPSM : 0;
}

u64 gsc_size_ns(const struct gsc_client *client)
{
	return gsc_is_recurring(client) ? client->sizes.ns[client->sizes.chosen] : 0;
}

u64 gsc_size_best_ns(const struct gsc_client *client)
{
	return client->sizes.best_ns;
}
