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
demo: cluster-ready ## Run the main job on a real cluster: install, apply zones and records, watch every server come into sync
	$(ON_CLUSTER) test/demo/run

.PHONY: demo-providers
demo-providers: cluster-ready setup-test ## A zone on a BIND, a Knot and a CoreDNS with etcd outside of the cluster: imported, applied, one stopped, one changed by hand
	$(ON_CLUSTER) test/demo/providers

.PHONY: demo-sources
demo-sources: cluster-ready external-dns ## A Service and an Ingress become names by external-dns, the endpoint of a Cluster API cluster becomes live, and its gate turns True
ifeq ($(CLUSTER_EXTERNAL),)
	@$(CLUSTER) images external-dns
endif
	$(ON_CLUSTER) test/demo/sources

.PHONY: demo-down
demo-down: ## Remove what the demo installed; the cluster stays
	$(ON_CLUSTER) test/demo/down

# The environment of what runs on the cluster.
ON_CLUSTER = KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH"

##@ Setup

.PHONY: setup setup-test setup-ui setup-bench
setup: ## Install the Debian packages of everything that any target calls
	@test/setup/install demo cluster test bench release bare ui

setup-test:
	@test/setup/install test

setup-ui:
	@test/setup/install ui

setup-bench:
	@test/setup/install test bench

##@ Build

.PHONY: build
build: ## Build lockstep and its kubectl plugin for this machine into _output/bin
	go build -o $(OUTPUT)/bin/ ./cmd/lockstep ./cmd/kubectl-lockstep
	install cmd/kubectl-lockstep/kubectl_complete-lockstep $(OUTPUT)/bin/

##@ Test

# Nobody debugs the binaries of tests, and without what that takes they are linked sooner.
LINK := -ldflags='-s -w'

# Packages with tests that need neither a cluster nor root.
UNIT := ./apiserver/... ./cmd/... ./pkg/... ./webhook/... ./test/model ./test/fault ./test/bench/report ./test/docs ./test/monitoring

.PHONY: check
check: verify lint test-unit ## Before a commit: formatting, generated code, lint, and the unit tests of what has changed

# The isolated tests take all processors. The disruptive ones mostly wait, one at a time, so the unit tests in the bare root and then
# those of CoreDNS and the linters run beside them. Those end first: the output closes with the summary of the cluster tests.
STAGES := cluster-ready verify lint cluster-test external-dns cluster-api test-coredns test-page test-chart-render test-isolated test-disruptive test-bare
# What the gate has no time for.
NIGHTLY := test-ui test-monitoring test-guides test-chart test-release

.PHONY: test
test: ## The gate: everything that is checked before a change is merged
	@test/setup/install -check demo cluster test bench bare ui
	@test/setup/install test bare ui
	@$(MAKE) --no-print-directory -j2 $(addprefix stage-,cluster-ready verify cluster-test external-dns cluster-api)
	@$(MAKE) --no-print-directory stage-test-isolated
	@$(MAKE) --no-print-directory -j2 $(addprefix stage-,test-disruptive test-bare test-coredns test-page test-chart-render lint)

.PHONY: test-nightly
test-nightly: ## What is too long for the gate: the page, monitoring, guides and chart on a real cluster, and two releases of equal bytes
	@for stage in $(NIGHTLY); do $(MAKE) --no-print-directory stage-$$stage; done

# stage-X makes X and prints how long it took.
.PHONY: $(STAGES:%=stage-%) $(NIGHTLY:%=stage-%)
$(STAGES:%=stage-%) $(NIGHTLY:%=stage-%): stage-%:
	@begin=$$SECONDS; $(MAKE) --no-print-directory $* || { echo "== $*: FAILED after $$((SECONDS - begin)) s"; exit 1; }; \
	echo "== $*: passed in $$((SECONDS - begin)) s"

.PHONY: test-unit
test-unit: setup-test ## Unit tests, and tests against named on loopback; results of unchanged packages come from Go's cache
	go test $(LINK) $(TESTFLAGS) $(UNIT)
	go -C release test $(LINK) $(TESTFLAGS) ./...

.PHONY: test-coredns
test-coredns: ## CoreDNS with etcd as a place of zones, against real servers; a module of its own
	cd test/coredns && go test -count=1 $(LINK) $(TESTFLAGS) ./...

.PHONY: test-bare
test-bare: ## Set up in a bare Debian root, and prove there that test/setup/programs is complete
	@test/setup/install bare
	test/setup/bare

.PHONY: test-cluster test-isolated test-disruptive attack
# Isolated tests run at the same time, disruptive ones one by one. PARALLEL is for a machine of 2 cores.
PARALLEL := 8
CLUSTER_TESTS := -count=1 $(LINK) -timeout 40m -v $(if $(RUN),-run '$(RUN)')
test-cluster: ## Tests on a real cluster; RUN=regex selects, for example RUN=TestMainJob
	@$(MAKE) --no-print-directory test-isolated
	@$(MAKE) --no-print-directory test-disruptive

test-isolated: setup-test cluster-ready ## Those that change nothing outside their own namespaces
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) -p 2 -parallel $(PARALLEL) ./test/e2e ./test/integration ./test/attack

test-disruptive: setup-test cluster-ready ## Those that disturb the whole cluster
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) -p 1 ./test/integration ./test/attack ./test/fault -disruptive

attack: setup-test cluster-ready ## The attacks of docs/security.md alone, on a real cluster; part of test-cluster
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) -parallel $(PARALLEL) ./test/attack
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) ./test/attack -disruptive

.PHONY: test-guides
test-guides: setup-test cluster-ready build ## Run the commands of the documentation on a real cluster, and compare what they print; RUN=TestGuides/backup selects
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) -parallel 4 ./test/guides

.PHONY: test-chart test-chart-render
test-chart-render: ## What Helm renders of the chart is what kustomize renders
	cd charts && go test $(LINK) $(TESTFLAGS) .

test-chart: test-chart-render setup-test cluster-ready ## The Helm chart: rendered, and installed, upgraded, rolled back and uninstalled on a real cluster; it ends the installation, and makes it again
	cd charts && $(ON_CLUSTER) go test $(CLUSTER_TESTS) ./release
	cd charts && $(ON_CLUSTER) go test $(CLUSTER_TESTS) ./release -disruptive

.PHONY: test-monitoring
test-monitoring: setup-test cluster-ready ## Follow Lockstep on a real cluster with a real Prometheus: targets, rules, dashboard, an alert that fires and ends
	$(ON_CLUSTER) go test $(CLUSTER_TESTS) ./test/monitoring/live -disruptive

.PHONY: test-page test-ui screenshots
test-page: setup-ui ## The page of kubectl lockstep ui in chromium, without a cluster
	go test -count=1 $(LINK) -v -run 'TestPage$(if $(RUN),/$(RUN))' ./test/ui

test-ui: setup-ui cluster-ready ## The page of kubectl lockstep ui in chromium, without a cluster and on a real one
	$(ON_CLUSTER) go test -count=1 $(LINK) -timeout 15m -v ./test/ui

screenshots: setup-ui cluster-ready ## Write the screenshots of docs/guides/ui.md
	$(ON_CLUSTER) go test -count=1 $(LINK) -timeout 15m -v -run TestClusterPage ./test/ui -update-screenshots

.PHONY: external-dns cluster-api
EXTERNAL_DNS_VERSION := v0.21.0
external-dns: ## Build external-dns in two versions, ahead of the tests that run it
	GOBIN=$(abspath $(OUTPUT))/external-dns go install $(LINK) sigs.k8s.io/external-dns@$(EXTERNAL_DNS_VERSION)
	go -C test/externaldns build $(LINK) -o $(abspath $(OUTPUT))/external-dns/external-dns-0.22 sigs.k8s.io/external-dns

cluster-api: ## Build Cluster API's core controller, ahead of the test that runs it
	go -C test/clusterapi build $(LINK) -o $(abspath $(OUTPUT))/cluster-api/core sigs.k8s.io/cluster-api/core

.PHONY: fault
FAULTS := 1000
SEED   := 1
FAULT_DIRECTORY = $(abspath $(or $(RESUME),$(OUTPUT)/fault-$(SEED)-$(FAULTS)))
fault: setup-test cluster-ready ## Random faults on a real cluster, judged from outside: FAULTS=1000 SEED=1, LIMIT=10m for a part, RESUME=directory goes on, KINDS=freeze,reload for these alone
	@status=0; \
	$(ON_CLUSTER) go test -count=1 -timeout 24h -v -run TestFaults ./test/fault -disruptive -seed $(SEED) -faults $(FAULTS) \
	  -directory "$(FAULT_DIRECTORY)" $(if $(LIMIT),-limit $(LIMIT)) $(if $(KINDS),-kinds $(KINDS)) || status=$$?; \
	echo "the run's files: $(FAULT_DIRECTORY)"; tail -n 1 "$(FAULT_DIRECTORY)/report.txt"; exit $$status

##@ Release

.PHONY: release
release: ## Make everything that is delivered of a version in _output/release: VERSION=v0.1.0, else the tag at HEAD (docs/releasing.md)
	go run -C release . $(if $(VERSION),-version '$(VERSION)') $(if $(REGISTRY),-registry '$(REGISTRY)') $(if $(PLATFORMS),-platforms '$(PLATFORMS)') $(if $(ALLOW_DIRTY),-allow-dirty)

.PHONY: test-release
test-release: ## Make the release of HEAD in two clones, compare all bytes, and try it; PLATFORMS=linux/amd64,linux/arm64 compiles less
	@test/setup/install release
	PATH="$(CLUSTER_BIN):$$PATH" go -C release test -count=1 $(LINK) -timeout 60m -v -run TestRelease . -twice $(if $(PLATFORMS),-platforms '$(PLATFORMS)')

##@ Quality

.PHONY: generate-conformance
generate-conformance: setup-test ## Write the table of servers and capabilities in docs/reference/providers.md; the tests prove it
	go test $(TESTFLAGS) ./pkg/controller/zone -run 'TestConformance$$' -update-table
	cd test/coredns && go test $(TESTFLAGS) . -run 'TestBackend$$' -update-table

.PHONY: generate-dashboard
generate-dashboard: ## Write the Grafana dashboard; the tests prove that it is current
	go run ./pkg/dashboard >manifests/components/monitoring/dashboard.json

.PHONY: generate-chart
CHART_DOCUMENT := docs/reference/chart.md
generate-chart: ## Write the Helm chart, and the table of its values in docs/reference/chart.md, from the kustomization in manifests
	cd charts && go run . -document ../$(CHART_DOCUMENT)

.PHONY: verify-chart
verify-chart: ## Prove that what `make generate-chart` writes is what is checked in
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; cp $(CHART_DOCUMENT) "$$tmp/chart.md"; \
	go -C charts run . -out "$$tmp/lockstep" -document "$$tmp/chart.md"; \
	diff -ru charts/lockstep "$$tmp/lockstep" && diff -u $(CHART_DOCUMENT) "$$tmp/chart.md" || { echo "charts/lockstep is stale: run make generate-chart"; exit 1; }

.PHONY: verify
verify: verify-format verify-generated verify-chart verify-sync verify-tidy verify-modules ## Prove that generated code, go.mod and formatting are current

.PHONY: verify-modules
verify-modules: ## Lockstep and the dev cluster use the same module versions, so that a cold build compiles nothing twice
	@list='{{with .Module}}{{.Path}} {{.Version}}{{end}}'; \
	differ=$$(join <(go list -deps -f "$$list" ./cmd/lockstep | sort -u) \
	  <(go list -C test/cluster -deps -f "$$list" ./kubernetes | sort -u) | awk 'NF == 3 && $$2 != $$3'); \
	test -z "$$differ" || { echo "go.mod and test/cluster/go.mod require different versions:"; echo "$$differ"; exit 1; }

.PHONY: verify-tidy
verify-tidy: ## go.mod and go.sum hold what the code imports, no more
	go mod tidy -diff
	cd test/cluster && go mod tidy -diff
	cd release && go mod tidy -diff
	cd test/coredns && go mod tidy -diff
	cd test/clusterapi && go mod tidy -diff
	cd charts && go mod tidy -diff

.PHONY: verify-format
verify-format: ## gofmt has nothing to say
	@out=$$(gofmt -l apiserver charts cmd pkg release test webhook); test -z "$$out" || { echo "gofmt these files: $$out"; exit 1; }

.PHONY: lint
lint: ## golangci-lint, in all modules; .golangci.yml says which linters
	go build -modfile=tools.mod -o $(OUTPUT)/bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(OUTPUT)/bin/golangci-lint run --timeout 20m ./...
	cd release && ../$(OUTPUT)/bin/golangci-lint run --timeout 20m ./...
	cd test/cluster && ../../$(OUTPUT)/bin/golangci-lint run --timeout 20m . ./internal/... ./pause
	cd test/coredns && ../../$(OUTPUT)/bin/golangci-lint run --timeout 20m ./...
	cd charts && ../$(OUTPUT)/bin/golangci-lint run --timeout 20m ./...

##@ Help

.PHONY: help
help: ## Show this text
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
