// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The calls: one table of {handler, size of the structure, descriptors}, and one check of sizes and
 * tails, like the module's table of ioctls.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "gschedd.h"

/* a peer with more unread bytes gets no descriptors: they hold memory */
#define UNREAD_MAX	8192

struct call_ctx {
	struct conn *conn;
	const struct gsp_header *h;
	void *body;			/* the call's structure */
	int *in_fds;			/* a handler takes one over by setting it to -1 */
	int fds[GSP_MAX_FDS];		/* for the reply */
	unsigned int n_fds;
	bool later;			/* the reply comes later */
	bool not_saved;			/* a plan, which state.c must not save */
	bool bound;			/* only bindings have changed */
};

struct call {
	int (*fn)(struct call_ctx *ctx);
	uint16_t size;			/* of the structure; 0: none */
	uint8_t in_fds, out_fds;
	uint16_t min_size;		/* of an older one that is accepted, too; 0: only this */
	enum { SAVES_NOTHING, SAVES_BINDINGS, SAVES_GROUPS } saves;	/* what state.c must save */
};

static int call_info(struct call_ctx *ctx)
{
	struct gsched_info *info = ctx->body;

	if (info->flags || info->__reserved)
		return -EOPNOTSUPP;
	info->features = GSCHED_FEATURE_LEASE | GSCHED_FEATURE_FORCE | GSCHED_FEATURE_BANDS |
			 GSCHED_FEATURE_MEMORY;
	info->devices = n_devices;
	return 0;
}

static int call_device_add(struct call_ctx *ctx)
{
	const struct gsched_device_add *req = ctx->body;
	struct device_decl decl = { .sms = req->sms };

	if (req->flags || req->__reserved)
		return -EOPNOTSUPP;
	if (!ctx->conn->admin)
		return -EPERM;
	memcpy(decl.name, req->name, sizeof(decl.name));
	memcpy(decl.uuid, req->uuid, sizeof(decl.uuid));
	return device_add(&decl);
}

static int call_device_del(struct call_ctx *ctx)
{
	const struct gsched_device_del *req = ctx->body;

	if (req->flags & ~GSCHED_DEVICE_DEL__ALL)
		return -EOPNOTSUPP;
	if (!ctx->conn->admin)
		return -EPERM;
	return device_del(req->uuid, req->flags & GSCHED_DEVICE_DEL_FORCE);
}

static int call_attach(struct call_ctx *ctx)
{
	struct gsched_attach *req = ctx->body;
	int err;

	if (req->flags & ~GSCHED_ATTACH__ALL || req->__reserved)
		return -EOPNOTSUPP;
	err = client_attach(ctx->conn, req, ctx->fds);
	if (err)
		return err;
	ctx->n_fds = 2;
	if (req->flags & GSCHED_ATTACH_SERVER)
		mps_server_attached(ctx->conn);
	return 0;
}

static int call_submit(struct call_ctx *ctx)
{
	struct gsched_submit *req = ctx->body;
	struct conn *conn = ctx->conn;
	bool nowait = req->flags & GSCHED_SUBMIT_NOWAIT;
	int err;

	if (req->flags & ~GSCHED_SUBMIT__ALL)
		return -EOPNOTSUPP;
	if (ctx->h->flags & GSP_FLAG_ASYNC && !nowait)
		return -EINVAL;
	if (!conn->client)
		return conn->gone ? -ENODEV : -ENOTCONN;
	err = client_submit(conn->client, req, ctx->h->flags & GSP_FLAG_ASYNC);
	if (!err && req->state == GSCHED_STATE_QUEUED && !nowait) {
		conn->wait[req->slot].cookie = ctx->h->cookie;
		conn->wait[req->slot].req = *req;
		conn->waiting |= 1ull << req->slot;
		ctx->later = true;
	}
	return err;
}

static int call_complete(struct call_ctx *ctx)
{
	const struct gsched_complete *req = ctx->body;

	if (req->flags & ~GSCHED_COMPLETE__ALL)
		return -EOPNOTSUPP;
	if (!ctx->conn->client)
		return ctx->conn->gone ? -ENODEV : -ENOTCONN;
	return client_complete(ctx->conn->client, req);
}

static int call_report(struct call_ctx *ctx)
{
	struct gsched_report *req = ctx->body;

	if (req->flags & ~GSCHED_REPORT__ALL || req->__reserved)
		return -EOPNOTSUPP;
	if (!ctx->conn->client)
		return ctx->conn->gone ? -ENODEV : -ENOTCONN;
	return client_report(ctx->conn->client, req);
}

static int call_rewrite(struct call_ctx *ctx)
{
	const struct gsp_rewrite *req = ctx->body;
	int err;

	if (req->flags & ~GSP_REWRITE__ALL)
		return -EOPNOTSUPP;
	err = rewrite_request(ctx->conn, ctx->h, req, ctx->in_fds[0]);
	if (!err) {
		ctx->in_fds[0] = -1;
		ctx->later = true;
	}
	return err;
}

static bool is_terminated(const char *s, size_t size)
{
	return memchr(s, 0, size);
}

/* Checks the strings of a struct gsp_group, and finds its device. */
static int group_device(struct call_ctx *ctx, struct device **dev)
{
	const struct gsp_group *req = ctx->body;

	if (req->flags)
		return -EOPNOTSUPP;
	if (!is_terminated(req->device, sizeof(req->device)) ||
	    !is_terminated(req->path, sizeof(req->path)) ||
	    !is_terminated(req->file, sizeof(req->file)) ||
	    !is_terminated(req->value, sizeof(req->value)))
		return -EINVAL;
	*dev = device_find(req->device);
	return *dev ? 0 : -ENODEV;
}

static int group_lookup(struct call_ctx *ctx, struct group **group)
{
	const struct gsp_group *req = ctx->body;
	struct device *dev;
	int err = group_device(ctx, &dev);

	if (err)
		return err;
	*group = group_find(dev, req->path);
	return *group ? 0 : -ENOENT;
}

static int call_group_create(struct call_ctx *ctx)
{
	const struct gsp_group *req = ctx->body;
	struct device *dev;
	int err = group_device(ctx, &dev);

	if (err)
		return err;
	return ctx->conn->admin ? group_create(dev, req->path, ctx->conn->uid) : -EPERM;
}

static int call_group_delete(struct call_ctx *ctx)
{
	struct group *group;
	int err = group_lookup(ctx, &group);

	if (err)
		return err;
	return ctx->conn->admin ? group_delete(group) : -EPERM;
}

/* Parses a pid or 0, with or without a newline; -1: invalid. */
static pid_t pid_of(const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || (*end && strcmp(end, "\n")) || errno || pid > INT32_MAX)
		return -1;
	return (pid_t)pid;
}

/* File procs: a pid, 0 is the caller. */
static int bind_value(struct call_ctx *ctx, struct group *group, const char *value)
{
	pid_t pid = pid_of(value);
	int err;

	if (pid < 0)
		return -EINVAL;
	err = pid ? 0 : peer_gone(ctx->conn->src.fd, ctx->conn->pid);
	if (err)
		return err;
	ctx->bound = true;
	return group_bind(group, pid ? pid : ctx->conn->pid, ctx->conn);
}

static int call_group_set(struct call_ctx *ctx)
{
	const struct gsp_group *req = ctx->body;
	struct group *group;
	int err = group_lookup(ctx, &group);

	if (err)
		return err;
	if (!strcmp(req->file, "procs"))
		return bind_value(ctx, group, req->value);
	return ctx->conn->admin ? group_set(group, req->file, req->value) : -EPERM;
}

static int call_group_get(struct call_ctx *ctx)
{
	struct gsp_group *req = ctx->body;
	struct group *group;
	int err = group_lookup(ctx, &group);

	if (!err && !status_shows_file(ctx->conn, group, req->file))
		err = -EPERM;
	return err ? err : group_get(group, req->file, req->value, sizeof(req->value));
}

static int call_group_bind(struct call_ctx *ctx)
{
	const struct gsp_group *req = ctx->body;
	struct group *group;
	int err = group_lookup(ctx, &group);

	if (err)
		return err;
	if (*req->file && strcmp(req->file, "procs"))
		return -EINVAL;
	return bind_value(ctx, group, req->value);
}

static int call_client_set(struct call_ctx *ctx)
{
	const struct gsp_group *req = ctx->body;
	struct device *dev;
	int err = group_device(ctx, &dev);

	if (err)
		return err;
	if (pid_of(req->path) <= 0)
		return -EINVAL;
	return clients_set(dev, pid_of(req->path), req->file, req->value, ctx->conn);
}

static int call_client_get(struct call_ctx *ctx)
{
	struct gsp_group *req = ctx->body;
	struct device *dev;
	int err = group_device(ctx, &dev);

	if (err)
		return err;
	if (pid_of(req->path) <= 0)
		return -EINVAL;
	return clients_get(dev, pid_of(req->path), req->file, req->value, sizeof(req->value),
			   ctx->conn);
}

static int call_status(struct call_ctx *ctx)
{
	ctx->later = true;
	if (!nvml_wait(ctx->conn, ctx->h))
		status_reply(ctx->conn, ctx->h);
	return 0;
}

static int call_monitor(struct call_ctx *ctx)
{
	const struct gsp_monitor *req = ctx->body;
	int fd;

	if (req->flags & ~GSP_MONITOR__ALL)
		return -EOPNOTSUPP;
	/* it reveals when other users' kernels run */
	if (!ctx->conn->admin)
		return -EPERM;
	fd = monitor_add(req->flags & GSP_MONITOR_TASKS);
	if (fd < 0)
		return fd;
	ctx->fds[ctx->n_fds++] = fd;
	return 0;
}

static int call_device_set(struct call_ctx *ctx)
{
	const struct gsp_group *req = ctx->body;
	struct device *dev;
	int err = group_device(ctx, &dev);

	if (err)
		return err;
	if (*req->path)
		return -EINVAL;
	ctx->not_saved = !strcmp(req->file, "plan");
	return ctx->conn->admin ? device_set(dev, req->file, req->value) : -EPERM;
}

static int call_band(struct call_ctx *ctx)
{
	struct gsp_band *req = ctx->body;
	int err;

	if (req->flags & ~GSP_BAND__ALL || req->__reserved)
		return -EOPNOTSUPP;
	if (!is_terminated(req->device, sizeof(req->device)) ||
	    !is_terminated(req->path, sizeof(req->path)) ||
	    !is_terminated(req->band, sizeof(req->band)) || req->pid > INT32_MAX)
		return -EINVAL;
	err = mps_request(ctx->conn, ctx->h, req);
	if (err != -EINPROGRESS)
		return err;
	ctx->later = true;
	return 0;
}

static const struct call calls[] = {
	[GSP_INFO]		= { call_info, sizeof(struct gsched_info) },
	[GSP_DEVICE_ADD]	= { call_device_add, sizeof(struct gsched_device_add) },
	[GSP_DEVICE_DEL]	= { call_device_del, sizeof(struct gsched_device_del) },
	[GSP_ATTACH]		= { call_attach, sizeof(struct gsched_attach), 0, 2 },
	[GSP_SUBMIT]		= { call_submit, sizeof(struct gsched_submit) },
	[GSP_COMPLETE]		= { call_complete, sizeof(struct gsched_complete) },
	[GSP_REPORT]		= { call_report, sizeof(struct gsched_report),
				    .min_size = offsetof(struct gsched_report, __reserved) },
	[GSP_REWRITE]		= { call_rewrite, sizeof(struct gsp_rewrite), 1, 2 },
	[GSP_GROUP_CREATE]	= { call_group_create, sizeof(struct gsp_group),
				    .saves = SAVES_GROUPS },
	[GSP_GROUP_DELETE]	= { call_group_delete, sizeof(struct gsp_group),
				    .saves = SAVES_GROUPS },
	[GSP_GROUP_SET]		= { call_group_set, sizeof(struct gsp_group),
				    .saves = SAVES_GROUPS },
	[GSP_GROUP_GET]		= { call_group_get, sizeof(struct gsp_group) },
	[GSP_GROUP_BIND]	= { call_group_bind, sizeof(struct gsp_group),
				    .saves = SAVES_BINDINGS },
	[GSP_STATUS]		= { call_status, 0, 0, 1 },
	[GSP_DEVICE_SET]	= { call_device_set, sizeof(struct gsp_group),
				    .saves = SAVES_GROUPS },
	[GSP_CLIENT_SET]	= { call_client_set, sizeof(struct gsp_group) },
	[GSP_CLIENT_GET]	= { call_client_get, sizeof(struct gsp_group) },
	[GSP_BAND]		= { call_band, sizeof(struct gsp_band) },
	[GSP_MONITOR]		= { call_monitor, sizeof(struct gsp_monitor), 0, 1 },
};

/*
 * Checks the caller's structure of `size` bytes: the tail of a longer one than ours must be zero.
 * What a shorter one lacks is zero from here on.
 */
static int check_size(struct packet *p, size_t len, const struct call *call, uint32_t *size)
{
	if (!call->size) {
		*size = 0;
		return len ? -EINVAL : 0;
	}
	if (len < sizeof(*size))
		return -EINVAL;
	memcpy(size, p->body, sizeof(*size));
	if (*size < (call->min_size ? call->min_size : call->size) || *size != len)
		return -EINVAL;
	if (len < call->size)
		memset(p->body + len, 0, call->size - len);
	for (size_t i = call->size; i < len; i++)
		if (p->body[i])
			return -E2BIG;
	return 0;
}

void call_dispatch(struct conn *conn, struct packet *p, size_t len, int *fds, unsigned int n_fds)
{
	struct call_ctx ctx = { .conn = conn, .h = &p->h, .body = p->body, .in_fds = fds };
	const struct call *call = NULL;
	uint32_t size;
	int err, unread;

	if (p->h.type < sizeof(calls) / sizeof(calls[0]) && calls[p->h.type].fn)
		call = &calls[p->h.type];
	if (!call)
		err = -ENOTTY;
	else if (p->h.flags & ~GSP_FLAG_ASYNC)
		err = -EOPNOTSUPP;
	else if (p->h.flags & GSP_FLAG_ASYNC && p->h.type != GSP_SUBMIT &&
		 p->h.type != GSP_COMPLETE && p->h.type != GSP_REPORT)
		err = -EINVAL;
	else if (n_fds != call->in_fds)
		err = -EINVAL;
	else
		err = check_size(p, len, call, &size);
	if (!err && call->out_fds && !ioctl(conn->src.fd, SIOCOUTQ, &unread) && unread > UNREAD_MAX)
		err = -EBUSY;
	if (err) {
		close_foreign(fds, n_fds);
		conn_reply(conn, &p->h, err, NULL, 0, NULL, 0);
		return;
	}
	err = call->fn(&ctx);
	/* bindings are void after a machine crash, so they need not be synced to disk */
	if (!err && call->saves && !ctx.not_saved)
		state_save(call->saves == SAVES_GROUPS && !ctx.bound);
	for (unsigned int i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			close_foreign(&fds[i], 1);
	if (ctx.later) {
		if (p->h.type == GSP_SUBMIT)
			conn->wait[((struct gsched_submit *)p->body)->slot].len = len;
		return;
	}
	if (p->h.flags & GSP_FLAG_ASYNC &&
	    (p->h.type != GSP_SUBMIT ||
	     ((struct gsched_submit *)p->body)->flags & GSCHED_SUBMIT_NOWAIT))
		return;
	conn_reply(conn, &p->h, err, p->body, len, ctx.fds, ctx.n_fds);
}
