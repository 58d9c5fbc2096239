package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
)

// CAPTControlPlaneFacts is what one look at a CAPTControlPlane found.
type CAPTControlPlaneFacts struct {
	Generation int64
	// Owned is true if a Cluster owns the object. Paused is true if nothing may be done for the time being.
	Owned, Paused bool
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
	if !f.Owned || f.Paused {
		return prev, 0
	}
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
