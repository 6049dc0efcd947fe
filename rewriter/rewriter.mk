# SPDX-License-Identifier: LGPL-2.1-or-later
RW_SRCS := $(addprefix rewriter/,arena.c lex.c parse.c operand.c print.c fatbin.c)
LIBS += $(B)/lib/libgsr.a

$(B)/lib/libgsr.a: $(call objs,$(RW_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
