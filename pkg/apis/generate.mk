##@ Generated code of the stored API

# Packages whose types are stored by kube-apiserver.
STORED_API := bindy/v1beta1 externaldns/v1alpha1 clusterapi/infrastructure/v1beta1 clusterapi/controlplane/v1beta1

.PHONY: generate
generate: ## Regenerate deepcopy functions, CustomResourceDefinitions and the references of fields and reasons
	go tool -modfile=tools.mod controller-gen object $(foreach api,$(STORED_API),paths=./pkg/apis/$(api))
	go run ./pkg/apis/internal/crdgen -out manifests/crds
	go run ./pkg/apis/internal/crdgen -paths ./pkg/apis/clusterapi/... -out manifests/components/cluster-api/crds
	go run ./pkg/apis/internal/fieldsgen -out docs/reference/fields.md manifests/crds manifests/components/cluster-api/crds
	go run ./pkg/declared/internal/reasonsgen -out docs/reference/conditions.md

.PHONY: verify-generated
verify-generated: ## Prove that what `make generate` writes is what is checked in
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	for api in $(STORED_API); do \
	  go tool -modfile=tools.mod controller-gen object paths=./pkg/apis/$$api output:object:dir=$$tmp/$$api; \
	  diff -u pkg/apis/$$api/zz_generated.deepcopy.go $$tmp/$$api/zz_generated.deepcopy.go \
	    || { echo "pkg/apis/$$api is stale: run make generate"; exit 1; }; \
	done; \
	go run ./pkg/apis/internal/crdgen -out $$tmp/crds; \
	go run ./pkg/apis/internal/crdgen -paths ./pkg/apis/clusterapi/... -out $$tmp/capi; \
	diff -ru manifests/crds $$tmp/crds || { echo "manifests/crds is stale: run make generate"; exit 1; }; \
	diff -ru manifests/components/cluster-api/crds $$tmp/capi || { echo "manifests/components/cluster-api/crds is stale: run make generate"; exit 1; }
