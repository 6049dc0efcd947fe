# SPDX-License-Identifier: LGPL-2.1-or-later
# libgsr.a needs GSR_LIBS where it is linked
RW_SRCS := $(addprefix rewriter/,arena.c lex.c parse.c operand.c print.c fatbin.c select.c link.c cut.c cfg.c semantics.c uniform.c \
	analyse.c waits.c barriers.c fragment.c pointers.c blockids.c scopes.c inline.c exits.c phases.c gathers.c places.c indirect.c ranges.c alignment.c own.c mbarriers.c globals.c references.c addresses.c returns.c loop.c static.c queue.c liveness.c resume.c suspend.c anew.c strip.c unroll.c \
	rewrite.c describe.c)
GSR_LIBS := -llz4 -lzstd -lm
LIBS += $(B)/lib/libgsr.a
PROGS += $(B)/bin/gsrewrite

$(B)/lib/libgsr.a: $(call objs,$(RW_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(call Q,AR)$(AR) rcs $@ $^

$(B)/bin/gsrewrite: $(call objs,$(addprefix rewriter/,gsrewrite.c elf.c json.c explain.c registers.c)) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ $(GSR_LIBS) -lcjson -ldl -o $@
include selftests/rewriter/rewriter-tests.mk
