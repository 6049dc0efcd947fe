/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One jump a symbol through a slot that at first leads to the binder: the driver is opened by the first call of a
 * program that uses it, not by every program that the library is preloaded into. Each architecture has
 *	forward NAME	the exported symbol; \@ counts them
 *	gi_lazy		the binder's side: gi_bind(number) with the caller's arguments kept, then on to where it says
 *	dlopen		gi_dlopen() with the address of its two arguments, then a jump to what it returned, with
 *			the program as the caller
 *	dlmopen		gi_dlmopen() with the address of its first two arguments, likewise
 */
	.section .data.gsched_slots, "aw", @progbits
	.balign 8
	.globl	gi_slots
	.hidden	gi_slots
gi_slots:
	.text

#if defined(__x86_64__)

.macro forward name
	.globl	\name
	.type	\name, @function
	.balign 16
\name:
	endbr64
	jmp	*.Lslot\@(%rip)
.Llazy\@:
	endbr64
	pushq	$\@
	jmp	gi_lazy
	.size	\name, . - \name
	.section .data.gsched_slots, "aw", @progbits
.Lslot\@:
	.quad	.Llazy\@
	.text
.endm

	.type	gi_lazy, @function
gi_lazy:
	/* argument registers survive; the stack is aligned here: return address and number were pushed */
	pushq	%rax
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	subq	$136, %rsp
	movups	%xmm0, (%rsp)
	movups	%xmm1, 16(%rsp)
	movups	%xmm2, 32(%rsp)
	movups	%xmm3, 48(%rsp)
	movups	%xmm4, 64(%rsp)
	movups	%xmm5, 80(%rsp)
	movups	%xmm6, 96(%rsp)
	movups	%xmm7, 112(%rsp)
	movq	192(%rsp), %rdi
	call	gi_bind
	movq	%rax, %r11
	movups	(%rsp), %xmm0
	movups	16(%rsp), %xmm1
	movups	32(%rsp), %xmm2
	movups	48(%rsp), %xmm3
	movups	64(%rsp), %xmm4
	movups	80(%rsp), %xmm5
	movups	96(%rsp), %xmm6
	movups	112(%rsp), %xmm7
	addq	$136, %rsp
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	popq	%rax
	addq	$8, %rsp
	jmp	*%r11
	.size	gi_lazy, . - gi_lazy

	.globl	dlopen
	.type	dlopen, @function
dlopen:
	endbr64
	pushq	%rsi
	pushq	%rdi
	subq	$8, %rsp
	leaq	8(%rsp), %rdi
	call	gi_dlopen
	addq	$8, %rsp
	popq	%rdi
	popq	%rsi
	jmp	*%rax
	.size	dlopen, . - dlopen

	.globl	dlmopen
	.type	dlmopen, @function
dlmopen:
	endbr64
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movq	%rsp, %rdi
	call	gi_dlmopen
	popq	%rdi
	popq	%rsi
	popq	%rdx
	jmp	*%rax
	.size	dlmopen, . - dlmopen

#elif defined(__aarch64__)

.macro forward name
	.globl	\name
	.type	\name, @function
	.balign 16
\name:
	hint	#34			/* bti c; an assembler for ARMv8.0 does not know it by name */
	adrp	x16, .Lslot\@
	add	x16, x16, :lo12:.Lslot\@
	ldar	x16, [x16]		/* pairs with gi_bind(): the driver's memory is as whoever bound it left it */
	br	x16
.Llazy\@:
	hint	#34
	mov	w17, #\@
	b	gi_lazy
	.size	\name, . - \name
	.section .data.gsched_slots, "aw", @progbits
.Lslot\@:
	.quad	.Llazy\@
	.text
.endm

	.type	gi_lazy, @function
gi_lazy:
	/* argument registers survive, x8 (where a result goes) and the return address in x30 included */
	stp	x29, x30, [sp, #-224]!
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	w0, w17
	bl	gi_bind
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x2, x3, [sp, #32]
	ldp	x4, x5, [sp, #48]
	ldp	x6, x7, [sp, #64]
	ldr	x8, [sp, #80]
	ldp	q0, q1, [sp, #96]
	ldp	q2, q3, [sp, #128]
	ldp	q4, q5, [sp, #160]
	ldp	q6, q7, [sp, #192]
	ldp	x29, x30, [sp], #224
	br	x16
	.size	gi_lazy, . - gi_lazy

	.globl	dlopen
	.type	dlopen, @function
dlopen:
	hint	#34
	stp	x29, x30, [sp, #-32]!
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	add	x0, sp, #16
	bl	gi_dlopen
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	br	x16
	.size	dlopen, . - dlopen

	.globl	dlmopen
	.type	dlmopen, @function
dlmopen:
	hint	#34
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	add	x0, sp, #16
	bl	gi_dlmopen
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	br	x16
	.size	dlmopen, . - dlmopen

#else
#error "write the trampolines for this architecture"
#endif

#define FORWARD(name) forward name
#include "entry/symbols.def"

	.section .note.GNU-stack, "", @progbits
