package reconcile

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/chain"
	"github.com/lockstep-dns/lockstep/pkg/zone/registry"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// fastPolicy rolls keys within seconds.
const fastPolicy = `dnssec-policy "fast" { keys { ksk lifetime unlimited algorithm ecdsap256sha256; zsk lifetime unlimited algorithm ecdsap256sha256; };
  dnskey-ttl 1; publish-safety 1s; retire-safety 1s; zone-propagation-delay 1s; max-zone-ttl 5s; parent-ds-ttl 1s; parent-propagation-delay 1s; };`

// chainRig has a zone and a signed zone below it, which it delegates, on the same servers.
type chainRig struct {
	*rig
	child *v1beta1.DNSZone
	// signing is how the child is signed, told what its server was told, ahead how far the clock of passes is.
	signing dnssec.Signing
	told    []string
	ahead   time.Duration
	// below is where the child is served; the same as the parent's if it is nil.
	below *scope
	// bare is true while the parent may have no DS record, withdrawn once it does not delegate the child any more.
	bare, withdrawn bool
}

const chainZone = "shop." + rigZone

// chainFile has TTLs that the policy permits.
const chainFile = "$ORIGIN " + chainZone + "\n$TTL 5\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n"

func newChainRig(t *testing.T, parent bind.Zone) *chainRig {
	return newChainRigOf(t, parent, chainFile, fastPolicy)
}

// newChainRigOf has a file and a definition of the policy "fast" for the zone below.
func newChainRigOf(t *testing.T, parent bind.Zone, file, policy string, extra ...string) *chainRig {
	r := &chainRig{bare: true}
	r.rig = newRig(t, 1, parent, bind.Zone{Name: chainZone, File: file, Extra: `dnssec-policy "fast"; inline-signing no;` + strings.Join(extra, ""), Globals: policy})
	r.edges.now = func() time.Time { return time.Now().Add(r.ahead) }
	r.edges.sidecar = &rndcSidecar{chainRig: r}
	r.signing = dnssec.Signing{Policy: "fast", Signer: r.scope.instances[0]}
	r.child = r.zone.DeepCopy()
	r.child.Name, r.child.UID, r.child.Spec.ZoneName, r.child.Spec.RecordsFrom = "shop", "shop", "shop.example.test", nil
	r.child.Spec.SOARecord.PrimaryNS = "ns1." + chainZone
	r.child.Spec.TTL = new(int64(5))
	r.child.Spec.NameServerIPs = map[string]string{"ns1." + chainZone: "192.0.2.1"}
	r.child.Status.DNSSEC = &v1beta1.DNSSECStatus{Policy: "fast"}
	r.zones.Set(r.child)
	ns := &v1beta1.NSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "shop", UID: "ns", Labels: map[string]string{"in": "yes"}, Finalizers: []string{v1beta1.Finalizer}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"}}}
	ns.Spec.Name, ns.Spec.Nameserver = "shop", "ns1."+chainZone
	r.zones.Set(ns)
	return r
}

// rndcSidecar is a sidecar that does nothing but tell its server of DS records, and hasten transfers.
type rndcSidecar struct {
	sidecarClient
	*chainRig
}

func (s *rndcSidecar) Zone(_ context.Context, _ bindcar.Address, zone string) (bindcar.Zone, error) {
	if zone == s.zone.Spec.ZoneName {
		return bindcar.Zone{Type: bindcar.Primary, Owner: "dns/zone"}, nil
	}
	return bindcar.Zone{Type: bindcar.Primary, Owner: "dns/shop", DNSSECPolicy: "fast"}, nil
}

func (s *rndcSidecar) PatchZone(context.Context, bindcar.Address, string, bindcar.PatchZone) error {
	return nil
}

// Command is an order for the secondary that is slow to follow.
func (s *rndcSidecar) Command(_ context.Context, _ bindcar.Address, zone, command string) (string, error) {
	return s.secondary.Rndc(command, zone)
}

func (s *rndcSidecar) CheckDS(_ context.Context, _ bindcar.Address, _ string, key bindcar.CheckDS) error {
	state := "withdrawn"
	if key.Published {
		state = "published"
	}
	s.told = append(s.told, strconv.Itoa(int(key.KeyTag))+" "+state)
	_, err := s.primary[0].Rndc("dnssec", "-checkds", "-key", strconv.Itoa(int(key.KeyTag)), state, chainZone)
	return err
}

// step makes a pass over the child and one over the parent, and proves that a resolver with the parent's DS records takes the child's answers.
func (r *chainRig) step() passResult {
	r.t.Helper()
	p := r.passBoth()
	r.prove()
	r.ahead += 10 * time.Second
	return p
}

// dsAt are the DS records of the child that a server of the parent answers with.
func (r *chainRig) dsAt(s *bind.Server) (records []string) {
	set, err := r.observer.AskZone(r.t.Context(), peerOf(s), observe.Zone{Name: rigZone}, &s.Transfer, rrset.Key{Name: chainZone, Type: dns.TypeDS})
	if err != nil {
		r.t.Fatalf("%s: %v", s.Addr, err)
	}
	for _, rdata := range set.Rdata {
		records = append(records, chainZone+" 300 IN DS "+rdata)
	}
	return records
}

func (r *chainRig) prove() {
	r.t.Helper()
	for _, s := range []*bind.Server{r.primary[0], r.secondary} {
		ds := r.dsAt(s)
		if len(ds) == 0 {
			if !r.bare {
				r.t.Fatalf("%s has no DS record", s.Addr)
			}
			continue
		}
		for _, at := range []*bind.Server{r.primary[0], r.secondary} {
			if err := bind.Validate(r.t.Context(), at.Addr, ds, "ns1."+chainZone, dns.TypeA); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// until steps until a check holds.
func (r *chainRig) until(what string, holds func(passResult) bool) passResult {
	r.t.Helper()
	var p passResult
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p = r.step(); holds(p) {
			return p
		}
	}
	r.t.Fatalf("%s: not within two minutes: %+v, %+v, told %v", what, p.event.Delegated, p.event.DNSSEC, r.told)
	return p
}

func says(reason string) func(passResult) bool {
	return func(p passResult) bool { return p.event.Delegated.Reason == reason }
}

// TestChain: the DS records of a signed zone come into the zone above it, follow a roll-over, and go before signing ends; a resolver that
// trusts the zone above proves every answer at each step.
func TestChain(t *testing.T) {
	r := newChainRig(t, bind.Zone{})
	p := r.until("the signed zone on all servers", func(p passResult) bool {
		return p.event.DNSSEC.Delegation != nil && len(p.event.DNSSEC.Delegation.Keys) == 1
	})
	old := p.event.DNSSEC.Delegation.Keys[0].DS
	if ds := r.dsAt(r.primary[0]); len(ds) > 0 || p.event.Delegated.Reason != status.DSPending {
		t.Fatalf("within the highest TTL the parent has %v; %+v", ds, p.event.Delegated)
	}
	if list := p.event.DNSSEC.Delegation.Parents; !slices.Equal(list, []types.UID{r.zone.UID}) {
		t.Errorf("the parents are %v", list)
	}
	r.ahead += 2 * time.Hour
	r.until("the DS record on all servers", says(status.DSPublished))
	tag := strconv.Itoa(int(chain.KeyTag(old)))
	if !slices.Equal(r.told, []string{tag + " published"}) {
		t.Fatalf("named was told %v", r.told)
	}
	r.bare = false

	// BIND replaces a key on whose DS record it does not count yet at once.
	r.until("named's count on the DS record", func(passResult) bool {
		text, err := r.primary[0].Rndc("dnssec", "-status", chainZone)
		return err == nil && strings.Contains(text, "ds:             omnipresent")
	})
	if text, err := r.primary[0].Rndc("dnssec", "-rollover", "-key", tag, chainZone); err != nil {
		t.Fatal(text, err)
	}
	r.until("two keys", func(p passResult) bool { return len(p.event.DNSSEC.Delegation.Keys) == 2 })
	r.ahead += 2 * time.Hour
	// BIND is told that the record is gone unless it has removed the key before: it does not wait for that for ever.
	p = r.until("the end of the roll-over", func(p passResult) bool {
		keys := p.event.DNSSEC.Delegation.Keys
		isOver := slices.Contains(r.told, tag+" withdrawn") || len(keys) == 1 && keys[0].DS != old
		return isOver && p.event.Delegated.Reason == status.DSPublished
	})
	published := p.event.DNSSEC.Delegation.Published()
	if len(published) != 1 || published[0] == old || len(r.told) < 2 || r.told[1] != strconv.Itoa(int(chain.KeyTag(published[0])))+" published" {
		t.Fatalf("published are %v, told was %v", published, r.told)
	}

	// Signing is to end.
	r.bare, r.signing.Policy = true, "insecure"
	p = r.until("the DS record gone from all servers", func(p passResult) bool { return p.event.DNSSEC.Delegation.AbsentSince != nil })
	if p.event.DNSSEC.Delegation.SigningMayEnd || p.event.Delegated.Reason != status.DSWithdrawing {
		t.Errorf("at once: %+v", p.event.Delegated)
	}
	r.ahead += 30 * time.Minute // The parent's TTL is an hour.
	if p = r.step(); p.event.DNSSEC.Delegation.SigningMayEnd {
		t.Error("signing may end within the TTL of the DS record")
	}
	r.ahead += time.Hour
	r.until("the end of signing", func(p passResult) bool { return p.event.DNSSEC.Delegation.SigningMayEnd })
}

// declareDS has an object declare a DS record of the child in the parent, with a TTL of a minute.
func (r *chainRig) declareDS(rdata string) *v1beta1.DNSRecord {
	ds := &v1beta1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "ds", UID: "ds", Labels: map[string]string{"in": "yes"}, Finalizers: []string{v1beta1.Finalizer}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"}}}
	ds.Spec.Name, ds.Spec.Type, ds.Spec.Data, ds.Spec.TTL = "shop", "DS", []string{rdata}, new(int64(60))
	r.zones.Set(ds)
	return ds
}

// TestChainElsewhere: the zone above is nobody's here. It is asked for its DS records, and notified while it is behind; the server that signs
// is told of what is there, also before signing ends.
func TestChainElsewhere(t *testing.T) {
	notified := make(chan string, 100)
	scanner, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &dns.Server{PacketConn: scanner, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		notified <- dns.OpcodeToString[m.Opcode] + " " + m.Question[0].String()
		_ = w.WriteMsg(new(dns.Msg).SetReply(m))
	})}
	go func() { _ = listener.ActivateAndServe() }()
	t.Cleanup(func() { _ = listener.Shutdown() })
	port := scanner.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	r := newChainRig(t, bind.Zone{Records: fmt.Sprintf(`shop._dsync TYPE66 \# 8 003b01%04x016100`, port)}) // CDS NOTIFY port a.
	r.edges.registry = &registry.Registry{
		LookupNS: func(_ context.Context, name string) ([]*net.NS, error) {
			if name != rigZone {
				return nil, &net.DNSError{IsNotFound: true}
			}
			return []*net.NS{{Host: "ns1." + rigZone}}, nil
		},
		Names: outbound.Resolver{Permit: netip.Addr.IsValid, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{r.primary[0].Addr.Addr()}, nil
		}},
		Port: r.primary[0].Addr.Port(),
	}
	p := r.until("the signed zone on all servers", func(p passResult) bool {
		return p.event.DNSSEC.Delegation != nil && len(p.event.DNSSEC.Delegation.Keys) == 1
	})
	key := p.event.DNSSEC.Delegation.Keys[0].DS
	r.ahead += 2 * time.Hour
	p = r.until("a registry that is behind", says(status.RegistryBehind))
	since := p.event.Delegated.Message
	for range 3 {
		r.ahead += time.Hour
		if p = r.step(); p.event.Delegated.Message != since {
			t.Fatalf("first %q, then %q", since, p.event.Delegated.Message)
		}
	}
	if len(notified) != 1 || !strings.Contains(<-notified, "NOTIFY ;"+chainZone+"\tIN\t CDS") {
		t.Fatalf("%d messages to who the zone above names", len(notified))
	}
	ds := r.declareDS(key)
	r.step()
	r.ahead += 6 * time.Minute
	r.until("the DS record", says(status.DSPublished))
	if tag := strconv.Itoa(int(chain.KeyTag(key))); !slices.Equal(r.told, []string{tag + " published"}) {
		t.Fatalf("named was told %v", r.told)
	}

	r.signing.Policy = "insecure"
	r.ahead += 6 * time.Minute
	r.until("the end of signing", func(p passResult) bool {
		return p.event.Delegated.Reason == status.DSWithdrawing && p.event.DNSSEC.Delegation.SigningMayEnd
	})
	gone := ds.DeepCopy()
	gone.DeletionTimestamp = new(metav1.Now())
	r.zones.Set(gone)
	r.step()
	r.ahead += 6 * time.Minute
	r.until("no DS record", says(status.DSAbsent))
	if len(r.told) != 2 || !strings.HasSuffix(r.told[1], " withdrawn") {
		t.Fatalf("named was told %v", r.told)
	}
}

// TestDeclaredDSStays: what an object declares in the zone above is not touched.
func TestDeclaredDSStays(t *testing.T) {
	r := newChainRig(t, bind.Zone{})
	p := r.until("the signed zone on all servers", func(p passResult) bool {
		return p.event.DNSSEC.Delegation != nil && len(p.event.DNSSEC.Delegation.Keys) == 1
	})
	r.declareDS(p.event.DNSSEC.Delegation.Keys[0].DS)
	r.ahead += 2 * time.Hour
	r.until("the declared record", says(status.DSPublished))
	set, err := r.observer.AskZone(t.Context(), peerOf(r.primary[0]), observe.Zone{Name: rigZone}, &r.primary[0].Transfer, rrset.Key{Name: chainZone, Type: dns.TypeDS})
	if err != nil || set.TTL != 60 {
		t.Errorf("%+v, %v: not as declared", set, err)
	}
}

// TestParentWithdraws: a zone above that does not delegate the zone any more, and that nobody may change, keeps it signed while its servers
// have a DS record.
func TestParentWithdraws(t *testing.T) {
	r := newChainRig(t, bind.Zone{})
	r.until("the signed zone on all servers", func(p passResult) bool {
		return p.event.DNSSEC.Delegation != nil && len(p.event.DNSSEC.Delegation.Keys) == 1
	})
	r.ahead += 2 * time.Hour
	r.until("the DS record on all servers", says(status.DSPublished))
	paused := r.zone.DeepCopy()
	paused.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
	r.zones.Set(paused)
	r.zone, r.withdrawn, r.signing.Policy = paused, true, "insecure"
	r.until("its records", says(status.DSWithdrawing))
	known := r.zones.Members.Zone(membership.KeyOfZone(r.child))
	if former := (&reconciler{edges: r.edges}).formerParents(known); len(former) != 1 || former[0].UID != r.zone.UID {
		t.Errorf("the zones above were %v", former)
	}
	r.ahead += 30 * 24 * time.Hour
	if p := r.step(); p.event.DNSSEC.Delegation == nil || p.event.DNSSEC.Delegation.AbsentSince != nil || p.event.DNSSEC.Delegation.SigningMayEnd {
		t.Fatalf("%+v while servers have %v", p.event.DNSSEC.Delegation, r.dsAt(r.primary[0]))
	}
	resumed := paused.DeepCopy()
	resumed.Annotations = nil
	r.zones.Set(resumed)
	r.zone = resumed
	r.until("servers without it", func(p passResult) bool { return p.event.DNSSEC.Delegation.AbsentSince != nil })
	if ds := r.dsAt(r.primary[0]); len(ds) > 0 {
		t.Errorf("they have %v", ds)
	}
	r.ahead += 2 * time.Hour
	r.until("the end of what was decided", func(p passResult) bool { return p.event.DNSSEC.Delegation == nil })
}

// TestDelegatedOfPausedZone: what a paused zone says of the zones above outlives a restart, and ends when they withdraw.
func TestDelegatedOfPausedZone(t *testing.T) {
	r := newChainRig(t, bind.Zone{})
	r.until("the signed zone on all servers", func(p passResult) bool {
		return p.event.DNSSEC.Delegation != nil && len(p.event.DNSSEC.Delegation.Keys) == 1
	})
	r.ahead += 2 * time.Hour
	before := r.until("the DS record on all servers", says(status.DSPublished)).event.Delegated
	key := membership.KeyOfZone(r.child)
	paused := r.zones.Members.Zone(key).DeepCopy()
	paused.Annotations = map[string]string{v1beta1.PausedAnnotation: "true"}
	status.Set(&paused.Status.Conditions, status.Delegated, before, 1, time.Now())
	r.zones.Set(paused)
	r.states.Delete(key)
	if got := r.passBoth().event.Delegated; got != before {
		t.Errorf("after a restart %+v, want %+v", got, before)
	}
	r.withdrawn = true
	if p := r.passBoth(); p.event.Delegated != (status.Verdict{}) || len(p.event.DNSSEC.Delegation.Parents) > 0 {
		t.Errorf("nobody delegates the zone: %+v, %v", p.event.Delegated, p.event.DNSSEC.Delegation.Parents)
	}
}
