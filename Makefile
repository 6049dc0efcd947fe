# SPDX-License-Identifier: LGPL-2.1-or-later
# gsched: everything is built into build/. Each room has a fragment that adds to the variables below.
#   LIBS PROGS   what `all` builds          TESTS       what `check` runs (executables that print TAP)
#   FAST_TESTS   the part of TESTS that needs no QEMU: check-fast runs the quick ones
#   ALONE        patterns of those tests that measure time: they run alone, the others as many at a
#                time as there are processors, LONG ones first
#   LINT         phony targets of `lint`    BENCH       executables that `bench` runs
.DEFAULT_GOAL := all
MAKEFLAGS += -r --no-print-directory
SHELL := /bin/bash
B ?= build
CC := gcc
AR := gcc-ar
OPT ?= -O2 -g
CSTD := -std=gnu11
WARN := -Wall -Wextra -Werror -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes
INC := -Iuapi -I. -Ilibgsched/include
# SAN=address,undefined builds another tree with sanitizers, in which the interposer checks itself, too
ifneq ($(SAN),)
B := build/san
CPPFLAGS += -DGI_CHECKED
SANFLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-fno-var-tracking-assignments
endif
# CROSS=aarch64 builds another tree, of userspace for that architecture, with Debian's cross compiler
ifneq ($(CROSS),)
B := build/$(CROSS)
CC := $(CROSS)-linux-gnu-gcc
AR := $(CROSS)-linux-gnu-gcc-ar
SYSROOT := $(B)/sysroot
CROSS_LIBS := $(SYSROOT)/usr/lib/$(CROSS)-linux-gnu
CPPFLAGS += -isystem $(SYSROOT)/usr/include
LDFLAGS += -L$(CROSS_LIBS) -Wl,-rpath-link,$(CROSS_LIBS) -Wl,-rpath,'$$ORIGIN/../../lib/bundle'
endif
CPPFLAGS += $(INC) -D_GNU_SOURCE
# no contraction: arithmetic, the simulated GPU's above all, is the same on processors that have a fused multiply-add
CFLAGS += $(CSTD) $(OPT) $(WARN) -ffp-contract=off -fPIC -fvisibility=hidden -MMD -MP $(SANFLAGS)
LDFLAGS += $(SANFLAGS)
# Libraries of other projects lie beside ours in a built tree, so that it runs where they are not installed
LDFLAGS += -Wl,-rpath,'$$ORIGIN/../lib/bundle:$$ORIGIN/../bundle:$$ORIGIN/bundle'

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib

# $(call Q,CC): before a command, so that only "CC path" is shown; V=1 shows the commands themselves
Q = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $@;)

# $(call stamp,name,text): a file that changes when text does, to depend on
stamp = $(B)/stamps/$(1)$(if $(subst x$(strip $(2)),,x$(file <$(B)/stamps/$(1))),$(shell \
	mkdir -p $(B)/stamps)$(file >$(B)/stamps/$(1),$(strip $(2))))
# Other flags on the command line or above rebuild everything. Flags that a fragment gives to its own objects do not: make clean
FLAGS := $(call stamp,flags,$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS))

LIBS :=
PROGS :=
TESTS :=
FAST_TESTS :=
ALONE :=
LONG :=
LINT :=
BENCH :=

# $(call run_tests,TESTS): those of LONG first, so that none of them is the last one
run_tests = selftests/run-tests $(filter $(LONG),$(1)) $(filter-out $(ALONE) $(LONG),$(1)) \
	--alone $(filter $(ALONE),$(1))

# $(call objs,a.c b.c): their object files
objs = $(patsubst %.S,$(B)/obj/%.o,$(patsubst %.c,$(B)/obj/%.o,$(1)))

include kmod/core/core.mk
include rewriter/rewriter.mk
include libgsched/libgsched.mk
include gschedd/gschedd.mk
include selftests/vgpu/vgpu.mk
include selftests/fuzz/gen/gen.mk
include selftests/selftests.mk
include kmod/kmod.mk
include selftests/lint.mk
include selftests/fuzz/parse/fuzz.mk
include selftests/memory.mk
include selftests/aarch64/aarch64.mk

.PHONY: all check check-fast lint bench bench-gpu deps install clean
all: $(LIBS) $(PROGS) $(B)/lib/bundle/.copied

$(B)/lib/bundle/.copied: $(B)/bin/gschedd $(B)/bin/gschedctl $(B)/bin/gsrewrite $(B)/lib/libgsched.so
	@mkdir -p $(@D)
ifneq ($(CROSS),)
	$(call Q,COPY)cp -P $(CROSS_LIBS)/lib*.so.* $(@D)
else
	$(call Q,COPY)ldd $^ | awk '/lib(cjson|md|lz4|zstd|smartcols|nl-3|nl-genl-3)\.so/ && $$3 !~ /bundle/ { print $$3 }' | sort -u | xargs -r cp -Lt $(@D)
endif
	@touch $@

$(B)/obj/%.o: %.c $(FLAGS) | $(SYSROOT)
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(B)/obj/%.o: %.S $(FLAGS) | $(SYSROOT)
	@mkdir -p $(@D)
	$(call Q,AS)$(CC) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/stamps/%: # after `make clean all`
	@mkdir -p $(@D); touch $@

deps:
	@.ci/deps

check: deps
	+@$(MAKE) check-built

# Built by all processors, unless -j says by how many
.PHONY: check-built
check-built:
	+@$(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc)) all $(TESTS)
	@$(call run_tests,$(TESTS))

# Without those that take ten seconds and more each, but for the interposer's
SLOW_TESTS = $(addprefix $(B)/test/,bench-bands corpus-vgpu fuzz-twins demo-daemon-drv libgsched/stopped) \
	$(B)/tests/core-simulate $(addprefix $(B)/selftests/gschedd/,qos scope windows)
QUICK_TESTS = $(filter-out $(SLOW_TESTS),$(FAST_TESTS))

check-fast: all $(QUICK_TESTS)
	@$(call run_tests,$(QUICK_TESTS))

lint: $(LINT)

bench: all $(BENCH)
	@set -e; for b in $(BENCH); do $$b; done

# On this machine's GPU; all run from a built tree that was carried here, without make's help too. BANDS="ffs --seconds 5"
bench-gpu:
	selftests/bench/cost
	selftests/bench/gpu
	selftests/bench/bands $(BANDS)

# What a system gets. The interposer lies in its own directory: only programs started by gschedctl load it.
install: all install-node
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/gsched $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(PREFIX)/include/linux $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 755 $(B)/bin/gschedd $(B)/bin/gschedctl $(B)/bin/gsrewrite $(DESTDIR)$(PREFIX)/bin
	cp -P $(B)/lib/libgsched.so* $(DESTDIR)$(LIBDIR)
	install -m 755 $(addprefix $(B)/lib/gsched/,libcuda.so.1 libcuda.so libgsched-mps.so) \
		$(DESTDIR)$(LIBDIR)/gsched
	install -m 644 libgsched/include/gsched.h $(DESTDIR)$(PREFIX)/include
	install -m 644 uapi/linux/gsched.h uapi/linux/gsched_netlink.h $(DESTDIR)$(PREFIX)/include/linux
	sed 's,^prefix=.*,prefix=$(PREFIX),' $(B)/lib/pkgconfig/libgsched.pc >$(DESTDIR)$(LIBDIR)/pkgconfig/libgsched.pc
	sed 's,@bindir@,$(PREFIX)/bin,' gschedd/gschedd.service.in >$(DESTDIR)$(PREFIX)/lib/systemd/system/gschedd.service
	install -D -m 644 gschedd/gschedctl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/gschedctl
	install -d $(DESTDIR)$(PREFIX)/share/doc/gsched/scenarios
	install -m 644 docs/scenarios/*.json $(DESTDIR)$(PREFIX)/share/doc/gsched/scenarios
	for m in docs/man/*.[1-9]; do \
		install -D -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$$(basename $$m) || exit 1; done

clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
