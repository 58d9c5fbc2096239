package named_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// as turns an apply configuration into the object that it becomes.
func as[T any](t *testing.T, configuration any, err error) T {
	t.Helper()
	var out T
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(configuration)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func service(t *testing.T, w named.Workload) corev1.Service {
	t.Helper()
	configuration, _, err := w.Services(corev1.ServiceSpec{})
	return as[corev1.Service](t, configuration, err)
}

// TestAllowTransfer: the instance's list goes before its role's, and that before the cluster's; named accepts each.
func TestAllowTransfer(t *testing.T) {
	type acl = v1beta1.AddressMatchList
	for name, c := range map[string]struct {
		role                           v1beta1.ServerRole
		global, primary, second, inner acl
		want                           string
	}{
		"nobody":             {role: "primary", want: ""},
		"cluster":            {role: "primary", global: acl{"192.0.2.1"}, second: acl{"192.0.2.3"}, want: "192.0.2.1; "},
		"primaries":          {role: "primary", global: acl{"192.0.2.1"}, primary: acl{"192.0.2.2"}, want: "192.0.2.2; "},
		"secondaries":        {role: "secondary", global: acl{"192.0.2.1"}, second: acl{"192.0.2.3"}, want: "192.0.2.3; "},
		"instance":           {role: "secondary", global: acl{"192.0.2.1"}, second: acl{"192.0.2.3"}, inner: acl{"192.0.2.4"}, want: "192.0.2.4; "},
		"secondaries, none":  {role: "secondary", global: acl{"192.0.2.1"}, second: acl{}, want: ""},
		"an ACL of the list": {role: "secondary", second: acl{"office", "!192.0.2.7"}, want: `"office"; ! 192.0.2.7; `},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Instance.Spec.Role = c.role
			w.Cluster = v1beta1.Bind9ClusterSpec{
				Global: &v1beta1.Bind9Config{AllowTransfer: c.global}, ACLs: map[string]acl{"office": {"198.51.100.0/24"}},
				Primary: &v1beta1.RoleConfig{AllowTransfer: c.primary}, Secondary: &v1beta1.RoleConfig{AllowTransfer: c.second},
			}
			w.Instance.Spec.Config = &v1beta1.Bind9Config{AllowTransfer: c.inner}
			files, err := named.Render(w.Config())
			if err != nil {
				t.Fatal(err)
			}
			if want := "allow-transfer { \"lockstep-transfer\"; " + c.want + "};"; !strings.Contains(files[named.OptionsFile], want) {
				t.Errorf("no %s in\n%s", want, files[named.OptionsFile])
			}
			checkConf(t, c.role, w.Config().Options, w.Cluster.ACLs)
		})
	}
}

// TestInstanceOverCluster: what the instance sets wins, field by field, and what it leaves out is the cluster's.
func TestInstanceOverCluster(t *testing.T) {
	w := workload(t)
	w.Cluster.Global = &v1beta1.Bind9Config{
		AllowQuery: v1beta1.AddressMatchList{"192.0.2.0/24"}, Forwarders: []string{"192.0.2.53"}, ListenOnV6: v1beta1.AddressMatchList{"none"},
	}
	w.Instance.Spec.Config = &v1beta1.Bind9Config{Recursion: new(true), AllowQuery: v1beta1.AddressMatchList{"198.51.100.0/24"}}
	files, err := named.Render(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"recursion yes;", `acl "lockstep-allow-query" { "lockstep-update"; "lockstep-transfer"; 198.51.100.0/24; };`, "forwarders { 192.0.2.53; };", "listen-on-v6 port 5353 { none;  };"} {
		if all := files[named.ControlFile] + files[named.OptionsFile]; !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	checkConf(t, v1beta1.RolePrimary, w.Config().Options, nil)
}

func TestBindcarConfig(t *testing.T) {
	w := workload(t)
	w.Cluster.Global = &v1beta1.Bind9Config{BindcarConfig: &v1beta1.BindcarConfig{
		Image: "mirror.example/lockstep:v1", LogLevel: "info", Port: 8081, EnvVars: []corev1.EnvVar{{Name: "A", Value: "cluster"}},
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}}
	w.Instance.Spec.Config = &v1beta1.Bind9Config{BindcarConfig: &v1beta1.BindcarConfig{LogLevel: "debug"}}
	w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{
		ImagePullPolicy: corev1.PullAlways, EnvVars: []corev1.EnvVar{{Name: "B", Value: "instance"}},
		Volumes:      []corev1.Volume{{Name: "extra", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "extra", MountPath: "/extra"}},
	}
	pod := statefulSet(t, w).Spec.Template.Spec
	c := pod.Containers[1]
	if c.Image != "mirror.example/lockstep:v1" || c.ImagePullPolicy != corev1.PullAlways || pod.InitContainers[0].Image != c.Image {
		t.Errorf("image %s, %s, init %s", c.Image, c.ImagePullPolicy, pod.InitContainers[0].Image)
	}
	if !slices.Contains(c.Args, "--log-level=debug") || !slices.Contains(c.Args, "--listen=:8081") || !slices.Contains(c.Args, "--listen=:8080") {
		t.Errorf("args %v", c.Args)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "B", Value: "instance"}}, c.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if limit := c.Resources.Limits.Memory().String(); limit != "1Gi" {
		t.Errorf("memory limit %s", limit)
	}
	if !mounts(c, "extra") || mounts(pod.Containers[0], "extra") {
		t.Error("the sidecar's mount is not in the sidecar alone")
	}
}

// TestService: the sidecar's serviceSpec goes before the role's service.spec, field by field; selector and ports stay.
func TestService(t *testing.T) {
	w := workload(t)
	plain := service(t, w)
	if plain.Spec.Type != corev1.ServiceTypeClusterIP || len(plain.Spec.Ports) != 3 || plain.Labels["bindy.firestoned.io/cluster"] != "prod" {
		t.Errorf("service %+v", plain)
	}
	w.Cluster.Primary = &v1beta1.RoleConfig{ServerConfig: v1beta1.ServerConfig{Service: &v1beta1.ServiceConfig{
		Annotations: map[string]string{"lb.example/pool": "dns"},
		Spec: &corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/lb"), LoadBalancerSourceRanges: []string{"192.0.2.0/24"},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: 31000, AllocateLoadBalancerNodePorts: new(false),
			TrafficDistribution: new("PreferSameZone"), SessionAffinity: corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
			Selector:              map[string]string{"app": "other"},
			Ports:                 []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP, NodePort: 30053}, {Name: "other", Port: 99}},
		},
	}}}
	w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{ServiceSpec: &corev1.ServiceSpec{ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster}}
	got := service(t, w)
	want := w.Cluster.Primary.Service.Spec.DeepCopy()
	want.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	want.Selector, want.Ports = plain.Spec.Selector, slices.Clone(plain.Spec.Ports[:2])
	want.Ports[0].NodePort = 30053
	if diff := cmp.Diff(*want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !maps.Equal(got.Annotations, w.Cluster.Primary.Service.Annotations) {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// A Service that is open to the outside has port 53 alone, whoever has opened it. The sidecar's port is on one that is not.
func TestExposedServiceHasPort53Alone(t *testing.T) {
	for name, c := range map[string]struct {
		role, sidecar *corev1.ServiceSpec
		live          corev1.ServiceSpec
		exposed       bool
	}{
		"nothing":                         {},
		"inside":                          {role: &corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"load balancer":                   {role: &corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, exposed: true},
		"node port":                       {role: &corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}, exposed: true},
		"external IPs":                    {role: &corev1.ServiceSpec{ExternalIPs: []string{"203.0.113.11"}}, exposed: true},
		"by the sidecar's serviceSpec":    {sidecar: &corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}, exposed: true},
		"inside by the sidecar's":         {role: &corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}, sidecar: &corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"external IPs of somebody else's": {live: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ExternalIPs: []string{"203.0.113.11"}}, exposed: true},
		"the ports that are asked for": {exposed: true, role: &corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "bindcar", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.Primary = &v1beta1.RoleConfig{}
			w.Cluster.Primary.Service = &v1beta1.ServiceConfig{Annotations: map[string]string{"lb.example/pool": "dns"}, Spec: c.role}
			w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{ServiceSpec: c.sidecar}
			own, beside, err := w.Services(c.live)
			got := as[corev1.Service](t, own, err)
			var ports []int32
			for _, p := range got.Spec.Ports {
				ports = append(ports, p.Port)
			}
			if want := map[bool][]int32{false: {53, 53, 80}, true: {53, 53}}[c.exposed]; !slices.Equal(ports, want) {
				t.Errorf("ports %v, want %v", ports, want)
			}
			if (beside != nil) != c.exposed {
				t.Fatalf("another Service: %t", beside != nil)
			}
			if beside == nil {
				return
			}
			inside := as[corev1.Service](t, beside, nil)
			if inside.Name != w.Instance.Name+"-bindcar" || named.Exposed(inside.Spec) || len(inside.Spec.Ports) != 1 || inside.Spec.Ports[0].Port != 80 ||
				inside.Annotations != nil || !maps.Equal(inside.Spec.Selector, got.Spec.Selector) {
				t.Errorf("the sidecar's Service: %+v", inside)
			}
		})
	}
}

func TestVolumes(t *testing.T) {
	volume := func(name string) []corev1.Volume {
		return []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}
	at := func(name, path string) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: name, MountPath: path}}
	}
	for name, c := range map[string]struct {
		cluster, instance     []corev1.Volume
		clusterAt, instanceAt []corev1.VolumeMount
		want, without         string
		problem               string
	}{
		"cluster's":  {cluster: volume("c"), clusterAt: at("c", "/c"), want: "c"},
		"instance's": {cluster: volume("c"), clusterAt: at("c", "/c"), instance: volume("i"), instanceAt: at("i", "/i"), want: "i", without: "c"},
		"our name":   {instance: volume("config"), problem: `another volume "config": give yours another name; the pods' own are config, config-source, tsig-keys, cache, run,`},
		"our place": {instance: volume("i"), instanceAt: at("i", "/etc/bind/"),
			problem: `volumeMounts: volume "i" cannot be mounted at /etc/bind/ in container named: there is another mount at /etc/bind, of volume "config": replace named.conf,`},
		"our storage": {instance: volume("i"), instanceAt: at("i", "/var/cache/bind"),
			problem: `another mount at /var/cache/bind, of volume "cache": use a volume of your own by storage.storageType: persistentVolumeClaim and storage.persistentVolumeClaim.claimName`},
		"inside of the configuration": {instance: volume("i"), instanceAt: at("i", "/etc/bind/zones"),
			problem: `it would hide what the pod itself has in /etc/bind: replace named.conf, named.conf.options and named.conf.zones with configMapRefs, and mount other files elsewhere, such as at /srv/bind`},
		"inside of our zones":   {instance: volume("i"), instanceAt: at("i", "/var/cache/bind/zones/mine"), problem: "it has the zones of DNSZones: mount files of your own elsewhere"},
		"inside of our storage": {instance: volume("i"), instanceAt: at("i", "/var/cache/bind/static"), want: "i"},
		"above ours":            {instance: volume("i"), instanceAt: at("i", "/etc/"), problem: "hide what the pod itself has in /etc/bind: replace"},
		"root":                  {instance: volume("i"), instanceAt: at("i", "/"), problem: "would hide"},
		"within, relative":      {instance: volume("i"), instanceAt: at("i", "etc//bind/mine"), problem: "in /etc/bind:"},
		"by a detour":           {instance: volume("i"), instanceAt: at("i", "/data/../run/named"), problem: "at /run/named"},
		"by a link":             {instance: volume("i"), instanceAt: at("i", "/var/run/named"), problem: "at /var/run/named"},
		"above, by a link":      {instance: volume("i"), instanceAt: at("i", "/var/run"), problem: "hide what the pod itself has in /run/named"},
		"beside, by a link":     {instance: volume("i"), instanceAt: at("i", "/var/run/mine"), want: "i"},
		"our program":           {instance: volume("i"), instanceAt: at("i", "/lockstep"), problem: "in /lockstep: mount it elsewhere"},
		"beside ours":           {instance: volume("i"), instanceAt: at("i", "/etc/bind2"), want: "i"},
		"not declared":          {instanceAt: at("nowhere", "/x"), problem: `volume "nowhere", which there is not: add it to volumes, or remove the mount`},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.Volumes, w.Cluster.VolumeMounts = c.cluster, c.clusterAt
			w.Instance.Spec.Volumes, w.Instance.Spec.VolumeMounts = c.instance, c.instanceAt
			if c.problem != "" {
				if _, err := w.StatefulSet(); !errors.Is(err, named.ErrConfig) || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v", err)
				}
				return
			}
			pod := statefulSet(t, w).Spec.Template.Spec
			if !mounts(pod.Containers[0], c.want) || c.without != "" && mounts(pod.Containers[0], c.without) {
				t.Errorf("mounts %v", pod.Containers[0].VolumeMounts)
			}
			has := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == c.without })
			if c.without != "" && has {
				t.Errorf("volume %s is there", c.without)
			}
		})
	}
}

func TestStorage(t *testing.T) {
	claim := v1beta1.StoragePersistentVolumeClaim
	for name, c := range map[string]struct {
		storage   *v1beta1.StorageConfig
		templates int
		check     func(corev1.VolumeSource) bool
	}{
		"default": {nil, 0, func(v corev1.VolumeSource) bool { return v.EmptyDir != nil }},
		"bounded": {&v1beta1.StorageConfig{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))}}, 0,
			func(v corev1.VolumeSource) bool { return v.EmptyDir != nil && v.EmptyDir.SizeLimit.String() == "1Gi" }},
		"existing claim": {&v1beta1.StorageConfig{StorageType: claim, PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimConfig{ClaimName: "mine"}}, 0,
			func(v corev1.VolumeSource) bool {
				return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "mine"
			}},
		"claims": {&v1beta1.StorageConfig{StorageType: claim, PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimConfig{
			Size: "5Gi", StorageClassName: new("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}}}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Instance.Spec.Storage = c.storage
			set := statefulSet(t, w)
			if len(set.Spec.VolumeClaimTemplates) != c.templates {
				t.Fatalf("%d claims, want %d", len(set.Spec.VolumeClaimTemplates), c.templates)
			}
			for _, v := range set.Spec.Template.Spec.Volumes {
				if v.Name == "cache" && (c.check == nil || !c.check(v.VolumeSource)) {
					t.Errorf("volume %+v", v)
				}
			}
			for _, pvc := range set.Spec.VolumeClaimTemplates {
				s := pvc.Spec
				if pvc.Name != "cache" || s.Resources.Requests.Storage().String() != "5Gi" || *s.StorageClassName != "fast" || s.AccessModes[0] != corev1.ReadWriteOncePod {
					t.Errorf("claim %+v", pvc)
				}
			}
			if !mounts(set.Spec.Template.Spec.Containers[0], "cache") {
				t.Error("named does not mount what it keeps")
			}
		})
	}
}

// TestTakesNamedsPorts: the sidecar cannot be put on a port that named has.
func TestTakesNamedsPorts(t *testing.T) {
	w := workload(t)
	w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{Port: serving.Port}
	if _, err := w.StatefulSet(); !errors.Is(err, named.ErrConfig) || !strings.Contains(err.Error(), "bindcarConfig.port") {
		t.Errorf("got %v", err)
	}
}

// A Service that kube-apiserver would not store is not sent to it: the field is named as the specification has it.
func TestServicesOfUnknownType(t *testing.T) {
	w := workload(t)
	w.Cluster.Service = &v1beta1.ServiceConfig{Spec: &corev1.ServiceSpec{Type: "LoadBalancerr"}}
	if _, _, err := w.Services(corev1.ServiceSpec{}); !errors.Is(err, named.ErrConfig) || !strings.Contains(err.Error(), "service.spec.type: Unsupported value") {
		t.Errorf("got %v", err)
	}
}

// TestDisruptionBudget: all instances of a role apply the same object, which selects the pods of them all.
func TestDisruptionBudget(t *testing.T) {
	owner := func() *metav1ac.OwnerReferenceApplyConfiguration {
		return metav1ac.OwnerReference().WithKind("Bind9Cluster").WithName("prod").WithUID("c")
	}
	first, second := workload(t), workload(t)
	second.Instance.Name = "prod-primary-1"
	budget := as[policyv1.PodDisruptionBudget](t, first.DisruptionBudget(owner()), nil)
	if diff := cmp.Diff(budget, as[policyv1.PodDisruptionBudget](t, second.DisruptionBudget(owner()), nil)); diff != "" {
		t.Errorf("two instances, two budgets:\n%s", diff)
	}
	if budget.Name != "prod-primary" || budget.Spec.MaxUnavailable.IntValue() != 1 || *budget.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow ||
		len(budget.OwnerReferences) != 1 || budget.OwnerReferences[0].Name != "prod" {
		t.Errorf("budget %+v", budget)
	}
	template := statefulSet(t, second).Spec.Template
	for label, value := range budget.Spec.Selector.MatchLabels {
		if template.Labels[label] != value {
			t.Errorf("pods have %s=%s", label, template.Labels[label])
		}
	}
	for _, spread := range template.Spec.TopologySpreadConstraints {
		if diff := cmp.Diff(budget.Spec.Selector, spread.LabelSelector); diff != "" {
			t.Errorf("spread over %s among others:\n%s", spread.TopologyKey, diff)
		}
	}
	if len(template.Spec.TopologySpreadConstraints) != 2 {
		t.Errorf("spread %v", template.Spec.TopologySpreadConstraints)
	}
	alone := workload(t)
	alone.Instance.Spec.ClusterRef = ""
	if b := as[policyv1.PodDisruptionBudget](t, alone.DisruptionBudget(nil), nil); b.Name != alone.Instance.Name || b.OwnerReferences[0].Kind != "Bind9Instance" {
		t.Errorf("standalone: %+v", b)
	}
}
