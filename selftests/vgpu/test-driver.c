// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver API of vgpu as switches of the environment say: a process for each test, as cuInit
 * reads them once
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test-driver.h"

#define PATIENCE 60	/* seconds after which a test hangs */

void driver_test(const char *env, bool (*test)(void), const char *name)
{
	char words[512], *rest = words, *word;
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		snprintf(words, sizeof(words), "%s", env);
		while ((word = strsep(&rest, " "))) {
			char *value = strchr(word, '=');

			if (!value)
				continue;
			*value++ = '\0';
			setenv(word, value, 1);
		}
		alarm(PATIENCE);
		exit(test() ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("# ended by signal %d\n", WTERMSIG(status));
	ok(pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status), name);
}

void *test_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

int main(void)
{
	char name[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(name, sizeof(name), "vgpu-test-driver-%d", (int)getpid());
	setenv("VGPU_NAME", name, 1);
	setenv("VGPU_SMS", "2", 1);
	setenv("VGPU_MEM_MB", "64", 1);
	setenv("VGPU_MPS", "1", 1);
	locks_tests();
	delays_tests();
	handles_tests();
	devices_tests();
	connections_tests();
	addresses_tests();
	snprintf(name, sizeof(name), "/dev/shm/vgpu-test-driver-%d", (int)getpid());
	unlink(name);
	snprintf(name, sizeof(name), "/dev/shm/vgpu-test-driver-%d.1", (int)getpid());
	unlink(name);
	return done();
}
