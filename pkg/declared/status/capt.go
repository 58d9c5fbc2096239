package status

import (
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

// CAPTClusterFacts is what one look at a CAPTCluster found.
type CAPTClusterFacts struct {
	Generation int64
	// Endpoint is the host and port of the API server; empty if neither the object nor its Cluster has one.
	Endpoint  string
	Workspace Workspace
	// VPCID is from the connection Secret of the workspace. If it is empty, SecretProblem is why.
	VPCID         string
	SecretProblem Verdict
	// SecretUnread is why the Secret could not be read, for the time being; empty if it could.
	SecretUnread string
	Name         PublishedName
	// FailureDomains are those of the spec, ListedDomains is true if Cluster API expects a list of them (contract v1beta2).
	FailureDomains []infrastructure.FailureDomain
	ListedDomains  bool
	Timeouts       CAPTTimeouts
}

// CAPTCluster computes the status of a CAPTCluster, and how long it can wait for its next check; 0 if only an event can change anything. It is
// ready when the network is there, an endpoint is known and, if it has a name, that is propagated. A name that ceases to be propagated
// later takes nothing back: EndpointPropagated shows it. What cannot be read for the time being changes its own condition only.
func CAPTCluster(prev infrastructure.CAPTClusterStatus, f CAPTClusterFacts, now time.Time) (infrastructure.CAPTClusterStatus, time.Duration) {
	next := *prev.DeepCopy()
	next.VPCWorkspaceName, next.Endpoint, next.FailureDomains = f.Workspace.Name, f.Endpoint, f.encodeDomains()
	vpc := f.vpc()
	Set(&next.Conditions, VPCReady, vpc, f.Generation, now)
	f.Name.setCondition(&next.Conditions, f.Generation, now)
	if f.Workspace.Unread != "" || f.SecretUnread != "" || f.Name.Unread != "" && vpc.Holds() && !f.isProvisioned(prev) {
		return next, creatingInterval
	}
	if f.VPCID != "" {
		next.VPCID = f.VPCID
	}
	next.ObservedGeneration = f.Generation
	ready, timeout := f.ready(vpc, f.isProvisioned(prev))
	next.LifecycleStatus = finishLifecycle(prev.LifecycleStatus, &next.Conditions, lifecycleFacts{
		ready: ready, failure: f.failure(f.isProvisioned(prev)), generation: f.Generation, timeout: timeout, copied: true,
		progress: hasAdvanced(prev.Conditions, next.Conditions, VPCReady),
	}, now)
	if next.Ready {
		next.Initialization = &infrastructure.CAPTClusterInitialization{Provisioned: new(true)}
	}
	return next, nextLook(next.LifecycleStatus, next.Conditions, f.Name, timeout, now)
}

func (f CAPTClusterFacts) isProvisioned(prev infrastructure.CAPTClusterStatus) bool {
	return prev.Initialization != nil && ptr.Deref(prev.Initialization.Provisioned, false)
}

// vpc holds when the network is there and known.
func (f CAPTClusterFacts) vpc() Verdict {
	workspace := f.Workspace.verdict()
	switch {
	case !workspace.Holds():
		return workspace
	case f.SecretUnread != "":
		return Unknown(WorkspaceUnread, "the connection Secret of WorkspaceTemplateApply "+f.Workspace.Name+" could not be read: "+f.SecretUnread)
	case f.VPCID == "":
		return f.SecretProblem
	}
	return True(ReasonReady, "the network "+f.VPCID+" is ready")
}

// NoSecretNamed is about a network whose workspace names no connection Secret.
func NoSecretNamed(workspace string) Verdict {
	return False(SecretNotReady, "WorkspaceTemplateApply "+workspace+" names no connection Secret: set spec.writeConnectionSecretToRef")
}

// SecretElsewhere is about a network whose connection Secret is not in the namespace of its workspace.
func SecretElsewhere(workspace, namespace string) Verdict {
	return False(SecretForeign, "WorkspaceTemplateApply "+workspace+" has its connection Secret in another namespace, where it is not read: set spec.writeConnectionSecretToRef.namespace to "+namespace)
}

// SecretForbidden is about a network whose connection Secret may not be read.
func SecretForbidden(secret string) Verdict {
	return False(SecretNotReady, "the controller may not read the Secret "+secret+": bind the ClusterRole lockstep-cluster-api-connection to it in this namespace")
}

// SecretIncomplete is about a network without a Secret of a type that has its ID in an entry.
func SecretIncomplete(secret, kind, entry string) Verdict {
	return False(SecretNotReady, fmt.Sprintf("there is no Secret %s of type %s with the ID of a network in %s yet", secret, kind, entry))
}

// failure is what waiting does not mend.
func (f CAPTClusterFacts) failure(provisioned bool) terminalFailure {
	if f.Workspace.verdict().Holds() && f.SecretProblem.Reason == SecretForeign {
		return terminalFailure{true, f.SecretProblem}
	}
	return f.Name.failure(provisioned)
}

// ready is the summary; the duration is how long it may take to get further.
func (f CAPTClusterFacts) ready(vpc Verdict, provisioned bool) (Verdict, time.Duration) {
	switch waiting, waits := f.Name.waiting(); {
	case !vpc.Holds() && vpc.Reason == SecretNotReady:
		return vpc, f.Timeouts.Secret
	case !vpc.Holds():
		return vpc, f.Timeouts.VPC
	case f.Endpoint == "":
		return False(WaitingForEndpoint, "neither spec.controlPlaneEndpoint nor the Cluster's has a host yet"), f.Timeouts.VPC
	case waits && !provisioned:
		return waiting, f.Timeouts.ControlPlane
	}
	return True(ReasonReady, vpc.Message+", and the API server is at "+f.Endpoint), f.Timeouts.VPC
}

// encodeDomains encodes the failure domains as the contract of Cluster API has them.
func (f CAPTClusterFacts) encodeDomains() *apiextensionsv1.JSON {
	if len(f.FailureDomains) == 0 {
		return nil
	}
	var value any = f.FailureDomains
	if !f.ListedDomains {
		byName := map[string]infrastructure.FailureDomain{}
		for _, d := range f.FailureDomains {
			name := d.Name
			d.Name = ""
			byName[name] = d
		}
		value = byName
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil // Strings and booleans can be encoded.
	}
	return &apiextensionsv1.JSON{Raw: raw}
}

// CAPTControlPlaneFacts is what one look at a CAPTControlPlane found.
type CAPTControlPlaneFacts struct {
	Generation int64
	// Endpoint is the host and port of the API server; empty if neither the object nor its Cluster has one.
	Endpoint, Version string
	// VPC is the condition VPCReady of the CAPTCluster that is the infrastructure of the Cluster; zero if it has none yet. HasVPC is
	// false if the infrastructure is of another kind.
	VPC       Verdict
	HasVPC    bool
	Workspace Workspace
	Name      PublishedName
	Timeouts  CAPTTimeouts
}

// CAPTControlPlane computes the status of a CAPTControlPlane, and how long it can wait for its next check; 0 if only an event can change
// anything. It is ready and initialized when network and workspace are there, an endpoint is known and, if it has a name, that is
// propagated. Initialized is never taken back, and ready not for a name. What cannot be read for the time being changes its own condition
// only.
func CAPTControlPlane(prev controlplane.CAPTControlPlaneStatus, f CAPTControlPlaneFacts, now time.Time) (controlplane.CAPTControlPlaneStatus, time.Duration) {
	next := *prev.DeepCopy()
	next.Endpoint, next.ExternalManagedControlPlane = f.Endpoint, new(true)
	next.WorkspaceTemplateStatus = f.Workspace.report(prev.WorkspaceTemplateStatus)
	workspace := f.workspace()
	Set(&next.Conditions, WorkspaceReady, workspace, f.Generation, now)
	f.Name.setCondition(&next.Conditions, f.Generation, now)
	if workspace.Status == metav1.ConditionUnknown || f.Workspace.Unread != "" || f.Name.Unread != "" && workspace.Holds() && !prev.Initialized {
		return next, creatingInterval
	}
	next.ObservedGeneration = f.Generation
	if workspace.Holds() {
		next.Version = f.Version
	}
	ready, timeout := f.ready(workspace, prev.Initialized)
	next.LifecycleStatus = finishLifecycle(prev.LifecycleStatus, &next.Conditions, lifecycleFacts{
		ready: ready, failure: f.Name.failure(prev.Initialized), generation: f.Generation, timeout: timeout, copied: true,
		progress: hasAdvanced(prev.Conditions, next.Conditions, WorkspaceReady),
	}, now)
	if next.Ready {
		next.Initialized = true
		next.Initialization = &controlplane.CAPTControlPlaneInitialization{ControlPlaneInitialized: new(true)}
	}
	f.setPhases(&next, ready, now)
	return next, nextLook(next.LifecycleStatus, next.Conditions, f.Name, timeout, now)
}

// workspace holds when the control plane is there. Without a network it cannot be. Of a network that cannot be read for the time being
// nothing is known.
func (f CAPTControlPlaneFacts) workspace() Verdict {
	if f.HasVPC && f.VPC.Status == metav1.ConditionUnknown {
		return Unknown(WorkspaceUnread, "the network: "+f.VPC.Message)
	}
	if f.HasVPC && !f.VPC.Holds() {
		message := "the CAPTCluster has no status yet"
		if f.VPC.Message != "" {
			message = f.VPC.Message
		}
		return False(WaitingForVPC, "the network is not ready: "+message)
	}
	return f.Workspace.verdict()
}

// ready is the summary; the duration is how long it may take to get further.
func (f CAPTControlPlaneFacts) ready(workspace Verdict, initialized bool) (Verdict, time.Duration) {
	switch waiting, waits := f.Name.waiting(); {
	case workspace.Reason == WaitingForVPC:
		return workspace, f.Timeouts.VPC
	case !workspace.Holds():
		return workspace, f.Timeouts.ControlPlane
	case f.Endpoint == "":
		return False(WaitingForEndpoint, "neither spec.controlPlaneEndpoint nor the Cluster's has a host yet"), f.Timeouts.ControlPlane
	case waits && !initialized:
		return waiting, f.Timeouts.ControlPlane
	}
	return True(ReasonReady, workspace.Message+", and the API server is at "+f.Endpoint), f.Timeouts.ControlPlane
}

// setPhases writes the conditions that follow from the phase.
func (f CAPTControlPlaneFacts) setPhases(s *controlplane.CAPTControlPlaneStatus, ready Verdict, now time.Time) {
	initialized := False(ready.Reason, ready.Message)
	if s.Initialized {
		initialized = True(Initialized, "network, workspace and endpoint were ready; whether the API server answers is not probed")
	}
	Set(&s.Conditions, Initialized, initialized, f.Generation, now)
	Set(&s.Conditions, Creating, phaseVerdict(s.Phase == v1beta1.PhaseCreating, s.Phase, ready.Reason, ready.Message), f.Generation, now)
	failed := phaseVerdict(false, s.Phase, "", "")
	if stalled := meta.FindStatusCondition(s.Conditions, Stalled); stalled != nil && s.Phase == v1beta1.PhaseFailed {
		failed = True(stalled.Reason, stalled.Message)
	}
	Set(&s.Conditions, Failed, failed, f.Generation, now)
	if summary := meta.FindStatusCondition(s.Conditions, Ready); summary != nil {
		Set(&s.Conditions, Available, Verdict{Status: summary.Status, Reason: summary.Reason, Message: summary.Message}, f.Generation, now)
	}
}
