# Entry points; `make help` lists them. Only `test`, `soak` and `demo` install anything, and only what is missing.
SHELL := /bin/bash
CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
release := $(target)/release
packages = $(shell cat tests/packages.txt)

.PHONY: help build demo test packages lint bench-alloc soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One command, so that dependencies are built once, with the same features.
build: ## target/release/thermalloc, libthermalloc.so, the load generator and the example service
	$(CARGO) build --release -p thermalloc-cli -p thermalloc-preload -p bench-memcached -p thermalloc \
	    --lib --bins --example service

demo: build ## memcached under the monitor, with a load; ends with its hottest sites and objects
	CARGO_TARGET_DIR=$(target) bench-memcached/demo

test: packages build ## every test, after installing what they need (tests/packages.txt)
	REQUIRE_MEMCACHED=1 THERMALLOC_TEST_SERVICE=$(abspath $(release)/examples/service) \
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

soak: packages build ## ten minutes of threads that allocate at random, contents checked
	THERMALLOC_SOAK_SECONDS=$(or $(SOAK_SECONDS),600) THERMALLOC_TEST_BIN=$(abspath $(release)) \
	    $(CARGO) test -p thermalloc-tests --profile checked -- soak:: --nocapture

clean: ## removes what was built
	$(CARGO) clean
