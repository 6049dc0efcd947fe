# SPDX-License-Identifier: LGPL-2.1-or-later
# The rewriter's rooms, each of which uses itself and those below it (selftests/lint-rooms):
# tools, the interface here, image, runtime, transform, analysis, ptx. libgsr.a needs GSR_LIBS
# where it is linked
RW_SRCS := $(addprefix rewriter/,rewrite.c assemble.c dump.c verify.c describe.c addresses.c \
		launch.c) \
	$(addprefix rewriter/image/,fatbin.c select.c join.c link.c) \
	$(addprefix rewriter/runtime/,loop.c position.c queue.c own.c suspend.c) \
	$(addprefix rewriter/transform/,alias.c fragment.c scopes.c inline.c devirtualise.c \
		exits.c swbarrier.c warpsync.c blockids.c globals.c dependents.c references.c \
		mbarriers.c returns.c reconverge.c resume.c remat.c stripmine.c unroll.c) \
	$(addprefix rewriter/analysis/,analyse.c variables.c cfg.c liveness.c uniform.c loads.c \
		spin.c barriers.c ranges.c defuse.c reach.c \
		escape.c fnptrs.c params.c alignment.c effects.c) \
	$(addprefix rewriter/ptx/,arena.c lex.c parse.c operand.c print.c type.c semantics.c \
		barrier.c lines.c)
RW_TOOL_SRCS := $(addprefix rewriter/tools/,gsrewrite.c elf.c json.c explain.c registers.c)
GSR_LIBS := -llz4 -lzstd -lm
LIBS += $(B)/lib/libgsr.a
PROGS += $(B)/bin/gsrewrite

$(B)/lib/libgsr.a: $(call objs,$(RW_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(call Q,AR)$(AR) rcs $@ $^

$(B)/bin/gsrewrite: $(call objs,$(RW_TOOL_SRCS)) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ $(GSR_LIBS) -lcjson -ldl -o $@

# PTX as C strings, which the C files beside it include; values of the names in it are taken from
# the compiler's output, since a program could not run here if this is cross-compiled
RW_RUNTIME := $(B)/obj/rewriter/runtime
RW_TRANSFORM := $(B)/obj/rewriter/transform
RW_FRAGMENTS := $(patsubst %,$(RW_RUNTIME)/%.ptx.h,loop position queue static suspend) $(patsubst \
	%,$(RW_TRANSFORM)/%.ptx.h,blockids devirtualise exits mbarriers meeting stripmine \
		swbarrier warpsync)
$(RW_RUNTIME)/offsets.s: rewriter/runtime/offsets.c $(FLAGS) | $(SYSROOT)
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MF $@.d -S $< -o $@

$(RW_FRAGMENTS): $(B)/obj/%.ptx.h: %.ptx rewriter/runtime/fragments.awk $(RW_RUNTIME)/offsets.s
	@mkdir -p $(@D)
	$(call Q,GEN)awk -f $(word 2,$^) $(word 3,$^) $< >$@.tmp && mv $@.tmp $@

RW_FRAGMENT_OBJS := $(patsubst %,$(RW_RUNTIME)/%.o,loop position queue suspend) $(patsubst \
	%,$(RW_TRANSFORM)/%.o,blockids devirtualise exits mbarriers returns stripmine swbarrier \
		warpsync)
$(RW_FRAGMENT_OBJS): CPPFLAGS += -I$(B)/obj -Wunused-const-variable=2
$(RW_FRAGMENT_OBJS): $(RW_FRAGMENTS)
include selftests/rewriter/rewriter-tests.mk
