// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libgsched against a stand-in arbiter: replies and events on one socket, the arbiter's death,
 * administration.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "arbiter.h"
#include "selftests/tap.h"

static const unsigned char uuid[16] = "0123456789abcde";

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static struct gsched *attached(struct fake *f)
{
	struct gsched *g;

	fake_start(f);
	g = gsched_open(NULL);
	if (!g || gsched_attach(g, uuid, true, NULL))
		abort();
	return g;
}

static void attach(void)
{
	struct gsched_device_info info;
	struct gsched *g;
	struct fake f;
	size_t size;

	fake_start(&f);
	g = gsched_open(NULL);
	ok(g && gsched_backend(g) == GSCHED_BACKEND_DAEMON, "open finds the daemon");
	ok(!gsched_arb_page(g, &size) && !size, "no page before attach");
	f.attach_err = ENOENT;
	ok(gsched_attach(g, uuid, true, NULL) < 0 && errno == ENOENT,
	   "attach to an unknown device: ENOENT");
	f.attach_err = 0;
	ok(!gsched_attach(g, uuid, true, &info) && info.sms == FAKE_SMS && info.client_id == 7 &&
	   info.mode == 1, "attach");
	ok(gsched_attach(g, uuid, true, NULL) < 0 && errno == EBUSY, "attach again: EBUSY");
	ok(gsched_arb_page(g, &size) && size == sizeof(struct gsched_arb_page),
	   "the arbiter's page");
	f.arb->header.bands = 3;
	ok(((const struct gsched_arb_page *)gsched_arb_page(g, NULL))->header.bands == 3,
	   "what the arbiter writes shows");
	((struct gsched_cl_page *)gsched_cl_page(g, NULL))->slot[5].seq = 9;
	ok(f.cl->slot[5].seq == 9, "what the client writes shows");
	ok(mprotect((void *)gsched_arb_page(g, NULL), 4096, PROT_READ | PROT_WRITE) < 0,
	   "the arbiter's page stays read-only");
	gsched_close(g);
	ok(fake_wait(&f, &f.detached, 1), "close detaches");
	fake_stop(&f);
	g = gsched_open(NULL);
	ok(!g && (errno == ENOENT || errno == ECONNREFUSED),
	   "nobody there: ENOENT or ECONNREFUSED");
	ok(gsched_open(&(struct gsched_open_opts){ .size = 1 }) == NULL && errno == EINVAL,
	   "options without a size: EINVAL");
}

/* Bands: what is asked for and reported */
static void bands(void)
{
	struct gsched_attach_opts opts = { .size = sizeof(opts), .slice = true,
					   .channel_group = 77 };
	struct gsched_report_info report = { .size = sizeof(report), .has_activity = true,
					     .activity = 2 };
	struct gsched_event_info ev;
	struct gsched *g;
	struct fake f;

	fake_start(&f);
	g = gsched_open(NULL);
	ok(gsched_report(g, &report) < 0 && errno == ENOTCONN, "report before attach: ENOTCONN");
	opts.size = 1;
	ok(gsched_attach_with(g, uuid, &opts, NULL) < 0 && errno == EINVAL,
	   "attach with options without a size: EINVAL");
	opts.size = sizeof(opts);
	ok(!gsched_attach_with(g, uuid, &opts, NULL), "attach with options");
	ok(f.last_attach.size == sizeof(f.last_attach) &&
	   f.last_attach.flags == GSCHED_ATTACH_SLICE && f.last_attach.channel_group == 77,
	   "as it was asked");
	ok(!gsched_report(g, &report) && fake_wait(&f, &f.reports, 1) &&
	   f.last_report.flags == GSCHED_REPORT_ACTIVITY &&
	   f.last_report.activity == GSCHED_ACTIVITY_BUSY, "a report of activity");
	report = (struct gsched_report_info){ .size = sizeof(report), .has_slice = true,
					      .slice_us = 500, .slice_error = EIO };
	ok(!gsched_report(g, &report) && fake_wait(&f, &f.reports, 2) &&
	   f.last_report.flags == GSCHED_REPORT_SLICE && f.last_report.slice_us == 500 &&
	   f.last_report.slice_error == EIO, "a report of a slice");
	report = (struct gsched_report_info){ .size = sizeof(report), .has_activity = true,
					      .activity = 3 };
	ok(gsched_report(g, &report) < 0 && errno == EINVAL,
	   "an activity that there is not: EINVAL");
	f.window = 0;
	ok(!gsched_submit_stream(g, &(struct gsched_task){ .slot = 2, .seq = 4, .blocks_per_sm = 1,
							   .blocks = 1, .intensity = 3 }, 9) &&
	   f.last_submit.size == sizeof(f.last_submit) && f.last_submit.stream == 9 &&
	   f.last_submit.intensity == 3, "a submit with its stream and the class of its kernel");
	/* beside an event of slot 0, which it must not replace */
	fake_event(&f, GSCHED_EVENT_EVICT, 0, 1, 5);
	fake_event(&f, GSCHED_EVENT_BAND, 0, 0, 0);
	fake_event(&f, GSCHED_EVENT_BAND, 0, 0, 0);
	f.window = 0;
	ok(!gsched_submit(g, &(struct gsched_task){ .slot = 1, .seq = 5, .blocks_per_sm = 1,
						    .blocks = 1 }), "submit behind three events");
	ok(gsched_event_read(g, &ev) == 1 && ev.type == GSCHED_EVENT_EVICT && ev.slot == 0,
	   "the slot's event is there");
	ok(readable(gsched_fd(g), 0) && gsched_event_read(g, &ev) == 1 &&
	   ev.type == GSCHED_EVENT_BAND, "and the band's, once");
	ok(gsched_event_read(g, &ev) == 0 && !readable(gsched_fd(g), 0), "and no more");
	gsched_close(g);
	fake_stop(&f);
}

static void *submitter(void *arg)
{
	struct gsched_task task = { .slot = 3, .seq = 1, .blocks_per_sm = 1, .blocks = 10 };

	return (void *)(intptr_t)(gsched_submit(arg, &task) ? errno : task.window == 2 ? 0 : -1);
}

static void tasks(void)
{
	struct gsched_task task = { .slot = 1, .seq = 5, .tier = 2, .blocks_per_sm = 4,
				    .blocks = 99, .predicted_ns = 7 };
	struct gsched_event_info ev;
	struct fake f;
	struct gsched *g = attached(&f);
	pthread_t thread;
	unsigned int n;
	void *rc;

	ok(!gsched_submit(g, &task) && task.window == FAKE_SMS * GSCHED_CAPSM, "submit is granted");
	ok(f.last_submit.seq == 5 && f.last_submit.tier == 2 && f.last_submit.blocks_per_sm == 4 &&
	   f.last_submit.blocks == 99 && f.last_submit.predicted_ns == 7 &&
	   f.last_submit.flags == 0, "as it was asked");
	ok(gsched_event_read(g, &ev) == 0, "no event yet");
	ok(!readable(gsched_fd(g), 0), "nothing to poll");

	f.events_before_reply = 3;
	ok(!gsched_submit(g, &task), "submit with events before its reply");
	ok(readable(gsched_fd(g), 0), "events that submit took off the socket can be polled");
	for (n = 0; n < 3; n++)
		ok(gsched_event_read(g, &ev) == 1 && ev.type == GSCHED_EVENT_EVICT &&
		   ev.slot == n && ev.seq == 100 + n, "event %u is there", n);
	ok(gsched_event_read(g, &ev) == 0 && !readable(gsched_fd(g), 0), "and no more");
	f.events_before_reply = 0;

	f.submit_err = EBUSY;
	ok(gsched_submit(g, &task) < 0 && errno == EBUSY, "slot taken: EBUSY");
	f.submit_err = 0;

	/* a thread waits for its grant while another reads events */
	f.hold_grants = true;
	f.window = 2;
	pthread_create(&thread, NULL, submitter, g);
	fake_wait(&f, &f.submits, 4);
	fake_event(&f, GSCHED_EVENT_GROW, 9, 2, 77);
	ok(readable(gsched_fd(g), 5000), "an event while a submit waits");
	do
		n = gsched_event_read(g, &ev);
	while (!n);
	ok(n == 1 && ev.slot == 9 && ev.window == 77, "goes to the reader of events");
	fake_grant(&f);
	pthread_join(thread, &rc);
	ok(rc == 0, "and the grant to who waits for it");

	/* events of one slot coalesce */
	f.hold_grants = false;
	fake_event(&f, GSCHED_EVENT_EVICT, 2, 1, 5);
	fake_event(&f, GSCHED_EVENT_GROW, 2, 1, 6);
	f.window = 0;
	ok(!gsched_submit(g, &task), "submit behind two events");
	ok(gsched_event_read(g, &ev) == 1 && ev.window == 6 && gsched_event_read(g, &ev) == 0,
	   "the last state of a slot");

	ok(!gsched_submit_async(g, &task) && fake_wait(&f, &f.async_submits, 1) &&
	   f.last_submit.flags == GSCHED_SUBMIT_NOWAIT, "a submit without a reply");
	ok(!gsched_complete(g, 1, 5, 1234, false) && fake_wait(&f, &f.completes, 1) &&
	   f.last_complete.ran_ns == 1234, "complete");

	/* the arbiter dies while one waits */
	f.hold_grants = true;
	n = f.submits;
	pthread_create(&thread, NULL, submitter, g);
	fake_wait(&f, &f.submits, n + 1);
	fake_stop(&f);
	pthread_join(thread, &rc);
	ok((intptr_t)rc == EPIPE, "the arbiter dies: who waits gets EPIPE");
	ok(readable(gsched_fd(g), 1000), "and poll says so");
	ok(gsched_event_read(g, &ev) < 0 && errno == EPIPE, "and so does the reader of events");
	ok(gsched_submit(g, &task) < 0 && errno == EPIPE, "and later calls");
	ok(gsched_complete(g, 1, 5, 0, false) < 0 && errno == EPIPE, "and complete");
	gsched_close(g);
}

static void on_signal(int sig)
{
}

static void interrupted(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct fake f;
	struct gsched *g = attached(&f);
	pthread_t thread;
	void *rc;

	sigaction(SIGUSR1, &act, NULL);
	f.hold_grants = true;
	pthread_create(&thread, NULL, submitter, g);
	fake_wait(&f, &f.submits, 1);
	/* the thread may not be in its system call yet: again until it gets it */
	while (!f.cancels) {
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(thread, &rc);
	ok((intptr_t)rc == EINTR, "a signal ends the wait: EINTR");
	ok(f.last_complete.slot == 3 && f.last_complete.seq == 1, "and the task is withdrawn");
	gsched_close(g);
	fake_stop(&f);
}

/* Its thread waits for the lock, so it does nothing, as one that has got SIGSTOP. */
static void freeze(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
}

static void thaw(struct fake *f)
{
	pthread_mutex_unlock(&f->lock);
}

/* As the next program sees it: what this one has found out is forgotten. */
static void forget(void)
{
	gsched_socket_avoid("");
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Tells it of tasks until there is no room any more. */
static unsigned int fill(struct gsched *g)
{
	struct gsched_task task = { .blocks_per_sm = 1, .blocks = 9 };
	unsigned int n = 0;

	for (; n < 100000; n++) {
		task.slot = n % GSCHED_SLOTS;
		task.seq = n + 1;
		if (gsched_submit_async(g, &task))
			break;
	}
	return n;
}

/*
 * The socket to one that does not read is full: what the agent sends does not wait for it, and
 * comes later, in order.
 */
static void full(void)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_activity = true };
	struct gsched_task task = { .slot = 1, .seq = 5, .blocks_per_sm = 1, .blocks = 9 };
	struct gsched_event_info ev;
	unsigned int i, n, refused = 0;
	struct gsched *g;
	struct fake f;
	uint64_t since;

	fake_start(&f);
	g = gsched_open(NULL);
	ok(g && !gsched_attach(g, uuid, true, NULL), "attach");
	freeze(&f);
	since = now_ms();
	n = fill(g);
	ok(errno == ENOBUFS, "stopped: after %u notices there is no room", n);
	for (i = 0; i < 2 * GSCHED_SLOTS; i++)
		refused += !!gsched_complete(g, i % GSCHED_SLOTS, i + 1, 0, false);
	for (i = 0; i < 999; i++) {
		report.activity = i % 3;
		refused += !!gsched_report(g, &report);
	}
	report.has_activity = false;
	report.has_streams = report.prioritised = true;
	refused += !!gsched_report(g, &report);
	ok(!refused && now_ms() - since < GSP_PATIENCE_MS / 2,
	   "ends and reports are taken without waiting");
	thaw(&f);
	while (readable(gsched_fd(g), 1000))
		gsched_event_read(g, &ev);
	ok(fake_wait(&f, &f.completes, 2 * GSCHED_SLOTS) && f.async_submits == n &&
	   f.last_submit.seq == n && f.last_complete.seq == 2 * GSCHED_SLOTS,
	   "it goes on: it gets all of them in order");
	ok(fake_wait(&f, &f.reports, 1) && f.last_report.activity == 2 &&
	   f.last_report.prioritised &&
	   f.last_report.flags == (GSCHED_REPORT_ACTIVITY | GSCHED_REPORT_STREAMS),
	   "and the newest values that were reported");
	ok(!gsched_submit(g, &task), "then a task is granted");
	freeze(&f);
	fill(g);
	usleep(GSP_PATIENCE_MS * 1000 + 50000);
	since = now_ms();
	ok(gsched_complete(g, 1, 1, 0, false) && errno == ETIMEDOUT &&
	   now_ms() - since < GSP_PATIENCE_MS / 2, "stopped for long: it counts as gone");
	thaw(&f);
	forget();
	gsched_close(g);
	fake_stop(&f);
}

static void stopped(void)
{
	struct gsched_task task = { .slot = 1, .seq = 5, .blocks_per_sm = 1, .blocks = 9 };
	struct gsched_event_info ev;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char *ptx;
	void *description;
	unsigned int i, n;
	struct gsched *g;
	struct fake f;
	int fds[64], s;
	size_t size, described;
	pthread_t thread;
	void *rc;

	fake_start(&f);
	freeze(&f);
	g = gsched_open(NULL);
	ok(g && gsched_attach(g, uuid, true, NULL) < 0 && errno == ETIMEDOUT,
	   "stopped before connect: attach fails with ETIMEDOUT");
	ok(gsched_attach(g, uuid, true, NULL) < 0 && errno == ETIMEDOUT, "and again");
	ok(!gsched_open(NULL) && errno == ETIMEDOUT, "the next connection is not tried");
	gsched_close(g);
	forget();
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == ETIMEDOUT, "a rewrite fails, too");
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == ETIMEDOUT, "and the next one");
	thaw(&f);
	forget();

	g = gsched_open(NULL);
	ok(g && !gsched_attach(g, uuid, true, NULL), "it goes on: attach");
	freeze(&f);
	ok(gsched_submit(g, &task) < 0 && errno == ETIMEDOUT, "stopped before a submit: ETIMEDOUT");
	ok(readable(gsched_fd(g), 0) && gsched_event_read(g, &ev) < 0 && errno == ETIMEDOUT,
	   "and the reader of events is told");
	f.window = 77;
	thaw(&f);
	ok(fake_wait(&f, &f.detached, 1), "it goes on: it finds that the client is gone");
	ok(gsched_submit(g, &task) < 0 && errno == ETIMEDOUT && !task.window,
	   "and its late answer is nobody's");
	gsched_close(g);
	forget();

	/* a thread waits for its grant: as long as it takes, if only the arbiter lives */
	g = gsched_open(NULL);
	gsched_attach(g, uuid, true, NULL);
	f.hold_grants = true;
	n = f.submits;
	pthread_create(&thread, NULL, submitter, g);
	fake_wait(&f, &f.submits, n + 1);
	ok(fake_wait(&f, &f.infos, f.infos + 3),
	   "who waits for long asks whether the arbiter lives");
	f.window = 2;
	fake_grant(&f);
	pthread_join(thread, &rc);
	ok(rc == 0, "and gets its grant");
	n = f.submits;
	pthread_create(&thread, NULL, submitter, g);
	fake_wait(&f, &f.submits, n + 1);
	freeze(&f);
	pthread_join(thread, &rc);
	ok((intptr_t)rc == ETIMEDOUT, "stopped while one waits for its grant: ETIMEDOUT");
	thaw(&f);
	gsched_close(g);
	forget();
	f.hold_grants = false;

	/* nobody waits, but somebody looks now and then */
	g = gsched_open(NULL);
	gsched_attach(g, uuid, true, NULL);
	ok(!gsched_check(g), "an arbiter that lives");
	freeze(&f);
	for (i = 0; i < 60000 && !gsched_check(g); i++)
		usleep(1000);
	ok(i < 60000 && errno == ETIMEDOUT, "and one that does not is found out");
	gsched_close(g);
	thaw(&f);
	forget();

	/* messages without an answer: until the buffer is full */
	g = gsched_open(NULL);
	gsched_attach(g, uuid, true, NULL);
	freeze(&f);
	for (i = 0; i < 1000000 && !gsched_complete(g, 1, i, 0, false); i++)
		;
	ok(i < 1000000 && errno == ETIMEDOUT,
	   "stopped, with a full buffer: complete fails with ETIMEDOUT");
	ok(gsched_complete(g, 1, 1, 0, false) < 0 && errno == EPIPE, "and then at once");
	thaw(&f);
	gsched_close(g);
	fake_stop(&f);
	forget();

	/* nobody takes connections */
	strcpy(addr.sun_path, "/tmp/gsched-full-XXXXXX");
	if (!mkdtemp(addr.sun_path))
		abort();
	strcat(addr.sun_path, "/sock");
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(s, (struct sockaddr *)&addr, sizeof(addr)) || listen(s, 1))
		abort();
	for (n = 0; n < 64; n++) {
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fds[n], (struct sockaddr *)&addr, sizeof(addr)))
			break;
	}
	setenv("GSCHED_SOCKET", addr.sun_path, 1);
	ok(n < 64 && !gsched_open(NULL) && errno == ETIMEDOUT,
	   "a full backlog: open fails with ETIMEDOUT");
	forget();
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == ETIMEDOUT, "and a rewrite");
	for (i = 0; i <= n && i < 64; i++)
		close(fds[i]);
	close(s);
	unlink(addr.sun_path);
	*strrchr(addr.sun_path, '/') = 0;
	rmdir(addr.sun_path);
	forget();
}

static void rewriting(void)
{
	struct gsched_rewrite_opts opts;
	char *ptx;
	void *description;
	struct fake f;
	size_t size, described;

	fake_start(&f);
	ok(!gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) &&
	   !strcmp(ptx, "the twins") && size == 9 && described == sizeof(FAKE_DESCRIPTION) &&
	   !memcmp(description, FAKE_DESCRIPTION, described), "the rewrite service");
	free(ptx);
	ptx = NULL;
	free(description);
	description = NULL;
	opts = (struct gsched_rewrite_opts){ .size = sizeof(opts), .arch = 90, .kernel = "one" };
	ok(!gsched_rewrite_with("abc", 3, &opts, &ptx, &size, &description, &described) &&
	   f.last_rewrite.image_size == 3 && f.last_rewrite.name_size == 3 && ptx,
	   "one kernel of an image");
	free(ptx);
	ptx = NULL;
	free(description);
	description = NULL;
	opts = (struct gsched_rewrite_opts){ .size = sizeof(opts), .arch = 90, .describe = true };
	ok(!gsched_rewrite_with("abc", 3, &opts, &ptx, &size, &description, &described) &&
	   f.last_rewrite.flags == GSP_REWRITE_DESCRIBE && !ptx && description,
	   "what an image's kernels are");
	free(description);
	description = NULL;
	opts.size = offsetof(struct gsched_rewrite_opts, kernel) - 1;
	ok(gsched_rewrite_with("abc", 3, &opts, &ptx, &size, &description, &described) < 0 &&
	   errno == EINVAL, "options of no version");
	f.rewrite_err = ENOEXEC;
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == ENOEXEC && !ptx && description, "a refusal says why");
	free(description);
	description = NULL;
	f.rewrite_err = EINVAL;
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == EINVAL && !ptx && !description, "an error");
	fake_stop(&f);
	ok(gsched_rewrite("abc", 3, 90, &ptx, &size, &description, &described) < 0 &&
	   errno == ENOTCONN, "no daemon: ENOTCONN");
}

static void administration(void)
{
	char buf[64], tiny[2], *text;
	struct gsched *g;
	struct fake f;

	fake_start(&f);
	g = gsched_open(NULL);
	ok(!gsched_group_create(g, NULL, "a/b") && f.last_type == GSP_GROUP_CREATE &&
	   !strcmp(f.last_group.path, "a/b") && !f.last_group.device[0], "create a group");
	ok(gsched_group_delete(g, "gpu0", "a") < 0 && errno == EBUSY &&
	   !strcmp(f.last_group.device, "gpu0"), "delete: EBUSY");
	ok(!gsched_group_set(g, NULL, "a", "capsm.max", "4") && f.last_type == GSP_GROUP_SET &&
	   !strcmp(f.last_group.value, "4"), "set a file");
	ok(!gsched_group_set(g, NULL, "a", "procs", "1") && f.last_type == GSP_GROUP_BIND,
	   "bind a process");
	ok(!gsched_group_get(g, NULL, "a", "capsm.max", buf, sizeof(buf)) && !strcmp(buf, "42\n"),
	   "get a file");
	ok(gsched_group_get(g, NULL, "a", "capsm.max", tiny, sizeof(tiny)) < 0 && errno == ERANGE,
	   "into too small a buffer: ERANGE");
	ok(!gsched_device_set(g, NULL, "mode", "spatial") && f.last_type == GSP_DEVICE_SET,
	   "set the device's mode");
	ok(gsched_group_create(g, NULL, "../x") < 0 && errno == EINVAL,
	   "a path that leaves: EINVAL");
	ok(gsched_group_create(g, NULL, "a//b") < 0 && errno == EINVAL, "an empty part: EINVAL");
	ok(gsched_group_create(g, NULL, "/a") < 0 && errno == EINVAL, "an absolute path: EINVAL");
	ok(gsched_group_create(g, "x/y", "a") < 0 && errno == EINVAL,
	   "a device with a slash: EINVAL");
	text = gsched_status(g);
	ok(text && !strcmp(text, "{\"backend\": \"daemon\"}"), "status");
	free(text);
	gsched_close(g);
	fake_stop(&f);
}

static void put(const char *root, const char *name, const char *text)
{
	char path[256], *slash;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		mkdir(path, 0755);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

/* The module's files, laid out in a temporary directory. */
static void files(void)
{
	char root[] = "/tmp/gsched-files-XXXXXX", config[64], sysfs[64], buf[64], *text,
		command[64];

	if (!mkdtemp(root))
		abort();
	snprintf(config, sizeof(config), "%s/config", root);
	snprintf(sysfs, sizeof(sysfs), "%s/sys", root);
	put(config, "gpu0/capsm.max", "max\n");
	put(config, "gpu0/batch/capsm.max", "4\n");
	put(config, "gpu0/batch/gpu.stat", "usage 5\ntasks 2\n");
	put(config, "gpu0/batch/inner/capsm.max", "2\n");
	put(sysfs, "gpu0/sms", "132\n");
	put(config, "gpu0/procs", "12\n13\n");
	put(sysfs, "gpu0/mode", "[auto] temporal spatial\n");
	put(sysfs, "gpu0/mode_current", "sliced\n");
	put(sysfs, "gpu0/policy", "fifo [hpf]\n");
	put(sysfs, "gpu0/policy_fault", "fifo was replaced by hpf\n");
	put(config, "gpu0/batch/gpu.band", "red\n");
	put(sysfs, "gpu0/switch_us", "190\n");
	put(sysfs, "gpu0/tasks/77/band", "name red\nslice_us 0\napplied_us 1\nslice_error 5\n"
	    "block_end 1\nblock_us 32\nactivity waiting\nshare 0.125000\n");
	put(sysfs, "gpu0/tasks/77/held_ns", "4711\n");
	put(sysfs, "gpu0/tasks/77/group", "/\n");
	put(sysfs, "gpu0/tasks/77/comm", "prog\n");
	put(sysfs, "gpu0/tasks/77/managed", "block 3\nslice 0\nlaunch 1\n");
	put(sysfs, "gpu0/tasks/77/why", "a \"reason\"\n");
	put(sysfs, "gpu0/tasks/77/usage", "id 5\nrunning 1\n");
	put(sysfs, "gpu0/tasks/77-6/comm", "prog\n");
	put(sysfs, "gpu0/tasks/77-6/usage", "id 6\nrunning 0\n");
	ok(!gsched_files_admin(config, sysfs, GSCHED_ADMIN_GET, NULL, "batch", "capsm.max", NULL,
			       buf, sizeof(buf)) &&
	   !strcmp(buf, "4\n"), "configfs: get");
	ok(!gsched_files_admin(config, sysfs, GSCHED_ADMIN_SET, "gpu0", "batch", "capsm.max",
			       "8", NULL, 0) &&
	   !gsched_files_admin(config, sysfs, GSCHED_ADMIN_GET, "gpu0", "batch", "capsm.max", NULL,
			       buf, sizeof(buf)) &&
	   buf[0] == '8', "configfs: set");
	ok(!gsched_files_admin(config, sysfs, GSCHED_ADMIN_CREATE, NULL, "new", NULL,
			       NULL, NULL, 0) &&
	   gsched_files_admin(config, sysfs, GSCHED_ADMIN_CREATE, NULL, "new", NULL, NULL, NULL,
			      0) < 0 && errno == EEXIST,
	   "configfs: create, again EEXIST");
	ok(!gsched_files_admin(config, sysfs, GSCHED_ADMIN_DELETE, NULL, "new", NULL, NULL, NULL,
			       0), "configfs: delete");
	ok(gsched_files_admin(config, sysfs, GSCHED_ADMIN_SET, NULL, "nobody", "capsm.max", "8",
			      NULL, 0) < 0 &&
	   errno == ENOENT, "configfs: no such group");
	ok(!gsched_files_admin(config, sysfs, GSCHED_ADMIN_DEVICE, NULL, "", "mode", "temporal",
			       NULL, 0), "sysfs: device");
	text = gsched_files_status(config, sysfs);
	ok(text && strstr(text, "\"backend\":\t\"module\"") &&
	   strstr(text, "\"path\":\t\"batch/inner\"") && strstr(text, "\"mode\":\t\"sliced\"") &&
	   strstr(text, "\"policy\":\t\"hpf\"") &&
	   strstr(text, "\"policy_fault\":\t\"fifo was replaced by hpf\"") &&
	   strstr(text, "\"procs\":\t[12, 13]") && strstr(text, "\"sms\":\t132") &&
	   strstr(text, "\"usage\":\t5"), "status: groups");
	ok(text && strstr(text, "\"pid\":\t77") && strstr(text, "\"group\":\t\"\"") &&
	   strstr(text, "\"block\":\t3") && strstr(text, "a \\\"reason\\\"") &&
	   strstr(text, "\"id\":\t5") && strstr(text, "\"id\":\t6") &&
	   strstr(text, "\"slots\":\t[]") && !strstr(text, "\"bands\""), "status: clients");
	ok(text && strstr(text, "\"switch_us\":\t190") && strstr(text, "\"gpu.band\":\t\"red\"") &&
	   strstr(text, "\"block_end\":\ttrue,\n\t\t\t\t\t\"block_us\":\t32"),
	   "status: where the GPU leaves a band, and how long its thread blocks take");
	ok(text && strstr(text, "\"band\":\t\"red\"") && strstr(text, "\"applied_us\":\t1,") &&
	   strstr(text, "\"activity\":\t\"waiting\"") && strstr(text, "\"share\":\t0.125") &&
	   strstr(text, "\"held_ns\":\t4711"), "status: what a client was told of its band");
	free(text);
	text = gsched_files_status("/nonexistent", sysfs);
	ok(!text && errno == ENOENT, "status without configfs: ENOENT");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		abort();
}

int main(void)
{
	attach();
	bands();
	tasks();
	interrupted();
	full();
	stopped();
	rewriting();
	administration();
	files();
	return done();
}
