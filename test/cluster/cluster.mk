##@ Dev cluster

# The dev cluster's one kubeconfig. A KUBECONFIG that names another file means
# another cluster, which these targets leave alone.
CLUSTER_KUBECONFIG := /var/lib/lockstep-cluster/kubeconfig
CLUSTER_EXTERNAL   := $(filter-out $(CLUSTER_KUBECONFIG),$(KUBECONFIG))

# The kubeconfig that the other targets use.
DEV_KUBECONFIG := $(or $(CLUSTER_EXTERNAL),$(CLUSTER_KUBECONFIG))

CLUSTER := CGO_ENABLED=0 go run -C test/cluster .

# The folder of kubectl and the rest of Kubernetes, of the dev cluster's version.
CLUSTER_BIN = $(shell $(CLUSTER) bin-dir)

.PHONY: cluster-up cluster-down cluster-status cluster-kubeconfig cluster-test cluster-ready images images-load bind

cluster-kubeconfig: ## Print the path of the kubeconfig
	@echo $(DEV_KUBECONFIG)

ifeq ($(CLUSTER_EXTERNAL),)

cluster-up: ## Start the dev cluster or repair it, with the images; builds Kubernetes the first time
	@test/setup/install -check demo cluster
	@$(CLUSTER) up

cluster-ready: cluster-up

cluster-down: ## Stop the dev cluster and remove everything of it
	@$(CLUSTER) down

cluster-status: ## Show the dev cluster's processes
	@$(CLUSTER) status || true

images: ## Build the images, and load them into the dev cluster if it runs
	@$(CLUSTER) images build
	@$(CLUSTER) images load -if-running

images-load: ## Load the built images into the dev cluster
	@$(CLUSTER) images load

else

cluster-ready: cluster-up images

cluster-up:
	@test/setup/install demo foreign
	@echo "using the cluster of KUBECONFIG=$(KUBECONFIG)"

cluster-down:
	@echo "the cluster of KUBECONFIG=$(KUBECONFIG) is not ours to stop"

cluster-status:
	@kubectl get nodes -o wide

images:
	@$(CLUSTER) images build
	@$(MAKE) --no-print-directory images-load

images-load:
	@echo "the cluster of KUBECONFIG=$(KUBECONFIG) needs the images of _output/images; load them with one of"
	@echo '  for image in lockstep lockstep-sidecar lockstep-bind9-9.20 lockstep-bind9-9.18; do kind load image-archive _output/images/$$image.tar; done'
	@echo "  k3s ctr images import _output/images/lockstep.tar _output/images/lockstep-sidecar.tar _output/images/lockstep-bind9-9.20.tar _output/images/lockstep-bind9-9.18.tar"
	@echo '  for image in lockstep lockstep-sidecar lockstep-bind9-9.20 lockstep-bind9-9.18; do minikube image load _output/images/$$image.tar; done'
	@echo "or push them to a registry; docs/cluster.md has more"

endif

bind: ## Build the images of all releases of BIND, and unpack them into _output/bind, for the tests of several releases
	@$(CLUSTER) images bind
	@test/setup/bind

cluster-test: ## Test the dev cluster: unit tests, and with CLUSTER_TEST=1 a real start and stop (it ends the running one)
	$(if $(CLUSTER_TEST),cd test/cluster && go test -count=1 -timeout 30m -v ./ ./internal/...,$(GATE) run $(SELECT) cluster-test)
