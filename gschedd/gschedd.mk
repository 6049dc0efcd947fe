# SPDX-License-Identifier: LGPL-2.1-or-later
# The daemon (core and rewriter linked in) and the command-line tool (libgsched only).
GSCHEDD_SRCS := $(addprefix gschedd/,main.c loop.c listen.c conn.c calls.c client.c arbiter.c groups.c proc.c status.c trace.c \
	driver.c rewrite.c worker.c cache.c)
GSCHEDD_OBJS := $(call objs,$(GSCHEDD_SRCS))
$(GSCHEDD_OBJS): CPPFLAGS += -Ikmod/core

PROGS += $(B)/bin/gschedd

# the build id is part of every cache key
$(B)/bin/gschedd: $(GSCHEDD_OBJS) $(B)/lib/libgscore.a $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,--build-id=sha1 -o $@ $^ -lcjson -lmd -llz4 -lzstd -ldl

GSCHEDCTL_SRCS := $(addprefix gschedd/,gschedctl.c ctl_group.c ctl_run.c ctl_status.c)
GSCHEDCTL_OBJS := $(call objs,$(GSCHEDCTL_SRCS))
$(B)/obj/gschedd/ctl_run.o: CPPFLAGS += -DGSCHED_LIBDIR='"$(LIBDIR)"'
$(B)/obj/gschedd/ctl_run.o: $(call stamp,libdir,$(LIBDIR))

PROGS += $(B)/bin/gschedctl

$(B)/bin/gschedctl: $(GSCHEDCTL_OBJS) $(B)/lib/libgsched.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(GSCHEDCTL_OBJS) -L$(B)/lib -lgsched -lcjson

# Tests: each on a gschedd of its own, by a client written on the protocol alone
GSCHEDD_TESTS := $(addprefix $(B)/selftests/gschedd/,proto arbiter groups rewrite lifecycle fuzz ctl)
TESTS += $(GSCHEDD_TESTS)
FAST_TESTS += $(GSCHEDD_TESTS)

$(addprefix $(B)/selftests/gschedd/,proto arbiter groups rewrite lifecycle fuzz): \
$(B)/selftests/gschedd/%: $(B)/obj/selftests/gschedd/%.o $(B)/obj/selftests/gschedd/harness.o $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)

$(B)/selftests/gschedd/lifecycle: | $(B)/selftests/gschedd/fakecuda.so
$(B)/selftests/gschedd/fakecuda.so: $(B)/obj/selftests/gschedd/fakecuda.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(B)/selftests/gschedd/ctl: selftests/gschedd/ctl.sh $(B)/bin/gschedctl $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,GEN)install -m 755 $< $@

BENCH += $(B)/selftests/gschedd/bench
$(B)/selftests/gschedd/bench: $(B)/obj/selftests/gschedd/bench.o $(B)/obj/selftests/gschedd/harness.o $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)
