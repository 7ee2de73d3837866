# Everything that a developer, CI or a newcomer runs. `make help` lists the targets.
SHELL := /bin/sh
PYTHON_BIN := .venv/bin
# Processes that share the tests. They wait for servers half of their time.
WORKERS ?= 4
# By file, since the tests of a file share its servers; in the order of tests/conftest.py.
SHARED = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Containers often tell Python to keep no bytecode. Tests start hundreds of processes: each would compile all it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup run example-stream test test-long test-quick test-differential fuzz-http fuzz-frames test-packages lint fmt type cli-pages docs proto proto-check lock sim bench bench-cluster bench-http bench-txn bench-spark bench-ycsb clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from the lock file (needs Python 3.11 or newer)
	@tools/setup.sh

run: setup ## The story: real flights, schemas that evolve, Spark against pandas; NODES=3 kills leaders meanwhile
	@JAVA_HOME="$$(tools/java.sh)" || exit 1; export JAVA_HOME; \
		exec $(PYTHON_BIN)/python -m examples.nycflights --nodes $(or $(NODES),1)

example-stream: setup ## The pipeline: orders stream in, hourly sums stream out, the driver is killed, and the sums agree
	@JAVA_HOME="$$(tools/java.sh)" || exit 1; export JAVA_HOME; exec $(PYTHON_BIN)/python -m examples.orders

test: setup ## All tests but the long ones (Spark's need Java, which is found or installed); WORKERS=0 for a debugger
	@JAVA_HOME="$$(tools/java.sh)" || true; export JAVA_HOME; \
		$(PYTHON_BIN)/python -m pytest $(SHARED) -m "not long" $(PYTEST_ARGS)

test-long: setup ## The tests that take tens of seconds each: clusters damaged, flooded and upgraded, streams, pages
	@JAVA_HOME="$$(tools/java.sh)" || true; export JAVA_HOME; $(PYTHON_BIN)/python -m pytest $(SHARED) -m long $(PYTEST_ARGS)

# It waits for nobody, so it wants no more processes than there are cores.
test-quick: WORKERS := 2
test-quick: setup ## What is tested in a minute: no server process, no Spark, few examples of each property
	@HYPOTHESIS_EXAMPLES=10 $(PYTHON_BIN)/python -m pytest $(SHARED) -m "not slow and not process and not spark" \
		tests/unit tests/golden tests/property $(PYTEST_ARGS)

test-differential: setup ## Ten thousand generated filters on a million rows, at the node and in Spark (some half an hour)
	@JAVA_HOME="$$(tools/java.sh)" || exit 1; export JAVA_HOME; export DIFFERENTIAL_ROWS=1000000 DIFFERENTIAL_CONDITIONS=10000; \
		$(PYTHON_BIN)/python -m pytest -s --timeout=0 tests/spark/test_spark_differential.py $(PYTEST_ARGS)

fuzz-http: setup ## Ten minutes of odd, damaged and well-meant calls to a gateway (FUZZ_SECONDS=600), with a new seed
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) $(PYTHON_BIN)/python -m pytest -s tests/cluster/test_http_fuzz.py $(PYTEST_ARGS)

fuzz-frames: setup ## Ten minutes of random bytes, frames and header blocks to HTTP/2 without I/O (FUZZ_SECONDS=600), with a new seed
	@PYTHONPATH=tests $(PYTHON_BIN)/python -m support.h2_fuzz --seconds $(or $(FUZZ_SECONDS),600)

test-packages: setup ## Build the packages; install them in empty environments, on each Python and at the lower bounds
	@JAVA_HOME="$$(tools/java.sh)" || true; export JAVA_HOME; $(PYTHON_BIN)/python -m pytest tests/packaging $(PYTEST_ARGS)

sim: setup ## Simulate clusters, each from one seed: SEED=41, or SEEDS=1000 START=0 JOBS=2; RUNS=forced GROUPS=2
	@PYTHONPATH=tests $(PYTHON_BIN)/python -m support.simulation $(foreach name,SEED SEEDS START JOBS RUNS GROUPS,$(if $($(name)),\
		--$(shell echo $(name) | tr A-Z a-z) $($(name))))

lint: setup ## Style, imports and formatting
	@$(PYTHON_BIN)/ruff check .
	@$(PYTHON_BIN)/ruff format --check .

fmt: setup ## Format in place
	@$(PYTHON_BIN)/ruff check --fix .
	@$(PYTHON_BIN)/ruff format .

type: setup ## mypy, strict
	@$(PYTHON_BIN)/mypy

cli-pages: setup ## Write the pages of the command line (docs/cli) from the help of its commands
	@$(PYTHON_BIN)/python tools/cli_pages.py

.venv-docs/.ready: requirements-docs.lock
	@rm -rf .venv-docs && $(PYTHON_BIN)/python -m venv .venv-docs
	@.venv-docs/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements-docs.lock
	@touch $@

docs: setup .venv-docs/.ready ## Build a site of the pages below build/site; a link that leads nowhere fails
	@$(PYTHON_BIN)/python tools/site.py build/pages
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict -f build/pages/mkdocs.yml -d "$(CURDIR)/build/site"

# The newest generator whose stubs check no versions: they run on protobuf 4.21 to 7 (docs/adr/0018). Its wheels end at
# Python 3.12, so on a newer one it looks for an older one beside it.
.venv-proto/.ready: requirements-proto.lock
	@rm -rf .venv-proto && tools/generator.sh .venv-proto
	@touch $@

proto: setup .venv-proto/.ready ## Generate the stubs and the API's reference (docs/api) from the .proto files
	@tools/generate_stubs.sh src

proto-check: setup .venv-proto/.ready ## Fail where the committed stubs, or the API's reference, are stale
	@rm -rf build/stubs build/api && mkdir -p build/stubs && tools/generate_stubs.sh build/stubs build/api
	@for folder in v1 internal; do for stub in build/stubs/cortado/proto/$$folder/*_pb2*; do \
		cmp "$$stub" "proto/$$folder/$$(basename $$stub)" || { echo "stale stub: run 'make proto'" >&2; exit 1; }; done; done
	@diff -r build/api docs/api || { echo "stale reference of the API: run 'make proto'" >&2; exit 1; }
	@echo "stubs and the reference of the API are up to date"

lock: setup ## Resolve the lock files anew (needs uv)
	@tools/lock.sh

bench: setup ## Measure, beside the raw limits of what lies below (writes benchmarks/results/)
	@$(PYTHON_BIN)/python -m benchmarks $(BENCH_ARGS)

bench-cluster: setup ## Measure three nodes beside etcd's three (writes benchmarks/results/cluster/)
	@tools/etcd.sh || true; $(PYTHON_BIN)/python -m benchmarks.cluster $(BENCH_ARGS)

bench-http: setup ## Measure calls through a gateway beside the same by the client (writes benchmarks/results/http/)
	@$(PYTHON_BIN)/python -m benchmarks.http $(BENCH_ARGS)

bench-txn: setup ## Measure transactions on three nodes beside etcd's (writes benchmarks/results/cluster/)
	@tools/etcd.sh || true; $(PYTHON_BIN)/python -m benchmarks.cluster $(BENCH_ARGS) \
		--only txn_1 txn_1_hot txn_10 txn_10_hot txn_row

bench-spark: setup ## Measure Spark on one and three nodes beside JDBC on PostgreSQL (writes benchmarks/results/spark/)
	@JAVA_HOME="$$(tools/java.sh)" || exit 1; export JAVA_HOME; tools/postgres.sh || true; \
		$(PYTHON_BIN)/python -m benchmarks.spark $(BENCH_ARGS)

bench-ycsb: setup ## Measure YCSB's workloads A to F on one and three nodes (writes benchmarks/results/ycsb/)
	@$(PYTHON_BIN)/python -m benchmarks.ycsb $(BENCH_ARGS)

clean: ## Remove what the targets above made
	@rm -rf .venv .venv-docs .venv-proto build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
