// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bands over the real socket: each client is a process of its own, in a group of its own, which
 * does what it is told and says what its header shows. Slices asked for, turns, reports, events,
 * death, an MPS server, older clients.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define OWN	GSCHED_ATTACH_SLICE
#define CLIENT	GSCHED_ATTACH_MPS
#define SERVER	(GSCHED_ATTACH_MPS | GSCHED_ATTACH_SLICE | GSCHED_ATTACH_SERVER)
#define ALONE	(GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE)
#define REPORT	GSCHED_ARB_REPORT
#define LOWER	(ALONE | REPORT | GSCHED_ARB_TIMED)
#define IDLE	GSCHED_ACTIVITY_IDLE
#define WAITING	GSCHED_ACTIVITY_WAITING
#define BUSY	GSCHED_ACTIVITY_BUSY

struct order {
	char what;	/* h: look at the header, e: take events, r: report */
	struct gsched_report report;
};

/* What the client's header shows, and how many events of its band it has read */
struct shows {
	struct gsched_arb_header h;
	unsigned int events, others;
};

struct child {
	pid_t pid;
	int fd;
};

static void serve(struct peer_client *c, int fd)
{
	struct gsched_event ev;
	struct shows out = { 0 };
	struct order in;

	do {
		out.h = c->arb->header;
		if (write(fd, &out, sizeof(out)) != sizeof(out) ||
		    read(fd, &in, sizeof(in)) != sizeof(in))
			_exit(1);
		if (in.what == 'r' && send_req(c->s, GSP_REPORT, GSP_FLAG_ASYNC, 0, &in.report,
					       sizeof(in.report), -1))
			_exit(1);
		while (in.what == 'e' && next_event(c, &ev, 100)) {
			out.events += ev.type == GSCHED_EVENT_BAND && !ev.slot && !ev.seq;
			out.others += ev.type != GSCHED_EVENT_BAND;
		}
	} while (in.what != 'q');
	detach(c);
	_exit(0);
}

/* The group is there; returns when the client is attached */
static struct child start(const char *group, uint32_t flags, uint64_t channel_group,
			  struct shows *first)
{
	struct child child;
	struct shows out;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		exit(1);
	child.fd = sv[0];
	child.pid = fork();
	if (child.pid < 0)
		exit(1);
	if (!child.pid) {
		struct peer_client c;
		char pid[16];

		close(sv[0]);
		snprintf(pid, sizeof(pid), "%d", getpid());
		if (group_call(GSP_GROUP_BIND, group, "procs", pid))
			_exit(1);
		attach_to(&c, flags, channel_group);
		serve(&c, sv[1]);
	}
	close(sv[1]);
	if (read(child.fd, &out, sizeof(out)) != sizeof(out)) {
		ok(false, "a client in %s starts", group);
		exit(1);
	}
	if (first)
		*first = out;
	return child;
}

static struct shows tell(const struct child *child, struct order in)
{
	struct shows out = { 0 };

	if (write(child->fd, &in, sizeof(in)) != sizeof(in) ||
	    read(child->fd, &out, sizeof(out)) != sizeof(out)) {
		ok(false, "a client of the test is there");
		exit(1);
	}
	return out;
}

static struct gsched_arb_header header(const struct child *child)
{
	return tell(child, (struct order){ .what = 'h' }).h;
}

static void report(const struct child *child, uint32_t activity)
{
	struct order in = { .what = 'r',
			    .report = { .size = sizeof(in.report), .flags = GSCHED_REPORT_ACTIVITY,
					.activity = activity } };

	tell(child, in);
}

static void report_slice(const struct child *child, uint32_t slice_us, uint32_t error)
{
	struct order in = { .what = 'r',
			    .report = { .size = sizeof(in.report), .flags = GSCHED_REPORT_SLICE,
					.slice_us = slice_us,
						     .slice_error = error } };

	tell(child, in);
}

static void end(struct child *child, int sig)
{
	struct order in = { .what = 'q' };

	if (sig)
		kill(child->pid, sig);
	else if (write(child->fd, &in, sizeof(in)) != sizeof(in))
		ok(false, "a client of the test takes its leave");
	waitpid(child->pid, NULL, 0);
	close(child->fd);
}

/* Wait until it shows: true, or false after ten seconds */
static bool has_flags(const struct child *child, uint32_t mask, uint32_t flags)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < 10000; i++) {
		if ((header(child).flags & mask) == flags)
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

static bool has_slice(const struct child *child, uint32_t slice_us)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < 10000; i++) {
		if (header(child).slice_us == slice_us)
			return true;
		nanosleep(&ms, NULL);
	}
	printf("# slice %u us, not %u\n", header(child).slice_us, slice_us);
	return false;
}

static bool is_open(const struct child *child)
{
	return has_flags(child, GSCHED_ARB_CLOSED, 0);
}

static bool is_closed(const struct child *child)
{
	return has_flags(child, GSCHED_ARB_CLOSED, GSCHED_ARB_CLOSED);
}

static bool status_has(const char *part)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	bool there = false;

	for (int i = 0; i < 10000 && !there; i++) {
		char *text = status_text();

		there = strstr(text, part);
		if (i == 9999 && !there)
			printf("# %s\n", text);
		free(text);
		if (!there)
			nanosleep(&ms, NULL);
	}
	return there;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void slices(void)
{
	struct shows out;
	struct child a, b;

	a = start("a", OWN, 0, &out);
	ok(out.h.bands == 1 && !out.h.slice_us && out.h.flags == ALONE &&
	   out.h.share == GSCHED_SHARE_ALL && out.h.mode == GSCHED_MODE_SPATIAL,
	   "one band: the driver's slice");
	ok(status_has("the only band"), "the status says so");
	b = start("b", OWN, 0, &out);
	ok(out.h.bands == 2 && out.h.slice_us == 2048 && out.h.mode == GSCHED_MODE_SLICED &&
	   out.h.lease == GSCHED_LEASE_FREE && out.h.flags == ALONE,
	   "two equals: the driver's slice for both, each has the whole device in its time");
	is(header(&a).slice_us, 2048, "the first one's header says so too");
	out = tell(&a, (struct order){ .what = 'e' });
	ok(out.events == 1 && !out.others, "and it got one event");
	out = tell(&b, (struct order){ .what = 'e' });
	ok(!out.events && !out.others, "the second knows from its attach");
	report_slice(&a, 2000, 0);
	ok(status_has("\"slice_us\":2048,\"applied_us\":2000,\"slice_error\":0"),
	   "what the driver made of it is in the status");
	ok(status_has("\"block_end\":false,\"activity\""), "and where the GPU leaves the band");
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "50"), 0, "one becomes more important");
	ok(has_slice(&a, 1000000) && has_slice(&b, 1), "it runs whole, the other gives way");
	ok(has_flags(&a, ~0u, ALONE) && has_flags(&b, ~0u, LOWER), "and is asked to report");
	ok(status_has("top band: runs whole until it is idle") &&
	   status_has("gives way at once: slice 1 us"), "the status says why");
	is(group_call(GSP_GROUP_SET, "b", "capsm.min", "4"), 0, "a guarantee below");
	ok(has_slice(&a, 6000) && has_slice(&b, 2000), "bounds the slice above");
	is(group_call(GSP_GROUP_SET, "b", "capsm.min", "0"), 0, "no guarantee");
	is(group_call(GSP_GROUP_SET, "a", "capsm.max", "4"), 0, "a quota");
	ok(header(&a).share == GSCHED_SHARE_ALL / 4 && header(&a).flags == (ALONE | REPORT),
	   "is a share of the time, and asks for reports");
	is(group_call(GSP_GROUP_SET, "a", "capsm.max", "max"), 0, "no quota");
	ok(header(&a).share == GSCHED_SHARE_ALL && header(&a).flags == ALONE, "and no reports");

	report_slice(&b, 0, EIO);
	ok(has_slice(&a, 1000000) && header(&a).mode == GSCHED_MODE_SLICED,
	   "the lower one's slice is refused: that changes no mode");
	ok(status_has("the driver's slice, since its program cannot set one (errno 5)"),
	   "the status says so");
	report_slice(&a, 0, EIO);
	ok(has_slice(&a, 0) && header(&a).mode == GSCHED_MODE_TEMPORAL,
	   "a slice that the driver refused: temporal mode");
	ok(status_has("slice not set: the driver refused it (errno 5)"), "the status says why");
	end(&b, 0);
	ok(has_slice(&a, 0) && status_has("the only band"), "without it nothing is shared");
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "0"), 0, "equal again");
	end(&a, 0);
}

static void turns(void)
{
	struct child top, b, c;
	uint64_t since;

	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "50"), 0, "a top band");
	top = start("a", OWN, 0, NULL);
	b = start("b", OWN, 0, NULL);
	is(header(&b).flags, LOWER, "one lower band: no turns, but it reports");
	c = start("c", OWN, 0, NULL);
	ok(has_flags(&top, ~0u, ALONE) && has_flags(&b, ~0u, LOWER) && has_flags(&c, ~0u, LOWER),
	   "two: both report, the top one does not");
	since = now_ms();
	report(&b, BUSY);
	ok(is_closed(&c) && is_open(&b) && is_open(&top), "one has work: the other's gate closes");
	ok(header(&c).lease == GSCHED_LEASE_NONE && header(&b).lease == GSCHED_LEASE_FREE,
	   "and its lease is withdrawn");
	ok(status_has("\"activity\":\"busy\",\"turn\":true"), "the status says whose turn it is");
	report(&c, WAITING);
	ok(has_flags(&b, GSCHED_ARB_PACED, GSCHED_ARB_PACED) && header(&b).in_flight_us == 2000,
	   "another waits: work is paced");
	ok(is_closed(&b), "the turn ends");
	ok(now_ms() - since >= 30, "no sooner than after 30 ms");
	is(header(&c).flags & GSCHED_ARB_CLOSED, GSCHED_ARB_CLOSED,
	   "the next one waits for what is in flight");
	ok(status_has("its turn is over and its work drains"), "the status says so");
	report(&b, WAITING);
	ok(is_open(&c), "and begins when that has drained");
	ok(header(&b).lease == GSCHED_LEASE_NONE && header(&c).lease == GSCHED_LEASE_FREE,
	   "with its lease");
	report(&c, BUSY);
	report(&b, BUSY);
	ok(has_slice(&b, 2048) && has_slice(&c, 2048),
	   "two with work on the GPU: neither gives way at once");
	report(&b, WAITING);
	ok(has_slice(&b, 1) && has_slice(&c, 1), "until one has drained");

	end(&c, SIGKILL);
	ok(is_open(&b) && has_flags(&b, ~0u, LOWER), "one that dies in its turn passes it on");
	c = start("c", OWN, 0, NULL);
	ok(has_flags(&c, ~0u, LOWER | GSCHED_ARB_CLOSED),
	   "a new one comes, whose gate is closed while the other has work");
	report(&b, BUSY);
	ok(is_closed(&c), "the other has the turn");
	report(&c, WAITING);
	ok(is_closed(&b), "its turn ends");
	since = now_ms();
	ok(is_open(&c), "and it never says that its work has drained");
	ok(now_ms() - since >= 100 && now_ms() - since < 2000, "so the next one waits 200 ms");
	is(group_call(GSP_GROUP_SET, "b", "gpu.priority", "10"), 0,
	   "one of two becomes more important");
	ok(is_closed(&c) && is_open(&b), "and takes the turn");
	end(&b, SIGKILL);
	ok(is_open(&c), "it dies: the other is alone");
	end(&c, 0);
	end(&top, 0);
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "0") |
	   group_call(GSP_GROUP_SET, "b", "gpu.priority", "0"), 0, "all equal");
}

static void mps(void)
{
	struct child server, first, second, own;
	struct gsched_arb_header h;

	server = start("", SERVER, 7, NULL);
	own = start("a", OWN, 0, NULL);
	is(header(&own).bands, 1, "an MPS server without clients is no band that counts");
	ok(status_has("an MPS server without clients"), "the status says so");
	is(group_call(GSP_GROUP_SET, "b", "gpu.band", "serving"), 0, "a band's name");
	first = start("b", CLIENT, 7, NULL);
	second = start("b", CLIENT, 7, NULL);
	ok(has_slice(&server, 2048) && has_slice(&own, 2048),
	   "the server sets the slice of its clients");
	h = header(&first);
	ok(!h.slice_us && h.bands == 2 && h.mode == GSCHED_MODE_SLICED &&
	   h.lease == GSCHED_LEASE_NONE, "which they share in space");
	ok(h.flags == GSCHED_ARB_PASS && !header(&server).flags && header(&own).flags == ALONE,
	   "so neither of them is alone in its band, but they are equals");
	ok(status_has("\"name\":\"serving\",\"clients\":["), "the status has the name");
	is(group_call(GSP_GROUP_SET, "b", "gpu.band", "other"), EBUSY,
	   "which stays while there are clients");
	end(&server, SIGKILL);
	ok(has_slice(&own, 2048) && status_has("the driver's slice, since its MPS server "
					       "is not attached"),
	   "without it the driver's slice stays");
	end(&first, 0);
	ok(has_flags(&second, ~0u, GSCHED_ARB_ALONE),
	   "the last of its clients is alone in its band");
	end(&second, 0);
	end(&own, 0);
	is(group_call(GSP_GROUP_SET, "b", "gpu.band", ""), 0, "no name");
}

static void settings(void)
{
	struct child a, b;

	a = start("a", OWN, 0, NULL);
	b = start("b", OWN, 0, NULL);
	is(device_set("switch_us", "100"), 0, "switch_us");
	is(header(&a).slice_us, 2048, "is no matter of hpf");
	is(device_set("policy", "ffs"), 0, "policy ffs");
	ok(has_slice(&a, 2000), "derives the epoch from it");
	is(device_set("max_overhead", "100\n"), 0, "max_overhead");
	ok(has_slice(&a, 1000), "too");
	ok(status_has("\"switch_us\":100,\"max_overhead\":100"), "the status has both");
	is(device_set("switch_us", "9"), EINVAL, "out of range: EINVAL");
	is(device_set("max_overhead", "501"), EINVAL, "out of range: EINVAL");
	is(device_set("max_overhead", "x"), EINVAL, "no number: EINVAL");
	is(device_set("switch_us", "190") | device_set("max_overhead", "50"), 0,
	   "the defaults again");
	is(device_set("policy", "hpf"), 0, "policy hpf");
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "50"), 0, "a priority");
	ok(has_slice(&a, 1000000), "counts under hpf");
	is(device_set("policy", "ffs"), 0, "policy ffs");
	ok(has_slice(&a, 3800) && has_slice(&b, 3800) &&
	   status_has("policy ffs: shares the time by weight"), "knows none");
	is(device_set("policy", "wfq"), 0, "policy wfq");
	ok(has_slice(&a, 3800) && has_slice(&b, 3800) &&
	   status_has("policy wfq: shares the time by weight"), "nor does it");
	ok(status_has("\"policy\":\"wfq\",\"policy_fault\":\"\""), "which did nothing wrong");
	is(device_set("policy", "ffs"), 0, "policy ffs again");
	is(group_call(GSP_GROUP_SET, "a", "gpu.latency_target_us", "1000"), 0, "a latency target");
	ok(has_slice(&b, 1000), "bounds the others");
	is(group_call(GSP_GROUP_SET, "a", "gpu.latency_target_us", "-1"), EINVAL,
	   "no number: EINVAL");
	ok(!strcmp(group_file("a", "gpu.latency_target_us"), "1000\n"), "and it reads back");
	is(device_set("policy", "hpf"), 0, "policy hpf");
	is(group_call(GSP_GROUP_SET, "a", "gpu.latency_target_us", "0") |
	   group_call(GSP_GROUP_SET, "a", "gpu.priority", "0"), 0, "as before");
	end(&a, 0);
	end(&b, 0);
}

static void silent(void)
{
	struct shows out;
	struct child a, b;

	a = start("a", OWN, 0, NULL);
	b = start("b", OWN, 0, NULL);
	is(device_set("policy", "ffs"), 0, "policy ffs");
	for (int i = 0; i < 2000; i++)
		if (device_set("switch_us", i % 2 ? "100" : "200"))
			ok(false, "change %d", i);
	out = tell(&a, (struct order){ .what = 'e' });
	ok(out.events && out.events < 1000 && !out.others,
	   "2000 changes that nobody reads are %u events", out.events);
	is(header(&a).slice_us, 2000, "the header is up to date");
	is(device_set("switch_us", "190"), 0, "the default again");
	is(tell(&a, (struct order){ .what = 'e' }).events, out.events + 1,
	   "one more change is one more event");
	is(device_set("policy", "hpf"), 0, "policy hpf");
	end(&a, 0);
	end(&b, 0);
}

static void on_gpu(const char *list, const struct child *program, unsigned int percent)
{
	char fresh[128];
	FILE *f;

	snprintf(fresh, sizeof(fresh), "%s.new", list);
	f = fopen(fresh, "w");
	if (!f)
		return;
	if (program)
		fprintf(f, "%d 10 busy 30\n", (int)program->pid);
	fprintf(f, "1 10 busy %u\n", percent);
	fclose(f);
	rename(fresh, list);
}

/* NVML (fakenvml.c) tells of a program without gsched */
static void unmanaged(void)
{
	char library[4096], list[96];
	ssize_t n = readlink("/proc/self/exe", library, sizeof(library) - 32);
	struct child top, low;

	library[n > 0 ? n : 0] = '\0';
	strcpy(strrchr(library, '/') + 1, "fakenvml.so");
	snprintf(list, sizeof(list), "%s/pids", dir);
	setenv("FAKENVML_PIDS", list, 1);
	on_gpu(list, NULL, 0);
	daemon_start("--device", DEVICE, "--nvml", library, NULL);
	group_call(GSP_GROUP_CREATE, "top", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "low", NULL, NULL);
	group_call(GSP_GROUP_SET, "top", "gpu.priority", "10");
	top = start("top", OWN, 0, NULL);
	low = start("low", OWN, 0, NULL);
	report(&low, BUSY);
	on_gpu(list, &low, 3);
	sleep(3);
	ok(has_slice(&low, 1), "a program without gsched that does little: slice 1 us");
	on_gpu(list, &low, 45);
	ok(has_slice(&low, 1000), "one that keeps the GPU busy: a slice to get on with");
	ok(status_has("beside busy programs without gsched"), "and the status says why");
	on_gpu(list, NULL, 45);
	ok(has_slice(&low, 1), "NVML's process ids are not ours: nobody is judged by them");
	on_gpu(list, &low, 45);
	ok(has_slice(&low, 1000) && header(&top).slice_us == 1000000,
	   "the more important program still runs whole");
	report(&low, IDLE);
	ok(has_slice(&low, 1), "an idle one needs no slice");
	report(&low, BUSY);
	on_gpu(list, &low, 0);
	ok(has_slice(&low, 1), "they are gone: slice 1 us");
	end(&low, 0);
	end(&top, 0);
	daemon_stop(SIGTERM);
}

int main(void)
{
	daemon_start("--device", DEVICE, NULL);
	for (const char *const *name = (const char *const[]){ "a", "b", "c", NULL }; *name; name++)
		is(group_call(GSP_GROUP_CREATE, *name, NULL, NULL), 0, "group %s", *name);
	slices();
	turns();
	mps();
	settings();
	silent();
	ok(status_has("\"clients\":[]") && status_has("\"bands\":[]"), "nothing is left");
	daemon_stop(SIGTERM);
	unmanaged();
	return done_testing();
}
