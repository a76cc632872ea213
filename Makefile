# Each target sets up .venv by itself, and again when pyproject.toml or constraints.txt change.
PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/runtime.stamp
DEV := .venv/dev.stamp
PEERS := .venv-bench/peers.stamp
# Tests start many processes, which would otherwise compile every module again.
export PYTHONDONTWRITEBYTECODE =
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.PHONY: help demo test test-slow check format lint types layers bench
help:
	@echo "make demo       replay the shipped recordings, compare the variants, write a report"
	@echo "make test       run the tests (ARGS='-n 0 -k budget' passes options to pytest)"
	@echo "make test-slow  run the tests marked slow"
	@echo "make check      formatting, lint, types, layers"
	@echo "make bench      measure replay beside other recorders; what must hold (10 minutes)"

demo: $(RUNTIME)
	@$(BIN)/harness demo

# Twice the two cores that are counted on: many tests wait, for other processes or for a time limit.
test: $(DEV)
	@$(BIN)/python -m pytest -n 4 $(ARGS)

test-slow: $(DEV)
	@$(BIN)/python -m pytest -m slow $(ARGS)

check: format lint types layers

format: $(DEV)
	@$(BIN)/ruff format --quiet --check .

lint: $(DEV)
	@$(BIN)/ruff check --quiet .

types: $(DEV)
	@$(BIN)/mypy --no-error-summary

layers: $(DEV)
	@$(BIN)/python -m pytest -q --no-header -p no:randomly tests/test_layers.py

# The other recorders have an environment of their own; where it cannot be made they are left out.
bench: $(DEV)
	@$(MAKE) --no-print-directory $(PEERS) || echo "going on without the other recorders" >&2
	@$(BIN)/python -m benchmarks $(ARGS)

# An environment knows its own path and Python: in a copied checkout, or after an upgrade of
# Python, it is made again.
ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && cat $(RUNTIME) 2>/dev/null),$(CURDIR))
.PHONY: $(RUNTIME)
endif

$(RUNTIME): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "$(PYTHON) is missing or older than 3.11; choose another: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 2; }
	@echo "Setting up .venv, once (needs the package registry, takes about half a minute)" >&2
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) -e .
	@echo "$(CURDIR)" > $@

$(DEV): $(RUNTIME)
	@echo "Adding the developers' tools to .venv, once" >&2
	@$(PIP) -e '.[dev]'
	@touch $@

$(PEERS): benchmarks/requirements-peers.txt constraints.txt
	@echo "Setting up .venv-bench, once (needs the package registry)" >&2
	@$(PYTHON) -m venv --clear .venv-bench
	@.venv-bench/bin/python -m pip install -qq --disable-pip-version-check --retries 1 \
	  --timeout 15 -r benchmarks/requirements-peers.txt
	@touch $@
