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
demo-sources: cluster-ready external-dns-image ## A Service and an Ingress become names by external-dns, the endpoint of a Cluster API cluster becomes live, and its gate turns True
	$(ON_CLUSTER) test/demo/sources

.PHONY: demo-gitops
demo-gitops: cluster-ready ## The engines of Argo CD and of Flux apply, change, rename and prune a folder, while every server is asked for every name: none is ever empty
	$(ON_CLUSTER) go -C test/gitops test -count=1 $(LINK) -timeout 30m -v -run 'TestDemo$$' .

.PHONY: demo-down
demo-down: ## Remove what the demo installed; the cluster stays
	$(ON_CLUSTER) test/demo/down

# The environment of what runs on the cluster.
ON_CLUSTER = KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH"

##@ Setup

.PHONY: setup setup-test setup-ui setup-bench
setup: ## Install the Debian packages of everything that any target calls
	@test/setup/install demo cluster test bench release bare ui acme

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

# What docs/testing.md describes: stages of tests, lanes of stages. test/gate/stages.go says which test is in which stage.
GATE := go run ./test/gate

# What a failed test cannot be blamed on is done before the first one runs. Two of these stages run at the same time, then the cluster
# tests, with nothing beside them. The longest comes first.
BESIDES := test-bare lint verify test-unit-large test-conformance test-dnssec-faults cluster-test test-coredns test-page test-chart-render
STAGES  := prepare $(BESIDES) test-isolated test-serial fuzz
# The stages that run no tests, and the names that test/gate has for the others.
PLAIN   := prepare verify lint
# As plain, of make test-all.
LONG_PLAIN := fuzz
TESTS   := unit unit-large unit-release conformance-9.20 dnssec-faults cluster-test coredns page chart-render isolated serial
LONG    := conformance-9.18 cluster-9.18 zone-files answers many-dnssec-faults outside random migrations demos demo-sources guides ui monitoring chart-kinds chart-release gitops acme release faults

.PHONY: check
check: verify lint test-unit test-unit-large ## Before a commit: formatting, generated code, lint, and the unit tests of what has changed

.PHONY: test
ifeq ($(RUN),)
test: ## The gate: everything that is checked before a change is merged; RUN=regex runs the tests that match, and nothing else
	@test "$$(id -u)" = 0 || { echo "make test: needs root, for the dev cluster; run make test-unit without, or as root" >&2; exit 1; }
	@rm -rf $(OUTPUT)/gate $(OUTPUT)/gate.json $(OUTPUT)/flaky
	@test/setup/install -check demo cluster test bench bare ui
	@test/setup/install test bare ui
	@status=0; $(MAKE) --no-print-directory gate-stages || status=1; $(GATE) report $(PLAIN) $(TESTS) || status=1; exit $$status
else
test:
	@stages=$$($(GATE) find -select '$(RUN)' $(TESTS)); $(MAKE) --no-print-directory prepare; \
	$(ON_CLUSTER) $(GATE) run -select '$(RUN)' $$stages
endif

.PHONY: gate-stages
gate-stages:
	@$(MAKE) --no-print-directory stage-prepare
	@$(MAKE) --no-print-directory -k -j2 $(addprefix stage-,$(BESIDES))
	@$(MAKE) --no-print-directory stage-test-isolated
	@$(MAKE) --no-print-directory stage-test-serial

.PHONY: test-all
test-all: test krew external-dns-image ## The gate, and everything that takes longer: 10,000 zone files, 10,000 signed answers, random changes, 1,000 faults, demos, guides, page, monitoring, chart, GitOps, ACME, release, fuzzing
	@test/setup/install release acme
	@$(ON_CLUSTER) $(GATE) build $(LONG)
	@status=0; for stage in $(LONG); do $(ON_CLUSTER) $(GATE) run $$stage || status=1; done; \
	for stage in $(LONG_PLAIN); do $(MAKE) --no-print-directory stage-$$stage || status=1; done; \
	$(GATE) report $(PLAIN) $(TESTS) $(LONG) $(LONG_PLAIN) || status=1; exit $$status

.PHONY: fuzz
FUZZTIME := 10m
fuzz: ## Each fuzz test for FUZZTIME=10m, with bounded memory; RUN=FuzzRdata selects
	$(GATE) fuzz $(SELECT) -time $(FUZZTIME)

.PHONY: test-soak
PASSES := 10
test-soak: prepare ## The tests of the gate, PASSES=10 times, and a table of what failed; it goes on where it was stopped
	$(ON_CLUSTER) $(GATE) soak -passes $(PASSES)

# stage-X makes X, and says how it ended and how long it took.
.PHONY: $(STAGES:%=stage-%)
$(STAGES:%=stage-%): stage-%:
	@begin=$$SECONDS passed=true; $(MAKE) --no-print-directory $* || passed=false; seconds=$$((SECONDS - begin)); \
	case $* in test-*|cluster-test) ;; *) \
	  mkdir -p $(OUTPUT)/gate; printf '{"stage": "%s", "passed": %s, "seconds": %s}\n' $* $$passed $$seconds >$(OUTPUT)/gate/$*.json ;; esac; \
	if $$passed; then echo "== $*: passed in $$seconds s"; else echo "== $*: FAILED after $$seconds s"; exit 1; fi

.PHONY: prepare
prepare: setup-test cluster-ready build bind external-dns cluster-api ## Build and fetch everything that the tests of the gate call; after it they need no network
	for module in . release charts test/cluster test/coredns test/gitops test/acme; do go -C $$module mod download; done
	go tool -modfile=tools.mod gotestsum --version
	go build -o $(OUTPUT)/bin/ ./test/gate
	go -C test/coredns build $(LINK) -o $(abspath $(OUTPUT))/coredns/ .
	@mkdir -p $(OUTPUT)/definitions
	ln -sfn "$$(go -C test/clusterapi list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)/core/config/crd/bases" $(OUTPUT)/definitions/cluster-api
	ln -sfn "$$(go -C test/externaldns list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)/config/crd/standard" $(OUTPUT)/definitions/gateway-api
	$(GATE) build isolated serial

# Nobody debugs the binaries of tests, and without what that takes they are linked sooner.
LINK := -ldflags='-s -w'
SELECT = $(if $(RUN),-select '$(RUN)')

.PHONY: test-unit test-unit-large test-coredns test-page test-chart-render test-dnssec-faults
test-unit: setup-test ## Unit tests, and tests against named on loopback, with the race detector; results of unchanged packages come from Go's cache
	$(GATE) run $(SELECT) unit unit-release

test-unit-large: setup-test ## Unit tests with thousands of objects, without the race detector
	$(GATE) run $(SELECT) unit-large

test-coredns: ## CoreDNS with etcd as a place of zones, against real servers; a module of its own
	$(GATE) run $(SELECT) coredns

test-dnssec-faults: setup-test ## Random faults of DNSSEC on servers on loopback, judged by unbound and delv; a short run of make fault KINDS=dnssec
	$(GATE) run $(SELECT) dnssec-faults

test-page: setup-ui ## The page of kubectl lockstep ui in chromium, without a cluster
	$(GATE) run $(SELECT) page

test-chart-render: ## What Helm renders of the chart is what kustomize renders
	$(GATE) run $(SELECT) chart-render

.PHONY: test-conformance
test-conformance: ## What depends on the release of BIND, with BIND 9.20 on loopback; after make bind
	$(GATE) run $(SELECT) conformance-9.20

.PHONY: test-bare
test-bare: ## Set up in a bare Debian root, and prove there that test/setup/programs is complete
	@test/setup/install bare
	test/setup/bare

.PHONY: test-cluster test-isolated test-serial attack
test-cluster: prepare ## Tests on a real cluster; RUN=regex selects, for example RUN=TestMainJob
	$(ON_CLUSTER) $(GATE) run $(SELECT) isolated serial

test-isolated: ## Those that change nothing outside their own namespaces, after make prepare
	$(ON_CLUSTER) $(GATE) run $(SELECT) isolated

test-serial: ## Those that disturb the whole cluster, one after the other, after make prepare
	$(ON_CLUSTER) $(GATE) run $(SELECT) serial

attack: prepare ## The attacks of docs/security.md alone, on a real cluster; part of test-cluster
	$(ON_CLUSTER) $(GATE) run -select '$(or $(RUN),^TestAttack)' isolated serial

.PHONY: test-guides test-chart test-monitoring test-ui screenshots
test-guides: prepare ## Run the commands of the documentation on a real cluster, and compare what they print; RUN=TestGuides/backup selects
	$(GATE) build guides
	$(ON_CLUSTER) $(GATE) run $(SELECT) guides

test-chart: prepare test-chart-render ## The Helm chart: rendered, and installed, upgraded, rolled back and uninstalled on a real cluster; it ends the installation, and makes it again
	$(GATE) build chart-kinds
	$(ON_CLUSTER) $(GATE) run chart-kinds chart-release

.PHONY: test-gitops
test-gitops: prepare ## Apply, change and prune folders on a real cluster with the engines of Argo CD and of Flux, and run the health checks of the guide
	$(GATE) build gitops
	$(ON_CLUSTER) $(GATE) run $(SELECT) gitops

.PHONY: test-acme
test-acme: prepare ## Get certificates from pebble with lego, cert-manager's solver and certbot, on loopback and on a real cluster
	@test/setup/install acme
	$(GATE) build acme
	$(ON_CLUSTER) $(GATE) run $(SELECT) acme

test-monitoring: prepare ## Follow Lockstep on a real cluster with a real Prometheus: targets, rules, dashboard, an alert that fires and ends
	$(GATE) build monitoring
	$(ON_CLUSTER) $(GATE) run monitoring

test-ui: setup-ui prepare ## The page of kubectl lockstep ui in chromium, without a cluster and on a real one
	$(GATE) build ui
	$(ON_CLUSTER) $(GATE) run page ui

screenshots: setup-ui prepare ## Write the screenshots of docs/guides/ui.md
	$(ON_CLUSTER) go test -count=1 $(LINK) -timeout 15m -v -run TestClusterPage ./test/ui -update-screenshots

.PHONY: external-dns cluster-api
EXTERNAL_DNS_VERSION := v0.21.0
external-dns: ## Build external-dns in two versions, ahead of the tests that run it
	GOBIN=$(abspath $(OUTPUT))/external-dns go install $(LINK) sigs.k8s.io/external-dns@$(EXTERNAL_DNS_VERSION)
	go -C test/externaldns build $(LINK) -o $(abspath $(OUTPUT))/external-dns/external-dns-0.22 sigs.k8s.io/external-dns

.PHONY: external-dns-image
external-dns-image: external-dns
ifeq ($(CLUSTER_EXTERNAL),)
	@$(CLUSTER) images external-dns
endif

cluster-api: ## Build Cluster API's core controller, ahead of the test that runs it
	go -C test/clusterapi build $(LINK) -o $(abspath $(OUTPUT))/cluster-api/core sigs.k8s.io/cluster-api/core

.PHONY: fault
FAULTS := 1000
SEED   := 1
FAULT_DIRECTORY = $(abspath $(or $(RESUME),$(OUTPUT)/fault-$(SEED)-$(FAULTS)))
ifeq ($(KINDS),dnssec)
fault: setup-test
	go test -count=1 -timeout 24h -v ./test/fault/dnssec -seed $(SEED) -faults $(FAULTS) $(if $(LIMIT),-limit $(LIMIT))
else
fault: setup-test build cluster-ready ## Random faults on a real cluster, judged from outside: FAULTS=1000 SEED=1, LIMIT=10m for a part, RESUME=directory goes on, KINDS=freeze,reload for these alone; KINDS=dnssec are those of signed zones, without a cluster
	@status=0; \
	$(ON_CLUSTER) go test -count=1 -timeout 24h -v -run TestFaults ./test/fault -disruptive -seed $(SEED) -faults $(FAULTS) \
	  -directory "$(FAULT_DIRECTORY)" $(if $(LIMIT),-limit $(LIMIT)) $(if $(KINDS),-kinds $(KINDS)) || status=$$?; \
	echo "the run's files: $(FAULT_DIRECTORY)"; tail -n 1 "$(FAULT_DIRECTORY)/report.txt"; exit $$status
endif

##@ Release

.PHONY: patch-bind
patch-bind: cluster-ready ## A patch release of BIND: images of the newest packages, and all servers of the dev cluster replaced, one after the other; BIND9_IMAGE=IMAGE,9.18=IMAGE names others
	@images='$(BIND9_IMAGE)'; images=$${images:-$$($(CLUSTER) images patch | tail -n 1)}; $(ON_CLUSTER) test/cluster/patch-bind "$$images"

.PHONY: release
release: ## Make everything that is delivered of a version in _output/release: VERSION=v0.1.0, else the tag at HEAD (docs/releasing.md)
	go run -C release . $(if $(VERSION),-version '$(VERSION)') $(if $(REGISTRY),-registry '$(REGISTRY)') $(if $(PLATFORMS),-platforms '$(PLATFORMS)') $(if $(ALLOW_DIRTY),-allow-dirty)

.PHONY: krew
KREW_VERSION := v0.4.3
krew: ## Build krew and the check of its index, ahead of the test that runs them
	GOBIN=$(abspath $(OUTPUT))/krew go install $(LINK) sigs.k8s.io/krew/cmd/krew@$(KREW_VERSION) sigs.k8s.io/krew/cmd/validate-krew-manifest@$(KREW_VERSION)

.PHONY: test-release
test-release: krew ## Make the release of HEAD in two clones, compare all bytes, and try it; PLATFORMS=linux/amd64,linux/arm64 compiles less
	@test/setup/install release
	PATH="$(CLUSTER_BIN):$$PATH" go -C release test -count=1 $(LINK) -timeout 60m -v -run TestRelease . -twice $(if $(PLATFORMS),-platforms '$(PLATFORMS)')

##@ Quality

.PHONY: generate-conformance
generate-conformance: setup-test ## Write the table of servers and capabilities in docs/reference/providers.md; the tests prove it
	go test $(TESTFLAGS) ./pkg/zone/reconcile -run 'TestConformance$$' -update-table
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
verify: verify-format verify-generated verify-chart verify-sync verify-tidy verify-modules verify-core verify-locks ## Prove that generated code, go.mod and formatting are current, and that nobody waits for the network under a lock

.PHONY: verify-modules
verify-modules: ## Lockstep and the dev cluster use the same module versions, so that a cold build compiles nothing twice
	@list='{{with .Module}}{{.Path}} {{.Version}}{{end}}'; \
	differ=$$(join <(go list -deps -f "$$list" ./cmd/lockstep | sort -u) \
	  <(go list -C test/cluster -deps -f "$$list" ./kubernetes | sort -u) | awk 'NF == 3 && $$2 != $$3'); \
	test -z "$$differ" || { echo "go.mod and test/cluster/go.mod require different versions:"; echo "$$differ"; exit 1; }

.PHONY: verify-locks
verify-locks: ## Nothing waits for the network while a mutex is held (test/lint/lockio)
	go build -o $(OUTPUT)/bin/lint ./test/lint
	go vet -vettool=$(abspath $(OUTPUT)/bin/lint) ./pkg/... ./apiserver/... ./webhook/... ./extensions/...

.PHONY: verify-core
verify-core: ## The programs compile without extensions
	go vet -tags core ./cmd/...

.PHONY: verify-tidy
verify-tidy: ## go.mod and go.sum hold what the code imports, no more
	go mod tidy -diff
	cd test/cluster && go mod tidy -diff
	cd release && go mod tidy -diff
	cd test/coredns && go mod tidy -diff
	cd test/clusterapi && go mod tidy -diff
	cd charts && go mod tidy -diff
	cd test/gitops && go mod tidy -diff
	cd test/acme && go mod tidy -diff

.PHONY: verify-format
verify-format: ## gofmt has nothing to say
	@out=$$(gofmt -l apiserver charts cmd extensions pkg release test webhook); test -z "$$out" || { echo "gofmt these files: $$out"; exit 1; }

.PHONY: lint
lint: ## golangci-lint, in all modules; .golangci.yml says which linters
	go build -modfile=tools.mod -o $(OUTPUT)/bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(OUTPUT)/bin/golangci-lint run --allow-serial-runners --timeout 20m ./...
	cd release && ../$(OUTPUT)/bin/golangci-lint run --allow-serial-runners --timeout 20m ./...
	cd test/cluster && ../../$(OUTPUT)/bin/golangci-lint run --allow-serial-runners --timeout 20m . ./internal/... ./pause
	cd test/coredns && ../../$(OUTPUT)/bin/golangci-lint run --allow-serial-runners --timeout 20m ./...
	cd charts && ../$(OUTPUT)/bin/golangci-lint run --allow-serial-runners --timeout 20m ./...

##@ Help

.PHONY: help
help: ## Show this text
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z-]*:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
