# SPDX-License-Identifier: LGPL-2.1-or-later
# The decision core: a static library for gschedd and the tests, its tests, its benchmark.
CORE_SRCS := $(addprefix kmod/core/,device.c group.c band.c slice.c turn.c task.c size.c alloc.c window.c policy.c hpf.c ffs.c \
	wfq.c srt.c watch.c protect.c pass.c chaos.c why.c files.c check.c)
CORE_HDRS := kmod/core/core.h kmod/core/decide.h kmod/core/shim.h
LIBS += $(B)/lib/libgscore.a
CORE_TESTS := $(addprefix $(B)/tests/core-,unit bands turns sizes protect interface commit policy wfq srt search property chaos strangers)
TESTS += $(CORE_TESTS)
FAST_TESTS += $(CORE_TESTS)
BENCH += $(B)/bench/core-bench

$(B)/lib/libgscore.a: $(call objs,$(CORE_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(call Q,AR)$(AR) rcs $@ $^

$(CORE_TESTS): $(B)/tests/core-%: $(call objs,selftests/core/%.c) $(B)/lib/libgscore.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(B)/bench/core-bench: $(call objs,selftests/bench/core-bench.c) $(B)/lib/libgscore.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
