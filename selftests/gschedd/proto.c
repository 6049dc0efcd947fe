// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The protocol: what each call gives, and the errno of each wrong one, all its other fields being
 * right.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

static void packets(void)
{
	struct gsched_info info = { .size = sizeof(info) };
	uint8_t big[sizeof(struct gsp_header) + GSP_BODY_MAX + 1] = { 0 };
	struct {
		struct gsched_info info;
		uint32_t tail[4];
	} longer = { .info.size = sizeof(longer) };
	struct gsp_header h = { .type = GSP_INFO, .cookie = 7 };
	int s = peer(), pipe_fd[2], fds[3];
	struct reply r;
	char c;

	is(call(s, GSP_INFO, &info, sizeof(info)), 0, "INFO");
	ok(info.features == (GSCHED_FEATURE_LEASE | GSCHED_FEATURE_FORCE |
				GSCHED_FEATURE_BANDS | GSCHED_FEATURE_MEMORY) &&
	   info.devices == 1, "INFO tells the features and one device");
	for (unsigned int i = 0; i < 4; i++) {
		static const unsigned int types[] = { 0x07, 0x3f, GSP_MONITOR + 1, UINT32_MAX };

		is(call(s, types[i], &info, sizeof(info)), ENOTTY, "type %#x: ENOTTY", types[i]);
	}

	send_raw(s, "abc", 3, NULL, 0);
	ok(receive(s, &r, 10000) && r.h.err == EINVAL, "a packet shorter than the header: EINVAL");
	is(call(s, GSP_INFO, NULL, 0), EINVAL, "no body: EINVAL");
	is(call(s, GSP_INFO, &info, 3), EINVAL, "a body too short for its size: EINVAL");
	memcpy(big, &h, sizeof(h));
	send_raw(s, big, sizeof(big), NULL, 0);
	ok(receive(s, &r, 10000) && r.h.err == EMSGSIZE && r.h.cookie == 7,
	   "a packet too long: EMSGSIZE, with its cookie");
	info = (struct gsched_info){ .size = sizeof(info) - 1 };
	is(call(s, GSP_INFO, &info, sizeof(info)), EINVAL, "size too small: EINVAL");
	info.size = sizeof(info) + 8;
	is(call(s, GSP_INFO, &info, sizeof(info)), EINVAL, "size beyond the packet: EINVAL");
	info.size = sizeof(info);
	is(call(s, GSP_INFO, &longer, sizeof(info)), EINVAL, "a packet shorter than size: EINVAL");
	is(call(s, GSP_INFO, &longer, sizeof(longer)), 0, "a longer structure whose tail is zero");
	ok(longer.info.devices == 1 && longer.info.size == sizeof(longer), "comes back whole");
	longer = (typeof(longer)){ .info.size = sizeof(longer), .tail[3] = 1 };
	is(call(s, GSP_INFO, &longer, sizeof(longer)), E2BIG, "a tail that is not zero: E2BIG");

	send_req(s, GSP_INFO, 2, 9, &info, sizeof(info), -1);
	ok(receive(s, &r, 10000) && r.h.err == EOPNOTSUPP && r.h.cookie == 9,
	   "an unknown header flag: EOPNOTSUPP");
	send_req(s, GSP_INFO, GSP_FLAG_ASYNC, 9, &info, sizeof(info), -1);
	ok(receive(s, &r, 10000) && r.h.err == EINVAL,
	   "ASYNC on a call that has an answer: EINVAL");
	info.flags = 1;
	is(call(s, GSP_INFO, &info, sizeof(info)), EOPNOTSUPP, "INFO: unknown flag: EOPNOTSUPP");
	info.flags = 0;
	info.__reserved = 1;
	is(call(s, GSP_INFO, &info, sizeof(info)), EOPNOTSUPP, "INFO: reserved: EOPNOTSUPP");
	info = (struct gsched_info){ .size = sizeof(info) };

	if (pipe2(pipe_fd, O_CLOEXEC))
		exit(1);
	is(call_fds(s, GSP_INFO, &info, sizeof(info), pipe_fd[1], &r), EINVAL,
	   "a descriptor that no one asked for: EINVAL");
	close(pipe_fd[1]);
	is(read(pipe_fd[0], &c, 1), 0, "and it is closed");
	close(pipe_fd[0]);
	if (pipe2(pipe_fd, O_CLOEXEC))
		exit(1);
	fds[0] = fds[1] = fds[2] = pipe_fd[1];
	memcpy(big, &h, sizeof(h));
	memcpy(big + sizeof(h), &info, sizeof(info));
	send_raw(s, big, sizeof(h) + sizeof(info), fds, 3);
	ok(receive(s, &r, 10000) && r.h.err == EINVAL,
	   "more descriptors than any call takes: EINVAL");
	close(pipe_fd[1]);
	is(read(pipe_fd[0], &c, 1), 0, "and they are closed");
	close(pipe_fd[0]);
	is(call(s, GSP_INFO, &info, sizeof(info)), 0, "the connection survived all of it");

	send_raw(s, NULL, 0, NULL, 0);
	ok(!receive(s, &r, 10000), "an empty packet ends it");
	close(s);
}

/* A socket whose last close(2) takes a minute: what it has sent is not read. -1: there is none */
static int lingering(void)
{
	const struct linger minute = { .l_onoff = 1, .l_linger = 60 };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	static const char text[65536];
	socklen_t len = sizeof(addr);
	int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(to, (struct sockaddr *)&addr, len) || listen(to, 1) ||
	    getsockname(to, (struct sockaddr *)&addr, &len) ||
	    connect(fd, (struct sockaddr *)&addr, len) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)))
		return -1;
	while (send(fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		;
	return fd;
}

/* Whoever passes descriptors that take long to close, no one waits for that. */
static void slow_to_close(void)
{
	struct {
		struct gsp_header h;
		struct gsched_info info;
	} req = { .h = { .type = GSP_INFO }, .info = { .size = sizeof(req.info) } };
	struct gsched_info info = { .size = sizeof(info) };
	int s = peer(), other = peer(), fds[3] = { lingering(), lingering(), lingering() };
	int last = lingering(), status;
	struct reply r;

	if (last < 0) {
		skip("no network", "descriptors that take long to close");
		close(s);
		close(other);
		return;
	}
	/* stopped: the last close is not to be ours */
	kill(daemon_pid, SIGSTOP);
	waitpid(daemon_pid, &status, WUNTRACED);
	send_raw(s, &req, sizeof(req), fds, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	kill(daemon_pid, SIGCONT);
	ok(receive(s, &r, 10000) && r.h.err == EINVAL, "sockets that linger: EINVAL");
	is(call(other, GSP_INFO, &info, sizeof(info)), 0, "and others are served");
	/* the empty packet ends the connection: the next one is not read */
	kill(daemon_pid, SIGSTOP);
	waitpid(daemon_pid, &status, WUNTRACED);
	send_raw(s, &req, 0, NULL, 0);
	send_raw(s, &req, sizeof(req), &last, 1);
	close(last);
	kill(daemon_pid, SIGCONT);
	ok(!receive(s, &r, 10000), "a connection ends with one that was not read");
	is(call(other, GSP_INFO, &info, sizeof(info)), 0, "and others are served");
	close(other);
	close(s);
}

static void attaching(void)
{
	struct gsched_attach req = { .size = sizeof(req) };
	struct gsched_submit sub = task(0, 1, 1);
	struct gsched_complete com = { .size = sizeof(com), .seq = 1 };
	struct peer_client c, d, e;
	struct reply r;
	char path[64];
	void *p;
	int s = peer(), fd;

	is(call(s, GSP_SUBMIT, &sub, sizeof(sub)), ENOTCONN, "SUBMIT before ATTACH: ENOTCONN");
	is(call(s, GSP_COMPLETE, &com, sizeof(com)), ENOTCONN, "COMPLETE before ATTACH: ENOTCONN");
	is(call(s, GSP_ATTACH, &req, sizeof(req)), ENOENT, "ATTACH: a UUID nobody has: ENOENT");
	memcpy(req.uuid, uuid, sizeof(uuid));
	req.flags = GSCHED_ATTACH__ALL + 1;
	is(call(s, GSP_ATTACH, &req, sizeof(req)), EOPNOTSUPP, "ATTACH: unknown flag: EOPNOTSUPP");
	req.flags = 0;
	req.__reserved = 1;
	is(call(s, GSP_ATTACH, &req, sizeof(req)), EOPNOTSUPP, "ATTACH: reserved: EOPNOTSUPP");
	req.__reserved = 0;
	is(call_fds(s, GSP_ATTACH, &req, sizeof(req), -1, &r), 0, "ATTACH");
	is(r.n_fds, 2, "gives two descriptors");
	ok(req.sms == SMS && req.arb_size == sizeof(struct gsched_arb_page) && req.client_id &&
	   req.cl_size == sizeof(struct gsched_cl_page) && !req.arb_offset && !req.cl_offset,
	   "and says what they are");

	p = mmap(NULL, req.arb_size, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd[0], 0);
	ok(p == MAP_FAILED && errno == EACCES, "the arbiter's page cannot be mapped writable");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r.fd[0]);
	fd = open(path, O_RDWR);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, req.arb_size, PROT_READ | PROT_WRITE,
				       MAP_SHARED, fd, 0);
	ok(p == MAP_FAILED, "nor after opening it again");
	ok(fd < 0 || (write(fd, "x", 1) < 0 && errno == EPERM), "nor can it be written to");
	if (fd >= 0)
		close(fd);
	ok(ftruncate(r.fd[1], 0) < 0 && errno == EPERM, "the client's page cannot be cut short");
	ok(fcntl(r.fd[1], F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno == EPERM, "nor sealed");
	p = mmap(NULL, req.arb_size, PROT_READ, MAP_SHARED, r.fd[0], 0);
	ok(p != MAP_FAILED && ((struct gsched_arb_page *)p)->header.sms == SMS,
	   "the arbiter's page reads");
	munmap(p, req.arb_size);
	reply_free(&r);
	is(call(s, GSP_ATTACH, &req, sizeof(req)), EBUSY, "ATTACH twice: EBUSY");
	close(s);

	attach(&c, GSCHED_ATTACH_MPS);
	attach(&d, GSCHED_ATTACH_MPS);
	ok(d.info.mode == GSCHED_MODE_SPATIAL && d.arb->header.mode == GSCHED_MODE_SPATIAL,
	   "clients under MPS: spatial");
	attach(&e, 0);
	ok(e.info.mode == GSCHED_MODE_TEMPORAL && d.arb->header.mode == GSCHED_MODE_TEMPORAL,
	   "one of them is not: temporal");
	detach(&c);
	detach(&d);
	detach(&e);
}

static void submitting(void)
{
	struct peer_client c;
	struct gsched_submit req;
	struct gsched_complete com = { .size = sizeof(com), .seq = 1 };

	attach(&c, GSCHED_ATTACH_MPS);
#define REJECTED(field, value, want)							\
	do {										\
		req = task(0, 1, 100);							\
		req.field = value;							\
		is(submit(&c, &req), want, "SUBMIT: %s = %s: %s", #field, #value, #want);	\
	} while (0)
	REJECTED(flags, 2, EOPNOTSUPP);
	REJECTED(slot, GSCHED_SLOTS, EINVAL);
	REJECTED(slot, UINT32_MAX, EINVAL);
	REJECTED(seq, 0, EINVAL);
	REJECTED(tier, 3, EINVAL);
	REJECTED(tier, GSCHED_TIER_SLICE, EOPNOTSUPP);
	REJECTED(blocks_per_sm, 0, EINVAL);
	REJECTED(blocks_per_sm, 33, EINVAL);
	REJECTED(blocks, 0, EINVAL);

	req = task(3, 1, 100);
	is(submit(&c, &req), 0, "SUBMIT: granted");
	is(req.state, GSCHED_STATE_GRANTED, "says its state");
	is(req.window, SMS * GSCHED_CAPSM, "all of the device, to a task that can use it");
	ok(c.arb->slot[3].window == req.window, "the page says the same");
	req = task(3, 2, 100);
	is(submit(&c, &req), EBUSY, "SUBMIT: slot taken: EBUSY");
	is(complete(&c, 3, 2, 0), ENOENT, "COMPLETE: another seq: ENOENT");
	is(complete(&c, 4, 1, 0), ENOENT, "COMPLETE: empty slot: ENOENT");
	is(complete(&c, GSCHED_SLOTS, 1, 0), EINVAL, "COMPLETE: slot out of range: EINVAL");
	is(complete(&c, 3, 1, 2), EOPNOTSUPP, "COMPLETE: unknown flag: EOPNOTSUPP");
	is(complete(&c, 3, 1, 0), 0, "COMPLETE");
	is(complete(&c, 3, 1, 0), ENOENT, "COMPLETE twice: ENOENT");
	req = task(3, 2, 100);
	is(submit(&c, &req), 0, "the slot can be used again");

	com.slot = 3;
	com.seq = 2;
	send_req(c.s, GSP_COMPLETE, GSP_FLAG_ASYNC, 1, &com, sizeof(com), -1);
	req = task(3, 3, 100);
	req.flags = GSCHED_SUBMIT_NOWAIT;
	send_req(c.s, GSP_SUBMIT, GSP_FLAG_ASYNC, 2, &req, sizeof(req), -1);
	req.flags = 0;
	is(submit(&c, &req), EBUSY, "ASYNC calls are done in order, and get no reply");
	send_req(c.s, GSP_SUBMIT, GSP_FLAG_ASYNC, 3, &req, sizeof(req), -1);
	{
		struct reply r;

		ok(receive(c.s, &r, 10000) && r.h.type == GSP_SUBMIT && r.h.err == EINVAL &&
		   r.h.cookie == 3, "ASYNC without NOWAIT: EINVAL");
	}
	detach(&c);
}

static void reporting(void)
{
	struct gsched_report ok_req = { .size = sizeof(ok_req), .flags = GSCHED_REPORT__ALL,
					.activity = GSCHED_ACTIVITY_BUSY }, req;
	struct gsched_submit sub = task(0, 1, 1);
	struct peer_client c;
	struct reply r;
	int s = peer();

	is(call(s, GSP_REPORT, &ok_req, sizeof(ok_req)), ENOTCONN,
	   "REPORT before ATTACH: ENOTCONN");
	close(s);
	attach(&c, GSCHED_ATTACH_SLICE);
	is(call(c.s, GSP_REPORT, &ok_req, sizeof(ok_req)), 0, "REPORT");
	req = ok_req;
	req.flags = GSCHED_REPORT__ALL + 1;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EOPNOTSUPP,
	   "REPORT: unknown flag: EOPNOTSUPP");
	req = ok_req;
	req.prioritised = 2;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL,
	   "REPORT: prioritised is 0 or 1: EINVAL");
	req = ok_req;
	req.activity = GSCHED_ACTIVITY_BUSY + 1;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL,
	   "REPORT: activity out of range: EINVAL");
	req = ok_req;
	req.slice_error = 4096;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL, "REPORT: no errno: EINVAL");
	req = ok_req;
	req.size = 0;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL, "REPORT: size too small: EINVAL");
	req = ok_req;
	req.size = offsetof(struct gsched_report, block_us);
	is(call(c.s, GSP_REPORT, &req, req.size), EINVAL, "REPORT: without block_us: EINVAL");
	req = ok_req;
	req.__reserved = 1;
	req.memory = GSCHED_MEMORY_MAX + 1;
	req.size = offsetof(struct gsched_report, __reserved);
	send_req(c.s, GSP_REPORT, 0, 2, &req, req.size, -1);
	ok(receive(c.s, &r, 10000) && !r.h.err && r.len == req.size,
	   "REPORT: an older structure, which ends with block_us");
	req = ok_req;
	req.__reserved = 1;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EOPNOTSUPP,
	   "REPORT: reserved field: EOPNOTSUPP");
	req = ok_req;
	req.flags = GSCHED_REPORT_ASKS;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL,
	   "REPORT: asks for no memory: EINVAL");
	req = ok_req;
	req.memory = GSCHED_MEMORY_MAX + 1;
	is(call(c.s, GSP_REPORT, &req, sizeof(req)), EINVAL,
	   "REPORT: more memory than there is: EINVAL");
	send_req(c.s, GSP_REPORT, GSP_FLAG_ASYNC, 1, &ok_req, sizeof(ok_req), -1);
	is(submit(&c, &sub), 0, "an ASYNC report has no reply");
	detach(&c);
	attach(&c, GSCHED_ATTACH_SERVER | GSCHED_ATTACH_SLICE);
	is(submit(&c, &sub), EINVAL, "SUBMIT of an MPS server: EINVAL");
	detach(&c);
}

static void administration(void)
{
	struct gsched_device_add add = { .size = sizeof(add), .uuid = { 99 },
					 .name = "gpu9", .sms = 8 };
	struct gsched_device_del del = { .size = sizeof(del), .uuid = { 99 } };
	struct gsp_group group = { .size = sizeof(group) };
	int s = peer();

	is(call(s, 0x02, &del, sizeof(del)), ENOENT, "DEVICE_DEL: unknown: ENOENT");
	is(call(s, 0x01, &add, sizeof(add)), 0, "DEVICE_ADD");
	is(call(s, 0x01, &add, sizeof(add)), EEXIST, "DEVICE_ADD again: EEXIST");
	add.uuid[0] = 98;
	strcpy(add.name, "GPU");
	is(call(s, 0x01, &add, sizeof(add)), EINVAL, "DEVICE_ADD: bad name: EINVAL");
	memset(add.name, 'a', sizeof(add.name));
	is(call(s, 0x01, &add, sizeof(add)), EINVAL, "DEVICE_ADD: name without end: EINVAL");
	memset(add.name, 0, sizeof(add.name));
	strcpy(add.name, "gpu8");
	add.sms = 0;
	is(call(s, 0x01, &add, sizeof(add)), EINVAL, "DEVICE_ADD: no SMs: EINVAL");
	add.sms = GSCHED_SMS_MAX + 1;
	is(call(s, 0x01, &add, sizeof(add)), EINVAL, "DEVICE_ADD: too many SMs: EINVAL");
	add.sms = 8;
	add.flags = 1;
	is(call(s, 0x01, &add, sizeof(add)), EOPNOTSUPP, "DEVICE_ADD: unknown flag: EOPNOTSUPP");
	strcpy(group.device, "gpu9");
	strcpy(group.path, "x");
	is(call(s, GSP_GROUP_CREATE, &group, sizeof(group)), 0, "a group on the second device");
	is(call(s, 0x02, &del, sizeof(del)), EBUSY, "DEVICE_DEL with a group: EBUSY");
	is(call(s, GSP_GROUP_DELETE, &group, sizeof(group)), 0, "the group goes");
	is(call(s, 0x02, &del, sizeof(del)), 0, "DEVICE_DEL");
	is(call(s, GSP_GROUP_CREATE, &group, sizeof(group)), ENODEV,
	   "a group of a device that is gone: ENODEV");

	group = (struct gsp_group){ .size = sizeof(group), .file = "mode", .value = "spatial" };
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), 0, "DEVICE_SET mode");
	strcpy(group.value, "sideways");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EINVAL,
	   "DEVICE_SET: unknown mode: EINVAL");
	strcpy(group.value, "auto\n");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), 0,
	   "DEVICE_SET: a newline as echo writes it");
	strcpy(group.file, "policy");
	strcpy(group.value, "chance");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EINVAL,
	   "DEVICE_SET: unknown policy: EINVAL");
	strcpy(group.value, "chaos");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EINVAL,
	   "DEVICE_SET: policy chaos is only for a daemon started with it: EINVAL");
	strcpy(group.value, "hpf");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), 0, "DEVICE_SET policy");
	strcpy(group.file, "colour");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), ENOENT,
	   "DEVICE_SET: unknown file: ENOENT");
	strcpy(group.file, "mode");
	strcpy(group.path, "x");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EINVAL,
	   "DEVICE_SET with a group: EINVAL");
	group.flags = 1;
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EOPNOTSUPP,
	   "DEVICE_SET: unknown flag: EOPNOTSUPP");
	group.flags = 0;
	memset(group.path, 'x', sizeof(group.path));
	is(call(s, GSP_GROUP_CREATE, &group, sizeof(group)), EINVAL, "a path without end: EINVAL");
	memset(group.value, 'x', sizeof(group.value));
	strcpy(group.path, "");
	is(call(s, GSP_GROUP_SET, &group, sizeof(group)), EINVAL, "a value without end: EINVAL");
	is(call(s, GSP_STATUS, &group, sizeof(group)), EINVAL, "STATUS with a body: EINVAL");
	close(s);
}

/* @wait: lines may be on their way */
static bool hears(int fd, const char *what, bool wait)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char line[1024 + 1];
	ssize_t n;

	while (poll(&p, 1, wait ? 10000 : 0) > 0 &&
	       (n = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT)) > 0) {
		line[n] = '\0';
		if (strstr(line, what))
			return true;
	}
	return false;
}

/* Who watches is told what there is and what happens, and holds nobody up */
static void monitors(void)
{
	struct gsp_monitor req = { .size = sizeof(req), .flags = GSP_MONITOR_TASKS };
	struct gsp_group group = { .size = sizeof(group), .device = "gpu0", .path = "watched" };
	struct gsched_submit sub = task(1, 1, 1000);
	struct peer_client c;
	int s = peer(), slow, few, err = 0;
	struct reply r;

	req.flags = GSP_MONITOR__ALL + 1;
	is(call(s, GSP_MONITOR, &req, sizeof(req)), EOPNOTSUPP,
	   "MONITOR: unknown flag: EOPNOTSUPP");
	req.flags = 0;
	req.size = 4;
	is(call(s, GSP_MONITOR, &req, 4), EINVAL, "MONITOR: too short: EINVAL");
	req.size = sizeof(req);
	is(call_fds(s, GSP_MONITOR, &req, sizeof(req), -1, &r), 0, "MONITOR");
	ok(r.n_fds == 1, "gives a descriptor");
	few = r.fd[0];
	req.flags = GSP_MONITOR_TASKS;
	is(call_fds(s, GSP_MONITOR, &req, sizeof(req), -1, &r), 0, "another one");
	slow = r.fd[0];
	ok(hears(few, "\"object\":\"device\"", true) &&
	   hears(few, "\"object\":\"group\",\"group\":\"/\"", true), "what there is comes first");
	is(call(s, GSP_GROUP_CREATE, &group, sizeof(group)), 0, "a group");
	ok(hears(few, "\"event\":\"group-add\",\"group\":\"watched\"", true), "it is told of");
	attach(&c, GSCHED_ATTACH_MPS);
	ok(hears(few, "\"event\":\"client-add\"", true), "so is a client");
	for (int i = 1; i <= 10000 && !err; i++) {
		sub.seq = i;
		sub.intensity = i == 1 ? GSCHED_INTENSITY_H_M : GSCHED_INTENSITY_UNKNOWN;
		err = submit(&c, &sub);
		if (!err)
			err = complete(&c, sub.slot, i, 0);
	}
	is(err, 0, "ten thousand tasks, and one who does not read");
	detach(&c);
	ok(hears(few, "\"event\":\"client-delete\"", true),
	   "who asked for no tasks heard of none, and of the client's end");
	ok(hears(slow, ",\"class\":\"H_M\"}", true) && hears(slow, "\"event\":\"done\"", true),
	   "tasks come to who asked for them, with their class");
	ok(hears(slow, ",\"used_ns\":", true) && hears(slow, ",\"evictions\":0}", true),
	   "and at the end with what they used");
	while (hears(slow, "{", false))
		;
	is(call(s, GSP_GROUP_DELETE, &group, sizeof(group)), 0, "the group goes");
	ok(hears(slow, "\"event\":\"lost\",\"lines\":", true),
	   "the one that did not read is told that lines are lost");
	ok(hears(slow, "group-delete", true), "and goes on");
	close(slow);
	for (int i = 0; i < 15; i++) {
		err = call_fds(s, GSP_MONITOR, &req, sizeof(req), -1, &r);
		if (err)
			break;
	}
	is(err, 0, "who has gone takes no place");
	is(call(s, GSP_MONITOR, &req, sizeof(req)), EBUSY, "seventeen are too many: EBUSY");
	reply_free(&r);
	close(few);
	close(s);
}

/* A device is taken away: from a client that runs a task, and from one that waits for its grant. */
static void by_force(void)
{
	struct gsched_device_add add = { .size = sizeof(add), .name = "gpu0", .sms = SMS };
	struct gsched_device_del del = { .size = sizeof(del), .flags = GSCHED_DEVICE_DEL__ALL + 1 };
	struct gsp_group group = { .size = sizeof(group), .device = "gpu0", .path = "x" };
	struct gsched_submit req = task(0, 1, 4), other = task(1, 2, 4);
	struct peer_client c, d;
	struct gsched_event ev;
	struct reply r;
	bool gone = false;
	char *text;
	int s = peer();

	attach(&c, 0);
	attach(&d, 0);
	req.stream = 987654321987654321ull;
	is(submit(&c, &req), 0, "SUBMIT with a stream");
	is(submit(&c, &other), 0, "SUBMIT without one");
	other = task(2, 3, 4);
	other.intensity = GSCHED_INTENSITY__MAX + 1;
	is(submit(&c, &other), EINVAL, "SUBMIT of an unknown class: EINVAL");
	other.intensity = 0;
	other.size = offsetof(struct gsched_submit, window);
	is(call(c.s, GSP_SUBMIT, &other, other.size), EINVAL, "SUBMIT without room for the answer: EINVAL");
	text = status_text();
	ok(strstr(text, "\"stream\":\"987654321987654321\"") && strstr(text, "\"stream\":\"0\""),
	   "the status shows the streams");
	free(text);
	req = task(0, 1, 4);
	send_req(d.s, GSP_SUBMIT, 0, 77, &req, sizeof(req), -1);

	memcpy(del.uuid, uuid, sizeof(uuid));
	is(call(s, 0x02, &del, sizeof(del)), EOPNOTSUPP, "DEVICE_DEL: unknown flag: EOPNOTSUPP");
	del.flags = 0;
	is(call(s, 0x02, &del, sizeof(del)), EBUSY, "DEVICE_DEL with clients: EBUSY");
	del.flags = GSCHED_DEVICE_DEL_FORCE;
	is(call(s, GSP_GROUP_CREATE, &group, sizeof(group)), 0, "a group");
	is(call(s, 0x02, &del, sizeof(del)), EBUSY, "DEVICE_DEL by force with a group: EBUSY");
	while (next_event(&c, &ev, 0))
		gone |= ev.type == GSCHED_EVENT_GONE;
	ok(!gone, "nobody is sent away for that");
	is(call(s, GSP_GROUP_DELETE, &group, sizeof(group)), 0, "the group goes");
	is(call(s, 0x02, &del, sizeof(del)), 0, "DEVICE_DEL by force");
	ok(receive(d.s, &r, 10000) && r.h.cookie == 77 && r.h.err == ENODEV,
	   "who waits gets ENODEV");
	ok(next_event(&d, &ev, 10000) && ev.type == GSCHED_EVENT_GONE, "and EVENT_GONE");
	ok(next_event(&c, &ev, 10000) && ev.type == GSCHED_EVENT_GONE, "as who runs does");
	ok(c.arb->header.lease == GSCHED_LEASE_NONE && page_limit(&c, 0) == SMS * GSCHED_CAPSM,
	   "whose task may use what there is");
	is(submit(&c, &req), ENODEV, "SUBMIT: ENODEV");
	is(complete(&c, 0, 1, 0), ENODEV, "COMPLETE: ENODEV");
	ok(!next_event(&c, &ev, 0), "and no event comes after it");
	detach(&c);
	detach(&d);
	is(call(s, 0x02, &del, sizeof(del)), ENOENT, "DEVICE_DEL by force again: ENOENT");
	memcpy(add.uuid, uuid, sizeof(uuid));
	is(call(s, 0x01, &add, sizeof(add)), 0, "the device comes again");

	group = (struct gsp_group){ .size = sizeof(group), .file = "clients_max", .value = "many" };
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), EINVAL,
	   "clients_max: not a number: EINVAL");
	strcpy(group.value, "1");
	is(call(s, GSP_DEVICE_SET, &group, sizeof(group)), 0, "clients_max 1");
	attach(&c, 0);
	{
		struct gsched_attach again = { .size = sizeof(again) };

		memcpy(again.uuid, uuid, sizeof(uuid));
		is(call(s, GSP_ATTACH, &again, sizeof(again)), ENOSPC,
		   "ATTACH of one more: ENOSPC");
		detach(&c);
		while (call_fds(s, GSP_ATTACH, &again, sizeof(again), -1, &r))
			;
		reply_free(&r);
		ok(true, "and when the other one is gone it succeeds");
	}
	close(s);
}

int main(void)
{
	daemon_start("--device", DEVICE, NULL);
	packets();
	slow_to_close();
	attaching();
	submitting();
	reporting();
	administration();
	monitors();
	by_force();
	return done_testing();
}
