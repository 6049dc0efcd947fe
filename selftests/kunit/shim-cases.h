/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the core expects of the helpers that it takes from shim.h. They are the kernel's in the
 * module and others in userspace; the same cases hold in both (shim.c here, core/shim.c beside).
 * The file that includes this one defines EXPECT(condition).
 */
#ifndef GSCHED_SHIM_CASES_H
#define GSCHED_SHIM_CASES_H

struct sorted {
	struct list_head node;
	u32 key, arrival;
};

static int by_key(void *priv, const struct list_head *a, const struct list_head *b)
{
	const struct sorted *left = list_entry(a, struct sorted, node);
	const struct sorted *right = list_entry(b, struct sorted, node);

	(*(u32 *)priv)++;
	return left->key > right->key ? 1 : left->key < right->key ? -1 : 0;
}

/* Equals keep their order, and links back are right: the core relies on both */
static inline bool sorts(u32 n, u32 keys)
{
	struct sorted item[50], *pos, *next;
	u32 state = n * 31 + keys, compared = 0, found = 0, i;
	const struct sorted *last = NULL;
	struct list_head list;

	INIT_LIST_HEAD(&list);
	for (i = 0; i < n; i++) {
		state = state * 1103515245 + 12345;
		item[i].key = (state >> 16) % keys;
		item[i].arrival = i;
		list_add_tail(&item[i].node, &list);
	}
	list_sort(&compared, &list, by_key);
	list_for_each_entry_safe(pos, next, &list, node) {
		if (last && (last->key > pos->key ||
			     (last->key == pos->key && last->arrival > pos->arrival) ||
			     list_prev_entry(pos, node) != last))
			return false;
		last = pos;
		found++;
	}
	return found == n && (n < 2 || compared);
}

/* A text that does not fit is cut; what is returned is what is there */
static inline void check_scnprintf(void)
{
	char buf[8];

	EXPECT(scnprintf(buf, sizeof(buf), "%s", "1234567") == 7 && !strcmp(buf, "1234567"));
	EXPECT(scnprintf(buf, sizeof(buf), "%u-%s", 12U, "345678") == 7 && !strcmp(buf, "12-3456"));
	EXPECT(scnprintf(buf, 1, "%s", "x") == 0 && !*buf);
	*buf = 'y';
	EXPECT(scnprintf(buf, 0, "%s", "x") == 0 && *buf == 'y');
	EXPECT(scnprintf(buf, sizeof(buf), "%s", "") == 0 && !*buf);
}

static inline void check_numbers(void)
{
	u64 large = 1ULL << 32;

	EXPECT(div_u64(U64_MAX, 3) == 0x5555555555555555ULL);
	EXPECT(div_u64(7, U32_MAX) == 0);
	EXPECT(div64_u64(U64_MAX, U64_MAX) == 1);
	EXPECT(div64_u64(U64_MAX, 1ULL << 40) == (1ULL << 24) - 1);
	EXPECT(DIV_ROUND_UP(0U, 3U) == 0 && DIV_ROUND_UP(1U, 3U) == 1 && DIV_ROUND_UP(3U, 3U) == 1);
	EXPECT(min_t(u32, large, 7) == 0 && max_t(u64, large, 7) == large);
	EXPECT(min(3U, 4U) == 3 && max(3U, 4U) == 4);
}

static inline void check_lists(void)
{
	struct sorted a = { .key = 1 }, b = { .key = 2 };
	struct list_head list;
	struct sorted *pos;
	u32 seen = 0;

	INIT_LIST_HEAD(&list);
	EXPECT(list_empty(&list) && !list_is_singular(&list));
	list_add(&a.node, &list);
	EXPECT(list_is_singular(&list) && list_first_entry(&list, struct sorted, node) == &a);
	list_add(&b.node, &list);
	list_move_tail(&b.node, &list);
	EXPECT(!list_is_singular(&list) && list_last_entry(&list, struct sorted, node) == &b);
	list_for_each_entry(pos, &list, node)
		seen = seen * 10 + pos->key;
	list_for_each_entry_reverse(pos, &list, node)
		seen = seen * 10 + pos->key;
	EXPECT(seen == 1221);
	/* one that is removed may be removed again */
	list_del_init(&a.node);
	list_del_init(&a.node);
	EXPECT(list_empty(&a.node) && list_is_singular(&list));
}

static inline void check_sorting(void)
{
	u32 n;

	for (n = 0; n <= 50; n++)
		EXPECT(sorts(n, 1) && sorts(n, 3) && sorts(n, 1000));
}

#endif /* GSCHED_SHIM_CASES_H */
