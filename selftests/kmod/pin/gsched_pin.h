/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /dev/gsched_pin: pins a range of the caller as a GPU's driver would, and touches it from the
 * kernel.
 */
#ifndef GSCHED_PIN_H
#define GSCHED_PIN_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GSCHED_PIN_PAGES_MAX	16

struct gsched_pin_range {
	__u64 address;		/* page-aligned */
	__u32 pages;
	__u32 write;		/* pin with FOLL_WRITE */
};

struct gsched_pin_word {
	__u64 offset;		/* in the pinned range, a multiple of 8 */
	__u64 value;
};

#define GSCHED_PIN_PIN		_IOW('P', 1, struct gsched_pin_range)
#define GSCHED_PIN_READ		_IOWR('P', 2, struct gsched_pin_word)
#define GSCHED_PIN_WRITE	_IOW('P', 3, struct gsched_pin_word)
#define GSCHED_PIN_UNPIN	_IO('P', 4)

#endif /* GSCHED_PIN_H */
