##@ Benchmarks

# Each benchmark ends in one line: RESULT <name> ratio=<x> ours=<value unit> reference=<value unit> (<what that is>).
BENCHMARKS := single

.PHONY: bench $(addprefix bench-,$(BENCHMARKS))

bench: $(addprefix bench-,$(BENCHMARKS)) ## Every benchmark, on the cluster

bench-single: cluster-up images ## One changed record until all three servers serve it, beside a bare UPDATE
	KUBECONFIG=$(DEV_KUBECONFIG) PATH="$(CLUSTER_BIN):$$PATH" go run ./test/bench/single
