/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One jump a symbol through a slot that at first leads to the binder: the driver is opened by the first call of a
 * program that uses it, not by every program that the library is preloaded into.
 */
#ifndef __x86_64__
#error "the trampolines are written for x86-64"
#endif

	.section .data.gsched_slots, "aw", @progbits
	.balign 8
	.globl	gi_slots
	.hidden	gi_slots
gi_slots:
	.text

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

#define FORWARD(name) forward name
#include "entry/symbols.def"

	.section .note.GNU-stack, "", @progbits
