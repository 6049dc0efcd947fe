# SPDX-License-Identifier: LGPL-2.1-or-later
LG_TESTS := $(addprefix $(B)/test/libgsched/,client events tune code slots pass agent blocks share slice held interposer accounting modules loads streams symbols opened asan temporal stopped devices bands memory)
# bands waits for many programs: two minutes
FAST_TESTS += $(filter-out %/bands,$(LG_TESTS))
TESTS += $(LG_TESTS)
# They compare what programs get done in a time
ALONE += $(addprefix $(B)/test/libgsched/,streams bands)
LG_ARBITER := $(call objs,selftests/libgsched/arbiter.c)
LG_REWRITER := $(call objs,selftests/libgsched/rewriter.c)
LG_RUN := $(call objs,selftests/libgsched/run.c)

$(B)/test/libgsched/client: $(call objs,selftests/libgsched/client.c) $(LG_ARBITER) $(LIBGSCHED_OBJS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -lcjson -lpthread

$(B)/test/libgsched/events: $(call objs,selftests/libgsched/events.c) $(LG_ARBITER) $(LIBGSCHED_OBJS)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,--wrap=open,--wrap=read -o $@ $^ -lcjson -lpthread

$(B)/test/libgsched/tune: $(call objs,selftests/libgsched/tune.c libgsched/cuda/code/tune.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^

# The rooms below launches, with no driver
$(call objs,$(addprefix selftests/libgsched/,code.c slots.c pass.c agent.c blocks.c share.c)): CPPFLAGS += -Ilibgsched/cuda
CODE_OBJS := $(filter $(addprefix $(B)/obj/libgsched/cuda/,code/% device/% base/%),$(CUDA_OBJS)) $(filter-out $(B)/obj/libgsched/cuda/%,$(CUDA_OBJS))
$(B)/test/libgsched/code: $(call objs,selftests/libgsched/code.c) $(LG_ARBITER) $(LG_REWRITER) $(CODE_OBJS) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -llz4 -lzstd -lm -lpthread -ldl

TASK_OBJS := $(filter $(B)/obj/libgsched/cuda/task/%,$(CUDA_OBJS))
$(B)/test/libgsched/slots $(B)/test/libgsched/pass: $(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(TASK_OBJS) $(CODE_OBJS) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $^ -llz4 -lzstd -lm -lpthread -ldl

AGENT_OBJS := $(filter $(B)/obj/libgsched/cuda/launch/%,$(CUDA_OBJS)) \
	$(B)/obj/libgsched/cuda/process/agent.o
$(addprefix $(B)/test/libgsched/,agent blocks share): $(B)/test/libgsched/%: \
		$(B)/obj/selftests/libgsched/%.o $(AGENT_OBJS) $(TASK_OBJS) $(CODE_OBJS) $(B)/lib/libgsr.a
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $(LG_WRAP) -o $@ $^ -llz4 -lzstd -lm -lpthread -ldl
$(B)/test/libgsched/agent: LG_WRAP := -Wl,--wrap=ppoll,--wrap=clock_gettime
$(B)/test/libgsched/blocks: LG_WRAP := -Wl,--wrap=clock_gettime,--wrap=gi_func_get,--wrap=gi_func_put
$(B)/test/libgsched/share: LG_WRAP := -Wl,--wrap=clock_gettime,--wrap=usleep,--wrap=gi_ctx_words

$(B)/test/libgsched/libfake-rm.so: $(call objs,selftests/libgsched/fake-rm.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(addprefix $(B)/test/libgsched/,slice held): $(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(SLICE_OBJS) $(B)/test/libgsched/libfake-rm.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -Wl,--export-dynamic -o $@ $(filter %.o,$^) -L$(@D) -lfake-rm -Wl,-rpath,'$$ORIGIN' -ldl -lpthread

# Programs that know nothing of gsched
$(addprefix $(B)/test/libgsched/,app loads-app streams-app devices-app memory-app): $(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 -Wl,--allow-shlib-undefined -lpthread

$(B)/test/libgsched/app: $(call objs,$(addprefix selftests/libgsched/,app-held.c app-graphs.c))

$(addprefix $(B)/test/libgsched/,variables tables textures): $(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/vgpu -l:libcuda.so.1 -Wl,--allow-shlib-undefined -lpthread

$(B)/test/libgsched/libbare.so: $(call objs,selftests/libgsched/bare.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(call objs,$(addprefix selftests/libgsched/,interposer.c managed.c modules.c loads.c streams.c run.c temporal.c stopped.c devices.c bands.c memory.c opened.c)): CPPFLAGS += -DBUILD='"$(B)"'
LG_MANAGED := $(call objs,selftests/libgsched/managed.c) $(LG_ARBITER) $(LG_REWRITER) $(LG_RUN) $(LIBGSCHED_OBJS) $(B)/lib/libgsr.a
$(addprefix $(B)/test/libgsched/,interposer accounting modules): $(B)/test/libgsched/%: \
		$(B)/obj/selftests/libgsched/%.o $(LG_MANAGED) $(B)/lib/gsched/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcjson -llz4 -lzstd -lm -lpthread
$(B)/test/libgsched/interposer: $(addprefix $(B)/test/libgsched/,app libbare.so)
$(B)/test/libgsched/accounting: $(B)/test/libgsched/app
$(B)/test/libgsched/modules: $(addprefix $(B)/test/libgsched/,variables tables textures)

$(addprefix $(B)/test/libgsched/,loads streams): $(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(LG_ARBITER) $(LG_REWRITER) \
		$(LG_RUN) $(LIBGSCHED_OBJS) $(B)/lib/libgsr.a $(B)/test/libgsched/%-app $(B)/test/libgsched/app $(B)/lib/gsched/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcjson -llz4 -lzstd -lm -lpthread

$(B)/test/libgsched/temporal $(B)/test/libgsched/stopped: \
$(B)/test/libgsched/%: $(B)/obj/selftests/libgsched/%.o $(LG_RUN) $(LIBGSCHED_OBJS) $(B)/test/libgsched/app \
		$(B)/lib/gsched/libcuda.so.1 $(addprefix $(B)/bin/,gschedd gschedctl) $(addprefix $(B)/programs/,batch-drv latency-drv kernels.ptx)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcjson -lpthread

$(B)/test/libgsched/devices: $(call objs,selftests/libgsched/devices.c) $(LG_RUN) $(LIBGSCHED_OBJS) \
		$(addprefix $(B)/test/libgsched/,app devices-app) $(B)/lib/gsched/libcuda.so.1 \
		$(addprefix $(B)/bin/,gschedd gschedctl) $(B)/vgpu/libvgpu-rm.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcjson -lpthread

$(B)/test/libgsched/memory: $(call objs,selftests/libgsched/memory.c) $(LG_RUN) $(LIBGSCHED_OBJS) $(B)/test/libgsched/memory-app \
		$(B)/lib/gsched/libcuda.so.1 $(addprefix $(B)/bin/,gschedd gschedctl) $(B)/vgpu/libvgpu-rm.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcjson -lpthread

$(B)/test/libgsched/bands: $(call objs,selftests/libgsched/bands.c) $(LG_RUN) $(LIBGSCHED_OBJS) $(B)/test/libgsched/app \
		$(B)/lib/gsched/libcuda.so.1 $(addprefix $(B)/bin/,gschedd gschedctl) $(addprefix $(B)/programs/,latency-drv kernels.ptx) \
		$(B)/vgpu/libvgpu-rm.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -lcjson -lpthread

$(B)/test/libgsched/libnamed.so: $(call objs,selftests/libgsched/named.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^ -ldl

$(B)/test/libgsched/libneeds-named.so: $(call objs,selftests/libgsched/needs-named.c) \
		$(B)/test/libgsched/libnamed.so
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $< -L$(@D) -lnamed -Wl,-rpath,'$$ORIGIN'

# A library would find what the program exports before its own
$(B)/test/libgsched/named-exports: NAMED_EXPORTS := -rdynamic
$(addprefix $(B)/test/libgsched/named-,app exports): $(call objs,selftests/libgsched/named-app.c)
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) $(NAMED_EXPORTS) -o $@ $^ -ldl

$(call objs,selftests/libgsched/opened.c): CPPFLAGS += -Ilibgsched/cuda
$(B)/test/libgsched/opened: $(call objs,selftests/libgsched/opened.c libgsched/cuda/entry/variables.c) \
		$(LG_RUN) $(addprefix $(B)/test/libgsched/,libneeds-named.so named-app named-exports) \
		$(B)/lib/gsched/libcuda.so.1 $(B)/vgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -lpthread

$(B)/test/libgsched/asan: selftests/libgsched/asan $(addprefix $(B)/,lib/gsched/libcuda.so.1 vgpu/libcuda.so.1)
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@

$(B)/test/libgsched/symbols: selftests/libgsched/symbols $(addprefix $(B)/lib/gsched/,libcuda.so.1 libgsched-mps.so)
	@mkdir -p $(@D)
	$(call Q,GEN)cp $< $@
