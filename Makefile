# Entry points; `make help` lists them. `build`, `lint` and `clean` install nothing; the others only what is missing.
SHELL := /bin/bash
CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
release := $(target)/release
packages = $(shell cat tests/packages.txt)
# The pass for compile-time instrumentation is built where LLVM 16 is, which `packages` may have just installed.
llvm = $(shell command -v clang-16 >/dev/null && command -v llvm-config-16)
plugin = $(if $(llvm),--features thermalloc-instrument/plugin)

.PHONY: help build instrument demo test packages lint bench-alloc bench-paper bench-modes memcached-tests test-real soak stress oracle clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One command, so that dependencies are built once, with the same features.
build: ## target/release/thermalloc, libthermalloc.so, the load generator and the example service
	$(CARGO) build --release -p thermalloc-cli -p thermalloc-preload -p bench-memcached -p bench-modes -p thermalloc \
	    --lib --bins --example service
	$(if $(llvm),$(MAKE) instrument,@echo "without clang-16 and llvm-16-dev: no thermalloc-cc")

instrument: ## target/release/thermalloc-cc, thermalloc-c++, the pass and thermalloc.h (needs clang-16, llvm-16-dev)
	$(CARGO) build --release -p thermalloc-instrument --features plugin
	ln -sf thermalloc-cc $(release)/thermalloc-c++
	cp instrument/include/thermalloc.h $(release)/

demo: build ## memcached under the monitor, with a load; ends with its hottest sites and objects
	CARGO_TARGET_DIR=$(target) bench-memcached/demo

test: packages build ## every test, after installing what they need (tests/packages.txt)
	REQUIRE_MEMCACHED=1 REQUIRE_DH_VIEW=1 REQUIRE_CHROMIUM=1 REQUIRE_PYTHON_READERS=1 THERMALLOC_TEST_BIN=$(abspath $(release)) CARGO_TARGET_DIR=$(abspath $(target)) \
	    THERMALLOC_TEST_SERVICE=$(abspath $(release)/examples/service) \
	    THERMALLOC_FUZZ_SECONDS=$(or $(THERMALLOC_FUZZ_SECONDS),20) PROPTEST_CASES=$(or $(PROPTEST_CASES),300) \
	    $(CARGO) test --workspace --exclude thermalloc-tests --profile checked $(plugin) --no-fail-fast
	THERMALLOC_TEST_BIN=$(abspath $(release)) $(CARGO) test -p thermalloc-tests --profile checked

packages:
	@.ci/install $(packages)

lint: ## format, clippy and documentation, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --profile checked $(plugin) -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc --workspace --no-deps --profile checked $(plugin)

bench-alloc: build ## time and peak memory against glibc and mimalloc, into results/alloc.json
	@.ci/install libmimalloc-dev python3-minimal gcc || echo "without libmimalloc.so real programs are left out"
	$(CARGO) bench -p thermalloc-alloc --bench alloc

bench-paper: packages build ## the paper's experiment on memcached, into results/paper.* and results/items.*
	@.ci/install fonts-dejavu-core util-linux
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper table $(BENCH_PAPER)
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper items

bench-modes: packages build ## programs as distributed in each mode, against native and valgrind, into results/modes.*
	@.ci/install fonts-dejavu-core gzip util-linux
	@.ci/install valgrind libc6-dbg || echo "without valgrind its column is left out"
	$(release)/bench-modes $(BENCH_MODES)

memcached-tests: packages build ## memcached's own tests on instrumented builds, against the plain build
	@.ci/install perl
	CARGO_TARGET_DIR=$(abspath $(target)) $(release)/bench-paper test-suite

test-real: packages build ## zlib, Lua and sqlite from source packages, all instrumented: their tests must pass
	@.ci/install dpkg-dev tcl
	instrument/tests/real/run $(release)

soak: packages build ## ten minutes of threads that allocate at random, contents checked
	THERMALLOC_SOAK_SECONDS=$(or $(SOAK_SECONDS),600) THERMALLOC_TEST_BIN=$(abspath $(release)) \
	    $(CARGO) test -p thermalloc-tests --profile checked -- soak:: --nocapture

stress: packages build ## a thousand rounds of threads that come to fresh code at once, under signals, in mode patch
	THERMALLOC_TEST_ROUNDS=$(or $(STRESS_ROUNDS),1000) THERMALLOC_TEST_BIN=$(abspath $(release)) THERMALLOC_TEST_MODES=emulate,patch \
	    $(CARGO) test -p thermalloc-tests --profile checked -- patched_threads:: --nocapture

oracle: packages build ## an hour of random programs, all modes held against each other, into results/oracle.md
	THERMALLOC_FUZZ_SECONDS=$(or $(ORACLE_SECONDS),3600) THERMALLOC_FUZZ_RESULT=$(abspath results/oracle.md) \
	    THERMALLOC_TEST_BIN=$(abspath $(release)) THERMALLOC_TEST_MODES=pp,emulate,patch \
	    $(CARGO) test -p thermalloc-tests --profile checked -- oracle::random --nocapture

clean: ## removes what was built
	$(CARGO) clean
