# One make file for people and machines. `make` alone lists what it can do.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PROFILE ?= sample
DATA ?=
CORES ?= 2
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH := torch==2.13.0
# Modules are compiled when they are first imported, not all 250 packages at once.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Apart from the environment, whose rich its browser of results does not go with.
MUTMUT := mutmut==3.8.1 libcst==1.9.0 setproctitle==1.3.8
TESTS ?=
LAB ?=
NEEDED_MB := 6000
ARGUMENTS = --profile $(PROFILE) --cores $(CORES) $(if $(DATA),--data $(DATA))

help:
	@echo "make TARGET [PROFILE=sample|paper] [DATA=folder with real files] [CORES=2]"
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv with Python 3.11 and everything in requirements.lock

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "make: no $(PYTHON) found: install Python 3.11 or say PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "make: $(PYTHON) is $$($(PYTHON) --version), ragkit needs Python 3.11 (py-irt refuses 3.12): say PYTHON=/path/to/python3.11" >&2; exit 1; }
	@free=$$(df -Pm . | awk 'NR == 2 {print $$4}'); if [ ! -d $(VENV)/lib ] && [ "$$free" -lt $(NEEDED_MB) ]; then echo "make: $$free MB free here, the environment needs $(NEEDED_MB) MB" >&2; exit 1; fi
	@echo "setting up $(VENV), a few minutes the first time"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25"
	$(PIP) $(TORCH)
	$(PIP) -r requirements.lock
	$(PIP) --no-deps -e .
	@$(BIN)/ragkit models fetch --offline-set || echo "make: the small models did not come; what needs them will say so: ragkit models fetch --offline-set" >&2
	@if git rev-parse --git-dir >/dev/null 2>&1; then git config diff.ipynb.textconv "$(BIN)/ragkit notebook code"; fi
	@touch $(READY)

lab: $(READY)  ## open JupyterLab on a map of the notebooks and what was run
	@$(BIN)/ragkit notebook index
	@install -D -m 644 ragkit/report/site/pages/overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@# 37a8 is JupyterLab's own mark of the workspace "default"; a layout that was changed later is kept.
	@[ -e build/lab/default-37a8.jupyterlab-workspace ] || install -D -m 644 \
		ragkit/report/site/pages/workspace.json build/lab/default-37a8.jupyterlab-workspace
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.workspaces_dir=build/lab \
		--LabApp.default_url=/lab/tree/build/index.ipynb $(LAB)

data: $(READY)  ## show every data file: present, partial, missing, and how to get it
	@$(BIN)/ragkit data status $(if $(DATA),--data $(DATA))

reproduce: $(READY)  ## run every notebook that the data allows; what is fresh is not run again
	@$(BIN)/ragkit reproduce $(ARGUMENTS)

figures: $(READY)  ## export figures/ and data/results/; with STYLE=acl|ieee|slides draw them for a paper
ifdef STYLE
	@$(BIN)/ragkit figures --style $(STYLE) --profile $(PROFILE) $(if $(DATA),--data $(DATA))
else
	@$(BIN)/ragkit reproduce --profile paper --cores $(CORES) $(if $(DATA),--data $(DATA)) --export
	@$(BIN)/ragkit readme
endif

report: $(READY)  ## run what is not fresh, build the site build/PROFILE/site and say where it is
	@$(BIN)/ragkit reproduce $(ARGUMENTS) --report

test: $(READY)  ## run the fast tests
	$(BIN)/python -m pytest -n $(CORES) --dist loadfile $(TESTS)

bench: $(READY)  ## measure speed against named peers, as ratios of one run
	$(BIN)/python -m tests.bench

mutants: $(READY)  ## change the metrics, likelihoods and votes: does a test notice each change?
	@test -d build/mutmut || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/mutmut $(MUTMUT)
	PYTHONPATH=build/mutmut $(BIN)/python -m tests.mutants

check: $(READY)  ## lint, format and look for notebooks with outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb

lock: $(READY)  ## resolve pyproject.toml anew into requirements.lock
	$(BIN)/python -m piptools compile --quiet --strip-extras --extra dev --extra site --no-emit-index-url \
	  --no-emit-trusted-host --no-emit-find-links --no-annotate --no-header --upgrade \
	  --output-file requirements.lock pyproject.toml
	sed -i -e "s/+cpu$$//" -e "/^#/d" requirements.lock

clean:  ## remove caches and the environment; never fetched data, results or build/
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis mutants *.egg-info
	find ragkit tests notebooks -name __pycache__ -o -name .ipynb_checkpoints | xargs rm -rf

.PHONY: help setup lab data reproduce figures report test bench mutants check lock clean
