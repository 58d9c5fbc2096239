package named_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

func TestKeyFromRef(t *testing.T) {
	entries := func(pairs ...string) map[string][]byte {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return data
	}
	cases := map[string]struct {
		data map[string][]byte
		ref  v1beta1.RNDCSecretRef
		want string // name, algorithm and secret; or what the error says
	}{
		"defaults":      {entries("key-name", "Mine", "secret", "YQ=="), v1beta1.RNDCSecretRef{}, "mine. hmac-sha256. YQ=="},
		"own entries":   {entries("n", "mine.", "s", "YQ==\n"), v1beta1.RNDCSecretRef{KeyNameKey: "n", SecretKey: "s", Algorithm: "hmac-sha512"}, "mine. hmac-sha512. YQ=="},
		"algorithm too": {entries("key-name", "mine", "secret", "YQ==", "algorithm", "hmac-sha384"), v1beta1.RNDCSecretRef{Algorithm: "hmac-sha256"}, "mine. hmac-sha384. YQ=="},
		"statement":     {entries("rndc.key", "key \"mine\" {\n\talgorithm hmac-sha256;\n\tsecret \"YQ==\";\n};\n"), v1beta1.RNDCSecretRef{}, "mine. hmac-sha256. YQ=="},
		"no name":       {entries("secret", "YQ=="), v1beta1.RNDCSecretRef{}, `no entry "key-name"`},
		"no secret":     {entries("key-name", "mine"), v1beta1.RNDCSecretRef{SecretKey: "s"}, `no entry "s"`},
		"no statement":  {entries("rndc.key", "hush"), v1beta1.RNDCSecretRef{}, "not a key statement"},
		"weak": {entries("key-name", "mine", "secret", "YQ==", "algorithm", "HMAC-MD5.SIG-ALG.REG.INT."), v1beta1.RNDCSecretRef{},
			"algorithm hmac-md5.sig-alg.reg.int is refused as too weak, or not known (RFC 8945 section 6); hmac-sha256, hmac-sha224, hmac-sha384 and hmac-sha512 work: have the server know a new key beside the old one, made with tsig-keygen -a hmac-sha256 NAME"},
		"weak statement":           {entries("rndc.key", `key "dhcp/key:1" { algorithm hmac-sha1; secret "YQ=="; };`), v1beta1.RNDCSecretRef{}, "algorithm hmac-sha1 is refused as too weak"},
		"of Kerberos":              {entries("key-name", "mine", "secret", "YQ==", "algorithm", "gss-tsig"), v1beta1.RNDCSecretRef{}, "algorithm gss-tsig is not supported: there is no GSS-TSIG here"},
		"a secret in its place":    {entries("key-name", "mine", "secret", "YQ==", "algorithm", "hush"), v1beta1.RNDCSecretRef{}, `entry "algorithm" names no algorithm; hmac-sha256`},
		"another in its place":     {entries("key-name", "mine", "secret", "YQ==", "algorithm", "gss-hush"), v1beta1.RNDCSecretRef{}, `algorithm gss is not supported`},
		"a name with other signs":  {entries("rndc.key", `key "dhcp/key:1" { algorithm hmac-sha256; secret "YQ=="; };`), v1beta1.RNDCSecretRef{}, "dhcp/key:1. hmac-sha256. YQ=="},
		"a name that ends a quote": {entries("key-name", `a"b`, "secret", "YQ=="), v1beta1.RNDCSecretRef{}, `entry "name" must be a domain name`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "mine"}, Data: c.data}
			key, err := named.KeyFromRef(secret, c.ref)
			if err != nil {
				if !errors.Is(err, named.ErrKey) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "dns/mine") || strings.Contains(err.Error(), "hush") {
					t.Errorf("error %v, want one about %s", err, c.want)
				}
				return
			}
			if got := key.Name + " " + key.Algorithm + " " + key.Secret; got != c.want {
				t.Errorf("key %s, want %s", got, c.want)
			}
		})
	}
}

func TestKeySettings(t *testing.T) {
	ref := func(name string) *v1beta1.RNDCSecretRef { return &v1beta1.RNDCSecretRef{Name: name} }
	auto := &v1beta1.RNDCKeyConfig{AutoRotate: true}
	cases := map[string]struct {
		spec v1beta1.Bind9ClusterSpec
		ref  string
		auto bool
	}{
		"nothing":     {},
		"primary":     {v1beta1.Bind9ClusterSpec{Primary: &v1beta1.RoleConfig{RNDCKey: &v1beta1.RNDCKeyConfig{AutoRotate: true, SecretRef: ref("p")}}}, "p", true},
		"older forms": {v1beta1.Bind9ClusterSpec{Primary: &v1beta1.RoleConfig{RNDCSecretRef: ref("p")}}, "p", false},
		"secondary": {v1beta1.Bind9ClusterSpec{Secondary: &v1beta1.RoleConfig{RNDCKey: &v1beta1.RNDCKeyConfig{AutoRotate: true, SecretRef: ref("s")}}},
			"", true},
		"both":   {v1beta1.Bind9ClusterSpec{Primary: &v1beta1.RoleConfig{RNDCKey: &v1beta1.RNDCKeyConfig{}}, Secondary: &v1beta1.RoleConfig{RNDCKey: auto}}, "", false},
		"global": {v1beta1.Bind9ClusterSpec{Global: &v1beta1.Bind9Config{RNDCSecretRef: ref("g")}}, "g", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := named.ClusterKeys(&c.spec)
			if (got.Ref == nil) != (c.ref == "") || got.Ref != nil && got.Ref.Name != c.ref || got.Rotation.AutoRotate != c.auto {
				t.Errorf("settings %+v", got)
			}
		})
	}
	alone := named.StandaloneKeys(&v1beta1.Bind9InstanceSpec{RNDCKeys: &v1beta1.RNDCKeyConfig{AutoRotate: true, SecretRef: ref("i")}})
	if alone.Ref == nil || alone.Ref.Name != "i" || !alone.Rotation.AutoRotate {
		t.Errorf("an instance's settings are %+v", alone)
	}
}

// TestIgnored: what has no effect is told, one note for each.
func TestIgnored(t *testing.T) {
	signing := func(s v1beta1.DNSSECSigningConfig) func(*named.Workload) {
		s.Enabled = true
		return func(w *named.Workload) {
			w.Cluster.Global = &v1beta1.Bind9Config{DNSSEC: &v1beta1.DNSSECConfig{Signing: &s}}
		}
	}
	secret := &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "x"}}
	for name, c := range map[string]struct {
		edit func(*named.Workload)
		want string // part of the only note; empty for none
	}{
		"cluster's":  {func(w *named.Workload) { w.Cluster.Primary = &v1beta1.RoleConfig{RNDCKey: secret} }, ""},
		"secondary":  {func(w *named.Workload) { w.Cluster.Secondary = &v1beta1.RoleConfig{RNDCKey: secret} }, "of secondaries"},
		"member":     {func(w *named.Workload) { w.Instance.Spec.RNDCKey = secret }, "the cluster's"},
		"standalone": {func(w *named.Workload) { w.Instance.Spec.RNDCKey, w.Instance.Spec.ClusterRef = secret, "" }, ""},
		"template": {func(w *named.Workload) {
			w.Instance.Spec.RNDCKey = &v1beta1.RNDCKeyConfig{Secret: &v1beta1.RNDCSecretTemplate{}}
		}, "rndcKey.secret"},
		"secrets of the cluster": {func(w *named.Workload) { w.Cluster.RNDCSecretRefs = []v1beta1.RNDCSecretRef{{Name: "x"}} }, "rndcSecretRefs"},
		"rotation of secondaries": {func(w *named.Workload) {
			w.Cluster.Primary = &v1beta1.RoleConfig{RNDCKey: secret}
			w.Cluster.Secondary = &v1beta1.RoleConfig{RNDCKey: &v1beta1.RNDCKeyConfig{AutoRotate: true}}
		}, "rndcKey.autoRotate of secondaries"},
		"upstream":           {func(w *named.Workload) { w.Instance.Spec.PrimaryServers = []string{"192.0.2.53"} }, "primaryServers"},
		"signed":             {signing(v1beta1.DNSSECSigningConfig{AutoGenerate: new(true)}), ""},
		"keys of one's own":  {signing(v1beta1.DNSSECSigningConfig{KeysFrom: &v1beta1.DNSSECKeySource{}}), "keysFrom"},
		"no keys of named's": {signing(v1beta1.DNSSECSigningConfig{AutoGenerate: new(false)}), "autoGenerate"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			c.edit(&w)
			notes := w.Ignored()
			if c.want == "" && len(notes) > 0 || c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)) {
				t.Errorf("notes %q, want %q", notes, c.want)
			}
		})
	}
}

func TestRotationStatus(t *testing.T) {
	ring, err := named.NewKeyring(named.KeyUpdate, sourceKey("a.", "YQ=="), ringEpoch)
	if err != nil {
		t.Fatal(err)
	}
	settings := v1beta1.RNDCKeyConfig{AutoRotate: true, RotateAfter: "2h"}
	if s := ring.Rotation(settings, true); !s.CreatedAt.Time.Equal(ringEpoch) || !s.RotateAt.Time.Equal(ringEpoch.Add(2*time.Hour)) || s.LastRotatedAt != nil || s.RotationCount != 0 {
		t.Errorf("a new ring: %+v", s)
	}
	if s := ring.Rotation(settings, false); s.RotateAt != nil {
		t.Errorf("a user's key is due %s", s.RotateAt)
	}
	if at := ring.RotateAt(v1beta1.RNDCKeyConfig{RotateAfter: "2h"}); at != nil {
		t.Errorf("without autoRotate it is due %s", at)
	}
	ring.SwitchedAt, ring.Switches = ringEpoch.Add(time.Hour), 3
	if s := ring.Rotation(settings, true); !s.LastRotatedAt.Time.Equal(ringEpoch.Add(time.Hour)) || s.RotationCount != 3 {
		t.Errorf("later: %+v", s)
	}
	if s := (named.Keyring{}).Rotation(settings, true); s != nil {
		t.Errorf("of nothing: %+v", s)
	}
}
