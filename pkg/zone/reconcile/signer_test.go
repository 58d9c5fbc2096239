package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/zone/chain"
	"github.com/lockstep-dns/lockstep/test/knot"
	bind "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/powerdns"
	"github.com/lockstep-dns/lockstep/test/unbound"
)

// theirServer is a server of somebody else's that signs the zone below.
type theirServer struct {
	*bind.Server
	// roll begins a roll-over of a key-signing key, leave asks for the end of the chain.
	roll  func(key uint16)
	leave func()
	// confirm is what its operator does when all servers of the parent have the DS record of one key, and no other.
	confirm func(key, old uint16)
}

func startTheirKnot(t *testing.T, parent *bind.Server) theirServer {
	options := func(publish string) knot.Options {
		return knot.Options{
			Zones: map[string]string{chainZone: ""}, TTL: 2, Lines: []string{"dnssec-signing: on", "dnssec-policy: fast"},
			Sections: fmt.Sprintf("remote:\n- id: parent\n  address: %s@%d\nsubmission:\n- id: parent\n  parent: parent\n  check-interval: 1s\npolicy:\n- id: fast\n"+
				"  ksk-lifetime: 0\n  zsk-lifetime: 0\n  dnskey-ttl: 2s\n  zone-max-ttl: 2s\n  propagation-delay: 1s\n  ksk-submission: parent\n  cds-cdnskey-publish: %s\n",
				parent.Addr.Addr(), parent.Addr.Port(), publish),
		}
	}
	s := knot.StartWith(t, options("rollover"))
	return theirServer{
		Server: &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer},
		roll:   func(uint16) { s.Control(t, "zone-key-rollover", chainZone, "ksk") },
		leave: func() {
			s.Configure(t, options("delete-dnssec"))
			s.Control(t, "reload")
			s.Control(t, "zone-sign", chainZone)
		},
		confirm: func(uint16, uint16) {}, // It asks the parent.
	}
}

func startTheirBIND(t *testing.T, _ *bind.Server) theirServer {
	s := bind.Start(t, bind.Options{Zones: []bind.Zone{{
		Name: chainZone, File: rollFile, Extra: `dnssec-policy "fast"; inline-signing no; dnssec-loadkeys-interval 1;`, Globals: fmt.Sprintf(rollPolicy, "unlimited", "unlimited"),
	}}})
	rndc := func(args ...string) {
		if out, err := s.Rndc(args...); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	told := map[string]bool{}
	checkds := func(key uint16, state string) {
		if tag := strconv.Itoa(int(key)); key != 0 && !told[tag+state] {
			told[tag+state] = true
			rndc("dnssec", "-checkds", "-key", tag, state, chainZone)
		}
	}
	return theirServer{
		Server: s,
		roll: func(key uint16) {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if text, err := s.Rndc("dnssec", "-status", chainZone); err == nil && strings.Contains(text, "ds:             omnipresent") {
					break
				}
			}
			rndc("dnssec", "-rollover", "-key", strconv.Itoa(int(key)), chainZone)
		},
		leave: func() {
			path := filepath.Join(s.Dir, "named.conf")
			conf, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.ReplaceAll(string(conf), `dnssec-policy "fast";`, `dnssec-policy "insecure";`)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			rndc("reconfig")
		},
		confirm: func(key, old uint16) {
			checkds(key, "published")
			checkds(old, "withdrawn")
		},
	}
}

// newTheirRig is a rollRig whose zone below is served and signed by somebody else.
func newTheirRig(t *testing.T, start func(*testing.T, *bind.Server) theirServer) (*chainRig, theirServer) {
	r := &chainRig{rig: newRig(t, 1, bind.Zone{Extra: `dnssec-policy "default"; inline-signing no;`})}
	r.edges.sidecar = &rollSidecar{rndcSidecar{chainRig: r}}
	r.scope.signing = dnssec.Signing{Policy: "default", Signer: r.scope.instances[0]}
	r.zone.Spec.TTL, r.zone.Status.DNSSEC = new(int64(2)), &v1beta1.DNSSECStatus{Policy: "default"}
	r.zones.Set(r.zone)

	server := start(t, r.primary[0])
	above := r.scope
	r.scope.providers, r.scope.servers = nil, nil
	p := r.provide("corp", []*bind.Server{server.Server})
	p.Spec.RFC2136.Writers = v1beta1.WritersShared
	r.below = &scope{providers: r.scope.providers, servers: serving.AddProviders(nil, r.scope.providers)}
	r.scope = above

	r.child = r.zone.DeepCopy()
	r.child.Name, r.child.UID, r.child.Spec.ZoneName, r.child.Spec.RecordsFrom = "shop", "shop", "shop.example.test", nil
	r.child.Spec.SOARecord.PrimaryNS = "ns1." + chainZone
	r.child.Spec.NameServerIPs = map[string]string{"ns1." + chainZone: "192.0.2.1"}
	r.child.Spec.ProviderRefs = []v1beta1.ProviderReference{{Name: "corp"}}
	r.child.Status = v1beta1.DNSZoneStatus{}
	r.zones.Set(r.child)
	ns := &v1beta1.NSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "shop", UID: "ns", Labels: map[string]string{"in": "yes"}, Finalizers: []string{v1beta1.Finalizer}, Annotations: map[string]string{v1beta1.ZoneAnnotation: "example.test"}}}
	ns.Spec.Name, ns.Spec.Nameserver = "shop", "ns1."+chainZone
	r.zones.Set(ns)
	return r, server
}

// trustParent starts a client of a resolver that trusts the parent's keys alone.
func (r *chainRig) trustParent() *unbound.Client {
	var anchor *dns.DNSKEY
	r.passes(nil, "signed parent", func(passResult) bool {
		for _, anchor = range keysAt(r.secondary, rigZone) {
			return true
		}
		return false
	})
	return r.startClient(anchor)
}

// publishedBy are the tags of the keys whose DS records the zones above are to have.
func publishedBy(p passResult) (tags []uint16) {
	if p.event.DNSSEC == nil {
		return nil
	}
	for _, ds := range p.event.DNSSEC.Delegation.Published() {
		tags = append(tags, chain.KeyTag(ds))
	}
	return tags
}

// TestTheyAskForDSRecords: a zone that others serve and sign gets its DS records by its CDS records, keeps them in a roll-over, and loses them
// when it asks for that, while a client of a validating resolver gets every answer.
func TestTheyAskForDSRecords(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *bind.Server) theirServer{"Knot": startTheirKnot, "BIND": startTheirBIND} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, server := newTheirRig(t, start)
			asking := r.trustParent()
			var first uint16
			r.passes(asking, "DS record", func(p passResult) bool {
				if tags := publishedBy(p); len(tags) == 1 && p.event.Delegated.Reason == status.DSPublished {
					first = tags[0]
				}
				return first != 0
			})
			server.confirm(first, 0)
			r.passes(asking, "proof", func(passResult) bool { return asking.Counts().Proven > 10 })
			unproven := asking.Counts().Unproven()

			server.roll(first)
			var second uint16
			r.passes(asking, "DS record of the next key", func(p passResult) bool {
				tags := publishedBy(p)
				if len(tags) == 1 && tags[0] != first && p.event.Delegated.Reason == status.DSPublished {
					second = tags[0]
				}
				return second != 0
			})
			server.confirm(second, first)
			r.passes(asking, "end of the roll-over", func(passResult) bool { return keysAt(server.Server, chainZone)[first] == nil })
			rolled := asking.Counts().Answers
			r.passes(asking, "time after the roll-over", func(passResult) bool { return asking.Counts().Answers > rolled+20 })
			if counts := asking.Counts(); counts.Unproven() != unproven {
				t.Errorf("of %d answers, %d were not proven after the first that were", counts.Answers, counts.Unproven()-unproven)
			}

			server.leave()
			r.passes(asking, "removal of the DS record", func(p passResult) bool {
				return p.event.Delegated.Reason == status.DSWithdrawing && len(publishedBy(p)) == 0 && len(r.dsAt(r.secondary)) == 0
			})
			r.edges.now = func() time.Time { return time.Now().Add(r.ahead) }
			r.passes(asking, "end of its TTL", func(p passResult) bool {
				r.ahead += 10 * time.Second
				return p.event.Delegated.Reason == status.DSAbsent
			})
			t.Logf("%d answers, none lost", asking.Counts().Answers)
		})
	}
}

// TestTheirObjections: what a zone that others sign does not say in a way that anybody may believe changes no DS record.
func TestTheirObjections(t *testing.T) {
	var server *knot.Server
	options := func(lines ...string) knot.Options {
		return knot.Options{Zones: map[string]string{chainZone: ""}, TTL: 2, Lines: append(lines, "dnssec-policy: fast"),
			Sections: "policy:\n- id: fast\n  single-type-signing: on\n  dnskey-ttl: 2s\n  zone-max-ttl: 2s\n  propagation-delay: 1s\n  cds-cdnskey-publish: none\n"}
	}
	r, _ := newTheirRig(t, func(t *testing.T, _ *bind.Server) theirServer {
		server = knot.StartWith(t, options("dnssec-signing: on"))
		return theirServer{Server: &bind.Server{Addr: server.Addr, Update: server.Update, Transfer: server.Transfer}}
	})
	r.bare = true
	r.passes(nil, "objection", func(p passResult) bool { return p.event.Delegated.Reason == status.CDSRejected })
	p := r.passBoth()
	if !strings.Contains(p.event.Delegated.Message, "no CDS or CDNSKEY") || len(publishedBy(p)) > 0 {
		t.Fatalf("%+v", p.event.Delegated)
	}
	set := func(change func(*v1beta1.DNSZone)) {
		zone := r.zones.Members.Zone(membership.KeyOfZone(r.child)).DeepCopy()
		change(zone)
		r.zones.Set(zone)
	}
	publishing := options("dnssec-signing: on")
	publishing.Sections = strings.Replace(publishing.Sections, "publish: none", "publish: always", 1)
	server.Configure(t, publishing)
	server.Control(t, "reload")
	server.Control(t, "zone-sign", chainZone)
	r.passes(nil, "DS record", func(p passResult) bool { return p.event.Delegated.Reason == status.DSPublished })

	// The declaration wants no DS records any more.
	set(func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "insecure" })
	r.passes(nil, "removal", func(p passResult) bool {
		return p.event.Delegated.Reason == status.DSWithdrawing && len(r.dsAt(r.primary[0])) == 0
	})
	set(func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "" })
	r.passes(nil, "DS record again", func(p passResult) bool { return p.event.Delegated.Reason == status.DSPublished })

	// Somebody else has taken over the server, or its keys are lost.
	before := publishedBy(r.passBoth())
	server.Control(t, "-f", "zone-purge", chainZone, "+kaspdb")
	server.Control(t, "zone-sign", chainZone)
	r.passes(nil, "objection to other keys", func(p passResult) bool { return p.event.Delegated.Reason == status.CDSRejected })
	if p := r.passBoth(); len(before) != 1 || len(publishedBy(p)) != 1 || publishedBy(p)[0] != before[0] || !strings.Contains(p.event.Delegated.Message, "no usable key") {
		t.Errorf("before %v, then %v, %+v", before, publishedBy(p), p.event.Delegated)
	}
}

// TestPowerDNSAsksForDSRecords: PowerDNS signs as it answers.
func TestPowerDNSAsksForDSRecords(t *testing.T) {
	zone := strings.TrimSuffix(chainZone, ".")
	r, server := newTheirRig(t, func(t *testing.T, _ *bind.Server) theirServer {
		s := powerdns.Start(t, map[string]string{chainZone: ""}, map[string]string{"PUBLISH-CDS": "2"})
		return theirServer{Server: &bind.Server{Addr: s.Addr, Update: s.Update, Transfer: s.Transfer}, leave: func() {
			s.Util(t, "secure-zone", zone)
			s.Util(t, "rectify-zone", zone)
			s.Util(t, "increase-serial", zone) // It signs as it answers, and has no other serial by itself.
		}}
	})
	if p := r.passBoth(); p.event.DNSSEC != nil || p.event.Delegated != (status.Verdict{}) {
		t.Fatalf("an unsigned zone: %+v, %+v", p.event.DNSSEC, p.event.Delegated)
	}
	server.leave() // It is signed from now on.
	r.edges.now = func() time.Time { return time.Now().Add(r.ahead) }
	r.passes(nil, "DS record", func(p passResult) bool {
		r.ahead += 10 * time.Second
		return p.event.Delegated.Reason == status.DSPublished
	})
	if err := bind.Validate(t.Context(), server.Addr, r.dsAt(r.secondary), "ns1."+chainZone, dns.TypeA); err != nil {
		t.Error(err)
	}
}
