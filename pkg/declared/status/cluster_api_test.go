package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
)

var clusterAPIStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func readyWorkspace() Workspace {
	return Workspace{Name: "prod-vpc", Found: true, Generation: 3, Synced: True("ReconcileSuccess", ""), Ready: True("Available", "")}
}

func liveName() PublishedName {
	return PublishedName{Name: "prod.example.com", Accepted: True(Accepted, "a"), Programmed: True(Programmed, "p"), Propagated: True("Propagated", "2 of 2 servers")}
}

func readyCluster() CAPTClusterFacts {
	return CAPTClusterFacts{Generation: 1, Endpoint: "192.0.2.1:6443", Workspace: readyWorkspace(), VPCID: "vpc-1", Name: liveName(), Timeouts: DefaultCAPTTimeouts()}
}

func readyControlPlane() CAPTControlPlaneFacts {
	return CAPTControlPlaneFacts{
		Generation: 1, Endpoint: "192.0.2.1:6443", Version: "1.31", Workspace: readyWorkspace(), Name: liveName(),
		HasVPC: true, VPC: True(ReasonReady, ""), Timeouts: DefaultCAPTTimeouts(),
	}
}

// What a fact alone makes of an object of which all else is there.
func TestCAPTCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(*CAPTClusterFacts)
		vpc, name     string
		phase         v1beta1.Phase
		reason        string
		failureReason string
	}{
		"ready":                {func(*CAPTClusterFacts) {}, ReasonReady, EndpointPropagated, v1beta1.PhaseReady, ReasonReady, ""},
		"no name wanted":       {func(f *CAPTClusterFacts) { f.Name = PublishedName{} }, ReasonReady, "", v1beta1.PhaseReady, ReasonReady, ""},
		"no workspace":         {func(f *CAPTClusterFacts) { f.Workspace = Workspace{} }, WorkspaceNotFound, EndpointPropagated, v1beta1.PhaseCreating, WorkspaceNotFound, ""},
		"workspace new":        {func(f *CAPTClusterFacts) { f.Workspace.Synced = Verdict{} }, WorkspaceNotSynced, EndpointPropagated, v1beta1.PhaseCreating, WorkspaceNotSynced, ""},
		"workspace not synced": {func(f *CAPTClusterFacts) { f.Workspace.Synced = False("ReconcileError", "quota") }, WorkspaceNotSynced, EndpointPropagated, v1beta1.PhaseCreating, WorkspaceNotSynced, ""},
		"workspace not ready":  {func(f *CAPTClusterFacts) { f.Workspace.Ready = False("Creating", "") }, WorkspaceNotReady, EndpointPropagated, v1beta1.PhaseCreating, WorkspaceNotReady, ""},
		"no secret":            {func(f *CAPTClusterFacts) { f.VPCID, f.SecretProblem = "", False(SecretNotReady, "") }, SecretNotReady, EndpointPropagated, v1beta1.PhaseCreating, SecretNotReady, ""},
		"secret of others":     {func(f *CAPTClusterFacts) { f.VPCID, f.SecretProblem = "", False(SecretForeign, "") }, SecretForeign, EndpointPropagated, v1beta1.PhaseFailed, SecretForeign, SecretForeign},
		"no endpoint":          {func(f *CAPTClusterFacts) { f.Endpoint = "" }, ReasonReady, EndpointPropagated, v1beta1.PhaseCreating, WaitingForEndpoint, ""},
		"not propagated":       {func(f *CAPTClusterFacts) { f.Name.Propagated = False("Stale", "") }, ReasonReady, "Stale", v1beta1.PhaseCreating, EndpointNotPropagated, ""},
		"not programmed":       {func(f *CAPTClusterFacts) { f.Name.Programmed = False("Pending", "") }, ReasonReady, "Pending", v1beta1.PhaseCreating, EndpointNotPropagated, ""},
		"claimed by others":    {func(f *CAPTClusterFacts) { f.Name.Accepted = False(Conflict, "") }, ReasonReady, Conflict, v1beta1.PhaseCreating, EndpointNotPropagated, ""},
		"answers are older":    {func(f *CAPTClusterFacts) { f.Name.Accepted = Verdict{} }, ReasonReady, Pending, v1beta1.PhaseCreating, EndpointNotPropagated, ""},
		"invalid name":         {func(f *CAPTClusterFacts) { f.Name = PublishedName{Problem: False(Invalid, ""), Terminal: true} }, ReasonReady, Invalid, v1beta1.PhaseFailed, EndpointNotPropagated, Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			f := readyCluster()
			c.change(&f)
			got, again := CAPTCluster(infrastructure.CAPTClusterStatus{}, f, clusterAPIStart)
			if again <= 0 {
				t.Error("nothing looks at it again")
			}
			ready := c.phase == v1beta1.PhaseReady
			if got.Ready != ready || (got.Initialization != nil) != ready || got.Phase != c.phase || got.FailureReason != c.failureReason {
				t.Errorf("status %+v, want phase %s, failure %q", got, c.phase, c.failureReason)
			}
			for condition, want := range map[string]string{VPCReady: c.vpc, EndpointPropagated: c.name, Ready: c.reason} {
				if got := reasonOf(got.Conditions, condition); got != want {
					t.Errorf("%s has the reason %q, want %q", condition, got, want)
				}
			}
		})
	}
}

func reasonOf(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

// A stage that takes too long fails the object; the next stage has its own time; what was missing ends the failure.
func TestCAPTClusterTimeouts(t *testing.T) {
	now, prev := clusterAPIStart, infrastructure.CAPTClusterStatus{}
	look := func(after time.Duration, f CAPTClusterFacts) infrastructure.CAPTClusterStatus {
		now = now.Add(after)
		prev, _ = CAPTCluster(prev, f, now)
		return prev
	}
	expect := func(step string, phase v1beta1.Phase, failure string) {
		t.Helper()
		if got := reasonOf(prev.Conditions, Stalled); prev.Phase != phase || got != failure {
			t.Errorf("%s: phase %s, stalled %q; want %s, %q", step, prev.Phase, got, phase, failure)
		}
		if prev.FailureReason != "" || prev.FailureMessage != "" {
			t.Errorf("%s: failureReason %q, which Cluster API keeps for ever", step, prev.FailureReason)
		}
	}
	missing, unready, noSecret, noName := readyCluster(), readyCluster(), readyCluster(), readyCluster()
	missing.Workspace = Workspace{Name: "prod-vpc"}
	unready.Workspace.Ready = False("Creating", "")
	noSecret.VPCID, noSecret.SecretProblem = "", False(SecretNotReady, "no Secret")
	noName.Name.Propagated = False("Stale", "1 of 2 servers")

	look(0, missing)
	look(VPCTimeout-time.Second, missing)
	expect("almost too long without a workspace", v1beta1.PhaseCreating, "")
	look(0, unready)
	look(VPCTimeout-time.Second, unready)
	expect("almost too long with an unready workspace", v1beta1.PhaseCreating, "")
	look(time.Second, unready)
	expect("too long with an unready workspace", v1beta1.PhaseFailed, ProgressDeadlineExceeded)
	look(time.Hour, unready)
	expect("an hour later", v1beta1.PhaseFailed, ProgressDeadlineExceeded)
	look(time.Second, noSecret)
	expect("the workspace recovers", v1beta1.PhaseCreating, "")
	look(SecretTimeout-time.Second, noSecret)
	expect("almost too long without a Secret", v1beta1.PhaseCreating, "")
	look(time.Second, noSecret)
	expect("too long without a Secret", v1beta1.PhaseFailed, ProgressDeadlineExceeded)
	look(time.Second, noName)
	look(ControlPlaneTimeout-time.Second, noName)
	expect("almost too long without the name", v1beta1.PhaseCreating, "")
	look(time.Second, noName)
	expect("too long without the name", v1beta1.PhaseFailed, ProgressDeadlineExceeded)
	look(time.Second, readyCluster())
	expect("the name is live", v1beta1.PhaseReady, "")

	noEndpoint := readyCluster()
	noEndpoint.Endpoint = ""
	prev = infrastructure.CAPTClusterStatus{}
	look(0, noEndpoint)
	look(24*time.Hour, noEndpoint)
	expect("a day without an endpoint, which others have to provide", v1beta1.PhaseCreating, "")
}

// Each stage of both kinds has the deadline that was set for it, to the second, and what was missing ends the failure.
func TestCAPTDeadlinesAreThoseThatWereSet(t *testing.T) {
	timeouts := CAPTTimeouts{ControlPlane: 7 * time.Second, VPC: 5 * time.Second, Secret: 3 * time.Second}
	network := func(change func(*CAPTClusterFacts)) func(time.Duration) (v1beta1.Phase, string) {
		var s infrastructure.CAPTClusterStatus
		return func(after time.Duration) (v1beta1.Phase, string) {
			f := readyCluster()
			f.Timeouts = timeouts
			if change(&f); after < 0 {
				f = readyCluster()
			}
			s, _ = CAPTCluster(s, f, clusterAPIStart.Add(max(after, 0)))
			return s.Phase, meta.FindStatusCondition(s.Conditions, Ready).Message
		}
	}
	plane := func(change func(*CAPTControlPlaneFacts)) func(time.Duration) (v1beta1.Phase, string) {
		var s controlplane.CAPTControlPlaneStatus
		return func(after time.Duration) (v1beta1.Phase, string) {
			f := readyControlPlane()
			f.Timeouts = timeouts
			if change(&f); after < 0 {
				f = readyControlPlane()
			}
			s, _ = CAPTControlPlane(s, f, clusterAPIStart.Add(max(after, 0)))
			return s.Phase, meta.FindStatusCondition(s.Conditions, Ready).Message
		}
	}
	for name, c := range map[string]struct {
		look func(time.Duration) (v1beta1.Phase, string)
		want time.Duration
	}{
		"network":                 {network(func(f *CAPTClusterFacts) { f.Workspace.Ready = Verdict{} }), timeouts.VPC},
		"Secret":                  {network(func(f *CAPTClusterFacts) { f.VPCID, f.SecretProblem = "", False(SecretNotReady, "no Secret") }), timeouts.Secret},
		"name of a network":       {network(func(f *CAPTClusterFacts) { f.Name.Propagated = False("Stale", "") }), timeouts.ControlPlane},
		"waiting for the network": {plane(func(f *CAPTControlPlaneFacts) { f.VPC = Verdict{} }), timeouts.VPC},
		"control plane":           {plane(func(f *CAPTControlPlaneFacts) { f.Workspace.Ready = Verdict{} }), timeouts.ControlPlane},
		"name of a control plane": {plane(func(f *CAPTControlPlaneFacts) { f.Name.Propagated = False("Stale", "") }), timeouts.ControlPlane},
	} {
		c.look(0)
		if phase, _ := c.look(c.want - time.Second); phase != v1beta1.PhaseCreating {
			t.Errorf("%s: %s a second before %s", name, phase, c.want)
		}
		if phase, message := c.look(c.want); phase != v1beta1.PhaseFailed || !strings.HasSuffix(message, " after "+c.want.String()) {
			t.Errorf("%s: %s (%s) after %s", name, phase, message, c.want)
		}
		if phase, _ := c.look(-1); phase != v1beta1.PhaseReady {
			t.Errorf("%s: %s when nothing is missing any more", name, phase)
		}
	}
}

// What cannot be read for a while changes its own condition, and neither the verdict nor the time that is left.
func TestCAPTTransient(t *testing.T) {
	unread := map[string]func(*CAPTClusterFacts){
		"workspace": func(f *CAPTClusterFacts) { f.Workspace, f.VPCID = Workspace{Name: "prod-vpc", Unread: "timeout"}, "" },
		"secret":    func(f *CAPTClusterFacts) { f.VPCID, f.SecretUnread = "", "timeout" },
		"name":      func(f *CAPTClusterFacts) { f.Name = PublishedName{Name: "prod.example.com", Unread: "timeout"} },
	}
	for name, change := range unread {
		t.Run(name, func(t *testing.T) {
			f := readyCluster()
			change(&f)
			ready, _ := CAPTCluster(infrastructure.CAPTClusterStatus{}, readyCluster(), clusterAPIStart)
			got, again := CAPTCluster(ready, f, clusterAPIStart.Add(time.Hour))
			if diff := cmp.Diff(ready.LifecycleStatus, got.LifecycleStatus); diff != "" || got.VPCID != "vpc-1" || again == 0 {
				t.Errorf("again after %v, VPC %q, lifecycle (-want +got):\n%s", again, got.VPCID, diff)
			}
			waiting := readyCluster()
			waiting.Name.Propagated = False("Stale", "")
			creating, _ := CAPTCluster(infrastructure.CAPTClusterStatus{}, waiting, clusterAPIStart)
			got, _ = CAPTCluster(creating, f, clusterAPIStart.Add(time.Hour))
			if diff := cmp.Diff(creating.LifecycleStatus, got.LifecycleStatus); diff != "" {
				t.Errorf("a transient error had an effect on one that is being created (-want +got):\n%s", diff)
			}
			if n := len(got.Conditions); n != 3 || meta.IsStatusConditionTrue(got.Conditions, VPCReady) && meta.IsStatusConditionTrue(got.Conditions, EndpointPropagated) {
				t.Errorf("no condition shows it: %+v", got.Conditions)
			}
		})
	}
}

// A network that cannot be read for the time being takes nothing back from the control plane.
func TestCAPTNetworkUnread(t *testing.T) {
	f := readyControlPlane()
	ready, _ := CAPTControlPlane(controlplane.CAPTControlPlaneStatus{}, f, clusterAPIStart)
	waiting := f
	waiting.Workspace.Ready = False("Unavailable", "")
	creating, _ := CAPTControlPlane(controlplane.CAPTControlPlaneStatus{}, waiting, clusterAPIStart)
	f.VPC = Unknown(WorkspaceUnread, "WorkspaceTemplateApply prod-vpc could not be read: timeout")
	for phase, before := range map[string]controlplane.CAPTControlPlaneStatus{"ready": ready, "creating": creating} {
		got, again := CAPTControlPlane(before, f, clusterAPIStart.Add(time.Hour))
		if diff := cmp.Diff(before.LifecycleStatus, got.LifecycleStatus); diff != "" || again == 0 {
			t.Errorf("%s: again after %v, lifecycle (-want +got):\n%s", phase, again, diff)
		}
		if c := meta.FindStatusCondition(got.Conditions, WorkspaceReady); c == nil || c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "timeout") {
			t.Errorf("%s: no condition shows it: %+v", phase, got.Conditions)
		}
	}
}

// A name that ceases to be propagated takes neither ready nor initialized back. A workspace that ceases to be ready takes ready back.
func TestCAPTStaysInitialized(t *testing.T) {
	noName, noWorkspace := readyControlPlane(), readyControlPlane()
	noName.Name.Propagated = False("Unreachable", "")
	noWorkspace.Workspace.Ready = False("Unavailable", "")
	ready, _ := CAPTControlPlane(controlplane.CAPTControlPlaneStatus{}, readyControlPlane(), clusterAPIStart)
	got, _ := CAPTControlPlane(ready, noName, clusterAPIStart.Add(time.Minute))
	if !got.Ready || !got.Initialized || meta.IsStatusConditionTrue(got.Conditions, EndpointPropagated) {
		t.Errorf("without the name: %+v", got)
	}
	invalid := readyControlPlane()
	invalid.Name = PublishedName{Problem: False(Invalid, "x"), Terminal: true}
	if got, _ := CAPTControlPlane(got, invalid, clusterAPIStart.Add(time.Minute)); !got.Ready || got.FailureReason != "" {
		t.Errorf("with an annotation that has become invalid: %+v", got)
	}
	got, _ = CAPTControlPlane(got, noWorkspace, clusterAPIStart.Add(2*time.Minute))
	if got.Ready || !got.Initialized || !*got.Initialization.ControlPlaneInitialized || got.Phase != v1beta1.PhaseCreating {
		t.Errorf("without the workspace: %+v", got)
	}
	f := readyCluster()
	provisioned, _ := CAPTCluster(infrastructure.CAPTClusterStatus{}, f, clusterAPIStart)
	f.Name = invalid.Name
	if got, _ := CAPTCluster(provisioned, f, clusterAPIStart); !got.Ready || got.FailureReason != "" {
		t.Errorf("CAPTCluster with an annotation that has become invalid: %+v", got)
	}
	f.Workspace = Workspace{}
	if got, _ := CAPTCluster(provisioned, f, clusterAPIStart); got.Ready || !*got.Initialization.Provisioned {
		t.Errorf("CAPTCluster without the workspace: %+v", got)
	}
}

// Phases of a control plane, each with its conditions and its message.
func TestCAPTControlPlane(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*CAPTControlPlaneFacts)
		after  time.Duration
		phase  v1beta1.Phase
		reason string
	}{
		"ready":                 {func(*CAPTControlPlaneFacts) {}, 0, v1beta1.PhaseReady, ReasonReady},
		"other infrastructure":  {func(f *CAPTControlPlaneFacts) { f.HasVPC, f.VPC = false, Verdict{} }, 0, v1beta1.PhaseReady, ReasonReady},
		"waits for the network": {func(f *CAPTControlPlaneFacts) { f.VPC = Verdict{} }, VPCTimeout - time.Second, v1beta1.PhaseCreating, WaitingForVPC},
		"network too late":      {func(f *CAPTControlPlaneFacts) { f.VPC = Verdict{} }, VPCTimeout, v1beta1.PhaseFailed, ProgressDeadlineExceeded},
		"being created":         {func(f *CAPTControlPlaneFacts) { f.Workspace.Ready = Verdict{} }, ControlPlaneTimeout - time.Second, v1beta1.PhaseCreating, WorkspaceNotReady},
		"too late":              {func(f *CAPTControlPlaneFacts) { f.Workspace.Ready = Verdict{} }, ControlPlaneTimeout, v1beta1.PhaseFailed, ProgressDeadlineExceeded},
		"waits for the name":    {func(f *CAPTControlPlaneFacts) { f.Name.Propagated = False("Stale", "") }, time.Minute, v1beta1.PhaseCreating, EndpointNotPropagated},
		"no endpoint":           {func(f *CAPTControlPlaneFacts) { f.Endpoint = "" }, time.Hour, v1beta1.PhaseCreating, WaitingForEndpoint},
		"invalid name":          {func(f *CAPTControlPlaneFacts) { f.Name = PublishedName{Problem: False(Invalid, "x"), Terminal: true} }, 0, v1beta1.PhaseFailed, EndpointNotPropagated},
	} {
		t.Run(name, func(t *testing.T) {
			f := readyControlPlane()
			c.change(&f)
			got, _ := CAPTControlPlane(controlplane.CAPTControlPlaneStatus{}, f, clusterAPIStart)
			got, _ = CAPTControlPlane(got, f, clusterAPIStart.Add(c.after))
			ready := c.phase == v1beta1.PhaseReady
			if got.Phase != c.phase || got.Ready != ready || got.Initialized != ready || (got.FailureReason != "") != (name == "invalid name") {
				t.Errorf("status %+v, want phase %s", got, c.phase)
			}
			if reason := reasonOf(got.Conditions, Ready); reason != c.reason {
				t.Errorf("Ready has the reason %s, want %s", reason, c.reason)
			}
			if failed := meta.FindStatusCondition(got.Conditions, Failed); c.phase == v1beta1.PhaseFailed {
				stalled := meta.FindStatusCondition(got.Conditions, Stalled)
				if failed.Reason != stalled.Reason || failed.Message != stalled.Message || failed.Message == "" {
					t.Errorf("Failed says %s %q, Stalled says %s %q", failed.Reason, failed.Message, stalled.Reason, stalled.Message)
				}
			}
			summary, available := meta.FindStatusCondition(got.Conditions, Ready), meta.FindStatusCondition(got.Conditions, Available)
			if available == nil || available.Status != summary.Status || available.Reason != summary.Reason || available.Message != summary.Message {
				t.Errorf("Available is %+v, Ready is %+v", available, summary)
			}
			for condition, want := range map[string]bool{Ready: ready, Initialized: ready, Creating: c.phase == v1beta1.PhaseCreating, Failed: c.phase == v1beta1.PhaseFailed} {
				if meta.IsStatusConditionTrue(got.Conditions, condition) != want {
					t.Errorf("%s is not %v", condition, want)
				}
			}
		})
	}
}

// The workspace's last revisions and failure stay after it has recovered.
func TestWorkspaceReport(t *testing.T) {
	failed := Workspace{Found: true, Generation: 1, Synced: False("ReconcileError", "quota")}.report(nil)
	want := &controlplane.WorkspaceTemplateStatus{State: "Failed", LastFailedRevision: "1", LastFailureMessage: "quota"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	applied := readyWorkspace()
	applied.Outputs = map[string]string{"region": "eu"}
	want = &controlplane.WorkspaceTemplateStatus{Ready: true, State: "Ready", LastAppliedRevision: "3", LastFailedRevision: "1", LastFailureMessage: "quota", Outputs: applied.Outputs}
	if diff := cmp.Diff(want, applied.report(failed)); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if got := (Workspace{Unread: "timeout"}).report(want); got != want {
		t.Errorf("unread: %+v", got)
	}
	if got := (Workspace{}).report(nil).State; got != "Missing" {
		t.Errorf("missing: %s", got)
	}
}

// Failure domains have the form of the contract.
func TestFailureDomains(t *testing.T) {
	f := CAPTClusterFacts{FailureDomains: []infrastructure.FailureDomain{{Name: "a", ControlPlane: new(true)}, {Name: "b"}}}
	if got, want := string(f.encodeDomains().Raw), `{"a":{"controlPlane":true},"b":{}}`; got != want {
		t.Errorf("by name: %s, want %s", got, want)
	}
	f.ListedDomains = true
	if got, want := string(f.encodeDomains().Raw), `[{"name":"a","controlPlane":true},{"name":"b"}]`; got != want {
		t.Errorf("listed: %s, want %s", got, want)
	}
}
