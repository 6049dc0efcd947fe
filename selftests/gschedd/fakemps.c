// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * As much of nvidia-cuda-mps-control as gschedd needs: `-f` serves $CUDA_MPS_PIPE_DIRECTORY in the
 * foreground until it is told to quit, without -f the commands on standard input go there. What it
 * is started with stands in the log directory, file "started", and a file FAULT beside the uid's
 * directory makes it misbehave: "die" (exit 3 with a message), "deaf" (never listens), "deafquit"
 * (ignores quit and SIGTERM), "server" (has a server, another one after its death, and leaves it
 * behind when it is killed).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *pipe_dir, *log_dir;
static char path[256];
static pid_t server;

static const char *in(const char *dir, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *env(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static void set_address(struct sockaddr_un *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	snprintf(addr->sun_path, sizeof(addr->sun_path), "%.90s/control", pipe_dir);
}

static int send_commands(void)
{
	struct sockaddr_un addr;
	char line[64];
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	set_address(&addr);
	if (connect(s, (struct sockaddr *)&addr, sizeof(addr)))
		return 1;
	while (fgets(line, sizeof(line), stdin))
		if (send(s, line, strlen(line), MSG_NOSIGNAL) < 0)
			return 1;
	return recv(s, line, sizeof(line), 0) < 0;	/* until it has done so */
}

/* The first word of the file FAULT in the directory above the user's. */
static void read_fault(char *fault, size_t size)
{
	FILE *f = fopen(in(pipe_dir, "../../../FAULT"), "r");

	fault[0] = '\0';
	if (f && fgets(fault, (int)size, f))
		fault[strcspn(fault, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* At once, and when the one before it has ended. */
static void start_server(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	server = fork();
	while (!server && !access(pipe_dir, F_OK))
		sleep(1);
	if (!server)
		_exit(1);
}

static int serve(void)
{
	struct sockaddr_un addr;
	char fault[32], line[64];
	FILE *f;
	int s;

	read_fault(fault, sizeof(fault));
	if (!strcmp(fault, "die")) {
		puts("first line\nno GPU to be found");
		return 3;
	}
	f = fopen(in(log_dir, "started"), "a");
	if (!f)
		return 1;
	fprintf(f, "pid %d uid %d band %s socket %s preload %s\n", (int)getpid(), (int)getuid(),
		env("GSCHED_BAND"), env("GSCHED_SOCKET"), env("LD_PRELOAD"));
	fclose(f);
	while (!strcmp(fault, "deaf") && !access(pipe_dir, F_OK))
		sleep(1);
	if (!strcmp(fault, "deafquit"))
		signal(SIGTERM, SIG_IGN);
	if (!strcmp(fault, "server")) {
		/* not when it is stopped */
		sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = start_server,
							.sa_flags = SA_NOCLDSTOP }, NULL);
		start_server(0);
	}
	s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	set_address(&addr);
	if (bind(s, (struct sockaddr *)&addr, sizeof(addr))) {
		puts("An instance of this daemon is already running");
		return 1;
	}
	f = fopen(in(pipe_dir, "nvidia-cuda-mps-control.pid"), "w");
	if (!f || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f) || listen(s, 8))
		return 1;
	puts("Starting control daemon");
	fflush(stdout);
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 1 },
		   sizeof(struct timeval));
	while (!access(pipe_dir, F_OK)) {	/* a test that crashes removes it */
		int peer = accept(s, NULL, NULL);
		ssize_t n = peer < 0 ? -1 : recv(peer, line, sizeof(line) - 1, 0);

		if (n > 0) {
			line[n] = '\0';
			if (!strcmp(line, "quit\n") && strcmp(fault, "deafquit")) {
				unlink(in(pipe_dir, "nvidia-cuda-mps-control.pid"));
				f = fopen(in(log_dir, "started"), "a");
				if (f) {
					fputs("quit\n", f);
					fclose(f);
				}
				signal(SIGCHLD, SIG_DFL);
				if (server > 0)
					kill(server, SIGKILL);
				return 0;
			}
		}
		if (peer >= 0)
			close(peer);
	}
	return 1;
}

int main(int argc, char **argv)
{
	pipe_dir = env("CUDA_MPS_PIPE_DIRECTORY");
	log_dir = env("CUDA_MPS_LOG_DIRECTORY");
	return argc > 1 && !strcmp(argv[1], "-f") ? serve() : send_commands();
}
