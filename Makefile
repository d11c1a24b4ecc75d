PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-spark test-lowest test-all mutants wheel check bench page clean

demo: .venv/core
	$(BIN)/python -m sfumato.demo demo

test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow"

test-slow: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m slow tests

# Everything. Without Java, Spark is left out.
test-all: test test-slow test-lowest mutants
	if command -v java >/dev/null; then $(MAKE) test-spark; else echo "no Java: Spark is not tested"; fi

# Breaks the sources in many places, one at a time (tests/mutants.toml): the tests must notice each.
mutants: .venv/dev
	$(BIN)/python tests/mutants.py

# Needs Java. Not among the other tests: a Spark takes a while to start.
test-spark: .venv/dev
	$(INSTALL) 'pyspark>=4.0'
	$(BIN)/pytest tests/data/test_spark.py

# The core, without torch, with the lowest versions that pyproject.toml allows.
test-lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt \
		-e . hypothesis pandas polars pytest pytest-xdist xgboost-cpu
	OMP_NUM_THREADS=1 .venv-lowest/bin/pytest -n auto -m "not slow" tests

# A wheel as it would be published, and as someone would install it.
wheel: .venv/dev
	rm -rf dist build/wheel-check
	$(BIN)/python -m build --wheel --outdir dist
	$(BIN)/twine check --strict dist/*.whl
	$(PYTHON) -m venv build/wheel-check
	build/wheel-check/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build && wheel-check/bin/python -c "import sfumato; print('sfumato', sfumato.__version__)"
	build/wheel-check/bin/sfumato --help > /dev/null

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Needs the benchmark data: SFUMATO_DATA=<folder> make bench. Left out are scripts that run for hours, or want to be
# told what to run: each says so at its head.
BENCH := accounting release scale tabular outcome declarations images ceilings merf hp locally_linear
bench: .venv/dev
	for script in $(BENCH); do $(BIN)/python benchmarks/$$script.py || exit 1; done
	$(MAKE) page

# docs/benchmarks.md and README's table, from the results that are there.
page: .venv/dev
	$(BIN)/python benchmarks/page.py

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
