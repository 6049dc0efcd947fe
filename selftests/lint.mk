# SPDX-License-Identifier: LGPL-2.1-or-later
# `make lint` beyond the module: cppcheck and clang-tidy (.clang-tidy) over what runs in userspace,
# the core in its userspace form included, shellcheck, and which room of the interposer and of the
# rewriter calls which. Every message fails. clang-tidy looks again only at what changed; -j helps.
# The module in selftests/kmod/pin is looked at with the module (kmod.mk).
LINT_SRCS := $(filter-out selftests/kmod/pin/% selftests/kunit/%,$(sort \
	$(wildcard gschedd/*.c libgsched/*.c libgsched/cuda/*/*.c rewriter/*.c rewriter/*/*.c \
	kmod/core/*.c selftests/*/*.c selftests/*/*/*.c)))
LINT_INC := $(INC) -I$(B)/obj -Ikmod/core -Ilibgsched -Ilibgsched/cuda
LINT_DEFS := -D_GNU_SOURCE -DBUILD='"$(B)"' -DGSCHED_LIBDIR='"$(LIBDIR)"'
LINT += lint-cppcheck lint-clang-tidy lint-shellcheck lint-rooms
.PHONY: lint-cppcheck lint-clang-tidy lint-shellcheck lint-rooms

# Off everywhere: varFuncNullUB, NULL is a pointer here. selftests/kmod is written in the kselftest
# harness' macros, which cppcheck does not see. System headers are left out; the macro of them that
# it has to know is in cppcheck.cfg.
CPPCHECK := cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability \
	--inline-suppr --std=c11 \
	--suppress=varFuncNullUB --library=selftests/cppcheck.cfg -D__x86_64__ -D__GNUC__=12
lint-cppcheck: $(RW_FRAGMENTS)
	$(call Q,LINT)$(CPPCHECK) $(LINT_INC) $(LINT_DEFS) \
		$(filter-out selftests/kmod/%,$(LINT_SRCS))

LINT_TIDY := $(LINT_SRCS:%.c=$(B)/lint/%.tidy)
lint-clang-tidy: $(LINT_TIDY)
# the object stands for the headers that it was made of
LINT_TIDY_KMOD := $(filter $(B)/lint/selftests/kmod/%,$(LINT_TIDY))
$(LINT_TIDY_KMOD): $(B)/lint/selftests/kmod/%.tidy: build/test/kmod/% selftests/kmod/.clang-tidy
$(filter-out $(LINT_TIDY_KMOD),$(LINT_TIDY)): $(B)/lint/%.tidy: $(B)/obj/%.o
$(LINT_TIDY): $(B)/lint/%.tidy: %.c .clang-tidy
	@mkdir -p $(@D)
	$(call Q,TIDY)clang-tidy --quiet $< -- $(CSTD) $(LINT_INC) $(LINT_DEFS) \
		$(NL_CFLAGS) -isystem $(KMOD_LINUX_SRC)/tools/testing/selftests >$@.log 2>&1 || { \
		cat $@.log; exit 1; }
	@touch $@

# Off: SC1091, a file of the guest; SC2012, `ls` of kernels' names; SC2015, `A && B || C` where B
# cannot fail
lint-shellcheck:
	$(call Q,LINT)shellcheck -x -e SC1091,SC2012,SC2015 \
		$$(grep -rlIE '^#!/.*[ /](ba)?sh$$' .ci gschedd selftests) selftests/lib.sh selftests/tap.sh \
		gschedd/gschedctl.bash

lint-rooms: $(call objs,$(CUDA_SRCS) $(RW_SRCS) $(RW_TOOL_SRCS))
	$(call Q,LINT)selftests/lint-rooms libgsched/cuda $(B)/obj/libgsched/cuda \
		entry process launch task code device base
	$(call Q,LINT)selftests/lint-rooms rewriter $(B)/obj/rewriter tools . image runtime \
		transform analysis ptx
