# `make run` starts a server, `make test` runs every test. Each target sets up what it needs first.

BUILD ?= build
TYPE  ?= Release
JOBS  ?= $(shell nproc)

.PHONY: run dev test test-fast build everything bench check setup setup-test clean sanitize fuzz install

run: build
	$(BUILD)/pawl serve --data ./data --http 127.0.0.1:8080 --grpc 127.0.0.1:9090 --admin 127.0.0.1:9091

dev: build
	$(BUILD)/pawl dev

# The server only: no tests, benchmarks or fuzzers.
build: setup
	@scripts/configure $(BUILD) $(TYPE)
	@cmake --build $(BUILD) -j $(JOBS) --target pawl

everything: setup
	@scripts/configure $(BUILD) $(TYPE)
	@cmake --build $(BUILD) -j $(JOBS)

test: setup-test everything
	scripts/test $(BUILD)

# The tests that are over in a moment, for use while editing.
test-fast: setup-test everything
	scripts/test $(BUILD) -L fast

bench: setup
	@scripts/configure $(BUILD) $(TYPE)
	@cmake --build $(BUILD) -j $(JOBS) --target bench
	$(BUILD)/bench

check: setup-test
	scripts/check $(BUILD)

# Finds bad memory accesses and undefined behaviour; `make sanitize SANITIZER=thread` finds data races.
SANITIZER ?= address,undefined
sanitize: setup
	@scripts/configure build-sanitize RelWithDebInfo -DPAWL_SANITIZE=$(SANITIZER)
	@cmake --build build-sanitize -j $(JOBS)
	scripts/test build-sanitize -LE script

# Sends broken bytes to the parsers, guided by coverage. `make fuzz SECONDS_EACH=60 TARGETS="json http"`.
SECONDS_EACH ?= 20
fuzz: setup
	@scripts/configure build-fuzz RelWithDebInfo -DPAWL_SANITIZE=address,undefined -DPAWL_FUZZ=ON
	@cmake --build build-fuzz -j $(JOBS) --target fuzz
	build-fuzz/fuzz --seconds $(SECONDS_EACH) --seed $$(date +%s) $(TARGETS)

install: everything
	cmake --install $(BUILD)

setup:
	@scripts/setup
	@scripts/setup-wasm || echo "setup: without Wasmtime, worlds with WASM modules will say that it is missing"

setup-test: setup
	@scripts/setup test || echo "setup: without the compilers for WASM and clang-format, tests of sample modules and of formatting are skipped"

clean:
	rm -rf $(BUILD) build-*
