# stepsim: one non-recursive Makefile. `make help` lists the targets.
VARIANT ?= release
CUDA ?= auto
EXEC ?= auto
CC = gcc
# The MPI library, by its name for pkg-config: ompi-c (Open MPI) or mpich.
MPI ?= ompi-c
# What predicts needs these; what executes (the plug-in) these, too.
PKGS = hwloc expat yaml-0.1 jansson zlib sqlite3
EXEC_PKGS = openblas $(MPI)

VARIANTS = release debug asan portable fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error VARIANT is one of: $(VARIANTS))
endif

B = build/$(VARIANT)
WARN = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
CPPFLAGS += -I. -D_GNU_SOURCE $(shell pkg-config --cflags $(PKGS) 2>/dev/null) \
	$(shell pkg-config --cflags $(EXEC_PKGS) 2>/dev/null)
CFLAGS_release = -O2 -g
# portable: what packages hold. It runs on any x86-64; its kernels need AVX2, FMA and BMI, which the plug-in checks.
CFLAGS_portable = -O2 -g -ffile-prefix-map=$(CURDIR)=.
# DT_RPATH, unlike DT_RUNPATH, also serves what the plug-in needs.
LDFLAGS_portable = -Wl,-z,relro,-z,now,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/stepsim'
CFLAGS_debug = -O0 -g3
CFLAGS_asan = -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDFLAGS_asan = -fsanitize=address,undefined
# The fuzzers for libFuzzer, which brings their main: clang and its runtime (Debian: libclang-rt-14-dev).
CFLAGS_fuzz = -O1 -g -Wno-missing-prototypes -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
LDFLAGS_fuzz = -fsanitize=address,undefined,fuzzer
ifeq ($(VARIANT),fuzz)
CC = clang-14
endif
CFLAGS_ALL = -std=c11 $(WARN) $(CFLAGS_$(VARIANT)) -pthread $(CFLAGS)
# Before glibc 2.34 dlopen and shm_open were in libraries of their own.
LDLIBS_CORE = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm -ldl -lrt -pthread $(LDLIBS)
LDLIBS_ALL = $(shell pkg-config --libs $(EXEC_PKGS) 2>/dev/null) $(LDLIBS_CORE)

# The kernels of the host device are what is timed: they are built for the machine at hand.
KERNEL_CFLAGS_release = -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math
# gcc 10, the oldest that builds packages, knows neither x86-64-v3 nor how to ask a processor for it.
KERNEL_CFLAGS_portable = $(if $(filter x86_64,$(ARCH)),-mavx2 -mfma -mbmi -mbmi2) \
	$(filter-out -march=%,$(KERNEL_CFLAGS_release))
ARCH := $(shell uname -m)

ROOMS = base topology topology/catalogue topology/graph topology/discover topology/view \
	step step/builder step/config step/import sim/price sim/engine sim/search sim/advise \
	exec exec/calibrate exec/host report report/import cli cli/validate
SRC = $(foreach r,$(ROOMS),$(wildcard $(r)/*.c))
OBJ = $(SRC:%.c=$(B)/obj/%.o)
LIB_OBJ = $(filter-out $(B)/obj/cli/main.o $(if $(filter fuzz,$(VARIANT)),$(B)/obj/exec/% $(B)/obj/cli/%),$(OBJ))
LIB = $(B)/libstepsim.a
# exec/ is a plug-in of the binary, which holds all the rest. Tests link both parts from the archive.
EXEC_OBJ = $(filter $(B)/obj/exec/%,$(OBJ))

# EXEC=auto builds it where its libraries are found, and says so. EXEC=1 fails where they are not; EXEC=0 leaves it out.
EXEC_MISSING := $(if $(filter 0,$(EXEC)),EXEC=0,$(strip \
	$(foreach p,$(EXEC_PKGS),$(shell pkg-config --exists $p || echo no $p))))
ifeq ($(EXEC)$(if $(EXEC_MISSING),,found),1)
$(error EXEC=1, but pkg-config finds $(EXEC_MISSING))
endif
EXEC_OBJECT = $(if $(EXEC_MISSING),,$(B)/libstepsim_exec.so)

UNIT = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c tests/property/test_*.c))
EXEC_TESTS = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/exec/test_*.c))
FUZZ = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCH = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/bench_*.c))
COMMIT = $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := all
.PHONY: all tests unit fuzzers replays twins list-twins ptx kernels-report gpu-tests attention-table check check-long \
	check-root check-faults validate bench bench-accuracy bench-testbed share install uninstall dist deb wheel \
	gpu-bundle format clean help
.DELETE_ON_ERROR:

# CUDA=auto builds the CUDA part where all its libraries are found, and says what was found.
# CUDA=1 fails loudly where they are not; CUDA=0 leaves it out.
CUDA_FLAGS := $(if $(filter 0,$(CUDA)),,$(shell bash scripts/find_cuda.sh flags))
CUDA_FOUND := $(if $(filter 0,$(CUDA)),left out (CUDA=0),$(shell bash scripts/find_cuda.sh))
ifeq ($(CUDA)$(CUDA_FLAGS),1)
$(error CUDA=1, but $(CUDA_FOUND))
endif
CUDA_OBJECT = $(if $(CUDA_FLAGS),$(B)/libstepsim_cuda.so)

all: $(B)/stepsim $(EXEC_OBJECT) $(CUDA_OBJECT) ## build/release/stepsim (VARIANT=debug|asan; CUDA, EXEC=auto|0|1)
	@echo "CUDA: $(CUDA_FOUND)"
	$(if $(EXEC_MISSING),@echo "execution: left out ($(EXEC_MISSING)): this build predicts")

# The CUDA backend: C on cudart's API, kernels by nvcc, one shared object.
# It takes base/ and step/ from the binary, and a few functions of exec/ from the plug-in that opens it.
NVCC ?= $(shell bash scripts/find_cuda.sh nvcc)
# The kernels' architectures; GPUs newer than the last translate its PTX when they load it.
# scripts/test.sh, which runs no kernel on a GPU, asks for the first alone: that takes a third of the time.
CUDA_ARCHS ?= 80 90 100
CUDA_ARCH = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
CUDA_KERNELS = $(wildcard exec/cuda/*.cu)
CUDA_OBJ = $(patsubst exec/cuda/%.c,$(B)/cuda/%.o,$(wildcard exec/cuda/*.c)) \
	$(patsubst exec/cuda/%.cu,$(B)/cuda/%.cu.o,$(CUDA_KERNELS))

# DT_RUNPATH lets LD_LIBRARY_PATH name other libraries of CUDA's than those of the machine that built.
CUDA_LDFLAGS = -Wl,--enable-new-dtags
# Lazy binding lets exec/cuda_open.c open it beside a library that lacks a function, to ask for the library's version.
$(B)/libstepsim_cuda.so: $(CUDA_OBJ)
	$(CC) -shared $(LDFLAGS_$(VARIANT)) $(CUDA_LDFLAGS) -Wl,-z,lazy,-soname,$(@F),-rpath,'$$ORIGIN' \
		-o $@ $^ $(CUDA_FLAGS) -lstdc++ -lm

$(B)/cuda/%.o: exec/cuda/%.c
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE -std=c11 $(WARN) $(CFLAGS_$(VARIANT)) $(CFLAGS) -fPIC -MMD -MP $(CUDA_FLAGS) -c -o $@ $<

# What the kernels were built for: with more than is asked for they stay.
$(B)/cuda_archs: FORCE
	@mkdir -p $(@D)
	@for a in $(CUDA_ARCHS); do grep -qsw $$a $@ || { echo '$(CUDA_ARCHS)' > $@; break; }; done

# The log has what ptxas says of each kernel, for kernels-report; the rest of what nvcc says is for people.
$(B)/cuda/%.cu.o $(B)/cuda/%.cu.log: exec/cuda/%.cu $(B)/cuda_archs
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O3 -I. -Xcompiler -fPIC,-Wall,-Wextra -Xptxas -v $(CUDA_ARCH) \
		-MMD -MF $(B)/cuda/$*.cu.d -MT $(B)/cuda/$*.cu.o -c -o $(B)/cuda/$*.cu.o $< \
		2> $(B)/cuda/$*.cu.log || { cat $(B)/cuda/$*.cu.log >&2; false; }
	@grep -v '^ptxas info\|^ *[0-9]* bytes stack frame' $(B)/cuda/$*.cu.log >&2 || true

# The same kernels by the host's compiler, for the tests.
TWIN_OBJ = $(patsubst exec/cuda/%.cu,$(B)/twin/%.o,$(CUDA_KERNELS)) $(B)/twin/twin.o $(B)/twin/kernels.o
# Templates compile slowly: debug information is line numbers alone, and UBSan leaves out the checks that
# AddressSanitizer makes as well.
TWIN_CFLAGS_release = -g1
TWIN_CFLAGS_asan = -g1 -fno-sanitize=vptr,object-size,pointer-overflow,null
TWIN_FLAGS = -DSTEPSIM_TWIN -I. -D_GNU_SOURCE -Wall -Wextra -Wno-maybe-uninitialized \
	$(CFLAGS_$(VARIANT)) $(TWIN_CFLAGS_$(VARIANT)) -fPIC -MMD -MP \
	$(filter-out -L% -Wl% -l%,$(CUDA_FLAGS))

$(B)/twin/%.o: exec/cuda/%.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(TWIN_FLAGS) -x c++ -c -o $@ $<

$(B)/twin/probe.o: tests/cuda/probe.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(TWIN_FLAGS) -x c++ -c -o $@ $<

$(B)/twin/%.o: tests/doubles/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(TWIN_FLAGS) -c -o $@ $<

$(B)/twin/kernels.o: exec/cuda/kernels.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(TWIN_FLAGS) -c -o $@ $<

# Doubles of the libraries that the shared object loads, under their own names.
# LD_LIBRARY_PATH=$(B)/doubles puts them in their place.
DOUBLES = $(addprefix $(B)/doubles/,libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnccl.so.2 libnvidia-ml.so.1)
CUDART_OBJ = $(patsubst tests/doubles/%.cc,$(B)/twin/%.o,$(wildcard tests/doubles/cudart*.cc)) \
	$(filter-out %/kernels.o,$(TWIN_OBJ)) $(B)/twin/probe.o
$(B)/doubles/libcudart.so.13: $(CUDART_OBJ) tests/doubles/cudart.map
	@mkdir -p $(@D)
	$(CXX) $(LDFLAGS_$(VARIANT)) -pthread -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=tests/doubles/cudart.map -Wl,-z,lazy -o $@ $(CUDART_OBJ)
$(B)/doubles/libcublasLt.so.13: $(B)/twin/cublaslt.o tests/doubles/cublaslt.map
# Its products are most of what a job on doubles costs; each sum keeps its order and its roundings.
TWIN_MATHS = $(if $(filter release,$(VARIANT)),-O3 -march=native -ffp-contract=off)
$(B)/twin/cublaslt.o $(B)/twin/cudnn_graph.o: TWIN_FLAGS += $(TWIN_MATHS)
$(B)/doubles/libcudnn.so.9: $(B)/twin/cudnn.o $(B)/twin/cudnn_graph.o tests/doubles/cudnn.map
$(B)/doubles/libnccl.so.2: $(B)/twin/nccl.o tests/doubles/nccl.map
$(B)/twin/nccl.o: TWIN_FLAGS += $(shell pkg-config --cflags $(MPI))
$(B)/doubles/libnvidia-ml.so.1: tests/doubles/nvml.c topology/discover/nvml.h
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE -std=c11 $(WARN) $(CFLAGS_$(VARIANT)) -DTYPES -DGPUS=8 \
		-fPIC -fvisibility=hidden $(LDFLAGS_$(VARIANT)) -shared -Wl,-soname,$(@F) -o $@ $< -lm
$(filter-out %/libcudart.so.13 %/libnvidia-ml.so.1,$(DOUBLES)): $(B)/doubles/libcudart.so.13
	@mkdir -p $(@D)
	$(CXX) $(LDFLAGS_$(VARIANT)) -pthread -shared -Wl,-soname,$(@F) -Wl,--version-script=$(filter %.map,$^) \
		-o $@ $(filter %.o,$^) $(filter %.so.13,$^) \
		$(if $(findstring nccl,$@),$(shell pkg-config --libs $(MPI)))

# The kernels' twins against the host's reference: no nvcc, no library.
TWIN_TESTS = $(if $(CUDA_FLAGS),$(addprefix $(B)/tests/cuda/,test_twin $(addprefix test_cuda_,act attention \
	context elementwise embed loss memory moe norm optimizer softmax)))

CUDA_TESTS = $(if $(CUDA_FLAGS),$(patsubst tests/%,$(B)/tests/%, \
	$(basename $(wildcard tests/cuda/test_*.c tests/cuda/test_*.cc))))
$(B)/tests/cuda/%: tests/cuda/%.c $(LIB) $(TWIN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(CUDA_FLAGS) -MMD -MP -MF $@.d \
		$(LDFLAGS_$(VARIANT)) $(LDFLAGS) -o $@ $< $(TWIN_OBJ) $(LIB) -lcunit $(LDLIBS_ALL) -lstdc++

$(B)/tests/cuda/test_twin: tests/cuda/test_twin.cc $(B)/twin/twin.o $(LIB)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(TWIN_FLAGS) -MF $@.d $(LDFLAGS_$(VARIANT)) -o $@ $< $(B)/twin/twin.o $(LIB) -lcunit

# The doubled runtime under the launches that nvcc makes, without a search for libraries.
# The launchers inside the double lack the symbols that they are never called with.
$(B)/tests/cuda/test_cudart_double: tests/cuda/test_cudart_double.cc $(B)/tests/cuda/probe.cu.o \
		$(B)/doubles/libcudart.so.13 $(LIB)
	@mkdir -p $(@D)
	$(CXX) -rdynamic -std=c++17 $(TWIN_FLAGS) -MF $@.d $(LDFLAGS_$(VARIANT)) \
		-o $@ $(filter %.cc %.o %.so.13,$^) $(LIB) \
		-Wl,--allow-shlib-undefined,-rpath,'$$ORIGIN/../../doubles' -lcunit

$(B)/tests/cuda/probe.cu.o: tests/cuda/probe.cu
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -I. -Xcompiler -fPIC,-Wall,-Wextra -gencode arch=compute_80,code=sm_80 -c -o $@ $<

# The CUDA backend itself, on the doubles (LD_LIBRARY_PATH puts others before them), which take tables of step/ from it.
$(addprefix $(B)/tests/cuda/,test_cuda_gemm test_cuda_device test_cuda_step test_cuda_heat \
		test_cublaslt_double test_cudnn_double test_nccl_double test_nccl_calls): \
		$(B)/tests/cuda/%: tests/cuda/%.c $(LIB) $(CUDA_OBJ) $(DOUBLES)
	@mkdir -p $(@D)
	$(CC) -rdynamic $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d $(LDFLAGS_$(VARIANT)) $(LDFLAGS) \
		-Wl,-rpath,'$$ORIGIN/../../doubles' -o $@ $< $(CUDA_OBJ) $(LIB) $(CUDA_FLAGS) \
		-lcunit $(LDLIBS_ALL) -lstdc++

# A machine with a GPU runs the same lists of cases on the device's memory with the kernels themselves, and the tests of
# gemm, device and step on the libraries themselves (LD_LIBRARY_PATH puts the doubles there). Lazy, because the
# interpreter of PTX has those functions of cudart alone that tests of kernels call.
GPU_TESTS = $(if $(CUDA_FLAGS),$(patsubst %,$(B)/tests/gpu/test_cuda_%,act attention context elementwise \
	embed loss memory micro moe norm optimizer softmax gemm device step))
# They take the kernels from the shared object, which takes the rest from them.
$(B)/tests/gpu/%: tests/cuda/%.c $(LIB) $(B)/libstepsim_cuda.so
	@mkdir -p $(@D)
	$(CC) -rdynamic -DCUDA_RIG_ON_GPU $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d \
		$(LDFLAGS_$(VARIANT)) $(LDFLAGS) $(CUDA_LDFLAGS) -Wl,-z,lazy,-rpath,'$$ORIGIN/../..' -o $@ $< \
		$(B)/libstepsim_cuda.so $(LIB) $(CUDA_FLAGS) -lcunit $(LDLIBS_ALL) -lstdc++

# The kernels as PTX, and the interpreter that executes them under the tests of kernels (tests/ptx/ptx.h), in place of
# libcudart. LD_LIBRARY_PATH=$(B)/ptx puts it there. tests/run_long.sh takes other architectures, too.
PTX_ARCH ?= 90
PTX_NVCC = $(NVCC) -std=c++17 -O3 -I. -lineinfo -MMD -MF $@.d -ptx
PTX_OBJ = $(patsubst tests/ptx/%.cc,$(B)/ptx/obj/%.o,$(wildcard tests/ptx/*.cc))
KERNELS_PTX = $(patsubst exec/cuda/%.cu,$(B)/ptx/$(PTX_ARCH)/%.ptx,$(CUDA_KERNELS))
KERNELS_LOGS = $(patsubst exec/cuda/%.cu,$(B)/cuda/%.cu.log,$(CUDA_KERNELS))
PTX_BUILT = $(if $(CUDA_FLAGS),$(KERNELS_PTX) $(KERNELS_LOGS) \
	$(B)/ptx/libcudart.so.13 $(B)/ptx/planted/planted $(B)/ptx/planted/planted.ptx)
$(B)/ptx/$(PTX_ARCH)/%.ptx: exec/cuda/%.cu
	@mkdir -p $(@D)
	$(PTX_NVCC) -arch=compute_$(PTX_ARCH) -o $@ $<

$(B)/ptx/planted/planted.ptx: tests/ptx/planted.cu
	@mkdir -p $(@D)
	$(PTX_NVCC) -arch=compute_90 -o $@ $<

$(B)/ptx/planted/planted: tests/ptx/planted.cu $(B)/ptx/libcudart.so.13
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -arch=sm_90 -cudart none -o $@ $< -Xlinker $(B)/ptx/libcudart.so.13

$(B)/ptx/obj/%.o: tests/ptx/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O3 $(if $(filter release,$(VARIANT)),-march=native) -ffp-contract=off -fno-strict-aliasing \
		-g1 -Wall -Wextra -I. -fPIC -MMD -MP $(filter-out -L% -Wl% -l%,$(CUDA_FLAGS)) -c -o $@ $<

$(B)/ptx/libcudart.so.13: $(PTX_OBJ) tests/ptx/libcudart.map
	$(CXX) -shared -Wl,-soname,$(@F),-z,lazy,--version-script=tests/ptx/libcudart.map -o $@ $(PTX_OBJ)

# cuDNN itself, asked without a GPU: a stub stands in for the driver.
CUDNN_TABLE = tests/cudnn/attention_engines.csv
CUDNN_TESTS = $(if $(CUDA_FLAGS),$(addprefix $(B)/tests/cudnn/,attention_engines libcuda.so.1))
$(B)/tests/cudnn/attention_engines: tests/cudnn/attention_engines.c \
	$(addprefix $(B)/cuda/,attention_cudnn.o attention_graph.o check.o) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) $(CUDA_FLAGS) -MMD -MP -MF $@.d $(LDFLAGS_$(VARIANT)) $(LDFLAGS) \
		-o $@ $(filter %.c %.o,$^) $(LIB) $(CUDA_FLAGS) $(LDLIBS_ALL)
$(B)/tests/cudnn/libcuda.so.1: tests/cudnn/libcuda.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(filter-out -Wmissing-prototypes,$(WARN)) $(CFLAGS_$(VARIANT)) \
		$(filter-out -L% -Wl% -l%,$(CUDA_FLAGS)) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

attention-table: $(CUDNN_TESTS) ## which of cuDNN's engines takes which attention (20 minutes; no GPU)
	LD_LIBRARY_PATH=$(B)/tests/cudnn $(B)/tests/cudnn/attention_engines all > $(CUDNN_TABLE).new
	mv $(CUDNN_TABLE).new $(CUDNN_TABLE)

# Everything of base/, topology/ and step/ is in the binary, whether or not it uses it: the plug-ins do.
$(B)/stepsim: $(filter-out $(EXEC_OBJ),$(OBJ))
	$(CC) -rdynamic $(LDFLAGS_$(VARIANT)) $(LDFLAGS) -o $@ $^ $(LDLIBS_CORE)

$(B)/libstepsim_exec.so: $(EXEC_OBJ) exec/plugin.map
	$(CC) -shared $(LDFLAGS_$(VARIANT)) $(LDFLAGS) -Wl,--as-needed,--version-script=exec/plugin.map \
		-o $@ $(EXEC_OBJ) $(LDLIBS_ALL)

$(EXEC_OBJ): CFLAGS_ALL += -fPIC -fno-semantic-interposition
# Objects of a build before there was a plug-in are not position-independent.
$(EXEC_OBJ): exec/plugin.map $(B)/mpi

# Objects for one MPI library do not serve another.
$(B)/mpi: FORCE
	@mkdir -p $(@D)
	@echo '$(MPI)' | cmp -s - $@ || echo '$(MPI)' > $@

$(LIB): $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/obj/report/html.o: report/page/page.js report/page/timeline.js
$(B)/obj/report/page.o: report/page/page.css
$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/obj/exec/host/kernels%.o: CFLAGS_ALL += $(KERNEL_CFLAGS_$(VARIANT))
$(B)/obj/exec/plugin.o: CPPFLAGS += $(if $(filter portable-x86_64,$(VARIANT)-$(ARCH)),-DSTEPSIM_KERNELS_AVX2)
# The commit is part of every result and of --version.
$(B)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' > $@
FORCE:
$(B)/obj/report/json.o $(B)/obj/cli/version.o: $(B)/commit
$(B)/obj/report/json.o $(B)/obj/cli/version.o: CPPFLAGS += -DSTEPSIM_COMMIT='"$(COMMIT)"'
$(B)/obj/cli/version.o: CPPFLAGS += -DSTEPSIM_LIBRARIES='"$(LIBRARIES)"'
LIBRARIES = $(shell for p in $(PKGS); do \
	printf '%s%s %s' "$$comma" $${p%-0.1} $$(pkg-config --modversion $$p); comma=', '; done)

$(B)/tests/%: tests/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d \
		$(LDFLAGS_$(VARIANT)) $(LDFLAGS) -o $@ $< $(LIB) -lcunit $(LDLIBS_ALL)

CUDA_BUILT = $(CUDA_TESTS) $(GPU_TESTS) $(PTX_BUILT) $(CUDNN_TESTS) $(if $(CUDA_FLAGS),$(DOUBLES))
tests: $(UNIT) $(EXEC_TESTS) $(FUZZ) $(CUDA_BUILT) ## build the test programs

$(B)/tests/fuzz/%: CPPFLAGS += $(if $(filter fuzz,$(VARIANT)),-Dmain=own_main)
fuzzers: $(FUZZ) ## build the fuzzers alone (VARIANT=fuzz: for libFuzzer)

# The same with a main that tries the texts of tests/fuzz/corpus.
REPLAYS = $(patsubst tests/fuzz/fuzz_%.c,$(B)/tests/fuzz/replay_%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(LIB)
	@mkdir -p $(@D)
	$(CC) -Dmain=own_main $(CPPFLAGS) $(CFLAGS_ALL) -Wno-missing-prototypes $(LDFLAGS_$(VARIANT)) $(LDFLAGS) \
		-o $@ $(filter %.c,$^) $(LIB) $(LDLIBS_ALL)
replays: $(REPLAYS) ## build the programs that try the fuzzers' kept texts again

unit: $(UNIT) ## build the unit and property tests alone

twins: $(TWIN_TESTS) ## build the tests of the kernels' twins alone

list-twins: # for tests/run.sh
	@echo $(TWIN_TESTS)

ptx: $(if $(CUDA_FLAGS),$(KERNELS_PTX) $(B)/ptx/libcudart.so.13) # for tests/run_long.sh

kernels-report: $(KERNELS_LOGS) $(KERNELS_PTX) ## registers, spills and shared memory of each GPU kernel
	@python3 scripts/kernels_report.py

gpu-tests: $(GPU_TESTS) ## build the tests of the kernels for a real GPU (scripts/gpu_check.sh runs them)

check: all tests ## everything that must never break
	bash tests/run.sh

check-long: ## fuzzing, soak, random configs
	bash tests/run_long.sh

check-faults: all $(B)/tests/exec/test_faults ## faults of a job: time, exit code and line (as root: hosts, too)
	bash tests/exec/test_faults.sh
	bash tests/root/test_faults_cluster.sh

check-root: all tests ## several hosts in namespaces, CPU quotas, Slurm (as root)
	bash tests/root/test_hosts.sh
	bash tests/root/test_slurm.sh

validate: all ## published measurements predicted, within limits
	python3 scripts/validate.py

bench: all $(BENCH) ## figures of the simulator
	@set -e; for b in $(BENCH); do $$b; done

bench-accuracy: all ## predicted against measured on 12 configs
	bash scripts/bench_accuracy.sh

bench-testbed: all ## the same on test-beds with shaped links; needs root
	python3 scripts/bench_testbed.py

# What the tables of commands and options say, for man and the shells.
SHARE = $(B)/share/man/man1/stepsim.1 $(B)/share/bash-completion/completions/stepsim \
	$(B)/share/zsh/site-functions/_stepsim $(B)/share/fish/vendor_completions.d/stepsim.fish
share: $(SHARE) ## man page and completions, in build/release/share

$(B)/share/man/%: KIND = man
$(B)/share/bash-completion/%: KIND = bash
$(B)/share/zsh/%: KIND = zsh
$(B)/share/fish/%: KIND = fish
$(SHARE): $(B)/stepsim
	@mkdir -p $(@D)
	$(B)/stepsim generate $(KIND) > $@

PREFIX ?= /usr/local
ROOT = $(DESTDIR)$(PREFIX)
PLUGINS = $(EXEC_OBJECT) $(CUDA_OBJECT)
DOCS = README.md $(wildcard LICENSE NOTICE CHANGELOG.md) docs
install: all share ## into PREFIX (/usr/local), below DESTDIR if that is set
	install -D $(B)/stepsim $(ROOT)/bin/stepsim
	$(foreach o,$(PLUGINS),install -m 644 -D $o $(ROOT)/lib/stepsim/$(notdir $o) &&) true
	mkdir -p $(ROOT)/share/stepsim $(ROOT)/share/doc/stepsim
	cp -R configs $(ROOT)/share/stepsim/
	cp -R $(DOCS) $(ROOT)/share/doc/stepsim/
	$(foreach f,$(SHARE),install -m 644 -D $f $(ROOT)/$(f:$(B)/%=%) &&) true

uninstall: ## what `make install` put into PREFIX
	rm -f $(ROOT)/bin/stepsim $(SHARE:$(B)/%=$(ROOT)/%)
	rm -rf $(ROOT)/lib/stepsim $(ROOT)/share/stepsim $(ROOT)/share/doc/stepsim

# Packages hold the portable build without CUDA, whose libraries are NVIDIA's.
dist deb wheel: ## a relocatable tarball, a Debian package, a wheel for pip, in build/
	$(MAKE) -s VARIANT=portable CUDA=0 EXEC=1 all share
	+bash scripts/package.sh $@

gpu-bundle: ## an archive that checks an unprepared GPU machine, in build/ (CUDA_ARCHS=90: for H100 alone)
	$(MAKE) -s VARIANT=portable CUDA=1 EXEC=1 all share gpu-tests
	+bash scripts/package.sh $@

# Every file of C, C++ and CUDA in the look of .clang-format, by the version that it names.
format: ## the tree in the look of .clang-format
	@bash scripts/format.sh

clean: ## remove build/
	rm -rf build

help: ## this list
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

-include $(OBJ:.o=.d) $(CUDA_OBJ:.o=.d) $(TWIN_OBJ:.o=.d) $(CUDART_OBJ:.o=.d) \
	$(addprefix $(B)/twin/,cublaslt.d cudnn.d cudnn_graph.d nccl.d) $(CUDA_TESTS:=.d) \
	$(GPU_TESTS:=.d) $(PTX_OBJ:.o=.d) $(addsuffix .d,$(filter %.ptx,$(PTX_BUILT))) \
	$(CUDNN_TESTS:=.d) $(UNIT:=.d) $(EXEC_TESTS:=.d) $(FUZZ:=.d) $(BENCH:=.d)
