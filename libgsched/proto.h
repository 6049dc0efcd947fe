/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol of gschedd's socket: SOCK_SEQPACKET, one message per packet, mostly the ioctls'
 * structures behind a header.
 *
 * Request and reply: struct gsp_header, then the call's body (at most GSP_BODY_MAX bytes). The
 * reply repeats type and cookie, and has err = 0 or a positive errno, and the body as changed by
 * the call. A SUBMIT with GSCHED_SUBMIT_NOWAIT and GSP_FLAG_ASYNC, and a COMPLETE or a REPORT with
 * GSP_FLAG_ASYNC, get no reply. Events are sent unasked, each in a packet with type GSP_EVENT. The reply to ATTACH
 * carries two descriptors (SCM_RIGHTS): the arbiter's page (memfd, opened read-only), then the
 * client's page (memfd); the mmap offsets are 0. A connection attaches once; closing it releases
 * everything. The peer's identity is SO_PEERCRED. GSP_REWRITE and the GSP_GROUP_*, GSP_STATUS calls
 * need no ATTACH.
 */
#ifndef GSCHED_PROTO_H
#define GSCHED_PROTO_H

#include <stdint.h>
#include <linux/gsched.h>

#define GSP_SOCKET_DEFAULT	"/run/gsched/gschedd.sock"	/* overridden by $GSCHED_SOCKET */
#define GSP_BODY_MAX		4096
#define GSP_MAX_FDS		2

/*
 * gschedd answers every call at once, except those that wait for something else (a grant, a
 * rewrite, an MPS server); INFO it answers even then. A client that has heard nothing for
 * GSP_PATIENCE_MS sends INFO. If that is not answered in the same time, gschedd is stopped or
 * hangs, and the client gives up the connection.
 */
#define GSP_PATIENCE_MS		1000
#define GSP_AVOID_MS		5000	/* the process does not connect again for this time */

enum gsp_type {
	/* 0x00 to 0x3f: the ioctl of that number, with its structure as body */
	GSP_INFO = 0x00, GSP_DEVICE_ADD = 0x01, GSP_DEVICE_DEL = 0x02, GSP_ATTACH = 0x03,
	GSP_SUBMIT = 0x04, GSP_COMPLETE = 0x05, GSP_REPORT = 0x06,
	GSP_EVENT = 0x40,	/* from gschedd to the client: struct gsched_event */
	/*
	 * struct gsp_rewrite and one fd: memfd with the image, then the kernel's name; reply: memfd
	 * with the twins' PTX, memfd with their description
	 */
	GSP_REWRITE,
	/* struct gsp_group: path. EEXIST, ENOENT parent, EINVAL name, EPERM */
	GSP_GROUP_CREATE,
	GSP_GROUP_DELETE,	/* EBUSY */
	GSP_GROUP_SET,		/* file = value */
	GSP_GROUP_GET,		/* file; reply: value */
	/* binds a process and its later children; file "procs", value the pid */
	GSP_GROUP_BIND,
	GSP_STATUS,		/* no body; reply: one fd: memfd with JSON text */
	/* struct gsp_group with path "", file "mode", "policy", "switch_us" … */
	GSP_DEVICE_SET,
	/* struct gsp_group with the pid as path: its clients' capsm.max and so on. EPERM, ESRCH */
	GSP_CLIENT_SET,
	GSP_CLIENT_GET,		/* file; reply: value */
	/* struct gsp_band; reply: the MPS server's directories, or a reason */
	GSP_BAND,
	/* struct gsp_monitor; reply: one fd, a socket of packets. EPERM, EBUSY */
	GSP_MONITOR,
};

#define GSP_FLAG_ASYNC		1u

struct gsp_header {
	uint32_t type;
	uint32_t cookie;
	uint32_t err;
	uint32_t flags;		/* GSP_FLAG_*; unknown: EOPNOTSUPP */
};

#define GSP_REWRITE_RESUMABLE	1u	/* twins that can suspend a block-task */
/* twins for static ranges, and limits by rank and by worker */
#define GSP_REWRITE_MODES	2u
#define GSP_REWRITE_DESCRIBE	4u	/* the reply has no PTX */
#define GSP_REWRITE__ALL	(GSP_REWRITE_RESUMABLE | GSP_REWRITE_MODES | GSP_REWRITE_DESCRIBE)
#define GSP_KERNEL_NAME_MAX	65536u

struct gsp_rewrite {
	uint32_t size;
	uint32_t flags;		/* GSP_REWRITE_*; unknown: EOPNOTSUPP */
	uint32_t arch;		/* 90 for sm_90 */
	uint32_t name_size;	/* of a kernel, without a NUL: only that one. 0: all */
	uint64_t image_size;
};

struct gsp_group {
	uint32_t size;
	uint32_t flags;		/* must be 0 */
	char device[GSCHED_NAME_SIZE];	/* "": the first */
	char path[256];		/* "a/b" below the root group, "": the root group */
	char file[32];		/* "capsm.max" … */
	char value[3072];	/* set: new value; get: reply. NUL-terminated */
};

#define GSP_BAND_NAME_SIZE	32	/* a name is at most 31 of [a-z0-9_-] */
#define GSP_BAND_DIR_SIZE	128

#define GSP_BAND_BY_NAME	1u	/* @band names the band; @device and @path are ignored */
#define GSP_BAND_NO_START	2u	/* only return the band's name */
#define GSP_BAND__ALL		(GSP_BAND_BY_NAME | GSP_BAND_NO_START)

/*
 * Which MPS server a program is to use. The band is the named one, or that of the group @path, or
 * of @pid's group if @path is "". The reply comes when the band's MPS control daemon accepts
 * connections. gschedd starts the daemon if needed, for the caller's user, and ends it some time
 * after the last @pid that was named here has exited. A reply with @pipe "": the group has no band,
 * or gschedd was started without --mps. ENOENT: no such group; ENODEV, EINVAL; ESRCH: @pid; EPERM:
 * another user's @pid, or a user that gschedd cannot start processes for; EBUSY: too many servers;
 * ETIMEDOUT, EIO: it does not start. @reason has details.
 */
struct gsp_band {
	uint32_t size;
	uint32_t flags;			/* GSP_BAND_*; unknown: EOPNOTSUPP */
	uint32_t pid;			/* the program; 0: the caller */
	uint32_t __reserved;		/* must be 0 */
	char device[GSCHED_NAME_SIZE];	/* "": the first */
	char path[256];			/* as in struct gsp_group */
	char band[GSP_BAND_NAME_SIZE];	/* in: for GSP_BAND_BY_NAME; out: the name */
	char pipe[GSP_BAND_DIR_SIZE];	/* out: CUDA_MPS_PIPE_DIRECTORY */
	char log[GSP_BAND_DIR_SIZE];	/* out: CUDA_MPS_LOG_DIRECTORY */
	char reason[256];		/* out, with an error */
};

#define GSP_MONITOR_TASKS	1u	/* also grant, evict, grow and done */
#define GSP_MONITOR__ALL	GSP_MONITOR_TASKS

/*
 * The descriptor delivers lines of JSON, each a packet without a newline: first the objects, with
 * the key "object", then the events, with "event". The names are those of `gschedctl monitor -o
 * json`. "lost": the reader was too slow for so many "lines". End of file: gschedd has ended.
 */
struct gsp_monitor {
	uint32_t size;
	uint32_t flags;		/* GSP_MONITOR_*; unknown: EOPNOTSUPP */
};

#endif /* GSCHED_PROTO_H */
