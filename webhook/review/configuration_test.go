package review

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// What servers cannot be made from is stored, with a warning about each field of the object itself: what an instance has from its cluster
// is the cluster's.
func TestConfigurationWarnings(t *testing.T) {
	stored := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "lists"}, Spec: v1beta1.Bind9ClusterSpec{
		ServerConfig: v1beta1.ServerConfig{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"nonsense": resource.MustParse("1")}}},
		Global:       &v1beta1.Bind9Config{AllowTransfer: v1beta1.AddressMatchList{"nobody"}},
		ACLs:         map[string]v1beta1.AddressMatchList{"office": {"192.0.2.0/24"}},
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
		"tolerations of a role": {object: cluster("", "secondary: {placement: {tolerations: [{key: a, operator: Exist}, {effect: NoExecute}, {key: a, operator: Exists, value: b, effect: NoScheduel}, {key: a, tolerationSeconds: 5}, {key: 'a b'}]}}"), want: []string{
			`spec.secondary.placement.tolerations[0].operator: Unsupported value: "Exist"`, `spec.secondary.placement.tolerations[1].operator: Invalid value: "": must be Exists`,
			`spec.secondary.placement.tolerations[2].effect: Unsupported value`, `spec.secondary.placement.tolerations[2].value: Invalid value: "b": must be empty`,
			`spec.secondary.placement.tolerations[3].tolerationSeconds: `, `spec.secondary.placement.tolerations[4].key: `}},
		"tolerations": {object: instance("placement: {tolerations: [{operator: Exists}, {key: example.com/dns, value: only, effect: NoSchedule}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]}")},
		"resources":   {object: instance("resources: {requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 1Gi}, limits: {memory: 64Mi, example.com/nic: 1}}")},
		"resources that no pod has": {object: cluster("", "resources: {requests: {cpu: 1, memory: 512m}, limits: {cpu: 500m, memry: 1Gi}}"), want: []string{
			"spec.resources.limits[memry]: ", "spec.resources.requests[cpu]: Invalid value: \"1\": must not be above the limit of 500m", "spec.resources.requests[memory]: Invalid value: \"512m\": has a fraction"}},
		"resources of the sidecar":   {object: cluster("", "global: {bindcarConfig: {resources: {requests: {memory: 1Gi}, limits: {memory: 512Mi}}}}"), want: []string{"spec.global.bindcarConfig.resources.requests[memory]: "}},
		"resources of the cluster":   {object: instance("clusterRef: lists, config: {allowQuery: [office]}")},
		"of a cluster still to come": {object: instance("clusterRef: later, config: {allowQuery: [office]}"), want: []string{"spec.clusterRef: "}},
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

// Of objects that are all there is, the files of servers are in the ConfigMaps beside them. What is not there may be in the cluster.
func TestFileWarnings(t *testing.T) {
	configMap := func(namespace string, entries ...string) client.Object {
		data := map[string]string{}
		for i := 0; i < len(entries); i += 2 {
			data[entries[i]] = entries[i+1]
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "files"}, Data: data}
	}
	refs := &v1beta1.ConfigMapRefs{NamedConf: "files"}
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "c"}, Spec: v1beta1.Bind9ClusterSpec{ConfigMapRefs: refs}}
	global := &v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1beta1.GlobalClusterSpec{Bind9ClusterSpec: v1beta1.Bind9ClusterSpec{ConfigMapRefs: refs}}}
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "i"}, Spec: v1beta1.Bind9InstanceSpec{Role: "primary", ConfigMapRefs: refs}}
	ofCluster := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "j"}, Spec: v1beta1.Bind9InstanceSpec{Role: "primary", ClusterRef: "c"}}
	const lacks = `spec.configMapRefs.namedConf: ConfigMap files has no entry "named.conf": it has named.cnf`
	for name, c := range map[string]struct {
		all  []client.Object
		want []string
	}{
		"no ConfigMap":           {all: []client.Object{cluster, instance}},
		"of another namespace":   {all: []client.Object{cluster, configMap("other", "named.cnf", "x")}},
		"the entry is mistyped":  {all: []client.Object{cluster, ofCluster, configMap("dns", "named.cnf", "x")}, want: []string{lacks}},
		"of an instance":         {all: []client.Object{configMap("dns", "named.cnf", "x"), instance}, want: []string{lacks}},
		"of all namespaces":      {all: []client.Object{global, configMap(defaultHome, "named.cnf", "x")}, want: []string{lacks}},
		"it is empty":            {all: []client.Object{instance, configMap("dns")}, want: []string{`spec.configMapRefs.namedConf: ConfigMap files has no entry "named.conf": it is empty`}},
		"the content lacks keys": {all: []client.Object{instance, configMap("dns", "named.conf", "include \"/etc/bind/named.conf.options\";\n")}, want: []string{`spec.configMapRefs.namedConf: named.conf of ConfigMap files does not include named.conf.control`}},
		"all is right":           {all: []client.Object{instance, configMap("dns", "named.conf", "include \"/etc/bind/named.conf.options\";\ninclude \"/etc/bind/named.conf.control\";\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []client.Object
			for _, o := range c.all {
				all = append(all, o.DeepCopyObject().(client.Object))
			}
			results, err := Batch(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, result := range results {
				for _, warning := range result.Warnings {
					if strings.HasPrefix(warning, "spec.configMapRefs") {
						got = append(got, warning)
					}
				}
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(want, got string) bool { return strings.HasPrefix(got, want) || strings.HasPrefix(want, got) })); d != "" {
				t.Error(d)
			}
		})
	}
}
