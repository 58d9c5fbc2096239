package integration

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/mtls"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// core is the life of a Cluster with Cluster API's own core controller: it sets the owners, copies the endpoint, and takes what our objects
// say for the state of infrastructure and control plane. The Cluster is available while its name is live on every server.
func (f *clusterAPIFixture) core() {
	const cluster, network, plane = "clusters.cluster.x-k8s.io/core", "captcluster/core", "captcontrolplane/core"
	f.startCoreController()
	// The controller connects to the cluster that it is about: here its own.
	kubeconfig, err := clientcmd.Write(kubeconfigAs(kube.Config(f), ""))
	if err != nil {
		f.Fatal(err)
	}
	f.kubectl("create", "secret", "generic", "core-kubeconfig", "--type=cluster.x-k8s.io/secret", "--from-literal=value="+string(kubeconfig))
	f.kubectl("label", "secret", "core-kubeconfig", "cluster.x-k8s.io/cluster-name=core")
	f.newCluster("core", v1beta1.EndpointZoneAnnotation+": capi.example", `
  availabilityGates: [{conditionType: EndpointPropagated}],
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: core},
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: CAPTControlPlane, name: core}`)
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\nmetadata: {name: core}\n" +
		"spec: {controlPlaneEndpoint: {host: 192.0.2.20, port: 6443}, failureDomains: [{name: a, controlPlane: true}]}\n")
	f.apply("apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: CAPTControlPlane\nmetadata: {name: core}\nspec: {version: '1.31', workspaceName: core-plane}\n")
	f.waitCondition(network, "Ready", "False", "WorkspaceNotFound") // It has an owner.
	f.waitNotTrue(cluster, "Available")

	// The Cluster's own conditions say why, in the words of ours.
	missing := "WorkspaceTemplateApply core-vpc does not exist: create it, or name another one in the spec"
	f.waitRepeated(cluster, "InfrastructureReady", "WorkspaceNotFound", missing)
	f.waitRepeated(cluster, "ControlPlaneAvailable", "WaitingForVPC", "the network is not ready: "+missing)
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: core-vpc}\nspec: {writeConnectionSecretToRef: {name: vpc, namespace: " + f.namespace + "}}\n")
	const made = `{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`
	f.patchStatus("workspacetemplateapply/core-vpc", made)
	f.waitCondition(network, "Ready", "True", "Ready")
	f.waitCondition(cluster, "InfrastructureReady", "True", "Ready")
	f.waitRepeated(cluster, "ControlPlaneAvailable", "WorkspaceNotFound", "WorkspaceTemplateApply core-plane does not exist: create it, or name another one in the spec")
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: core-plane}\n")
	f.patchStatus("workspacetemplateapply/core-plane", made)
	f.waitShown(cluster, "{.status.initialization.infrastructureProvisioned}", "true")
	f.waitShown(cluster, "{.spec.controlPlaneEndpoint.host}", "192.0.2.20")
	f.waitShown(cluster, "{.status.failureDomains}", `[{"controlPlane":true,"name":"a"}]`)
	f.waitCondition(plane, "Ready", "True", "Ready")
	f.waitShown(cluster, "{.status.initialization.controlPlaneInitialized}", "true")
	f.waitCondition(cluster, "ControlPlaneAvailable", "True", "Ready")
	f.waitCondition(cluster, "Available", "True", "Available")

	// A server that does not answer: the name is not live everywhere.
	never := f.instance("never", v1beta1.RoleSecondary, 1)
	never.Spec.ClusterRef, never.Spec.Image = "dns", &v1beta1.ImageConfig{Image: noImage}
	f.create(never)
	f.waitNotTrue(cluster, "Available")
	if message := f.kubectl("get", cluster, "-o", `jsonpath={.status.conditions[?(@.type=="Available")].message}`); !strings.Contains(message, "EndpointPropagated") {
		f.Errorf("the Cluster is not available for another reason: %s", message)
	}
	f.deleteAnyway(never)
	f.waitCondition(cluster, "Available", "True", "Available")
	f.failureIsCopied()
	f.kubectl("delete", "clusters.cluster.x-k8s.io", "--all", "--timeout=120s") // It has put its finalizer on all of them.
	f.waitServed("core.capi.example.", "A")
}

// waitRepeated waits until a condition of a Cluster is False and has this reason and message.
func (f *clusterAPIFixture) waitRepeated(cluster, condition, reason, message string) {
	f.Helper()
	f.waitShown(cluster, fmt.Sprintf(`{.status.conditions[?(@.type==%q)]['status','reason','message']}`, condition), "False "+reason+" "+message)
}

// failureIsCopied: the core controller copies a failure to the Cluster, and keeps it when a person has ended the failure. So the copy has to
// be removed by hand, as docs/reference/cluster-api.md says.
func (f *clusterAPIFixture) failureIsCopied() {
	f.Helper()
	const cluster, network = "clusters.cluster.x-k8s.io/failed", "captcluster/failed"
	const copied = "{.status.deprecated.v1beta1['failureReason','failureMessage']}"
	const message = "WorkspaceTemplateApply failed-vpc has its connection Secret in another namespace, where it is not read: set spec.writeConnectionSecretToRef.namespace to "
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: failed-vpc}\nspec: {writeConnectionSecretToRef: {name: vpc, namespace: " + system + "}}\n")
	f.patchStatus("workspacetemplateapply/failed-vpc", `{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`)
	f.newCluster("failed", "a: b", "infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: failed}")
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\nmetadata: {name: failed}\nspec: {controlPlaneEndpoint: {host: 192.0.2.21, port: 6443}}\n")
	f.waitShown(network, "{.status['phase','failureReason','failureMessage']}", "Failed SecretForeign "+message+f.namespace)
	ours := `Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1beta1, Kind=CAPTCluster with name "failed": ` + message + f.namespace
	f.waitShown(cluster, copied, "SecretForeign "+ours)

	f.kubectl("patch", "workspacetemplateapply/failed-vpc", "--type=merge", "-p", `{"spec":{"writeConnectionSecretToRef":{"namespace":"`+f.namespace+`"}}}`)
	f.waitShown(network, "{.status['phase','failureReason']}", "Ready")
	f.waitCondition(cluster, "InfrastructureReady", "True", "Ready")
	if got, _, err := f.shown(f.Context(), cluster, copied); err != nil || got != "SecretForeign "+ours {
		f.Errorf("Cluster API takes its copy back: %q, %v; docs/reference/cluster-api.md says that it stays", got, err)
	}
	f.kubectl("patch", cluster, "--subresource=status", "--type=merge", "-p", `{"status":{"deprecated":{"v1beta1":{"failureReason":null,"failureMessage":null}}}}`)
	f.kubectl("annotate", cluster, "example.com/again=1") // The core controller looks at it again.
	f.waitShown(cluster, copied, "")
}

// startCoreController runs Cluster API's core controller until the test ends. Its output is logged if the test fails.
func (f *clusterAPIFixture) startCoreController() {
	f.Helper()
	binary := kube.Program(f, "cluster-api/core")
	ports, err := namedtest.FreePorts(3)
	if err != nil {
		f.Fatal(err)
	}
	folder := f.TempDir() // of the certificate of its webhooks, which nobody calls here
	data, err := mtls.NewAuthority(f).Issue(time.Now(), certs.Subject{DNSNames: []string{"localhost"}})
	if err != nil {
		f.Fatal(err)
	}
	mtls.WriteFiles(f, folder, data)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigAs(kube.Config(f), ""), kubeconfig); err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	command := exec.CommandContext(ctx, binary, "--kubeconfig="+kubeconfig, "--namespace="+f.namespace, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
		"--webhook-cert-dir="+folder, fmt.Sprintf("--webhook-port=%d", ports[0]), fmt.Sprintf("--health-addr=localhost:%d", ports[1]),
		"--insecure-diagnostics", fmt.Sprintf("--diagnostics-address=localhost:%d", ports[2]))
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		f.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	f.Cleanup(func() {
		cancel()
		if <-ended; f.Failed() {
			f.Logf("Cluster API's core controller:\n%s", output.String())
		}
	})
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		_, err := readURL(ctx, fmt.Sprintf("http://localhost:%d/readyz", ports[1]))
		return err
	})
}
