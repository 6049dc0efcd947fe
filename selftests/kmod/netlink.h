/* SPDX-License-Identifier: GPL-2.0-only */
/* Generic netlink by hand, so that tests can send what no library would. */
#ifndef KMOD_NETLINK_H
#define KMOD_NETLINK_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/gsched_netlink.h>

#define NL_BUF	(64 << 10)

struct nl_request {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	char attrs[256];
};

/* What a message says: a pointer to each attribute, or NULL */
struct nl_attrs {
	const struct nlattr *at[GSCHED_A_MAX + 1];
};

static inline struct nl_request nl_request(int family, int cmd, int flags)
{
	return (struct nl_request) {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = family,
			.nlmsg_flags = NLM_F_REQUEST | flags,
			.nlmsg_seq = 1,
		},
		.genl = { .cmd = cmd, .version = GSCHED_GENL_VERSION },
	};
}

static inline void nl_add(struct nl_request *req, int type, const void *data, size_t len)
{
	struct nlattr *attr = (struct nlattr *)((char *)req + req->head.nlmsg_len);

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((char *)attr + NLA_HDRLEN, data, len);
	req->head.nlmsg_len += NLA_ALIGN(attr->nla_len);
}

static inline const void *nl_data(const struct nlattr *attr)
{
	return (const char *)attr + NLA_HDRLEN;
}

static inline uint32_t nl_u32(const struct nlattr *attr)
{
	uint32_t value = UINT32_MAX;

	if (attr && attr->nla_len >= NLA_HDRLEN + sizeof(value))
		memcpy(&value, nl_data(attr), sizeof(value));
	return value;
}

static inline uint64_t nl_u64(const struct nlattr *attr)
{
	uint64_t value = UINT64_MAX;

	if (attr && attr->nla_len >= NLA_HDRLEN + sizeof(value))
		memcpy(&value, nl_data(attr), sizeof(value));
	return value;
}

static inline const char *nl_string(const struct nlattr *attr)
{
	return attr ? nl_data(attr) : "(none)";
}

static inline void nl_parse(const void *from, size_t len, const struct nlattr **at, size_t max)
{
	const char *p = from;

	memset(at, 0, (max + 1) * sizeof(*at));
	while (len >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)p;
		size_t whole = NLA_ALIGN(attr->nla_len);

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > len)
			break;
		if ((attr->nla_type & NLA_TYPE_MASK) <= max)
			at[attr->nla_type & NLA_TYPE_MASK] = attr;
		if (whole >= len)
			break;
		p += whole;
		len -= whole;
	}
}

static inline void nl_attrs(const struct nlmsghdr *msg, struct nl_attrs *attrs)
{
	nl_parse((const char *)NLMSG_DATA(msg) + GENL_HDRLEN, NLMSG_PAYLOAD(msg, GENL_HDRLEN),
		 attrs->at, GSCHED_A_MAX);
}

static inline int nl_open(void)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 10 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&me, sizeof(me)) ||
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int nl_send(int fd, const void *req, size_t len)
{
	return send(fd, req, len, 0) == (ssize_t)len ? 0 : -errno;
}

/*
 * Number of the family, or -errno; @mcgrp: likewise of its multicast group of that name, if not
 * NULL
 */
static inline int nl_family(int fd, const char *mcgrp_name, int *mcgrp)
{
	const struct nlattr *at[CTRL_ATTR_MAX + 1], *group[CTRL_ATTR_MCAST_GRP_MAX + 1], *of;
	struct nl_request req = nl_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	static char buf[NL_BUF];
	struct nlmsghdr *msg = (struct nlmsghdr *)buf;
	size_t left;
	ssize_t got;

	nl_add(&req, CTRL_ATTR_FAMILY_NAME, GSCHED_GENL_NAME, sizeof(GSCHED_GENL_NAME));
	if (nl_send(fd, &req, req.head.nlmsg_len))
		return -errno;
	got = recv(fd, buf, sizeof(buf), 0);
	if (got < 0)
		return -errno;
	if (msg->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(msg))->error;
	nl_parse((const char *)NLMSG_DATA(msg) + GENL_HDRLEN, NLMSG_PAYLOAD(msg, GENL_HDRLEN), at,
		 CTRL_ATTR_MAX);
	of = at[CTRL_ATTR_MCAST_GROUPS];
	for (left = of && mcgrp ? of->nla_len - NLA_HDRLEN : 0, of = of ? nl_data(of) : NULL;
	     left >= NLA_HDRLEN;) {
		nl_parse(nl_data(of), of->nla_len - NLA_HDRLEN, group, CTRL_ATTR_MCAST_GRP_MAX);
		if (!strcmp(nl_string(group[CTRL_ATTR_MCAST_GRP_NAME]), mcgrp_name))
			*mcgrp = nl_u32(group[CTRL_ATTR_MCAST_GRP_ID]);
		left -= NLA_ALIGN(of->nla_len) < left ? NLA_ALIGN(of->nla_len) : left;
		of = (const struct nlattr *)((const char *)of + NLA_ALIGN(of->nla_len));
	}
	return at[CTRL_ATTR_FAMILY_ID] ? *(const uint16_t *)nl_data(at[CTRL_ATTR_FAMILY_ID]) :
					 -ENOENT;
}

/*
 * Reads answers until the dump is over. How many, or -errno as the kernel says; @fn gets each,
 * @intr whether something came or went meanwhile.
 */
static inline int nl_answers(int fd, bool *intr,
			     void (*fn)(void *arg, const struct nlmsghdr *msg,
					const struct nl_attrs *attrs),
			     void *arg)
{
	static char buf[NL_BUF];
	int n = 0;

	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		unsigned int left = got < 0 ? 0 : got;
		struct nlmsghdr *msg;

		if (got < 0)
			return -errno;
		for (msg = (struct nlmsghdr *)buf; NLMSG_OK(msg, left);
		     msg = NLMSG_NEXT(msg, left)) {
			struct nl_attrs attrs;

			if (msg->nlmsg_flags & NLM_F_DUMP_INTR && intr)
				*intr = true;
			if (msg->nlmsg_type == NLMSG_DONE)
				return *(int *)NLMSG_DATA(msg) < 0 ? *(int *)NLMSG_DATA(msg) : n;
			if (msg->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(msg))->error;
			nl_attrs(msg, &attrs);
			if (fn)
				fn(arg, msg, &attrs);
			n++;
		}
	}
}

#endif /* KMOD_NETLINK_H */
