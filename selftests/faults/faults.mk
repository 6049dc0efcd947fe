# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs, gschedd and MPS servers killed and stopped at random moments. Many more:
# selftests/faults/run --count 1000
FAULTS := selftests/faults/run selftests/faults/programs.py $(FORMS)/drv $(FORMS)/kernels.ptx
$(B)/test/faults: $(FAULTS)
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || '\
	'{ echo "1..0 # SKIP no python3"; exit; }\nB=%s exec %s --count 60 --steps 10\n' $(B) $< >$@
	@chmod +x $@

# What --gpu does, with the simulated GPU in the place of a real one
$(B)/test/faults-gpu: selftests/faults/test-gpu $(FAULTS)
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@
TESTS += $(B)/test/faults $(B)/test/faults-gpu
ALONE += $(B)/test/faults $(B)/test/faults-gpu
