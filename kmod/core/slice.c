// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time slices of bands. A band leaves the GPU when its slice is over and another one has work, or
 * when it is idle. So the most important band has a slice so long that it runs until it is idle,
 * and the others one so short that they leave at once.
 *
 * Two busy bands with the shortest slice make no progress at all: all their time goes into
 * switching. turn.c keeps that to the moments when a turn changes hands; there both have a longer
 * slice.
 */
#include "decide.h"

#define DRIVER_SLICE_US		2048	/* what NVIDIA's driver sets */
#define PROMISED_SLICE_US	2000
#define UNMANAGED_SLICE_US	1000	/* beside busy programs that nobody manages */

static bool takes_part(const struct gsc_band *band, bool lower)
{
	return band->n_clients && band->lower == lower;
}

/* Slices of bands that are not lower, by weight */
static void share_epoch(struct gsc_device *dev, u32 n)
{
	u64 epoch = (u64)n * DRIVER_SLICE_US, sum = 0, slice;
	struct gsc_band *band;

	/* as long as all slices of GSC_SLICE_WHOLE_US, and no product overflows */
	if (dev->policy->epoch_us)
		epoch = min(dev->policy->epoch_us(dev, n), (u64)n * GSC_SLICE_WHOLE_US);
	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false))
			sum += band->weight;
	list_for_each_entry(band, &dev->bands, node) {
		if (!takes_part(band, false))
			continue;
		slice = div64_u64(epoch * band->weight, max_t(u64, sum, 1));
		band->slice_us =
			max_t(u32, min_t(u64, slice, GSC_SLICE_WHOLE_US), GSC_SLICE_LEAST_US);
	}
}

/* The slices of all bands that are not lower */
static u64 sum_of_slices(const struct gsc_device *dev)
{
	const struct gsc_band *band;
	u64 sum = 0;

	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false))
			sum += band->slice_us;
	return sum;
}

/* Bands that are not lower have no more than @most together, but for the shortest slices */
static void limit_sum(struct gsc_device *dev, u64 most)
{
	u64 sum = sum_of_slices(dev);
	struct gsc_band *band;

	if (sum <= most)
		return;
	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false))
			band->slice_us = (u32)max_t(u64, div64_u64(band->slice_us * most, sum),
						    GSC_SLICE_LEAST_US);
}

#define WHOLE_BITS	32	/* a slice is scaled by a factor in 1/2^32 */

static u32 scaled(const struct gsc_band *band, u64 factor)
{
	return max_t(u32, (band->slice_us * factor) >> WHOLE_BITS, GSC_SLICE_LEAST_US);
}

static bool has_target(const struct gsc_band *band)
{
	return takes_part(band, false) && band->latency_us;
}

/*
 * Longest sum of slices, its own included, with which the target of @band holds. No target asks for
 * less than @least, the sum of the shortest slices of all others.
 */
static u64 longest_sum(const struct gsc_band *band, u64 least, u64 factor)
{
	return max_t(u64, band->latency_us, least) + scaled(band, factor);
}

/*
 * With all slices scaled by @factor: what the targets of all bands but @except leave of the sum of
 * slices, below 0 where one does not hold. @tightest: the band that leaves least. S64_MAX without a
 * target
 */
static s64 room(const struct gsc_device *dev, u64 least, u64 factor, const struct gsc_band *except,
		struct gsc_band **tightest)
{
	u64 sum = 0, most = S64_MAX, longest;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node) {
		if (!takes_part(band, false))
			continue;
		sum += scaled(band, factor);
		if (!has_target(band) || band == except)
			continue;
		longest = longest_sum(band, least, factor);
		if (longest < most) {
			most = longest;
			if (tightest)
				*tightest = band;
		}
	}
	return most == S64_MAX ? S64_MAX : (s64)(most - sum);
}

/* The smallest factor that leaves any slice longer than the shortest */
static u64 longer_than_least(const struct gsc_device *dev)
{
	u32 longest = GSC_SLICE_LEAST_US;
	const struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false))
			longest = max(longest, band->slice_us);
	return div_u64((u64)(GSC_SLICE_LEAST_US + 1) << WHOLE_BITS, longest) + 1;
}

/*
 * A band with a latency target waits for the slices of all others. All slices are scaled by the
 * largest factor with which all targets hold, so that bands keep the proportions of their weights,
 * as far as the shortest slices allow; no target undoes another, and the order of the bands does
 * not matter. The slice of the band whose target is the tightest does not count against that
 * target: it is as long as the other targets allow. One walk over the @n bands for each bit of the
 * factor, however many of them have a target.
 */
static void honour_latency(struct gsc_device *dev, u32 n)
{
	u64 factor = 0, bit = 1ULL << WHOLE_BITS, least = (u64)(n - 1) * GSC_SLICE_LEAST_US;
	struct gsc_band *band, *tightest = NULL;
	u32 more;

	if (room(dev, least, bit, NULL, NULL) >= 0)
		return;
	/* out of reach: none holds with the least factor that lengthens a slice */
	if (room(dev, least, longer_than_least(dev), NULL, NULL) < 0)
		bit = 1;
	while (bit >>= 1)
		if (room(dev, least, factor + bit, NULL, NULL) >= 0)
			factor += bit;
	room(dev, least, factor ? factor + 1 : longer_than_least(dev), NULL, &tightest);
	more = (u32)min_t(s64, room(dev, least, factor, tightest, NULL), GSC_SLICE_WHOLE_US);
	list_for_each_entry(band, &dev->bands, node) {
		u32 slice = scaled(band, factor) + (band == tightest ? more : 0);

		if (takes_part(band, false))
			band->slice_us = min(band->slice_us, slice);
	}
}

static u32 top_latency(const struct gsc_device *dev)
{
	const struct gsc_band *band;
	u32 least = 0;

	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false) && band->latency_us &&
		    (!least || band->latency_us < least))
			least = band->latency_us;
	return least;
}

/*
 * capsm.min of groups in lower bands is a share of the time against the bands above: f = promised /
 * device. Their slices are PROMISED_SLICE_US on average and the sum of the upper ones is (1 - f) /
 * f times theirs.
 */
static void keep_promises(struct gsc_device *dev, u32 latency)
{
	u64 device = (u64)dev->sms * GSCHED_CAPSM, promised = 0, lower = 0, slice;
	struct gsc_band *band;
	u32 n = 0;

	list_for_each_entry(band, &dev->bands, node) {
		if (!takes_part(band, true))
			continue;
		promised += band->promised;
		n += band->promised != 0;
	}
	if (!promised)
		return;
	slice = (u64)n * PROMISED_SLICE_US;
	if (latency)
		slice = min(slice, (u64)latency);
	list_for_each_entry(band, &dev->bands, node) {
		if (!takes_part(band, true) || !band->promised)
			continue;
		band->slice_us = (u32)max_t(u64, div64_u64(slice * band->promised, promised),
					    GSC_SLICE_LEAST_US);
		lower += band->slice_us;
	}
	/* what is above keeps a tenth in any case */
	promised = min(promised, div_u64(device * 9, 10));
	limit_sum(dev, div64_u64(lower * (device - promised), promised));
}

/*
 * Beside busy programs that nobody manages, which have the driver's slice each time, a band with
 * the shortest one would stand still (measured: 0.1 instead of 105 kernels a second).
 * Bands above wait for the slices of those programs anyway.
 */
static void lower_slices(struct gsc_device *dev, u32 latency)
{
	u32 busy = 0, slice = GSC_SLICE_TINY_US;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node)
		busy += takes_part(band, true) && band->activity == GSCHED_ACTIVITY_BUSY;
	if (busy > 1)
		slice = DRIVER_SLICE_US;
	else if (dev->unmanaged_busy)
		slice = UNMANAGED_SLICE_US;
	if (latency && latency < slice)
		slice = max(latency, (u32)GSC_SLICE_LEAST_US);
	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, true))
			band->slice_us = band->activity == GSCHED_ACTIVITY_BUSY ? slice :
					 GSC_SLICE_TINY_US;
}

void gsc_device_set_unmanaged(struct gsc_device *dev, bool busy, u64 now)
{
	if (busy == dev->unmanaged_busy)
		return;
	dev->unmanaged_busy = busy;
	dev->bands_stale = true;
	gsc_mark(dev, now);
}

void gsc_slices_update(struct gsc_device *dev)
{
	u32 n_top = dev->n_bands - dev->n_lower, latency;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node)
		band->slice_us = 0;
	if (dev->mode != GSCHED_MODE_SLICED)
		return;
	if (dev->n_lower && n_top == 1) {
		list_for_each_entry(band, &dev->bands, node)
			if (takes_part(band, false))
				band->slice_us = GSC_SLICE_WHOLE_US;
	} else {
		share_epoch(dev, n_top);
		honour_latency(dev, n_top);
	}
	if (!dev->n_lower)
		return;
	latency = top_latency(dev);
	lower_slices(dev, latency);
	keep_promises(dev, latency);
}
