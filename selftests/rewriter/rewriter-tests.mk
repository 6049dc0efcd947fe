# SPDX-License-Identifier: LGPL-2.1-or-later
RW_TESTS := $(addprefix $(B)/test/rewriter-,syntax image program kernels fnptrs describe cli verify)
TESTS += $(RW_TESTS)
FAST_TESTS += $(RW_TESTS)

$(B)/test/rewriter-%: $(B)/obj/selftests/rewriter/%.o $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ $(GSR_LIBS) $(RW_TEST_LIBS) -o $@

$(B)/test/rewriter-syntax: $(call objs,selftests/rewriter/same.c)
$(B)/test/rewriter-verify: $(call objs,$(addprefix selftests/fuzz/gen/,tree.c kernel.c \
	statements.c leaves.c sync.c functions.c))
$(B)/test/rewriter-describe: $(call objs,rewriter/tools/json.c)
$(B)/test/rewriter-describe: RW_TEST_LIBS := -lcjson

$(B)/test/rewriter-cli: selftests/rewriter/cli.sh $(B)/bin/gsrewrite
$(B)/test/rewriter-ptxas: selftests/rewriter/ptxas.sh $(B)/bin/gsrewrite
$(B)/test/rewriter-cli $(B)/test/rewriter-ptxas:
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s %s\n' $< $(B)/bin/gsrewrite >$@
	@chmod +x $@
TESTS += $(B)/test/rewriter-ptxas

$(B)/test/rewriter-fragments: selftests/rewriter/fragments.sh
	@mkdir -p $(@D)
	$(call Q,GEN)ln -srf $< $@
TESTS += $(B)/test/rewriter-fragments
FAST_TESTS += $(B)/test/rewriter-fragments

BENCH += $(B)/bench/rewrite-bench
$(B)/bench/rewrite-bench: $(B)/obj/selftests/rewriter/bench.o $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ $(GSR_LIBS) -o $@

# The corpus on a device, simulated or real; the program and the corpus beside it need nothing else
CORPUS := $(wildcard selftests/rewriter/corpus/*.ptx selftests/rewriter/corpus/*.launch)
PROGS += $(B)/bench/corpus-gpu
TESTS += $(B)/test/corpus-vgpu
FAST_TESTS += $(B)/test/corpus-vgpu

$(B)/bench/corpus/.copied: $(CORPUS)
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(call Q,COPY)cp $^ $(@D)
	@touch $@

$(B)/bench/corpus-gpu: $(call objs,$(addprefix selftests/rewriter/,gpu.c gpu-module.c gpu-memory.c \
	gpu-reference.c gpu-run.c gpu-time.c gpu-table.c gpu-tools.c) \
	selftests/vgpu/test-rewrite-launch.c libgsched/cuda/code/tune.c) \
		$(B)/lib/libgsr.a $(B)/vgpu/libcuda.so.1 $(B)/bench/corpus/.copied
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -L$(B)/vgpu \
		-l:libcuda.so.1 -Wl,--allow-shlib-undefined -lm

$(B)/test/corpus-vgpu: $(B)/bench/corpus-gpu
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexport VGPU_NAME=corpus-$$$$\n' >$@
	@printf 'trap "rm -f /dev/shm/$$VGPU_NAME" EXIT\n' >>$@
	@printf 'LD_LIBRARY_PATH=%s %s --rounds 6 --scale 8 "$$@"\n' $(B)/vgpu $< >>$@
	@chmod +x $@

$(B)/test/corpus-modes: selftests/rewriter/corpus-modes.sh $(B)/bench/corpus-gpu
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s %s\n' $< $(B) >$@
	@chmod +x $@
TESTS += $(B)/test/corpus-modes
FAST_TESTS += $(B)/test/corpus-modes

# Correct programs that compute-sanitizer is wrong about, and what holds it against them; for a
# device, as corpus-gpu
PROGS += $(B)/bench/race-patterns $(B)/bench/sanitizer
TESTS += $(B)/test/race-patterns
FAST_TESTS += $(B)/test/race-patterns

$(B)/bench/race-patterns: $(call objs,selftests/rewriter/race-patterns.c) $(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 \
		-Wl,--allow-shlib-undefined

$(B)/bench/sanitizer: selftests/rewriter/sanitizer.sh $(B)/bench/race-patterns $(B)/bench/corpus-gpu
	@mkdir -p $(@D)
	$(call Q,COPY)cp $< $@

$(B)/test/race-patterns: $(B)/bench/race-patterns
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexport VGPU_NAME=patterns-$$$$\n' >$@
	@printf 'trap "rm -f /dev/shm/$$VGPU_NAME" EXIT\n' >>$@
	@printf 'LD_LIBRARY_PATH=%s %s "$$@"\n' $(B)/vgpu $< >>$@
	@chmod +x $@

# The corpus' PTX again, where nvcc is
.PHONY: rewriter-corpus
rewriter-corpus:
	set -e; cd selftests/rewriter/corpus; for f in *.cu; do for a in 75 90 120; do \
		nvcc -arch=sm_$$a -ptx $$f -o $${f%.cu}.sm_$$a.ptx; done; done

.PHONY: rewriter-corpus-clang
rewriter-corpus-clang:
	set -e; cd selftests/rewriter/corpus; for f in functions grids returns shared; do \
		clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_75 -nocudainc -nocudalib \
			-fdeclspec -include clang.h \
			-Xclang -target-feature -Xclang +ptx64 -O2 -S $$f.cu -o $$f.clang.ptx; done

# Images as nvcc makes them
TESTS += $(B)/test/rewriter-toolchain
$(B)/test/rewriter-jit: $(call objs,selftests/rewriter/jit.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ -ldl -o $@

$(B)/test/rewriter-toolchain: selftests/rewriter/toolchain.sh $(B)/bin/gsrewrite \
	$(B)/vgpu/libcuda.so.1 $(B)/test/rewriter-jit
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s %s %s %s\n' $< $(B)/bin/gsrewrite $(B)/vgpu \
		$(B)/test/rewriter-jit >$@
	@chmod +x $@

# PTX of Triton, Numba, CUB, Thrust and CUTLASS, made anew; needs the network, nvcc and some
# gigabytes. With GROUPS=toolkit what nvcc brings, and no network. Then a program of CUB's and
# Thrust's algorithms under gschedd --policy chaos
.PHONY: check-packages
check-packages: all
	selftests/rewriter/packages/run $(B) $(GROUPS)
	selftests/rewriter/packages/chaos $(B)
