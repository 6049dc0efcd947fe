// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of bands, and what protects or limits a band or a client, in words: the same from both
 * arbiters.
 */
#include "decide.h"

int gsc_band_name(const struct gsc_band *band, char *buf, size_t size)
{
	const struct gsc_client *client, *first = NULL, *server = NULL;
	const char *name;

	list_for_each_entry(client, &band->members, member) {
		name = gsc_group_band(client->group);
		if (*name)
			return scnprintf(buf, size, "%s", name);
		if (gsc_is_server(client))
			server = client;
		else if (!first)
			first = client;
	}
	if (server)
		return scnprintf(buf, size, "mps-%u", server->pid);
	if (!first)
		return scnprintf(buf, size, "%s", "");
	if (first->flags & GSCHED_ATTACH_MPS && first->channel_group)
		return scnprintf(buf, size, "mps-%08x", (u32)first->channel_group);
	if (first->flags & GSCHED_ATTACH_MPS)
		return scnprintf(buf, size, "mps");
	return scnprintf(buf, size, "pid-%u", first->pid);
}

static u32 bands_beside(const struct gsc_band *band, bool *promised)
{
	const struct gsc_device *dev = gsc_band_device(band);
	const struct gsc_band *other;
	u32 n = 0;

	*promised = false;
	list_for_each_entry(other, &dev->bands, node) {
		if (!other->n_clients || other == band)
			continue;
		n += other->lower == band->lower;
		*promised |= other->lower && other->promised;
	}
	return n;
}

static int why_temporal(const struct gsc_band *band, char *buf, size_t size)
{
	const struct gsc_client *owner = gsc_band_owner(band);

	if (gsc_band_device(band)->mode_set >= 0)
		return scnprintf(
			buf, size,
			"mode temporal is set: one client at a time has the device, by eviction");
	if (gsc_band_can_slice(band))
		return scnprintf(
			buf, size,
			"the slice of another band cannot be set: one band at a time has the device, by eviction");
	if (owner->slice_error == EOPNOTSUPP)
		return scnprintf(
			buf, size,
			"slice not set: no channel group was seen (another driver?); one band at a time, by eviction");
	if (owner->slice_error)
		return scnprintf(
			buf, size,
			"slice not set: the driver refused it (errno %u); one band at a time, by eviction",
			owner->slice_error);
	return scnprintf(
		buf, size,
		"slice not set: the program cannot set one (unmanaged driver, or older library); %s",
		"one band at a time, by eviction");
}

static int why_top(const struct gsc_band *band, char *buf, size_t size)
{
	const struct gsc_device *dev = gsc_band_device(band);
	bool promised;
	u32 others = bands_beside(band, &promised);

	if (!dev->n_lower)
		return scnprintf(buf, size,
				 "%s%s: shares the time by weight with %u other%s, slice %u us",
				 dev->policy->equals ? "policy " : "",
				 dev->policy->equals ? dev->policy->name : "equals", others,
				 others == 1 ? "" : "s", band->slice_us);
	if (others)
		return scnprintf(
			buf, size,
			"top band: shares the time by weight with %u other%s, slice %u us%s",
			others, others == 1 ? "" : "s", band->slice_us,
			promised ? ", bounded by capsm.min below" : "");
	if (promised)
		return scnprintf(buf, size,
				 "top band: slice %u us, bounded by capsm.min of bands below",
				 band->slice_us);
	return scnprintf(buf, size, "top band: runs whole until it is idle");
}

static int why_lower(const struct gsc_band *band, char *buf, size_t size)
{
	const struct gsc_device *dev = gsc_band_device(band);
	bool promised;
	u32 others = bands_beside(band, &promised);
	const char *turn = "";
	int len;

	if (band->slice_us == GSC_SLICE_TINY_US)
		len = scnprintf(buf, size, "gives way at %s: slice 1 us",
				gsc_band_ends_blocks(band) ? "the ends of thread blocks" : "once");
	else if (band->promised)
		len = scnprintf(buf, size, "capsm.min keeps it a part of the time: slice %u us",
				band->slice_us);
	else if (dev->unmanaged_busy)
		len = scnprintf(buf, size, "slice %u us, beside busy programs without gsched",
				band->slice_us);
	else
		len = scnprintf(buf, size, "slice %u us until another band has drained",
				band->slice_us);
	if (!others)
		return len;
	if (band == dev->turn)
		turn = ", has the turn";
	else if (band == dev->drain)
		turn = ", its turn is over and its work drains";
	else if (band->activity != GSCHED_ACTIVITY_IDLE)
		turn = ", waits for its turn";
	return len + scnprintf(buf + len, size - (size_t)len, "; takes turns with %u other%s%s",
			       others, others == 1 ? "" : "s", turn);
}

int gsc_band_why(const struct gsc_band *band, char *buf, size_t size)
{
	const struct gsc_device *dev = gsc_band_device(band);
	int len = 0;

	if (!band->n_clients)
		return scnprintf(buf, size, "an MPS server without clients");
	if (dev->mode == GSCHED_MODE_SPATIAL && dev->mode_set >= 0)
		return scnprintf(buf, size, "mode spatial is set: all clients count as one band");
	if (dev->mode == GSCHED_MODE_SPATIAL)
		return scnprintf(buf, size, "the only band: nothing to share the time with");
	if (dev->mode == GSCHED_MODE_TEMPORAL)
		return why_temporal(band, buf, size);
	if (!gsc_band_owner(band))
		len = scnprintf(
			buf, size,
			"the driver's slice, since its MPS server is not attached; asked for: ");
	else if (!gsc_band_can_slice(band))
		len = scnprintf(
			buf, size,
			"the driver's slice, since its program cannot set one (errno %u); %s",
			gsc_band_owner(band)->slice_error, "asked for: ");
	return len + (band->lower ? why_lower : why_top)(band, buf + len, size - (size_t)len);
}

/* What is done to block-tasks below for a client, and what the alternative would cost */
static int why_midway(const struct gsc_client *client, const char *separator, char *buf,
		      size_t size)
{
	u32 form = client->resume_cost, hold = client->hold_cost;

	if (!form)
		return 0;
	if (hold >= 1000)
		return scnprintf(
			buf, size,
			"%sits kernels are too rare for a hold; block-tasks below %s left in their middle",
			separator, client->resumes ? "may be" : "are not");
	return scnprintf(
		buf, size,
		"%sblock-tasks below %s left in their middle: that costs %u.%u %%, a hold %u.%u %%",
		separator, client->resumes ? "may be" : "are not", form / 10, form % 10, hold / 10,
		hold % 10);
}

/* The group above @client that has a number of CapSM in reserve; NULL none */
static const struct gsc_group *reserving(const struct gsc_client *client)
{
	const struct gsc_group *group;

	for (group = client->home; group; group = group->parent)
		if (gsc_standby_units(group))
			return group;
	return NULL;
}

static int why_reserve(const struct gsc_group *group, const struct gsc_band *band, char *buf,
		       size_t size)
{
	bool stands = band->claims && group->run.seen == band->stamp && group->run.claim;

	if (!stands)
		return scnprintf(buf, size, "capsm.reserve of %u SMs is lent to whoever runs",
				 gsc_sms(group->standby));
	return scnprintf(
		buf, size,
		"capsm.reserve keeps %u of %u SMs free now: block-tasks of others take longer than %llu us",
		group->run.kept_free, gsc_sms(group->standby),
		(unsigned long long)div_u64(gsc_standby_limit_ns(group), 1000));
}

static int why_hold(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_group *group = reserving(client);
	const struct gsc_sizes *sizes = &client->sizes;
	u32 part = gsc_protect_units(client, gsc_size_units(client));
	int len;

	if (group)
		len = why_reserve(group, client->band, buf, size);
	else if (client->hold_units)
		len = scnprintf(
			buf, size,
			"holds %u of %u SMs between its kernels: block-tasks below take %llu us",
			gsc_sms(client->hold_units), client->dev->sms,
			(unsigned long long)div_u64(client->hold_block_ns, 1000));
	else if (part)
		len = scnprintf(buf, size, "takes %u of %u SMs from block-tasks below",
				gsc_sms(part), client->dev->sms);
	else
		return scnprintf(buf, size, "%s", "");
	if (!part)
		return len;
	if (sizes->tried != sizes->chosen)
		return len +
		       scnprintf(buf + len, size - (size_t)len, "; tries whether it needs no more");
	return len + scnprintf(buf + len, size - (size_t)len,
			       "; its kernels take %llu us on them, %llu us at best",
			       (unsigned long long)div_u64(gsc_size_ns(client), 1000),
			       (unsigned long long)div_u64(gsc_size_best_ns(client), 1000));
}

int gsc_policy_why(const struct gsc_device *dev, char *buf, size_t size)
{
	if (!dev->faulty)
		return scnprintf(buf, size, "%s", "");
	return scnprintf(buf, size, "%s was replaced by hpf, since its %s", dev->faulty->name,
			 dev->fault);
}

int gsc_client_why(const struct gsc_client *client, char *buf, size_t size)
{
	int len = why_hold(client, buf, size);

	if (client->arb.flags & GSCHED_ARB_RESUMABLE)
		len += scnprintf(buf + len, size - (size_t)len,
				 "%sleaves long block-tasks in their middle for %s",
				 len ? "; " : "", "kernels of somebody more important");
	len += why_midway(client, len ? "; " : "", buf + len, size - (size_t)len);
	if (len || !client->dev->policy->why)
		return len;
	return client->dev->policy->why(client, buf, size);
}
