// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Clients against each other: eviction, growth, quotas, leases, death, and a client that never
 * reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define FULL	(SMS * GSCHED_CAPSM)

/* Attach as a member of the group: bound first, unbound after. */
static void attach_in(struct peer_client *c, const char *group, uint32_t flags)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (group_call(GSP_GROUP_BIND, group, "procs", pid))
		ok(false, "bind to %s", group);
	attach(c, flags);
}

/* Bindings move the clients that are there: a second process for a second group. */
static pid_t spawn_client(const char *group, void (*fn)(struct peer_client *c, int fd), int fd)
{
	pid_t pid = fork();

	if (!pid) {
		struct peer_client c;

		attach_in(&c, group, GSCHED_ATTACH_MPS);
		fn(&c, fd);
		_exit(0);
	}
	return pid;
}

static void occupy(struct peer_client *c, int fd)
{
	struct gsched_submit req = task(0, 1, 4);
	char r = submit(c, &req) ? 'n' : 'y', go;

	if (write(fd, &r, 1) != 1 || read(fd, &go, 1) != 1)
		_exit(1);
	if (go == 'c')
		complete(c, 0, 1, 0);
	detach(c);
}

/* The next event of a task. Those of the band, which come as clients come and go, are in bands.c */
static bool next_of_task(struct peer_client *c, struct gsched_event *ev)
{
	bool there;

	do {
		there = next_event(c, ev, 10000);
	} while (there && ev->type == GSCHED_EVENT_BAND && !ev->slot && !ev->seq);
	return there;
}

/* Is it told so, in the end? On a busy host the window may change in more than one step. */
static bool told(struct peer_client *c, uint32_t type, uint32_t limit)
{
	struct gsched_event ev;

	while (next_of_task(c, &ev))
		if (ev.type == type && ev.slot == 0 && ev.seq == 1 && ev.window == limit)
			return true;
		else
			printf("# another event: type %u, window %llu\n", ev.type,
			       (unsigned long long)ev.window);
	return false;
}

static void spatial(void)
{
	struct peer_client lo;
	struct gsched_submit req = task(0, 1, 100000);
	int sv[2], status;
	pid_t pid;
	char answer;

	group_call(GSP_GROUP_CREATE, "lo", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "hi", NULL, NULL);
	is(group_call(GSP_GROUP_SET, "hi", "gpu.priority", "90"), 0, "a group of high priority");
	is(group_call(GSP_GROUP_SET, "lo", "gpu.priority", "10"), 0, "a group of low priority");
	attach_in(&lo, "lo", GSCHED_ATTACH_MPS);
	is(submit(&lo, &req), 0, "batch has the device");
	is(page_limit(&lo, 0), FULL, "all of it");

	for (int death = 0; death < 2; death++) {
		const char *how = death ? "is killed" : "completes";

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
			exit(1);
		pid = spawn_client("hi", occupy, sv[1]);
		close(sv[1]);
		if (read(sv[0], &answer, 1) != 1)
			answer = '?';
		is(answer, 'y', "the important one is granted at once");
		ok(wait_limit(&lo, 0, FULL - 4 * GSCHED_CAPSM),
		   "and batch gives up what it needs, no more");
		ok(told(&lo, GSCHED_EVENT_EVICT, FULL - 4 * GSCHED_CAPSM), "and is told: EVICT");
		if (death)
			kill(pid, SIGKILL);
		else if (write(sv[0], "c", 1) != 1)
			exit(1);
		waitpid(pid, &status, 0);
		close(sv[0]);
		ok(wait_limit(&lo, 0, FULL), "the important one %s: batch has all again", how);
		ok(told(&lo, GSCHED_EVENT_GROW, FULL), "and is told: GROW");
	}

	is(group_call(GSP_GROUP_SET, "lo", "capsm.max", "4"), 0, "capsm.max = 4");
	is(page_limit(&lo, 0), 4 * GSCHED_CAPSM, "takes effect on the running task");
	is(strtod(group_file("lo", "capsm.current"), NULL), 4, "capsm.current says 4");
	is(group_call(GSP_GROUP_SET, "lo", "capsm.max", "max\n"), 0, "capsm.max = max");
	is(page_limit(&lo, 0), FULL, "and it grows back");
	is(complete(&lo, 0, 1, 0), 0, "batch ends");
	detach(&lo);
}

static unsigned long long tasks_ended(void)
{
	const char *at = strstr(group_file("", "gpu.stat"), "\ntasks ");

	return at ? strtoull(at + strlen("\ntasks "), NULL, 10) : 0;
}

/* True, or false after ten seconds */
static bool wait_tasks(unsigned long long n)
{
	for (int i = 0; i < 1000 && tasks_ended() != n; i++)
		usleep(10000);
	return tasks_ended() == n;
}

static void temporal(void)
{
	struct peer_client a, b;
	struct gsched_submit req = task(0, 1, 100000), wait = task(5, 9, 10), now;
	unsigned long long before;
	struct gsched_event ev;
	struct reply r;

	attach(&a, 0);
	attach(&b, 0);
	is(submit(&a, &req), 0, "time-shared: the first runs");
	now = wait;
	now.flags = GSCHED_SUBMIT_NOWAIT;
	is(submit(&b, &now), QUEUED, "the second does not: queued with NOWAIT");
	ok(!now.window, "with no window");
	is(complete(&a, 0, 1, 0), 0, "the first ends");
	ok(next_event(&b, &ev, 10000) && ev.type == GSCHED_EVENT_GRANT && ev.slot == 5 &&
	   ev.seq == 9 && ev.window, "EVENT_GRANT follows");
	is(complete(&b, 5, 9, 0), 0, "the second ends");

	req = task(0, 3, 100000);
	is(submit(&a, &req), 0, "the first runs, and never completes");
	now = wait;
	now.flags = GSCHED_SUBMIT_NOWAIT;
	is(submit(&b, &now), QUEUED, "the second waits");
	ok(next_event(&b, &ev, 10000) && ev.type == GSCHED_EVENT_GRANT && ev.window,
	   "but not for ever");
	is(page_limit(&a, 0), 0, "the first gives way");
	before = tasks_ended();
	a.cl->slot[0].seq = 3;
	__atomic_store_n(&a.cl->slot[0].retired, 3, __ATOMIC_RELEASE);
	ok(wait_tasks(before + 1), "it is over when its page says so");
	is(complete(&a, 0, 3, 0), ENOENT, "and cannot be completed any more");
	is(complete(&b, 5, 9, 0), 0, "the second ends");

	req = task(0, 2, 100000);
	is(submit(&a, &req), 0, "the first runs again");
	send_req(b.s, GSP_SUBMIT, 0, 77, &wait, sizeof(wait), -1);
	ok(!receive(b.s, &r, 50), "a SUBMIT that waits has no reply yet");
	is(complete(&a, 0, 2, 0), 0, "the first ends");
	ok(receive(b.s, &r, 10000) && r.h.type == GSP_SUBMIT && r.h.cookie == 77 && !r.h.err &&
	   r.len == sizeof(wait), "then it has");
	memcpy(&now, r.body, sizeof(now));
	ok(now.window && now.seq == 9 && now.window == b.arb->slot[5].window &&
	   now.state == GSCHED_STATE_GRANTED, "with the window");
	is(complete(&b, 5, 9, 0), 0, "the second ends");

	req = task(0, 3, 100000);
	submit(&a, &req);
	send_req(b.s, GSP_SUBMIT, 0, 78, &wait, sizeof(wait), -1);
	is(complete(&a, 1, 1, 0), ENOENT, "(a round trip, so that the other call was seen)");
	{
		struct gsched_complete com = { .size = sizeof(com), .flags = GSCHED_COMPLETE_CANCEL,
					       .slot = 5, .seq = 9 };
		bool replied = false, completed = false;

		send_req(b.s, GSP_COMPLETE, 0, 79, &com, sizeof(com), -1);
		for (int i = 0; i < 2 && receive(b.s, &r, 10000); i++) {
			replied |= r.h.type == GSP_SUBMIT && r.h.cookie == 78 && r.h.err == EINTR;
			completed |= r.h.type == GSP_COMPLETE && r.h.cookie == 79 && !r.h.err;
		}
		ok(replied && completed, "a waiting SUBMIT that is cancelled: EINTR");
	}
	complete(&a, 0, 3, 0);
	detach(&a);
	detach(&b);
}

/* Until the status does not have it any more: false after ten seconds. */
static bool status_loses(const char *part)
{
	for (int i = 0; i < 10000; i++) {
		char *text = status_text();
		bool there = strstr(text, part);

		free(text);
		if (!there)
			return true;
		usleep(1000);
	}
	return false;
}

static void leases(void)
{
	struct peer_client a, b;
	struct gsched_submit req = task(0, 1, 4);
	volatile struct gsched_cl_slot *slot;
	char *text;

	attach(&a, GSCHED_ATTACH_MPS);
	is(a.arb->header.lease, GSCHED_LEASE_FREE, "alone: LEASE_FREE");
	is(page_limit(&a, 7), FULL, "an empty slot shows what a leased launch may use");
	is(group_call(GSP_GROUP_SET, "", "capsm.max", "8"), 0, "a quota");
	ok(a.arb->header.lease == GSCHED_LEASE_NONE && !page_limit(&a, 7), "takes the lease away");
	is(group_call(GSP_GROUP_SET, "", "capsm.max", "max"), 0, "no quota");
	ok(a.arb->header.lease == GSCHED_LEASE_FREE && page_limit(&a, 7) == FULL, "gives it back");

	/* a launch made under the lease: on the page only */
	slot = &a.cl->slot[7];
	slot->blocks = 100000;
	slot->predicted_ns = 1000000;
	slot->tier = GSCHED_TIER_BLOCK;
	slot->blocks_per_sm = 2;
	slot->intensity = GSCHED_INTENSITY_M_C;
	slot->stream = 4711;
	slot->launched = SMS * 2;
	__atomic_store_n(&slot->seq, 41, __ATOMIC_SEQ_CST);
	attach(&b, GSCHED_ATTACH_MPS);
	is(submit(&b, &req), 0, "someone else comes");
	ok(a.arb->header.lease != GSCHED_LEASE_FREE, "LEASE_FREE is withdrawn");
	text = status_text();
	ok(strstr(text, "\"seq\":41") && strstr(text, "\"blocks\":100000") &&
	   strstr(text, "\"stream\":\"4711\""), "the launch is found on the page, as it is stated");
	free(text);
	ok(page_limit(&a, 7) < FULL || page_limit(&b, 0) < FULL,
	   "the two do not both have everything");
	is(complete(&b, 0, 1, 0), 0, "the other ends");
	is(group_call(GSP_GROUP_SET, "", "capsm.max", "4"), 0, "a quota");
	ok(wait_limit(&a, 7, 4 * GSCHED_CAPSM), "reaches the launch that was found");
	is(group_call(GSP_GROUP_SET, "", "capsm.max", "max"), 0, "no quota");
	__atomic_store_n(&slot->retired, 41, __ATOMIC_SEQ_CST);
	ok(status_loses("\"seq\":41"), "its end is seen on the page");
	is(complete(&a, 7, 41, 0), ENOENT, "nobody had to say so");

	/* nonsense on the page */
	detach(&b);
	for (int i = 0; i < GSCHED_SLOTS; i++) {
		a.cl->slot[i] = (struct gsched_cl_slot){ .seq = 100 + i, .blocks = UINT64_MAX,
							 .tier = UINT32_MAX,
			.launched = UINT32_MAX, .predicted_ns = UINT64_MAX, .start_ns = UINT64_MAX,
			.left = UINT32_MAX, .blocks_per_sm = UINT32_MAX, .intensity = UINT32_MAX,
			.block_ns = UINT64_MAX, .launch_ns = UINT64_MAX };
	}
	memset(a.cl->header.why, 0xff, sizeof(a.cl->header.why));
	memset((void *)a.cl->header.managed, 0xff, sizeof(a.cl->header.managed));
	attach(&b, GSCHED_ATTACH_MPS);
	req = task(1, 2, 4);
	req.flags = GSCHED_SUBMIT_NOWAIT;
	is(submit(&b, &req), QUEUED,
	   "a page full of nonsense is believed as far as one of its rank can claim the device");
	text = status_text();
	ok(*text == '{' && text[strlen(text) - 1] == '}', "the status can be read");
	free(text);
	detach(&a);
	ok(wait_limit(&b, 1, 4 * GSCHED_CAPSM), "all of it goes with its owner");
	is(complete(&b, 1, 2, 0), 0, "and others run");
	detach(&b);
}

/* A client that never reads: its events coalesce, its requests wait, others notice nothing. */
static void silent(void)
{
	struct peer_client a, b;
	struct gsched_submit req = task(0, 1, 100000);
	struct gsched_info info = { .size = sizeof(info) };
	struct gsched_event ev;
	unsigned int events = 0, sent = 0;
	uint64_t last = 0;
	int err;

	attach(&a, GSCHED_ATTACH_MPS);
	attach(&b, GSCHED_ATTACH_MPS);
	is(submit(&a, &req), 0, "a client that will not read");
	for (int i = 0; i < 3000; i++)
		if (group_call(GSP_GROUP_SET, "", "capsm.max", i % 2 ? "8" : "4"))
			ok(false, "quota %d", i);
	is(page_limit(&a, 0), 8 * GSCHED_CAPSM, "3000 changes later the page is up to date");
	while (next_event(&a, &ev, 200)) {
		events++;
		if (ev.type != GSCHED_EVENT_BAND)
			last = ev.window;
	}
	ok(events > 0 && events < 1000, "%u events were kept for it", events);
	ok(last == a.arb->slot[0].window, "the last one tells the last state");

	fcntl(a.s, F_SETFL, O_NONBLOCK);
	for (err = 0; !err && sent < 100000; sent++)
		err = send_req(a.s, GSP_INFO, 0, sent, &info, sizeof(info), -1);
	is(-err, EAGAIN, "its requests wait when it does not read the replies (after %u)", sent);
	for (int i = 0; i < 100; i++)
		if (group_call(GSP_GROUP_SET, "", "capsm.max", i % 2 ? "8" : "max"))
			ok(false, "quota %d", i);
	req = task(1, 1, 4);
	err = call(b.s, GSP_INFO, &info, sizeof(info));
	is(err, 0, "others are served meanwhile");
	{
		struct reply r;
		unsigned int replies = 0;
		bool ordered = true;

		while (receive(a.s, &r, 500))
			if (r.h.type == GSP_INFO)
				ordered &= r.h.cookie == replies++;
		is(replies, sent - 1, "and when it reads again it finds every reply");
		ok(ordered, "in order");
	}
	group_call(GSP_GROUP_SET, "", "capsm.max", "max");
	detach(&a);
	detach(&b);
}

static void in_root(void)
{
	struct gsched_submit req = task(0, 1, 4);
	struct peer_client c;

	attach_in(&c, "", 0);
	is(submit(&c, &req), 0, "a task in the root group");
	detach(&c);
}

static void trace(const char *path)
{
	char line[1024];
	unsigned int grants = 0, evicts = 0, grows = 0, dones = 0, roots = 0, other = 0;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f)) {
		grants += !!strstr(line, "\"event\":\"grant\"");
		evicts += !!strstr(line, "\"event\":\"evict\"");
		grows += !!strstr(line, "\"event\":\"grow\"");
		dones += !!strstr(line, "\"event\":\"done\"");
		other += strncmp(line, "{\"time_ns\":", 11) || !strstr(line, "\"group\":\"") ||
			 !strstr(line, "}\n");
		roots += !!strstr(line, "\"group\":\"/\",");
		other += !!strstr(line, "\"group\":\"\"");
	}
	if (f)
		fclose(f);
	ok(grants && evicts && grows && dones && roots && !other,
	   "the trace: %u grants, %u evicts, %u grows, %u dones", grants, evicts, grows, dones);
}

int main(void)
{
	char path[] = "/tmp/gschedd-trace-XXXXXX";

	close(mkstemp(path));
	daemon_start("--device", DEVICE, "--trace", path, "--poll-us", "100", NULL);
	spatial();
	temporal();
	leases();
	silent();
	in_root();
	is(daemon_stop(SIGTERM), 0, "gschedd ends cleanly");
	trace(path);
	unlink(path);
	return done_testing();
}
