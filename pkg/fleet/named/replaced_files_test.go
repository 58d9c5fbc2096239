package named_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

const (
	goodOptions = "options { directory \"/var/cache/bind\"; allow-new-zones yes; listen-on port 5353 { any; }; };\n"
	goodMain    = "include \"/etc/bind/named.conf.control\";\ninclude \"/etc/bind/named.conf.options\";\ninclude \"/etc/bind/named.conf.zones\";\n"
)

// TestReplacements: a user's file that lacks what servers need is refused, with the line to add.
func TestReplacements(t *testing.T) {
	const (
		control = `configMapRefs.namedConf: named.conf of ConfigMap main does not include named.conf.control, which has the keys, the control channel and the statistics channel; add this line to it: include "/etc/bind/named.conf.control";`
		option  = "configMapRefs.namedConfOptions: named.conf.options of ConfigMap mine lacks an option without which "
		grows   = option + "no zone can be added; have this line in its options { … }: allow-new-zones yes;"
		listens = option + "named does not listen on port 5353, where the Service and the probes expect it; have this line in its options { … }: listen-on port 5353 { any; };"
		counts  = option + "nobody knows which zones the server has; have this line in its options { … }: zone-statistics full;"
	)
	in := func(options string) string { return "options { " + options + " };" }
	for name, c := range map[string]struct {
		main, options, zones string
		want                 []string
	}{
		"ours":                    {},
		"good":                    {main: goodMain, options: goodOptions, zones: "// none"},
		"good in one file":        {main: "include \"/etc/bind/named.conf.control\";\n" + goodOptions},
		"a pattern":               {main: `include "/etc/bind/named.conf.*";`, options: goodOptions},
		"other spellings":         {options: "OPTIONS { Allow-New-Zones TRUE; port 5353; # all\n };"},
		"no zones":                {options: in("listen-on port 5353 { any; };"), want: []string{grows}},
		"commented out":           {options: in("/* allow-new-zones yes; */ listen-on port 5353 { any; };"), want: []string{grows}},
		"switched off":            {options: in("allow-new-zones no; listen-on port 5353 { any; };"), want: []string{grows}},
		"another port":            {options: in("allow-new-zones yes; listen-on { any; };"), want: []string{listens}},
		"nowhere":                 {options: in("allow-new-zones yes; port 5353; listen-on { none; }; listen-on-v6 { none; };"), want: []string{listens}},
		"IPv6 nowhere":            {options: in("allow-new-zones yes; port 5353; listen-on-v6 { none; };")},
		"no statistics":           {options: in("allow-new-zones yes; port 5353; zone-statistics none;"), want: []string{counts}},
		"nothing":                 {options: "// nothing", want: []string{grows, listens}},
		"included options":        {options: in(`include "/srv/bind/options"; `)},
		"included and wrong":      {options: in(`include "/srv/bind/options"; allow-new-zones no;`), want: []string{grows}},
		"no control":              {main: goodOptions, want: []string{control}},
		"Bindy's":                 {main: "include \"/etc/bind/named.conf.options\";\ninclude \"/etc/bind/keys/rndc.key\";\n", options: goodOptions, want: []string{control, `configMapRefs.namedConfOptions: named.conf.options of ConfigMap mine includes /etc/bind/keys/rndc.key, which pods do not have; remove this line from it: include "/etc/bind/keys/rndc.key"; (all keys are in named.conf.control)`}},
		"unknown files":           {main: `include "/srv/bind/all";`},
		"no options":              {main: `include "/etc/bind/named.conf.control";`, want: []string{`configMapRefs.namedConf: named.conf of ConfigMap main has no options and does not include named.conf.options; add this line to it: include "/etc/bind/named.conf.options";`}},
		"zones are not included":  {main: `include "/etc/bind/named.conf.control"; ` + goodOptions, zones: "// none", want: []string{`configMapRefs.namedConfZones: named.conf.zones of ConfigMap zones is not included; add this line to the named.conf of ConfigMap main: include "/etc/bind/named.conf.zones";`}},
		"another log":             {main: goodMain + "logging { };", want: []string{"configMapRefs.namedConf: named.conf of ConfigMap main has a logging statement, and named takes only one; remove it: named.conf.control has one"}},
		"of another release":      {options: in("allow-new-zones yes; port 5353; glue-cache no;"), want: []string{`configMapRefs.namedConfOptions: named.conf.options of ConfigMap mine has the statement glue-cache, which BIND 9.20 does not have; remove it, or set version: "9.18"`}},
		"a view":                  {main: goodMain + "view \"all\" { };", want: []string{"configMapRefs.namedConf: named.conf of ConfigMap main has a view, and zones are added to the servers without one; take its statements out of the view"}},
		"what named reports":      {options: "options { nonsense"},
		"a file includes itself":  {options: strings.Repeat(`include "/etc/bind/named.conf.options";`, 1000)},
		"the key of the channel":  {main: `include "/run/named/rndc.key"; include "/etc/bind/keys/transfer/key.conf"; ` + goodOptions, want: []string{control}},
		"only the zones are mine": {zones: "view x { };"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t)
			w.Cluster.ConfigMapRefs, w.Replacements = &v1beta1.ConfigMapRefs{}, map[string]string{}
			for _, f := range []struct {
				name, text, configMap string
				ref                   *string
			}{
				{named.MainFile, c.main, "main", &w.Cluster.ConfigMapRefs.NamedConf},
				{named.OptionsFile, c.options, "mine", &w.Cluster.ConfigMapRefs.NamedConfOptions},
				{named.ZonesFile, c.zones, "zones", &w.Cluster.ConfigMapRefs.NamedConfZones},
			} {
				if f.text != "" {
					*f.ref, w.Replacements[f.name] = f.configMap, f.text
				}
			}
			_, err := w.StatefulSet()
			if err != nil && !errors.Is(err, named.ErrConfig) {
				t.Fatal(err)
			}
			var got []string
			if err != nil {
				got = strings.Split(strings.TrimPrefix(err.Error(), named.ErrConfig.Error()+": "), "\n")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A user's options have to say, too, how many records servers take.
func TestReplacementsTakeAsManyRecords(t *testing.T) {
	for options, good := range map[string]bool{
		"": false, "max-records-per-type 299;": false, "max-records-per-type 300;": true, "max-records-per-type 0;": true, `include "/srv/more";`: true,
	} {
		w := workload(t)
		w.Cluster.Global = &v1beta1.Bind9Config{MaxRecordsPerType: new(int32(300))}
		w.Cluster.ConfigMapRefs = &v1beta1.ConfigMapRefs{NamedConfOptions: "mine"}
		w.Replacements = map[string]string{named.OptionsFile: "options { allow-new-zones yes; port 5353; " + options + " };"}
		const line = "named takes fewer records of one name and type than maxRecordsPerType says; have this line in its options { … }: max-records-per-type 300;"
		if _, err := w.StatefulSet(); good != (err == nil) || err != nil && !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v", options, err)
		}
	}
}

// TestNeededLines: with the lines that are asked for, a real named does what servers need, and without them it does not.
func TestNeededLines(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		wants   string
	}{
		"with":    {options: "allow-new-zones yes;"},
		"without": {wants: "Not allowing new zones"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, nil)
			options := "options { directory \"" + pod.Layout.CacheDir + "\"; pid-file none; session-keyfile none; " + c.options +
				fmt.Sprintf("listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; };\n", pod.DNS().Port())
			pod.Kill()
			if err := os.WriteFile(filepath.Join(pod.Layout.ConfigDir, named.OptionsFile), []byte(options), 0o600); err != nil {
				t.Fatal(err)
			}
			pod.Restart(t)
			control := rndc.NewClient(pod.ControlAddr(), pod.Control)
			defer func() { _ = control.Close() }()
			if err := os.WriteFile(filepath.Join(pod.Layout.CacheDir, "new.zone"), []byte("@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.example.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := control.Command(t.Context(), `addzone new.example { type primary; file "new.zone"; };`)
			if (err == nil) != (c.wants == "") || err != nil && !strings.Contains(err.Error(), c.wants) {
				t.Errorf("addzone: %v, want %q", err, c.wants)
			}
		})
	}
	for name, c := range map[string]struct{ statement, wants string }{
		"a second log": {"logging { };", "'logging' redefined"},
		"no log":       {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files, err := named.Render(named.Config{Layout: named.PodLayout(), Role: v1beta1.RolePrimary})
			if err != nil {
				t.Fatal(err)
			}
			logging := files[named.ControlFile][strings.Index(files[named.ControlFile], "logging {"):]
			file := filepath.Join(dir, "named.conf")
			if err := os.WriteFile(file, []byte(logging+c.statement), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := exec.CommandContext(t.Context(), "named-checkconf", file).CombinedOutput()
			if out := string(out); !strings.Contains(out, c.wants) || c.wants == "" && out != "" {
				t.Errorf("named-checkconf: %s", out)
			}
		})
	}
}

func TestReplacementIn(t *testing.T) {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "files"},
		Data:       map[string]string{"named.conf": "text", "x": ""}, BinaryData: map[string][]byte{"named.conf.zones": []byte("bytes")},
	}
	for file, want := range map[string]string{"named.conf": "text", "named.conf.zones": "bytes"} {
		if got, err := named.ReplacementIn(configMap, file); err != nil || got != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	const want = `configMapRefs.namedConfOptions: ConfigMap files has no entry "named.conf.options": it has named.conf, x`
	if _, err := named.ReplacementIn(configMap, "named.conf.options"); err == nil || err.Error() != want {
		t.Errorf("a file that is not there: %v", err)
	}
}
