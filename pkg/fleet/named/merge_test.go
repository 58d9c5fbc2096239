package named_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// A setting can stand in several places, each a path in the specification of the cluster ("cluster.") or of the instance ("instance.").
// A later place goes before an earlier one. shows is how the servers show each of the two values.
type setting struct {
	places        []string
	values, shows [2]string
}

// settings are all settings that can stand in more than one place: docs/reference/fleet.md says the same.
var settings = map[string]setting{
	"recursion":     {options("recursion"), [2]string{`true`, `false`}, [2]string{"recursion yes;", "recursion no;"}},
	"allowQuery":    {options("allowQuery"), [2]string{`["192.0.2.1"]`, `["192.0.2.2"]`}, [2]string{`"lockstep-transfer"; 192.0.2.1; };`, `"lockstep-transfer"; 192.0.2.2; };`}},
	"allowTransfer": {[]string{"cluster.global.allowTransfer", "cluster.primary.allowTransfer", "instance.config.allowTransfer"}, [2]string{`["192.0.2.3"]`, `["192.0.2.4"]`}, [2]string{`acl "lockstep-allow-transfer" { 192.0.2.3; };`, `acl "lockstep-allow-transfer" { 192.0.2.4; };`}},
	"forwarders":    {options("forwarders"), [2]string{`["192.0.2.5"]`, `["192.0.2.6"]`}, [2]string{"forwarders { 192.0.2.5; };", "forwarders { 192.0.2.6; };"}},
	"listenOn":      {options("listenOn"), [2]string{`["192.0.2.7"]`, `["192.0.2.8"]`}, [2]string{"5353 { 192.0.2.7;  };", "5353 { 192.0.2.8;  };"}},
	"listenOnV6":    {options("listenOnV6"), [2]string{`["2001:db8::1"]`, `["2001:db8::2"]`}, [2]string{"2001:db8::1", "2001:db8::2"}},

	"rateLimit.responsesPerSecond": {options("rateLimit.responsesPerSecond"), [2]string{`11`, `22`}, [2]string{"responses-per-second 11;", "responses-per-second 22;"}},
	"rateLimit.nxdomainsPerSecond": {options("rateLimit.nxdomainsPerSecond"), [2]string{`12`, `23`}, [2]string{"nxdomains-per-second 12;", "nxdomains-per-second 23;"}},
	"rateLimit.errorsPerSecond":    {options("rateLimit.errorsPerSecond"), [2]string{`13`, `24`}, [2]string{"errors-per-second 13;", "errors-per-second 24;"}},
	"rateLimit.window":             {options("rateLimit.window"), [2]string{`14`, `25`}, [2]string{"window 14;", "window 25;"}},
	"rateLimit.slip":               {options("rateLimit.slip"), [2]string{`2`, `3`}, [2]string{"slip 2;", "slip 3;"}},
	"rateLimit.exemptClients":      {options("rateLimit.exemptClients"), [2]string{`["192.0.2.9"]`, `[]`}, [2]string{`"lockstep-transfer"; 192.0.2.9; }; };`, `"lockstep-transfer"; }; };`}},
	"rateLimit.ipv4PrefixLength":   {options("rateLimit.ipv4PrefixLength"), [2]string{`25`, `26`}, [2]string{"ipv4-prefix-length 25;", "ipv4-prefix-length 26;"}},
	"rateLimit.ipv6PrefixLength":   {options("rateLimit.ipv6PrefixLength"), [2]string{`57`, `58`}, [2]string{"ipv6-prefix-length 57;", "ipv6-prefix-length 58;"}},

	"maxRecordsPerType": {options("maxRecordsPerType"), [2]string{`200`, `4000`}, [2]string{"max-records-per-type 200;", "max-records-per-type 4000;"}},

	"dnssec.validation": {options("dnssec.validation"), [2]string{`true`, `false`}, [2]string{"dnssec-validation auto;", "dnssec-validation no;"}},
	"dnssec.signing": {options("dnssec.signing"), [2]string{`{"enabled": true, "policy": "low", "nsec3": true}`, `{"enabled": true, "policy": "high", "nsec3": true}`},
		[2]string{`dnssec-policy "low"`, `dnssec-policy "high"`}},
	"dnssec.enabled": {options("dnssec.enabled"), [2]string{`true`, `false`}, [2]string{"signs: default;", "signs: none;"}},

	"bindcarConfig.image":           {sidecar("image"), [2]string{`"low/sidecar:v1"`, `"high/sidecar:v1"`}, [2]string{"low/sidecar:v1", "high/sidecar:v1"}},
	"bindcarConfig.imagePullPolicy": {sidecar("imagePullPolicy"), [2]string{`"Never"`, `"Always"`}, [2]string{`"imagePullPolicy":"Never"`, `"imagePullPolicy":"Always"`}},
	"bindcarConfig.logLevel":        {sidecar("logLevel"), [2]string{`"debug"`, `"warn"`}, [2]string{"--log-level=debug", "--log-level=warn"}},
	"bindcarConfig.port":            {sidecar("port"), [2]string{`8111`, `8222`}, [2]string{"--listen=:8111", "--listen=:8222"}},
	"bindcarConfig.resources":       {sidecar("resources"), [2]string{`{"limits": {"memory": "111Mi"}}`, `{"limits": {"memory": "222Mi"}}`}, [2]string{"111Mi", "222Mi"}},
	"bindcarConfig.envVars":         {sidecar("envVars"), [2]string{`[{"name": "A", "value": "low-env"}]`, `[{"name": "A", "value": "high-env"}]`}, [2]string{"low-env", "high-env"}},
	"bindcarConfig.volumes":         {sidecar("volumes"), [2]string{`[{"name": "v", "emptyDir": {"sizeLimit": "11Mi"}}]`, `[{"name": "v", "emptyDir": {"sizeLimit": "22Mi"}}]`}, [2]string{`"11Mi"`, `"22Mi"`}},
	"bindcarConfig.volumeMounts":    {sidecar("volumeMounts"), [2]string{`[{"name": "cache", "mountPath": "/low"}]`, `[{"name": "cache", "mountPath": "/high"}]`}, [2]string{`"/low"`, `"/high"`}},
	"service.spec":                  {slices.Concat([]string{"cluster.service.spec.loadBalancerClass", "cluster.primary.service.spec.loadBalancerClass"}, sidecar("serviceSpec.loadBalancerClass"), []string{"instance.service.spec.loadBalancerClass"}), [2]string{`"class.example/low"`, `"class.example/high"`}, [2]string{"class.example/low", "class.example/high"}},

	"service.spec.type":           {servers("service.spec.type"), [2]string{`"LoadBalancer"`, `"NodePort"`}, [2]string{`"type":"LoadBalancer"`, `"type":"NodePort"`}},
	"service.labels":              {servers("service.labels.tier"), [2]string{`"low-tier"`, `"high-tier"`}, [2]string{`"tier":"low-tier"`, `"tier":"high-tier"`}},
	"service.annotations":         {servers("service.annotations.pool"), [2]string{`"low-pool"`, `"high-pool"`}, [2]string{`"pool":"low-pool"`, `"pool":"high-pool"`}},
	"podLabels":                   {servers("podLabels.mesh"), [2]string{`"low-mesh"`, `"high-mesh"`}, [2]string{`"mesh":"low-mesh"`, `"mesh":"high-mesh"`}},
	"podAnnotations":              {servers("podAnnotations.scrape"), [2]string{`"low-scrape"`, `"high-scrape"`}, [2]string{`"scrape":"low-scrape"`, `"scrape":"high-scrape"`}},
	"resources":                   {servers("resources"), [2]string{`{"limits": {"memory": "333Mi"}}`, `{"limits": {"memory": "444Mi"}}`}, [2]string{"333Mi", "444Mi"}},
	"placement.spread":            {servers("placement.spread"), [2]string{`[{"topologyKey": "low-key"}]`, `[{"topologyKey": "high-key"}]`}, [2]string{"low-key", "high-key"}},
	"placement.nodeSelector":      {servers("placement.nodeSelector"), [2]string{`{"low-node": "yes"}`, `{"high-node": "yes"}`}, [2]string{"low-node", "high-node"}},
	"placement.tolerations":       {servers("placement.tolerations"), [2]string{`[{"key": "low-taint"}]`, `[{"key": "high-taint"}]`}, [2]string{"low-taint", "high-taint"}},
	"placement.priorityClassName": {servers("placement.priorityClassName"), [2]string{`"low-priority"`, `"high-priority"`}, [2]string{"low-priority", "high-priority"}},
	"placement.affinity": {servers("placement.affinity"),
		[2]string{`{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "low-apart"}]}}`, `{"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "high-apart"}]}}`},
		[2]string{"low-apart", "high-apart"}},

	"version":       {[]string{"cluster.version", "instance.version"}, [2]string{`"9.18"`, `"9.22"`}, [2]string{"lockstep-bind9:9.18", "lockstep-bind9:9.22"}},
	"image":         {[]string{"cluster.image", "instance.image"}, [2]string{`{"imagePullSecrets": ["low-pull"]}`, `{"imagePullSecrets": ["high-pull"]}`}, [2]string{"low-pull", "high-pull"}},
	"configMapRefs": {[]string{"cluster.configMapRefs", "instance.configMapRefs"}, [2]string{`{"namedConf": "low-map"}`, `{"namedConf": "high-map"}`}, [2]string{"low-map", "high-map"}},
	"volumes":       {[]string{"cluster.volumes", "instance.volumes"}, [2]string{`[{"name": "w", "emptyDir": {"sizeLimit": "33Mi"}}]`, `[{"name": "w", "emptyDir": {"sizeLimit": "44Mi"}}]`}, [2]string{`"33Mi"`, `"44Mi"`}},
	"volumeMounts":  {[]string{"cluster.volumeMounts", "instance.volumeMounts"}, [2]string{`[{"name": "run", "mountPath": "/below"}]`, `[{"name": "run", "mountPath": "/above"}]`}, [2]string{`"/below"`, `"/above"`}},
	"rndcKey":       {[]string{"cluster.primary.rndcKey", "instance.rndcKey"}, [2]string{`{"algorithm": "hmac-sha384"}`, `{"algorithm": "hmac-sha512"}`}, [2]string{"hmac-sha384", "hmac-sha512"}},
	"rndcSecretRef": {[]string{"cluster.global.rndcSecretRef", "cluster.primary.rndcSecretRef"}, [2]string{`{"name": "low-key-ref"}`, `{"name": "high-key-ref"}`}, [2]string{`"low-key-ref"`, `"high-key-ref"`}},
}

// servers are the places of how servers run.
func servers(field string) []string {
	return []string{"cluster." + field, "cluster.primary." + field, "instance." + field}
}

// options are the places of an option of named, sidecar those of a setting of the sidecar.
func options(field string) []string {
	return []string{"cluster.global." + field, "instance.config." + field}
}

func sidecar(field string) []string {
	return append(options("bindcarConfig."+field), "instance.bindcarConfig."+field)
}

// served returns what the servers show of values at places.
func served(t *testing.T, values map[string]string) string {
	t.Helper()
	spec := map[string]any{"cluster": map[string]any{}, "instance": map[string]any{"role": "primary", "clusterRef": "prod"}}
	for path, value := range values {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(path, err)
		}
		in, fields := spec, strings.Split(path, ".")
		for _, field := range fields[:len(fields)-1] {
			if in[field] == nil {
				in[field] = map[string]any{}
			}
			in = in[field].(map[string]any)
		}
		in[fields[len(fields)-1]] = v
	}
	w := workload(t)
	w.Cluster = as[v1beta1.Bind9ClusterSpec](t, spec["cluster"], nil)
	w.Instance.Spec = as[v1beta1.Bind9InstanceSpec](t, spec["instance"], nil)
	files, err := named.Render(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{statefulSet(t, w), service(t, w), named.ClusterKeys(&w.Cluster).Ref})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(slices.Collect(maps.Values(files)), "\n") + string(text) + "signs: " + named.SigningPolicy(w.Config().Options) + ";"
}

// Of a setting in two places, the later one counts, whichever these are.
func TestLaterPlaceCounts(t *testing.T) {
	for name, s := range settings {
		for low, place := range s.places {
			if shown := served(t, map[string]string{place: s.values[0]}); !strings.Contains(shown, s.shows[0]) {
				t.Errorf("%s at %s alone: no %s", name, place, s.shows[0])
			}
			for _, higher := range s.places[low+1:] {
				for n := range 2 {
					shown := served(t, map[string]string{place: s.values[1-n], higher: s.values[n]})
					if !strings.Contains(shown, s.shows[n]) || strings.Contains(shown, s.shows[1-n]) {
						t.Errorf("%s at %s and %s: not %s alone", name, place, higher, s.shows[n])
					}
				}
			}
		}
	}
}

// olderForms have those of settings: the two are one.
var olderForms = map[string]string{"dnssec.enabled": "dnssec.signing", "rndcSecretRef": "rndcKey"}

// A setting in one place takes nothing from another one elsewhere, of all pairs.
func TestSettingsLeaveOthers(t *testing.T) {
	for name, s := range settings {
		for other, o := range settings {
			if name == other || olderForms[name] == other || olderForms[other] == name {
				continue
			}
			for _, place := range s.places {
				for _, at := range o.places {
					if shown := served(t, map[string]string{place: s.values[0], at: o.values[1]}); !strings.Contains(shown, s.shows[0]) {
						t.Errorf("%s at %s is gone because of %s at %s", name, place, other, at)
					}
				}
			}
		}
	}
}

// The older form of a setting counts as the setting.
func TestSigningTurnedOffByItsOlderForm(t *testing.T) {
	for enabled, want := range map[bool]string{true: "signs: default;", false: "signs: none;"} {
		values := map[string]string{"cluster.global.dnssec.signing": `{"enabled": true, "policy": "low", "nsec3": true}`, "instance.config.dnssec.enabled": fmt.Sprint(enabled)}
		if shown := served(t, values); !strings.Contains(shown, want) {
			t.Errorf("enabled %t: no %s", enabled, want)
		}
	}
}

// named accepts what comes of settings in different places.
func TestMergedSettingsAreAccepted(t *testing.T) {
	values := map[string]string{}
	for name, s := range settings {
		if !strings.HasPrefix(name, "dnssec.enabled") && strings.Contains(s.places[len(s.places)-1], "instance.config.") {
			values[s.places[0]], values[s.places[len(s.places)-1]] = s.values[0], s.values[1]
		}
	}
	served(t, values)
	global, own := &v1beta1.Bind9Config{AllowTransfer: v1beta1.AddressMatchList{"office", "!192.0.2.7"}}, &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"192.0.2.1"}}
	for _, role := range []v1beta1.ServerRole{v1beta1.RolePrimary, v1beta1.RoleSecondary} {
		checkConf(t, role, named.MergeOptions(global, own), map[string]v1beta1.AddressMatchList{"office": {"192.0.2.0/24"}})
	}
}

// Every field that is in two places has its rule above.
func TestEverySettingHasARule(t *testing.T) {
	fields := func(of any) (names []string) {
		for f := range reflect.TypeOf(of).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
		return names
	}
	hasRule := func(name string) bool {
		for rule := range settings {
			if rule == name || strings.HasPrefix(rule, name+".") {
				return true
			}
		}
		return false
	}
	for of, parts := range map[string]any{"placement.": v1beta1.PlacementConfig{}, "service.": v1beta1.ServiceConfig{}, "rateLimit.": v1beta1.RateLimitConfig{}} {
		for _, name := range fields(parts) {
			if name != "hostNetwork" && !hasRule(of+name) { // That one is refused wherever it is.
				t.Errorf("%s%s is in two places, without a rule", of, name)
			}
		}
	}
	servers := fields(v1beta1.ServerConfig{})
	cluster := slices.Concat(fields(v1beta1.Bind9ClusterSpec{}), fields(v1beta1.RoleConfig{}), servers)
	for _, name := range slices.Concat(fields(v1beta1.Bind9Config{}), fields(v1beta1.Bind9InstanceSpec{}), servers) {
		isOption := slices.Contains(fields(v1beta1.Bind9Config{}), name)
		switch {
		case !isOption && !slices.Contains(cluster, name), name == "replicas", name == "rndcKeys":
			// In one place; of one instance beside that of how many instances; an older name.
		case !hasRule(name):
			t.Errorf("%s is in two places, without a rule", name)
		}
	}
}

// documentedElsewhere are settings whose row has more to say than their places.
var documentedElsewhere = []string{"service.spec", "service.spec.type", "rndcKey", "rndcSecretRef"}

// docs/reference/fleet.md has a row for each setting, with the places where it can stand, in this order.
func TestDocumentedPlaces(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| setting | places: ")
	if !found {
		t.Fatal("the document has no table of places")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	for row := range strings.Lines(table) {
		columns := strings.Split(row, "|")
		for _, name := range strings.Split(columns[1], "`") {
			if len(columns) > 3 {
				rows[name], _, _ = strings.Cut(strings.TrimSpace(columns[2]), ";")
			}
		}
	}
	for name, s := range settings {
		if slices.Contains(documentedElsewhere, name) {
			continue
		}
		group, _, _ := strings.Cut(name, ".")
		row, found := rows[name]
		if !found {
			row = rows[group]
		}
		var places []string
		for _, place := range s.places {
			places = append(places, wordsOf(place))
		}
		if want := strings.Join(places, ", "); row != want {
			t.Errorf("%s: documented is %q, want %q", name, row, want)
		}
	}
}

// wordsOf returns what the document calls a place.
func wordsOf(place string) string {
	for _, words := range [][2]string{
		{"cluster.global.", "`global`"}, {"cluster.primary.", "role"}, {"cluster.", "cluster"}, {"instance.config.", "`config`"}, {"instance.", "instance"},
	} {
		if strings.HasPrefix(place, words[0]) {
			return words[1]
		}
	}
	return place
}
