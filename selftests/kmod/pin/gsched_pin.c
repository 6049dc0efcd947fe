// SPDX-License-Identifier: GPL-2.0-only
/* Test module: long-term pins of user memory, one range an open file. Loaded by the tests only. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gsched_pin.h"

struct pin {
	struct mutex lock;
	struct page *page[GSCHED_PIN_PAGES_MAX];
	unsigned int pages;	/* 0: nothing pinned (lock) */
	bool write;
};

static void unpin(struct pin *pin)
{
	unpin_user_pages_dirty_lock(pin->page, pin->pages, pin->write);
	pin->pages = 0;
}

static long pin_range(struct pin *pin, const struct gsched_pin_range *range)
{
	unsigned int flags = FOLL_LONGTERM | (range->write ? FOLL_WRITE : 0);
	int got;

	if (pin->pages)
		return -EBUSY;
	if (!range->pages || range->pages > GSCHED_PIN_PAGES_MAX || !PAGE_ALIGNED(range->address))
		return -EINVAL;
	got = pin_user_pages_fast(range->address, range->pages, flags, pin->page);
	if (got < 0)
		return got;
	pin->pages = got;
	pin->write = range->write;
	if (got == range->pages)
		return 0;
	unpin(pin);
	return -EFAULT;
}

static u64 *word_of(const struct pin *pin, u64 offset)
{
	if (offset >= (u64)pin->pages * PAGE_SIZE || offset % sizeof(u64))
		return NULL;
	return page_address(pin->page[offset / PAGE_SIZE]) + offset % PAGE_SIZE;
}

static long pin_ioctl_locked(struct pin *pin, unsigned int nr, void __user *arg)
{
	struct gsched_pin_range range;
	struct gsched_pin_word word;
	u64 *at;

	switch (nr) {
	case GSCHED_PIN_PIN:
		if (copy_from_user(&range, arg, sizeof(range)))
			return -EFAULT;
		return pin_range(pin, &range);
	case GSCHED_PIN_READ:
	case GSCHED_PIN_WRITE:
		if (copy_from_user(&word, arg, sizeof(word)))
			return -EFAULT;
		at = word_of(pin, word.offset);
		if (!at)
			return -EINVAL;
		if (nr == GSCHED_PIN_WRITE) {
			WRITE_ONCE(*at, word.value);
			return 0;
		}
		word.value = READ_ONCE(*at);
		return copy_to_user(arg, &word, sizeof(word)) ? -EFAULT : 0;
	case GSCHED_PIN_UNPIN:
		if (!pin->pages)
			return -ENOENT;
		unpin(pin);
		return 0;
	default:
		return -ENOTTY;
	}
}

static long pin_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	struct pin *pin = file->private_data;
	long ret;

	mutex_lock(&pin->lock);
	ret = pin_ioctl_locked(pin, nr, (void __user *)arg);
	mutex_unlock(&pin->lock);
	return ret;
}

static int pin_open(struct inode *inode, struct file *file)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL);

	if (!pin)
		return -ENOMEM;
	mutex_init(&pin->lock);
	file->private_data = pin;
	return nonseekable_open(inode, file);
}

static int pin_release(struct inode *inode, struct file *file)
{
	struct pin *pin = file->private_data;

	if (pin->pages)
		unpin(pin);
	kfree(pin);
	return 0;
}

static const struct file_operations pin_fops = {
	.owner = THIS_MODULE,
	.open = pin_open,
	.release = pin_release,
	.unlocked_ioctl = pin_ioctl,
};

static struct miscdevice pin_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gsched_pin",
	.fops = &pin_fops,
};
module_misc_device(pin_misc);

MODULE_DESCRIPTION("Pins user memory for the tests of gsched");
MODULE_AUTHOR("The gsched authors");
MODULE_LICENSE("GPL");
