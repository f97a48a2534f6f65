# Set-up, demo and checks. `make` alone lists what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
QUICKSTART := notebooks/00_quickstart.ipynb
# JupyterLab refuses to run as root (as in a container) unless it is told to.
LAB_FLAGS := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help setup demo test test-all notebooks docs lint clean

help:
	@echo "make setup         install into $(VENV) (first time: two or three minutes)"
	@echo "make demo          open the quickstart in JupyterLab; CHECK=1 runs it here without a browser"
	@echo "make test          run the tests (without the slow ones)"
	@echo "make test-all      run all tests and every notebook"
	@echo "make notebooks     run every notebook"
	@echo "make docs          build the documentation as a site into site/, with its links checked"
	@echo "make lint          check style and types"
	@echo "make clean         remove $(VENV) and everything that was built"

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	  "winquery needs Python 3.11 or newer, found %d.%d as `$(PYTHON)`; name another one: make setup PYTHON=python3.12" \
	  % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@# What a wheel puts there, so that JupyterLab's launcher offers dashboards.
	@mkdir -p $(VENV)/share/jupyter/labextensions
	@ln -sfn $(CURDIR)/widgets/labextension $(VENV)/share/jupyter/labextensions/winquery
	@$(BIN)/python -m workbench doctor --java || { \
	  echo "no fit Java on this machine: installing one from the Python index (35 MB)"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[java]' && \
	  $(BIN)/python -m workbench doctor --java; }
	@echo "preparing Spark and the kernels on this machine, once (a minute)"
	@$(BIN)/python -m workbench prepare || echo "not prepared: everything works, but first queries take longer"
	@touch $@

$(VENV)/.linters: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

demo: setup
	@$(BIN)/python -m workbench doctor
ifdef CHECK
	$(BIN)/python -m workbench run-notebook $(QUICKSTART)
else
	$(BIN)/jupyter lab $(LAB_FLAGS) $(QUICKSTART)
endif

# Two processes, a file of tests each at a time: half of the time is spent waiting for a browser or for Spark.
TWO := -n 2 --dist loadfile

test: setup
	$(BIN)/python -m pytest -m "not slow" $(TWO)

notebooks: setup
	$(BIN)/python -m pytest --nbval-lax --nbval-cell-timeout=300 notebooks

test-all: setup
	$(BIN)/python -m pytest $(TWO)
	$(MAKE) notebooks

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: $(VENV)/.linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
