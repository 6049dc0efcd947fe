# SPDX-License-Identifier: LGPL-2.1-or-later
# The PTX interpreter. VGPU_EXEC_SRCS goes into whatever executes PTX, together with libgsr.a for the parser.
VGPU_EXEC_SRCS := $(addprefix selftests/vgpu/,alu_bits.c alu_cmp.c alu_cvt.c alu_float.c alu_half.c alu_int.c decode.c decode_insn.c \
	decode_kernel.c decode_live.c decode_mods.c decode_opnd.c decode_var.c exec.c exec_call.c exec_mem.c exec_sync.c)
VGPU_EXEC_LIBS := $(B)/lib/libgsr.a

VGPU_EXEC_TESTS := $(B)/test/vgpu-exec
TESTS += $(VGPU_EXEC_TESTS)
FAST_TESTS += $(VGPU_EXEC_TESTS)

$(B)/test/vgpu-exec: $(call objs,selftests/vgpu/test-exec.c $(VGPU_EXEC_SRCS)) $(VGPU_EXEC_LIBS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm -lpthread -llz4 -lzstd
