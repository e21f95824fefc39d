# make run    the main job on data that ships with scikit-learn, ending in a page to read
# make test   everything, with the real Kafka broker and the real Prometheus
# make coverage   the same, and how much of each room ran: twice the time, for Python's tracer is slow
# make check  what can be said without running much: lint, format, types, who imports whom, the examples in docstrings
# make bench  whole commands beside their rivals, and the parts of which they are made
# make docs   the manual as a site to read without network
# make lock   the versions of everything, anew; make sbom: what is in the image
# All set-up happens here: a virtual environment of its own, from the lock files.

PYTHON ?= python3
VENV := .venv
unexport PYTHONDONTWRITEBYTECODE  # each of hundreds of processes would compile every source that it imports
BIN := $(VENV)/bin

.PHONY: run lint check test coverage bench docs lock sbom clean

run: $(VENV)/runnable
	$(BIN)/stream-engine demo --state demo

lint: $(VENV)/installed
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/mypy

check: lint
	$(BIN)/python -m pytest -q -n 2 tests/house/test_layers.py tests/papers/test_kept_results.py stream_engine connectors
	$(BIN)/python -m tests.house.weight | tail -1

# Three at once on two cores: those that wait for servers leave room. What the tests compile, with checks of bounds, is
# compiled first, once, beside what is installed for tests and reads the sources.
test: $(VENV)/runnable
	NUMBA_BOUNDSCHECK=1 $(BIN)/stream-engine warm-up > /dev/null & warm=$$!; $(MAKE) --no-print-directory lint && wait $$warm
	$(BIN)/python -m pytest -n 3

coverage: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 --cov --cov-report=

bench: $(VENV)/installed
	$(BIN)/python -m tests.benchmarks

docs: $(VENV)/installed
	$(BIN)/python -m deploy.manual > /dev/null
	$(BIN)/python -m sphinx -q -W --keep-going -c deploy/manual . build/manual
	@echo "open build/manual/stream_engine/docs/index.html"

# What a run needs, and nothing else; what tests, checks and pages need comes on top when they are first asked for.
$(VENV)/runnable: requirements-runtime.lock pyproject.toml deploy/make-venv deploy/install-locked deploy/installer.lock
	PYTHON="$(PYTHON)" sh deploy/make-venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/runnable requirements.lock deploy/add-extras
	sh deploy/add-extras $(VENV)
	touch $@

# The locks are for every platform and Python that pyproject.toml allows. The one for the image holds what a run needs,
# in the versions that were tested; the tool that lists it for the image and the one that installs have locks of their own.
COMPILE := $(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --no-strip-extras --generate-hashes --no-emit-index-url
lock: $(VENV)/installed
	$(BIN)/pip install --quiet uv
	$(COMPILE) pyproject.toml --all-extras --upgrade --output-file requirements.lock
	$(COMPILE) pyproject.toml --constraint requirements.lock --upgrade --output-file requirements-runtime.lock
	echo cyclonedx-bom | $(COMPILE) --python-version 3.11 --upgrade --output-file deploy/sbom.lock -
	printf 'uv\nsetuptools-scm\n' | $(COMPILE) --python-version 3.11 --constraint requirements.lock --upgrade --output-file deploy/installer.lock -

# What is in the image, as a file that scanners read: the same list that the image carries as /opt/engine/sbom.cdx.json.
sbom:
	$(PYTHON) -m venv .cache/runtime
	.cache/runtime/bin/pip install --quiet --require-hashes -r requirements-runtime.lock
	.cache/runtime/bin/pip install --quiet --require-hashes -r deploy/installer.lock
	.cache/runtime/bin/pip install --quiet --no-build-isolation --no-deps .
	PYTHON=$(PYTHON) sh deploy/make-sbom .cache/runtime/bin/python sbom.cdx.json

clean:
	rm -rf $(VENV) .cache demo build *.egg-info .coverage* .mypy_cache .ruff_cache .pytest_cache
