// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs built with gcc's AddressSanitizer end at once where a library is loaded before its
 * runtime, as this one is. It looks this function up, first in the program.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
