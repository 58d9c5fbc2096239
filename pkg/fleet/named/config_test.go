package named_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// TestRender checks what a field becomes, and that named itself finds nothing to complain about.
func TestRender(t *testing.T) {
	type acl = v1beta1.AddressMatchList
	cases := map[string]struct {
		role    v1beta1.ServerRole
		options v1beta1.Bind9Config
		acls    map[string]acl
		want    []string
		without []string
	}{
		"primary": {
			role: v1beta1.RolePrimary,
			want: []string{
				"listen-on port 5353 { any; };", "listen-on-v6 port 5353 { any; };", "recursion no;", "dnssec-validation no;",
				"notify-delay 0;", "notify-rate 1000;", "startup-notify-rate 1000;", "serial-query-rate 1000;", "notify explicit;", "also-notify { 127.0.0.1 port 9954; };",
				"max-ixfr-ratio 100%;", `allow-transfer { "lockstep-transfer"; };`, "allow-new-zones yes;", "category update { null; };",
				`/update/key.conf"`, `/transfer/key.conf"`, "inet 127.0.0.1 port 9953", "inet 127.0.0.1 port 8053",
			},
			without: []string{"allow-query {", "forwarders", "allow-notify"},
		},
		"secondary": {
			role: "Secondary",
			want: []string{
				"notify explicit;", "also-notify { 127.0.0.1 port 9954; };", "notify-delay 0;", "notify-rate 1000;", `allow-notify { "lockstep-transfer"; };`, "serial-query-rate 1000;", "transfers-per-ns 200;",
				"min-refresh-time 5;", "min-retry-time 1;", "request-ixfr yes;", "max-transfer-idle-in 1;", "allow-new-zones yes;",
			},
			without: []string{"max-ixfr-ratio", `/update/key.conf"`},
		},
		"resolver": {
			role: v1beta1.RolePrimary,
			options: v1beta1.Bind9Config{
				Recursion: new(true), AllowQuery: acl{"10.0.0.0/8", "!192.0.2.7", "2001:db8::/32"}, Forwarders: []string{"192.0.2.53", "2001:db8::53 port 5300"},
				DNSSEC: &v1beta1.DNSSECConfig{Validation: new(true)},
			},
			want: []string{
				"recursion yes;", `allow-query { "lockstep-allow-query"; };`, `acl "lockstep-allow-query" { "lockstep-update"; "lockstep-transfer"; 10.0.0.0/8; ! 192.0.2.7; 2001:db8::/32; };`, "dnssec-validation auto;",
				"forwarders { 192.0.2.53; 2001:db8::53 port 5300; };",
			},
			without: []string{"max-cache-size"},
		},
		"lists": {
			role: v1beta1.RolePrimary,
			options: v1beta1.Bind9Config{
				AllowTransfer: acl{"none", "192.0.2.9"}, AllowQuery: acl{"office", "acl:vpn", "localhost", "key c.ns.transfer."},
				ListenOn: acl{"0.0.0.0"}, ListenOnV6: acl{"none"},
			},
			acls: map[string]acl{"office": {"192.0.2.0/24", "acl:vpn"}, "vpn": {"198.51.100.77/25"}},
			want: []string{
				`acl "office" { 192.0.2.0/24; "vpn"; };`, `acl "vpn" { 198.51.100.0/25; };`, "listen-on port 5353 { any; };", "listen-on-v6 port 5353 { none; };",
				`acl "lockstep-allow-query" { "lockstep-update"; "lockstep-transfer"; "office"; "vpn"; localhost; key "c.ns.transfer."; };`, `allow-transfer { "lockstep-transfer"; none; 192.0.2.9; };`,
			},
		},
		"nobody may ask": {
			role:    v1beta1.RolePrimary,
			options: v1beta1.Bind9Config{AllowQuery: acl{"none"}},
			want:    []string{`allow-query { "lockstep-allow-query"; };`, `acl "lockstep-allow-query" { "lockstep-update"; "lockstep-transfer"; none; };`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := named.Render(named.Config{
				Layout: named.PodLayout(), Role: c.role, Options: c.options, ACLs: c.acls,
			})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join([]string{files[named.MainFile], files[named.ControlFile], files[named.OptionsFile]}, "\n")
			// Lists end in a blank before the brace or in none; that is no matter.
			all = strings.NewReplacer("; }", "; }", ";  }", "; }").Replace(all)
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("no %s in\n%s", want, all)
				}
			}
			for _, without := range c.without {
				if strings.Contains(all, without) {
					t.Errorf("%s in\n%s", without, all)
				}
			}
			checkConf(t, c.role, c.options, c.acls)
		})
	}
}

// checkConf renders the same configuration for a directory of the test and lets named-checkconf judge it.
func checkConf(t *testing.T, role v1beta1.ServerRole, options v1beta1.Bind9Config, acls map[string]v1beta1.AddressMatchList) {
	t.Helper()
	binary, err := exec.LookPath("named-checkconf")
	if err != nil {
		t.Skip("named-checkconf is not installed")
	}
	dir := t.TempDir()
	layout := named.PodLayout()
	layout.ConfigDir, layout.KeyDir, layout.CacheDir, layout.ZonesDir, layout.RunDir = dir, dir+"/keys", dir, dir, dir
	layout.ControlKeyFile = dir + "/rndc.key"
	files, err := named.Render(named.Config{Layout: layout, Role: role, Options: options, ACLs: acls})
	if err != nil {
		t.Fatal(err)
	}
	control, err := rndc.NewKey("")
	if err != nil {
		t.Fatal(err)
	}
	files["rndc.key"] = control.Clause()
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		key, err := named.NewKey("ns", "c", role)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := named.NewKeyring(role, key, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		files["keys/"+string(role)+"/key.conf"] = ring.Clauses(role)
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(binary, filepath.Join(dir, named.MainFile)).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("named-checkconf: %v\n%s\n%s", err, out, files[named.OptionsFile])
	}
}

func TestRenderRefuses(t *testing.T) {
	type acl = v1beta1.AddressMatchList
	cases := map[string]struct {
		config named.Config
		field  string
	}{
		"statement in a list": {named.Config{Options: v1beta1.Bind9Config{AllowQuery: acl{"any; }; zone \"x\" {"}}}, "allowQuery"},
		"comment in a list":   {named.Config{Options: v1beta1.Bind9Config{ListenOn: acl{"/* any"}}}, "listenOn"},
		"unknown acl":         {named.Config{Options: v1beta1.Bind9Config{AllowTransfer: acl{"office"}}}, "allowTransfer"},
		"forwarder by name":   {named.Config{Options: v1beta1.Bind9Config{Forwarders: []string{"dns.example"}}}, "forwarders"},
		"name of an acl":      {named.Config{ACLs: map[string]acl{`x" { any; }; //`: {"any"}}}, "acls"},
		"builtin acl":         {named.Config{ACLs: map[string]acl{"any": {"none"}}}, "acls"},
		"content of an acl":   {named.Config{ACLs: map[string]acl{"office": {"10.0.0.0/33"}}}, "acls[office]"},
		"key":                 {named.Config{Options: v1beta1.Bind9Config{AllowTransfer: acl{`key x"y`}}}, "allowTransfer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.config.Layout, c.config.Role = named.PodLayout(), v1beta1.RolePrimary
			_, err := named.Render(c.config)
			if !errors.Is(err, named.ErrConfig) || !strings.Contains(err.Error(), c.field) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMergeOptions(t *testing.T) {
	base := &v1beta1.Bind9Config{Recursion: new(true), AllowQuery: v1beta1.AddressMatchList{"any"}, Forwarders: []string{"192.0.2.1"}}
	over := &v1beta1.Bind9Config{Recursion: new(false), AllowQuery: v1beta1.AddressMatchList{}}
	got := named.MergeOptions(base, over)
	if *got.Recursion || len(got.AllowQuery) != 0 || got.AllowQuery == nil || len(got.Forwarders) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := named.MergeOptions(nil, nil); got.Recursion != nil {
		t.Errorf("got %+v", got)
	}
}
