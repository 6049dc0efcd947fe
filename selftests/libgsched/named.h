/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SELFTESTS_NAMED_H
#define SELFTESTS_NAMED_H

/* How many devices there are, by the driver's functions in variables; -1: it does not answer */
__attribute__((visibility("default"))) int named_devices(void);
__attribute__((visibility("default"))) extern int (*cuInit)(unsigned int flags);
__attribute__((visibility("default"))) extern int (*cuDeviceGetCount)(int *count);

/* The same in a library that needs the other one */
__attribute__((visibility("default"))) int needs_named_devices(void);

#endif /* SELFTESTS_NAMED_H */
