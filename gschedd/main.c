// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedd: the daemon's start and end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "gschedd.h"

static struct source signals = { .fd = -1 };

/* systemd's readiness protocol: a datagram to a socket, which may be an abstract one. */
static void notify_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(addr.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (*path == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&addr,
		   offsetof(struct sockaddr_un, sun_path) + len) < 0)
		say(LOG_WARN, "NOTIFY_SOCKET %s: %m", path);
	close(fd);
}

static int add_devices(void)
{
	struct device_decl found[DECLS_MAX];
	unsigned int declared = opt.n_decl;
	int n = 0, err;

	if (*opt.driver)
		n = driver_enumerate(opt.driver, found, DECLS_MAX, signals.fd);
	if (n == -EINTR)
		return n;

	/* devices declared by the user come first and take precedence */
	for (int i = 0; i < n && opt.n_decl < DECLS_MAX; i++) {
		bool known = false;

		for (unsigned int k = 0; k < opt.n_decl; k++)
			known |= !memcmp(opt.decl[k].uuid, found[i].uuid, GSCHED_UUID_SIZE);
		if (!known)
			opt.decl[opt.n_decl++] = found[i];
	}
	for (unsigned int i = 0; i < opt.n_decl; i++) {
		struct device_decl *d = &opt.decl[i];
		bool module = opt.arbiter == ARBITER_MODULE;

		err = module ? module_add(d) : device_add(d);
		if (err == -EEXIST && module)
			err = 0;
		if (err)
			say(LOG_ERROR, "device %s with %u SMs: %s%s", d->name, d->sms,
			    strerror(-err),
			    err == -EEXIST ? ": its name and its UUID must both be its own" :
			    err == -EINVAL ? ": a name is [a-z0-9_-]+" : "");
		else
			say(LOG_INFO, "device %s: %u SMs", d->name, d->sms);
		if (err && i < declared)
			return err;
	}
	if (!opt.n_decl && n < 0)
		say(LOG_WARN, "without devices only rewriting is served");
	else if (!opt.n_decl)
		say(LOG_WARN, "no device found: only rewriting is served; name devices with "
		    "--device or --driver");
	return 0;
}

static void signals_ready(struct source *src, uint32_t events)
{
	struct signalfd_siginfo si;

	if (read(src->fd, &si, sizeof(si)) == sizeof(si)) {
		say(LOG_INFO, "%s: ending", strsignal(si.ssi_signo));
		loop_stop();
	}
}

/*
 * A signal that is ignored is one that it was started to ignore: by nohup, or in the background of
 * a script, whose Ctrl-C is not meant for it. signalfd(2) would deliver it nevertheless.
 */
static void add_signal(sigset_t *set, int sig)
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) || now.sa_handler != SIG_IGN)
		sigaddset(set, sig);
}

static int signals_open(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* a limit of files' sizes is an error of the file, not the end of all programs' arbiter */
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	add_signal(&set, SIGINT);
	add_signal(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals.ready = signals_ready;
	signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return signals.fd < 0 ? -errno : loop_add(&signals, EPOLLIN);
}

int main(int argc, char **argv)
{
	int err;

	options_parse(argc, argv);
	if (opt.worker_fd >= 0)
		return worker_main(opt.worker_fd);

	err = loop_init();
	if (!err)
		err = signals_open();
	if (!err)
		err = rewrite_init();
	conns_init();
	if (err) {
		say(LOG_ERROR, "start: %s", strerror(-err));
		return 1;
	}
	if (opt.trace && (err = trace_open(opt.trace))) {
		say(LOG_ERROR, "--trace %s: %s%s", opt.trace, strerror(-err), err == -ENXIO ?
		    ": a pipe has to be read before gschedd starts" : "");
		return 1;
	}
	if (opt.arbiter == ARBITER_MODULE && !strcmp(opt.policy, "chaos")) {
		say(LOG_ERROR, "--policy chaos: the module has no such policy; use --embedded");
		return 1;
	}
	if (opt.arbiter == ARBITER_MODULE && access(GSCHED_DEVICE_NODE, R_OK | W_OK)) {
		say(LOG_ERROR, "%s: %m; load the module (modprobe gsched) or use --embedded",
		    GSCHED_DEVICE_NODE);
		return 1;
	}
	/* the module keeps its groups itself */
	if (opt.state_dir && opt.arbiter == ARBITER_EMBEDDED && state_open())
		return 1;
	err = add_devices();
	if (err == -EINTR)
		signals_ready(&signals, EPOLLIN);
	if (!err)
		state_sync();
	if (!err)
		err = listen_open(opt.socket);
	if (!err)
		err = mps_init();
	if (!err)
		err = planner_init();
	nvml_watch();
	if (!err) {
		say(LOG_INFO, "serving %s at %s", opt.arbiter == ARBITER_MODULE ? "rewriting" :
		    "arbitration and rewriting", opt.socket);
		notify_systemd("READY=1");
		loop_run();
		notify_systemd("STOPPING=1");
		state_sync();
	}
	planner_stop();
	listen_close();
	devices_gone();
	conns_flush();
	conns_free();
	planner_exit();
	mps_exit();
	nvml_exit();
	rewrite_exit();
	devices_free();
	state_close();
	trace_close();
	monitors_close();
	loop_del(&signals);
	return err && err != -EINTR ? 1 : 0;
}
