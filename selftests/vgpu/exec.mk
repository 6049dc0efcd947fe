# SPDX-License-Identifier: LGPL-2.1-or-later
# The PTX interpreter. VGPU_EXEC_SRCS goes into whatever executes PTX, together with libgsr.a for
# the parser.
VGPU_EXEC_SRCS := $(sort $(wildcard $(addprefix selftests/vgpu/,alu_*.c decode*.c exec*.c)))
# Originals against twins on it
VGPU_TWINS_SRCS := $(addprefix selftests/vgpu/,twins.c test-rewrite-launch.c)
VGPU_EXEC_LIBS := $(B)/lib/libgsr.a

VGPU_EXEC_TESTS := $(addprefix $(B)/test/vgpu-,exec exec-alu exec-async exec-check exec-float \
	exec-mma exec-stack exec-tex exec-fuzz rewrite rewrite-grid rewrite-modes)
TESTS += $(VGPU_EXEC_TESTS)
# many seeds: corpus-vgpu and fuzz-twins do with few
FAST_TESTS += $(filter-out $(B)/test/vgpu-rewrite,$(VGPU_EXEC_TESTS))
VGPU_EXEC_LINK = $(call Q,LD)mkdir -p $(@D); $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread \
	$(GSR_LIBS)

$(B)/test/vgpu-exec: $(call objs,selftests/vgpu/test-exec.c $(VGPU_EXEC_SRCS)) $(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-alu: $(call objs,selftests/vgpu/test-exec-alu.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-async: $(call objs,selftests/vgpu/test-exec-async.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-check: $(call objs,selftests/vgpu/test-check.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-mma: $(call objs,selftests/vgpu/test-exec-mma.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-float: $(call objs,selftests/vgpu/test-exec-float.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-tex: $(call objs,selftests/vgpu/test-exec-tex.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-exec-stack: $(call objs,selftests/vgpu/test-exec-stack.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

# Mangled PTX; what it is worth it shows with SAN=address,undefined
$(B)/test/vgpu-exec-fuzz: $(call objs,selftests/vgpu/test-exec-fuzz.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/bench/vgpu-bench: $(call objs,selftests/vgpu/bench.c $(VGPU_EXEC_SRCS)) $(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)
BENCH += $(B)/bench/vgpu-bench

$(B)/test/vgpu-rewrite-grid: $(call objs,selftests/vgpu/test-rewrite-grid.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

$(B)/test/vgpu-rewrite-modes: $(call objs,selftests/vgpu/test-rewrite-modes.c $(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)

# Originals against their rewritten twins; --seeds 1000 for the long run
$(B)/test/vgpu-rewrite: $(call objs,selftests/vgpu/test-rewrite.c $(VGPU_TWINS_SRCS) \
	$(VGPU_EXEC_SRCS)) \
	$(VGPU_EXEC_LIBS)
	$(VGPU_EXEC_LINK)
