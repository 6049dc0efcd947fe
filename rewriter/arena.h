/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of one rewrite: freed all at once. Running out of memory is one jump to whoever holds the escape, so that
 * nothing in between has to check. Every function below may jump, except new and free.
 */
#ifndef GSR_ARENA_H
#define GSR_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

struct gsr_arena;

struct gsr_arena *gsr_arena_new(void);		/* NULL: out of memory */
void gsr_arena_free(struct gsr_arena *a);	/* NULL is fine */
/* Where an allocation that fails goes to: longjmp(*escape, 1). Must be set before the first allocation. */
void gsr_arena_escape(struct gsr_arena *a, jmp_buf *escape);

void *gsr_alloc(struct gsr_arena *a, size_t size);	/* zeroed, aligned to 16 */
void *gsr_alloc_array(struct gsr_arena *a, size_t n, size_t size);
char *gsr_alloc_text(struct gsr_arena *a, size_t n);	/* room for so many characters and a NUL, not zeroed */
char *gsr_strndup(struct gsr_arena *a, const char *s, size_t n);
char *gsr_sprintf(struct gsr_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *gsr_vsprintf(struct gsr_arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* The one copy of a string in this arena: equal strings, equal pointers */
const char *gsr_intern(struct gsr_arena *a, const char *s, size_t n);
const char *gsr_intern_str(struct gsr_arena *a, const char *s);
/* The word kept beside an interned string, for whoever walks the module: 0 at first. @s must come from gsr_intern. */
unsigned long *gsr_intern_mark(const char *s);

#endif /* GSR_ARENA_H */
