##@ Benchmarks

# Each benchmark ends in lines: RESULT <name> ratio=<x> ours=<value unit> reference=<value unit> (<what that is>).
# ARGS are flags of one benchmark: make bench-zones ARGS='-zones 10000'. test/bench/README.md has them all.
BENCHMARKS := burst bulk single steady zones read cold

.PHONY: bench bench-docs bench-compare bench-install bench-admission bench-provider bench-query bench-demo bench-mixed bench-apply bench-delete bench-status bench-get bench-list bench-watch bench-memory bench-replicas $(addprefix bench-,$(BENCHMARKS))

# zones-many measures what zones does, with more of them. It and objects leave kube-apiserver with much memory: they come last.
BENCH_ALL := $(filter-out zones,$(BENCHMARKS)) mixed admission provider query externaldns objects zones-many
ROUNDS := 3
bench: setup-bench ## Every benchmark three times, on the cluster, and a table of what they say: ROUNDS=3; the results are in _output/bench.json
	go run ./test/bench/report run -rounds $(ROUNDS) -o $(OUTPUT)/bench.json $(addprefix bench-,$(BENCH_ALL))

bench-docs: ## Put the figures of the last `make bench` into the table of docs/benchmarks.md
	go run ./test/bench/report update $(OUTPUT)/bench.json docs/benchmarks.md

bench-compare: ## What is slower in NEW=file than in OLD=file, beyond the spread of their runs
	go run ./test/bench/report compare $(OLD) $(NEW)

bench-install: setup-bench cluster-ready
	KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" test/install

BENCH = KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" go run ./test/bench

bench-burst: bench-install ## 10,000 new records until all three servers serve them, beside nsupdate
	$(BENCH)/burst $(ARGS)

bench-bulk: bench-install ## 10,000 ARecords created, ready and deleted again, beside a kind without webhooks and controller
	$(BENCH)/bulk $(ARGS)

bench-apply bench-delete bench-status: bench-bulk ## One of the three that bench-bulk measures in one run

bench-mixed: bench-install ## Single changes in one namespace while 10,000 records are created in another, beside the same at rest
	$(BENCH)/bulk -mixed -changes 300 $(ARGS)

bench-single: bench-install ## One changed record in a zone of 100,000 until all three servers serve it, beside a bare UPDATE
	$(BENCH)/single $(ARGS)

bench-steady: bench-install ## What 10,000 records cost in which nothing changes, beside the zone without them
	$(BENCH)/steady $(ARGS)

bench-zones: bench-install ## 1,000 zones on three servers until all serve them, beside BIND alone; LIST of their SyncStatus, beside bare DNS
	$(BENCH)/zones $(ARGS)

.PHONY: bench-zones-many bench-objects
bench-zones-many: bench-install ## 10,000 zones of ten records, until all servers serve them; a new leader over all; one change among them; half an hour
	$(BENCH)/zones -zones 10000 -records 10 -lists 3 $(ARGS)

bench-objects: bench-install ## 100,000 ARecords in one zone, stored in the etcd of the dev cluster: one change, a new leader, memory
	$(BENCH)/single -stored $(ARGS)

bench-read: bench-install ## GET, LIST and watch of SyncStatus with 10,000 records, their memory, and several replicas, beside kube-apiserver and bare DNS
	$(BENCH)/read $(ARGS)

bench-get bench-list bench-watch bench-memory bench-replicas: bench-install ## One of the five that bench-read measures
	$(BENCH)/read -only $(@:bench-%=%) $(ARGS)

bench-admission: ## Reviews with 10,000 zones and 100,000 records in the caches, beside the bare round trip and CEL; no cluster
	go test -run '^$$' -bench '^BenchmarkAdmission$$' -benchtime 1x $(ARGS) ./webhook/review

bench-query: ## LIST of 10,000 records on a server that is read by query, beside one whose zone is transferred; no cluster
	go test -run '^$$' -bench '^BenchmarkListByQuery$$' -benchtime 1x $(ARGS) ./apiserver/registry

bench-provider: setup-bench ## A pass that brings 10,000 RRsets to a BIND, a Knot and a CoreDNS with etcd that others run, beside their own tools; no cluster
	go test -run '^$$' -bench '^BenchmarkProvider$$' -benchtime 1x $(ARGS) ./pkg/zone/reconcile
	cd test/coredns && go test -run '^$$' -bench '^BenchmarkProvider$$' -benchtime 1x $(ARGS) ./...

bench-cold: bench-install ## The first LIST of 100 zones of 1,000 RRs after our API server was started anew, beside the bare transfers
	$(BENCH)/cold $(ARGS)

.PHONY: bench-patch
bench-patch: bench-install ## Queries that are lost while all servers get a patch release of BIND; ARGS='-images IMAGE,9.18=IMAGE'
	$(BENCH)/patch $(ARGS)

.PHONY: bench-externaldns
bench-externaldns: setup-bench bench-install external-dns ## The names of 5,000 Services by external-dns until all three servers have them, beside its provider rfc2136
	go build -o $(OUTPUT)/external-dns/ ./cmd/lockstep
	$(BENCH)/externaldns $(ARGS)

bench-demo: ## `make demo` with empty caches, beside the bare build of Kubernetes and etcd; ends the dev cluster
	test/bench/demo
