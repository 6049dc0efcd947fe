# SPDX-License-Identifier: LGPL-2.1-or-later
# The decision core: a static library for gschedd and the tests, its tests, its benchmark.
CORE_SRCS := $(addprefix kmod/core/,device.c group.c band.c slice.c turn.c task.c pressure.c memory.c size.c alloc.c policy.c hpf.c ffs.c \
	wfq.c srt.c corun.c plan.c late.c watch.c protect.c standby.c pass.c page.c delay.c demand.c chaos.c why.c files.c check.c)
LIBS += $(B)/lib/libgscore.a
CORE_TESTS := $(addprefix $(B)/tests/core-,unit shim pages delay demand memory bands turns sizes protect late standby pressure interface commit policy wfq srt corun plan search property model chaos strangers)
TESTS += $(CORE_TESTS)
FAST_TESTS += $(CORE_TESTS)
BENCH += $(B)/bench/core-bench

$(B)/lib/libgscore.a: $(call objs,$(CORE_SRCS))
	@mkdir -p $(@D)
	@rm -f $@
	$(call Q,AR)$(AR) rcs $@ $^

# exp() for a comparison
$(B)/tests/core-pressure: LDLIBS += -lm

$(CORE_TESTS): $(B)/tests/core-%: $(call objs,selftests/core/%.c) $(B)/lib/libgscore.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# How the cost of decisions grows: the core once more, in which each basic block that runs is counted
CORE_STEPS := $(patsubst %.c,$(B)/obj/steps/%.o,$(CORE_SRCS))
TESTS += $(B)/tests/core-linear
FAST_TESTS += $(B)/tests/core-linear
$(CORE_STEPS): $(B)/obj/steps/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize-coverage=trace-pc -c $< -o $@

$(B)/tests/core-linear: $(call objs,selftests/core/linear.c) $(CORE_STEPS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# gschedctl simulate: the committed scenarios, files that are wrong; random scenarios
CORE_SIMULATE := $(B)/tests/core-simulate $(B)/tests/core-simulate-random
TESTS += $(CORE_SIMULATE)
FAST_TESTS += $(CORE_SIMULATE)
$(B)/tests/core-simulate: selftests/core/simulate.sh selftests/lib.sh $(wildcard docs/scenarios/*.json) $(B)/bin/gschedctl
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@

$(B)/tests/core-simulate-random: selftests/core/simulate-random.py $(B)/bin/gschedctl
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit; }\nexec %s %s\n' \
		$< $(B)/bin/gschedctl >$@
	@chmod +x $@

$(B)/bench/core-bench: $(call objs,selftests/bench/core-bench.c) $(B)/lib/libgscore.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
