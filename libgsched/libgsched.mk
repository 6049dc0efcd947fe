# SPDX-License-Identifier: LGPL-2.1-or-later
# The client library: libgsched.so.0, and its objects for the interposer, which takes them in whole.
LIBGSCHED_VERSION := 0.3
LIBGSCHED_SRCS := $(addprefix libgsched/,gsched.c descriptor.c event.c module.c socket.c outbox.c packet.c rewrite.c band.c admin.c status.c)
LIBGSCHED_OBJS := $(call objs,$(LIBGSCHED_SRCS))
$(LIBGSCHED_OBJS): CPPFLAGS += -Ilibgsched

LIBS += $(B)/lib/libgsched.so $(B)/lib/pkgconfig/libgsched.pc

$(B)/lib/libgsched.so.0: $(LIBGSCHED_OBJS) libgsched/libgsched.map
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgsched.so.0 -Wl,--version-script=libgsched/libgsched.map \
		-o $@ $(LIBGSCHED_OBJS) -lcjson -lpthread

$(B)/lib/libgsched.so: $(B)/lib/libgsched.so.0
	$(call Q,GEN)ln -sf libgsched.so.0 $@

$(B)/lib/pkgconfig/libgsched.pc: libgsched/libgsched.pc.in $(call stamp,prefix,$(PREFIX) $(LIBGSCHED_VERSION))
	@mkdir -p $(@D)
	$(call Q,GEN)sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(LIBGSCHED_VERSION)|' $< >$@

# The interposer. Everything it needs is inside, hidden: it is preloaded into programs that bring libraries of their own.
# What it gives out as the driver's functions are its own, whatever else has their names: -Bsymbolic.
CUDA_SRCS := $(sort $(wildcard libgsched/cuda/*/*.c libgsched/cuda/*/*.S))
SLICE_OBJS := $(call objs,libgsched/slice.c libgsched/memory.c libgsched/ioctl.c)
FOLLOW_OBJS := $(SLICE_OBJS) $(call objs,libgsched/follow.c)
CUDA_OBJS := $(call objs,$(CUDA_SRCS)) $(FOLLOW_OBJS) $(filter-out %/admin.o %/band.o %/status.o,$(LIBGSCHED_OBJS)) $(B)/obj/libgsched/noadmin.o
$(call objs,$(CUDA_SRCS)): CPPFLAGS += -Ilibgsched/cuda
$(B)/obj/libgsched/cuda/entry/trampoline.o: libgsched/cuda/entry/symbols.def

LIBS += $(B)/lib/gsched/libcuda.so.1

$(B)/lib/gsched/libcuda.so.1: $(B)/obj/libgsched/cuda/entry/calls.o
$(B)/lib/gsched/libcuda.so.1 $(B)/bench/bypass/libcuda.so.1: $(filter-out %/entry/calls.o,$(CUDA_OBJS)) \
		$(B)/lib/libgsr.a libgsched/cuda/entry/libcuda.map
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=libgsched/cuda/entry/libcuda.map -Wl,-z,now \
		-Wl,-Bsymbolic -o $@ $(filter %.o %.a,$^) -Wl,-Bstatic -llz4 -lzstd -Wl,-Bdynamic -lm -lpthread -ldl

# The same with a switch, for selftests/bench/cost --bypass: its launches are functions of other names
PROGS += $(B)/bench/bypass/libcuda.so.1
BYPASSED := $(B)/obj/libgsched/cuda/entry/bypassed.o
BYPASS_OBJS := $(call objs,selftests/bench/bypass.c) $(BYPASSED)
$(BYPASS_OBJS): CPPFLAGS += -Ilibgsched/cuda
$(BYPASSED): CPPFLAGS += $(foreach f,cuLaunchKernel cuLaunchKernelEx cuGraphLaunch,-D$(f)=gsched_$(f))
$(BYPASSED): libgsched/cuda/entry/calls.c
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/bench/bypass/libcuda.so.1: $(BYPASS_OBJS)

# Empty: programs that open the driver by this name get it, and by it the interposer (entry/open.c).
LIBS += $(B)/lib/gsched/libcuda.so

$(B)/lib/gsched/libcuda.so: $(B)/lib/gsched/libcuda.so.1
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -nostdlib -Wl,-soname,libcuda.so -Wl,--no-as-needed -o $@ $<

# What is preloaded into an MPS server: the same wrapper, and a thread that asks the arbiter for the server's time slice
MPS_OBJS := $(call objs,libgsched/server.c) $(FOLLOW_OBJS) $(filter-out %/admin.o %/status.o,$(LIBGSCHED_OBJS)) \
	$(B)/obj/libgsched/noadmin.o
$(call objs,libgsched/server.c): CPPFLAGS += -Ilibgsched

LIBS += $(B)/lib/gsched/libgsched-mps.so

$(B)/lib/gsched/libgsched-mps.so: $(MPS_OBJS) libgsched/server.map
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -Wl,-soname,libgsched-mps.so -Wl,--version-script=libgsched/server.map -Wl,-z,now \
		-o $@ $(MPS_OBJS) -lpthread -ldl

include selftests/libgsched/libgsched.mk
