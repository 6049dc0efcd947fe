# SPDX-License-Identifier: LGPL-2.1-or-later
RW_TESTS := $(addprefix $(B)/test/rewriter-,syntax image kernels cli)
TESTS += $(RW_TESTS)
FAST_TESTS += $(RW_TESTS)

$(B)/test/rewriter-%: $(B)/obj/selftests/rewriter/%.o $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $^ $(GSR_LIBS) -o $@

$(B)/test/rewriter-cli: selftests/rewriter/ptxas.sh $(B)/bin/gsrewrite
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec %s %s\n' $< $(B)/bin/gsrewrite >$@
	@chmod +x $@

# The corpus' PTX again, where nvcc is
.PHONY: rewriter-corpus
rewriter-corpus:
	set -e; cd selftests/rewriter/corpus; for f in *.cu; do for a in 75 90; do \
		nvcc -arch=sm_$$a -ptx $$f -o $${f%.cu}.sm_$$a.ptx; done; done
