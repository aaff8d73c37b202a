# Set-up needs nothing but Python 3.11+ and make. Every target repairs a half-finished set-up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRA ?= cpu
STAMP := $(VENV)/.ready-$(EXTRA)

.DEFAULT_GOAL := help
.PHONY: help setup quickstart check test power test-quick lint clean bench-client bench-switch

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

setup:  ## install everything into .venv (EXTRA=cpu or gpu); does nothing when it is complete
	@$(PYTHON) scripts/setup.py --venv $(VENV) --extra $(EXTRA)

quickstart: setup  ## prepare the model, run the quickstart sweep, print the verdicts
	@$(BIN)/python -m orchestrator models prepare smollm2-135m-instruct
	@$(BIN)/python -m orchestrator sweep experiments/quickstart.yaml

check: setup  ## lint, types, layers and the quick tests: two minutes
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python -m pytest -m "not engine and not ray and not slow and not power"

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

test: setup  ## everything, the real engine included (about 20 minutes on 2 cores)
	@$(MAKE) --no-print-directory lint
	@# Two processes: a process that has started Ray ignores the ends of its children ever after.
	@$(BIN)/python -m pytest -m "engine or ray"
	@$(BIN)/python -m pytest -m "not engine and not ray and not power"

power: setup  ## how often the statistics find planted defects, at their stated sample sizes
	@$(BIN)/python -m pytest -m power

bench-client: setup  ## our load generator against vllm bench serve, GuideLLM and AIPerf
	@$(BIN)/python benchmarks/client/bench_client.py

bench-switch: setup  ## what the canary switch adds to TTFT, and costs in throughput
	@$(BIN)/python benchmarks/switch/bench_switch.py

clean:  ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
