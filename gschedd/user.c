// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Users, by uid, while they have connections: their share of limited resources, and whose turn it
 * is. A share is half of what the others leave. So one user never gets all of a resource, nor do
 * two or three who try.
 */
#include <errno.h>
#include <stdlib.h>
#include "gschedd.h"

static struct list_head users = { &users, &users };

struct user *user_get(uid_t uid)
{
	struct user *u;

	list_for_each_entry(u, &users, node)
		if (u->uid == uid)
			goto found;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	INIT_LIST_HEAD(&u->ready);
	INIT_LIST_HEAD(&u->turn);
	INIT_LIST_HEAD(&u->jobs);
	INIT_LIST_HEAD(&u->job_turn);
	list_add_tail(&u->node, &users);
found:
	u->n_conns++;
	return u;
}

void user_put(struct user *u)
{
	if (--u->n_conns)
		return;
	list_del_init(&u->node);
	free(u);
}
