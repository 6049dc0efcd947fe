# SPDX-License-Identifier: LGPL-2.1-or-later
# The example programs: *-drv over the driver API (no toolkit needed), *-rt over the shared runtime,
# *-rts over the static one (both where nvcc is). They link against libcuda.so.1 by its SONAME;
# which one they get is decided when they run.
P := $(B)/programs
NVCC := $(shell command -v nvcc 2>/dev/null)
PROGRAMS_DRV := $(P)/batch-drv $(P)/latency-drv
PROGS += $(PROGRAMS_DRV) $(P)/kernels.ptx $(B)/bench/latstat $(P)/switch
PROGRAMS_HDRS := selftests/programs/common.h selftests/programs/run.h selftests/programs/dev.h \
	selftests/programs/kernels.cuh

$(PROGRAMS_DRV): $(P)/%-drv: $(call objs,selftests/programs/%.c selftests/programs/dev_drv.c) \
	$(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-lm -Wl,--allow-shlib-undefined

PROGS += $(P)/launches-drv
$(P)/launches-drv: $(call objs,selftests/programs/launches.c selftests/vgpu/test-rewrite-launch.c) \
	$(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-Wl,--allow-shlib-undefined

PROGS += $(P)/cost-drv $(P)/waits-drv $(P)/papers-drv
$(P)/cost-drv $(P)/waits-drv $(P)/papers-drv: $(P)/%-drv: $(call objs,selftests/programs/%.c) \
	$(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-Wl,--allow-shlib-undefined

$(P)/switch: $(call objs,selftests/bench/switch.c selftests/programs/dev_drv.c) \
	$(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-Wl,--allow-shlib-undefined

$(P)/kernels.ptx: selftests/programs/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@

$(B)/bench/latstat: $(call objs,selftests/bench/latstat.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

ifneq ($(NVCC),)
PROGRAMS_RT := $(foreach p,batch latency,$(P)/$(p)-rt $(P)/$(p)-rts)
PROGS += $(PROGRAMS_RT)
NVFLAGS := -O2 -gencode arch=compute_90,code=[sm_90,compute_90] -Wno-deprecated-gpu-targets

$(P)/%-rt: selftests/programs/%.c selftests/programs/dev_rt.cu $(PROGRAMS_HDRS)
	@mkdir -p $(@D)
	$(call Q,NVCC)$(NVCC) $(NVFLAGS) -cudart shared -o $@ $(filter %.c %.cu,$^)

$(P)/%-rts: selftests/programs/%.c selftests/programs/dev_rt.cu $(PROGRAMS_HDRS)
	@mkdir -p $(@D)
	$(call Q,NVCC)$(NVCC) $(NVFLAGS) -cudart static -o $@ $(filter %.c %.cu,$^)

# Machine code only, as libraries are shipped: nothing can be rewritten. For selftests/bench/bands
PROGS += $(B)/bench/batch-sass $(B)/bench/latency-sass
$(B)/bench/%-sass: selftests/programs/%.c selftests/programs/dev_rt.cu $(PROGRAMS_HDRS)
	@mkdir -p $(@D)
	$(call Q,NVCC)$(NVCC) -O2 -gencode arch=compute_90,code=sm_90 -cudart static \
		-o $@ $(filter %.c %.cu,$^)

# The committed PTX; run by hand after a change of the kernels
.PHONY: programs-ptx
programs-ptx:
	$(NVCC) -arch=compute_75 -Wno-deprecated-gpu-targets --ptx \
		-o selftests/programs/kernels.ptx selftests/programs/kernels.cu
endif
