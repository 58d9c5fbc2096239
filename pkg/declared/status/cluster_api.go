package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
)

// Conditions of the kinds of Cluster API, beside Ready.
const (
	// EndpointPropagated is True if every authoritative server answers with the name of an API server. On a Cluster it can be listed in
	// spec.availabilityGates.
	EndpointPropagated = "EndpointPropagated"
	// VPCReady is True if the network of a Cluster is there.
	VPCReady = "VPCReady"
	// WorkspaceReady is True if the workspace of a control plane is there.
	WorkspaceReady = "WorkspaceReady"
	// Available is written like Ready on a control plane: the Cluster's own ControlPlaneAvailable repeats it (contract v1beta2). Other
	// kinds have no such condition.
	Available = "Available"
	// Initialized is True from when a control plane was ready for the first time.
	Initialized = "Initialized"
	// Creating and Failed are the phase of a control plane.
	Creating = "Creating"
	Failed   = "Failed"
)

// Reasons of the kinds of Cluster API.
const (
	WorkspaceNotFound     = "WorkspaceNotFound"
	WorkspaceNotSynced    = "WorkspaceNotSynced"
	WorkspaceNotReady     = "WorkspaceNotReady"
	WorkspaceUnread       = "WorkspaceUnread"
	SecretNotReady        = "SecretNotReady"
	SecretForeign         = "SecretForeign"
	WaitingForVPC         = "WaitingForVPC"
	WaitingForEndpoint    = "WaitingForEndpoint"
	EndpointNotPropagated = "EndpointNotPropagated"
	EndpointForeign       = "EndpointForeign"
	EndpointRefused       = "EndpointRefused"
	NotObserved           = "NotObserved"
	NotInPhase            = "NotInPhase"
)

// CAPTTimeouts are how long the stages of the kinds of Cluster API may take: ControlPlaneTimeout, VPCTimeout and SecretTimeout by default.
type CAPTTimeouts struct {
	ControlPlane, VPC, Secret time.Duration
}

// DefaultCAPTTimeouts has the default deadlines.
func DefaultCAPTTimeouts() CAPTTimeouts {
	return CAPTTimeouts{ControlPlane: ControlPlaneTimeout, VPC: VPCTimeout, Secret: SecretTimeout}
}

// Default deadlines of the kinds of Cluster API.
const (
	// ControlPlaneTimeout is for a control plane, and for a name to be propagated.
	ControlPlaneTimeout = 30 * time.Minute
	// VPCTimeout is for a network.
	VPCTimeout = 15 * time.Minute
	// SecretTimeout is for the connection Secret of a network.
	SecretTimeout = 5 * time.Minute
)

// When an object of Cluster API is looked at again although nothing happened to it.
const (
	creatingInterval = 5 * time.Second
	settledInterval  = 30 * time.Second
	// nameInterval is while a name is not propagated, nameCheckInterval once it is.
	nameInterval      = 2 * time.Second
	nameCheckInterval = 10 * time.Second
)

// workspaceStages are what the reasons of VPCReady and WorkspaceReady go through.
var workspaceStages = []string{WaitingForVPC, WorkspaceNotFound, WorkspaceNotSynced, WorkspaceNotReady, SecretNotReady, ReasonReady}

// PublishedName is what is known of a name that an API server is reached by.
type PublishedName struct {
	// Name without the final dot; empty if none is to be published.
	Name string
	// Problem is why it cannot be published; zero if it can. Terminal is true if a person has to act.
	Problem  Verdict
	Terminal bool
	// Unread is why the servers' answers are not known; empty if they are.
	Unread string
	// Accepted, Programmed and Propagated are those of the SyncStatus, which is of the present declaration; zero if there is none
	// of it yet.
	Accepted, Programmed, Propagated Verdict
}

// Verdict holds when every server answers with the name.
func (n PublishedName) Verdict() Verdict {
	switch {
	case n.Problem.Reason != "":
		return n.Problem
	case n.Unread != "":
		return Unknown(NotObserved, "what the servers answer for "+n.Name+" is not known: "+n.Unread)
	}
	for _, v := range []Verdict{n.Accepted, n.Programmed, n.Propagated} {
		switch {
		case v.Reason == "":
			return Unknown(Pending, n.Name+" has not been evaluated yet")
		case !v.Holds():
			v.Message = n.Name + ": " + v.Message
			return v
		}
	}
	return True(EndpointPropagated, n.Name+": "+n.Propagated.Message)
}

// PublishedLater is about a name whose API server has no address yet.
func PublishedLater(name string) Verdict {
	return Unknown(WaitingForEndpoint, name+" is published once controlPlaneEndpoint.host is known")
}

// EndpointOfOthers is about a name whose DNSEndpoint is somebody else's.
func EndpointOfOthers(endpoint string) Verdict {
	return False(EndpointForeign, fmt.Sprintf("DNSEndpoint %s exists already and is somebody else's: delete or rename it", endpoint))
}

func (n PublishedName) isWanted() bool { return n.Name != "" || n.Problem.Reason != "" }

// Interval is how long until the servers are asked about the name again; 0 without a name.
func (n PublishedName) Interval() time.Duration {
	switch {
	case !n.isWanted():
		return 0
	case n.Verdict().Holds():
		return nameCheckInterval
	}
	return nameInterval
}

// setCondition writes EndpointPropagated, or removes it if no name is to be published.
func (n PublishedName) setCondition(conditions *[]metav1.Condition, generation int64, now time.Time) {
	if n.isWanted() {
		Set(conditions, EndpointPropagated, n.Verdict(), generation, now)
	} else {
		meta.RemoveStatusCondition(conditions, EndpointPropagated)
	}
}

// waiting says why an object has to wait for the name, if it does.
func (n PublishedName) waiting() (Verdict, bool) {
	v := n.Verdict()
	return False(EndpointNotPropagated, "the name of the API server is not live: "+v.Message), n.isWanted() && !v.Holds()
}

// failure is why an object waits for the name in vain. Once it has had its name it waits no more.
func (n PublishedName) failure(initialized bool) terminalFailure {
	return terminalFailure{n.Terminal && !initialized, n.Problem}
}

// Workspace is what is known of a WorkspaceTemplateApply.
type Workspace struct {
	Name string
	// Unread is why it could not be read, for the time being; empty if it could.
	Unread string
	// Found is true if it exists; the rest is about that.
	Found      bool
	Generation int64
	// Synced and Ready are its conditions; zero if it has none.
	Synced, Ready Verdict
	Outputs       map[string]string
}

// verdict holds when the workspace is there.
func (w Workspace) verdict() Verdict {
	of := "WorkspaceTemplateApply " + w.Name
	switch {
	case w.Unread != "":
		return Unknown(WorkspaceUnread, of+" could not be read: "+w.Unread)
	case !w.Found:
		return False(WorkspaceNotFound, of+" does not exist: create it, or name another one in the spec")
	case !w.Synced.Holds():
		return False(WorkspaceNotSynced, of+" is not synced: "+cmp.Or(w.Synced.Message, w.Synced.Reason, "it has no condition Synced yet"))
	case !w.Ready.Holds():
		return False(WorkspaceNotReady, of+" is not ready: "+cmp.Or(w.Ready.Message, w.Ready.Reason, "it has no condition Ready yet"))
	}
	return True(ReasonReady, of+" is synced and ready")
}

// report shows the workspace in the status of a control plane. What could not be read stays.
func (w Workspace) report(prev *controlplane.WorkspaceTemplateStatus) *controlplane.WorkspaceTemplateStatus {
	if w.Unread != "" {
		return prev
	}
	next := &controlplane.WorkspaceTemplateStatus{Ready: w.verdict().Holds(), State: "Pending", Outputs: w.Outputs}
	if prev != nil {
		next.LastAppliedRevision, next.LastFailedRevision, next.LastFailureMessage = prev.LastAppliedRevision, prev.LastFailedRevision, prev.LastFailureMessage
	}
	revision := strconv.FormatInt(w.Generation, 10)
	switch {
	case !w.Found:
		next.State = "Missing"
	case next.Ready:
		next.State, next.LastAppliedRevision = "Ready", revision
	case w.Synced.Status == metav1.ConditionFalse:
		next.State, next.LastFailedRevision, next.LastFailureMessage = "Failed", revision, TruncateMessage(cmp.Or(w.Synced.Message, w.Synced.Reason))
	case w.Synced.Holds():
		next.LastAppliedRevision = revision
	}
	return next
}

// hasAdvanced reports whether a condition shows more progress than before.
func hasAdvanced(prev, next []metav1.Condition, condition string) bool {
	stage := func(of []metav1.Condition) int {
		if c := meta.FindStatusCondition(of, condition); c != nil {
			return slices.Index(workspaceStages, c.Reason)
		}
		return -1
	}
	before := stage(prev)
	return before >= 0 && stage(next) > before
}

// nextLook is how long an object can wait for its next check, whatever its events.
func nextLook(life v1beta1.LifecycleStatus, conditions []metav1.Condition, name PublishedName, timeout time.Duration, now time.Time) time.Duration {
	if life.Phase != v1beta1.PhaseCreating {
		return settledInterval
	}
	soonest := creatingInterval
	if at := name.Interval(); at > 0 {
		soonest = min(soonest, at)
	}
	if left := UntilDeadline(life, conditions, timeout, now); left > 0 {
		soonest = min(soonest, left)
	}
	return soonest
}

// phaseVerdict is the condition of a phase: it holds for an object in it.
func phaseVerdict(in bool, phase v1beta1.Phase, reason, message string) Verdict {
	if in {
		return True(reason, message)
	}
	return False(NotInPhase, fmt.Sprintf("the phase is %s", phase))
}
