// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * For `cost --bypass`: an interposer, bypass/libcuda.so.1, whose launches can be switched to the
 * driver's own functions and back while a program runs. So what gsched adds to a launch is measured
 * inside one process, where it is not hidden by what two processes differ by.
 *
 * $BENCH_SWITCH names a file that holds a struct bench_switch. Here are the functions that the program
 * calls; entry/calls.c is compiled again for this library, with gsched_ before their names.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/device.h"
#include "selftests/bench/bypass.h"

static struct bench_switch none;
static volatile struct bench_switch *bench_switch = &none;

__typeof__(cuLaunchKernel) gsched_cuLaunchKernel;
__typeof__(cuLaunchKernelEx) gsched_cuLaunchKernelEx;
__typeof__(cuGraphLaunch) gsched_cuGraphLaunch;

__attribute__((constructor)) static void open_switch(void)
{
	const char *path = getenv("BENCH_SWITCH");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(none), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	bench_switch = at;
	bench_switch->present = 1;
}

static bool bypass(void)
{
	if (!bench_switch->bypass)
		return false;
	bench_switch->bypassed++;
	return true;
}

CUresult cuLaunchKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	if (bypass())
		return gi_hot.launch_kernel(fn, gx, gy, gz, bx, by, bz, shared, stream, params,
					    extra);
	return gsched_cuLaunchKernel(fn, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction fn, void **params, void **extra)
{
	if (bypass())
		return gi_hot.launch_kernel_ex(config, fn, params, extra);
	return gsched_cuLaunchKernelEx(config, fn, params, extra);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	if (bypass())
		return gi_real.cuGraphLaunch(exec, stream);
	return gsched_cuGraphLaunch(exec, stream);
}
