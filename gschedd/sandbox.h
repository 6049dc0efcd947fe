/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GSCHEDD_SANDBOX_H
#define GSCHEDD_SANDBOX_H

/* For good; descriptors are closed. -errno: there is no protection to be had. */
int sandbox_enter(void);

#endif /* GSCHEDD_SANDBOX_H */
