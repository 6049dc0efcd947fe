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
		band->slice_us = max_t(u32, min_t(u64, slice, GSC_SLICE_WHOLE_US), GSC_SLICE_LEAST_US);
	}
}

static bool is_limited(const struct gsc_band *except, const struct gsc_band *band)
{
	return except != band && takes_part(band, false);
}

/* The slices of all bands that are not lower, but for @except */
static u64 sum_of_slices(const struct gsc_device *dev, const struct gsc_band *except)
{
	const struct gsc_band *band;
	u64 sum = 0;

	list_for_each_entry(band, &dev->bands, node)
		if (is_limited(except, band))
			sum += band->slice_us;
	return sum;
}

/*
 * All bands that are not lower, but for @except, have no more than @most together, as far as the
 * shortest slices allow. @sum: what they have. Returns what they have then.
 */
static u64 limit_sum(struct gsc_device *dev, const struct gsc_band *except, u64 sum, u64 most)
{
	struct gsc_band *band;
	u64 left = 0;

	if (sum <= most)
		return sum;
	list_for_each_entry(band, &dev->bands, node) {
		if (!is_limited(except, band))
			continue;
		band->slice_us = (u32)max_t(u64, div64_u64(band->slice_us * most, sum), GSC_SLICE_LEAST_US);
		left += band->slice_us;
	}
	return left;
}

/*
 * A band with a latency target waits for the slices of all others. Slices only shrink here: no
 * target undoes another. The @n bands are walked only where that shortens a slice, since all of
 * them may have a target.
 */
static void honour_latency(struct gsc_device *dev, u32 n)
{
	u64 sum = sum_of_slices(dev, NULL), least = (u64)n * GSC_SLICE_LEAST_US, others;
	const struct gsc_band *band;

	list_for_each_entry(band, &dev->bands, node) {
		if (!takes_part(band, false) || !band->latency_us)
			continue;
		others = sum - band->slice_us;
		if (others + GSC_SLICE_LEAST_US > least)
			others = limit_sum(dev, band, others, band->latency_us);
		sum = others + band->slice_us;
	}
}

static u32 top_latency(const struct gsc_device *dev)
{
	const struct gsc_band *band;
	u32 least = 0;

	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, false) && band->latency_us && (!least || band->latency_us < least))
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
		band->slice_us = (u32)max_t(u64, div64_u64(slice * band->promised, promised), GSC_SLICE_LEAST_US);
		lower += band->slice_us;
	}
	/* what is above keeps a tenth in any case */
	promised = min(promised, div_u64(device * 9, 10));
	limit_sum(dev, NULL, sum_of_slices(dev, NULL),
		  div64_u64(lower * (device - promised), promised));
}

static void lower_slices(struct gsc_device *dev, u32 latency)
{
	u32 busy = 0, slice = DRIVER_SLICE_US;
	struct gsc_band *band;

	if (latency && latency < slice)
		slice = max(latency, (u32)GSC_SLICE_LEAST_US);
	list_for_each_entry(band, &dev->bands, node)
		busy += takes_part(band, true) && band->activity == GSCHED_ACTIVITY_BUSY;
	list_for_each_entry(band, &dev->bands, node)
		if (takes_part(band, true))
			band->slice_us = busy > 1 && band->activity == GSCHED_ACTIVITY_BUSY ? slice : GSC_SLICE_TINY_US;
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
