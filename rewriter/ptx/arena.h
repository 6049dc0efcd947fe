/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of one rewrite: freed all at once. Running out of memory is one jump to whoever holds the
 * escape, so that nothing in between has to check. Every function below may jump, except new and
 * free.
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
/* all that was allocated is gone; nothing may have been interned */
void gsr_arena_reset(struct gsr_arena *a);
/*
 * Where an allocation that fails goes to: longjmp(*escape, 1). Must be set before the first
 * allocation.
 */
void gsr_arena_escape(struct gsr_arena *a, jmp_buf *escape);

void *gsr_alloc(struct gsr_arena *a, size_t size);	/* zeroed, aligned to 16 */
void *gsr_alloc_array(struct gsr_arena *a, size_t n, size_t size);
void *gsr_memdup(struct gsr_arena *a, const void *from, size_t size);	/* NULL if @size is 0 */
/* room for so many characters and a NUL, not zeroed */
char *gsr_alloc_text(struct gsr_arena *a, size_t n);
char *gsr_strndup(struct gsr_arena *a, const char *s, size_t n);
char *gsr_sprintf(struct gsr_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *gsr_vsprintf(struct gsr_arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* The one copy of a string in this arena: equal strings, equal pointers */
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
 * The word kept beside an interned string, for whoever walks the module: 0 at first. @s must come
 * from gsr_intern.
 */
static inline unsigned long *gsr_intern_mark(const char *s)
{
	return &((struct gsr_interned *)(s - offsetof(struct gsr_interned, text)))->mark;
}

/* For memory that is about to be written: fewer faults, if the system gives huge pages */
void gsr_huge_pages(void *p, size_t size);

#endif /* GSR_ARENA_H */
