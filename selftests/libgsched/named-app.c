// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens a library, and prints what its function returns. It is not linked against the driver. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*devices)(void) = lib ? (int (*)(void))dlsym(lib, argv[2]) : NULL;

	printf("%d\n", devices ? devices() : -2);
	return 0;
}
