package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// Deadlines of both kinds: 2 s after they began to wait they are Failed, and say for what; when the workspace is ready so are they. Every field,
// condition and column is compared on the way. The test is a disruptive one because the deadlines are flags of the controller; it does
// what Cluster API's controller, Crossplane and a user do.
func TestClusterAPIDeadlines(t *testing.T) {
	kube.Disruptive(t, nil)
	f := &clusterAPIFixture{&fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it-deadlines")}}
	f.installDefinitions()
	f.setDeadlines("2s")
	uid := f.newCluster("late", "a: b", `
  controlPlaneEndpoint: {host: 10.0.0.1, port: 6443},
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: CAPTCluster, name: late},
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: CAPTControlPlane, name: late}`)
	owner := fmt.Sprintf("metadata: {name: late, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: late, uid: %s}]}", uid)
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\n" + owner + "\nspec: {failureDomains: [{name: a, controlPlane: true}]}\n")
	f.apply("apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: CAPTControlPlane\n" + owner + "\nspec: {version: '1.31'}\n")
	f.lateNetwork()
	f.lateControlPlane()
	f.pausedIsLeftAlone()
	f.withoutEndpoint()
	f.errorsThatMayPass()
}

// lateNetwork is the CAPTCluster, which has no host and uses its Cluster's.
func (f *clusterAPIFixture) lateNetwork() {
	const network, plane = "captcluster/late", "captcontrolplane/late"
	const missing = "WorkspaceTemplateApply late-vpc does not exist: create it, or name another one in the spec"
	f.waitMissed(network, missing)
	f.waitMissed(plane, "the network is not ready: "+missing)
	f.waitCondition(network, "VPCReady", "False", "WorkspaceNotFound")
	f.waitShown(network, "{.status['vpcWorkspaceName','endpoint']}", "late-vpc 10.0.0.1:6443")
	f.waitShown(network, "{.status['vpcId','failureReason','failureMessage','initialization']}", "")
	f.checkColumns("captcluster", "NAME VPC-ID READY ENDPOINT AGE", "late false 10.0.0.1:6443")

	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: late-vpc}\nspec: {writeConnectionSecretToRef: {name: vpc, namespace: " + f.namespace + "}}\n")
	f.patchStatus("workspacetemplateapply/late-vpc", workspaceReady)
	f.kubectl("create", "rolebinding", "connection", "--clusterrole=lockstep-cluster-api-connection", "--serviceaccount="+system+":lockstep-controller")
	f.lookAgain(network, "workspace")
	f.waitMissed(network, "there is no Secret vpc of type connection.crossplane.io/v1alpha1 with the ID of a network in vpc_id yet")
	f.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: vpc}\ntype: connection.crossplane.io/v1alpha1\nstringData: {vpc_id: vpc-123456789}\n")
	f.lookAgain(network, "secret")
	f.waitShown(network, "{.status['phase','ready','vpcId','endpoint','initialization.provisioned','failureDomains']}", `Ready true vpc-123456789 10.0.0.1:6443 true [{"controlPlane":true,"name":"a"}]`)
	f.waitSummary(network, "Ready", "True", "Ready", "the network vpc-123456789 is ready, and the API server is at 10.0.0.1:6443")
	f.waitShown(network, `{.status.conditions[?(@.type=="Stalled")].type}`, "")
	f.checkColumns("captcluster", "NAME VPC-ID READY ENDPOINT AGE", "late vpc-123456789 true 10.0.0.1:6443")
}

// lateControlPlane is the CAPTControlPlane, whose network is there.
func (f *clusterAPIFixture) lateControlPlane() {
	const plane, workspace = "captcontrolplane/late", "workspacetemplateapply/late-control-plane"
	f.waitMissed(plane, "WorkspaceTemplateApply late-control-plane does not exist: create it, or name another one in the spec")
	f.waitShown(plane, "{.status.workspaceTemplateStatus['ready','state']}", "false Missing")
	f.waitPhase(plane, "Failed")
	f.checkColumns("captcontrolplane", "NAME READY PHASE VERSION ENDPOINT AGE", "late false Failed 10.0.0.1:6443")

	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: late-control-plane}\n")
	f.patchStatus(workspace, `{"conditions":[{"type":"Synced","status":"False","message":"quota"}]}`)
	f.waitMissed(plane, "WorkspaceTemplateApply late-control-plane is not synced: quota")
	f.waitShown(plane, "{.status.workspaceTemplateStatus['ready','state','lastFailedRevision','lastFailureMessage']}", "false Failed 1 quota")

	f.patchStatus(workspace, workspaceReady)
	f.waitPhase(plane, "Ready")
	f.waitShown(plane, "{.status.workspaceTemplateStatus['ready','state','lastAppliedRevision','lastFailedRevision','lastFailureMessage','outputs.region']}", "true Ready 1 1 quota eu")
	f.waitShown(plane, "{.status['ready','initialized','initialization.controlPlaneInitialized','externalManagedControlPlane','version','endpoint']}", "true true true true 1.31 10.0.0.1:6443")
	const summary = "WorkspaceTemplateApply late-control-plane is synced and ready, and the API server is at 10.0.0.1:6443"
	f.waitSummary(plane, "Ready", "True", "Ready", summary)
	f.waitSummary(plane, "Available", "True", "Ready", summary)
	f.checkColumns("captcontrolplane", "NAME READY PHASE VERSION ENDPOINT AGE", "late true Ready 1.31 10.0.0.1:6443")
}

// pausedIsLeftAlone: nothing of a Cluster that is paused changes. Another control plane, which is looked at afterwards, shows that the first was.
func (f *clusterAPIFixture) pausedIsLeftAlone() {
	const cluster, plane = "clusters.cluster.x-k8s.io/late", "captcontrolplane/late"
	f.kubectl("patch", cluster, "--type=merge", "-p", `{"spec":{"paused":true}}`)
	f.kubectl("patch", plane, "--type=merge", "-p", `{"spec":{"version":"1.32"}}`)
	uid := f.newCluster("other", "a: b", "controlPlaneEndpoint: {host: 10.0.0.2, port: 6443}")
	f.apply("apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: CAPTControlPlane\n" +
		"metadata: {name: other, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: other, uid: " + uid + "}]}\nspec: {version: '1.31'}\n")
	f.waitCondition("captcontrolplane/other", "WorkspaceReady", "False", "WorkspaceNotFound")
	if got, _, err := f.shown(f.Context(), plane, "{.status.version}"); err != nil || got != "1.31" {
		f.Errorf("the version of a control plane that is paused is %q, %v", got, err)
	}
	f.kubectl("patch", cluster, "--type=merge", "-p", `{"spec":{"paused":false}}`)
	f.waitShown(plane, "{.status.version}", "1.32")
}

// withoutEndpoint: where nothing says at which address the API server will be, neither kind becomes ready, whatever else is there.
func (f *clusterAPIFixture) withoutEndpoint() {
	uid := f.newCluster("nowhere", "a: b", "paused: false")
	owner := "metadata: {name: nowhere, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: nowhere, uid: " + uid + "}]}\n"
	for _, workspace := range []string{"nowhere-vpc", "nowhere-control-plane"} {
		f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: WorkspaceTemplateApply\nmetadata: {name: " + workspace + "}\nspec: {writeConnectionSecretToRef: {name: vpc}}\n")
		f.patchStatus("workspacetemplateapply/"+workspace, workspaceReady)
	}
	f.apply("apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: CAPTCluster\n" + owner)
	f.apply("apiVersion: controlplane.cluster.x-k8s.io/v1beta1\nkind: CAPTControlPlane\n" + owner + "spec: {version: '1.31'}\n")
	for _, object := range []string{"captcluster/nowhere", "captcontrolplane/nowhere"} {
		f.waitSummary(object, "Ready", "False", "WaitingForEndpoint", "neither spec.controlPlaneEndpoint nor the Cluster's has a host yet")
		f.waitShown(object, "{.status['phase','ready','failureReason']}", "Creating false")
	}
}

// errorsThatMayPass: while the controller may not read workspaces, a condition says so and nothing else of a status changes; Ready keeps the time at
// which it became True. Afterwards the condition is as before.
func (f *clusterAPIFixture) errorsThatMayPass() {
	const network, plane, role = "captcluster/late", "captcontrolplane/late", "clusterrole/lockstep-cluster-api"
	const rest = `{.status['phase','ready','endpoint','failureReason']} {.status.conditions[?(@.type=="Ready")]}`
	before := map[string]string{}
	for _, object := range []string{network, plane} {
		shown, _, err := f.shown(f.Context(), object, rest)
		if err != nil {
			f.Fatal(err)
		}
		before[object] = shown
	}
	rules := kube.Kubectl(f, "", "get", role, "-o", "jsonpath={.rules}")
	permit := func(rules string) { kube.Kubectl(f, "", "patch", role, "--type=merge", "-p", `{"rules":`+rules+"}") }
	f.Cleanup(func() { permit(rules) })
	permit(strings.ReplaceAll(rules, `"workspacetemplateapplies"`, `"nothing"`))
	f.lookAgain(network, "role")
	f.lookAgain(plane, "role")
	f.waitCondition(network, "VPCReady", "Unknown", "WorkspaceUnread")
	f.waitCondition(plane, "WorkspaceReady", "Unknown", "WorkspaceUnread")
	for object, shown := range before {
		f.waitShown(object, rest, shown)
	}
	permit(rules)
	f.waitCondition(network, "VPCReady", "True", "Ready")
	f.waitCondition(plane, "WorkspaceReady", "True", "Ready")
}

// workspaceReady is the status of a workspace that Crossplane has made.
const workspaceReady = `{"outputs":{"region":"eu"},"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`

// waitMissed waits until an object has missed its deadline while it waited for something.
func (f *clusterAPIFixture) waitMissed(object, what string) {
	f.Helper()
	f.waitSummary(object, "Ready", "False", "ProgressDeadlineExceeded", what+" after 2s")
	f.waitSummary(object, "Stalled", "True", "ProgressDeadlineExceeded", what+" after 2s")
	f.waitShown(object, "{.status['phase','ready','failureReason']}", "Failed false")
}

// lookAgain has an object looked at now: the workspace of one that is Failed is looked at every half minute only.
func (f *clusterAPIFixture) lookAgain(object, because string) {
	f.Helper()
	f.kubectl("annotate", "--overwrite", object, "look="+because)
}

// waitPhase waits until a control plane is Failed or Ready, and all conditions that follow from it.
func (f *clusterAPIFixture) waitPhase(plane, phase string) {
	f.Helper()
	f.waitShown(plane, "{.status.phase}", phase)
	f.waitSummary(plane, "Creating", "False", "NotInPhase", "the phase is "+phase)
	if phase == "Ready" {
		f.waitSummary(plane, "Failed", "False", "NotInPhase", "the phase is Ready")
		f.waitCondition(plane, "Initialized", "True", "Initialized")
		return
	}
	f.waitCondition(plane, "Failed", "True", "ProgressDeadlineExceeded")
	f.waitCondition(plane, "Available", "False", "ProgressDeadlineExceeded")
	f.waitCondition(plane, "Initialized", "False", "WorkspaceNotFound")
}

// waitSummary waits until a condition of an object has a status, a reason and a message.
func (f *clusterAPIFixture) waitSummary(object, condition, status, reason, message string) {
	f.Helper()
	f.waitShown(object, fmt.Sprintf(`{.status.conditions[?(@.type==%q)]['status','reason','message']}`, condition), status+" "+reason+" "+message)
}

// setDeadlines starts the controller anew with other deadlines, until the end of the test.
func (f *clusterAPIFixture) setDeadlines(deadline string) {
	f.Helper()
	var flags []string
	for _, stage := range []string{"vpc", "secret", "control-plane"} {
		flags = append(flags, fmt.Sprintf("--cluster-api-%s-timeout=%s", stage, deadline))
	}
	addArguments(f, "controller", flags...)
	waitRolledOut(f, "controller")
}
