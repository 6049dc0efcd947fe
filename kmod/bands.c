// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is shown of bands: a line of debugfs' table, and tasks/<pid>/band of sysfs. Words are
 * "key value" pairs with the keys that gschedd's status has.
 */
#include <linux/nospec.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "internal.h"

static const char *activity_name(u32 activity)
{
	static const char *const name[] = {
		[GSCHED_ACTIVITY_IDLE] = "idle",
		[GSCHED_ACTIVITY_WAITING] = "waiting",
		[GSCHED_ACTIVITY_BUSY] = "busy",
	};

	/* a client said so */
	return name[array_index_nospec(activity, ARRAY_SIZE(name))];
}

/* While the core does not ask for reports the page is all there is. Never beyond the names */
static u32 client_activity(const struct gsched_client *client)
{
	u32 says;

	if (client->core.arb.flags & GSCHED_ARB_REPORT)
		return client->core.activity;
	says = READ_ONCE(client->cl->header.activity);
	return says <= GSCHED_ACTIVITY_BUSY ? says : GSCHED_ACTIVITY_IDLE;
}

static bool is_server(const struct gsc_client *core)
{
	return core->flags & GSCHED_ATTACH_SERVER;
}

/* "clients 12,13 server 11 "; a word that would be empty is left out */
static void show_members(struct seq_file *seq, const struct gsc_band *band,
			 const struct gsc_client *owner)
{
	const char *before = "clients ";
	struct gsc_client *core;

	list_for_each_entry(core, &band->members, member) {
		if (is_server(core))
			continue;
		seq_printf(seq, "%s%u", before, core->pid);
		before = ",";
	}
	if (*before == ',')
		seq_putc(seq, ' ');
	if (owner && is_server(owner))
		seq_printf(seq, "server %u ", owner->pid);
}

u32 gsched_band_activity(const struct gsc_band *band)
{
	u32 activity = GSCHED_ACTIVITY_IDLE;
	struct gsc_client *core;

	list_for_each_entry(core, &band->members, member)
		if (!is_server(core))
			activity = max(activity, client_activity(gsched_client_of(core)));
	return activity;
}

/* Does the GPU leave its channel group at the ends of thread blocks? As it writes into its page */
bool gsched_band_block_end(struct gsc_client *owner)
{
	return owner && READ_ONCE(gsched_client_of(owner)->cl->header.block_end);
}

/*
 * "name pid-12 clients 12 priority 0 weight 100.000 slice_us 1 applied_us 1 slice_error 0
 * block_end 0 activity busy turn 1 why ...", the reason last and to the end of the line
 */
void gsched_band_line(struct seq_file *seq, const struct gsched_device *dev,
		      const struct gsc_band *band)
{
	struct gsc_client *owner = gsc_band_owner(band);
	u32 thousandths = band->weight % GSC_BAND_WEIGHT_SCALE * 1000 / GSC_BAND_WEIGHT_SCALE;
	char name[GSC_BAND_NAME_SIZE], why[384];

	lockdep_assert_held(&dev->lock);
	gsc_band_name(band, name, sizeof(name));
	gsc_band_why(band, why, sizeof(why));
	seq_printf(seq, "name %s ", name);
	show_members(seq, band, owner);
	seq_printf(seq, "priority %u weight %llu.%03u slice_us %u applied_us %u ",
		   band->priority, div_u64(band->weight, GSC_BAND_WEIGHT_SCALE), thousandths,
		   band->slice_us, owner ? owner->slice_us : 0);
	seq_printf(seq, "slice_error %u block_end %u activity %s turn %u why %s\n",
		   owner ? owner->slice_error : 0, gsched_band_block_end(owner),
		   activity_name(gsched_band_activity(band)), band == dev->core.turn, why);
}

/*
 * What the client was told of its band, and what it says of it itself: as it reported, else as it
 * writes into its page
 */
ssize_t gsched_band_show(struct gsched_client *client, char *page)
{
	const struct gsched_cl_header *hint = &client->cl->header;
	struct gsc_client *core = &client->core;
	u32 applied, error, block_us, activity, share;
	char name[GSC_BAND_NAME_SIZE];
	struct gsc_arb arb;

	spin_lock_bh(&client->dev->lock);
	/* there: the file is made after the client came, and is removed before it leaves */
	gsc_band_name(core->band, name, sizeof(name));
	arb = core->arb;
	applied = core->slice_us ?: READ_ONCE(hint->slice_us);
	error = core->slice_error ?: READ_ONCE(hint->slice_error);
	block_us = core->block_us;
	activity = client_activity(client);
	spin_unlock_bh(&client->dev->lock);
	share = div_u64((u64)arb.share * 1000000, GSCHED_SHARE_ALL);
	return sysfs_emit(page,
			  "name %s\nslice_us %u\napplied_us %u\nslice_error %u\n"
			  "block_end %u\nblock_us %u\nactivity %s\nshare %u.%06u\n",
			  name, arb.slice_us, applied, error, gsched_band_block_end(core), block_us,
			  activity_name(activity), share / 1000000, share % 1000000);
}
