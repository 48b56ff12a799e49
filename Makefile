PYTHON ?= $(shell command -v python3.11 || command -v python3)

.PHONY: help setup
.DEFAULT_GOAL := help

help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: ## .venv with everything at its pinned version
	@$(PYTHON) tools/environment.py
