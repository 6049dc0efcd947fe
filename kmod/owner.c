// SPDX-License-Identifier: GPL-2.0-only
/*
 * A group's file owner: the user who owns its directory. bind.c asks for that user when a process
 * is moved, and VFS when procs is opened, so writing the file is chown(2) of all that a delegated
 * group takes.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kstrtox.h>
#include <linux/namei.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "compat.h"
#include "internal.h"

static struct dentry *directory(struct gsched_group *group)
{
	return group->cg.cg_item.ci_dentry;
}

ssize_t gsched_owner_show(struct gsched_group *group, char *page)
{
	kuid_t uid = d_inode(directory(group))->i_uid;

	return scnprintf(page, GSCHED_CONFIGFS_MAX, "%u\n",
			 from_kuid_munged(current_user_ns(), uid));
}

/* The caller holds the inode's lock */
static int set_owner(struct dentry *dentry, kuid_t uid)
{
	struct iattr attr = {
		.ia_valid = ATTR_UID | ATTR_CTIME,
		.ia_uid = uid,
	};

	return notify_change(GSCHED_NO_IDMAP, dentry, &attr, NULL);
}

static int set_file_owner(struct dentry *dir, const char *name, kuid_t uid)
{
	struct dentry *file = lookup_one_len(name, dir, strlen(name));
	int ret = -ENOENT;

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (d_is_positive(file)) {
		if (inode_trylock(d_inode(file))) {
			ret = set_owner(file, uid);
			inode_unlock(d_inode(file));
		} else {
			ret = restart_syscall();
		}
	}
	dput(file);
	return ret;
}

/*
 * configfs calls a store with the group's fragment locked, which rmdir takes while it holds the
 * directory's lock: so that is only tried here, and the system call begins again.
 *
 * EPERM not an administrator; EINVAL no user, or the root group; ENOMEM: a part of the files may
 * have a new owner, but not procs.
 */
int gsched_owner_store(struct gsched_group *group, const char *text)
{
	struct dentry *dir = directory(group);
	int ret, i;
	kuid_t uid;
	u32 nr;

	if (!capable(CAP_SYS_ADMIN) || !gsched_writer_acts_for_itself())
		return -EPERM;
	if (group == &group->dev->root || kstrtou32(text, 10, &nr))
		return -EINVAL;
	uid = make_kuid(current_user_ns(), nr);
	if (!uid_valid(uid))
		return -EINVAL;
	if (!inode_trylock(d_inode(dir)))
		return restart_syscall();
	ret = set_owner(dir, uid);
	/* what only the owner may read */
	for (i = 0; !ret && i < GSC_FILE_COUNT; i++)
		if (!gsc_file_writable(i))
			ret = set_file_owner(dir, gsc_file_name[i], uid);
	/* last: it is what the new owner writes, and may then do */
	ret = ret ?: set_file_owner(dir, "procs", uid);
	inode_unlock(d_inode(dir));
	return ret;
}
