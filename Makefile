# Two words are enough: `make run`, `make test`. The rest is for people who work on Toolwarden.

SHELL := /bin/bash
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolwarden
# One target directory for every clone, so that a fresh clone builds warm.
export CARGO_TARGET_DIR ?= $(CACHE)/target

.PHONY: run test tests doctests lint bench versions fuzz soak mutants deny peers conformance

# The gateway on 127.0.0.1:8665, with a small notes server behind it where none is configured.
run:
	cargo run --release -- serve --demo

# Everything CI runs: lints, the doc tests (a permit must not compile elsewhere), then every other test.
test: lint doctests tests

# The hostile kit needs guards that can be switched off, and no other test may be built with these: it runs by itself.
HOSTILE := toolwarden-hostile

# Tests with real MCP programs fail where these are missing, so they are installed first.
tests: peers
	@if cargo nextest --version >/dev/null 2>&1; then \
	  cargo nextest run --workspace --exclude $(HOSTILE) --no-fail-fast && cargo nextest run -p $(HOSTILE) --no-fail-fast; \
	else \
	  echo 'cargo-nextest is not installed, using cargo test (slower): cargo install cargo-nextest --locked'; \
	  cargo test --workspace --exclude $(HOSTILE) --no-fail-fast --lib --bins --tests && cargo test -p $(HOSTILE) --no-fail-fast; \
	fi

doctests:
	cargo test --workspace --exclude $(HOSTILE) --doc

lint:
	@cargo fmt --version >/dev/null 2>&1 || { echo 'rustfmt is missing: rustup component add rustfmt' >&2; exit 1; }
	@cargo clippy --version >/dev/null 2>&1 || { echo 'clippy is missing: rustup component add clippy' >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --workspace --exclude $(HOSTILE) --all-targets -- -D warnings
	cargo clippy -p $(HOSTILE) --all-targets -- -D warnings
	cargo check --locked --manifest-path fuzz/Cargo.toml

# Licences, sources and known vulnerabilities of dependencies; needs cargo-deny (cargo install cargo-deny --locked).
deny:
	cargo deny check licenses bans sources
	@if cargo deny fetch db; then cargo deny check advisories; \
	else echo 'advisories were not checked: their database cannot be fetched here' >&2; exit 1; fi

# Decisions by size of the policy, the store on a file and on PostgreSQL, then the gateway side by side with a direct connection and nginx (SECONDS for each round).
SECONDS_EACH ?= 1
bench:
	cargo bench -p toolwarden-bench
	cargo build --profile dist -p toolwarden -p toolwarden-bench
	$(CARGO_TARGET_DIR)/dist/toolwarden-bench-store $(CARGO_TARGET_DIR)/dist/toolwarden
	$(CARGO_TARGET_DIR)/dist/toolwarden-bench-held $(CARGO_TARGET_DIR)/dist/toolwarden
	$(CARGO_TARGET_DIR)/dist/toolwarden-bench-gateway $(CARGO_TARGET_DIR)/dist/toolwarden $(SECONDS_EACH)

# Two builds side by side, ROUNDS rounds of each row: make versions OLDER=path/to/toolwarden
ROUNDS ?= 10
versions:
	@[ -n "$(OLDER)" ] || { echo 'usage: make versions OLDER=path/to/an/earlier/toolwarden' >&2; exit 2; }
	cargo build --profile dist -p toolwarden -p toolwarden-bench
	$(CARGO_TARGET_DIR)/dist/toolwarden-bench-gateway versions $(OLDER) $(CARGO_TARGET_DIR)/dist/toolwarden $(SECONDS_EACH) $(ROUNDS)

# Mutation tests of the deciding code: hours. SET=deciding|rest, SHARD=K/N for a part. Needs cargo-mutants.
SET ?= deciding
SHARD ?= 0/1
mutants:
	tests/mutants/run $(SET) $(SHARD)

# Instrumented fuzzing, MINUTES per target; needs cargo-fuzz and a nightly toolchain.
MINUTES ?= 2
fuzz:
	fuzz/run $(MINUTES)

# The long versions of tests: TIMES as many random policies, TIMES minutes of killed gateways.
TIMES ?= 20
soak:
	TOOLWARDEN_SOAK=$(TIMES) cargo test -p toolwarden-policy --test judge
	cargo build -p toolwarden-fixture-server
	TOOLWARDEN_SOAK=$(TIMES) cargo test -p toolwarden --test strain

# The real MCP programs that tests talk to, installed once into the cache.
peers:
	tests/peers/install

# The conformance suite against the fixture server itself: the score a gateway in front of it has to reach.
conformance: peers
	cargo build -p toolwarden-fixture-server
	tests/conformance/direct $(CARGO_TARGET_DIR)/debug/toolwarden-fixture-server $(CACHE)/conformance
