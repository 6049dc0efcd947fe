# SPDX-License-Identifier: LGPL-2.1-or-later
# Userspace for aarch64: cross-built into build/aarch64, some tests of it run under qemu-user. Left
# out are those that take long there. qemu-user has no seccomp and reorders no memory accesses.
.PHONY: check-aarch64 build-aarch64
ifeq ($(CROSS)$(SAN),)
AARCH64 := build/aarch64
AARCH64_RUNS := $(addprefix $(AARCH64)/, \
	$(addprefix tests/core-,unit bands turns sizes protect interface chaos) \
	$(addprefix test/rewriter-,image program fnptrs) \
	$(addprefix test/vgpu-,exec exec-alu exec-async exec-mma exec-tex) \
	$(addprefix selftests/gschedd/,arbiter bands groups lifecycle state) \
	$(addprefix test/libgsched/,tune code slice) test/corpus test/end-to-end)
AARCH64_NEEDS := $(patsubst $(B)/%,$(AARCH64)/%,$(LIBS)) \
	$(addprefix $(AARCH64)/,bin/gschedd bin/gschedctl bin/gsrewrite lib/bundle/.copied \
	lib/libexec-qemu.so root/etc/ld.so.cache) $(AARCH64_RUNS)
build-aarch64:
	+@$(MAKE) CROSS=aarch64 $(AARCH64_NEEDS)
$(AARCH64_RUNS): build-aarch64 ;
TESTS += $(AARCH64_RUNS)

check-aarch64: deps
	+@$(MAKE) build-aarch64
	@$(call run_tests,$(AARCH64_RUNS))
endif

$(call objs,selftests/aarch64/exec.c): CPPFLAGS += -DBUILD='"$(CURDIR)/$(B)"'

ifneq ($(CROSS),)
$(SYSROOT): selftests/aarch64/sysroot
	$(call Q,APT)$< $@
	@touch $@

# Root of a guest of qemu-system; busybox stands in for what is not here (selftests/qemu/init)
$(B)/guest: selftests/aarch64/sysroot
	$(call Q,APT)$< $@ libc6 libgcc-s1 busybox-static bash libtinfo6 jq libjq1 libonig5 \
		perl-base libcrypt1 util-linux libcap-ng0
	@touch $@

# What qemu-user takes for / where it has a file: the cross compiler's C library, and a linker's
# cache that has the driver
ROOT := $(B)/root
$(B)/lib/libexec-qemu.so: $(call objs,selftests/aarch64/exec.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(ROOT)/etc/ld.so.cache: $(B)/vgpu/libcuda.so.1 | $(SYSROOT)
	@mkdir -p $(@D)
	@ln -sfn /usr/$(CROSS)-linux-gnu/lib $(ROOT)/lib
	@echo $(CURDIR)/$(B)/vgpu >$(@D)/ld.so.conf
	$(call Q,GEN)qemu-$(CROSS) -L $(CURDIR)/$(ROOT) $(SYSROOT)/sbin/ldconfig -X \
		-f $(CURDIR)/$(@D)/ld.so.conf -C $(CURDIR)/$@

# A few kernels of the corpus, by original and twin
CORPUS_SOME := $(addprefix selftests/rewriter/corpus/, \
	$(foreach k,atomics shared,$(k).launch $(k).sm_90.ptx))
$(B)/corpus-some/.copied: $(CORPUS_SOME)
	@rm -rf $(@D)
	@mkdir -p $(@D)
	$(call Q,COPY)cp $^ $(@D)
	@touch $@

$(B)/test/corpus: selftests/aarch64/corpus $(B)/bench/corpus-gpu $(B)/corpus-some/.copied
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@

# What a shell starts
$(B)/run/bin/%: $(B)/bin/%
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nexec selftests/aarch64/qemu %s "$$@"\n' $< >$@
	@chmod +x $@

$(B)/test/end-to-end: selftests/aarch64/end-to-end selftests/lib.sh \
		$(addprefix $(B)/run/bin/,gschedd gschedctl) $(PROGRAMS_DRV) $(P)/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@
endif
