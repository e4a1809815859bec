# Two commands do everything: `make run` and `make test`. Each sets up what it needs first.

BUILD ?= build
TYPE  ?= Release
JOBS  ?= $(shell nproc)

.PHONY: run dev test build bench check setup clean sanitize install

run: build
	$(BUILD)/pawl serve --data ./data --http 127.0.0.1:8080 --grpc 127.0.0.1:9090 --admin 127.0.0.1:9091

dev: build
	$(BUILD)/pawl dev

test: build
	scripts/test $(BUILD)

build: setup
	@scripts/configure $(BUILD) $(TYPE)
	cmake --build $(BUILD) -j $(JOBS)

bench: build
	$(BUILD)/bench

check: setup
	scripts/check $(BUILD)

# Address and undefined behaviour; `make sanitize SANITIZER=thread` for the other.
SANITIZER ?= address,undefined
sanitize: setup
	@scripts/configure build-sanitize RelWithDebInfo -DPAWL_SANITIZE=$(SANITIZER)
	cmake --build build-sanitize -j $(JOBS)
	cd build-sanitize && ctest --output-on-failure -j 2

install: build
	cmake --install $(BUILD)

setup:
	@scripts/setup
	@scripts/setup-wasm || echo "setup: without Wasmtime, worlds with WASM modules will say that it is missing"

clean:
	rm -rf $(BUILD) build-*
