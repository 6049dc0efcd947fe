/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels we build for. What a kernel has is found out by compiling
 * (kmod/compat/ has one file a question, Kbuild asks them), never by its version number.
 */
#ifndef GSCHED_COMPAT_H
#define GSCHED_COMPAT_H

#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mnt_idmapping.h>
#include <linux/user_namespace.h>

#ifdef GSCHED_HAVE_vm_flags_set
static inline void gsched_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vm_flags_set(vma, flags);
}

static inline void gsched_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vm_flags_clear(vma, flags);
}
#else
static inline void gsched_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void gsched_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* What kobj_type.get_ownership takes */
#ifdef GSCHED_HAVE_const_ownership
#define GSCHED_OWNED_KOBJECT	const struct kobject
#else
#define GSCHED_OWNED_KOBJECT	struct kobject
#endif

/* The map of a mount that maps no users */
#ifdef GSCHED_HAVE_mnt_idmap
#define GSCHED_NO_IDMAP		(&nop_mnt_idmap)
#else
#define GSCHED_NO_IDMAP		(&init_user_ns)
#endif

/* Without multicast groups that take a capability there are none: no events by netlink */
#ifdef GSCHED_HAVE_mcast_cap
#define GSCHED_MCAST_FLAGS	GENL_MCAST_CAP_SYS_ADMIN
#define GSCHED_HAS_MCAST	true
#else
#define GSCHED_MCAST_FLAGS	0
#define GSCHED_HAS_MCAST	false
#endif

#endif /* GSCHED_COMPAT_H */
