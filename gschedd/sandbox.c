// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Confines a process that parses untrusted input to its own memory: no files, no descriptors, no
 * other processes, no user of the host.
 */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sandbox.h"

#define NOBODY		65534
#define CPU_MAX_S	120

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH	AUDIT_ARCH_AARCH64
#else
#error "add the architecture's AUDIT_ARCH"
#endif

#ifdef __SANITIZE_ADDRESS__	/* its reports need files and its own system calls */
static int filter_calls(void)
{
	return 0;
}

static void close_files(void)
{
	syscall(SYS_close_range, 3, ~0u, 0);
}
#else
static int filter_calls(void)
{
	/*
	 * memory, locks of the C library, time, and exit; all other calls fail as if they were not
	 * permitted
	 */
	static const unsigned int allowed[] = {
		SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex,
		SYS_clock_gettime, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_rt_sigprocmask,
		SYS_rt_sigreturn, SYS_restart_syscall, SYS_getrandom, SYS_exit, SYS_exit_group,
	};
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[N + 6], *c = code;
	struct sock_fprog program = { .filter = code };

	*c++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, arch));
	*c++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	*c++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	*c++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, nr));
	for (unsigned int i = 0; i < N; i++)
		*c++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						    allowed[i], N - i, 0);
	*c++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	*c++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)(c - code);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

static void close_files(void)
{
	syscall(SYS_close_range, 0, ~0u, 0);
}
#endif

int sandbox_enter(void)
{
	const struct rlimit none = { 0, 0 }, cpu = { CPU_MAX_S, CPU_MAX_S };
	bool dropped;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dropped = !geteuid() && !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
		  !setresuid(NOBODY, NOBODY, NOBODY);
	/* the change of user has reset it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_FSIZE, &none);
	setrlimit(RLIMIT_NOFILE, &none);
	close_files();
	err = filter_calls();
	/* without the filter, another user without descriptors is still isolated */
	return dropped ? 0 : err;
}
