// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many SMs a client's recurring kernels need to be nearly as fast as on all that they can fill. A kernel of 132 short blocks
 * spreads over 132 SMs, but may be as fast on 16. That is measured: class k is a (1 / 2^k)-th of what the kernel can fill,
 * and each completion updates the smoothed time of the class that the kernel ran in.
 *
 * The smallest class that is nearly as fast as the best one is chosen. It limits what is kept free between two kernels and what
 * block-tasks of less important clients are evicted for; the allocator still grants the rest where it would be idle. Now and then
 * one request tries the next smaller class. Times come from the client: wrong ones only change which part of its own demand it
 * is given.
 */
#include "decide.h"

#define TRIAL_EVERY	16	/* requests between two trials of a smaller class */
#define FORGET_EVERY	512	/* requests after which smaller classes that were too slow may be tried again */
#define SLOW_STEP	2	/* a slow request counts for two fast ones, so a mixture is noticed too */
#define SLOW_LIMIT	8	/* four slow ones in a row */
#define TOLERATED_NS	5000
#define NS_MAX		1000000000000ULL	/* sums of a few of them do not overflow */

static u32 class_sms(const struct gsc_sizes *sizes, u32 class)
{
	return max(sizes->whole >> class, (u32)1);
}

/* The class of a kernel that had @sms SMs; GSC_SIZE_CLASSES if it had fewer than the smallest one */
static u32 class_of(const struct gsc_sizes *sizes, u32 sms)
{
	u32 class;

	for (class = 0; class < GSC_SIZE_CLASSES && class_sms(sizes, class) > sms; class++)
		;
	return class;
}

static u64 best_ns(const struct gsc_sizes *sizes)
{
	u64 best = 0;
	u32 class;

	for (class = 0; class < GSC_SIZE_CLASSES; class++)
		if (sizes->ns[class] && (!best || sizes->ns[class] < best))
			best = sizes->ns[class];
	return best;
}

/* The smallest class that is fast enough. A class counts only if all larger ones are known. */
static u32 choose(const struct gsc_sizes *sizes)
{
	u64 best = best_ns(sizes), limit = best + best / 4 + TOLERATED_NS;
	u32 class, chosen = 0;

	for (class = 0; class < GSC_SIZE_CLASSES && sizes->ns[class]; class++)
		if (sizes->ns[class] <= limit)
			chosen = class;
	return chosen;
}

/*
 * An outlier, such as a kernel that another band's slice interrupted, changes little: in the chosen class it is only counted, and
 * replaces the average once there are too many.
 */
static void record(struct gsc_sizes *sizes, u32 class, u64 ran)
{
	u64 best = best_ns(sizes), old = sizes->ns[class];

	ran = min(ran, NS_MAX);
	if (class == sizes->chosen && old) {
		if (ran > best + best / 2)
			sizes->n_slow += SLOW_STEP;
		else if (sizes->n_slow)
			sizes->n_slow--;
		if (sizes->n_slow >= SLOW_LIMIT)
			old = 0;
		else if (ran > best + best / 2)
			return;
	}
	if (!old) {
		sizes->ns[class] = ran;
		sizes->n_slow = 0;
	} else {
		sizes->ns[class] = (3 * old + min(ran, 2 * old)) / 4;
	}
}

/*
 * The next request tries a smaller class if the chosen one is known and the smaller one is not. A trial lasts until a kernel was
 * measured in its class: those that are queued behind a running one still have what that one has.
 */
static void plan_trial(struct gsc_sizes *sizes)
{
	u32 class, next = sizes->chosen + 1;

	sizes->n_requests++;
	if (sizes->tried == next && next < GSC_SIZE_CLASSES && !sizes->ns[next])
		return;
	sizes->tried = sizes->chosen;
	if (sizes->n_requests % FORGET_EVERY == 0)
		for (class = next; class < GSC_SIZE_CLASSES; class++)
			sizes->ns[class] = 0;
	if (sizes->n_requests % TRIAL_EVERY || next == GSC_SIZE_CLASSES)
		return;
	if (sizes->ns[sizes->chosen] && !sizes->ns[next] && class_sms(sizes, next) < class_sms(sizes, sizes->chosen))
		sizes->tried = next;
}

/* By more than a factor of two */
static bool differs(u64 a, u64 b)
{
	return a >> 1 > b || b >> 1 > a;
}

void gsc_size_learn(struct gsc_client *client, const struct gsc_task *ended, u32 whole, u64 blocks)
{
	struct gsc_sizes *sizes = &client->sizes;
	u32 class;

	if (!gsc_is_recurring(client))
		return;
	if (!sizes->whole || differs(whole, sizes->whole) || differs(blocks, sizes->blocks))
		memset(sizes, 0, sizeof(*sizes));
	sizes->whole = whole;
	sizes->blocks = blocks;
	/* smaller kernels than the largest say nothing about it, and a window that changed nothing about either size */
	if (ended->room && ended->ran && !differs(ended->blocks, blocks) &&
	    (!gsc_is_block(ended) || gsc_sms(gsc_limit(ended)) == ended->room)) {
		class = class_of(sizes, ended->room);
		if (class < GSC_SIZE_CLASSES)
			record(sizes, class, ended->ran);
	}
	sizes->chosen = choose(sizes);
	plan_trial(sizes);
}

u32 gsc_size_units(const struct gsc_client *client)
{
	const struct gsc_sizes *sizes = &client->sizes;

	return sizes->tried && gsc_is_recurring(client) ? class_sms(sizes, sizes->tried) * GSCHED_CAPSM : 0;
}

u64 gsc_size_ns(const struct gsc_client *client)
{
	return gsc_is_recurring(client) ? client->sizes.ns[client->sizes.chosen] : 0;
}

u64 gsc_size_best_ns(const struct gsc_client *client)
{
	return best_ns(&client->sizes);
}
