package named_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// TestPlacement: an instance's rules replace its role's, and these the default; the pods that a rule counts follow from its scope.
func TestPlacement(t *testing.T) {
	type (
		placement = v1beta1.PlacementConfig
		labels    = map[string]string
	)
	rack := func(scope v1beta1.SpreadScope) *placement {
		return &placement{Spread: []v1beta1.SpreadRule{{TopologyKey: "example.com/rack", MaxSkew: 2, WhenUnsatisfiable: corev1.DoNotSchedule, Scope: scope, MinDomains: new(int32(3))}}}
	}
	base := func(more labels) labels {
		all := labels{"app.kubernetes.io/name": "bind9", "app.kubernetes.io/managed-by": "lockstep"}
		for key, value := range more {
			all[key] = value
		}
		return all
	}
	onRacks := func(selector labels) []corev1.TopologySpreadConstraint {
		return []corev1.TopologySpreadConstraint{{
			TopologyKey: "example.com/rack", MaxSkew: 2, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: new(int32(3)),
			LabelSelector: &metav1.LabelSelector{MatchLabels: selector},
		}}
	}
	peers := base(labels{"bindy.firestoned.io/cluster": "prod", "bindy.firestoned.io/role": "primary"})
	one := base(labels{"app.kubernetes.io/instance": "prod-primary-0"})
	soft := func(key string) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: peers},
		}
	}
	byDefault := []corev1.TopologySpreadConstraint{soft("kubernetes.io/hostname"), soft("topology.kubernetes.io/zone")}
	for name, c := range map[string]struct {
		role, other, instance *placement
		alone                 bool
		want                  []corev1.TopologySpreadConstraint
	}{
		"default":                   {want: byDefault},
		"of the other role":         {other: rack(""), want: byDefault},
		"without a list":            {role: &placement{}, want: byDefault},
		"an empty list":             {role: &placement{Spread: []v1beta1.SpreadRule{}}},
		"of the role":               {role: rack(""), want: onRacks(peers)},
		"of all roles":              {role: rack("Cluster"), want: onRacks(base(labels{"bindy.firestoned.io/cluster": "prod"}))},
		"of one instance":           {role: rack("Role"), instance: rack("Instance"), want: onRacks(one)},
		"an empty list replaces":    {role: rack("Role"), instance: &placement{Spread: []v1beta1.SpreadRule{}}},
		"in no cluster":             {alone: true, instance: rack("Cluster"), want: onRacks(one)},
		"in no cluster, by role":    {alone: true, instance: rack(""), want: onRacks(one)},
		"a key alone, soft, skew 1": {role: &placement{Spread: []v1beta1.SpreadRule{{TopologyKey: "topology.kubernetes.io/zone"}}}, want: byDefault[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.Primary, w.Cluster.Secondary = &v1beta1.RoleConfig{}, &v1beta1.RoleConfig{}
			w.Cluster.Primary.Placement, w.Cluster.Secondary.Placement = c.role, c.other
			w.Instance.Spec.Placement = c.instance
			if c.alone {
				w.Instance.Spec.ClusterRef = ""
			}
			if diff := cmp.Diff(c.want, statefulSet(t, w).Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRateLimit: 1,000 answers a second unless an instance or its cluster says otherwise; 0 is no limit.
func TestRateLimit(t *testing.T) {
	limit := func(n int32) *v1beta1.Bind9Config {
		return &v1beta1.Bind9Config{RateLimit: &v1beta1.RateLimitConfig{ResponsesPerSecond: &n}}
	}
	for name, c := range map[string]struct {
		cluster, instance *v1beta1.Bind9Config
		want              string
	}{
		"default":              {want: "responses-per-second 1000; nxdomains-per-second 1000; errors-per-second 1000; window 1; slip 1;"},
		"an empty object":      {cluster: &v1beta1.Bind9Config{RateLimit: &v1beta1.RateLimitConfig{}}, want: "responses-per-second 1000; nxdomains-per-second 1000; errors-per-second 1000; window 1; slip 1;"},
		"of the cluster":       {cluster: limit(15), want: "responses-per-second 15;"},
		"of the instance":      {cluster: limit(15), instance: limit(1000), want: "responses-per-second 1000;"},
		"none":                 {cluster: limit(0)},
		"none on the instance": {cluster: limit(15), instance: limit(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.Global, w.Instance.Spec.Config = c.cluster, c.instance
			files, err := named.Render(w.Config())
			if err != nil {
				t.Fatal(err)
			}
			if text := files[named.OptionsFile]; c.want == "" && strings.Contains(text, "rate-limit") || !strings.Contains(text, c.want) {
				t.Errorf("want %q in\n%s", c.want, text)
			}
			checkConf(t, v1beta1.RolePrimary, w.Config().Options, nil)
		})
	}
}
