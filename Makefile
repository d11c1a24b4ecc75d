PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-lowest check bench clean

demo: .venv/core
	$(BIN)/python -m sfumato.demo demo

test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

# The core, without torch, with the lowest versions that pyproject.toml allows.
test-lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt \
		-e . hypothesis pandas polars pytest pytest-xdist xgboost-cpu
	OMP_NUM_THREADS=1 .venv-lowest/bin/pytest -n auto tests

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Needs the benchmark data: SFUMATO_DATA=<folder> make bench
bench: .venv/dev
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

.venv/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

.venv/dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e '.[dev,neural]'
	touch $@ .venv/core

clean:
	rm -rf .venv .venv-lowest demo
