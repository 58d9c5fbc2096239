package review

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What servers cannot be made from is stored, with a warning about each field of the object itself: what an instance has from its cluster
// is the cluster's.
func TestConfigurationWarnings(t *testing.T) {
	stored := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "lists"}, Spec: v1beta1.Bind9ClusterSpec{
		Global: &v1beta1.Bind9Config{AllowTransfer: v1beta1.AddressMatchList{"nobody"}},
		ACLs:   map[string]v1beta1.AddressMatchList{"office": {"192.0.2.0/24"}},
	}}
	cluster := func(labels, spec string) string {
		return "{kind: Bind9Cluster, metadata: {name: new, namespace: dns, labels: {" + labels + "}}, spec: {" + spec + "}}"
	}
	instance := func(spec string) string {
		return "{kind: Bind9Instance, metadata: {name: new, namespace: dns}, spec: {role: primary, " + spec + "}}"
	}
	const prefix = "global: {allowTransfer: [none, 192.0.2.0/33]}"
	for name, c := range map[string]struct {
		object, old string
		want        []string
	}{
		"a cluster":                    {object: cluster("", "global: {allowTransfer: [192.0.2.0/24]}, secondary: {replicas: 2}")},
		"a prefix, once for all roles": {object: cluster("", prefix), want: []string{`spec.global.allowTransfer[1]: "192.0.2.0/33" is neither`}},
		"a change beside it":           {object: cluster("a: b", prefix), old: cluster("", prefix), want: []string{"spec.global.allowTransfer[1]: "}},
		"a list of the cluster":        {object: instance("clusterRef: lists, config: {allowQuery: [office]}")},
		"a list that it does not have": {object: instance("clusterRef: lists, config: {allowQuery: [offic]}"), want: []string{`spec.config.allowQuery[0]: "offic" is neither`}},
		"of no cluster":                {object: instance("config: {allowQuery: [office]}"), want: []string{`spec.config.allowQuery[0]: "office" is neither`}},
		"of a cluster still to come":   {object: instance("clusterRef: later, config: {allowQuery: [office]}"), want: []string{"spec.clusterRef: "}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := NewHandler(example(t, stored)).Handle(quick(t), request(t, c.object, c.old))
			if !answer.Allowed || len(answer.Warnings) != len(c.want) {
				t.Fatalf("allowed = %t, warnings %q, want %q", answer.Allowed, answer.Warnings, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(answer.Warnings[i], want) {
					t.Errorf("warning %q, want %q", answer.Warnings[i], want)
				}
			}
		})
	}
}
