package manifests

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rbacObject is a Role, a ClusterRole or a binding of one.
type rbacObject struct {
	rbacv1.ClusterRole
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	Subjects []rbacv1.Subject `json:"subjects"`
}

// What components may do other than read the kinds, each by what grants it. A Secret that may be read is here, too. docs/install.md
// explains each of these rights.
func TestRights(t *testing.T) {
	const records = "dnszones arecords aaaarecords cnamerecords nsrecords txtrecords mxrecords srvrecords caarecords ptrrecords dnsrecords"
	const servers = "bind9instances bind9clusters bind9globalclusters clusterbind9providers"
	want := map[string][]string{
		"ClusterRole lockstep-controller": {
			records + ": patch", withSuffix(records, "/status") + ": patch", "dnsendpoints: patch", "dnsendpoints/status: patch", "dnsproviders/status: patch", "events: create patch",
		},
		"Role lockstep-controller": {"leases: create update patch", "secrets lockstep-controller-client: get list watch"},
		"ClusterRole lockstep-fleet": {
			withSuffix(servers, "/status") + ": patch", withSuffix(servers, "/finalizers") + " dnsproviders/finalizers: update",
			"clusterroles clusterrolebindings lockstep-uninstall: create patch",
			records + " " + servers + ": patch", "dnsendpoints: patch",
			"apiservices v1alpha1.sync.bindy.firestoned.io v1.admission.bindy.firestoned.io: patch",
			"mutatingwebhookconfigurations validatingwebhookconfigurations lockstep-webhook: patch",
			"events: create patch",
		},
		"ClusterRole lockstep-fleet-namespace": {
			"bind9instances: create patch delete", "statefulsets: create patch", "services serviceaccounts: create patch",
			"poddisruptionbudgets: create patch", "configmaps secrets: get create patch", "pods/status: patch", "roles rolebindings: create patch",
		},
		"Role lockstep-fleet": {
			"leases: create update patch", "secrets: create",
			"secrets lockstep-ca lockstep-apiserver-tls lockstep-webhook-tls lockstep-controller-client lockstep-apiserver-client " +
				"lockstep-metrics-client: get list watch update",
			"serviceaccounts lockstep-uninstall: create patch", "serviceaccounts/token lockstep-uninstall: create",
		},
		"Role lockstep-apiserver": {"secrets lockstep-apiserver-tls lockstep-apiserver-client: get list watch"},
		"Role lockstep-webhook":   {"secrets lockstep-webhook-tls: get list watch"},
		// With the component vantage, for the fleet manager.
		"Role lockstep-vantage-certificate": {"secrets lockstep-vantage-tls: get list watch update"},
		// With the component cluster-api. Nobody has the second but where a namespace grants it, the others are of Cluster API and users.
		"ClusterRole lockstep-cluster-api":            {"clusters/status: patch", "captclusters/status: patch", "captcontrolplanes/status: patch", "dnsendpoints: create delete"},
		"ClusterRole lockstep-cluster-api-connection": {"secrets: get"},
		"ClusterRole lockstep-cluster-api-manager":    {"captclusters: create update patch delete", "captcontrolplanes: create update patch delete"},
		"ClusterRole lockstep-cluster-api-edit":       {"captclusters: create update patch delete deletecollection", "captcontrolplanes: create update patch delete deletecollection"},
		"ClusterRole lockstep-external-dns":           {"dnsendpoints: create patch delete", "events: create patch"},
	}
	got := map[string][]string{}
	for _, object := range loadRBAC(t) {
		if object.Kind != "Role" && object.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range object.Rules {
			if text := describeRule(rule); text != "" {
				got[object.Kind+" "+object.Name] = append(got[object.Kind+" "+object.Name], text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// Nobody gets the rights of another component, and one object alone grants the fleet manager its rights in all namespaces:
// components/enrolled-only takes it away.
func TestRightsBindings(t *testing.T) {
	shared := map[string]string{"lockstep-fleet-namespace": "lockstep-fleet", "lockstep-cluster-api": "lockstep-controller", "lockstep-external-dns-gateway": "lockstep-external-dns", "lockstep-vantage-certificate": "lockstep-fleet", "system:auth-delegator": "lockstep-apiserver", "extension-apiserver-authentication-reader": "lockstep-apiserver"}
	everywhere := 0
	for _, object := range loadRBAC(t) {
		account := object.RoleRef.Name
		if other, ok := shared[account]; ok {
			account = other
		}
		for _, subject := range object.Subjects {
			if subject.Kind != "ServiceAccount" || subject.Name != account {
				t.Errorf("%s %s binds %s to %s %s", object.Kind, object.Name, object.RoleRef.Name, subject.Kind, subject.Name)
			}
			if object.Kind == "ClusterRoleBinding" && object.RoleRef.Name == "lockstep-fleet-namespace" {
				everywhere++
			}
		}
	}
	if everywhere != 1 {
		t.Errorf("%d ClusterRoleBindings of lockstep-fleet-namespace, want 1", everywhere)
	}
}

func withSuffix(resources, suffix string) string {
	return strings.ReplaceAll(resources, " ", suffix+" ") + suffix
}

// describeRule returns "resources names: verbs" of a rule, without the verbs that only read what is no Secret.
func describeRule(rule rbacv1.PolicyRule) string {
	verbs := slices.Clone(rule.Verbs)
	if !slices.Contains(rule.Resources, "secrets") {
		verbs = slices.DeleteFunc(verbs, func(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" })
	}
	if len(verbs) == 0 {
		return ""
	}
	return strings.Join(append(slices.Clone(rule.Resources), rule.ResourceNames...), " ") + ": " + strings.Join(verbs, " ")
}

// loadRBAC returns the RBAC objects of the components; users.yaml has those of users.
func loadRBAC(t *testing.T) (all []rbacObject) {
	t.Helper()
	files, err := filepath.Glob("base/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "components/cluster-api/rbac.yaml", "components/external-dns/rbac.yaml", "components/external-dns-gateway/rbac.yaml", "components/vantage/rbac.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var object rbacObject
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if strings.HasPrefix(object.APIVersion, rbacv1.GroupName+"/") {
				all = append(all, object)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no RBAC objects in base")
	}
	return all
}
