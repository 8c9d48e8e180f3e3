# Everything runs inside .venv, which the first command creates; only Python, make and the
# package registry are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# An edited kernel must not meet a stale cache, so the cache is keyed on the package's sources.
SOURCES := $(shell find src -name '*.py' | sort)
SOURCE_KEY := $(shell cat $(SOURCES) | cksum | cut -d' ' -f1)
export NUMBA_CACHE_DIR := $(CURDIR)/.numba_cache/$(SOURCE_KEY)

.PHONY: install demo test lint format bench bench-methods clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,cli,test,dev]"
	touch $@

demo: install
	$(BIN)/python -m fenchel.demo

# two processes: each compiles what it tests, so that more of them would gain little
test: demo
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

# a few minutes: the small problems against every peer that can be installed here; all problems:
# FENCHEL_DATA=... $(BIN)/python benchmarks/run_peers.py
PEERS := matplotlib cyanure glmnetforpython spams-bin ortools highspy[extras]
bench: install
	@for peer in $(PEERS); do $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		"$$peer" || echo "not installed, will be skipped: $$peer"; done
	$(BIN)/python benchmarks/run_peers.py --quick

bench-methods: install
	$(BIN)/python benchmarks/mirror_prox_products.py
	$(BIN)/python benchmarks/table1.py
	$(BIN)/python benchmarks/partial_sampling.py

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .numba_cache demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
