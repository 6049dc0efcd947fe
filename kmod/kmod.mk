# SPDX-License-Identifier: LGPL-2.1-or-later
# The kernel module: `make modules` builds build/kmod/<release>/gsched.ko for every installed header
# package of 6.1 and 6.12 (newest of each, -rt and -cloud left out), or for KDIR= alone. Kernels
# before 6.13 build beside the sources, so each release gets a mirror of links to them.
KMOD_KDIRS := $(if $(KDIR),$(KDIR),$(foreach s,6.1 6.12,$(lastword $(shell \
	ls -d /usr/src/linux-headers-$(s).*-amd64 2>/dev/null | grep -v -e -rt- -e -cloud- | \
	sort -V))))
# What `make kernelrelease` says in Debian's headers of 6.1 is not the release that modules are for
KMOD_RELEASES := $(if $(KDIR),$(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h),$(KMOD_KDIRS:/usr/src/linux-headers-%=%))
KMOD_KDIR = $(if $(KDIR),$(KDIR),/usr/src/linux-headers-$(1))
KMOD_SRCS := $(wildcard Kbuild kmod/*.[ch] kmod/compat/*.c kmod/core/*.[ch] uapi/linux/*.h)
KMOD_PIN_SRCS := $(wildcard selftests/kmod/pin/*)
# CONFIG_GSCHED_KUNIT_TEST=m: with the KUnit tests, for a KDIR that has KUnit
KMOD_KUNIT_SRCS := $(wildcard selftests/kunit/*.[ch])
KMOD_MODULES := $(foreach r,$(KMOD_RELEASES),\
	$(addprefix build/kmod/$(r)/,gsched.ko pin/gsched_pin.ko))
# Debian ships no vmlinux to make BTF from: say so, instead of being warned
KMOD_FLAGS := CONFIG_DEBUG_INFO_BTF_MODULES= W=1

.PHONY: modules modules-clean dkms-install
modules: $(KMOD_MODULES)

# $(call kmod_mirror,files,from,to)
kmod_mirror = for f in $(1); do d=$(3)/$${f\#$(2)}; mkdir -p "$${d%/*}"; \
	ln -sfn "$(CURDIR)/$$f" "$$d"; done; \
	find $(3) -xtype l -delete

define kmod_rules
build/kmod/$(1)/gsched.ko: $(KMOD_SRCS) $(if $(CONFIG_GSCHED_KUNIT_TEST),$(KMOD_KUNIT_SRCS))
	@$$(call kmod_mirror,$$^,,build/kmod/$(1))
	+@$(MAKE) -C $(call KMOD_KDIR,$(1)) M=$(CURDIR)/build/kmod/$(1) $(KMOD_FLAGS) modules
	@touch $$@

build/kmod/$(1)/pin/gsched_pin.ko: $(KMOD_PIN_SRCS)
	@$$(call kmod_mirror,$(KMOD_PIN_SRCS),selftests/kmod/,build/kmod/$(1))
	+@$(MAKE) -C $(call KMOD_KDIR,$(1)) M=$(CURDIR)/build/kmod/$(1)/pin $(KMOD_FLAGS) modules
	@touch $$@
endef
$(foreach r,$(KMOD_RELEASES),$(eval $(call kmod_rules,$(r))))

modules-clean:
	rm -rf build/kmod

# `make dkms-install`: for the running kernel, or for that of KDIR=; with DESTDIR= the sources only
DKMS_VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
dkms-install: install-node
	install -d $(DESTDIR)/usr/src/gsched-$(DKMS_VERSION)
	cp -r --parents dkms.conf $(KMOD_SRCS) $(DESTDIR)/usr/src/gsched-$(DKMS_VERSION)
	$(if $(DESTDIR),,dkms install gsched/$(DKMS_VERSION) $(if $(KDIR),-k $(KMOD_RELEASES)))

# Who may use /dev/gsched: group gsched, and the rule of udev that gives it the node
.PHONY: install-node
install-node:
	install -D -m 644 kmod/60-gsched.rules $(DESTDIR)$(PREFIX)/lib/udev/rules.d/60-gsched.rules
	install -D -m 644 kmod/gsched.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/gsched.conf

# kselftests, static so that they run in any guest. The harness header comes from the kernel's
# source package.
KMOD_LINUX_SRC := build/linux-source
KMOD_HARNESS := $(KMOD_LINUX_SRC)/tools/testing/selftests/kselftest_harness.h
KMOD_TESTS := $(patsubst selftests/kmod/%.c,$(B)/test/kmod/%,$(wildcard selftests/kmod/*.c))
# Cross-built, what else runs in a guest of that processor: pages of gschedd and libgsched
KMOD_TESTS_ALSO := $(if $(CROSS),$(B)/test/libgsched/client \
	$(addprefix $(B)/selftests/gschedd/,arbiter users state lifecycle))
# what all of these start
KMOD_TESTS_NEED := $(addprefix $(B)/,bin/gschedctl bin/gschedd lib/bundle/.copied \
	lib/gsched/libcuda.so.1 selftests/gschedd/fakenvml.so $(if $(CROSS),guest))
KMOD_LINUX_TAR = $(firstword $(wildcard /usr/src/linux-source-6.1.tar.xz \
	/usr/src/linux-source-*.tar.xz))

$(KMOD_HARNESS):
	@test -n "$(KMOD_LINUX_TAR)" || { \
		echo "no /usr/src/linux-source-*.tar.xz: apt-get install linux-source" >&2; \
		exit 1; }
	@mkdir -p $(KMOD_LINUX_SRC)
	$(call Q,UNPACK)tar -C $(KMOD_LINUX_SRC) --strip-components=1 --wildcards \
		-xf $(KMOD_LINUX_TAR) '*/tools/testing/selftests/kselftest_harness.h' \
		'*/tools/testing/selftests/kselftest.h' '*/scripts/checkpatch.pl' \
		'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
		'*/scripts/kernel-doc' '*/scripts/coccinelle'
	@touch $@

KMOD_TEST_HEADERS := $(wildcard selftests/kmod/*.h selftests/kmod/pin/*.h uapi/linux/*.h)
$(B)/test/kmod/%: selftests/kmod/%.c $(KMOD_TEST_HEADERS) | $(KMOD_HARNESS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(CSTD) -O2 -g -D_GNU_SOURCE -Wall -Wextra -Werror \
		-Wno-unused-parameter -Wno-sign-compare -Iuapi -DBUILD='"$(B)"' \
		-isystem $(KMOD_LINUX_SRC)/tools/testing/selftests -static -pthread $< -o $@

.PHONY: kmod-tests
kmod-tests: $(KMOD_TESTS) $(KMOD_TESTS_ALSO) $(KMOD_TESTS_NEED)
	@echo $(KMOD_TESTS) $(KMOD_TESTS_ALSO)

# One test a kernel: all of them in one guest
KMOD_QEMU_TESTS := $(foreach r,$(KMOD_RELEASES),build/test/qemu-kmod-$(r))
$(KMOD_QEMU_TESTS): build/test/qemu-kmod-%: $(KMOD_TESTS) build/kmod/%/gsched.ko \
		build/kmod/%/pin/gsched_pin.ko $(KMOD_TESTS_NEED)
	@mkdir -p $(@D)
	@printf '%s\n' '#!/bin/sh' 'cd "$$(dirname "$$0")/../.." || exit 1' \
		'exec selftests/qemu/run --kernel $* --timeout 600 --log build/qemu/kmod-$* \' \
		'	-- selftests/kmod/guest $(KMOD_TESTS)' >$@
	@chmod +x $@
TESTS += $(KMOD_QEMU_TESTS)

# System calls of a launch through the module
build/test/qemu-calls: selftests/kmod/calls modules \
		$(addprefix build/bin/,gschedctl gschedd) \
		$(addprefix build/programs/,latency-drv batch-drv)
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec selftests/qemu/run %s -- selftests/kmod/calls\n' \
		'--timeout 300 --log build/qemu/calls' >$@
	@chmod +x $@
TESTS += build/test/qemu-calls

# The same on a kernel that finds bugs, and the fuzzer for two minutes. Beside the stock ones: those
# are what people run, and have no time for all of that. The kernel is built with all else, in some
# three minutes of two processors, and kept.
KMOD_DEBUG_TESTS := build/test/qemu-debug build/test/qemu-debug-fuzz
build/test/qemu-debug: $(addprefix selftests/qemu/,debug-kernel init run tsc.c) $(KMOD_SRCS) \
		$(KMOD_PIN_SRCS) $(KMOD_KUNIT_SRCS) $(KMOD_TESTS) $(KMOD_TESTS_NEED)
	@mkdir -p $(@D)
	+@selftests/qemu/debug-kernel
	$(call Q,GEN)printf '#!/bin/sh\nexec selftests/qemu/debug-kernel test\n' >$@
	@chmod +x $@

build/test/qemu-debug-fuzz: build/test/qemu-debug
	$(call Q,GEN)printf '#!/bin/sh\nexec selftests/qemu/debug-kernel fuzz 60\n' >$@
	@chmod +x $@
TESTS += $(KMOD_DEBUG_TESTS)
LONG += build/test/qemu-debug

# These alone. check-kcsan: on a kernel that finds data races, which is another one to build.
# check-arm64: on one for arm64, with pages of PAGE_KIB (4, 16 or 64).
PAGE_KIB ?= 64
.PHONY: check-debug check-kcsan check-arm64
check-debug:
	+selftests/qemu/debug-kernel test
	+selftests/qemu/debug-kernel fuzz

check-kcsan:
	+selftests/qemu/debug-kernel --kcsan test
	+selftests/qemu/debug-kernel --kcsan fuzz

check-arm64:
	+@.ci/deps qemu-system-arm
	+selftests/qemu/debug-kernel --arm64 $(PAGE_KIB) test

# dkms in a system of its own, for all kinds of kernels: downloads some 300 MB the first time
.PHONY: check-dkms-root
check-dkms-root:
	@selftests/run-tests selftests/kmod/dkms-root

# dkms for real, on an overlay of this system, and the module it installs in a guest
build/test/dkms: selftests/kmod/dkms-install
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@
TESTS += build/test/dkms

# `make install` under a real systemd, in a guest with the newest kernel there is
build/test/qemu-systemd: selftests/kmod/systemd modules all build/programs/batch-drv
	@mkdir -p $(@D)
	$(call Q,GEN)printf '%s\n' '#!/bin/sh' 'rm -rf build/stage' \
		'make -s install DESTDIR="$$PWD/build/stage" >&2 || exit' \
		'exec selftests/qemu/run --kernel $(lastword $(KMOD_RELEASES)) --no-module --systemd \' \
		'	--timeout 600 --log build/qemu/systemd -- selftests/kmod/systemd build/stage' >$@
	@chmod +x $@
TESTS += build/test/qemu-systemd

# Lint: every message fails. The kernel's own headers are not our concern.
.PHONY: lint-sparse lint-checkpatch lint-kernel-doc lint-coccinelle lint-analyzer
LINT += lint-sparse lint-checkpatch lint-kernel-doc lint-coccinelle lint-analyzer
lint-sparse: $(KMOD_MODULES)
	@set -e; for r in $(KMOD_RELEASES); do \
		out=$$($(MAKE) -C $${KDIR:-/usr/src/linux-headers-$$r} \
			M=$(CURDIR)/build/kmod/$$r $(KMOD_FLAGS) W= C=2 CF=-D__CHECK_ENDIAN__ \
			modules 2>&1 >/dev/null); \
		if [ -n "$$out" ]; then echo "$$out"; exit 1; fi; done; echo "sparse: clean"

KMOD_CHECKPATCH := $(wildcard kmod/*.[ch] kmod/core/*.[ch] selftests/kmod/pin/*.[ch]) \
	$(filter-out %/exports.c,$(KMOD_KUNIT_SRCS))
lint-checkpatch: $(KMOD_HARNESS)
	@perl $(KMOD_LINUX_SRC)/scripts/checkpatch.pl --no-tree --strict --terse --no-summary \
		--show-types --max-line-length=100 --ignore MACRO_ARG_REUSE \
		--ignore UNCOMMENTED_DEFINITION,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT \
		-f $(KMOD_CHECKPATCH)

lint-kernel-doc: $(KMOD_HARNESS)
	@perl $(KMOD_LINUX_SRC)/scripts/kernel-doc -none -Werror kmod/*.[ch] kmod/core/*.[ch] \
		uapi/linux/*.h
	@echo "kernel-doc: clean"

# The kernel's own semantic patches, one by one as `make coccicheck` does. It says nothing of files
# that it cannot read.
lint-coccinelle: $(KMOD_HARNESS)
	@out=$$(find $(KMOD_LINUX_SRC)/scripts/coccinelle -name '*.cocci' | sort | \
		xargs -I{} timeout 300 spatch --very-quiet -D report --no-show-diff --no-includes \
		--include-headers --cocci-file {} kmod/*.c kmod/core/*.c 2>/dev/null); \
	if [ -n "$$out" ]; then echo "$$out"; exit 1; fi; echo "coccinelle: clean"

# gcc's static analyzer, on a mirror of its own: its objects are not for use
KMOD_ANALYZED := build/kmod-analyzer
KMOD_NEWEST := $(lastword $(KMOD_RELEASES))
lint-analyzer:
	@$(call kmod_mirror,$(KMOD_SRCS),,$(KMOD_ANALYZED))
	@out=$$($(MAKE) -C $(call KMOD_KDIR,$(KMOD_NEWEST)) M=$(CURDIR)/$(KMOD_ANALYZED) \
		$(KMOD_FLAGS) KCFLAGS="-fanalyzer -Werror" modules 2>&1 >/dev/null); \
	if [ -n "$$out" ]; then echo "$$out"; exit 1; fi; echo "gcc -fanalyzer: clean"
