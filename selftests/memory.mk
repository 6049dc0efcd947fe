# SPDX-License-Identifier: LGPL-2.1-or-later
# Memory errors and undefined behaviour: the tests with sanitizers, and some of them under valgrind.
.PHONY: check-san check-valgrind build-san
ifeq ($(SAN),)
SAN_BUILD := $(MAKE) SAN=address,undefined
# What runs in userspace. Left out: nothing but the demo, whose latencies mean nothing so slowed
# down; the programs it runs are part of libgsched/interposer.
SAN_ALL := $(patsubst $(B)/%,build/san/%,$(filter-out $(B)/test/demo-%,$(FAST_TESTS)))
check-san:
	+@$(SAN_BUILD) all $(SAN_ALL)
	@$(call run_tests,$(SAN_ALL))

# In check: without those that take minutes. All that is random in them is seeded.
SAN_SOME := $(filter-out %/vgpu-rewrite %/corpus-vgpu %/vgpu-cudadrv %/windows %/core-search \
	%/core-simulate %/streams %/stopped %/modules %/qos %/bench-bands,$(SAN_ALL))
TESTS += $(SAN_SOME)
$(SAN_SOME): build-san ;
build-san:
	+@$(SAN_BUILD) all $(SAN_SOME)
endif

check-valgrind: $(B)/test/memcheck
	@$<

TESTS += $(B)/test/memcheck
LONG += $(B)/test/memcheck
$(B)/test/memcheck: selftests/memcheck $(addprefix $(B)/,bin/gsrewrite bin/gschedctl \
	tests/core-unit test/rewriter-image test/rewriter-kernels \
		test/libgsched/client)
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@
