/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests of what vgpu's driver does as switches of the environment say: each runs in a process of
 * its own
 */
#ifndef VGPU_TEST_DRIVER_H
#define VGPU_TEST_DRIVER_H

#include "test-api.h"

/*
 * Runs @test in a child with @env ("NAME=value" words with blanks between them) and says whether it
 * held
 */
void driver_test(const char *env, bool (*test)(void), const char *name);
void *test_shared(size_t size);	/* zeroed memory that the tests' processes share */

void locks_tests(void);
void delays_tests(void);
void handles_tests(void);
void devices_tests(void);
void connections_tests(void);
void addresses_tests(void);

#endif /* VGPU_TEST_DRIVER_H */
