/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GSCHEDD_SANDBOX_H
#define GSCHEDD_SANDBOX_H

/* Permanent; closes descriptors. -errno: no protection is available. */
int sandbox_enter(void);

#endif /* GSCHEDD_SANDBOX_H */
