# Everything runs from here: `make demo` shows the product, `make test` and `make check` are what CI runs.
# Only relative paths, so that a folder with a space in its name works.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint requirements/constraints.txt
CODE := kb tests scripts $(wildcard benchmarks)

.PHONY: help demo test check soak docs format base pins browser bench clean \
  check-format check-lint check-types check-layers check-docs check-limits
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z%-]*\):.*## /\1\t/p' Makefile | expand -t 12

# The core alone: what a user gets from `pip install kb`.
$(VENV)/.core: pyproject.toml requirements/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "kb needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing the core package into $(VENV)"
	@$(PIP) --editable .
	@touch $@

# The core, every extra that runs without a GPU or a cluster, and the tools of the checks.
$(VENV)/.test: $(VENV)/.core requirements/test.txt
	@echo "installing what the tests need into $(VENV) (PyTorch is large: minutes the first time)"
	@$(PIP) --requirement requirements/test.txt
	@touch $@

demo: $(VENV)/.core ## drafts and sources → triage → reproduction → page, offline, into build/demo
	@$(BIN)/python scripts/demo.py

test: $(VENV)/.test browser ## all tests that need no GPU and no network
	@OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

check: check-format check-lint check-types check-layers check-docs check-limits ## all that needs no run; make -k check shows all of it

check-format: $(VENV)/.test
	@$(BIN)/ruff format --check $(CODE)
check-lint: $(VENV)/.test
	@$(BIN)/ruff check $(CODE)
check-types: $(VENV)/.test
	@$(BIN)/mypy
check-layers: $(VENV)/.test
	@$(BIN)/lint-imports --no-logo
check-docs: $(VENV)/.core
	@$(BIN)/python scripts/docs.py --check
check-limits: $(VENV)/.core
	@$(BIN)/python scripts/limits.py

soak: $(VENV)/.test ## fuzz, kill and race tests at their full counts; prints counts and seeds
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -m soak

docs: $(VENV)/.core ## write the generated parts of docs/ and README.md
	@$(BIN)/python scripts/docs.py

format: $(VENV)/.test ## format and fix what can be fixed
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

base: $(VENV)/.core ## rebuild the machine-written parts of shared/research-kb
	@$(BIN)/python scripts/build_base.py

bench: ## list the comparisons with peers; make bench-NAME runs one
	@ls benchmarks/*.py | sed 's,benchmarks/\(.*\)\.py,make bench-\1,; s,_,-,g'

bench-%: $(VENV)/.test
	@$(BIN)/python benchmarks/$(subst -,_,$*).py $(ARGS)

pins: $(VENV)/.test ## write requirements/constraints.txt from what is installed
	@$(BIN)/python -m pip freeze --exclude-editable --all | grep -v "^pip==" | sed 's/+cpu//' > build/pins && cp build/pins requirements/constraints.txt

browser: # the site's tests need one where KB_REQUIRE_BROWSER=1
	@.ci/browser

clean: ## remove what make built, the virtual environment included
	@rm -rf build $(VENV) kb.egg-info
