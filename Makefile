# One command per wish; each does its own set-up (tools/setup.sh, .venv, web/node_modules) and is fast when repeated.
# `make` alone prints the targets: every line of the form "name: … ## sentence" is one.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
export PYTHON
# One compiler takes up to 1.5 GB: as many at once as there are cores and memory for.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemAvailable/ {m = int($$2 / 1.5e6); print (m < 1) ? 1 : (m < cores) ? m : cores}' /proc/meminfo)

.NOTPARALLEL:
.PHONY: help build demo check test bench fuzz soak fmt dist wheel docs notices clean distclean setup-build venv venv-torch web
help: ## print the targets
	@echo "make TARGET [PYTHON=/path/to/python3]"
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

# ---- what the targets stand on ----

setup-build:
	@tools/setup.sh build page

# The environment sees an installed torch (it is never installed over); see tools/venv.sh.
venv:
	@tools/setup.sh build
	@tools/venv.sh base
venv-torch: venv
	@tools/venv.sh torch

# The page's own code; without a node that can build it the CLI is still made, and says what is left out.
web:
	@tools/web.sh install

build: setup-build venv web ## the command line at build/stepscope, and a .venv whose stepscope is the same
	@tools/cmake_build.sh release build $(JOBS)
	@tools/venv.sh link
	@echo "built build/stepscope; next: build/stepscope --help, or make demo"

# ---- what people type ----

demo: build venv-torch ## train a small GPT under stepscope run, print the report, name the page
	@tools/demo.sh

gallery: build venv-torch ## name the fault of each program in examples/gallery, compare with what it is and costs
	@$(PY) examples/gallery/run.py

check: build ## layers, layout, clang-tidy, ruff, mypy, tsc, notices, 10 s of each fuzz target
	@tools/setup.sh build test check fuzz
	@tools/check.sh $(JOBS)

test: build ## C++ tests under ASan and UBSan, web and Python tests
	@tools/setup.sh build test fuzz browser
	@$(PY) tools/run_tests.py --jobs $(JOBS)

bench: build venv-torch ## speed of reading against simdjson, json.load and HTA; what recording costs a job; as ratios
	@cmake build -DSTEPSCOPE_BENCH=ON >build/configure.log
	@tools/cmake_build.sh release build $(JOBS)
	@$(PY) bench/run.py
	@$(PY) bench/snapshot.py
	@$(PY) bench/recording_cost.py
	@$(PY) bench/flops_profiler_cost.py
	@$(PY) bench/telemetry_cost.py

fuzz: ## fuzz every reader (SECONDS_EACH=300)
	@tools/setup.sh build test fuzz
	@tools/cmake_build.sh fuzz build-fuzz $(JOBS) fuzz_targets
	@tools/fuzz.sh build-fuzz $${SECONDS_EACH:-300}

soak: venv-torch ## the long ones: tests under tsan, an hour of fuzzing, slow Python tests
	@tools/setup.sh build test fuzz
	@tools/cmake_build.sh tsan build-tsan $(JOBS) stepscope_tests
	@tools/doctest.sh build-tsan
	@$(MAKE) build
	@tools/cmake_build.sh strict build-strict $(JOBS) stepscope_tests
	@tools/doctest.sh build-strict --no-skip
	@$(PY) -m pytest -q -m soak tests/python tests/golden || test $$? -eq 5
	@$(MAKE) fuzz SECONDS_EACH=$${SECONDS_EACH:-1200}

fmt: venv ## lay out C++ and Python
	@tools/setup.sh check
	@git ls-files -co --exclude-standard '*.cc' '*.h' | xargs -r clang-format-14 -i
	@$(VENV)/bin/ruff format -q .
	@$(VENV)/bin/ruff check -q --fix .

dist: build ## dist/stepscope-VERSION-linux-ARCH and its .tar.gz: runs without these packages and without a network
	@tools/make_dist.sh build
	@$(PY) -m pytest -q tests/python/test_dist.py

wheel: build ## dist/stepscope-VERSION-py3-none-manylinux….whl: the same as a wheel for pip, without dependencies
	@tools/make_dist.sh build
	@tools/make_wheel.sh dist
	@$(PY) -m pytest -q tests/python/test_wheel.py

docs: build ## write docs/tables.md, check the documents: links, targets, commands and options
	@$(PY) tools/check_docs.py --write

notices: build ## write THIRD_PARTY_NOTICES again from what is linked and bundled
	@$(PY) tools/notices.py build

clean: ## remove what was built (not .venv and web/node_modules)
	rm -rf build build-* dist

distclean: clean ## remove everything that make made
	rm -rf $(VENV) web/node_modules .mypy_cache .ruff_cache .pytest_cache
