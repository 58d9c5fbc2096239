package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

func lines(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

// pod is a running pod; ready is its Ready condition.
func pod(ready bool) *corev1.Pod {
	p := &corev1.Pod{}
	p.Status.Phase = corev1.PodRunning
	value := corev1.ConditionFalse
	if ready {
		value = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: value}}
	return p
}

func holding(name string, p *corev1.Pod) PodFacts {
	return PodFacts{Name: name, Pod: p, Serving: True("", "")}
}

// waiting is a pod in a phase whose named waits.
func waiting(phase corev1.PodPhase, reason, message string) *corev1.Pod {
	p := pod(false)
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "named", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

func TestInstanceConditions(t *testing.T) {
	unschedulable := &corev1.Pod{}
	unschedulable.Status.Phase = corev1.PodPending
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
	crashing := pod(false)
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "named", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1,
			Message: "12:00 general: notice: starting\n12:00 config: error: named.conf:1: unknown option 'x'\n12:00 general: critical: exiting\n"}},
	}}
	deleting, unready, unscheduledReady := pod(true), pod(false), pod(true)
	unscheduledReady.Status.Conditions = append(unscheduledReady.Status.Conditions, unschedulable.Status.Conditions...)
	deleting.DeletionTimestamp = &metav1.Time{Time: early}
	unready.Status.Conditions = append(unready.Status.Conditions, corev1.PodCondition{
		Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Message: "containers with unready status: [named]"})
	withoutSidecar := pod(false)
	withoutSidecar.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "named", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "bindcar", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}},
	}
	cases := map[string]struct {
		facts InstanceFacts
		want  []string
		life  v1beta1.LifecycleStatus
	}{
		"all ready": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true)), holding("dns-1", pod(true))}},
			[]string{"Ready True AllReady: All 2 pods are ready", "Pod-0 True Ready: Pod dns-0 is ready", "Pod-1 True Ready: Pod dns-1 is ready"},
			v1beta1.LifecycleStatus{Ready: true, Phase: v1beta1.PhaseReady},
		},
		"some ready": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true)), {Name: "dns-1", Pod: pod(false), Serving: False(BindcarUnreachable, "cannot connect to Bindcar API")}}},
			[]string{"Ready False PartiallyReady: 1 of 2 pods are ready", "Pod-0 True Ready: Pod dns-0 is ready",
				"Pod-1 False BindcarUnreachable: Pod dns-1 cannot connect to Bindcar API"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"none ready": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: pod(false), Serving: False(ReasonProgressing, "serves 1 of 2 zones")}, holding("dns-1", pod(false))}},
			[]string{"Ready False NotReady: No pods are ready", "Pod-0 False Progressing: Pod dns-0 serves 1 of 2 zones", "Pod-1 False Progressing: Pod dns-1 is starting"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"loading more zones in service": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: pod(true), Serving: False(ReasonProgressing, "serves 1 of 2 zones")}}},
			[]string{"Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod dns-0 is ready"},
			v1beta1.LifecycleStatus{Ready: true, Phase: v1beta1.PhaseReady},
		},
		"pending": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", unschedulable), holding("dns-1", nil)}},
			[]string{"Ready False PodsPending: No pods are ready", "Pod-0 False PodsPending: Pod dns-0 is pending: 0/3 nodes are available",
				"Pod-1 False PodsPending: Pod dns-1 does not exist yet"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"no image": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", waiting(corev1.PodPending, "ImagePullBackOff", "back-off")), holding("dns-1", pod(true))}},
			[]string{"Ready False PartiallyReady: 1 of 2 pods are ready: container named: ImagePullBackOff back-off", "Pod-0 False PodsPending: Pod dns-0 is pending: container named: ImagePullBackOff back-off",
				"Pod-1 True Ready: Pod dns-1 is ready"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"no image of a sidecar": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", waiting(corev1.PodRunning, "ErrImagePull", "not found"))}},
			[]string{"Ready False PodsPending: No pods are ready: container named: ErrImagePull not found",
				"Pod-0 False PodsPending: Pod dns-0 is pending: container named: ErrImagePull not found"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"ready, whatever else is said": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", unscheduledReady)}},
			[]string{"Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod dns-0 is ready"},
			v1beta1.LifecycleStatus{Ready: true, Phase: v1beta1.PhaseReady},
		},
		"no image of the version": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: waiting(corev1.PodPending, "ImagePullBackOff", "back-off"), Serving: True("", ""), ImageAdvice: "push the image"}}},
			[]string{"Ready False PodsPending: No pods are ready: push the image; container named: ImagePullBackOff back-off",
				"Pod-0 False PodsPending: Pod dns-0 is pending: push the image; container named: ImagePullBackOff back-off"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"another reason than the image": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: waiting(corev1.PodPending, "CreateContainerConfigError", "no user"), Serving: True("", ""), ImageAdvice: "push the image"}}},
			[]string{"Ready False PodsPending: No pods are ready: container named: CreateContainerConfigError no user",
				"Pod-0 False PodsPending: Pod dns-0 is pending: container named: CreateContainerConfigError no user"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"a missing Secret": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: waiting(corev1.PodPending, "PodInitializing", ""), Serving: True("", ""), Missing: "Secret a does not exist"}}},
			[]string{"Ready False PodsPending: No pods are ready: Secret a does not exist", "Pod-0 False PodsPending: Pod dns-0 is pending: Secret a does not exist"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"a pod of somebody else's": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true))}, Foreign: []string{"Pod old-1", "EndpointSlice by-hand"}},
			[]string{"Ready False ForeignPods: the Service also sends queries to others than the instance's pods: Pod old-1, EndpointSlice by-hand; delete them, or change their labels",
				"Pod-0 True Ready: Pod dns-0 is ready"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"zones that are not loaded": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true)), {Name: "dns-1", Pod: pod(true), Serving: True("", ""), Unloaded: []string{"a.example: file not found", "b.example"}}}},
			[]string{"Ready False ZonesNotLoaded: Pod dns-1 does not serve zones of configMapRefs: a.example: file not found; b.example; correct their files or statements; the log has more: kubectl logs dns-1 -c named",
				"Pod-0 True Ready: Pod dns-0 is ready", "Pod-1 True Ready: Pod dns-1 is ready"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"being deleted": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", deleting)}},
			[]string{"Ready False PodsPending: No pods are ready", "Pod-0 False PodsPending: Pod dns-0 is being deleted"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"a container is not ready": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", unready)}},
			[]string{"Ready False NotReady: No pods are ready", "Pod-0 False Progressing: Pod dns-0 is starting: containers with unready status: [named]"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"crashing": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", crashing)}},
			[]string{"Ready False PodsCrashing: No pods are ready",
				"Pod-0 False PodsCrashing: Pod dns-0 is crashing: container named exited 4 times: Error (exit code 1) named.conf:1: unknown option 'x'; exiting"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"all but one of three": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true)), holding("dns-1", pod(true)), holding("dns-2", nil)}},
			[]string{"Ready False PartiallyReady: 2 of 3 pods are ready", "Pod-0 True Ready: Pod dns-0 is ready", "Pod-1 True Ready: Pod dns-1 is ready",
				"Pod-2 False PodsPending: Pod dns-2 does not exist yet"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"no primary": {
			InstanceFacts{Pods: []PodFacts{{Name: "dns-0", Pod: pod(false), Serving: False(UpstreamUnreachable, "serves 0 of 1 zones: no primary of example.com is ready")}}},
			[]string{"Ready False UpstreamUnreachable: No pods are ready",
				"Pod-0 False UpstreamUnreachable: Pod dns-0 serves 0 of 1 zones: no primary of example.com is ready"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"sidecar ended": {
			InstanceFacts{Pods: []PodFacts{holding("dns-0", withoutSidecar)}},
			[]string{"Ready False BindcarUnreachable: No pods are ready", "Pod-0 False BindcarUnreachable: Pod dns-0 cannot connect to Bindcar API"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"no replicas": {
			InstanceFacts{},
			[]string{"Ready False NoChildren: No pods are declared"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseCreating},
		},
		"invalid": {
			InstanceFacts{Configured: False(ConfigurationInvalid, "allowQuery: nonsense"), Terminal: true},
			[]string{"Ready False ConfigurationInvalid: allowQuery: nonsense", "Stalled True ConfigurationInvalid: allowQuery: nonsense"},
			v1beta1.LifecycleStatus{Phase: v1beta1.PhaseFailed, FailureReason: ConfigurationInvalid, FailureMessage: "allowQuery: nonsense"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.facts.Configured.Status == "" {
				c.facts.Configured = True("", "")
			}
			got := Instance(v1beta1.Bind9InstanceStatus{}, c.facts, early)
			if diff := cmp.Diff(c.want, lines(got.Conditions)); diff != "" {
				t.Errorf("conditions:\n%s", diff)
			}
			c.life.PhaseSince = wholeSeconds(early)
			if diff := cmp.Diff(c.life, got.LifecycleStatus); diff != "" {
				t.Errorf("life:\n%s", diff)
			}
			if diff := cmp.Diff(got, Instance(got, c.facts, early.Add(time.Minute))); diff != "" {
				t.Errorf("the same facts a minute later change the status:\n%s", diff)
			}
		})
	}
}

func TestInstanceForgetsSurplusPods(t *testing.T) {
	two := Instance(v1beta1.Bind9InstanceStatus{}, InstanceFacts{Configured: True("", ""), Pods: []PodFacts{holding("a-0", pod(true)), holding("a-1", pod(true))}}, early)
	one := Instance(two, InstanceFacts{Configured: True("", ""), Pods: []PodFacts{holding("a-0", pod(true))}}, late)
	want := []string{"Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod a-0 is ready"}
	if diff := cmp.Diff(want, lines(one.Conditions)); diff != "" {
		t.Error(diff)
	}
}

// An instance lists a bounded number of its zones and counts all; a zone keeps the time at which it came.
func TestInstanceZones(t *testing.T) {
	zones := func(n int) (all []v1beta1.ZoneReference) {
		for i := range n {
			all = append(all, v1beta1.ZoneReference{Namespace: "dns", Name: fmt.Sprint("z", i), ZoneName: fmt.Sprintf("z%d.test", i)})
		}
		return all
	}
	facts := InstanceFacts{Configured: True("", ""), Address: "192.0.2.1", Zones: zones(1)}
	one := Instance(v1beta1.Bind9InstanceStatus{}, facts, early)
	facts.Zones = zones(MaxInstanceZones + 1)
	many := Instance(one, facts, late)
	if one.ZonesCount != 1 || len(one.Zones) != 1 || many.ZonesCount != MaxInstanceZones+1 || len(many.Zones) != MaxInstanceZones {
		t.Errorf("%d of %d zones are listed, then %d of %d", len(one.Zones), one.ZonesCount, len(many.Zones), many.ZonesCount)
	}
	if first, second := many.Zones[0].LastReconciledAt, many.Zones[1].LastReconciledAt; !first.Time.Equal(early) || !second.Time.Equal(late) {
		t.Errorf("the first zone came at %s, the second at %s", first, second)
	}
	if many.ServiceAddress != "192.0.2.1" {
		t.Errorf("address %s", many.ServiceAddress)
	}
}

func TestInstanceDeadline(t *testing.T) {
	facts := InstanceFacts{Generation: 1, Configured: True("", ""), Pods: []PodFacts{holding("a-0", pod(false)), holding("a-1", pod(false))}}
	var s v1beta1.Bind9InstanceStatus
	after := func(wait time.Duration) time.Duration {
		s = Instance(s, facts, early.Add(wait))
		return UntilDeadline(s.LifecycleStatus, s.Conditions, InstanceTimeout, early.Add(wait))
	}
	phase := func(want v1beta1.Phase, reason string) {
		t.Helper()
		if s.Phase != want || s.FailureReason != reason {
			t.Errorf("%+v, want %s %s", s.LifecycleStatus, want, reason)
		}
	}
	after(0)
	if left := after(5 * time.Minute); left != 10*time.Minute {
		t.Errorf("%s left after five minutes", left)
	}
	facts.Pods[1].Pod = pod(true)
	if left := after(10 * time.Minute); left != InstanceTimeout {
		t.Errorf("%s left after progress", left)
	}
	after(24 * time.Minute)
	phase(v1beta1.PhaseCreating, "")
	if left := after(25 * time.Minute); left != 0 {
		t.Errorf("%s left after the deadline", left)
	}
	phase(v1beta1.PhaseFailed, ProgressDeadlineExceeded)
	if got := s.FailureMessage; got != "1 of 2 pods are ready after 15m0s" {
		t.Error(got)
	}
	failed := s
	after(26 * time.Minute)
	if diff := cmp.Diff(failed, s); diff != "" {
		t.Errorf("the failed status changes:\n%s", diff)
	}
	facts.Generation = 2
	if left := after(27 * time.Minute); left != InstanceTimeout {
		t.Errorf("%s left after a change of the spec", left)
	}
	phase(v1beta1.PhaseCreating, "")
	after(60 * time.Minute)
	facts.Pods[0].Pod = pod(true)
	after(61 * time.Minute)
	phase(v1beta1.PhaseReady, "")
}

// An instance that was without pods for long has the whole time when it is given some.
func TestDeadlineAfterNoReplicas(t *testing.T) {
	s := Instance(v1beta1.Bind9InstanceStatus{}, InstanceFacts{Generation: 1, Configured: True("", "")}, early)
	s = Instance(s, InstanceFacts{Generation: 2, Configured: True("", ""), Pods: []PodFacts{holding("a-0", nil)}}, early.Add(time.Hour))
	if s.Phase != v1beta1.PhaseCreating {
		t.Errorf("%+v", s.LifecycleStatus)
	}
}

// A Secret is waited for as long as is set for Secrets.
func TestKeyDeadline(t *testing.T) {
	facts := InstanceFacts{Configured: False(NotReady, "secrets \"a-transfer-key\" not found"), Timeout: KeyTimeout}
	s := Instance(v1beta1.Bind9InstanceStatus{}, facts, early)
	if left := UntilDeadline(s.LifecycleStatus, s.Conditions, KeyTimeout, early.Add(time.Minute)); left != 4*time.Minute {
		t.Errorf("%s left", left)
	}
	s = Instance(s, facts, early.Add(KeyTimeout))
	if s.FailureReason != ProgressDeadlineExceeded || s.FailureMessage != "secrets \"a-transfer-key\" not found after 5m0s" {
		t.Errorf("%+v", s.LifecycleStatus)
	}
}

// What only a person can change is a failure although the pods run.
func TestInstanceFailure(t *testing.T) {
	wrong := False(RNDCAuthenticationFailed, "cannot authenticate to its named")
	facts := InstanceFacts{Configured: True("", ""), Pods: []PodFacts{{Name: "a-0", Pod: pod(true), Serving: wrong}}, Failure: False(wrong.Reason, "Pod a-0 "+wrong.Message)}
	s := Instance(v1beta1.Bind9InstanceStatus{}, facts, early)
	if s.Phase != v1beta1.PhaseFailed || s.FailureReason != RNDCAuthenticationFailed || s.FailureMessage != "Pod a-0 cannot authenticate to its named" {
		t.Errorf("%+v", s.LifecycleStatus)
	}
	if diff := cmp.Diff(s, Instance(s, facts, late)); diff != "" {
		t.Errorf("the failed status changes:\n%s", diff)
	}
}

// A deleted object says so once.
func TestDeleting(t *testing.T) {
	life := Deleting(v1beta1.LifecycleStatus{Ready: true, Phase: v1beta1.PhaseReady}, early)
	if life.Ready || life.Phase != v1beta1.PhaseDeleting || Deleting(life, late) != life {
		t.Errorf("%+v", life)
	}
}

// instance has the status of the given pods.
func instance(name string, ready ...bool) ClusterInstance {
	facts := InstanceFacts{Configured: True("", "")}
	for i, r := range ready {
		facts.Pods = append(facts.Pods, holding(fmt.Sprintf("%s-%d", name, i), pod(r)))
	}
	i := &v1beta1.Bind9Instance{}
	i.Name, i.Status = name, Instance(v1beta1.Bind9InstanceStatus{}, facts, early)
	return ClusterInstance{name, i}
}

func TestClusterConditions(t *testing.T) {
	broken := instance("dns-primary-0", false)
	broken.Instance.Status = Instance(v1beta1.Bind9InstanceStatus{}, InstanceFacts{Configured: False(ConfigurationInvalid, "bad"), Terminal: true}, early)
	cases := map[string]struct {
		instances []ClusterInstance
		want      []string
		global    string
		failure   string
	}{
		"all ready": {
			[]ClusterInstance{instance("production-dns-primary-0", true, true), instance("production-dns-secondary-0", true)},
			[]string{"Ready True AllReady: All 2 instances are ready",
				"Bind9Instance-0 True Ready: Instance production-dns-primary-0 is ready (2/2 pods)",
				"Bind9Instance-1 True Ready: Instance production-dns-secondary-0 is ready (1/1 pods)"},
			"Ready True ClustersReady: All 2 instances are ready", "",
		},
		"partly": {
			[]ClusterInstance{instance("production-dns-primary-0", true), instance("production-dns-secondary-0", true, false), instance("x", false)},
			[]string{"Ready False PartiallyReady: 1 of 3 instances are ready",
				"Bind9Instance-0 True Ready: Instance production-dns-primary-0 is ready (1/1 pods)",
				"Bind9Instance-1 False PartiallyReady: Instance production-dns-secondary-0 is progressing (1/2 pods)",
				"Bind9Instance-2 False NotReady: Instance x is not ready (0/1 pods): No pods are ready"},
			"Ready False ClustersProgressing: 1 of 3 instances are ready: Instance production-dns-secondary-0 is progressing (1/2 pods); " +
				"Instance x is not ready (0/1 pods): No pods are ready", "",
		},
		"just made": {
			[]ClusterInstance{{"dns-primary-0", nil}},
			[]string{"Ready False InstancesCreated: No instances are ready", "Bind9Instance-0 False InstancesPending: Instance dns-primary-0 does not exist yet"},
			"Ready False ClustersProgressing: No instances are ready: Instance dns-primary-0 does not exist yet", "",
		},
		"none": {
			nil, []string{"Ready False NoChildren: No instances are declared"}, "Ready False NoChildren: No instances are declared", "",
		},
		"failed": {
			[]ClusterInstance{broken},
			[]string{"Ready False NotReady: No instances are ready", "Bind9Instance-0 False ConfigurationInvalid: Instance dns-primary-0 is not ready (0/0 pods): bad",
				"Stalled True ConfigurationInvalid: Instance dns-primary-0: bad"},
			"Ready False ClustersProgressing: No instances are ready: Instance dns-primary-0 is not ready (0/0 pods): bad", "ConfigurationInvalid Instance dns-primary-0: bad",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			facts := ClusterFacts{Configured: True("", ""), Instances: c.instances}
			got := Cluster(v1beta1.Bind9ClusterStatus{}, facts, early)
			if diff := cmp.Diff(c.want, lines(got.Conditions)); diff != "" {
				t.Errorf("conditions:\n%s", diff)
			}
			if failure := strings.TrimSpace(got.FailureReason + " " + got.FailureMessage); failure != c.failure {
				t.Errorf("failure %q", failure)
			}
			global := GlobalCluster(v1beta1.Bind9ClusterStatus{}, facts, early)
			wantGlobal := []string{c.global}
			if reason, message, failed := strings.Cut(c.failure, " "); failed {
				wantGlobal = append(wantGlobal, "Stalled True "+reason+": "+message)
			}
			if diff := cmp.Diff(wantGlobal, lines(global.Conditions)); diff != "" {
				t.Errorf("global:\n%s", diff)
			}
			if diff := cmp.Diff(global, GlobalCluster(global, facts, early.Add(time.Minute))); name != "just made" && diff != "" {
				t.Errorf("the same facts a minute later change the status:\n%s", diff)
			}
		})
	}
	grown := Cluster(v1beta1.Bind9ClusterStatus{InstanceCount: 1}, ClusterFacts{Configured: True("", ""),
		Instances: []ClusterInstance{instance("a", true), {"b", nil}}}, early)
	if got := lines(grown.Conditions)[0]; got != "Ready False InstancesScaling: 1 of 2 instances are ready" {
		t.Error(got)
	}
}

// A cluster repeats what keeps the pods of its instances from running.
func TestClusterRepeatsTheCause(t *testing.T) {
	broken := instance("dns-primary-0", false)
	broken.Instance.Status = Instance(v1beta1.Bind9InstanceStatus{}, InstanceFacts{Configured: True("", ""),
		Pods: []PodFacts{holding("dns-primary-0-0", waiting(corev1.PodPending, "ImagePullBackOff", "back-off"))}}, early)
	got := Cluster(v1beta1.Bind9ClusterStatus{}, ClusterFacts{Configured: True("", ""), Instances: []ClusterInstance{broken, instance("b", true)}}, early)
	want := []string{"Ready False PartiallyReady: 1 of 2 instances are ready: container named: ImagePullBackOff back-off",
		"Bind9Instance-0 False PodsPending: Instance dns-primary-0 is not ready (0/1 pods): No pods are ready: container named: ImagePullBackOff back-off",
		"Bind9Instance-1 True Ready: Instance b is ready (1/1 pods)"}
	if diff := cmp.Diff(want, lines(got.Conditions)); diff != "" {
		t.Error(diff)
	}
	broken.Instance.Status = Instance(broken.Instance.Status, InstanceFacts{Configured: False(ConfigurationInvalid, "a message that ends with: no pods are ready: really")}, early)
	got = Cluster(v1beta1.Bind9ClusterStatus{}, ClusterFacts{Configured: True("", ""), Instances: []ClusterInstance{broken, instance("b", true)}}, early)
	if got := lines(got.Conditions)[0]; got != "Ready False PartiallyReady: 1 of 2 instances are ready" {
		t.Errorf("what is no cause is taken for one: %s", got)
	}
}

// A cluster says that it is being made or scaled from the first missing instance until all are ready and nothing is left of those
// that go.
func TestClusterScaling(t *testing.T) {
	var s v1beta1.Bind9ClusterStatus
	step := func(want string, leaving []string, instances ...ClusterInstance) {
		t.Helper()
		s = Cluster(s, ClusterFacts{Configured: True("", ""), Instances: instances, Leaving: leaving}, early)
		for _, c := range s.Conditions {
			if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); c.Type == Ready && got != want {
				t.Errorf("Ready %s\nwant  %s", got, want)
			}
		}
	}
	step("False InstancesCreated: No instances are ready", nil, ClusterInstance{Name: "a"})
	step("False InstancesCreated: No instances are ready", nil, instance("a", false))
	step("True AllReady: All 1 instances are ready", nil, instance("a", true))
	step("False NotReady: No instances are ready", nil, instance("a", false))
	step("True AllReady: All 1 instances are ready", nil, instance("a", true))
	step("False InstancesScaling: 1 of 2 instances are ready", nil, instance("a", true), ClusterInstance{Name: "b"})
	step("False InstancesScaling: 1 of 2 instances are ready", nil, instance("a", true), instance("b", false))
	step("True AllReady: All 2 instances are ready", nil, instance("a", true), instance("b", true))
	step("True AllReady: All 1 instances are ready", nil, instance("a", true))
	step("False InstancesScaling: 1 of 2 instances are ready", nil, instance("a", true), instance("b", false)) // nobody saw it missing
	step("True AllReady: All 2 instances are ready", nil, instance("a", true), instance("b", true))
	step("True InstancesScaling: All 1 instances are ready; still being removed: b", []string{"b"}, instance("a", true))
	step("False NotReady: No instances are ready; still being removed: b", []string{"b"}, instance("a", false))
	step("True AllReady: All 1 instances are ready", nil, instance("a", true))
	step("False NoChildren: No instances are declared; still being removed: a, b, c and 1 more", []string{"a", "b", "c", "d"})
	step("False NoChildren: No instances are declared", nil)
}
