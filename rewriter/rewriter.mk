# SPDX-License-Identifier: LGPL-2.1-or-later
RW_SRCS := $(addprefix rewriter/,arena.c lex.c parse.c operand.c print.c fatbin.c cfg.c uniform.c analyse.c barriers.c \
	fragment.c blockids.c returns.c loop.c rewrite.c)
LIBS += $(B)/lib/libgsr.a

$(B)/lib/libgsr.a: $(call objs,$(RW_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
