// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/gsched/<device>/: the tables bands, a line each, and slots, a line for every
 * task. They are 0400 and root's, since they tell when others' kernels run.
 *
 * A reader gets the records of one band or client at a time, each under the device's lock. So the
 * lock is not held for a whole table, and what comes or goes in the meantime may be missed or met
 * twice. Without debugfs or without memory for it there are no tables, and nothing else fails.
 */
#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/seq_file.h>

#include "internal.h"

static struct dentry *top;

static struct list_head *nth(struct list_head *head, loff_t n)
{
	struct list_head *node;

	list_for_each(node, head)
		if (!n--)
			return node;
	return NULL;
}

/* A position is a number in a list, which show() looks up again: no pointer outlives the lock. */
static void *position(struct seq_file *seq, struct list_head *head, loff_t *pos)
{
	struct gsched_device *dev = seq->private;
	bool found;

	spin_lock_bh(&dev->lock);
	found = nth(head, *pos);
	spin_unlock_bh(&dev->lock);
	return found ? pos : NULL;
}

static void no_stop(struct seq_file *seq, void *v)
{
}

static void *bands_start(struct seq_file *seq, loff_t *pos)
{
	struct gsched_device *dev = seq->private;

	return position(seq, &dev->core.bands, pos);
}

static void *bands_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	return bands_start(seq, pos);
}

static int bands_show(struct seq_file *seq, void *v)
{
	struct gsched_device *dev = seq->private;
	const loff_t *pos = v;
	struct list_head *node;

	spin_lock_bh(&dev->lock);
	node = nth(&dev->core.bands, *pos);
	if (node)
		gsched_band_line(seq, dev, list_entry(node, struct gsc_band, node));
	spin_unlock_bh(&dev->lock);
	return node ? 0 : SEQ_SKIP;
}

static const struct seq_operations bands_sops = {
	.start = bands_start,
	.next = bands_next,
	.stop = no_stop,
	.show = bands_show,
};
DEFINE_SEQ_ATTRIBUTE(bands);

static void *slots_start(struct seq_file *seq, loff_t *pos)
{
	struct gsched_device *dev = seq->private;

	return position(seq, &dev->core.clients, pos);
}

static void *slots_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	return slots_start(seq, pos);
}

/*
 * "client 4 pid 12 slot 3 seq 7 tier 0 blocks 1000 limit 4096 seen 4096 launched 4 left 0
 * start_ns 123 stream 5". Up to limit, and the stream, as the arbiter knows it, the rest as client
 * and GPU report. A launch under a lease has the window of the lease.
 */
static void slot_line(struct seq_file *seq, const struct gsched_client *client, u32 slot)
{
	const struct gsc_task *task = gsc_task_in(&client->core, slot);
	const struct gsched_cl_slot *hint = &client->cl->slot[slot];
	u64 blocks, stream = 0;
	u32 nr, tier;

	if (task) {
		nr = task->seq;
		tier = task->tier;
		blocks = task->blocks;
		stream = task->stream;
	} else if (gsc_page_leased(&client->core, slot)) {
		nr = READ_ONCE(hint->seq);
		tier = min_t(u32, READ_ONCE(hint->tier), GSCHED_TIER_LAUNCH);
		blocks = READ_ONCE(hint->blocks);
	} else {
		return;
	}
	seq_printf(seq, "client %llu pid %u slot %u seq %u tier %u blocks %llu limit %llu ",
		   client->id, client->core.pid, slot, nr, tier, blocks,
		   client->arb->slot[slot].window);
	seq_printf(seq, "seen %u launched %u left %u start_ns %llu stream %llu\n",
		   READ_ONCE(hint->seen_limit), READ_ONCE(hint->launched), READ_ONCE(hint->left),
		   READ_ONCE(hint->start_ns), stream);
}

static int slots_show(struct seq_file *seq, void *v)
{
	struct gsched_device *dev = seq->private;
	const loff_t *pos = v;
	struct list_head *node;
	u32 slot;

	spin_lock_bh(&dev->lock);
	node = nth(&dev->core.clients, *pos);
	for (slot = 0; node && slot < GSCHED_SLOTS; slot++)
		slot_line(seq, gsched_client_of(list_entry(node, struct gsc_client, node)), slot);
	spin_unlock_bh(&dev->lock);
	return node ? 0 : SEQ_SKIP;
}

static const struct seq_operations slots_sops = {
	.start = slots_start,
	.next = slots_next,
	.stop = no_stop,
	.show = slots_show,
};
DEFINE_SEQ_ATTRIBUTE(slots);

/* Before the device can be found by others */
void gsched_debugfs_add(struct gsched_device *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(&dev->dev), top);
	debugfs_create_file("bands", 0400, dev->debugfs, dev, &bands_fops);
	debugfs_create_file("slots", 0400, dev->debugfs, dev, &slots_fops);
}

/* Returns when nobody reads the files any more */
void gsched_debugfs_del(struct gsched_device *dev)
{
	debugfs_remove(dev->debugfs);
}

void gsched_debugfs_init(void)
{
	top = debugfs_create_dir("gsched", NULL);
}

void gsched_debugfs_exit(void)
{
	debugfs_remove(top);
}
