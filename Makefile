PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
ARGS ?=

# Whoever has it set would pay at each start of a process for what is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format lock crd cluster e2e bench images chart

help: ## what there is to make; ARGS="…" goes to the program behind a target
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## .venv with every package at its pinned version; quick when nothing changed
	@$(PYTHON) tools/environment.py

demo: setup ## two TensorFlow workers on this machine; one is killed, the gang resumes and succeeds
	@$(BIN)/dtj run -f examples/digits/job.yaml --fail worker:1@step=60 $(ARGS)

# Four, whatever the machine has: most of the time a test waits for processes that it has started.
test: setup ## every test that needs no cluster; ARGS="-k gang" for some of them
	$(BIN)/python -m pytest --numprocesses=4 --dist=loadgroup $(ARGS)

lint: setup ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup ## what ruff can put right by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Each lock is whole, and agrees with dev.txt as far as it can. uv keeps pins that still hold; ARGS=--upgrade raises them.
LOCK := UV_CUSTOM_COMPILE_COMMAND="make lock" ../$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate
EVERYWHERE := --universal --override overrides.txt
lock: setup ## requirements/*.txt from requirements/*.in
	cd requirements && $(LOCK) $(ARGS) $(EVERYWHERE) operator.in cli.in worker-cpu.in dev.in -o dev.txt
	cd requirements && $(LOCK) -c dev.txt $(EVERYWHERE) operator.in -o operator.txt
	cd requirements && $(LOCK) -c dev.txt $(EVERYWHERE) operator.in cli.in -o cli.txt
	cd requirements && $(LOCK) -c dev.txt $(EVERYWHERE) worker-cpu.in -o worker-cpu.txt
	cd requirements && $(LOCK) -c dev.txt $(EVERYWHERE) build.in -o build.txt
	cd requirements && $(LOCK) -c dev.txt $(DEVICES)_2_28 worker-gpu.in -o worker-gpu.txt
	cd requirements && $(LOCK) $(ARGS) --override overrides-tpu.txt $(DEVICES)_2_31 worker-tpu.in -o worker-tpu.txt

# Devices have libraries for one platform alone. A lock names what installs there: a wheel of each package, or it fails.
DEVICES := --only-binary :all: --python-platform x86_64-manylinux

crd: setup ## crds/, docs/reference.md and docs/reasons.md from the types in dtj_operator/api
	@$(BIN)/python -m tools.crd

cluster: setup ## a real Kubernetes on this machine, as root, until Ctrl-C; ARGS="--kubernetes=1.34 --nodes=2"
	@$(BIN)/python -m e2e cluster $(ARGS)

e2e: setup ## tests on a real Kubernetes, on that of KUBECONFIG or on its own (as root); ALL=1: every test on both versions
	$(BIN)/python -m e2e suite $(if $(ALL),--all)

bench: ## how much the operator carries, how fast it starts
	$(call later,measures start-up and memory and a burst of 1000 jobs,bench/)

images: ## container images of operator and worker, by docker, podman or buildah; ARGS="--flavours=cpu,gpu"
	@$(PYTHON) tools/images.py $(ARGS)

chart: setup ## lints the Helm chart and renders install.yaml from it; builds Helm, once
	@$(BIN)/python -m e2e.chart

# $(1): what the target will do, $(2): what it waits for.
define later
@echo "make $@ $(1), once $(2) is in the repository; it is not there yet" >&2; exit 1
endef
