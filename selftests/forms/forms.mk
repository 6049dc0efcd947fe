# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs of one form or feature each (drv over the driver API, rt and rts over the shared and
# the static runtime where nvcc is), and `run`, which runs each natively and under gsched in
# several settings
FORMS := $(B)/forms
FORMS_SRCS := $(addprefix selftests/forms/,forms.c launch.c streams.c contexts.c modules.c \
	memory.c graphs.c algorithms.c waiting.c process.c pools.c)
PROGS += $(FORMS)/drv $(FORMS)/kernels.ptx

$(FORMS)/drv: $(call objs,$(FORMS_SRCS)) $(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-lpthread -ldl \
		-Wl,--allow-shlib-undefined

$(FORMS)/kernels.ptx: selftests/forms/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@

ifneq ($(NVCC),)
PROGS += $(FORMS)/rt $(FORMS)/rts
$(FORMS)/rt: FORMS_CUDART := shared
$(FORMS)/rts: FORMS_CUDART := static
$(FORMS)/rt $(FORMS)/rts: selftests/forms/rt.cu
	@mkdir -p $(@D)
	$(call Q,NVCC)$(NVCC) $(NVFLAGS) -std=c++17 -cudart $(FORMS_CUDART) -o $@ $<

$(B)/test/forms: $(FORMS)/rt
# The committed PTX; run by hand after a change of the kernels
.PHONY: forms-ptx
forms-ptx:
	$(NVCC) -arch=compute_75 -Wno-deprecated-gpu-targets --ptx -o selftests/forms/kernels.ptx \
		selftests/forms/kernels.cu
endif

$(B)/test/forms: selftests/forms/run $(FORMS)/drv $(FORMS)/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || ' >$@
	@printf '{ echo "1..0 # SKIP no python3"; exit; }\nB=%s exec %s --short\n' $(B) $< >>$@
	@chmod +x $@
TESTS += $(B)/test/forms
ALONE += $(B)/test/forms $(B)/test/forms-programs

$(B)/test/forms-programs: selftests/forms/test-programs selftests/forms/run $(FORMS)/drv \
	$(FORMS)/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || ' >$@
	@printf '{ echo "1..0 # SKIP no python3"; exit; }\nB=%s exec %s\n' $(B) $< >>$@
	@chmod +x $@
TESTS += $(B)/test/forms-programs
FAST_TESTS += $(B)/test/forms-programs
