# The whole developer interface. `make help` lists it; CI calls nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
OUT := target/$(HOST)/release
OPERATOR_IMAGE := registry.local/rabbitmq-migration-operator:dev
CLIENT_IMAGE := registry.local/client:dev
KUBECONFIG_FLAG := $(if $(filter command line,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG),)
TIMED = scripts/timed

.PHONY: help setup build fmt fmt-check lint unit laws generate generated check image lab-up lab-down lab-killed kubectl \
	e2e demo demo-why demo-clean bench-switch test clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Install Debian packages and build the lab's programs and images (cached)
	$(TIMED) "build the lab" cargo build --release -q --workspace --bin lab
	$(TIMED) "lab programs and images" $(OUT)/lab setup

build: ## Build everything in release mode
	$(TIMED) "build Rust" cargo build --release --workspace

fmt: ## Format all code
	cargo fmt --all

fmt-check:
	cargo fmt --all --check

lint: ## Clippy with the workspace lints, each crate alone, then the workspace
	scripts/one-tls-provider
	$(TIMED) "check each crate alone" scripts/check-each
	$(TIMED) "lint the workspace" cargo clippy --release --workspace --all-targets --features decide/toy -- -D warnings

deny: ## Licenses, bans and sources of all dependencies; installs cargo-deny where it is missing
	command -v cargo-deny > /dev/null || cargo install --quiet --locked cargo-deny
	cargo deny check licenses bans sources

unit: ## Unit, story, law and tidy tests
	$(TIMED) "unit, story and law tests" cargo test --release --workspace --features decide/toy

laws: ## The law tests and the mutants that they must kill
	cargo test --release -p decide --features toy --test laws --test mutants

generate: build ## Write generated files: crds/
	$(OUT)/operator crd > crds/rabbitmqmigrations.yaml

generated: generate
	git diff --exit-code -- crds

check: fmt-check lint unit generated ## All of these and every ring but end to end

image: build ## Pack operator and test clients into images and load them into the lab
	$(TIMED) "pack and load images" scripts/images $(OUT) $(OPERATOR_IMAGE) $(CLIENT_IMAGE)

lab-up: setup ## Bring up the lab: a real Kubernetes with three zones on this machine
	$(TIMED) "lab up" $(OUT)/lab up

lab-down: ## Take the lab down; nothing is left
	$(OUT)/lab down

lab-killed: setup ## Kill `lab up` at KILLS=10 random moments (SEED=); `lab down` must leave the machine as it was
	$(OUT)/lab down
	$(TIMED) "kill the lab" env KILLS=$(or $(KILLS),10) cargo test --release --workspace --features decide/toy \
		--test killed -- --ignored --nocapture

kubectl: ## kubectl in the lab, as in: make kubectl ARGS='get nodes'
	@$(OUT)/lab kubectl $(ARGS)

e2e: lab-up image ## The end-to-end suite; some scenarios with FILTER='names'
	$(TIMED) "end to end" $(OUT)/e2e test $(FILTER)

demo: $(if $(KUBECONFIG_FLAG),build,lab-up image) ## A whole migration under load on the lab, shown as it happens
	$(OUT)/e2e $(KUBECONFIG_FLAG) demo

demo-why: lab-up image ## The failure this exists for: ephemeral clusters are rolled, before your eyes
	$(OUT)/e2e demo-why

bench-switch: lab-up image ## N migrations to and fro between two standing clusters; N=10
	$(OUT)/e2e bench-switch $(or $(N),10)

demo-clean: ## Take the demo away
	$(OUT)/e2e $(KUBECONFIG_FLAG) demo-clean

# These mostly wait for pods to start, and may do so while the tests compile.
PATIENT := why bad-input

test: ## Everything, the end-to-end suite included; equals CI
	@rm -f target/times.txt
	$(MAKE) fmt-check setup build lab-up image
	@# From copies: the checks build anew what the suite uses.
	@mkdir -p target/suite && cp $(OUT)/e2e $(OUT)/lab $(OUT)/operator target/suite/
	target/suite/e2e test $(PATIENT) & beside=$$!; \
		trap 'kill $$beside 2>/dev/null || true' EXIT; \
		$(MAKE) check; wait $$beside; trap - EXIT
	$(TIMED) "end to end" target/suite/e2e test $(PATIENT:%=--skip %)
	$(MAKE) lab-down
	@echo; echo "Where the time went:"; cat target/times.txt

clean: ## Remove what was built here (the lab's cache stays)
	cargo clean
