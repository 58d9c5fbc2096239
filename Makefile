# Lockstep. `make help` lists the targets; `make demo` and `make test` need nothing set up beforehand but Go, git and,
# for the dev cluster, root on a Debian machine.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

OUTPUT := _output
# One set of flags for everything that is built, so that every step finds in the cache what another has compiled.
export GOFLAGS     := -buildvcs=false -trimpath
export CGO_ENABLED := 0

include test/cluster/cluster.mk
include pkg/apis/generate.mk
include pkg/apis/sync/generate.mk
include test/bench/bench.mk

##@ Main job

.PHONY: demo
demo: cluster-up images ## Run the main job on a real cluster: install, apply zones and records, watch every server fall in step
	KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" test/demo/run

.PHONY: demo-down
demo-down: ## Remove what the demo installed; the cluster stays
	KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" test/demo/down

##@ Build

.PHONY: build
build: ## Build lockstep and its kubectl plugin for this machine into _output/bin
	go build -o $(OUTPUT)/bin/ ./cmd/lockstep ./cmd/kubectl-lockstep
	install cmd/kubectl-lockstep/kubectl_complete-lockstep $(OUTPUT)/bin/

##@ Test

# Packages with tests that need neither a cluster nor root.
UNIT := ./apiserver/... ./cmd/... ./pkg/... ./webhook/...

.PHONY: test
test: packages verify lint test-unit cluster-test test-cluster ## Everything that the gate runs

.PHONY: packages
packages: ## Install the Debian packages that the tests use, when they are missing
	@command -v named >/dev/null && command -v dig >/dev/null || { \
	  echo "installing bind9 and its tools from Debian"; \
	  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q bind9 bind9-utils bind9-dnsutils >/dev/null; }

.PHONY: test-unit
test-unit: packages ## Unit tests, and tests against named on loopback
	go test $(UNIT)

.PHONY: test-cluster
# The demo is tested first: it takes what an earlier demo left away, which the test of uninstalling would leave alone.
test-cluster: cluster-up images ## Tests on a real cluster; RUN=regex selects, for example RUN=TestMainJob
	KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" \
	  go test -count=1 -p 1 -timeout 70m -v $(if $(RUN),-run '$(RUN)') ./test/e2e/... ./test/integration/...

##@ Quality

.PHONY: verify
verify: verify-generated verify-sync verify-tidy verify-format ## Prove that generated code, go.mod and formatting are current

.PHONY: verify-tidy
verify-tidy: ## go.mod and go.sum hold what the code imports, no more
	go mod tidy -diff
	cd test/cluster && go mod tidy -diff

.PHONY: verify-format
verify-format: ## gofmt has nothing to say
	@out=$$(gofmt -l apiserver cmd pkg test webhook); test -z "$$out" || { echo "gofmt these files: $$out"; exit 1; }

.PHONY: lint
lint: ## go vet and staticcheck, in both modules
	go build -modfile=tools.mod -o $(OUTPUT)/bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	go vet ./... && $(OUTPUT)/bin/staticcheck ./...
	cd test/cluster && go vet . ./internal/... ./pause && ../../$(OUTPUT)/bin/staticcheck . ./internal/... ./pause

##@ Help

.PHONY: help
help: ## Show this text
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
