package named_test

import (
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
)

func workload(t *testing.T) named.Workload {
	t.Helper()
	return named.Workload{
		Instance: &v1beta1.Bind9Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "prod-primary-0", UID: "1"},
			Spec:       v1beta1.Bind9InstanceSpec{ClusterRef: "prod", Role: v1beta1.RolePrimary},
		},
		Images: named.Images{Bind9: bindImages(t, "registry.example:5000/lockstep-bind9:9.20"), Bindcar: "lockstep:dev"},
	}
}

func bindImages(t *testing.T, text string) releases.Images {
	t.Helper()
	images, err := releases.ParseImages(text)
	if err != nil {
		t.Fatal(err)
	}
	return images
}

// statefulSet is the apply configuration as the object that it becomes.
func statefulSet(t *testing.T, w named.Workload) appsv1.StatefulSet {
	t.Helper()
	configuration, err := w.StatefulSet()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	if err := json.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*named.Workload){
		"primary":   func(*named.Workload) {},
		"secondary": func(w *named.Workload) { w.Instance.Spec.Role = v1beta1.RoleSecondary },
		"claim": func(w *named.Workload) {
			w.Instance.Spec.Storage = &v1beta1.StorageConfig{StorageType: v1beta1.StoragePersistentVolumeClaim}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			change(&w)
			template := statefulSet(t, w).Spec.Template
			for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
				if !ptr.Deref(c.SecurityContext.ReadOnlyRootFilesystem, false) {
					t.Errorf("container %s can write to its root", c.Name)
				}
			}
		})
	}
}

// TestSecondariesHaveNoCredentials: only the sidecar of a primary may have keys to keep in Secrets.
func TestSecondariesHaveNoCredentials(t *testing.T) {
	w := workload(t)
	w.Instance.Spec.Role = v1beta1.RoleSecondary
	for _, v := range statefulSet(t, w).Spec.Template.Spec.Volumes {
		if v.Name == "kube-api-access" || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			t.Errorf("volume %s has a token", v.Name)
		}
	}
}

// TestProbesNeedNoCertificate: the kubelet has none.
func TestProbesNeedNoCertificate(t *testing.T) {
	sidecar := statefulSet(t, workload(t)).Spec.Template.Spec.Containers[1]
	for _, probe := range []*corev1.Probe{sidecar.ReadinessProbe, sidecar.LivenessProbe} {
		if probe.HTTPGet.Scheme == corev1.URISchemeHTTPS || probe.HTTPGet.Port.String() != "health" {
			t.Errorf("probe %+v", probe.HTTPGet)
		}
	}
	if !slices.Contains(sidecar.Args, "--client-ca-file=/etc/bindcar/tls/ca.crt") {
		t.Errorf("nothing verifies callers: %q", sidecar.Args)
	}
}

// TestOnlyTheSidecarHasCredentials: named is the one that strangers talk to.
func TestOnlyTheSidecarHasCredentials(t *testing.T) {
	set := statefulSet(t, workload(t))
	pod := set.Spec.Template.Spec
	if ptr.Deref(pod.AutomountServiceAccountToken, true) {
		t.Error("every container is given the token")
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, m := range c.VolumeMounts {
			if has := m.Name == "kube-api-access"; has != (c.Name == "bindcar") && (has || c.Name == "bindcar" && !mounts(c, "kube-api-access")) {
				t.Errorf("container %s: credentials of Kubernetes: %v", c.Name, has)
			}
			if m.Name == "tsig-keys" && c.Name != "named" { // Its volume has the only projections of a ring's keys; see TestKeysReachNamedAlone.
				t.Errorf("container %s sees the TSIG keys", c.Name)
			}
		}
	}
}

func mounts(c corev1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
}

func TestStatefulSet(t *testing.T) {
	set := statefulSet(t, workload(t))
	pod := set.Spec.Template
	if set.Name != "prod-primary-0" || set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || *set.Spec.Replicas != 1 {
		t.Errorf("StatefulSet %+v", set.Spec)
	}
	if pod.Spec.ServiceAccountName != *workload(t).ServiceAccount().Name {
		t.Errorf("the pods run as %s", pod.Spec.ServiceAccountName)
	}
	if len(pod.Spec.ReadinessGates) != 1 || pod.Spec.ReadinessGates[0].ConditionType != v1beta1.ZonesLoadedGate {
		t.Errorf("gates %v", pod.Spec.ReadinessGates)
	}
	for label, want := range map[string]string{
		"app.kubernetes.io/name": "bind9", "app.kubernetes.io/instance": "prod-primary-0", "app.kubernetes.io/component": "dns-server",
		"app.kubernetes.io/part-of": "bindy", "app": "bind9", "instance": "prod-primary-0", "app.kubernetes.io/managed-by": "lockstep",
		"bindy.firestoned.io/cluster": "prod", "bindy.firestoned.io/role": "primary",
	} {
		if pod.Labels[label] != want {
			t.Errorf("label %s: %q", label, pod.Labels[label])
		}
	}
}

// TestKeysReachNamedAlone: of a key ring the sidecar gets the names, and a secondary nothing of the update keys.
func TestKeysReachNamedAlone(t *testing.T) {
	for role, want := range map[v1beta1.ServerRole]map[string][]string{
		v1beta1.RolePrimary: {
			"tsig-keys": {"prod-update-keyring key.conf", "prod-transfer-keyring key.conf"},
			"key-names": {"prod-update-keyring names.json", "prod-transfer-keyring names.json"},
		},
		v1beta1.RoleSecondary: {"tsig-keys": {"prod-transfer-keyring key.conf"}, "key-names": {"prod-transfer-keyring names.json"}},
	} {
		w := workload(t)
		w.Instance.Spec.Role = role
		got := map[string][]string{}
		for _, v := range statefulSet(t, w).Spec.Template.Spec.Volumes {
			if v.Projected == nil {
				continue
			}
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					for _, i := range source.Secret.Items {
						got[v.Name] = append(got[v.Name], source.Secret.Name+" "+i.Key)
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

func TestSameInputSameObjects(t *testing.T) {
	w := workload(t)
	first, again := statefulSet(t, w), statefulSet(t, w)
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Errorf("two renderings differ:\n%s\n%s", a, b)
	}
	before := first.Spec.Template.Annotations[named.ChecksumAnnotation]
	w.Cluster.Global = &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"192.0.2.0/24"}}
	if statefulSet(t, w).Spec.Template.Annotations[named.ChecksumAnnotation] == before {
		t.Error("another configuration has the same checksum")
	}
}

// TestPorts: the sidecar and the Service expect named at the same port.
func TestPorts(t *testing.T) {
	got := named.PodLayout().Port
	if got != layout.DNSPort {
		t.Errorf("named listens on %d, the sidecar expects %d", got, layout.DNSPort)
	}
	if got != serving.Port {
		t.Errorf("named listens on %d, the Service expects %d", got, serving.Port)
	}
}

func TestImages(t *testing.T) {
	cases := map[string]struct {
		instance, cluster string
		image             *v1beta1.ImageConfig
		bindcar           string
		want, wantBindcar string
		ignored           bool
	}{
		"default":           {want: "registry.example:5000/lockstep-bind9:9.20", wantBindcar: "lockstep:dev"},
		"version":           {instance: "9.18", want: "registry.example:5000/lockstep-bind9:9.18", wantBindcar: "lockstep:dev"},
		"cluster's version": {cluster: "9.18", want: "registry.example:5000/lockstep-bind9:9.18", wantBindcar: "lockstep:dev"},
		"one of its own":    {instance: "9.20", cluster: "9.18", want: "registry.example:5000/lockstep-bind9:9.20", wantBindcar: "lockstep:dev"},
		"image":             {instance: "9.18", image: &v1beta1.ImageConfig{Image: "bind:mine"}, want: "bind:mine", wantBindcar: "lockstep:dev"},
		"sidecar":           {bindcar: "mirror.example/lockstep:v1", want: "registry.example:5000/lockstep-bind9:9.20", wantBindcar: "mirror.example/lockstep:v1"},
		"public sidecar":    {bindcar: "ghcr.io/firestoned/bindcar:v0.7.0", want: "registry.example:5000/lockstep-bind9:9.20", wantBindcar: "lockstep:dev", ignored: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Instance.Spec.Version, w.Cluster.Version, w.Instance.Spec.Image = c.instance, c.cluster, c.image
			if c.bindcar != "" {
				w.Instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{Image: c.bindcar}
			}
			pod := statefulSet(t, w).Spec.Template.Spec
			if pod.Containers[0].Image != c.want || pod.Containers[1].Image != c.wantBindcar || pod.InitContainers[0].Image != c.wantBindcar {
				t.Errorf("images %s, %s", pod.Containers[0].Image, pod.Containers[1].Image)
			}
			if (len(w.Ignored()) > 0) != c.ignored {
				t.Errorf("ignored: %v", w.Ignored())
			}
		})
	}
}

// TestVersionWithoutImage: a version that the image of a digest cannot have changes nothing, and one that decides on the image comes with
// what to do if there is no such image.
func TestVersionWithoutImage(t *testing.T) {
	const advice = ` needs the image a.example:5000/bind9:9.18, which cannot be pulled: push it, or add image: {image: …} to the spec, with an image of BIND 9.18, or set version: "9.20", for which there is a.example:5000/bind9:9.20`
	for name, c := range map[string]struct {
		standard, image, instance, cluster string
		owned                              bool
		want, advice                       string
	}{
		"instance's":     {instance: "9.18", want: "a.example:5000/bind9:9.18", advice: `spec.version "9.18" of Bind9Instance prod-primary-0` + advice},
		"cluster's":      {cluster: "9.18", want: "a.example:5000/bind9:9.18", advice: `spec.version "9.18" of cluster prod` + advice},
		"made by it":     {instance: "9.18", cluster: "9.18", owned: true, want: "a.example:5000/bind9:9.18", advice: `spec.version "9.18" of Bind9Cluster prod` + advice},
		"image":          {instance: "9.18", image: "bind:mine", want: "bind:mine"},
		"default":        {instance: "9.20", want: "a.example:5000/bind9:9.20"},
		"named":          {instance: "9.18", standard: "a.example:5000/bind9:9.20@sha256:abcd,9.18=b.example/bind@sha256:ef", want: "b.example/bind@sha256:ef"},
		"digest":         {instance: "9.18", standard: "a.example:5000/bind9@sha256:abcd", want: "a.example:5000/bind9@sha256:abcd"},
		"tag and digest": {instance: "9.18", standard: "a.example:5000/bind9:9.20@sha256:abcd", want: "a.example:5000/bind9:9.20@sha256:abcd"},
		"no tag":         {instance: "9.18", standard: "a.example:5000/bind9", want: "a.example:5000/bind9"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Images.Bind9 = bindImages(t, stdcmp.Or(c.standard, "a.example:5000/bind9:9.20"))
			w.Instance.Spec.Version, w.Cluster.Version, w.Instance.OwnerReferences = c.instance, c.cluster, nil
			if c.image != "" {
				w.Instance.Spec.Image = &v1beta1.ImageConfig{Image: c.image}
			}
			if c.owned {
				w.Instance.OwnerReferences = []metav1.OwnerReference{{Kind: "Bind9Cluster", Name: "prod", Controller: new(true)}}
			}
			if got := statefulSet(t, w).Spec.Template.Spec.Containers[0].Image; got != c.want {
				t.Errorf("image %s, want %s", got, c.want)
			}
			if got := w.ImageAdvice(); got != c.advice {
				t.Errorf("advice %q, want %q", got, c.advice)
			}
		})
	}
}

// TestPullSecrets: what pulls the image of named is the instance's, else the cluster's.
func TestPullSecrets(t *testing.T) {
	w := workload(t)
	w.Cluster.Image = &v1beta1.ImageConfig{ImagePullPolicy: corev1.PullAlways, ImagePullSecrets: []string{"ours", "theirs"}}
	pod := statefulSet(t, w).Spec.Template.Spec
	if want := []corev1.LocalObjectReference{{Name: "ours"}, {Name: "theirs"}}; !slices.Equal(pod.ImagePullSecrets, want) {
		t.Errorf("secrets %v", pod.ImagePullSecrets)
	}
	if pod.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("policy %s", pod.Containers[0].ImagePullPolicy)
	}
	w.Instance.Spec.Image = &v1beta1.ImageConfig{ImagePullSecrets: []string{"mine"}}
	if got := statefulSet(t, w).Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "mine" {
		t.Errorf("secrets of the instance: %v", got)
	}
}

// TestReplacedFiles: each file comes from the ConfigMap that is named for it, and the keys' file never from a user's.
func TestReplacedFiles(t *testing.T) {
	const own = "prod-primary-0-config"
	for name, c := range map[string]struct {
		refs                          v1beta1.ConfigMapRefs
		main, control, options, zones string
	}{
		"none":    {v1beta1.ConfigMapRefs{}, own, own, own, own},
		"options": {v1beta1.ConfigMapRefs{NamedConfOptions: "mine"}, own, own, "mine", own},
		"all":     {v1beta1.ConfigMapRefs{NamedConf: "main", NamedConfOptions: "mine", NamedConfZones: "zones"}, "main", own, "mine", "zones"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.ConfigMapRefs = &c.refs
			want := map[string]string{"named.conf": c.main, "named.conf.control": c.control, "named.conf.options": c.options, "named.conf.zones": c.zones}
			if diff := cmp.Diff(want, filesFrom(statefulSet(t, w))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// filesFrom are the ConfigMaps of the configuration files.
func filesFrom(set appsv1.StatefulSet) map[string]string {
	files := map[string]string{}
	for _, volume := range set.Spec.Template.Spec.Volumes {
		if volume.Name != "config-source" {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ConfigMap == nil {
				continue
			}
			for _, item := range source.ConfigMap.Items {
				files[item.Path] = source.ConfigMap.Name
			}
		}
	}
	return files
}

// TestReplacedContent: a change of a user's file replaces pods, one of what it stands in place of does not.
func TestReplacedContent(t *testing.T) {
	checksum := func(content string, recursion bool) string {
		w := workload(t)
		w.Cluster.ConfigMapRefs = &v1beta1.ConfigMapRefs{NamedConfOptions: "mine"}
		w.Cluster.Global = &v1beta1.Bind9Config{Recursion: new(recursion)}
		w.Replacements = map[string]string{"named.conf.options": content}
		return statefulSet(t, w).Spec.Template.Annotations[named.ChecksumAnnotation]
	}
	const needed = "allow-new-zones yes; listen-on port 5353 { any; };"
	was := checksum("options { "+needed+" };", false)
	if checksum("options {"+needed+"};", false) == was {
		t.Error("another content has the same checksum")
	}
	if checksum("options { "+needed+" };", true) != was {
		t.Error("options that are not used change the checksum")
	}
}

func TestInvalidSpecifications(t *testing.T) {
	w := workload(t)
	w.Instance.Spec.Storage = &v1beta1.StorageConfig{
		StorageType:           v1beta1.StoragePersistentVolumeClaim,
		PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimConfig{Size: "much"},
	}
	if _, err := w.StatefulSet(); !errors.Is(err, named.ErrConfig) {
		t.Errorf("got %v", err)
	}
}

func TestKeys(t *testing.T) {
	key, err := named.NewKey("DNS", "Prod", named.KeyUpdate)
	if err != nil {
		t.Fatal(err)
	}
	if key.Name != "prod.dns.update." || key.Algorithm != "hmac-sha256." || key.Validate() != nil {
		t.Errorf("key %v: %v", key, key.Validate())
	}
	secret := &corev1.Secret{Data: named.KeyData(key)}
	back, err := named.KeyFromSecret(secret)
	if err != nil || *back != *key {
		t.Errorf("read back %v, %v", back, err)
	}
	for name, change := range map[string]func(map[string][]byte){
		"no key":    func(d map[string][]byte) { clear(d); d["x"] = []byte("hush") },
		"no name":   func(d map[string][]byte) { delete(d, "name") },
		"quote":     func(d map[string][]byte) { d["name"] = []byte(`x" { }; //`) },
		"two dots":  func(d map[string][]byte) { d["name"] = []byte("your.servers..are.mine") },
		"label":     func(d map[string][]byte) { d["name"] = []byte(strings.Repeat("x", 64)) },
		"length":    func(d map[string][]byte) { d["name"] = []byte(strings.Repeat("x.", 130)) },
		"md5":       func(d map[string][]byte) { d["algorithm"] = []byte("hmac-md5") },
		"no secret": func(d map[string][]byte) { d["secret"] = nil },
		"no base64": func(d map[string][]byte) { d["secret"] = []byte("hush!") },
	} {
		data := named.KeyData(key)
		change(data)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "key"}, Data: data}
		if _, err := named.KeyFromSecret(secret); !errors.Is(err, named.ErrKey) || strings.Contains(err.Error(), key.Secret) || !strings.Contains(err.Error(), "Secret dns/key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a Secret holds: a key that is read can sign, and what is not one is refused where the Secret is known.
func FuzzKeyFromSecret(f *testing.F) {
	for _, name := range []string{"update.dns.", "your.servers..are.mine", "a.", ".", "..", "-", "x." + strings.Repeat("y", 64), `a\046b`} {
		f.Add(name, "hmac-sha256", "c2VjcmV0")
	}
	f.Add("a", "HMAC-SHA512.", "c2Vj\ncmV0")
	f.Fuzz(func(t *testing.T, name, algorithm, secret string) {
		key, err := named.KeyFromSecret(&corev1.Secret{Data: map[string][]byte{"name": []byte(name), "algorithm": []byte(algorithm), "secret": []byte(secret)}})
		if err != nil {
			if !errors.Is(err, named.ErrKey) {
				t.Error(err)
			}
			return
		}
		m := new(dns.Msg).SetQuestion("example.", dns.TypeSOA)
		m.SetTsig(key.Name, key.Algorithm, 300, 0)
		if _, _, err := dns.TsigGenerate(m, key.Secret, "", false); err != nil || key.Validate() != nil {
			t.Errorf("key %v cannot sign: %v, %v", key, err, key.Validate())
		}
	})
}
