##@ Generated code of the served API: deepcopy functions and OpenAPI definitions

SYNC_API     := ./pkg/apis/sync/v1alpha1
SYNC_OPENAPI := pkg/apis/sync/openapi

.PHONY: generate-sync
generate-sync: ## Generate deepcopy and OpenAPI of the served API
	go tool -modfile=tools.mod controller-gen object paths=$(SYNC_API)
	go tool openapi-gen --output-dir $(SYNC_OPENAPI) --output-file zz_generated.openapi.go \
	  --output-pkg github.com/lockstep-dns/lockstep/$(SYNC_OPENAPI) --output-model-name-file zz_generated.model_name.go \
	  --go-header-file /dev/null --report-filename /dev/null \
	  $(addprefix --readonly-pkg ,$(SYNC_META)) $(SYNC_META) $(SYNC_API)

# Packages whose types appear in ours.
SYNC_META := k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version

.PHONY: verify-sync
verify-sync: ## The served API's generated code is current
	@before=$$(cat $(SYNC_API)/zz_generated.* $(SYNC_OPENAPI)/zz_generated.* | sha256sum); $(MAKE) -s generate-sync; \
	after=$$(cat $(SYNC_API)/zz_generated.* $(SYNC_OPENAPI)/zz_generated.* | sha256sum); \
	test "$$before" = "$$after" || { echo "generated code of the served API was not current: commit the result of make generate-sync"; exit 1; }
