# SPDX-License-Identifier: LGPL-2.1-or-later
# The daemon (core and rewriter linked in) and the command-line tool (libgsched, and the core for simulate).
GSCHEDD_SRCS := $(addprefix gschedd/,main.c options.c log.c uuid.c loop.c fds.c closer.c user.c peer.c listen.c conn.c calls.c client.c arbiter.c groups.c state.c proc.c status.c trace.c monitor.c planner.c \
	driver.c rewrite.c worker.c sandbox.c cache.c mps.c mps_daemon.c mps_proc.c nvml.c)
GSCHEDD_OBJS := $(call objs,$(GSCHEDD_SRCS))
$(GSCHEDD_OBJS): CPPFLAGS += -Ikmod/core

PROGS += $(B)/bin/gschedd

# the build id is part of every cache key
$(B)/bin/gschedd: $(GSCHEDD_OBJS) $(B)/lib/libgscore.a $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,--build-id=sha1 -o $@ $^ -lcjson -lmd -llz4 -lzstd -ldl

NL_CFLAGS := -isystem $(if $(CROSS),$(SYSROOT),)/usr/include/libnl3
QOS_SRCS := $(addprefix gschedd/qos_,model.c request.c divide.c groups.c plan.c)
GSCHEDCTL_SRCS := gschedd/gschedctl.c gschedd/proc.c $(addprefix gschedd/ctl_,arbiter.c json.c files.c \
	change.c group.c client.c device.c list.c conf.c parse.c run.c bind.c scope.c band.c status.c monitor.c metrics.c qos.c qos_report.c netlink.c netlink_status.c mps.c table.c safe.c simulate.c) \
	$(addprefix gschedd/sim_,json.c cases.c read.c queue.c gpu.c run.c stat.c expect.c) $(QOS_SRCS)
GSCHEDCTL_OBJS := $(call objs,$(GSCHEDCTL_SRCS))
$(filter $(B)/obj/gschedd/sim_% $(B)/obj/gschedd/ctl_simulate.o,$(GSCHEDCTL_OBJS)): CPPFLAGS += -Ikmod/core
$(B)/obj/gschedd/ctl_netlink.o: CPPFLAGS += $(NL_CFLAGS)
$(B)/obj/gschedd/ctl_run.o $(B)/obj/gschedd/mps.o: CPPFLAGS += -DGSCHED_LIBDIR='"$(LIBDIR)"'
$(B)/obj/gschedd/ctl_run.o $(B)/obj/gschedd/mps.o: $(call stamp,libdir,$(LIBDIR))

PROGS += $(B)/bin/gschedctl

$(B)/bin/gschedctl: $(GSCHEDCTL_OBJS) $(B)/lib/libgscore.a $(B)/lib/libgsched.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(GSCHEDCTL_OBJS) $(B)/lib/libgscore.a -L$(B)/lib -lgsched -lcjson -lsmartcols -lnl-genl-3 -lnl-3 -ldl -lm

# Tests: each on a gschedd of its own, by a client written on the protocol alone
GSCHEDD_TESTS := $(addprefix $(B)/selftests/gschedd/,proto arbiter bands groups memory users state rewrite lifecycle fuzz ctl mps mps-unit mps-ctl nvml scope ctl-unit qos-unit qos windows)
TESTS += $(GSCHEDD_TESTS)
FAST_TESTS += $(GSCHEDD_TESTS)
# They wait for what gschedd does in time
ALONE += $(B)/test/qos-module $(addprefix $(B)/selftests/gschedd/,qos windows)

$(addprefix $(B)/selftests/gschedd/,proto arbiter bands groups memory users state rewrite lifecycle fuzz mps nvml): \
$(B)/selftests/gschedd/%: $(B)/obj/selftests/gschedd/%.o $(B)/obj/selftests/gschedd/harness.o $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)

$(B)/selftests/gschedd/lifecycle: | $(B)/selftests/gschedd/fakecuda.so
$(B)/selftests/gschedd/fakecuda.so: $(B)/obj/selftests/gschedd/fakecuda.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(B)/selftests/gschedd/state: | $(B)/selftests/gschedd/fakedisk.so
$(B)/selftests/gschedd/fakedisk.so: $(B)/obj/selftests/gschedd/fakedisk.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(addprefix $(B)/selftests/gschedd/,ctl mps-ctl scope qos windows): \
$(B)/selftests/gschedd/%: selftests/gschedd/%.sh selftests/lib.sh $(B)/bin/gschedctl $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@

$(addprefix $(B)/selftests/gschedd/,qos windows): | $(B)/programs/latency-drv $(B)/programs/batch-drv $(B)/vgpu/libcuda.so.1 $(B)/lib/gsched/libcuda.so.1
$(B)/selftests/gschedd/mps: | $(B)/selftests/gschedd/fakemps
$(B)/selftests/gschedd/mps-ctl: | $(B)/selftests/gschedd/fakemps $(B)/selftests/gschedd/fakenvml.so
$(B)/selftests/gschedd/scope: | $(B)/selftests/gschedd/fakesystemd
$(B)/selftests/gschedd/fakesystemd: $(B)/obj/selftests/gschedd/fakesystemd.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -ldl

$(B)/selftests/gschedd/fakemps: $(B)/obj/selftests/gschedd/fakemps.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^

$(B)/selftests/gschedd/mps-unit: $(B)/obj/selftests/gschedd/mps-unit.o $(B)/obj/gschedd/mps_proc.o $(B)/obj/selftests/gschedd/harness.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^

$(B)/selftests/gschedd/qos-unit: $(call objs,$(QOS_SRCS) $(addprefix selftests/gschedd/,qos-unit.c harness.c))
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -lm

$(B)/selftests/gschedd/ctl-unit: $(call objs,$(addprefix gschedd/ctl_,mps.c json.c table.c safe.c files.c parse.c) \
		$(addprefix selftests/gschedd/,ctl-unit.c harness.c))
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -lcjson -lsmartcols

$(addprefix $(B)/,$(addprefix selftests/gschedd/,nvml bands) test/kmod/band): | \
	$(B)/selftests/gschedd/fakenvml.so
$(B)/selftests/gschedd/fakenvml.so: $(B)/obj/selftests/gschedd/fakenvml.o
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

# The planner with the module, in QEMU
TESTS += $(B)/test/qos-module
$(B)/test/qos-module: $(B)/selftests/gschedd/qos modules
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec selftests/qemu/run --timeout 900 --log build/qemu/qos -- env B=%s selftests/gschedd/qos.sh module\n' $(B) >$@
	@chmod +x $@

BENCH += $(B)/selftests/gschedd/bench
$(B)/selftests/gschedd/bench: $(B)/obj/selftests/gschedd/bench.o $(B)/obj/selftests/gschedd/harness.o $(B)/bin/gschedd
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^)
