// SPDX-License-Identifier: GPL-2.0-only
/* /dev/gsched: open, the calls, poll, read, write, mmap, close. */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "internal.h"

static_assert(sizeof(struct gsched_info) == 24);
static_assert(sizeof(struct gsched_device_add) == 64);
static_assert(sizeof(struct gsched_device_del) == 24);
static_assert(sizeof(struct gsched_attach) == 88);
static_assert(offsetof(struct gsched_attach, client_id) == 24);
static_assert(offsetof(struct gsched_attach, channel_group) == 80);
static_assert(sizeof(struct gsched_submit) == 72);
static_assert(offsetof(struct gsched_submit, intensity) == 56);
static_assert(offsetof(struct gsched_submit, state) == 60);
static_assert(offsetof(struct gsched_submit, window) == 64);
static_assert(sizeof(struct gsched_complete) == 24);
static_assert(sizeof(struct gsched_report) == 56);
static_assert(offsetof(struct gsched_report, activity) == 8);
static_assert(offsetof(struct gsched_report, slice_us) == 12);
static_assert(offsetof(struct gsched_report, slice_error) == 16);
static_assert(offsetof(struct gsched_report, prioritised) == 20);
static_assert(offsetof(struct gsched_report, block_us) == 24);
static_assert(offsetof(struct gsched_report, memory) == 32);
static_assert(offsetof(struct gsched_report, memory_max) == 40);
static_assert(offsetof(struct gsched_report, memory_room) == 48);
static_assert(sizeof(struct gsched_event) == 32);
static_assert(offsetof(struct gsched_event, type) == 4);
static_assert(offsetof(struct gsched_event, window) == 16);

/* One call: the caller's structure, and where to put the answer */
struct gsched_cmd {
	void __user *to;
	u32 size;
	union {
		struct gsched_info info;
		struct gsched_device_add device_add;
		struct gsched_device_del device_del;
		struct gsched_attach attach;
		struct gsched_submit submit;
		struct gsched_complete complete;
		struct gsched_report report;
	} u;
};

struct gsched_call {
	int (*handler)(struct gsched_client *client, struct gsched_cmd *cmd);
	u32 size;
	u32 min_size;
};

/* A caller of another age gets as much of the structure as it knows */
static int respond(const struct gsched_cmd *cmd, size_t size)
{
	return copy_to_user(cmd->to, &cmd->u, min_t(size_t, cmd->size, size)) ? -EFAULT : 0;
}

static int call_info(struct gsched_client *client, struct gsched_cmd *cmd)
{
	struct gsched_info *req = &cmd->u.info;

	if (req->flags || req->__reserved)
		return -EOPNOTSUPP;
	req->features = GSCHED_FEATURES;
	req->devices = gsched_device_count();
	return respond(cmd, sizeof(*req));
}

static int call_device_add(struct gsched_client *client, struct gsched_cmd *cmd)
{
	return gsched_device_add(&cmd->u.device_add);
}

static int call_device_del(struct gsched_client *client, struct gsched_cmd *cmd)
{
	return gsched_device_del(&cmd->u.device_del);
}

static int call_attach(struct gsched_client *client, struct gsched_cmd *cmd)
{
	int ret = gsched_client_attach(client, &cmd->u.attach);

	/*
	 * the file stays attached, but a caller who cannot be told the offsets has lost it anyway
	 */
	return ret ?: respond(cmd, sizeof(cmd->u.attach));
}

static int call_submit(struct gsched_client *client, struct gsched_cmd *cmd)
{
	struct gsched_submit *req = &cmd->u.submit;
	struct gsched_complete cancel;
	int ret;

	ret = gsched_client_submit(client, req);
	if (ret)
		return ret;
	ret = respond(cmd, sizeof(*req));
	if (!ret)
		return 0;
	cancel = (struct gsched_complete) {
		.size = sizeof(cancel),
		.flags = GSCHED_COMPLETE_CANCEL,
		.slot = req->slot,
		.seq = req->seq,
	};
	gsched_client_complete(client, &cancel);
	return ret;
}

static int call_complete(struct gsched_client *client, struct gsched_cmd *cmd)
{
	return gsched_client_complete(client, &cmd->u.complete);
}

static int call_report(struct gsched_client *client, struct gsched_cmd *cmd)
{
	struct gsched_report *req = &cmd->u.report;

	return gsched_client_report(client, req) ?: respond(cmd, sizeof(*req));
}

#define CALL(nr, fn, type, last) \
	[_IOC_NR(nr)] = { \
		.handler = fn, \
		.size = sizeof(struct type), \
		.min_size = offsetofend(struct type, last), \
	}

static const struct gsched_call calls[] = {
	CALL(GSCHED_IOC_INFO, call_info, gsched_info, __reserved),
	CALL(GSCHED_IOC_DEVICE_ADD, call_device_add, gsched_device_add, __reserved),
	CALL(GSCHED_IOC_DEVICE_DEL, call_device_del, gsched_device_del, uuid),
	CALL(GSCHED_IOC_ATTACH, call_attach, gsched_attach, channel_group),
	CALL(GSCHED_IOC_SUBMIT, call_submit, gsched_submit, window),
	CALL(GSCHED_IOC_COMPLETE, call_complete, gsched_complete, ran_ns),
	CALL(GSCHED_IOC_REPORT, call_report, gsched_report, block_us),
};

static long gsched_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	const struct gsched_call *call;
	struct gsched_cmd cmd = { .to = (void __user *)arg };
	int ret;

	if (_IOC_TYPE(nr) != GSCHED_IOC_TYPE || _IOC_NR(nr) >= ARRAY_SIZE(calls) ||
	    nr != _IO(GSCHED_IOC_TYPE, _IOC_NR(nr)))
		return -ENOTTY;
	call = &calls[array_index_nospec(_IOC_NR(nr), ARRAY_SIZE(calls))];
	if (get_user(cmd.size, (u32 __user *)cmd.to))
		return -EFAULT;
	if (cmd.size < call->min_size)
		return -EINVAL;
	if (cmd.size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&cmd.u, call->size, cmd.to, cmd.size);
	if (ret)
		return ret;
	return call->handler(file->private_data, &cmd);
}

static int gsched_open(struct inode *inode, struct file *file)
{
	struct gsched_client *client = gsched_client_new();

	if (!client)
		return -ENOMEM;
	file->private_data = client;
	return nonseekable_open(inode, file);
}

/* Of the process, and not only of a thread with descriptors of its own: unshare(CLONE_FILES) */
static bool process_ends(void)
{
	const struct signal_struct *signal = current->signal;

	return current->flags & PF_EXITING &&
	       (!atomic_read(&signal->live) || READ_ONCE(signal->flags) & SIGNAL_GROUP_EXIT);
}

/*
 * A process that dies gives everything back even if a child inherited the descriptor: the children
 * have neither the mappings nor the GPU context.
 */
static int gsched_flush(struct file *file, fl_owner_t id)
{
	struct gsched_client *client = file->private_data;

	if (gsched_client_live(client) && process_ends() && task_tgid(current) == client->pid)
		gsched_client_detach(client);
	return 0;
}

static int gsched_release(struct inode *inode, struct file *file)
{
	struct gsched_client *client = file->private_data;

	gsched_client_detach(client);
	gsched_trigger_free(client->trigger);
	kobject_put(&client->kobj);
	return 0;
}

static int gsched_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gsched_client *client = file->private_data;

	if (!gsched_client_live(client))
		return gsched_client_dead(client);
	return gsched_pages_mmap(client, vma);
}

/* Without the lock: who wakes the reader has written before */
static bool has_event(const struct gsched_client *client)
{
	int i;

	for (i = 0; i < BITS_TO_LONGS(GSCHED_SLOTS); i++)
		if (READ_ONCE(client->pending[i]))
			return true;
	return READ_ONCE(client->band_pending);
}

/* Once attached, and expelled since: there is one event left, or none any more */
static bool is_gone(const struct gsched_client *client)
{
	return READ_ONCE(client->gone) && !gsched_client_live(client);
}

static ssize_t gsched_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	struct gsched_client *client = file->private_data;
	struct gsched_event event;
	ssize_t done = 0;
	int ret;

	if (count < sizeof(event))
		return -EINVAL;
	while (count - done >= sizeof(event)) {
		if (!gsched_client_live(client) && !is_gone(client))
			return done ?: -ENOTCONN;
		if (gsched_client_event(client, &event)) {
			if (copy_to_user(buf + done, &event, event.size)) {
				gsched_client_event_back(client, &event);
				return done ?: -EFAULT;
			}
			done += event.size;
			continue;
		}
		if (done)
			break;
		if (is_gone(client))
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(client->wait,
					       has_event(client) || !gsched_client_live(client));
		if (ret)
			return ret;
	}
	return done;
}

/* A trigger, by the rights of whoever opened the file: see trigger.c */
static ssize_t gsched_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	char text[64];
	int ret;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, count))
		return -EFAULT;
	text[count] = '\0';
	if (strlen(text) != count)
		return -EINVAL;
	ret = gsched_trigger_create(file->private_data, text,
				    file_ns_capable(file, &init_user_ns, CAP_SYS_ADMIN));
	return ret ?: count;
}

static __poll_t gsched_poll(struct file *file, poll_table *table)
{
	struct gsched_client *client = file->private_data;

	/* set up: pairs with create() in trigger.c */
	struct gsched_trigger *trigger = smp_load_acquire(&client->trigger);

	poll_wait(file, &client->wait, table);
	if (trigger)
		return gsched_trigger_poll(trigger);
	if (is_gone(client))
		return EPOLLHUP | (READ_ONCE(client->gone_read) ? EPOLLERR : EPOLLIN | EPOLLRDNORM);
	if (!gsched_client_live(client))
		return EPOLLERR;
	return has_event(client) ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations gsched_fops = {
	.owner = THIS_MODULE,
	.open = gsched_open,
	.flush = gsched_flush,
	.release = gsched_release,
	.unlocked_ioctl = gsched_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gsched_mmap,
	.read = gsched_read,
	.write = gsched_write,
	.poll = gsched_poll,
};

static struct miscdevice gsched_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gsched",
	.fops = &gsched_fops,
	/* group gsched, by a rule of udev: see gsched(4) */
	.mode = 0660,
};

int gsched_chardev_init(void)
{
	return misc_register(&gsched_misc);
}

void gsched_chardev_exit(void)
{
	misc_deregister(&gsched_misc);
}
