/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one file through which the core takes its types and helpers: from the kernel, or, in
 * userspace, from below. Only what the core uses is here, under the kernel's names and with the
 * kernel's meaning.
 */
#ifndef GSCHED_CORE_SHIM_H
#define GSCHED_CORE_SHIM_H

#ifdef __KERNEL__

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/list_sort.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/types.h>

#include <asm/barrier.h>

#else /* !__KERNEL__ */

#define GSC_CHAOS	1	/* policy chaos is there */

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

#define noinline	__attribute_noinline__
#define BIT_ULL(n)	(1ULL << (n))

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#ifndef U32_MAX
#define U32_MAX		((u32)~0U)
#endif
#ifndef S64_MAX
#define S64_MAX		((s64)(U64_MAX >> 1))
#endif
#ifndef U64_MAX
#define U64_MAX		((u64)~0ULL)
#endif
#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#endif
#ifndef min
#define min(a, b) \
	({ __typeof__(a) min_a = (a); __typeof__(b) min_b = (b); min_a < min_b ? min_a : min_b; })
#endif
#ifndef max
#define max(a, b) \
	({ __typeof__(a) max_a = (a); __typeof__(b) max_b = (b); max_a > max_b ? max_a : max_b; })
#endif
#ifndef min_t
#define min_t(type, a, b)	min((type)(a), (type)(b))
#endif
#ifndef max_t
#define max_t(type, a, b)	max((type)(a), (type)(b))
#endif
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif
#ifndef DIV_ROUND_UP
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#endif

/* Words that other processors, processes and GPUs read and write */
#ifndef READ_ONCE
#define READ_ONCE(x)			__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)		__atomic_store_n(&(x), value, __ATOMIC_RELAXED)
/* what is read after it is no older */
#define smp_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* what was written before it is there */
#define smp_store_release(p, value)	__atomic_store_n(p, value, __ATOMIC_RELEASE)
/* both, and stores before later loads */
#define smp_mb()			__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#define check_mul_overflow(a, b, to)	__builtin_mul_overflow(a, b, to)
#define check_add_overflow(a, b, to)	__builtin_add_overflow(a, b, to)

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* Returns what was written, not what would have been */
static inline int scnprintf(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	int len;

	if (!size)
		return 0;
	va_start(args, format);
	len = vsnprintf(buf, size, format, args);
	va_end(args);
	if (len < 0)
		return 0;
	return (size_t)len < size ? len : (int)size - 1;
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add(struct list_head *node, struct list_head *after)
{
	node->next = after->next;
	node->prev = after;
	after->next->prev = node;
	after->next = node;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	list_add(node, head->prev);
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

static inline void list_move_tail(struct list_head *node, struct list_head *head)
{
	list_del_init(node);
	list_add_tail(node, head);
}

static inline int list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline int list_is_singular(const struct list_head *head)
{
	return !list_empty(head) && head->next == head->prev;
}

#ifndef list_entry
#define list_entry(ptr, type, member)		container_of(ptr, type, member)
#define list_first_entry(head, type, member)	list_entry((head)->next, type, member)
#define list_last_entry(head, type, member)	list_entry((head)->prev, type, member)
#define list_of(pos, member) \
	((struct list_head *)((char *)(pos) + offsetof(__typeof__(*(pos)), member)))
#define list_next_entry(pos, member) \
	list_entry(list_of(pos, member)->next, __typeof__(*(pos)), member)
#define list_prev_entry(pos, member) \
	list_entry(list_of(pos, member)->prev, __typeof__(*(pos)), member)
#define list_entry_is_head(pos, head, member)	(list_of(pos, member) == (head))
#define list_for_each_entry(pos, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member); \
	     !list_entry_is_head(pos, head, member); pos = list_next_entry(pos, member))
#define list_for_each_entry_reverse(pos, head, member) \
	for (pos = list_last_entry(head, __typeof__(*pos), member); \
	     !list_entry_is_head(pos, head, member); pos = list_prev_entry(pos, member))
#define list_for_each_entry_safe(pos, n, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member), \
	     n = list_next_entry(pos, member); \
	     !list_entry_is_head(pos, head, member); pos = n, n = list_next_entry(n, member))
#endif

typedef int (*list_cmp_func_t)(void *priv, const struct list_head *a, const struct list_head *b);

/* Of equals @a comes first. The lists end with NULL and have no links back */
static inline struct list_head *list_merge(void *priv, list_cmp_func_t cmp, struct list_head *a,
					   struct list_head *b)
{
	struct list_head *head = NULL, **tail = &head;

	while (a && b) {
		struct list_head **from = cmp(priv, a, b) > 0 ? &b : &a;

		*tail = *from;
		tail = &(*tail)->next;
		*from = *tail;
	}
	*tail = a ? a : b;
	return head;
}

/* Off @rest: as many as are in order */
static inline struct list_head *list_take_run(void *priv, list_cmp_func_t cmp,
					      struct list_head **rest)
{
	struct list_head *run = *rest, *last = run;

	while (last->next && cmp(priv, last, last->next) <= 0)
		last = last->next;
	*rest = last->next;
	last->next = NULL;
	return run;
}

/* Stable. What the core sorts is nearly in order already: runs that are in order are merged */
static inline void list_sort(void *priv, struct list_head *head, list_cmp_func_t cmp)
{
	struct list_head *merged[32] = { NULL }, *rest = head->next, *list, *node;
	size_t i;

	if (list_empty(head))
		return;
	head->prev->next = NULL;
	/* merged[i]: 2^i runs, or none */
	while (rest) {
		list = list_take_run(priv, cmp, &rest);
		for (i = 0; merged[i]; i++) {
			list = list_merge(priv, cmp, merged[i], list);
			merged[i] = NULL;
		}
		merged[i] = list;
	}
	for (list = NULL, i = 0; i < ARRAY_SIZE(merged); i++)
		list = list_merge(priv, cmp, merged[i], list);
	INIT_LIST_HEAD(head);
	for (node = list; node; node = list) {
		list = node->next;
		list_add_tail(node, head);
	}
}

#endif /* __KERNEL__ */
#endif /* GSCHED_CORE_SHIM_H */
