// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl monitor and status with the module: reads its generic netlink family, first the
 * existing objects by dumps, then, for the monitor, events. A table has the names of the
 * attributes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <linux/gsched.h>
#include <linux/gsched_netlink.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_monitor.h"

#define RECEIVE_BYTES	(8 << 20)	/* buffers some ten thousand events */
#define DUMP_TRIES	10		/* of a dump that a change of objects interrupts */

enum kind { NOTHING, STRING, UUID, U32, U64, WORD, STAT, PREEMPTION };

static const char *const modes[] = {
	[GSCHED_MODE_TEMPORAL] = "temporal",
	[GSCHED_MODE_SPATIAL] = "spatial",
	[GSCHED_MODE_SLICED] = "sliced",
	NULL,
};
static const char *const leases[] = {
	[GSCHED_LEASE_NONE] = "none",
	[GSCHED_LEASE_NOTIFY] = "notify",
	[GSCHED_LEASE_FREE] = "free",
	NULL,
};
static const char *const states[] = {
	"", [GSCHED_STATE_QUEUED] = "waiting", [GSCHED_STATE_GRANTED] = "running", NULL,
};
static const char *const tiers[] = {
	[GSCHED_TIER_BLOCK] = "block",
	[GSCHED_TIER_SLICE] = "slice",
	[GSCHED_TIER_LAUNCH] = "launch",
	NULL,
};

static const char *const classes[] = {
	"", [GSCHED_INTENSITY_L_C] = "L_C", [GSCHED_INTENSITY_M_C] = "M_C",
	[GSCHED_INTENSITY_H_C] = "H_C", [GSCHED_INTENSITY_M_M] = "M_M",
	[GSCHED_INTENSITY_H_M] = "H_M", NULL,
};

static const char *const activities[] = {
	[GSCHED_ACTIVITY_IDLE] = "idle", [GSCHED_ACTIVITY_WAITING] = "waiting",
	[GSCHED_ACTIVITY_BUSY] = "busy", NULL,
};

static const struct {
	const char *name;
	enum kind kind;
	const char *const *words;
} attributes[GSCHED_A_MAX + 1] = {
	[GSCHED_A_UUID] = { "uuid", UUID },
	[GSCHED_A_SMS] = { "sms", U32 },
	[GSCHED_A_MODE] = { "mode", WORD, modes },
	[GSCHED_A_POLICY] = { "policy", STRING },
	[GSCHED_A_FAULT] = { "fault", STRING },
	[GSCHED_A_GROUP] = { "group", STRING },
	[GSCHED_A_CLIENT] = { "client", U64 },
	[GSCHED_A_PID] = { "pid", U32 },
	[GSCHED_A_UID] = { "uid", U32 },
	[GSCHED_A_CLIENTS] = { "clients", U32 },
	[GSCHED_A_DECISIONS] = { "decisions", U64 },
	[GSCHED_A_CAPSM_MAX] = { "max", U32 },
	[GSCHED_A_CAPSM_MIN] = { "min", U32 },
	[GSCHED_A_CAPSM_CURRENT] = { "current", U32 },
	[GSCHED_A_WEIGHT] = { "weight", U32 },
	[GSCHED_A_PRIORITY] = { "priority", U32 },
	[GSCHED_A_LATENCY_US] = { "latency_us", U32 },
	[GSCHED_A_BAND] = { "band", STRING },
	[GSCHED_A_LEASE] = { "lease", WORD, leases },
	[GSCHED_A_ARB_FLAGS] = { "flags", U32 },
	[GSCHED_A_SLICE_US] = { "slice_us", U32 },
	[GSCHED_A_SHARE] = { "share", U32 },
	[GSCHED_A_SLOT] = { "slot", U32 },
	[GSCHED_A_SEQ] = { "seq", U32 },
	[GSCHED_A_STATE] = { "state", WORD, states },
	[GSCHED_A_TIER] = { "tier", WORD, tiers },
	[GSCHED_A_BLOCKS] = { "blocks", U64 },
	[GSCHED_A_LIMIT] = { "limit", U32 },
	[GSCHED_A_WAIT_NS] = { "wait_ns", U64 },
	[GSCHED_A_RUN_NS] = { "run_ns", U64 },
	[GSCHED_A_INTENSITY] = { "class", WORD, classes },
	[GSCHED_A_STAT] = { "stat", STAT },
	[GSCHED_A_PREEMPTION] = { "preemption", PREEMPTION },
	[GSCHED_A_USED_NS] = { "used_ns", U64 },
	[GSCHED_A_EVICTIONS] = { "evictions", U32 },
	[GSCHED_A_STREAM] = { "stream", U64 },
	[GSCHED_A_SEEN] = { "seen", U32 },
	[GSCHED_A_LAUNCHED] = { "launched", U32 },
	[GSCHED_A_LEFT] = { "left", U32 },
	[GSCHED_A_START_NS] = { "start_ns", U64 },
	[GSCHED_A_BAND_WEIGHT] = { "weight_milli", U64 },
	[GSCHED_A_APPLIED_US] = { "applied_us", U32 },
	[GSCHED_A_SLICE_ERROR] = { "slice_error", U32 },
	[GSCHED_A_BLOCK_END] = { "block_end", U32 },
	[GSCHED_A_ACTIVITY] = { "activity", WORD, activities },
	[GSCHED_A_TURN] = { "turn", U32 },
	[GSCHED_A_WHY] = { "why", STRING },
	[GSCHED_A_MEMORY_MAX] = { "memory_max", U64 },
	[GSCHED_A_MEMORY] = { "memory", U64 },
};

static const char *const stats[GSCHED_STAT_MAX + 1] = {
	[GSCHED_STAT_USAGE_USEC] = "usage_usec", [GSCHED_STAT_CAPSM_USEC] = "capsm_usec",
	[GSCHED_STAT_RAN_USEC] = "ran_usec", [GSCHED_STAT_PACED_USEC] = "paced_usec",
	[GSCHED_STAT_TASKS] = "tasks", [GSCHED_STAT_GRANTS] = "grants",
	[GSCHED_STAT_EVICTIONS] = "evictions", [GSCHED_STAT_GROWTHS] = "growths",
	[GSCHED_STAT_WAIT_USEC] = "wait_usec", [GSCHED_STAT_CANCELLED] = "cancelled",
	[GSCHED_STAT_DEMANDED_USEC] = "demanded_usec",
	[GSCHED_STAT_PROMISED_USEC] = "promised_usec",
};

static const char *const events[GSCHED_NL_MAX + 1] = {
	[GSCHED_NL_DEVICE_ADD] = "device-add", [GSCHED_NL_DEVICE_DEL] = "device-delete",
	[GSCHED_NL_GROUP_ADD] = "group-add", [GSCHED_NL_GROUP_DEL] = "group-delete",
	[GSCHED_NL_CLIENT_ADD] = "client-add", [GSCHED_NL_CLIENT_DEL] = "client-delete",
	[GSCHED_NL_BAND] = "band", [GSCHED_NL_POLICY] = "policy", [GSCHED_NL_GRANT] = "grant",
	[GSCHED_NL_EVICT] = "evict", [GSCHED_NL_GROW] = "grow", [GSCHED_NL_DONE] = "done",
};

/* The name of an object in a dump, by command */
static const char *const objects[GSCHED_CMD_MAX + 1] = {
	[GSCHED_CMD_DEVICE_GET] = "device", [GSCHED_CMD_GROUP_GET] = "group",
	[GSCHED_CMD_CLIENT_GET] = "client", [GSCHED_CMD_TASK_GET] = "task",
	[GSCHED_CMD_BAND_GET] = "band",
};

struct reader {
	struct nl_sock *sock, *events;
	int family;
	const struct monitor *to;
	bool over;			/* the consumer has stopped */
};

/* ---- from attributes to JSON ---- */

/* As raw text: a double is not exact above 2^53 */
static void add_number(cJSON *to, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cJSON_AddRawToObject(to, name, text);
}

static void add_word(cJSON *to, const char *name, const char *const *words, uint32_t value)
{
	for (uint32_t i = 0; words[i]; i++)
		if (i == value) {
			cJSON_AddStringToObject(to, name, words[i]);
			return;
		}
	add_number(to, name, value);	/* unknown: of a later version of the module */
}

static void add_uuid(cJSON *to, const char *name, const struct nlattr *attr)
{
	char text[2 * GSCHED_UUID_SIZE + 5], *p = text;
	const unsigned char *uuid = nla_data(attr);

	if (nla_len(attr) != GSCHED_UUID_SIZE)
		return;
	for (int i = 0; i < GSCHED_UUID_SIZE; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			     uuid[i]);
	cJSON_AddStringToObject(to, name, text);
}

static void add_stat(cJSON *to, const char *name, struct nlattr *attr)
{
	cJSON *stat = cJSON_AddObjectToObject(to, name);
	struct nlattr *one;
	int left;

	nla_for_each_nested(one, attr, left) {
		int type = nla_type(one);

		if (type <= GSCHED_STAT_MAX && stats[type] && nla_len(one) == sizeof(uint64_t))
			add_number(stat, stats[type], nla_get_u64(one));
	}
}

/* As the lines of gpu.preemption */
static void add_preemption(cJSON *to, const char *name, struct nlattr *attr)
{
	struct nlattr *one[GSCHED_PREEMPTION_MAX + 1];
	cJSON *delays = cJSON_AddObjectToObject(to, name);
	uint64_t count = 0, bucket;
	size_t n;
	char le[32];

	if (nla_parse_nested(one, GSCHED_PREEMPTION_MAX, attr, NULL) ||
	    !one[GSCHED_PREEMPTION_USEC] || !one[GSCHED_PREEMPTION_BUCKETS])
		return;
	add_number(delays, "total_usec", nla_get_u64(one[GSCHED_PREEMPTION_USEC]));
	n = (size_t)nla_len(one[GSCHED_PREEMPTION_BUCKETS]) / sizeof(bucket);
	for (size_t i = 0; i < n; i++) {
		memcpy(&bucket, (const char *)nla_data(one[GSCHED_PREEMPTION_BUCKETS]) +
				i * sizeof(bucket), sizeof(bucket));
		count += bucket;
		snprintf(le, sizeof(le), "le_%llu",
			 (unsigned long long)GSCHED_PREEMPTION_FIRST_US << i);
		if (i + 1 < n)
			add_number(delays, le, count);
	}
	add_number(delays, "count", count);
}

static void add_attribute(cJSON *to, struct nlattr *attr)
{
	int type = nla_type(attr);
	const char *name = type <= GSCHED_A_MAX ? attributes[type].name : NULL;

	if (!name)
		return;
	switch (attributes[type].kind) {
	case STRING:
		cJSON_AddStringToObject(to, name, nla_get_string(attr));
		break;
	case UUID:
		add_uuid(to, name, attr);
		break;
	case U32:
		add_number(to, name, nla_get_u32(attr));
		break;
	case U64:
		add_number(to, name, nla_get_u64(attr));
		break;
	case WORD:
		add_word(to, name, attributes[type].words, nla_get_u32(attr));
		break;
	case STAT:
		add_stat(to, name, attr);
		break;
	case PREEMPTION:
		add_preemption(to, name, attr);
		break;
	case NOTHING:
		break;
	}
}

static const char *text_of(struct nlattr *attr)
{
	return attr ? nla_get_string(attr) : "";
}

static cJSON *object_of(int cmd, struct nlattr *const *attr)
{
	cJSON *o = cJSON_CreateObject();
	uint32_t event = attr[GSCHED_A_EVENT] ? nla_get_u32(attr[GSCHED_A_EVENT]) : 0;
	const char *name = NULL;

	if (!o)
		return NULL;
	if (attr[GSCHED_A_TIME_NS])
		add_number(o, "time_ns", nla_get_u64(attr[GSCHED_A_TIME_NS]));
	cJSON_AddStringToObject(o, "device", text_of(attr[GSCHED_A_DEVICE]));
	if (cmd == GSCHED_CMD_EVENT)
		name = event <= GSCHED_NL_MAX ? events[event] : NULL;
	else if (cmd >= 0 && cmd <= GSCHED_CMD_MAX)
		name = objects[cmd];
	cJSON_AddStringToObject(o, cmd == GSCHED_CMD_EVENT ? "event" : "object",
				name ? : "unknown");
	for (int i = 0; i <= GSCHED_A_MAX; i++)
		if (attr[i])
			add_attribute(o, attr[i]);
	return o;
}

/* ---- netlink ---- */

static int on_message(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *head = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *attr[GSCHED_A_MAX + 1];
	struct reader *r = arg;
	cJSON *o;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, attr, GSCHED_A_MAX, NULL))
		return NL_SKIP;
	o = object_of(head->cmd, attr);
	r->over = !o || !r->to->line(o);
	cJSON_Delete(o);
	return r->over ? NL_STOP : NL_OK;
}

static int nl_failed(const char *what, int err)
{
	if (err == -NLE_PERM || err == -NLE_NOACCESS)
		ctl_error("%s: not allowed: what the programs of all users do is shown to the "
			  "administrator (CAP_SYS_ADMIN) only", what);
	else
		ctl_error("%s: %s", what, nl_geterror(err));
	return CTL_FAIL;
}

static int ask_for(struct reader *r, uint8_t cmd)
{
	struct nl_msg *msg = nlmsg_alloc();
	int err = -NLE_NOMEM;

	if (msg &&
	    genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, r->family, 0, NLM_F_DUMP, cmd,
			GSCHED_GENL_VERSION) &&
	    (!r->to->device || !nla_put_string(msg, GSCHED_A_DEVICE, r->to->device)))
		err = nl_send_auto(r->sock, msg);
	nlmsg_free(msg);
	return err;
}

/* Dumps the existing objects. If a dump has to be repeated, some are passed on twice. */
static int print_objects(struct reader *r, uint8_t cmd)
{
	int err;

	for (int tries = 0; tries < DUMP_TRIES; tries++) {
		err = ask_for(r, cmd);
		if (err >= 0)
			err = nl_recvmsgs_default(r->sock);
		if (err != -NLE_DUMP_INTR)
			break;
	}
	return err < 0 ? err : 0;
}

static int join_multicast(struct nl_sock *sock, const char *group)
{
	int id = genl_ctrl_resolve_grp(sock, GSCHED_GENL_NAME, group);

	return id < 0 ? id : nl_socket_add_membership(sock, id);
}

static int open_socket(struct nl_sock **sock)
{
	*sock = nl_socket_alloc();
	return *sock ? genl_connect(*sock) : -NLE_NOMEM;
}

/* Receives events until the consumer stops */
static int receive_events(struct reader *r)
{
	int err;

	while (!r->over) {
		if (!ctl_monitor_wait(r->to, nl_socket_get_fd(r->events)))
			return 0;
		err = nl_recvmsgs_default(r->events);
		if (err == -NLE_NOMEM)
			r->to->lost();
		else if (err < 0)
			return nl_failed("events", err);
	}
	return 0;
}

static int read_all(struct reader *r)
{
	static const uint8_t cmds[] = { GSCHED_CMD_DEVICE_GET, GSCHED_CMD_GROUP_GET,
					GSCHED_CMD_CLIENT_GET, GSCHED_CMD_TASK_GET,
					GSCHED_CMD_BAND_GET };
	int err;

	r->family = genl_ctrl_resolve(r->sock, GSCHED_GENL_NAME);
	if (r->family < 0) {
		ctl_error("the module has no netlink family here: it is of another version, or "
			  "this is not the initial network namespace");
		return CTL_FAIL;
	}
	/* the limit of unprivileged sockets is some hundred events */
	setsockopt(nl_socket_get_fd(r->events), SOL_SOCKET, SO_RCVBUFFORCE,
		   &(int) { RECEIVE_BYTES }, sizeof(int));
	/* before the dumps, so that no event in between is missed */
	err = join_multicast(r->events, GSCHED_MCGRP_EVENTS);
	if (!err && r->to->tasks)
		err = join_multicast(r->events, GSCHED_MCGRP_TASKS);
	if (err == -NLE_OBJ_NOTFOUND) {
		ctl_error("this kernel cannot restrict who hears events, so the module sends none: "
			  "update the kernel, or use the tracepoints gsched:*");
		return CTL_FAIL;
	}
	if (err)
		return nl_failed("join", err);
	for (size_t i = 0; i < sizeof(cmds) - !r->to->tasks && !r->over; i++) {
		err = print_objects(r, cmds[i]);
		if (err)
			return nl_failed("dump", err);
	}
	return receive_events(r);
}

int ctl_netlink_dump(const struct monitor *to, const uint8_t *cmds, size_t n)
{
	struct reader r = { .to = to };
	int err = open_socket(&r.sock);

	if (!err) {
		nl_socket_modify_cb(r.sock, NL_CB_VALID, NL_CB_CUSTOM, on_message, &r);
		r.family = genl_ctrl_resolve(r.sock, GSCHED_GENL_NAME);
		err = r.family < 0 ? r.family : 0;
	}
	for (size_t i = 0; !err && i < n; i++)
		err = print_objects(&r, cmds[i]);
	nl_socket_free(r.sock);
	return err;
}

int ctl_netlink_monitor(const struct monitor *to)
{
	struct reader r = { .to = to };
	int err, rc;

	err = open_socket(&r.sock);
	if (!err)
		err = open_socket(&r.events);
	if (!err) {
		/* events have no sequence numbers */
		nl_socket_disable_seq_check(r.events);
		nl_socket_modify_cb(r.sock, NL_CB_VALID, NL_CB_CUSTOM, on_message, &r);
		nl_socket_modify_cb(r.events, NL_CB_VALID, NL_CB_CUSTOM, on_message, &r);
		rc = read_all(&r);
	} else {
		rc = nl_failed("netlink", err);
	}
	nl_socket_free(r.events);
	nl_socket_free(r.sock);
	return rc;
}
