/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libgsched: a program's connection to the arbiter of its GPU, whichever it is: the kernel module
 * (/dev/gsched) or gschedd's embedded arbiter (a socket).
 *
 * Functions return 0 or a pointer, -1 or NULL with errno on failure. Nothing here prints, exits, or
 * touches signals. A connection may be used by several threads at once, except gsched_close().
 * Times are ns, capacity 1/1024 CapSM.
 */
#ifndef GSCHED_H
#define GSCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GSCHED_API __attribute__((visibility("default")))

struct gsched;			/* a connection; owns its descriptor and mappings */

enum gsched_backend { GSCHED_BACKEND_ANY, GSCHED_BACKEND_MODULE, GSCHED_BACKEND_DAEMON };

struct gsched_open_opts {
	size_t size;		/* sizeof(struct gsched_open_opts) */
	enum gsched_backend backend;
	const char *socket;	/* NULL: $GSCHED_SOCKET, else the default */
};

/*
 * Connect. @opts may be NULL: the module if /dev/gsched is there and $GSCHED_BACKEND does not say
 * "daemon", else the daemon. ENOENT, ECONNREFUSED: neither is there. EACCES.
 *
 * No call waits for a daemon that is stopped: after about two seconds without a sign of life it
 * fails with ETIMEDOUT, and the connection is lost for good, as if the daemon had died (EPIPE). For
 * some seconds further calls then fail at once.
 */
GSCHED_API struct gsched *gsched_open(const struct gsched_open_opts *opts);
GSCHED_API void gsched_close(struct gsched *g);		/* NULL allowed; gives everything back */
GSCHED_API enum gsched_backend gsched_backend(const struct gsched *g);
/* A descriptor for poll(2): readable when gsched_event_read() has something. Owned by @g. */
GSCHED_API int gsched_fd(const struct gsched *g);

struct gsched_device_info {
	uint64_t client_id;
	unsigned int sms;
	unsigned int mode;	/* 0 temporal, 1 spatial, 2 sliced */
	unsigned int priority;
};

/*
 * Become a client of the device with this UUID. @mps: this process runs under MPS. ENOENT, EBUSY,
 * EACCES. @info may be NULL.
 */
GSCHED_API int gsched_attach(struct gsched *g, const unsigned char uuid[16], bool mps, struct gsched_device_info *info);

struct gsched_attach_opts {
	size_t size;		/* sizeof(struct gsched_attach_opts) */
	bool mps;		/* this process runs under MPS */
	bool slice;		/* it can set the time slice of its channel group */
	bool server;		/* it is an MPS server: owns a channel group and submits nothing */
	uint64_t channel_group;	/* the same number for an MPS server and its clients; 0 unknown, or a group of its own */
};

/*
 * The same with options. Towards an arbiter that knows no bands only @mps counts; EOPNOTSUPP then
 * for a @server, which would be an ordinary client there and cost the others their lease.
 */
GSCHED_API int gsched_attach_with(struct gsched *g, const unsigned char uuid[16], const struct gsched_attach_opts *opts,
				  struct gsched_device_info *info);

struct gsched_report_info {
	size_t size;			/* sizeof(struct gsched_report_info) */
	bool has_activity, has_slice, has_streams;	/* which fields count */
	bool prioritised;		/* launches lately were all on streams of the greatest priority */
	unsigned int activity;		/* 0 idle, 1 waiting, 2 busy */
	unsigned int slice_us;		/* the time slice in force by the driver's answer, 0 none could be set */
	int slice_error;		/* positive errno, 0 none */
	bool has_blocks;
	unsigned int block_us;		/* struct gsched_report of <linux/gsched.h> */
};

/*
 * Tell the arbiter what the client sees of its band, without waiting for an answer. EINVAL,
 * ENOTCONN not attached, EOPNOTSUPP the arbiter knows no bands; EPIPE, ENODEV: it is gone.
 */
GSCHED_API int gsched_report(struct gsched *g, const struct gsched_report_info *report);

/*
 * The mapped pages, valid until gsched_close(); layout in <linux/gsched.h> (struct gsched_arb_page,
 * struct gsched_cl_page)
 */
GSCHED_API const void *gsched_arb_page(const struct gsched *g, size_t *size);
GSCHED_API void *gsched_cl_page(const struct gsched *g, size_t *size);

struct gsched_task {
	unsigned int slot, seq;
	unsigned int tier;		/* 0 block, 1 slice, 2 launch */
	unsigned int blocks_per_sm;
	uint64_t blocks, predicted_ns, block_ns;
	uint64_t window;		/* out */
	/*
	 * What it demands most of the GPU, for policy corun: GSCHED_INTENSITY_* of <linux/gsched.h>, 0
	 * unknown. Left out towards an arbiter that does not take it.
	 */
	unsigned int intensity;
};

/*
 * Ask for a grant and wait for it. EINVAL, EBUSY, EINTR; ENODEV and EPIPE: the arbiter is gone, run
 * unmanaged.
 */
GSCHED_API int gsched_submit(struct gsched *g, struct gsched_task *task);
/* Tell of a launch without waiting (lease NOTIFY). */
GSCHED_API int gsched_submit_async(struct gsched *g, const struct gsched_task *task);
/*
 * The same, saying which stream the task is in: a number that is the same for tasks which run one
 * after another in the order of their submits, 0 unknown. Left out towards an arbiter that does not
 * take it.
 */
GSCHED_API int gsched_submit_stream(struct gsched *g, struct gsched_task *task, uint64_t stream);
GSCHED_API int gsched_submit_stream_async(struct gsched *g, const struct gsched_task *task, uint64_t stream);
GSCHED_API int gsched_complete(struct gsched *g, unsigned int slot, unsigned int seq, uint64_t ran_ns, bool cancel);

struct gsched_event_info {
	unsigned int type;		/* 1 grant, 2 evict, 3 grow, 4 gone, 5 band: words of the header changed */
	unsigned int slot, seq;
	uint64_t window, time_ns;
};

/*
 * The next event without waiting: 1 filled, 0 none, -1 error (EPIPE, ENODEV: the arbiter is gone).
 */
GSCHED_API int gsched_event_read(struct gsched *g, struct gsched_event_info *event);

/*
 * Rewrite service (gschedd only, whichever arbiter): the twins of @image as PTX, NUL-terminated,
 * and their description, which gsr_read_description() of the same version reads (rewriter/gsr.h);
 * both malloc'd, caller frees. ENOEXEC: refused, *ptx is NULL and the description says why;
 * ENOTCONN no daemon; ETIMEDOUT it does not answer.
 */
GSCHED_API int gsched_rewrite(const void *image, size_t size, unsigned int arch, char **ptx,
			      size_t *ptx_size, void **description, size_t *description_size);

struct gsched_rewrite_opts {
	size_t size;		/* sizeof(struct gsched_rewrite_opts) */
	unsigned int arch;	/* 90 for sm_90 */
	bool resumable;		/* twins that can also leave a block-task in its middle */
	bool modes;		/* twins for static ranges, and limits by rank and by worker */
};

/* The same with options. EOPNOTSUPP: the daemon is older than an option. */
GSCHED_API int gsched_rewrite_with(const void *image, size_t size,
				   const struct gsched_rewrite_opts *opts, char **ptx,
				   size_t *ptx_size, void **description, size_t *description_size);

struct gsched_band_opts {
	size_t size;		/* sizeof(struct gsched_band_opts) */
	const char *socket;	/* NULL: $GSCHED_SOCKET, else the default */
	const char *device;	/* NULL: the first */
	const char *group;	/* NULL or "": the group that @pid is in */
	const char *band;	/* not NULL: the band itself; device and group are not looked at */
	int pid;		/* the program that will use the MPS server, 0 the caller */
	bool no_start;		/* only tell the band's name */
};

struct gsched_band_info {
	size_t size;		/* in: sizeof(struct gsched_band_info) */
	char band[32];		/* "": no band, or gschedd runs no MPS servers */
	char pipe[128];		/* CUDA_MPS_PIPE_DIRECTORY; "" none */
	char log[128];		/* CUDA_MPS_LOG_DIRECTORY */
	char reason[256];	/* of an error, "" if gschedd gave none */
};

/*
 * The MPS server of a group's band (gschedd only, whichever arbiter), started if need be; may take
 * ten seconds. ENOTCONN no daemon, ENOTTY an older one, ENOENT no such group, ENODEV, EINVAL,
 * ESRCH, EPERM, EBUSY too many; ETIMEDOUT, EIO it does not start, ETIMEDOUT without a reason:
 * gschedd does not answer.
 */
GSCHED_API int gsched_band(const struct gsched_band_opts *opts, struct gsched_band_info *info);

/*
 * Administration, on either backend. @device NULL: the first. @group: "a/b", "" the root. Files:
 * capsm.max …
 */
GSCHED_API int gsched_group_create(struct gsched *g, const char *device, const char *group);
GSCHED_API int gsched_group_delete(struct gsched *g, const char *device, const char *group);
GSCHED_API int gsched_group_set(struct gsched *g, const char *device, const char *group, const char *file, const char *value);
GSCHED_API int gsched_group_get(struct gsched *g, const char *device, const char *group, const char *file, char *buf, size_t size);
GSCHED_API int gsched_device_set(struct gsched *g, const char *device, const char *file, const char *value);
/*
 * Files of the client of a process, inside its group's: capsm.max gpu.weight gpu.priority. Its
 * owner may lower them. ESRCH no client, EPERM not the caller's or more than it has, ENOENT no such
 * file, EINVAL
 */
GSCHED_API int gsched_client_set(struct gsched *g, const char *device, int pid, const char *file, const char *value);
GSCHED_API int gsched_client_get(struct gsched *g, const char *device, int pid, const char *file, char *buf, size_t size);
/*
 * Forget a device. ENOENT; EBUSY: it has groups, or clients. @force: clients are sent away (event
 * type 4) and run unmanaged. EPERM.
 */
GSCHED_API int gsched_device_delete(struct gsched *g, const unsigned char uuid[16], bool force);
/* How many devices the arbiter has */
GSCHED_API int gsched_devices(struct gsched *g);
/* Everything as JSON text: devices, groups, clients, tasks. malloc'd, caller frees. */
GSCHED_API char *gsched_status(struct gsched *g);
/*
 * Events of the embedded arbiter: a descriptor that the caller closes, from which each read(2) gives
 * one line of JSON, at most 1 KiB and without a newline: what there is ("object"), then what happens
 * ("event"; "lost": the reader was too slow), as `gschedctl monitor -o json` prints it. @tasks:
 * also each decision for a task. 0 bytes: the arbiter has ended. -1 with errno: EPERM not an
 * administrator, EBUSY too many such readers, EOPNOTSUPP with the module, whose events come by
 * generic netlink (linux/gsched_netlink.h).
 */
GSCHED_API int gsched_monitor(struct gsched *g, bool tasks);

#ifdef __cplusplus
}
#endif

#endif /* GSCHED_H */
