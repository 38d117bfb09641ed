# Two commands do all the set-up on a fresh machine (Python 3.11+, cargo, git): `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.run-ready
DEVELOP := $(VENV)/.dev-ready
RUST := $(wildcard src/replay_parity/runner/src/*.rs src/replay_parity/runner/tests/*.rs)
SHELLS := $(wildcard scripts/*.sh)
WORKFLOWS := $(wildcard .github/workflows/*.yml)

.PHONY: help demo test lint format schemas benchmarks nightly lock venv clean

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1|/' | column -t -s '|'

demo: $(RUNTIME) ## Compare 0.12.0 with 0.12.1 on the embedded corpus
	$(BIN)/replay-parity run configs/campaigns/demo.yaml

test: $(DEVELOP) ## Run all tests, real engines included
	$(BIN)/python -m pytest

lint: $(DEVELOP) ## Run every linter
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	rustfmt --check --edition 2024 $(RUST)
	$(BIN)/shellcheck .ci/run $(SHELLS)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.support.go_tools actionlint
	$(BIN)/zizmor --offline --quiet --no-progress .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

format: $(DEVELOP) ## Format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	rustfmt --edition 2024 $(RUST)

schemas: $(RUNTIME) ## Write the published JSON Schemas anew
	$(BIN)/python -m replay_parity.stages.schemas schemas

nightly: $(DEVELOP) ## What takes too long for every change: clippy on the engine, benchmarks
	REPLAY_PARITY_NIGHTLY=1 $(BIN)/python -m pytest --durations=20
	$(BIN)/python -m benchmarks

benchmarks: $(DEVELOP) ## Measure the costs as ratios, in one run
	$(BIN)/python -m benchmarks

venv: $(DEVELOP) ## Make the development environment

lock: ## Resolve the dependencies anew (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/run.txt pyproject.toml requirements/build.in
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/dev.txt -c requirements/run.txt pyproject.toml requirements/build.in --group dev

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "replay-parity needs Python 3.11 or newer; none was found on PATH" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The locks are complete, so pip resolves nothing (--no-deps): with extras it would look past a pin at a newer release.
$(RUNTIME): $(VENV)/pyvenv.cfg requirements/run.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(DEVELOP): $(RUNTIME) requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@touch $@

clean: ## Remove what make has made here (not the cache of engines)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist replay-parity-results
