# Two commands do everything: `make run` and `make test`. Each sets up what it needs first.

BUILD ?= build
TYPE  ?= Release
JOBS  ?= $(shell nproc)

.PHONY: run dev test build bench check setup setup-test clean sanitize fuzz install

run: build
	$(BUILD)/pawl serve --data ./data --http 127.0.0.1:8080 --grpc 127.0.0.1:9090 --admin 127.0.0.1:9091

dev: build
	$(BUILD)/pawl dev

test: setup-test build
	scripts/test $(BUILD)

build: setup
	@scripts/configure $(BUILD) $(TYPE)
	cmake --build $(BUILD) -j $(JOBS)

bench: build
	$(BUILD)/bench

check: setup-test
	scripts/check $(BUILD)

# Address and undefined behaviour; `make sanitize SANITIZER=thread` for the other.
SANITIZER ?= address,undefined
sanitize: setup
	@scripts/configure build-sanitize RelWithDebInfo -DPAWL_SANITIZE=$(SANITIZER)
	cmake --build build-sanitize -j $(JOBS)
	cd build-sanitize && ctest --output-on-failure -j 2

# Parsers against broken bytes, led by what code they reach. `make fuzz SECONDS_EACH=60 TARGETS="json http"`.
SECONDS_EACH ?= 20
fuzz: setup
	@scripts/configure build-fuzz RelWithDebInfo -DPAWL_SANITIZE=address,undefined -DPAWL_FUZZ=ON
	cmake --build build-fuzz -j $(JOBS) --target fuzz
	build-fuzz/fuzz --seconds $(SECONDS_EACH) --seed $$(date +%s) $(TARGETS)

install: build
	cmake --install $(BUILD)

setup:
	@scripts/setup
	@scripts/setup-wasm || echo "setup: without Wasmtime, worlds with WASM modules will say that it is missing"

setup-test: setup
	@scripts/setup test || echo "setup: without the compilers for WASM and clang-format, tests of sample modules and of formatting are skipped"

clean:
	rm -rf $(BUILD) build-*
