package integration

import (
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// kube-apiserver sorts requests as manifests/base/priority.yaml says: it names the FlowSchema in each answer.
func TestServePriority(t *testing.T) {
	kube.Isolated(t)
	const account = "system:serviceaccount:" + system + ":"
	for name, c := range map[string]struct{ user, path, schema string }{
		"the controller's lease":        {account + "lockstep-controller", "/apis/coordination.k8s.io/v1/namespaces/" + system + "/leases/lockstep-controller", "lockstep-leader-election"},
		"the controller":                {account + "lockstep-controller", "/apis/bindy.firestoned.io/v1beta1/dnszones", "lockstep"},
		"the fleet manager's lease":     {account + "lockstep-fleet", "/apis/coordination.k8s.io/v1/namespaces/" + system + "/leases/lockstep-fleet", "lockstep-leader-election"},
		"the fleet manager":             {account + "lockstep-fleet", "/apis/apps/v1/statefulsets", "lockstep"},
		"the API server":                {account + "lockstep-apiserver", "/api/v1/pods", "lockstep"},
		"the webhook":                   {account + "lockstep-webhook", "/apis", "lockstep"},
		"a user's question":             {"jane", "/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/default/syncstatuses", "lockstep-syncstatus"},
		"a pipeline's question":         {"system:serviceaccount:default:ci", "/apis/sync.bindy.firestoned.io/v1alpha1/namespaces/default/arecords/www/syncstatus", "lockstep-syncstatus"},
		"a user's question about a pod": {"jane", "/api/v1/namespaces/default/pods", "global-default"},
	} {
		t.Run(name, func(t *testing.T) {
			var schema flowcontrolv1.FlowSchema
			if err := kube.Client(t).Get(t.Context(), client.ObjectKey{Name: c.schema}, &schema); err != nil {
				t.Fatal(err)
			}
			if got := flowSchemaOf(t, c.user, c.path); got != string(schema.UID) {
				t.Errorf("FlowSchema %s, want %s (%s)", got, schema.UID, c.schema)
			}
		})
	}
}

// flowSchemaOf sends a request as a user and returns the UID of the FlowSchema, whether or not the user may have the answer.
func flowSchemaOf(t *testing.T, user, path string) string {
	t.Helper()
	config := rest.CopyConfig(kube.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	as, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := as.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
}
