# make run    the main job on data that ships with scikit-learn, ending in a page to read
# make test   everything, with the real Kafka broker and the real Prometheus
# make check  what can be said without running much: lint, format, types, who imports whom, the examples in docstrings
# make bench  every stage beside its rival or floor
# All set-up happens here: a virtual environment of its own, from the lock file.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run check test bench lock clean

run: $(VENV)/installed
	$(BIN)/stream-engine demo --state demo

check: $(VENV)/installed
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 tests/house/test_layers.py stream_engine connectors

test: check
	$(BIN)/python -m pytest -n 2 --cov --cov-report=

bench: $(VENV)/installed
	$(BIN)/python -m tests.benchmarks

$(VENV)/installed: requirements.lock pyproject.toml deploy/make-venv
	PYTHON="$(PYTHON)" sh deploy/make-venv $(VENV)
	touch $@

# The lock is for every platform and Python that pyproject.toml allows.
lock: $(VENV)/installed
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet pyproject.toml --all-extras --universal --no-header --no-annotate --generate-hashes \
		--no-emit-index-url --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) demo build *.egg-info .coverage* .mypy_cache .ruff_cache .pytest_cache
