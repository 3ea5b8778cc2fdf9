# Entry points; `make help` lists them. `build`, `lint` and `clean` install nothing; the others only what is missing.
SHELL := /bin/bash
CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
release := $(target)/release
packages = $(shell cat tests/packages.txt)

.PHONY: help build instrument demo test packages lint bench-alloc bench-paper memcached-tests soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One command, so that dependencies are built once, with the same features.
build: ## target/release/thermalloc, libthermalloc.so, the load generator and the example service
	$(CARGO) build --release -p thermalloc-cli -p thermalloc-preload -p bench-memcached -p thermalloc \
	    --lib --bins --example service

instrument: ## thermalloc-cc and its LLVM pass, after installing clang-16 and llvm-16-dev
	@.ci/install clang-16 llvm-16-dev || echo "without clang-16 rows with compile-time instrumentation are left out"
	$(CARGO) build --release -p thermalloc-instrument --features plugin || echo "thermalloc-cc is not built"

demo: build ## memcached under the monitor, with a load; ends with its hottest sites and objects
	CARGO_TARGET_DIR=$(target) bench-memcached/demo

test: packages build ## every test, after installing what they need (tests/packages.txt)
	REQUIRE_MEMCACHED=1 THERMALLOC_TEST_BIN=$(abspath $(release)) CARGO_TARGET_DIR=$(abspath $(target)) \
	    THERMALLOC_TEST_SERVICE=$(abspath $(release)/examples/service) \
	    THERMALLOC_FUZZ_SECONDS=$(or $(THERMALLOC_FUZZ_SECONDS),20) PROPTEST_CASES=$(or $(PROPTEST_CASES),300) \
	    $(CARGO) test --workspace --exclude thermalloc-tests --profile checked
	THERMALLOC_TEST_BIN=$(abspath $(release)) $(CARGO) test -p thermalloc-tests --profile checked

packages:
	@.ci/install $(packages)

lint: ## format, clippy and documentation, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --profile checked -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --no-deps --profile checked

bench-alloc: build ## time and peak memory against glibc and mimalloc, into results/alloc.json
	@.ci/install libmimalloc-dev python3-minimal gcc || echo "without libmimalloc.so real programs are left out"
	$(CARGO) bench -p thermalloc-alloc --bench alloc

bench-paper: build instrument ## the paper's experiment on memcached, into results/paper.* and results/items.*
	@.ci/install fonts-dejavu-core util-linux
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper table $(BENCH_PAPER)
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper items

memcached-tests: build instrument ## memcached's own tests on instrumented builds, against the plain build
	@.ci/install perl
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper test-suite

soak: packages build ## ten minutes of threads that allocate at random, contents checked
	THERMALLOC_SOAK_SECONDS=$(or $(SOAK_SECONDS),600) THERMALLOC_TEST_BIN=$(abspath $(release)) \
	    $(CARGO) test -p thermalloc-tests --profile checked -- soak:: --nocapture

clean: ## removes what was built
	$(CARGO) clean
