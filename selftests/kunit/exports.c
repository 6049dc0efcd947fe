// SPDX-License-Identifier: GPL-2.0-only
/* What the KUnit tests call. Only a module that is built for them has this file. */
#include <linux/export.h>

#include "internal.h"

EXPORT_SYMBOL_GPL(gsc_clients_default);
EXPORT_SYMBOL_GPL(gsc_group_exit);
EXPORT_SYMBOL_GPL(gsc_group_init);
EXPORT_SYMBOL_GPL(gsched_bind_drop);
EXPORT_SYMBOL_GPL(gsched_bind_resolve);
EXPORT_SYMBOL_GPL(gsched_bind_show_pids);
EXPORT_SYMBOL_GPL(gsched_bind_store_cgroup);
EXPORT_SYMBOL_GPL(gsched_bind_store_pid);
EXPORT_SYMBOL_GPL(gsched_client_attach);
EXPORT_SYMBOL_GPL(gsched_client_bytes);
EXPORT_SYMBOL_GPL(gsched_client_complete);
EXPORT_SYMBOL_GPL(gsched_client_detach);
EXPORT_SYMBOL_GPL(gsched_client_new);
EXPORT_SYMBOL_GPL(gsched_client_submit);
EXPORT_SYMBOL_GPL(gsched_core_ops);
EXPORT_SYMBOL_GPL(gsched_current_user);
EXPORT_SYMBOL_GPL(gsched_device_add);
EXPORT_SYMBOL_GPL(gsched_device_del);
EXPORT_SYMBOL_GPL(gsched_device_expired);
EXPORT_SYMBOL_GPL(gsched_device_get);
EXPORT_SYMBOL_GPL(gsched_device_put);
EXPORT_SYMBOL_GPL(gsched_lock);
EXPORT_SYMBOL_GPL(gsched_pages_alloc);
EXPORT_SYMBOL_GPL(gsched_pages_bytes);
EXPORT_SYMBOL_GPL(gsched_pages_free);
EXPORT_SYMBOL_GPL(gsched_pages_mmap);
EXPORT_SYMBOL_GPL(gsched_pages_offsets);
EXPORT_SYMBOL_GPL(gsched_slot_alloc);
EXPORT_SYMBOL_GPL(gsched_slot_free);
EXPORT_SYMBOL_GPL(gsched_unlock);
EXPORT_SYMBOL_GPL(gsched_writer_acts_for_itself);
