# Every target sets up what it needs first: a machine with make and Python 3.11 or later is enough.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The first interpreter that is new enough; a shim that only says "not installed" does not count.
FIND_PYTHON := for python in $$PYTHON python3.11 python3 python3.12 python3.13; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done; true

# pyright brings its own node in a package and its own checker in the wheel; this keeps it from asking whether it is new.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test lint types pytest format constraints clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*## ' Makefile | awk -F ':.*## ' '{ printf "make %-12s %s\n", $$1, $$2 }'

setup: $(READY)  ## make .venv with everything pinned (other targets do this by themselves)

demo: $(READY)  ## ask the embedded model a question that needs a tool
	@$(BIN)/antiphon ask --model local:gemma3-270m --seed 7 "What is 1234 * 56?"

test: lint types pytest  ## everything that must pass before a change lands

lint: $(READY)  ## style and format
	@echo "== ruff check" && $(BIN)/ruff check --quiet .
	@echo "== ruff format" && $(BIN)/ruff format --check --quiet . || { echo "run 'make format'"; exit 1; }

types: $(READY)  ## types, strict in src
	@echo "== pyright" && $(BIN)/pyright

pytest: $(READY)  ## tests, house rules, documentation blocks and examples
	@echo "== pytest" && $(BIN)/python -m pytest

format: $(READY)  ## let ruff write what it can
	@$(BIN)/ruff check --quiet --fix --exit-zero . && $(BIN)/ruff format .

constraints: $(READY)  ## write down the versions that .venv holds
	@$(BIN)/python scripts/constraints.py

clean:  ## remove .venv and every cache
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
	@find src tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): pyproject.toml constraints.txt
	@set -e; \
	python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "no Python 3.11 or later found; install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; \
	fi; \
	echo "== setting up $(VENV) with $$("$$python" --version) (once)"; \
	$(BIN)/python -c '' 2>/dev/null || "$$python" -m venv --clear $(VENV) || { \
		echo "'$$python -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	}; \
	$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'; \
	$(BIN)/python -m pip install -qq --editable '.[cli,local,serve]' --group dev --constraint constraints.txt
	@touch $@
