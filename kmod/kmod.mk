# SPDX-License-Identifier: LGPL-2.1-or-later
# The kernel module: `make modules` builds build/kmod/<release>/gsched.ko for every installed header package of 6.1 and
# 6.12 (newest of each), or for KDIR= alone. Kernels before 6.13 build beside the sources, so each release gets a mirror of
# links to them.
KMOD_KDIRS := $(if $(KDIR),$(KDIR),$(foreach s,6.1 6.12,$(lastword $(shell \
	ls -d /usr/src/linux-headers-$(s).*-amd64 2>/dev/null | grep -v -- -rt- | sort -V))))
KMOD_RELEASES := $(foreach k,$(KMOD_KDIRS),$(shell cat $(k)/include/config/kernel.release 2>/dev/null))
KMOD_KDIR = $(if $(KDIR),$(KDIR),/usr/src/linux-headers-$(1))
KMOD_SRCS := $(wildcard Kbuild kmod/*.[ch] kmod/compat/*.c kmod/core/*.[ch] uapi/linux/*.h)
KMOD_PIN_SRCS := $(wildcard selftests/kmod/pin/*)
KMOD_MODULES := $(foreach r,$(KMOD_RELEASES),build/kmod/$(r)/gsched.ko build/kmod/$(r)/pin/gsched_pin.ko)
# Debian ships no vmlinux to make BTF from: say so, instead of being warned
KMOD_FLAGS := CONFIG_DEBUG_INFO_BTF_MODULES= W=1

.PHONY: modules modules-clean dkms-install
modules: $(KMOD_MODULES)

# $(call kmod_mirror,files,from,to)
kmod_mirror = for f in $(1); do d=$(3)/$${f\#$(2)}; mkdir -p "$${d%/*}"; ln -sfn "$(CURDIR)/$$f" "$$d"; done; \
	find $(3) -xtype l -delete

define kmod_rules
build/kmod/$(1)/gsched.ko: $(KMOD_SRCS)
	@$$(call kmod_mirror,$(KMOD_SRCS),,build/kmod/$(1))
	+$(MAKE) -C $(call KMOD_KDIR,$(1)) M=$(CURDIR)/build/kmod/$(1) $(KMOD_FLAGS) modules
	@touch $$@

build/kmod/$(1)/pin/gsched_pin.ko: $(KMOD_PIN_SRCS)
	@$$(call kmod_mirror,$(KMOD_PIN_SRCS),selftests/kmod/,build/kmod/$(1))
	+$(MAKE) -C $(call KMOD_KDIR,$(1)) M=$(CURDIR)/build/kmod/$(1)/pin $(KMOD_FLAGS) modules
	@touch $$@
endef
$(foreach r,$(KMOD_RELEASES),$(eval $(call kmod_rules,$(r))))

modules-clean:
	rm -rf build/kmod

DKMS_VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
dkms-install:
	install -d $(DESTDIR)/usr/src/gsched-$(DKMS_VERSION)
	cp -r --parents Kbuild dkms.conf $(KMOD_SRCS) $(DESTDIR)/usr/src/gsched-$(DKMS_VERSION)
	$(if $(DESTDIR),,dkms install gsched/$(DKMS_VERSION))
