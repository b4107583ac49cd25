# Two commands matter: `make demo` and `make test`.  Each needs Python 3.11, 3.12 or 3.13
# (with venv and pip), make and a package index, and makes what else it needs under .venv.
#
#   make demo          the benchmark: every program, eager against compiled
#   make test          the test suite, on every core, of functions with many cases an eighth, others
#                      each day (ROTATION=number: those of another day); then alone what measures
#                      time or memory
#   make test-all      with all cases
#   make test-versions a part of the suite on every supported Python that is here, with the oldest
#                      and the newest NumPy
#   make env           .venv, with all that tests need
#   make lint          ruff, mypy on the installed package, and, both strict, mypy and pyright on the
#                      examples
#   make fuzz N=5000   random programs against NumPy; SEED=0 (or random), SAVE=folder for failures,
#                      CONTROL=1 for those with branches, loops and views, STATEFUL=1 for
#                      those that use globals, closures, objects and containers as well,
#                      SIZES=1 for those with arrays that loops shrink and grow
#   make test-cuda-host
#                      the differential suite, programs of the corpus and random ones on the emulated
#                      CUDA device (docs/cuda.md), which needs g++ or ziglang; PROGRAMS=2000
#   make test-gpu      the same on the first GPU, some of it under NVIDIA's compute-sanitizer; it needs
#                      a GPU with its driver, and compute-sanitizer (of the CUDA toolkit) on PATH.
#                      In parts, of at most 8 minutes on 16 cores, with a summary: test-gpu-programs,
#                      -random, -differential-1, -differential-2, -cuda, -sanitizers
#   make bench-gpu     times on the first GPU, beside CuPy, JAX and torch where they are installed
#   make clean         remove the environments
#
# PYTHON=/path/to/python picks the interpreter, VENV=dir the environment's folder.

VENV ?= .venv
TYPES_VENV ?= .venv-types
N ?= 2000
SEED ?= 0

BIN := $(VENV)/bin/python
TYPES_BIN := $(abspath $(TYPES_VENV))/bin/python
PIP_FLAGS := --disable-pip-version-check --quiet --retries 10 --timeout 60

# An interpreter counts when it runs, is new enough and can make environments: version managers put
# names on PATH that only print an error.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && break; done)
endif

# To collect the others takes longer than most of these.
ALONE = $(shell grep -rl --include='test_*.py' 'alone' tests)
CUDA_HOST := --on-device /device:CUDAHOST:0 -m "not alone" tests/differential
GPU := /device:GPU:0
SANITIZER := compute-sanitizer --error-exitcode 1 --tool
PROGRAMS ?= 2000

.PHONY: demo env test test-all test-versions test-cuda-host test-gpu bench-gpu gpu-is-there lint \
        style types types-install types-check fuzz clean
.DELETE_ON_ERROR:

# Child processes of tests and the second worker read the bytecode that the first one has written.
unexport PYTHONDONTWRITEBYTECODE

demo: $(VENV)/stamp-bench
	$(BIN) -m fusec bench --quick

env: $(VENV)/stamp-test

test: ONE_CASE_IN := 8
test-all: ONE_CASE_IN := 1
test test-all: $(VENV)/stamp-test
	$(BIN) -m pytest -n auto --maxprocesses 8 --durations 20 --one-case-in $(ONE_CASE_IN) \
	    -m "not alone"; \
	  beside=$$?; \
	  $(BIN) -m pytest -n 2 --one-in 200 $(CUDA_HOST); emulated=$$?; \
	  $(BIN) -m pytest -m alone $(ALONE) && exit $$((beside + emulated))

# All of it: some 40 minutes on two cores.  What is left out asks for plans of one device.
test-cuda-host: $(VENV)/stamp-test
	$(BIN) tests/cuda/emulated_campaign.py --published
	$(BIN) tests/cuda/emulated_campaign.py -n $(PROGRAMS) --seed $(SEED)
	$(BIN) -m pytest -n auto --maxprocesses 8 $(CUDA_HOST)
	$(BIN) -m pytest tests/cuda tests/devices/test_cuda_host.py tests/devices/test_own_memory.py

# Each part takes at most some 8 minutes on 16 cores; tests of kernels share the GPU.
GPU_PARTS := programs random differential-1 differential-2 cuda sanitizers
GPU_TESTS := $(BIN) -m pytest -n auto --maxprocesses 12

test-gpu: gpu-is-there
	@$(foreach part,$(GPU_PARTS),begin=$$(date +%s); \
	  $(MAKE) --no-print-directory test-gpu-$(part) && said=passed || { said=FAILED; bad=1; }; \
	  summary="$${summary}$(part): $$said in $$(( $$(date +%s) - begin )) s\n"; ) \
	  printf "\n$$summary"; exit $${bad:-0}

test-gpu-programs: gpu-is-there
	$(BIN) tests/cuda/emulated_campaign.py --device $(GPU) --published

test-gpu-random: gpu-is-there
	$(BIN) tests/cuda/emulated_campaign.py --device $(GPU) -n $(PROGRAMS) --seed $(SEED)

test-gpu-differential-1: gpu-is-there
	$(GPU_TESTS) --on-device $(GPU) -m "not alone" $(wildcard tests/differential/test_[a-l]*.py)

test-gpu-differential-2: gpu-is-there
	$(GPU_TESTS) --on-device $(GPU) -m "not alone" $(wildcard tests/differential/test_[m-z]*.py)

test-gpu-cuda: gpu-is-there
	$(GPU_TESTS) tests/cuda tests/devices/test_own_memory.py

test-gpu-sanitizers: gpu-is-there
	@command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not on PATH: it is a" \
	  "part of NVIDIA's CUDA toolkit" >&2; exit 1; }
	for tool in memcheck racecheck synccheck; do $(SANITIZER) $$tool \
	  $(BIN) tests/cuda/emulated_campaign.py --device $(GPU) -n 40 --seed $(SEED) || exit 1; done

bench-gpu: gpu-is-there
	$(BIN) -m fusec bench --suite gpu

gpu-is-there: $(VENV)/stamp-gpu
	@$(BIN) -c 'import sys; from fusec.core import gpus; sys.exit(gpus.missing() or 0)'

# TESTED=python names an interpreter that has just run the whole suite.
test-versions: $(VENV)/stamp-venv
	$(BIN) .ci/versions.py $(if $(TESTED),--tested $(TESTED))

fuzz: $(VENV)/stamp-test
	$(BIN) tests/fuzz --programs $(N) --seed $(SEED) $(if $(SAVE),--save $(SAVE)) \
	  $(if $(CONTROL),--control) $(if $(STATEFUL),--stateful) $(if $(SIZES),--sizes)

lint: style types

style: $(TYPES_VENV)/stamp-dev
	$(TYPES_BIN) -m ruff check .

# mypy does not see editable installs whose folders are mapped, so it reads a plain install, from a
# folder where `fusec` cannot mean the checkout.  A build folder left behind would be installed.
# The folder of a file that is checked is a root of packages: beside a file of tests/, an example's
# `distributed` would be tests/distributed.
types: types-install types-check

types-install: $(TYPES_VENV)/stamp-dev
	rm -rf build
	$(TYPES_BIN) -m pip install $(PIP_FLAGS) --force-reinstall --no-deps .
	rm -rf build

types-check:
	cd $(TYPES_VENV) && $(TYPES_BIN) -m mypy --config-file $(CURDIR)/pyproject.toml -p fusec
	cd $(TYPES_VENV) && $(TYPES_BIN) -m mypy --config-file $(CURDIR)/pyproject.toml --strict \
	  $(CURDIR)/examples/*.py
	cd $(TYPES_VENV) && $(TYPES_BIN) -m mypy --config-file $(CURDIR)/pyproject.toml --strict \
	  $(CURDIR)/tests/typed_calls.py
	$(TYPES_BIN) -m pyright --pythonpath $(TYPES_BIN)

clean:
	rm -rf $(VENV) $(VENV)-versions $(TYPES_VENV) build

# A stamp is written last, so an interrupted step starts again.
$(VENV)/stamp-venv $(TYPES_VENV)/stamp-venv:
	@$(if $(PYTHON),,echo "fusec needs Python 3.11, 3.12 or 3.13 with venv and pip; none of python3.13," \
	  "python3.12, python3.11, python3 on PATH is. Install one (on Debian also python3-venv), or" \
	  "name it: make PYTHON=/path/to/python" >&2; exit 1)
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "fusec needs Python 3.11, 3.12 or 3.13 with venv and pip;" \
	  "PYTHON=$(PYTHON) is not" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(@D)
	@touch $@

$(VENV)/stamp-bench: pyproject.toml $(VENV)/stamp-venv
	$(BIN) -m pip install $(PIP_FLAGS) -e '.[bench,checkpoint]'
	@touch $@

$(VENV)/stamp-test: pyproject.toml $(VENV)/stamp-venv
	$(BIN) -m pip install $(PIP_FLAGS) -e '.[test,test-cuda,bench,packages]'
	@touch $@ $(VENV)/stamp-bench

$(VENV)/stamp-gpu: pyproject.toml $(VENV)/stamp-test
	$(BIN) -m pip install $(PIP_FLAGS) -e '.[test,test-cuda,bench,packages,cuda]'
	@touch $@

$(TYPES_VENV)/stamp-dev: pyproject.toml $(TYPES_VENV)/stamp-venv
	rm -rf build
	$(TYPES_BIN) -m pip install $(PIP_FLAGS) '.[dev]'
	rm -rf build
	@touch $@
