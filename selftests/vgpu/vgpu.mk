# SPDX-License-Identifier: LGPL-2.1-or-later
# The simulated GPU: libcuda.so.1 and libcudart.so.13 of its own. exec.mk has the PTX interpreter
# (VGPU_EXEC_SRCS).
-include selftests/vgpu/exec.mk

VGPU := $(B)/vgpu
VGPU_SRCS := $(addprefix selftests/vgpu/,vgpu.c calls.c shm.c sched.c device.c context.c engine.c \
	stream.c streams.c mem.c memory.c pool.c virtual.c copy.c \
	module.c link.c launch.c oldlaunch.c texture.c reference.c table.c unsimulated.c rm.c \
	graph.c graph_edges.c graph_params.c graph_exec.c graph_update.c graph_capture.c graph_memory.c)
LIBS += $(VGPU)/libcuda.so.1 $(VGPU)/libcuda.so

# its functions call each other, and not those of the interposer in front of it
$(VGPU)/libcuda.so.1: $(call objs,$(VGPU_SRCS) $(VGPU_EXEC_SRCS)) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 \
		-Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL -o $@ $^ -ldl -lpthread -lm -llz4 -lzstd

$(VGPU)/libcuda.so: $(VGPU)/libcuda.so.1
	$(call Q,GEN)ln -sf libcuda.so.1 $@

# What stands for the kernel's side of control calls, to be preloaded
LIBS += $(VGPU)/libvgpu-rm.so
$(VGPU)/libvgpu-rm.so: $(call objs,selftests/vgpu/rm_preload.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libvgpu-rm.so -o $@ $^ -ldl

# The programs of MPS
PROGS += $(VGPU)/nvidia-cuda-mps-control $(VGPU)/nvidia-cuda-mps-server
$(VGPU)/nvidia-cuda-mps-control: $(call objs,$(addprefix selftests/vgpu/,mps.c shm.c sched.c))
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl -lpthread

$(VGPU)/nvidia-cuda-mps-server: $(VGPU)/nvidia-cuda-mps-control
	$(call Q,GEN)ln -sf nvidia-cuda-mps-control $@

# Our declarations of the driver API against the toolkit's
$(B)/test/vgpu-cudadrv: selftests/vgpu/check-cudadrv.sh
	@mkdir -p $(@D)
	$(call Q,GEN)ln -srf $< $@
TESTS += $(B)/test/vgpu-cudadrv
FAST_TESTS += $(B)/test/vgpu-cudadrv

VGPU_RT_SRCS := $(addprefix selftests/vgpu/,cudart.c cudart_memory.c cudart_device.c cudart_graph.c \
	cudart_pool.c)
LIBS += $(VGPU)/libcudart.so.13

$(VGPU)/libcudart.so.13: $(call objs,$(VGPU_RT_SRCS)) selftests/vgpu/cudart.map
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.13 \
		-Wl,--version-script,selftests/vgpu/cudart.map \
		-o $@ $(filter %.o,$^) -ldl -lpthread

$(B)/test/vgpu-sched $(B)/test/vgpu-shm: $(B)/test/vgpu-%: $(B)/obj/selftests/vgpu/test-%.o \
		$(call objs,selftests/vgpu/sched.c selftests/vgpu/shm.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread
TESTS += $(B)/test/vgpu-sched $(B)/test/vgpu-shm
FAST_TESTS += $(B)/test/vgpu-sched $(B)/test/vgpu-shm

$(B)/test/vgpu-api: $(call objs,$(addprefix selftests/vgpu/,test-api.c test-api-prepare.c \
	test-api-streams.c test-api-graphs.c test-api-textures.c test-api-pools.c \
	test-api-virtual.c test-api-process.c)) \
	$(VGPU)/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../vgpu' \
		-o $@ $(filter %.o,$^) -L$(VGPU) -l:libcuda.so.1
TESTS += $(B)/test/vgpu-api
FAST_TESTS += $(B)/test/vgpu-api

$(B)/test/vgpu-driver: $(call objs,$(addprefix selftests/vgpu/,test-driver.c test-api-prepare.c \
	test-driver-locks.c test-driver-delays.c test-driver-handles.c test-driver-devices.c \
		test-driver-connections.c test-driver-addresses.c)) $(VGPU)/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../vgpu' \
		-o $@ $(filter %.o,$^) -L$(VGPU) -l:libcuda.so.1
TESTS += $(B)/test/vgpu-driver
FAST_TESTS += $(B)/test/vgpu-driver

$(B)/test/libtest-slice.so: $(call objs,selftests/vgpu/test-groups-slice.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ -ldl

$(B)/test/vgpu-groups: $(call objs,selftests/vgpu/test-groups.c) | $(VGPU)/libcuda.so.1 \
	$(VGPU)/libvgpu-rm.so \
		$(VGPU)/nvidia-cuda-mps-server $(B)/test/libtest-slice.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $(filter %.o,$^) -ldl
TESTS += $(B)/test/vgpu-groups
FAST_TESTS += $(B)/test/vgpu-groups

$(B)/test/vgpu-memory-calls: $(call objs,$(addprefix selftests/vgpu/,test-memory-calls.c \
	test-api-prepare.c)) $(VGPU)/libcuda.so.1 | $(VGPU)/libvgpu-rm.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -Wl,-rpath,'$$ORIGIN/../vgpu' \
		-o $@ $(filter %.o,$^) -L$(VGPU) -l:libcuda.so.1 -ldl -lpthread
TESTS += $(B)/test/vgpu-memory-calls
FAST_TESTS += $(B)/test/vgpu-memory-calls

$(B)/test/vgpu-rt: selftests/vgpu/test-rt.sh $(VGPU)/libcudart.so.13 $(VGPU)/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@
$(B)/test/vgpu-rt-units $(B)/test/vgpu-rt-graphs $(B)/test/vgpu-rt-devices: \
	selftests/vgpu/test-rt.sh $(VGPU)/libcudart.so.13 $(VGPU)/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@
TESTS += $(B)/test/vgpu-rt $(B)/test/vgpu-rt-units $(B)/test/vgpu-rt-graphs \
	$(B)/test/vgpu-rt-devices
FAST_TESTS += $(B)/test/vgpu-rt $(B)/test/vgpu-rt-units $(B)/test/vgpu-rt-graphs \
	$(B)/test/vgpu-rt-devices

ifneq ($(shell command -v nvcc 2>/dev/null),)
$(B)/test/vgpu-rt: $(B)/test/vgpu-rt-program
$(B)/test/vgpu-rt-units: $(B)/test/vgpu-rt-units-program
$(B)/test/vgpu-rt-graphs: $(B)/test/vgpu-rt-graphs-program
$(B)/test/vgpu-rt-devices: $(B)/test/vgpu-rt-devices-program
$(B)/test/vgpu-rt-units-program: selftests/vgpu/test-rt-units.cu
	@mkdir -p $(@D)
	$(call Q,NVCC)nvcc -std=c++17 -diag-suppress 20054 -cudart shared -arch=sm_90 -o $@ $<
$(B)/test/vgpu-rt-program: selftests/vgpu/test-rt.cu
$(B)/test/vgpu-rt-graphs-program: selftests/vgpu/test-rt-graphs.cu
$(B)/test/vgpu-rt-devices-program: selftests/vgpu/test-rt-devices.cu
$(B)/test/vgpu-rt-program $(B)/test/vgpu-rt-graphs-program $(B)/test/vgpu-rt-devices-program:
	@mkdir -p $(@D)
	$(call Q,NVCC)nvcc -cudart shared -arch=sm_90 -o $@ $<
endif
