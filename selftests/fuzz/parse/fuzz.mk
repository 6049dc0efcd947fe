# SPDX-License-Identifier: LGPL-2.1-or-later
# What reads input that others wrote, under libFuzzer: `make fuzz FUZZ_TIME=60` runs each target
# for a minute, one after the other, `make fuzz FUZZ="image ptx"` some of them; `make fuzz-keep`
# puts what was found into corpus/, minimised. In check, a plain main gives each target what is
# kept.
FUZZ ?= core image describe files proto ptx rewrite
FUZZ_TIME ?= 60
FUZZ_DIR := selftests/fuzz/parse
FUZZ_CC ?= clang
FUZZ_ALL := ptx rewrite image describe proto files core

# $(1) target, $(2) sources it needs, $(3) libraries, $(4) longest input of a run, $(5) longest
# that is kept, $(6) seeds
define fuzz_target
fuzz_srcs_$(1) := $(FUZZ_DIR)/$(1).c $(2)
fuzz_libs_$(1) := $(3)
fuzz_len_$(1) := $(4)
fuzz_keep_$(1) := $(5)
fuzz_seeds_$(1) := $(6)
TESTS += $(B)/test/fuzz-$(1)
FAST_TESTS += $(B)/test/fuzz-$(1)
$(B)/fuzz/feed-$(1): $$(call objs,$(FUZZ_DIR)/feed.c $$(fuzz_srcs_$(1)))
$(B)/test/fuzz-$(1): $(B)/fuzz/feed-$(1)
$(B)/fuzz/$(1): $$(fuzz_srcs_$(1))
endef

# the daemon but its start, its socket and its rewrite worker
FUZZ_GSCHEDD := $(filter-out $(addprefix gschedd/,main.c options.c listen.c driver.c rewrite.c \
	worker.c cache.c),$(GSCHEDD_SRCS))
$(eval $(call fuzz_target,ptx,selftests/rewriter/same.c \
	$(RW_SRCS),$(GSR_LIBS),8192,400,selftests/rewriter/corpus/*.ptx))
$(eval $(call fuzz_target,rewrite,$(RW_SRCS),$(GSR_LIBS),16384,700,selftests/rewriter/corpus/*.ptx))
$(eval $(call fuzz_target,image,rewriter/tools/elf.c $(RW_SRCS),$(GSR_LIBS),8192,700,))
$(eval $(call fuzz_target,describe,$(RW_SRCS),$(GSR_LIBS),4096,512,))
$(eval $(call fuzz_target,proto,$(FUZZ_GSCHEDD) $(CORE_SRCS),-lcjson,1024,512,))
$(eval $(call fuzz_target,files,$(CORE_SRCS),,64,64,))
$(eval $(call fuzz_target,core,$(CORE_SRCS),,2048,700,))
$(call objs,$(FUZZ_DIR)/proto.c $(FUZZ_DIR)/files.c $(FUZZ_DIR)/core.c): CPPFLAGS += -Ikmod/core
FUZZ_FEED := $(FUZZ_ALL:%=$(B)/fuzz/feed-%)

$(FUZZ_FEED): $(B)/fuzz/feed-%:
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $(filter %.o,$^) $(fuzz_libs_$*) -o $@

$(FUZZ_ALL:%=$(B)/test/fuzz-%): $(B)/test/fuzz-%:
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s %s\n' $< \
		'$* $(FUZZ_DIR)/corpus/$* $(fuzz_seeds_$*)' >$@
	@chmod +x $@

# One compilation with all sources: nothing is shared with the ordinary build, whose objects have
# no coverage
FUZZ_SAN := -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
FUZZ_HDRS := $(wildcard rewriter/*.h rewriter/*/*.h gschedd/*.h kmod/core/*.h libgsched/*.h \
	uapi/linux/*.h selftests/core/*.h $(FUZZ_DIR)/*.h)
$(FUZZ_ALL:%=$(B)/fuzz/%): $(B)/fuzz/%: $(FUZZ_HDRS)
	@mkdir -p $(@D)
	$(call Q,FUZZ)$(FUZZ_CC) $(CSTD) $(CPPFLAGS) -Ikmod/core $(FUZZ_SAN) $(fuzz_srcs_$*) \
		$(fuzz_libs_$*) -o $@

# What is found lies in build/fuzz/corpus/NAME, a crash in build/fuzz/crash-NAME-*
.PHONY: fuzz fuzz-keep $(FUZZ_ALL:%=fuzz-run-%) $(FUZZ_ALL:%=fuzz-keep-%)
fuzz: $(FUZZ:%=fuzz-run-%)
fuzz-keep: $(FUZZ:%=fuzz-keep-%)

# PTX's words: the opcodes, and what else steers the passes
FUZZ_WORDS := %tid.x %ctaid.x %nctaid.y %laneid %p1 %r1 .param .shared .global .reg .func .entry \
	.extern .pred .b32 .sync .aligned .uni bar.sync bar.warp.sync bra exit ret @%p1 \
	.callprototype .branchtargets .noreturn 0f3F800000 call.uni
$(B)/fuzz/ptx.dict: rewriter/ptx/ops.h
	@mkdir -p $(@D)
	@sed -n 's/^OP([A-Z0-9_]*, \("[^"]*"\).*/\1/p' $< >$@
	@printf '"%s"\n' $(FUZZ_WORDS:%='%') >>$@

$(FUZZ_ALL:%=fuzz-run-%): fuzz-run-%: $(B)/fuzz/% $(B)/fuzz/ptx.dict
	@mkdir -p $(B)/fuzz/corpus/$* $(B)/fuzz/seeds/$*
	$(if $(fuzz_seeds_$*),@awk -v dir=$(B)/fuzz/seeds/$* -f $(FUZZ_DIR)/split.awk \
		$(fuzz_seeds_$*))
	nice -n 10 $< -max_total_time=$(FUZZ_TIME) -max_len=$(fuzz_len_$*) -timeout=120 \
		-print_final_stats=1 -verbosity=1 \
		$(if $(fuzz_seeds_$*),-dict=$(B)/fuzz/ptx.dict) \
		-artifact_prefix=$(B)/fuzz/crash-$*- \
		$(B)/fuzz/corpus/$* $(FUZZ_DIR)/corpus/$* $(B)/fuzz/seeds/$* 2>&1 | tail -n 40

$(FUZZ_ALL:%=fuzz-keep-%): fuzz-keep-%: $(B)/fuzz/%
	nice -n 10 $< -merge=1 -use_counters=0 -max_len=$(fuzz_keep_$*) $(FUZZ_DIR)/corpus/$* \
		$(B)/fuzz/corpus/$* 2>&1 | tail -n 3
