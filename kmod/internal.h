/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the module share.
 *
 * Locks, outermost first: gsched_client.mutex (attach against detach), gsched_devices_mutex (the
 * device table), configfs' and sysfs' own, gsched_device.lock. The last protects the core and
 * everything marked "lock" below; it is taken with gsched_lock() and released with gsched_unlock(),
 * which finishes what the core's actions began. configfs and sysfs callbacks take nothing but
 * gsched_device.lock.
 */
#ifndef GSCHED_INTERNAL_H
#define GSCHED_INTERNAL_H

#include <linux/bitmap.h>
#include <linux/configfs.h>
#include <linux/device.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/gsched_netlink.h>

#include "core/core.h"

struct cgroup;
struct dentry;
struct file;
struct kernfs_node;
struct pid;
struct poll_table_struct;
struct seq_file;
struct task_struct;
struct vm_area_struct;

struct gsched_device;
struct gsched_trigger;

/* Of one device, by others than administrators: they are looked at with its lock held */
#define GSCHED_TRIGGERS_MAX	256

/*
 * Of one device, that others than administrators make or bind. All are looked at with its lock
 * held. A user has half of what others leave.
 */
#define GSCHED_GROUPS_MAX	1024
#define GSCHED_BINDINGS_MAX	1024
#define GSCHED_BINDING_BITS	8

/* Room for what a file of configfs shows (its SIMPLE_ATTR_SIZE), however large a page is */
#define GSCHED_CONFIGFS_MAX	4096

/* What INFO answers; configfs.c has their names */
#define GSCHED_FEATURES	(GSCHED_FEATURE_LEASE | GSCHED_FEATURE_FORCE | GSCHED_FEATURE_BANDS | \
			 GSCHED_FEATURE_MEMORY)

/**
 * struct gsched_group - a quota holder: one configfs directory
 * @cg: the directory
 * @core: the core's object: @own, or the device's root
 * @own: storage of @core for every group but the root
 * @delays: what gpu.preemption shows of it (lock)
 * @dev: the device, on which the group holds a reference
 * @node: in gsched_device.groups (lock)
 * @user: who made it, as gsched_current_user()
 * @cgroup: the cgroup v2 subtree bound to it, or one of that path that was removed, or NULL (lock)
 * @bound: in gsched_device.bound, while it has a @cgroup (lock)
 * @shown: the dump of netlink that holds the lock shows it (lock)
 */
struct gsched_group {
	struct config_group cg;
	struct gsc_group *core;
	struct gsc_group own;
	struct gsc_delays delays;
	struct gsched_device *dev;
	struct list_head node;
	kuid_t user;
	struct cgroup *cgroup;
	struct list_head bound;
	bool shown;
};

/**
 * struct gsched_device - one GPU
 * @dev: the class device; its reference count is the object's
 * @lock: protects the core and whatever says (lock)
 * @core: the decisions (lock)
 * @timer: calls gsched_device_expired()
 * @core_when: when the core wants its tick, 0 never (lock)
 * @armed: when @timer expires, 0 never (lock)
 * @clients_max: most clients at once, as each is looked at with the lock held (lock)
 * @dying: no more attach and mkdir (lock)
 * @events: the file of that name, for who polls it; NULL before and after it is there (lock)
 * @events_notified: the core's n_events when pollers were last woken (lock)
 * @decisions_traced: the core's decisions at the last gsched_unlock() (lock)
 * @groups: every gsched_group (lock)
 * @bound: those of them that have a cgroup (lock)
 * @bindings: struct gsched_binding, bind.c (lock)
 * @binding_of: the same by process (lock)
 * @triggers: struct gsched_trigger, trigger.c (lock)
 * @n_triggers: how many there are (lock)
 * @triggers_looked_at: @trigger_work is on its way (lock)
 * @trigger_work: calls gsched_triggers_look()
 * @node: in the device table (gsched_devices_mutex)
 * @uuid: the CUDA device's
 * @root: the directory of the device itself
 * @tasks: sysfs directory of the clients
 * @debugfs: directory of the tables, or an error
 */
struct gsched_device {
	struct device dev;
	spinlock_t lock;
	struct gsc_device core;
	struct hrtimer timer;
	u64 core_when;
	u64 armed;
	u32 clients_max;
	bool dying;
	struct kernfs_node *events;
	u64 events_notified;
	u64 decisions_traced;
	struct list_head groups;
	struct list_head bound;
	struct list_head bindings;
	DECLARE_HASHTABLE(binding_of, GSCHED_BINDING_BITS);
	struct list_head triggers;
	u32 n_triggers;
	bool triggers_looked_at;
	struct delayed_work trigger_work;
	struct list_head node;
	u8 uuid[GSCHED_UUID_SIZE];
	struct gsched_group root;
	struct kobject *tasks;
	struct dentry *debugfs;
};

/**
 * struct gsched_client - an open file of /dev/gsched; a client of @dev once attached
 * @kobj: sysfs tasks/<pid>; its reference count is the object's
 * @mutex: attach against detach
 * @attached: set when all below is valid, cleared by detach; written under @mutex and the device's
 *	lock
 * @used: was attached once: a file attaches once (mutex)
 * @gone: the device was taken away from it (mutex); set before @attached is cleared
 * @gone_read: that was read (lock)
 * @dev: the device, on which the client holds a reference
 * @core: the core's object (lock)
 * @id: unique number
 * @pid: the process that attached
 * @uid: its effective user, who owns @kobj's files; @core has gsched_current_user()
 * @gid: and group
 * @nr: its number in the initial pid namespace
 * @arb: arbiter's page, written by the core only
 * @cl: client's page, written by the client and its GPU: hints
 * @wait: poll, read and waiting submitters
 * @plain: tasks/ directory is named by the pid alone (lock)
 * @band_pending: there is an EVENT_BAND to read (lock)
 * @in_submit: slots with a submit under way, which itself tells of the grant: no event (lock)
 * @pending: slots with an event to read (lock); atomically, since poll and read look without it
 * @band_ns: time of the decision that it tells of (lock)
 * @spare: for the slot that a submit is about to use for the first time (lock)
 * @trigger: what the file waits for, if it is no client: set once (mutex)
 */
struct gsched_client {
	struct kobject kobj;
	struct mutex mutex;
	bool attached;
	bool used;
	bool gone;
	bool gone_read;
	struct gsched_device *dev;
	struct gsc_client core;
	u64 id;
	struct pid *pid;
	kuid_t uid;
	kgid_t gid;
	struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	wait_queue_head_t wait;
	bool plain;
	bool band_pending;
	DECLARE_BITMAP(in_submit, GSCHED_SLOTS);
	DECLARE_BITMAP(pending, GSCHED_SLOTS);
	u64 band_ns;
	struct gsched_slot *spare;
	struct gsched_trigger *trigger;
};

/**
 * struct gsched_slot - a task slot of a client, from its first use until the client is freed
 * @core: the core's object (lock)
 * @event: the last event (lock)
 * @known_limit: limit that userspace last learned of (lock)
 */
struct gsched_slot {
	struct gsc_task core;
	struct gsched_event event;
	u32 known_limit;
};

static inline struct gsched_slot *gsched_slot_of(const struct gsc_task *core)
{
	return container_of(core, struct gsched_slot, core);
}

static inline struct gsched_client *gsched_client_of(struct gsc_client *core)
{
	return container_of(core, struct gsched_client, core);
}

static inline struct gsched_device *gsched_device_of(struct gsc_device *core)
{
	return container_of(core, struct gsched_device, core);
}

static inline bool gsched_client_live(const struct gsched_client *client)
{
	/* pairs with the release in attach(): who sees it attached may use dev and the pages */
	return smp_load_acquire(&client->attached);
}

/* device.c: the device table and the devices' lifetime */
int gsched_device_add(const struct gsched_device_add *req);
int gsched_device_del(const struct gsched_device_del *req);
struct gsched_device *gsched_device_get(const u8 *uuid);
struct gsched_device *gsched_device_nth(u32 nr);
void gsched_device_put(struct gsched_device *dev);
u32 gsched_device_count(void);
int gsched_devices_init(void);
void gsched_devices_exit(void);

/* sysfs.c */
extern struct class gsched_class;
extern const struct attribute_group *gsched_device_groups[];
extern const struct kobj_type gsched_client_ktype;

/* bands.c: what is shown of bands */
u32 gsched_band_activity(const struct gsc_band *band);
bool gsched_band_block_end(struct gsc_client *owner);
void gsched_band_line(struct seq_file *seq, const struct gsched_device *dev,
		      const struct gsc_band *band);
ssize_t gsched_band_show(struct gsched_client *client, char *page);

/* debugfs.c: tables */
void gsched_debugfs_add(struct gsched_device *dev);
void gsched_debugfs_del(struct gsched_device *dev);
void gsched_debugfs_init(void);
void gsched_debugfs_exit(void);

/* arbiter.c: the core's actions, and the lock around every event */
extern const struct gsc_ops gsched_core_ops;
u64 gsched_lock(struct gsched_device *dev);
void gsched_unlock(struct gsched_device *dev, u64 now);
enum hrtimer_restart gsched_device_expired(struct hrtimer *timer);

/* client.c */
u32 gsched_client_bytes(void);
struct gsched_slot *gsched_slot_alloc(gfp_t gfp);
void gsched_slot_free(struct gsched_slot *slot);
int gsched_clients_init(void);
void gsched_clients_exit(void);
struct gsched_client *gsched_client_new(void);
void gsched_client_free(struct gsched_client *client);
int gsched_client_attach(struct gsched_client *client, struct gsched_attach *req);
void gsched_client_detach(struct gsched_client *client);
void gsched_client_expel(struct gsched_client *client);
int gsched_client_dead(const struct gsched_client *client);
int gsched_client_submit(struct gsched_client *client, struct gsched_submit *req);
int gsched_client_complete(struct gsched_client *client, struct gsched_complete *req);
int gsched_client_report(struct gsched_client *client, struct gsched_report *req);
bool gsched_client_event(struct gsched_client *client, struct gsched_event *event);
void gsched_client_event_back(struct gsched_client *client, const struct gsched_event *event);

/* pages.c */
size_t gsched_pages_bytes(void);
int gsched_pages_alloc(struct gsched_client *client);
void gsched_pages_free(struct gsched_client *client);
int gsched_pages_mmap(struct gsched_client *client, struct vm_area_struct *vma);
void gsched_pages_offsets(struct gsched_attach *req);

/* configfs.c */
int gsched_configfs_init(void);
void gsched_configfs_exit(void);
int gsched_configfs_add(struct gsched_device *dev);
void gsched_configfs_del(struct gsched_device *dev);
int gsched_group_path(const struct gsched_device *dev, const struct gsc_group *group, char *buf,
		      size_t size);
size_t gsched_group_path_size(const struct gsc_group *core);
struct gsc_group *gsched_group_find(void *arg, const char *path, size_t len);

/* bind.c: which group a process belongs to */
bool gsched_writer_acts_for_itself(void);
kuid_t gsched_current_user(void);
struct gsc_group *gsched_bind_resolve(struct gsched_device *dev, struct pid *pid);
void gsched_bind_apply(struct gsched_device *dev, u64 now);
int gsched_bind_store_pid(struct gsched_group *group, const char *text);
int gsched_bind_store_cgroup(struct gsched_group *group, const char *text);
ssize_t gsched_bind_show_pids(struct gsched_group *group, char *page);
ssize_t gsched_bind_show_cgroup(struct gsched_group *group, char *page);
void gsched_bind_drop(struct gsched_group *group);

/* owner.c */
ssize_t gsched_owner_show(struct gsched_group *group, char *page);
int gsched_owner_store(struct gsched_group *group, const char *text);

/* trigger.c: poll for gpu.pressure */
int gsched_trigger_create(struct gsched_client *client, char *text, bool admin);
__poll_t gsched_trigger_poll(struct gsched_trigger *trigger);
void gsched_trigger_free(struct gsched_trigger *trigger);
void gsched_triggers_look(struct work_struct *work);
void gsched_triggers_kick(struct gsched_device *dev);
void gsched_triggers_drop(struct gsched_group *group);

/* netlink.c: events, which cost next to nothing while nobody listens */
void gsched_nl_changed(void);
void gsched_nl_device(const struct gsched_device *dev, enum gsched_nl_event event);
void gsched_nl_group(const struct gsched_group *group, enum gsched_nl_event event);
void gsched_nl_client(const struct gsched_client *client, enum gsched_nl_event event);
void gsched_nl_task(const struct gsc_task *task, enum gsched_nl_event event);
int gsched_netlink_init(void);
void gsched_netlink_exit(void);

/* chardev.c */
int gsched_chardev_init(void);
void gsched_chardev_exit(void);

#endif /* GSCHED_INTERNAL_H */
