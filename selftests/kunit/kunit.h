/* SPDX-License-Identifier: GPL-2.0-only */
/* What the suites share: a device for each case, and clients of it that no file has opened. */
#ifndef GSCHED_KUNIT_H
#define GSCHED_KUNIT_H

#include <kunit/test.h>

#include "internal.h"

#define KUNIT_SMS	16

/* init and exit of a suite: test->priv is the device, on which they hold a reference */
int gsched_kunit_init(struct kunit *test);
void gsched_kunit_exit(struct kunit *test);

/* A client that is not attached, and its end; both are idle without a device */
struct gsched_client *gsched_kunit_client(struct kunit *test);
int gsched_kunit_attach(struct gsched_client *client);
void gsched_kunit_close(struct gsched_client *client);

/* SUBMIT of a task of eight block-tasks, without waiting */
int gsched_kunit_submit(struct gsched_client *client, u32 slot, u32 seq);

#endif /* GSCHED_KUNIT_H */
