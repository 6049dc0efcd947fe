// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * --trace: a JSON line per decision, like the module's tracepoints. The file may be a pipe, and who
 * reads it may have stopped, for which the daemon must not wait: a line for which there is no room
 * is lost, and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gschedd.h"

#define BUFFER	65536
#define LINE	1024

static int trace_fd = -1;
static char *buffer;
static size_t used;
static unsigned long lost;

/* Lines are buffered while decisions are frequent, and written before the loop sleeps. */
static void trace_flush(void)
{
	size_t done = 0;

	while (trace_fd >= 0 && done < used) {
		ssize_t n = write(trace_fd, buffer + done, used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			/* a pipe takes a part: what is left begins in the middle of a line */
			memmove(buffer, buffer + done, used - done);
			used -= done;
			return;
		}
		if (n < 0) {
			say(LOG_WARN, "trace: %m: no more lines are written; free space and "
			    "restart to trace again");
			close(trace_fd);
			trace_fd = -1;
			break;
		}
		done += n;
	}
	used = 0;
}

int trace_open(const char *path)
{
	buffer = malloc(BUFFER);
	if (!buffer)
		return -ENOMEM;
	trace_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_CLOEXEC,
			0644);
	if (trace_fd < 0)
		return -errno;
	loop_before_sleep(trace_flush);
	return 0;
}

void trace_event(const char *what, const struct gsc_task *task, uint64_t now)
{
	const struct client *c = container_of(task->client, struct client, core);
	int n;

	if (trace_fd < 0)
		return;
	if (BUFFER - used < 2 * LINE)
		trace_flush();
	if (BUFFER - used < 2 * LINE) {
		lost++;
		return;
	}
	if (lost)
		used += snprintf(buffer + used, LINE, "{\"event\":\"lost\",\"lines\":%lu}\n",
				 lost);
	lost = 0;
	/* names and paths are [A-Za-z0-9_.-/], so nothing needs escaping */
	n = snprintf(buffer + used, LINE,
		     "{\"time_ns\":%llu,\"event\":\"%s\",\"device\":\"%s\",\"pid\":%d,"
		     "\"group\":\"%s\",\"slot\":%u,\"seq\":%u,"
		     "\"limit\":%u,\"priority\":%u,\"ran_ns\":%llu}\n",
		     (unsigned long long)now, what, c->dev->decl.name, (int)c->conn->pid,
		     *c->group->path ? c->group->path : "/", task->slot, task->seq, task->window,
		     c->group->core->priority, (unsigned long long)task->ran);
	if (n > 0 && n < LINE)
		used += n;
}

void trace_close(void)
{
	trace_flush();
	for (size_t i = 0; i < used; i++)
		lost += buffer[i] == '\n';
	if (lost)
		say(LOG_WARN, "trace: the last %lu lines are lost, as it was not read", lost);
	used = lost = 0;
	if (trace_fd >= 0)
		close(trace_fd);
	trace_fd = -1;
	free(buffer);
	buffer = NULL;
}
