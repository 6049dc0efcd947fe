/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libgsched: a program's connection to the arbiter of its GPU, which is either the kernel module
 * (/dev/gsched) or gschedd's embedded arbiter (a socket).
 *
 * Functions return 0 or a pointer, and -1 or NULL with errno on failure. Nothing here prints,
 * exits, or touches signals. Several threads may use a connection at once, except for
 * gsched_close(). Times are in ns, capacity in 1/1024 CapSM.
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
 * Connects. @opts may be NULL: to the module if /dev/gsched exists and $GSCHED_BACKEND is not
 * "daemon", else to the daemon. ENOENT, ECONNREFUSED: neither exists. EACCES.
 *
 * No call waits for a stopped daemon: after about two seconds without an answer it fails with
 * ETIMEDOUT, and the connection is lost for good, as if the daemon had died (EPIPE). For some
 * seconds further calls then fail at once.
 */
GSCHED_API struct gsched *gsched_open(const struct gsched_open_opts *opts);
GSCHED_API void gsched_close(struct gsched *g);		/* NULL is allowed; releases everything */
GSCHED_API enum gsched_backend gsched_backend(const struct gsched *g);
/* A descriptor for poll(2): readable when gsched_event_read() has an event. Owned by @g. */
GSCHED_API int gsched_fd(const struct gsched *g);

struct gsched_device_info {
	uint64_t client_id;
	unsigned int sms;
	unsigned int mode;	/* 0 temporal, 1 spatial, 2 sliced */
	unsigned int priority;
};

/*
 * Makes the process a client of the device with this UUID. @mps: it runs under MPS. ENOENT, EBUSY,
 * EACCES, ENOMEM; ENOSPC, EDQUOT: the device, or the user, has as many clients as it may have;
 * ESRCH: the process that made the connection has ended. @info may be NULL.
 */
GSCHED_API int gsched_attach(struct gsched *g, const unsigned char uuid[16], bool mps,
			     struct gsched_device_info *info);

struct gsched_attach_opts {
	size_t size;		/* sizeof(struct gsched_attach_opts) */
	bool mps;		/* this process runs under MPS */
	bool slice;		/* it can set the time slice of its channel group */
	bool server;		/* it is an MPS server: owns a channel group and submits nothing */
	/* the same number for an MPS server and its clients; 0: unknown, or a group of its own */
	uint64_t channel_group;
};

/* The same with options. */
GSCHED_API int gsched_attach_with(struct gsched *g, const unsigned char uuid[16],
				  const struct gsched_attach_opts *opts,
				  struct gsched_device_info *info);

struct gsched_report_info {
	size_t size;			/* sizeof(struct gsched_report_info) */
	bool has_activity, has_slice, has_streams;	/* which fields are valid */
	/* recent launches were all on streams of the greatest priority */
	bool prioritised;
	unsigned int activity;		/* 0 idle, 1 waiting, 2 busy */
	/* slice in force by the driver's answer; 0: none could be set */
	unsigned int slice_us;
	int slice_error;		/* positive errno, 0: none */
	bool has_blocks;
	unsigned int block_us;		/* struct gsched_report of <linux/gsched.h> */
};

/*
 * Reports to the arbiter what the client sees of its band; does not block. EINVAL;
 * ENOTCONN: not attached; EPIPE, ENODEV: the arbiter is gone.
 */
GSCHED_API int gsched_report(struct gsched *g, const struct gsched_report_info *report);

struct gsched_memory_info {
	size_t size;			/* sizeof(struct gsched_memory_info) */
	uint64_t max;			/* least memory.max that holds for the process, in bytes */
	uint64_t room;			/* how much more these allow; both UINT64_MAX: no limit */
};

/*
 * Reports that the process holds @bytes of the device's memory, and returns its limits in @info.
 * @asks: it is going to hold them; EDQUOT: a memory.max does not allow it, and nothing is reported.
 * Without @asks and @info it does not block, else the arbiter's answer is awaited. Other errors as
 * for gsched_report().
 */
GSCHED_API int gsched_memory(struct gsched *g, uint64_t bytes, bool asks,
			     struct gsched_memory_info *info);

/*
 * The mapped pages, valid until gsched_close(); layout in <linux/gsched.h> (struct gsched_arb_page,
 * struct gsched_cl_page).
 */
GSCHED_API const void *gsched_arb_page(const struct gsched *g, size_t *size);
GSCHED_API void *gsched_cl_page(const struct gsched *g, size_t *size);

struct gsched_task {
	unsigned int slot, seq;
	unsigned int tier;		/* 0 block, 2 launch; 1 is reserved */
	unsigned int blocks_per_sm;
	uint64_t blocks, predicted_ns, block_ns;
	uint64_t window;		/* out */
	/*
	 * The resource that it uses most, for policy corun: GSCHED_INTENSITY_* of <linux/gsched.h>,
	 * 0: unknown.
	 */
	unsigned int intensity;
};

/*
 * Asks for a grant and waits for it. EINVAL, EBUSY, EINTR, ENOMEM; ENODEV, EPIPE: the arbiter is
 * gone, run unmanaged.
 */
GSCHED_API int gsched_submit(struct gsched *g, struct gsched_task *task);
/*
 * Notifies the arbiter of a launch, without waiting (lease NOTIFY). 0 also if the task is queued
 * behind others: the slot's window is 0 then, an event tells of its grant. ENOBUFS: the arbiter
 * has not read for a while, and will not hear of this launch.
 */
GSCHED_API int gsched_submit_async(struct gsched *g, const struct gsched_task *task);
/*
 * The same with the task's stream: a number that is equal for tasks which run in the order of their
 * submits; 0: unknown.
 */
GSCHED_API int gsched_submit_stream(struct gsched *g, struct gsched_task *task, uint64_t stream);
GSCHED_API int gsched_submit_stream_async(struct gsched *g, const struct gsched_task *task,
					  uint64_t stream);
GSCHED_API int gsched_complete(struct gsched *g, unsigned int slot, unsigned int seq,
			       uint64_t ran_ns, bool cancel);

struct gsched_event_info {
	/* 1 grant, 2 evict, 3 grow, 4 gone, 5 band: header changed */
	unsigned int type;
	unsigned int slot, seq;
	uint64_t window, time_ns;
};

/*
 * Reads the next event without waiting. 1: filled, 0: none, -1: error (EPIPE, ENODEV: the arbiter
 * is gone).
 */
GSCHED_API int gsched_event_read(struct gsched *g, struct gsched_event_info *event);

/*
 * The rewrite service (of gschedd, whichever arbiter): returns the twins of @image as PTX,
 * NUL-terminated, and their description, which gsr_read_description() of the same version reads
 * (rewriter/gsr.h). Both are malloc'd; the caller frees them. ENOEXEC: refused, *ptx is NULL and
 * the description has the reason; ENOTCONN: no daemon; ETIMEDOUT: it does not answer.
 */
GSCHED_API int gsched_rewrite(const void *image, size_t size, unsigned int arch, char **ptx,
			      size_t *ptx_size, void **description, size_t *description_size);

struct gsched_rewrite_opts {
	size_t size;		/* sizeof(struct gsched_rewrite_opts) */
	unsigned int arch;	/* 90 for sm_90 */
	bool resumable;		/* twins that can also suspend a block-task */
	bool modes;		/* twins for static ranges, and limits by rank and by worker */
	const char *kernel;	/* only this one, in a module of its own; NULL: all */
	bool describe;		/* the description only: *ptx is NULL */
};

/* The same with options. EOPNOTSUPP: the daemon does not know an option. */
GSCHED_API int gsched_rewrite_with(const void *image, size_t size,
				   const struct gsched_rewrite_opts *opts, char **ptx,
				   size_t *ptx_size, void **description, size_t *description_size);

struct gsched_band_opts {
	size_t size;		/* sizeof(struct gsched_band_opts) */
	const char *socket;	/* NULL: $GSCHED_SOCKET, else the default */
	const char *device;	/* NULL: the first */
	const char *group;	/* NULL or "": the group that @pid is in */
	const char *band;	/* not NULL: name of the band; device and group are ignored */
	int pid;		/* the program that will use the MPS server; 0: the caller */
	bool no_start;		/* only return the band's name */
};

struct gsched_band_info {
	size_t size;		/* in: sizeof(struct gsched_band_info) */
	char band[32];		/* "": no band, or gschedd runs no MPS servers */
	char pipe[128];		/* CUDA_MPS_PIPE_DIRECTORY; "": none */
	char log[128];		/* CUDA_MPS_LOG_DIRECTORY */
	char reason[256];	/* of an error; "" if gschedd gave none */
};

/*
 * The MPS server of a group's band (of gschedd, whichever arbiter), started if needed, which may
 * take ten seconds. ENOTCONN: no daemon; ENOTTY: an older one; ENOENT: no such group; ENODEV,
 * EINVAL, ESRCH, EPERM; EBUSY: too many servers; ETIMEDOUT, EIO: it does not start; ETIMEDOUT
 * without a reason: gschedd does not answer.
 */
GSCHED_API int gsched_band(const struct gsched_band_opts *opts, struct gsched_band_info *info);

/*
 * Administration of either backend. @device NULL: the first. @group: "a/b", "": the root. Files:
 * capsm.max …
 */
GSCHED_API int gsched_group_create(struct gsched *g, const char *device, const char *group);
GSCHED_API int gsched_group_delete(struct gsched *g, const char *device, const char *group);
GSCHED_API int gsched_group_set(struct gsched *g, const char *device, const char *group,
				const char *file, const char *value);
GSCHED_API int gsched_group_get(struct gsched *g, const char *device, const char *group,
				const char *file, char *buf, size_t size);
GSCHED_API int gsched_device_set(struct gsched *g, const char *device, const char *file,
				 const char *value);
/*
 * Files of a process's client, within the limits of its group: capsm.max gpu.weight gpu.priority.
 * Its owner may lower them. ESRCH: no client; EPERM: another user's, or more than it has; ENOENT:
 * no such file; EINVAL.
 */
GSCHED_API int gsched_client_set(struct gsched *g, const char *device, int pid, const char *file,
				 const char *value);
GSCHED_API int gsched_client_get(struct gsched *g, const char *device, int pid, const char *file,
				 char *buf, size_t size);
/*
 * Removes a device. ENOENT; EBUSY: it has groups or clients. @force: detaches clients (event type
 * 4), which then run unmanaged. EPERM.
 */
GSCHED_API int gsched_device_delete(struct gsched *g, const unsigned char uuid[16], bool force);
/* The number of the arbiter's devices */
GSCHED_API int gsched_devices(struct gsched *g);
/* Everything as JSON text: devices, groups, clients, tasks. malloc'd; the caller frees it. */
GSCHED_API char *gsched_status(struct gsched *g);
/*
 * Events of the embedded arbiter: returns a descriptor, owned by the caller, from which each
 * read(2) returns one line of JSON, at most 1 KiB and without a newline: first the objects
 * ("object"), then the events ("event"; "lost": the reader was too slow), as `gschedctl monitor -o
 * json` prints them. @tasks: also each decision for a task. 0 bytes: the arbiter has ended. -1 with
 * errno: EPERM: not an administrator; EBUSY: too many readers; EOPNOTSUPP: the arbiter is the
 * module, whose events come by generic netlink (linux/gsched_netlink.h).
 */
GSCHED_API int gsched_monitor(struct gsched *g, bool tasks);

#ifdef __cplusplus
}
#endif

#endif /* GSCHED_H */
