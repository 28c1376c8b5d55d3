# Two commands set everything up:  make demo  runs the main job,  make test  passes the tests.
PY ?= python3.11
V := .venv
BIN := $(V)/bin
UV := VIRTUAL_ENV=$(CURDIR)/$(V) $(BIN)/uv
export UV_COMPILE_BYTECODE = 1
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
.PHONY: demo test setup lint bench docs soak lock clean

demo: $(V)/.core
	$(BIN)/calibrant run testbed --preset quick
	$(BIN)/calibrant board testbed
	$(BIN)/calibrant report testbed -o report.html

test: $(V)/.all lint
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

setup: $(V)/.all

lint: $(V)/.all
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check -q src tests examples benchmarks
	$(BIN)/mypy
	@! grep -nE 'https?:|file:|index-url|find-links' requirements/*.lock

bench: $(V)/.all
	$(BIN)/python -m benchmarks

docs: $(V)/.all
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q -d site

soak: $(V)/.all
	for round in 1 2 3 4 5; do $(BIN)/python -m pytest tests/crash tests/engine || exit 1; done

lock: $(V)/.all
	$(COMPILE) pyproject.toml requirements/build.in -o requirements/core.lock
	$(COMPILE) pyproject.toml requirements/build.in requirements/dev.in -o requirements/all.lock

clean:
	rm -rf $(V) site report.html calibrant.db*

$(V)/.core: requirements/core.lock pyproject.toml
	$(PY) -m venv --without-pip $(V)
	$(PY) -m pip --python $(BIN)/python install -q "uv>=0.9,<0.14"
	$(UV) pip install -q --require-hashes -r requirements/core.lock
	$(UV) pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(V)/.all: requirements/all.lock $(V)/.core
	$(UV) pip install -q --require-hashes -r requirements/all.lock
	@touch $@
