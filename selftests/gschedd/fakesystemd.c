// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A systemd that knows nothing but StartTransientUnit for scopes: fakesystemd MODE DIRECTORY, on
 * the bus of $DBUS_SYSTEM_BUS_ADDRESS.
 *
 * Prints "ready", then a line for each property it is asked for. MODE: move, into a cgroup below
 * DIRECTORY, which is in the cgroup v2 hierarchy; promise, and do nothing; refuse; silent.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define SYSTEMD		"org.freedesktop.systemd1"
#define CREDS_PID	1u

/* SYMBOL(name, parameters): of libsystemd, which needs no header here; all return an int */
#define SD_BUS(SYMBOL) \
	SYMBOL(sd_bus_open_system, (void **bus)) \
	SYMBOL(sd_bus_request_name, (void *bus, const char *name, uint64_t flags)) \
	SYMBOL(sd_bus_process, (void *bus, void **message)) \
	SYMBOL(sd_bus_wait, (void *bus, uint64_t us)) \
	SYMBOL(sd_bus_message_is_method_call, (void *message, const char *interface, \
	       const char *member)) \
	SYMBOL(sd_bus_message_read, (void *message, const char *types, ...)) \
	SYMBOL(sd_bus_message_enter_container, (void *message, char type, const char *contents)) \
	SYMBOL(sd_bus_message_exit_container, (void *message)) \
	SYMBOL(sd_bus_query_sender_creds, (void *message, uint64_t mask, void **creds)) \
	SYMBOL(sd_bus_creds_get_pid, (void *creds, pid_t *pid)) \
	SYMBOL(sd_bus_reply_method_return, (void *message, const char *types, ...)) \
	SYMBOL(sd_bus_reply_method_errorf, \
	       (void *message, const char *name, const char *format, ...))

#define POINTER(name, parameters) static int (*name) parameters;
SD_BUS(POINTER)

struct scope {
	char name[256], slice[256];
	pid_t pid;
};

static void load(void)
{
	void *lib = dlopen("libsystemd.so.0", RTLD_NOW);

#define LOAD(name, parameters) \
	if (!lib || !(*(void **)&name = dlsym(lib, #name))) { \
		fprintf(stderr, "%s\n", dlerror()); \
		exit(1); \
	}
	SD_BUS(LOAD)
}

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}
#define MUST(call) must(call, #call)

static void read_pids(void *m, struct scope *s)
{
	void *creds;
	uint32_t pid;

	MUST(sd_bus_message_enter_container(m, 'v', "au"));
	MUST(sd_bus_message_enter_container(m, 'a', "u"));
	MUST(sd_bus_message_read(m, "u", &pid));
	s->pid = (pid_t)pid;
	if (!pid) {
		MUST(sd_bus_query_sender_creds(m, CREDS_PID, &creds));
		MUST(sd_bus_creds_get_pid(creds, &s->pid));
	}
	MUST(sd_bus_message_exit_container(m));
	MUST(sd_bus_message_exit_container(m));
	printf("PIDs %d\n", (int)s->pid);
}

static void read_request(void *m, struct scope *s)
{
	const char *name, *mode, *key, *value;

	memset(s, 0, sizeof(*s));
	MUST(sd_bus_message_read(m, "ss", &name, &mode));
	printf("StartTransientUnit %s %s\n", name, mode);
	snprintf(s->name, sizeof(s->name), "%s", name);
	MUST(sd_bus_message_enter_container(m, 'a', "(sv)"));
	while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
		MUST(sd_bus_message_read(m, "s", &key));
		if (!strcmp(key, "PIDs")) {
			read_pids(m, s);
		} else {
			MUST(sd_bus_message_read(m, "v", "s", &value));
			printf("%s %s\n", key, value);
			if (!strcmp(key, "Slice"))
				snprintf(s->slice, sizeof(s->slice), "%s", value);
		}
		MUST(sd_bus_message_exit_container(m));
	}
}

static bool make(const char *path)
{
	return !mkdir(path, 0755) || errno == EEXIST;
}

/* gsched-a-b.slice is in gsched-a.slice, and that in gsched.slice */
static bool move(const char *top, const struct scope *s)
{
	char path[4096];
	const char *dash = s->slice;
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", top);
	FILE *f;

	while (make(path) && (dash = strchr(dash, '-'))) {
		used += (size_t)snprintf(path + used, sizeof(path) - used, "/%.*s.slice",
					 (int)(dash - s->slice), s->slice);
		dash++;
	}
	used += (size_t)snprintf(path + used, sizeof(path) - used, "/%s", s->slice);
	if (!make(path))
		return false;
	used += (size_t)snprintf(path + used, sizeof(path) - used, "/%s", s->name);
	if (!make(path))
		return false;
	snprintf(path + used, sizeof(path) - used, "/cgroup.procs");
	f = fopen(path, "we");
	return f && fprintf(f, "%d", (int)s->pid) > 0 && !fclose(f);
}

static void serve(void *m, const char *mode, const char *top)
{
	struct scope scope;

	if (sd_bus_message_is_method_call(m, SYSTEMD ".Manager", "StartTransientUnit") <= 0 ||
	    !strcmp(mode, "silent"))
		return;
	read_request(m, &scope);
	fflush(stdout);
	if (!strcmp(mode, "refuse")) {
		MUST(sd_bus_reply_method_errorf(m, SYSTEMD ".UnitExists",
						"Unit %s was already loaded.", scope.name));
		return;
	}
	MUST(sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/1"));
	if (strcmp(mode, "move"))
		return;
	usleep(20000); /* the job ends later than the call */
	if (!move(top, &scope))
		perror(top);
}

int main(int argc, char **argv)
{
	void *bus = NULL, *message;
	int rc;

	if (argc != 3)
		return 2;
	alarm(120);
	load();
	MUST(sd_bus_open_system(&bus));
	MUST(sd_bus_request_name(bus, SYSTEMD, 0));
	puts("ready");
	fflush(stdout);
	for (;;) {
		message = NULL;
		rc = sd_bus_process(bus, &message);
		MUST(rc);
		if (message)
			serve(message, argv[1], argv[2]);
		else if (!rc)
			MUST(sd_bus_wait(bus, UINT64_MAX));
	}
}
