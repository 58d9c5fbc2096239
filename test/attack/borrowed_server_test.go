package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/kube"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// rfc2136Provider is the manifest of a DNSProvider with one primary, and of a Secret of its name with a key.
func rfc2136Provider(name string, primary netip.AddrPort, keyName, secret string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s}
stringData: {name: %[4]q, algorithm: hmac-sha256, secret: %[5]q}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: %[1]s}
spec:
  rfc2136:
    primaries: [{address: %[2]q, port: %[3]d}]
    updateKey: {secretRef: {name: %[1]s}}
`, name, primary.Addr(), primary.Port(), keyName, secret)
}

// addressOfServer returns the address of the first server of a tenant's zone, which every tenant may read.
func (n *tenant) addressOfServer(zone string) netip.AddrPort {
	n.Helper()
	n.kubectl("wait", "--for=condition=Ready", "dnszone/"+zone, "--timeout=120s")
	out := n.kubectl("get", "syncstatus", "dnszone."+zone, "-o=jsonpath={.servers[0].address}")
	addr, err := netip.ParseAddrPort(strings.TrimSpace(out))
	if err != nil {
		n.Fatal(err)
	}
	return addr
}

// waitReason waits until a zone of the tenant is not ready, and says why in words that contain all of want.
func (n *tenant) waitReason(zone string, want ...string) {
	n.Helper()
	kube.Eventually(n, kube.Settle, func(context.Context) error {
		out, err := n.try("", "get", "dnszone", zone, `-o=jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		for _, w := range append(want, `"status":"False"`) {
			if err == nil && !strings.Contains(out, w) {
				err = fmt.Errorf("zone %s does not say %q: %s", zone, w, out)
			}
		}
		return err
	})
}

// changeWhile has a record of the tenant changed again and again on shared servers, and the attacker's zones looked at beside it.
// Each change is served, and nothing that the tenant can read says otherwise, or has the attacker's words.
func (n *tenant) changeWhile(p *platform, attacker *tenant, zone string, words ...string) {
	n.Helper()
	kube.Kubectl(n, "", "--namespace", n.namespace, "delete", "events", "--all") // Those from before the attack.
	for i := range 10 {
		attacker.kubectl("label", "dnszones", "--all", "--overwrite", fmt.Sprintf("touched=t%d", i))
		address := fmt.Sprintf("192.0.2.%d", 10+i)
		n.apply(aRecord("www", "main", "www", address))
		waitServed(n, p, p.name, "www."+zone, dns.TypeA, address)
		n.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	}
	read := n.kubectl("get", "dnszones,arecords", "-o=jsonpath={.items[*].status}") + n.kubectl("get", "events", "-o=jsonpath={.items[*].reason} {.items[*].message}")
	for _, word := range append(words, status.PrimaryFailed, attacker.namespace) {
		if strings.Contains(read, word) {
			n.Errorf("the victim reads %q: %s", word, read)
		}
	}
}

// A key that cannot be used, at the address of a shared server, is wrong where it is named, and nowhere else.
func TestAttack24KeyName(t *testing.T) {
	kube.Isolated(t)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone, on := "keyname-"+victim.namespace+".example", "clusterRef: "+p.name
	victim.apply(dnsZone("main", zone, on) + aRecord("www", "main", "www", "192.0.2.1"))
	attacker.apply(dnsZone("look", "look-"+attacker.namespace+".example", on))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	manifest := rfc2136Provider("poison", attacker.addressOfServer("look"), "your.servers..are.mine", "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTIzNA==")
	for i := range 20 {
		manifest += dnsZone(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.%s.example", i, attacker.namespace), "providerRefs: [{name: poison}]")
	}
	attacker.apply(manifest)
	attacker.waitReason("p0", attacker.namespace+"/poison", "name")
	victim.changeWhile(p, attacker, zone, "are.mine", "poison")
}

// A namespace that has filled its share of memory with zones of its own cannot have the zones of others charged to it by naming
// their servers; and that share leaves the controller room.
func TestAttack24BorrowedShare(t *testing.T) {
	kube.Disruptive(t, nil)
	p, victim, attacker := newPlatform(t), newTenant(t, "victim"), newTenant(t, "attacker")
	zone, on := "share-"+victim.namespace+".example", "clusterRef: "+p.name
	victim.apply(dnsZone("main", zone, on) + aRecord("www", "main", "www", "192.0.2.1"))
	attacker.apply(dnsZone("look", "look-"+attacker.namespace+".example", on))
	victim.kubectl("wait", "--for=condition=Propagated", "syncstatus/arecord.www", "--timeout=120s")
	shared := attacker.addressOfServer("look")
	key := namedtest.NewKey("full.")
	manifest := rfc2136Provider("full", startFullServer(t, hostAddress(t, shared), key.Name, key.Secret), key.Name, key.Secret)
	for i := range 4 { // Each has 90 MiB.
		manifest += dnsZone(fmt.Sprintf("full%d", i), fmt.Sprintf("full%d.example", i), "providerRefs: [{name: full}]")
	}
	attacker.apply(manifest)
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		out, err := attacker.try("", "get", "dnszones", `-o=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].message}`)
		if err == nil && !strings.Contains(out, "--max-content-bytes") {
			err = fmt.Errorf("the attacker's share is not full: %s", out)
		}
		return err
	})
	manifest = rfc2136Provider("same", shared, "other.", "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTIzNA==")
	for i := range 20 {
		manifest += dnsZone(fmt.Sprintf("same%d", i), fmt.Sprintf("same%d.%s.example", i, attacker.namespace), "providerRefs: [{name: same}]")
	}
	attacker.apply(manifest)
	attacker.waitReason("same0", status.PrimaryFailed)
	victim.changeWhile(p, attacker, zone, "--max-content-bytes")
	if peak, limit := peakOfController(t, p); peak > limit/4*3 {
		t.Errorf("the controller took %d MiB of its %d", peak>>20, limit>>20)
	}
}

// hostAddress returns the address under which a server in the cluster reaches this process.
func hostAddress(t *testing.T, server netip.AddrPort) netip.Addr {
	t.Helper()
	conn, err := net.Dial("udp", server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return netip.MustParseAddrPort(conn.LocalAddr().String()).Addr()
}

// startFullServer runs a server that signs its answers, takes every update, and has every zone, with 200,000 records.
func startFullServer(t *testing.T, host netip.Addr, key, secret string) netip.AddrPort {
	t.Helper()
	addr, err := namedtest.FreeAddress(host)
	if err != nil {
		t.Fatal(err)
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		switch {
		case r.IsTsig() == nil || w.TsigStatus() != nil:
			dns.HandleFailed(w, r)
		case r.Opcode == dns.OpcodeUpdate:
			_ = sendSigned(w, r, nil)
		case r.Question[0].Qtype == dns.TypeAXFR || r.Question[0].Qtype == dns.TypeIXFR:
			sendFullZone(w, r)
		default:
			_ = sendSigned(w, r, []dns.RR{bombSOA(r.Question[0].Name)})
		}
	})
	packets, err := net.ListenPacket("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	udp := &dns.Server{PacketConn: packets, Handler: handler, TsigSecret: map[string]string{key: secret}}
	tcp := &dns.Server{Listener: listener, Handler: handler, TsigSecret: udp.TsigSecret}
	go func() { _ = udp.ActivateAndServe() }()
	go func() { _ = tcp.ActivateAndServe() }()
	t.Cleanup(func() { _ = errors.Join(udp.Shutdown(), tcp.Shutdown()) })
	return addr
}

// sendFullZone sends a transfer of 200,000 records, each of 250 characters, until the other side has had enough.
func sendFullZone(w dns.ResponseWriter, r *dns.Msg) {
	zone, text := r.Question[0].Name, strings.Repeat("x", 250)
	answer := []dns.RR{bombSOA(zone)}
	for i := range 200_000 {
		header := dns.RR_Header{Name: fmt.Sprintf("n%d.%s", i, zone), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}
		if answer = append(answer, &dns.TXT{Hdr: header, Txt: []string{text}}); len(answer) < 200 {
			continue
		}
		if err := sendSigned(w, r, answer); err != nil {
			return
		}
		answer = nil
	}
	_ = sendSigned(w, r, append(answer, bombSOA(zone)))
}

// sendSigned sends an answer, or the next message of one, with the key of the request.
func sendSigned(w dns.ResponseWriter, r *dns.Msg, answer []dns.RR) error {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.Answer = true, answer
	m.SetTsig(r.IsTsig().Hdr.Name, r.IsTsig().Algorithm, 300, time.Now().Unix())
	err := w.WriteMsg(m)
	w.TsigTimersOnly(true)
	return err
}

// peakOfController returns how much memory the controller's process has had at most, and may have, in bytes.
func peakOfController(t *testing.T, c client.Client) (peak, limit int64) {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace("lockstep-system"), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		limit = pod.Spec.Containers[0].Resources.Limits.Memory().Value()
		if n := pod.Status.ContainerStatuses[0].RestartCount; n > 0 {
			t.Errorf("the controller has restarted %d times", n)
		}
		id, err := kube.ContainerID(pod, pod.Spec.Containers[0].Name)
		if err != nil {
			t.Fatal(err)
		}
		pids, err := kube.ProcessesOf(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			peak = max(peak, peakOf(t, pid))
		}
	}
	return peak, limit
}

// peakOf returns how much memory a process has had at most, in bytes.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		t.Fatalf("process %d has no VmHWM", pid)
	}
	kilobytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// A namespace that asks a server without keys about thousands of names delays another one's questions there by its own turn each, and
// the server gets no more questions because two ask.
func TestAttack24Queue(t *testing.T) {
	kube.WithoutCluster(t)
	server := namedtest.Start(t, namedtest.Options{Zones: []namedtest.Zone{{Name: "shared.example."}}})
	o := observe.New(observe.Options{QuestionRate: 100})
	ask := func(ctx context.Context, namespace string, count int) {
		var questions []observe.Question
		for i := range count {
			questions = append(questions, observe.Question{Key: rrset.Key{Name: fmt.Sprintf("n%d.shared.example.", i), Type: dns.TypeA}})
		}
		peer, zone := observe.Peer{Addr: server.Addr, Namespace: namespace, Provider: "coredns"}, observe.Zone{Namespace: namespace, Name: "shared.example."}
		o.ObserveNames(ctx, peer, zone, nil, time.Now(), questions...)
	}
	attack, stop := context.WithCancel(t.Context())
	var attacks sync.WaitGroup
	defer attacks.Wait()
	defer stop()
	attacks.Go(func() { ask(attack, "attacker", 5000) })
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		if n := o.Sizes().Waiting; n < 4000 {
			return fmt.Errorf("%d questions wait", n)
		}
		return nil
	})
	ask(t.Context(), "victim", 10)
	if n := o.Sizes().Waiting; n < 4000 {
		t.Errorf("ten questions were answered when %d of the attacker's 5,000 were left", n)
	}
}
