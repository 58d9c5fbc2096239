package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// workspaceDefinition is as much of the definition of WorkspaceTemplateApply as others rely on.
const workspaceDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workspacetemplateapplies.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: WorkspaceTemplateApply, plural: workspacetemplateapplies, singular: workspacetemplateapply}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// A Cluster with network and control plane: nothing is ready before the name of its API server is live on every server. The test does what
// Cluster API's controller, Crossplane and a user do. The definitions of Cluster API are the real ones; they are installed after
// Lockstep.
func TestClusterAPI(t *testing.T) {
	kube.Isolated(t, "cluster.x-k8s.io")
	f := &clusterAPIFixture{fixture: newFixture(t, "capi.example", 1, 1)}
	f.installDefinitions()
	f.runSub("life", func(s *fixture) { (&clusterAPIFixture{s}).life() })
	f.runSub("hostile", func(s *fixture) { (&clusterAPIFixture{s}).hostile() })
	f.runSub("core controller", func(s *fixture) { (&clusterAPIFixture{s}).core() })
}

// installDefinitions installs the definitions of Cluster API and of workspaces until the end of the test.
func (f *clusterAPIFixture) installDefinitions() {
	f.Helper()
	definitions := kube.Definitions(f, "cluster-api")
	f.Cleanup(func() {
		if f.Failed() { // The controller that takes its finalizer away has ended.
			for _, name := range strings.Fields(kube.Kubectl(f, "", "-n", f.namespace, "get", "clusters.cluster.x-k8s.io", "-o", "name")) {
				kube.Kubectl(f, "", "-n", f.namespace, "patch", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
		}
		kube.Kubectl(f, workspaceDefinition, "delete", "--ignore-not-found", "-f", "-", "-f", definitions)
	})
	kube.Kubectl(f, "", "apply", "--server-side", "-f", definitions)
	kube.Kubectl(f, workspaceDefinition, "apply", "-f", "-")
	kube.Kubectl(f, "", "wait", "--for=condition=Established", "crd/clusters.cluster.x-k8s.io", "crd/workspacetemplateapplies.infrastructure.cluster.x-k8s.io", "--timeout=120s")
}

// clusterAPIFixture is a fixture with what a test of Cluster API does over and over.
type clusterAPIFixture struct{ *fixture }

// apply applies a manifest in the test's namespace.
func (f *clusterAPIFixture) apply(manifest string) {
	f.Helper()
	kube.Kubectl(f, manifest, "apply", "--namespace", f.namespace, "-f", "-")
}

// kubectl runs kubectl in the test's namespace.
func (f *clusterAPIFixture) kubectl(args ...string) string {
	f.Helper()
	return kube.Kubectl(f, "", append([]string{"--namespace", f.namespace}, args...)...)
}

// clusterAPIKinds are the kinds of objects by the names under which the tests refer to them.
var clusterAPIKinds = map[string]schema.GroupVersionKind{
	"clusters.cluster.x-k8s.io": {Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	"captcluster":               {Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "CAPTCluster"},
	"captcontrolplane":          {Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "CAPTControlPlane"},
}

// shown returns what a JSONPath of an object is, as kubectl prints it, and the object.
func (f *clusterAPIFixture) shown(ctx context.Context, object, path string) (text string, o *unstructured.Unstructured, err error) {
	kind, name, _ := strings.Cut(object, "/")
	o = &unstructured.Unstructured{}
	o.SetGroupVersionKind(clusterAPIKinds[kind])
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, o); err != nil {
		return "", nil, err
	}
	query := jsonpath.New(object).AllowMissingKeys(true)
	if err := query.Parse(path); err != nil {
		return "", nil, err
	}
	var b strings.Builder
	err = query.Execute(&b, o.Object)
	return b.String(), o, err
}

// waitShown waits until a JSONPath of an object is a text.
func (f *clusterAPIFixture) waitShown(object, path, want string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		got, o, err := f.shown(ctx, object, path)
		if err == nil && got != want {
			err = fmt.Errorf("%s of %s is %q, want %q: %v", path, object, got, want, o)
		}
		return err
	})
}

// waitCondition waits until a condition of an object has a status and a reason.
func (f *clusterAPIFixture) waitCondition(object, condition, status, reason string) {
	f.Helper()
	f.waitShown(object, fmt.Sprintf(`{.status.conditions[?(@.type==%q)]['status','reason']}`, condition), status+" "+reason)
}

// waitNotTrue waits until a condition of an object is False or Unknown.
func (f *clusterAPIFixture) waitNotTrue(object, condition string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		got, o, err := f.shown(ctx, object, fmt.Sprintf(`{.status.conditions[?(@.type==%q)].status}`, condition))
		if err == nil && got != "False" && got != "Unknown" {
			err = fmt.Errorf("%s of %s is %q: %v", condition, object, got, o)
		}
		return err
	})
}

// patchStatus does what the controller of another kind does to a status.
func (f *clusterAPIFixture) patchStatus(object, status string) {
	f.Helper()
	f.kubectl("patch", object, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
}

// newCluster makes a Cluster that asks for a name, and returns its UID.
func (f *clusterAPIFixture) newCluster(name, annotations, spec string) (uid string) {
	f.Helper()
	f.apply(fmt.Sprintf("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: %s, annotations: {%s}}\nspec: {%s}\n", name, annotations, spec))
	return f.kubectl("get", "clusters.cluster.x-k8s.io/"+name, "-o", "jsonpath={.metadata.uid}")
}

// life is that of a Cluster with its CAPTCluster and CAPTControlPlane.
func (f *clusterAPIFixture) life() {
	const cluster, network, plane = "clusters.cluster.x-k8s.io/prod", "captcluster/prod", "captcontrolplane/prod"
	uid := f.newCluster("prod", v1beta1.EndpointZoneAnnotation+": capi.example", `
  availabilityGates: [{conditionType: EndpointPropagated}],
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: prod},
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: CAPTControlPlane, name: prod}`)
	f.waitCondition(cluster, "EndpointPropagated", "Unknown", "WaitingForEndpoint")
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\nmetadata: {name: prod}\n" +
		"spec: {controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}, failureDomains: [{name: a, controlPlane: true}]}\n")
	f.apply("apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: CAPTControlPlane\nmetadata: {name: prod}\nspec: {version: '1.31', workspaceName: prod-plane}\n")

	// Nothing is done before there is an owner.
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"prod","uid":%q}]}}`, uid)
	f.kubectl("patch", plane, "--type=merge", "-p", owner)
	f.waitCondition(plane, "Ready", "False", "WaitingForVPC")
	f.waitShown(network, "{.status}", `{"observedGeneration":-1}`) // As its definition has it.
	f.kubectl("patch", network, "--type=merge", "-p", owner)
	f.waitCondition(network, "Ready", "False", "WorkspaceNotFound")
	f.waitServed("prod.capi.example.", "A", "192.0.2.10") // Cluster API copies the endpoint only when the CAPTCluster is ready.

	// Crossplane makes the network.
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: prod-vpc}\nspec: {writeConnectionSecretToRef: {name: vpc, namespace: " + f.namespace + "}}\n")
	f.waitCondition(network, "VPCReady", "False", "WorkspaceNotSynced")
	f.patchStatus("workspacetemplateapply/prod-vpc", `{"conditions":[{"type":"Synced","status":"True","reason":"ReconcileSuccess"}]}`)
	f.waitCondition(network, "VPCReady", "False", "WorkspaceNotReady")
	f.patchStatus("workspacetemplateapply/prod-vpc", `{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`)
	f.waitCondition(network, "VPCReady", "False", "SecretNotReady")
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: vpc}\ntype: connection.crossplane.io/v1alpha1\nstringData: {vpc_id: vpc-123456789, password: hidden}\n")
	f.kubectl("create", "rolebinding", "connection", "--clusterrole=lockstep-cluster-api-connection", "--serviceaccount="+system+":lockstep-controller")
	f.waitCondition(network, "Ready", "True", "Ready")
	f.waitShown(network, "{.status['vpcId','endpoint','initialization.provisioned','failureDomains']}", `vpc-123456789 192.0.2.10:6443 true [{"controlPlane":true,"name":"a"}]`)

	// Cluster API copies the endpoint; Crossplane makes the control plane.
	f.kubectl("patch", cluster, "--type=merge", "-p", `{"spec":{"controlPlaneEndpoint":{"host":"192.0.2.10","port":6443}}}`)
	f.waitCondition(plane, "Ready", "False", "WorkspaceNotFound")
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: prod-plane}\n")
	f.patchStatus("workspacetemplateapply/prod-plane", `{"conditions":[{"type":"Synced","status":"False","message":"quota"}]}`)
	f.waitShown(plane, "{.status.workspaceTemplateStatus.lastFailureMessage}", "quota")
	f.patchStatus("workspacetemplateapply/prod-plane", `{"outputs":{"region":"eu"},"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`)
	f.waitCondition(plane, "Ready", "True", "Ready")
	f.waitShown(plane, "{.status['phase','initialized','initialization.controlPlaneInitialized','version','workspaceTemplateStatus.outputs.region']}", "Ready true true 1.31 eu")
	f.waitCondition(cluster, "EndpointPropagated", "True", "EndpointPropagated")
	f.checkColumns("captcluster", "NAME VPC-ID READY ENDPOINT AGE", "prod vpc-123456789 true 192.0.2.10:6443")
	f.checkColumns("captcontrolplane", "NAME READY PHASE VERSION ENDPOINT AGE", "prod true Ready 1.31 192.0.2.10:6443")

	// A server that does not answer: the name is not live everywhere, and nothing that has happened is taken back.
	never := f.instance("never", v1beta1.RoleSecondary, 1)
	never.Spec.ClusterRef, never.Spec.Image = "dns", &v1beta1.ImageConfig{Image: noImage}
	f.create(never)
	f.waitNotTrue(cluster, "EndpointPropagated")
	f.waitNotTrue(plane, "EndpointPropagated")
	f.waitShown(plane, "{.status['ready','phase','initialized']}", "true Ready true")
	f.deleteAnyway(never)
	f.waitCondition(cluster, "EndpointPropagated", "True", "EndpointPropagated")

	// The endpoint moves: the condition is of the new one.
	f.kubectl("patch", cluster, "--type=merge", "-p", `{"spec":{"controlPlaneEndpoint":{"host":"lb.example.net","port":6443}}}`)
	f.waitServed("prod.capi.example.", "CNAME", "lb.example.net.")
	f.waitCondition(cluster, "EndpointPropagated", "True", "EndpointPropagated")
	f.waitCondition(plane, "Ready", "True", "Ready")

	// The name is not asked for any more.
	f.kubectl("annotate", cluster, v1beta1.EndpointZoneAnnotation+"-")
	f.waitServed("prod.capi.example.", "CNAME")
	f.waitShown(cluster, `{.status.conditions[?(@.type=="EndpointPropagated")].type}`, "")
	f.waitShown(plane, `{.status.conditions[?(@.type=="EndpointPropagated")].type}`, "")
}

// hostile is what one who may edit Clusters in a namespace tries.
func (f *clusterAPIFixture) hostile() {
	const endpoint = "controlPlaneEndpoint: {host: 192.0.2.66, port: 6443}"

	// Names by somebody who may edit Clusters alone. All else of them may still be edited.
	f.newCluster("plain", "a: b", endpoint)
	f.kubectl("create", "role", "clusters", "--verb=get,patch", "--resource=clusters.cluster.x-k8s.io")
	f.kubectl("create", "rolebinding", "clusters", "--role=clusters", "--user=mallory")
	annotate := func(annotation string) (string, error) {
		return kube.TryKubectl(f, "", "--as=mallory", "--namespace", f.namespace, "annotate", "clusters.cluster.x-k8s.io/plain", annotation)
	}
	for _, annotation := range []string{v1beta1.EndpointZoneAnnotation, v1beta1.EndpointNameAnnotation, v1beta1.EndpointWildcardAnnotation, v1beta1.AllowZoneNamespacesAnnotation} {
		if out, err := annotate(annotation + "=x"); err == nil || !strings.Contains(out, "the right to create dnsendpoints in namespace "+f.namespace) {
			f.Errorf("annotation %s by one who may not create DNSEndpoints: %v: %s", annotation, err, out)
		}
	}
	if out, err := annotate("harmless=x"); err != nil {
		f.Errorf("another annotation: %v: %s", err, out)
	}

	// The zone of another namespace, with all the consent that the thief can give.
	thief := &clusterAPIFixture{f.inTest(f.fixture)}
	thief.namespace = kube.Namespace(f, "it")
	thief.newCluster("thief", v1beta1.EndpointZoneAnnotation+": capi.example, "+v1beta1.AllowZoneNamespacesAnnotation+": '*'", endpoint)
	thief.waitCondition("clusters.cluster.x-k8s.io/thief", "EndpointPropagated", "False", "NoMatchingZone")
	if message := thief.kubectl("get", "clusters.cluster.x-k8s.io/thief", "-o", "jsonpath={.status.conditions}"); strings.Contains(message, f.namespace) {
		f.Errorf("a condition names the namespace of the zone: %s", message)
	}

	// A name that another Cluster has.
	name := v1beta1.EndpointZoneAnnotation + ": capi.example, " + v1beta1.EndpointNameAnnotation + ": api.capi.example"
	f.newCluster("first", name, "controlPlaneEndpoint: {host: lb.example.net, port: 6443}")
	f.waitCondition("clusters.cluster.x-k8s.io/first", "EndpointPropagated", "True", "EndpointPropagated")
	f.newCluster("second", name, endpoint)
	f.waitShown("clusters.cluster.x-k8s.io/second", `{.status.conditions[?(@.type=="EndpointPropagated")].status}`, "False")
	f.waitServed("api.capi.example.", "CNAME", "lb.example.net.")

	// A DNSEndpoint of somebody else under the name that ours would have.
	taken := &v1alpha1.DNSEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "cluster-third"}}
	f.create(taken)
	f.newCluster("third", v1beta1.EndpointZoneAnnotation+": capi.example", endpoint)
	f.waitCondition("clusters.cluster.x-k8s.io/third", "EndpointPropagated", "False", "EndpointForeign")
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(taken), taken); err != nil || len(taken.Spec.Endpoints) > 0 {
		f.Errorf("the DNSEndpoint of somebody else was changed: %v, %+v", err, taken.Spec)
	}

	// Secrets that are none of Crossplane's, or elsewhere.
	uid := f.newCluster("fourth", "a: b", endpoint)
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: password}\nstringData: {vpc_id: hidden}\n")
	for name, reason := range map[string]string{f.namespace: "SecretNotReady", system: "SecretForeign"} {
		object := "thief-" + strings.ToLower(reason)
		f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: " + object + "-vpc}\nspec: {writeConnectionSecretToRef: {name: password, namespace: " + name + "}}\n")
		f.patchStatus("workspacetemplateapply/"+object+"-vpc", `{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`)
		f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\nmetadata: {name: " + object +
			", ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: fourth, uid: " + uid + "}]}\n")
		f.waitCondition("captcluster/"+object, "VPCReady", "False", reason)
		if shown := f.kubectl("get", "captcluster/"+object, "-o", "jsonpath={.status}"); strings.Contains(shown, "hidden") {
			f.Errorf("a Secret shows in %s", shown)
		}
	}
	f.waitShown("captcluster/thief-secretforeign", "{.status['phase','failureReason']}", "Failed SecretForeign")
}
