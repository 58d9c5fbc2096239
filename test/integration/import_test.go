package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// handWritten is a zone as it has grown on somebody's server.
const handWritten = `$ORIGIN import.example.
$TTL 1h
@ SOA ns1 dns\.team.import.example. ( 2026112201 ; changed by hand
      2h 15m 2w 5m )
@ NS ns1
@ NS ns2.example.net.
ns1 A 192.0.2.53
ns1 A 192.0.2.54
@ 300 A 192.0.2.1
@ MX 10 mail
@ MX 20 mail.example.net.
@ TXT "v=spf1 mx -all"
@ CAA 0 issue "letsencrypt.org"
mail A 192.0.2.25
mail AAAA 2001:db8::25
www CNAME @
* 60 A 192.0.2.9
_dmarc TXT "v=DMARC1; p=none" " second string"
_sip._tcp SRV 10 60 5060 mail
10 PTR host.example.net.
odd\032name A 192.0.2.8
sub NS ns.sub
sub NS ns2.example.net.
ns.sub A 192.0.2.60
$GENERATE 1-20 host-$ A 192.0.2.$
`

// A zone of a server outside the cluster is imported and applied: the servers of the cluster have what that one has, whoever
// compares finds no difference, and nothing changes when it is applied again.
func TestImportedZone(t *testing.T) {
	kube.Isolated(t)
	outside := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "import.example.", File: handWritten, Extra: "check-names ignore;"}}})
	f := &pluginTest{&fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it"), zone: "import.example", size: 2}, pluginFolder(t)}
	f.create(f.cluster("dns", 1, 1))
	kube.WaitReady(f, f.client, f.namespace, kube.Settle, "bind9cluster/dns")
	text := f.importZone(outside.Addr.String(), &outside.Transfer)
	kube.Kubectl(t, text, "apply", "-f", "-")
	want, err := transferZone(t.Context(), outside.Addr.String(), f.zone, &outside.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	served := f.waitSameContent(kube.Settle, func(lines []string) error {
		if !slices.Equal(lines, want.lines) {
			return fmt.Errorf("outside (-) and here (+):\n%s", strings.Join(difference(want.lines, lines), "\n"))
		}
		return nil
	})
	if rrset.SerialLess(served.serial, want.serial) {
		t.Errorf("serial %d is before that of the old server, %d: its secondaries would not follow", served.serial, want.serial)
	}
	f.expectOutput(0, `^\d+ of \d+ in sync\n$`, "status", "--wait", "--timeout=120s")
	f.expectOutput(0, `^$`, "diff")

	if out := kube.Kubectl(t, text, "apply", "-f", "-"); strings.Count(out, " unchanged\n") != strings.Count(out, "\n") {
		t.Errorf("applied again:\n%s", out)
	}
	f.newZone(t, "later.example") // What would have happened to the other zone has happened before this one is ready.
	again := f.waitSameContent(kube.Settle, func([]string) error { return nil })
	if again.serial != served.serial {
		t.Errorf("the serial has moved from %d to %d", served.serial, again.serial)
	}

	servers, err := f.servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for pod, server := range servers {
		serial := regexp.MustCompile(`serial: \d+`)
		if got := f.importZone(server, f.key(named.KeyTransfer)); serial.ReplaceAllString(got, "") != serial.ReplaceAllString(text, "") {
			t.Errorf("imported from %s:\n%s\nfrom outside:\n%s", pod, got, text)
		}
	}
}

// A zone of a server outside is imported from its DNSProvider, with the user's rights, and applied for that provider and a cluster:
// the cluster gets what the server has, nothing differs, and the server's serial does not move.
func TestImportedProvider(t *testing.T) {
	kube.Isolated(t)
	fixture := newFixture(t, "before.example", 1, 0)
	fixture.zone = "moving.example"
	f := &pluginTest{fixture, pluginFolder(t)}
	text := strings.ReplaceAll(handWritten, "import.example", f.zone)
	outside := bind.Start(t, bind.Options{Addr: freePort(t, f.hostAddress()), Zones: []bind.Zone{{Name: "moving.example.", File: text, Extra: "check-names ignore;"}}})
	before, err := transferZone(t.Context(), outside.Addr.String(), f.zone, &outside.Transfer)
	if err != nil {
		t.Fatal(err)
	}
	f.create(f.keySecret("corp-update", outside.Update), f.keySecret("corp-transfer", outside.Transfer), f.outsidePrimary("corp", outside.Addr))

	f.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	f.expectOutput(2, `you may not read Secret \S+/corp-transfer, .*--server and --key-file`, "import", "--kubeconfig", f.kubeconfigAs("viewer"), "--zone", f.zone, "dnsprovider/corp")
	f.expectOutput(2, `reading DNSProvider \S+/nobody: .*not found`, "import", "--zone", f.zone, "dnsprovider/nobody")
	manifests := f.expectOutput(0, `providerRefs:\n  - name: corp\n`, "import", "--zone", f.zone, "--cluster", "dns", "dnsprovider/corp")
	kube.Kubectl(t, manifests, "apply", "-f", "-")
	f.expectOutput(0, `^\d+ of \d+ in sync\n$`, "status", "--wait", "--timeout=120s")
	f.expectOutput(0, `^$`, "diff")
	f.waitSameContent(kube.Settle, func(lines []string) error {
		if !slices.Equal(lines, before.lines) {
			return fmt.Errorf("outside (-) and here (+):\n%s", strings.Join(difference(before.lines, lines), "\n"))
		}
		return nil
	})
	after, err := transferZone(t.Context(), outside.Addr.String(), f.zone, &outside.Transfer)
	if err != nil || after.serial != before.serial || !slices.Equal(after.lines, before.lines) {
		t.Errorf("the server outside has serial %d, had %d: %v\n%s", after.serial, before.serial, err, strings.Join(difference(before.lines, after.lines), "\n"))
	}
}

// kubeconfigAs returns a kubeconfig of another user.
func (f *pluginTest) kubeconfigAs(user string) string {
	f.Helper()
	file := filepath.Join(f.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigAs(kube.Config(f), user), file); err != nil {
		f.Fatal(err)
	}
	return file
}

// importZone imports the fixture's zone, of which nothing may be missing.
func (f *pluginTest) importZone(server string, key *wire.Key, flags ...string) string {
	f.Helper()
	file := filepath.Join(f.TempDir(), "key")
	clause := fmt.Sprintf("key %q { algorithm %s; secret %q; };\n", key.Name, strings.TrimSuffix(key.Algorithm, "."), key.Secret)
	if err := os.WriteFile(file, []byte(clause), 0o600); err != nil {
		f.Fatal(err)
	}
	stdout, stderr, code := f.runPlugin(append([]string{"import", "--zone", f.zone, "--server", server, "--key-file", file, "--cluster", "dns"}, flags...)...)
	if code != 0 {
		f.Fatalf("exit code %d\n%s", code, stderr)
	}
	return stdout
}
