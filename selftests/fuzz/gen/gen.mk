# SPDX-License-Identifier: LGPL-2.1-or-later
# Random kernels, original against twin. make check runs a share of them; --count 10000 --seed N
# for the long run
GEN_SRCS := $(addprefix selftests/fuzz/gen/,tree.c kernel.c statements.c leaves.c sync.c \
	functions.c)
PROGS += $(B)/bench/gsr-gen
TESTS += $(B)/test/fuzz-twins
FAST_TESTS += $(B)/test/fuzz-twins

$(B)/bench/gsr-gen: $(call objs,selftests/fuzz/gen/gsr-gen.c $(GEN_SRCS))
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(B)/test/fuzz-twins: $(call objs,$(addprefix selftests/fuzz/gen/,test-twins.c reduce.c) \
	$(GEN_SRCS) $(VGPU_TWINS_SRCS) $(VGPU_EXEC_SRCS)) \
		$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

# Kernels whose lanes came apart with unequal budgets: two votes that not all lanes reached
TESTS += $(B)/test/fuzz-twins-again
$(B)/test/fuzz-twins-again: $(B)/test/fuzz-twins
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s --seed 880254440 --count 20 %s\n' $< \
		'--weight apart=0 --weight generic=4' >$@
	@chmod +x $@

# Kernels full of loops whose lanes come apart, which were once not valid themselves
TESTS += $(B)/test/fuzz-twins-apart
$(B)/test/fuzz-twins-apart: $(B)/test/fuzz-twins
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s --seed 6001676 --count 20 --resumable %s\n' $< \
		'--weight apart=60 --weight gather=0 --weight tile=0 --weight part=0 --weight arrive=0' >$@
	@chmod +x $@

# Whole programs under gschedd --policy chaos
TESTS += $(B)/test/chaos
ALONE += $(B)/test/chaos
$(B)/test/chaos: selftests/fuzz/gen/chaos $(B)/bench/gsr-gen $(B)/programs/launches-drv
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s "$$@"\n' $(B) $< >$@
	@chmod +x $@

# All that is random, at length: about half an hour on one core
.PHONY: check-long
check-long: all $(B)/test/vgpu-rewrite $(B)/test/corpus-vgpu $(B)/test/fuzz-twins $(B)/test/chaos
	$(B)/test/vgpu-rewrite --seeds 200
	$(B)/test/corpus-vgpu --rounds 200
	$(B)/test/fuzz-twins --count 10000 --seed $${SEED:-5000000}
	$(B)/test/chaos $$(seq 1 20)
