/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arena allocator: all memory of one rewrite, freed at once. An allocation that fails does a
 * longjmp() to the escape, so that the code in between checks nothing. Every function below may
 * jump, except new, reset and free.
 */
#ifndef GSR_ARENA_H
#define GSR_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct gsr_arena;

struct gsr_arena *gsr_arena_new(void);		/* NULL: out of memory */
void gsr_arena_free(struct gsr_arena *a);	/* NULL is fine */
/* Frees all allocations; the arena must hold no interned strings */
void gsr_arena_reset(struct gsr_arena *a);
/*
 * Sets where a failed allocation jumps to: longjmp(*escape, 1). Required before the first
 * allocation.
 */
void gsr_arena_escape(struct gsr_arena *a, jmp_buf *escape);

void *gsr_alloc(struct gsr_arena *a, size_t size);	/* zeroed, aligned to 16 */
void *gsr_alloc_array(struct gsr_arena *a, size_t n, size_t size);
void *gsr_memdup(struct gsr_arena *a, const void *from, size_t size);	/* NULL if @size is 0 */
/*
 * Room for one more element behind the @n of an array: @at, or a larger copy, zeroed behind them.
 * Updates *@room.
 */
void *gsr_grow_full(struct gsr_arena *a, void *at, unsigned int n, unsigned int *room, size_t size);
static inline void *gsr_grow(struct gsr_arena *a, void *at, unsigned int n, unsigned int *room,
			     size_t size)
{
	return n < *room ? at : gsr_grow_full(a, at, n, room, size);
}

/* room for @n characters and a NUL, not zeroed */
char *gsr_alloc_text(struct gsr_arena *a, size_t n);
char *gsr_strndup(struct gsr_arena *a, const char *s, size_t n);
char *gsr_sprintf(struct gsr_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *gsr_vsprintf(struct gsr_arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Interned strings: within an arena, equal strings are equal pointers */
const char *gsr_intern(struct gsr_arena *a, const char *s, size_t n);
const char *gsr_intern_str(struct gsr_arena *a, const char *s);

struct gsr_interned {
	struct gsr_interned *next;
	unsigned long mark;
	uint32_t hash;
	uint32_t len;
	char text[];
};

/*
 * A word beside each interned string that passes may use as they walk the module; 0 at first. @s
 * must come from gsr_intern().
 */
static inline unsigned long *gsr_intern_mark(const char *s)
{
	return &((struct gsr_interned *)(s - offsetof(struct gsr_interned, text)))->mark;
}

/* Asks for huge pages, to save faults in memory that is about to be written */
void gsr_huge_pages(void *p, size_t size);

#endif /* GSR_ARENA_H */
