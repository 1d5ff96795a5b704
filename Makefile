# Every target sets up what it needs in .venv; nothing is installed on the machine.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help

# Tests start hundreds of processes: what Python has compiled is kept for the next one, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

# A process has one Spark session: on RayDP for tests marked `ray`, all in one process, or without Ray.  Files begin in the
# order of their names: those with Spark, which take longest, before the last ones.  Each process collects all tests, which
# takes ten seconds: there are as many as cores, and the tests on Ray are looked for only where they are.
PYTEST := $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder -n 2
# A test that hangs shows the stacks of its threads, and ends the run: a new process would run it once more.
QUICKLY := --timeout 480 -o faulthandler_timeout=420 --max-worker-restart 0
ON_RAY := tests/real tests/security tests/actors/hosting tests/slackwater/cli tests/slackwater/status/observability \
  tests/slackwater/reading tests/spark_bridge/engine/application

.PHONY: help
help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  %-12s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $(READY)

.PHONY: setup
setup: $(READY)  ## make .venv with everything in it (Java too)

.PHONY: demo
demo: setup  ## run the demo: flights into an embedded S3 server, a crash, comparison with DuckDB, Delta, Iceberg (about 2 minutes)
	$(BIN)/slackwater demo

.PHONY: job
job: setup  ## run flights as a job of a local Ray cluster: submit, watch, stop (about 90 seconds)
	$(BIN)/python -m tests.cluster.cluster_job

.PHONY: test
test: setup  ## run the tests that prove the product (six minutes on two quiet cores)
	$(PYTEST) $(QUICKLY) -m "not (ray or more or long or fault)"
	$(PYTEST) $(QUICKLY) -m "ray and not (more or long)" $(ON_RAY)

PART ?= 1/1

.PHONY: test-more
test-more: setup  ## run more cases, random queries and stories (an hour); PART=2/4 runs a quarter of them
	$(PYTEST) $(QUICKLY) -m "more and not (ray or long)" --part $(PART)
	$(PYTEST) $(QUICKLY) -m "more and ray and not long" --part $(PART)

.PHONY: test-docs
test-docs: setup  ## run every page and example of the documentation (three minutes)
	$(PYTEST) -m long tests/docs

.PHONY: test-long
test-long: setup  ## run whole jobs on Ray: each kind of death, lost nodes, every page and example (an hour)
	$(PYTEST) -m long

.PHONY: faults
faults: setup  ## put each deliberate fault into the code and see a test fail (half an hour)
	$(PYTEST) -m fault

.PHONY: soak
soak: setup  ## kill processes at random: make soak MINUTES=30, or TIMES=20 of each kind; BEHIND=100000 files first
	$(BIN)/python -m tests.real.soak $(if $(TIMES),--times $(TIMES),--minutes $(or $(MINUTES),30)) --behind $(or $(BEHIND),0)

KILLS ?= 50

.PHONY: soak-files
soak-files: setup  ## kill processes of a run that moves files and publishes views: make soak-files KILLS=50 (20 minutes)
	$(BIN)/python -m tests.real.keeping_soak --kills $(KILLS)

SEEDS ?= 10000
START ?= 0

.PHONY: sim
sim: setup  ## run the simulator: SEEDS=10000 stories from START=0 on (docs/design/simulation.md)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --start $(START)

QUERIES ?= 5000
EPOCHS ?= 10000

.PHONY: queries
queries: setup  ## compare random views with answers of Spark and DuckDB: QUERIES=5000, ten a seed, EPOCHS=10000 of graphs, forty a seed
	$(BIN)/python -m tests.spark_bridge.random_queries --queries $(QUERIES) --start $(START)
	$(BIN)/python -m tests.spark_bridge.random_graphs --epochs $(EPOCHS) --start $(START)

DIR ?= .

.PHONY: corpus
corpus: setup  ## run the readers over all files below DIR=..., with limits, and compare with pyarrow and DuckDB
	$(BIN)/python -m tests.corpus $(DIR)

.PHONY: lint
lint: setup  ## run ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config tests/run_time_imports.toml --cache-dir .import_linter_cache/run_time

.PHONY: docs
docs: setup  ## build the site of the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: format
format: setup  ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

PATHWAY := build/pathway/.ready

$(PATHWAY): benchmarks/contenders/pathway.txt
	$(PYTHON) -m venv build/pathway
	build/pathway/bin/python -m pip install --quiet -r $<
	touch $@

.PHONY: pathway
pathway: $(PATHWAY)  ## install Pathway, for comparison in the benchmarks, in an environment of its own

# Without Pathway the benchmarks run without it, and say so.

.PHONY: bench
bench: setup  ## run the benchmarks, side by side with others: writes docs/benchmarks.md (95 minutes)
	-$(MAKE) $(PATHWAY)
	$(BIN)/python -m benchmarks --write

.PHONY: bench-quick
bench-quick: setup  ## run small sizes of the main benchmarks: writes build/benchmarks/quick (3 minutes)
	-$(MAKE) $(PATHWAY)
	$(BIN)/python -m benchmarks --quick

.PHONY: profile
profile: setup  ## profile the CPU of 2,000 small files by process and function, from their names to the committed view
	$(BIN)/python -m benchmarks.cpu_profile

.PHONY: lock
lock:  ## make requirements.lock again from pyproject.toml, with the hashes of every file of each release
	test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet uv; }
	build/lock/bin/uv pip compile --quiet --upgrade --generate-hashes --no-annotate --extra dev --python build/lock/bin/python \
	  --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml > /dev/null

.PHONY: clean
clean:  ## remove .venv and everything built
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find state actors spark_bridge slackwater tests examples benchmarks website -name __pycache__ -prune -exec rm -rf {} +
