package vantage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	"github.com/lockstep-dns/lockstep/test/mtls"
	"github.com/lockstep-dns/lockstep/test/named"
)

const (
	zone = "example.test."
	// insideEnv is set in the process that is in a network namespace of its own: the API server's place.
	insideEnv = "LOCKSTEP_TEST_INSIDE"
	// agentEnv has the flags of the process that is the vantage.
	agentEnv = "LOCKSTEP_TEST_VANTAGE"
)

func TestMain(m *testing.M) {
	if flags := os.Getenv(agentEnv); flags != "" {
		o := vantage.NewOptions(bindcar.APIServerIdentity)
		fs := pflag.NewFlagSet("vantage", pflag.ExitOnError)
		o.AddFlags(fs)
		_ = fs.Parse(strings.Fields(flags)) // It ends the process.
		fmt.Fprintln(os.Stderr, o.Run(context.Background()))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// name server n has the address 192.0.2.n.
func address(n int) string { return fmt.Sprintf("192.0.2.%d", n) }

func content(serial uint32, mailbox string) string {
	text := fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns11 %s %d 3600 600 86400 60\n", zone, mailbox, serial)
	for n := 11; n <= 16; n++ {
		text += fmt.Sprintf("@ NS ns%d\nns%d A %s\n", n, n, address(n))
	}
	return text
}

// What clients of a vantage get is named for each name server and protocol within five seconds, whatever stands between them and the servers, and nothing is
// wrong about those that work.
func TestOutside(t *testing.T) {
	if os.Getenv(insideEnv) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestOutside$", "-test.v")
		command.Env = append(os.Environ(), insideEnv+"=1")
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestOutside") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	here := ownNamespace(t)
	outside, client := startOutside(t, here)
	primary := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, File: content(5, "hostmaster")}}})
	truth := observe.AskAsClient(t.Context(), primary.Addr, zone, false, 10*time.Second)
	if !truth.Authoritative {
		t.Fatalf("%+v", truth)
	}
	truth.Mirror = observe.NewMirror(zone, truth.SOA, published()...)

	before, s := verdicts(t, truth, client)
	rows := 0
	for _, p := range s.Paths {
		if p.Vantage == "" {
			continue
		}
		rows++
		name := strings.Join(p.NameServers, ",")
		want := outside[name]
		state := want.udp
		if p.Protocol == "TCP" {
			state = want.tcp
		}
		if p.State != state || want.server != "" && p.Server != want.server || !strings.Contains(p.Message, want.says) && state != syncv1.StateInSync {
			t.Errorf("%s over %s: %s by %q (%s), want %s by %q", name, p.Protocol, p.State, p.Server, p.Message, state, want.server)
		}
	}
	if rows != 12 {
		t.Errorf("%d rows of the vantage, want six addresses over two protocols: %+v", rows, s.Paths)
	}
	if answered := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionAnswered); answered == nil || answered.Status != metav1.ConditionFalse {
		t.Errorf("%+v", answered)
	}
	if s.Status.Phase != before.Status.Phase || s.Status.InSync != before.Status.InSync {
		t.Errorf("what a vantage sees changes the verdict: %+v", s.Status)
	}
}

// published are the NS records of the zone and the addresses of its name servers.
func published() []rrset.RRset {
	ns := rrset.RRset{Key: rrset.Key{Name: zone, Type: dns.TypeNS}, TTL: 300}
	var all []rrset.RRset
	for n := 11; n <= 16; n++ {
		name := fmt.Sprintf("ns%d.%s", n, zone)
		ns.Rdata = append(ns.Rdata, name)
		all = append(all, rrset.RRset{Key: rrset.Key{Name: name, Type: dns.TypeA}, TTL: 300, Rdata: []string{address(n)}})
	}
	return append(all, ns)
}

// verdicts are the SyncStatus of the zone without what the vantage sees, and with it. The vantage is asked once, for all, and has five seconds.
func verdicts(t *testing.T, truth observe.Observation, client *vantage.Client) (before, after *syncv1.SyncStatus) {
	t.Helper()
	z := &v1beta1.DNSZone{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "example-test"},
		Spec:       v1beta1.DNSZoneSpec{ZoneName: "example.test", SOARecord: v1beta1.SOARecord{PrimaryNS: "ns11." + zone, AdminEmail: "hostmaster." + zone}},
	}
	content, err := source.Build(z, nil, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers := []observe.Server{{Namespace: "dns", Instance: "primary-0", Pod: "primary-0-0", Role: observe.Primary, Addr: truth.Server, PodReady: true}}
	answers := map[syncstatus.Path]syncstatus.PathAnswer{}
	past := syncstatus.History{
		Vantages:  []string{client.Name()},
		OnPath:    func(syncstatus.Path) (o observe.Observation, ok bool) { return o, false },
		OnFurther: func(p syncstatus.Path) (a syncstatus.PathAnswer, ok bool) { a, ok = answers[p]; return a, ok },
	}
	j := syncstatus.Evaluate(syncstatus.NewDesiredState(z, content, nil, nil), servers, []observe.Observation{truth}, time.Now(), past)
	before = j.ZoneStatus(nil)
	var paths []syncstatus.Path
	var questions []vantage.Question
	for _, p := range j.FurtherPaths(nil) {
		if p.Vantage != "" {
			paths, questions = append(paths, p), append(questions, vantage.Question{Address: p.Addr, TCP: p.TCP})
		}
	}
	for i, o := range client.Ask(t.Context(), zone, questions) {
		answers[paths[i]] = syncstatus.PathAnswer{Observation: o, Known: j.SOAs()}
	}
	return before, j.ZoneStatus(nil)
}

// seen is what a vantage should see of a name server.
type seen struct {
	udp, tcp     syncv1.ServerState
	server, says string
}

// startOutside runs six name servers and a vantage beside them, which the API server can reach, and nothing else there.
func startOutside(t *testing.T, here *namespace) (map[string]seen, *vantage.Client) {
	t.Helper()
	berlin := newNamespace(t)
	here.connect("berlin", berlin, "api")
	here.ip("addr add 10.255.0.1/30 dev berlin")
	berlin.ip("addr add 10.255.0.2/30 dev api")
	berlin.ip("link add lan type bridge")
	berlin.ip("addr add 192.0.2.1/24 dev lan")
	berlin.ip("link set lan up")
	start := func(n int, o named.Options) (*namespace, *named.Server) {
		host := newNamespace(t)
		port := fmt.Sprintf("ns%d", n)
		berlin.connect(port, host, "eth0")
		berlin.ip("link set " + port + " master lan")
		host.ip("addr add " + address(n) + "/24 dev eth0")
		o.Addr = netip.MustParseAddrPort(address(n) + ":53")
		var s *named.Server
		host.do(func() { s = named.Start(t, o) })
		return host, s
	}
	serving := func(serial uint32) named.Options {
		return named.Options{Zones: []named.Zone{{Name: zone, File: content(serial, "hostmaster")}}}
	}
	_, good := start(11, serving(5))
	_, stale := start(12, serving(4))
	hole, _ := start(13, serving(5))
	hole.ip("route add blackhole 192.0.2.1/32")
	start(14, serving(5))
	redirected := redirect(t, berlin, address(14))
	_, view := start(15, viewOf(t))
	firewalled, _ := start(16, serving(5))
	firewalled.ip("rule add pref 10 ipproto tcp sport 53 to 192.0.2.1 blackhole")
	return map[string]seen{
		"ns11." + zone: {syncv1.StateInSync, syncv1.StateInSync, id(t, good), ""},
		"ns12." + zone: {syncv1.StateStale, syncv1.StateStale, id(t, stale), "serial 4, which is 1 behind the servers' 5"},
		"ns13." + zone: {syncv1.StateUnreachable, syncv1.StateUnreachable, "", "no answer in time"},
		"ns14." + zone: {syncv1.StateLame, syncv1.StateLame, id(t, redirected), "it serves a parent zone but not this one"},
		"ns15." + zone: {syncv1.StateDivergent, syncv1.StateDivergent, id(t, view), "another SOA record"},
		"ns16." + zone: {syncv1.StateInSync, syncv1.StateUnreachable, "", "no answer in time"},
	}, startVantage(t, berlin)
}

// redirect has queries of a namespace to an address answered by somebody else, who serves the zone above.
func redirect(t *testing.T, from *namespace, to string) *named.Server {
	t.Helper()
	interceptor := newNamespace(t)
	from.connect("intercept", interceptor, "eth0")
	from.ip("route add " + to + "/32 dev intercept src 192.0.2.1")
	interceptor.ip("addr add " + to + "/32 dev eth0")
	interceptor.ip("route add 192.0.2.1/32 dev eth0")
	var s *named.Server
	interceptor.do(func() {
		s = named.Start(t, named.Options{Addr: netip.MustParseAddrPort(to + ":53"), Zones: []named.Zone{{Name: "test."}}})
	})
	return s
}

// viewOf is a server that has other data for the vantage under the same serial.
func viewOf(t *testing.T) named.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outside.zone")
	if err := os.WriteFile(file, []byte(content(5, "outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	return named.Options{Zones: []named.Zone{{
		Name: zone, File: content(5, "hostmaster"),
		Globals: fmt.Sprintf("view outside { match-clients { 192.0.2.1; }; zone %q { type primary; file %q; }; };\nview others { match-clients { any; };", zone, file),
		Extra:   "};",
	}}}
}

// id is what a server calls itself.
func id(t *testing.T, s *named.Server) string {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(s.Dir, "named.conf"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(config), `server-id "`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

// startVantage runs the agent as a process of its own, with a certificate that it has signed itself.
func startVantage(t *testing.T, in *namespace) *vantage.Client {
	t.Helper()
	authority, dir := mtls.NewAuthority(t), t.TempDir()
	certificate, key := selfSigned(t, "10.255.0.2")
	mtls.WriteFiles(t, dir, map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority.Bundle()})
	var agent *exec.Cmd
	in.do(func() {
		agent = exec.Command(os.Args[0])
		agent.Env = append(os.Environ(), agentEnv+"="+fmt.Sprintf("--health-probe-bind-address= --tls-cert-file=%s/tls.crt --tls-private-key-file=%s/tls.key --client-ca-file=%s/ca.crt", dir, dir, dir))
		agent.Stderr = os.Stderr
		agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := agent.Start(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
	})
	at := &url.URL{Scheme: "https", Host: "10.255.0.2:8453"}
	for dial := (net.Dialer{}); ; time.Sleep(10 * time.Millisecond) {
		conn, err := dial.DialContext(t.Context(), "tcp", at.Host)
		if err == nil {
			_ = conn.Close()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	return vantage.NewClient("berlin", at, mtls.Caller(t, authority, bindcar.APIServerIdentity), certificate, 5*time.Second)
}

func selfSigned(t *testing.T, ip string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berlin"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(ip)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
