package reconcile

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	bind "github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/unbound"
)

// rollPolicy needs seconds for what otherwise takes days; its times are those that the zones have. With signatures of a minute, renewed
// when they have 50 seconds left, a zone is signed anew with another key within ten.
const rollPolicy = `dnssec-policy "fast" { keys { ksk lifetime %s algorithm ecdsap256sha256; zsk lifetime %s algorithm ecdsap256sha256; };
  dnskey-ttl 2; publish-safety 1s; retire-safety 1s; zone-propagation-delay 3s; max-zone-ttl 2s; parent-ds-ttl 2s; parent-propagation-delay 3s;
  signatures-validity 60s; signatures-validity-dnskey 60s; signatures-refresh 50s; signatures-jitter 1s; };`

const rollFile = "$ORIGIN " + chainZone + "\n$TTL 2\n@ SOA ns1 hostmaster 1 3600 600 86400 2\n@ NS ns1\nns1 A 192.0.2.1\n"

// newRollRig is a chainRig whose parent is signed, too, and whose passes have no other clock than resolvers. BIND looks every minute, not every
// hour, for KSKs that are due.
func newRollRig(t *testing.T, ksk, zsk string) *chainRig {
	r := newChainRigOf(t, bind.Zone{Extra: `dnssec-policy "default"; inline-signing no;`}, rollFile, fmt.Sprintf(rollPolicy, ksk, zsk), "dnssec-loadkeys-interval 1;")
	r.edges.now = time.Now
	r.edges.sidecar = &rollSidecar{rndcSidecar{chainRig: r}}
	r.child.Spec.TTL, r.child.Spec.SOARecord.NegativeTTL = new(int64(2)), new(int64(2))
	r.zones.Set(r.child)
	r.zone.Spec.TTL = new(int64(2))
	r.zone.Status.DNSSEC = &v1beta1.DNSSECStatus{Policy: "default"}
	r.zones.Set(r.zone)
	r.scope.signing = dnssec.Signing{Policy: "default", Signer: r.scope.instances[0]}
	return r
}

// rollSidecar has both zones.
type rollSidecar struct{ rndcSidecar }

func (s *rollSidecar) Zone(ctx context.Context, at bindcar.Address, zone string) (bindcar.Zone, error) {
	if strings.TrimSuffix(zone, ".") == strings.TrimSuffix(rigZone, ".") {
		return bindcar.Zone{Type: bindcar.Primary, Owner: "dns/zone", DNSSECPolicy: "default"}, nil
	}
	return s.rndcSidecar.Zone(ctx, at, zone)
}

// startClient starts a client of a resolver that trusts a key of the parent alone.
func (r *chainRig) startClient(anchor *dns.DNSKEY) *unbound.Client {
	r.t.Helper()
	at := unbound.Start(r.t, anchor, map[string][]netip.AddrPort{rigZone: r.serversOf(rigZone), chainZone: r.serversOf(chainZone)})
	return unbound.Ask(r.t, at, "ns1."+chainZone, chainZone)
}

// serversOf are the servers of one of the zones.
func (r *chainRig) serversOf(zone string) (servers []netip.AddrPort) {
	if r.below != nil && zone == chainZone {
		for _, s := range r.below.servers {
			servers = append(servers, s.Addr)
		}
		return servers
	}
	return []netip.AddrPort{r.primary[0].Addr, r.secondary.Addr}
}

// passes makes a pass over the child and one over the parent until a check holds; while it does not, the client has to get its answers.
func (r *chainRig) passes(c *unbound.Client, what string, holds func(passResult) bool) {
	r.t.Helper()
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		p := r.passBoth()
		if c != nil {
			if losses := c.Losses(); len(losses) > 0 {
				r.t.Fatalf("before %s, told %v, the client got %q\n%s", what, r.told, losses, r.status())
			}
		}
		if holds(p) {
			if c != nil {
				r.t.Logf("%s after %s and %d answers", what, c.Age(), c.Counts().Answers)
			}
			return
		}
	}
	r.t.Fatalf("no %s within four minutes; told %v\n%s", what, r.told, r.status())
}

func (r *chainRig) status() string {
	text, _ := r.primary[0].Rndc("dnssec", "-status", chainZone)
	return text
}

// keysAt are the keys of a zone on a server, by key tag; none if it does not answer.
func keysAt(s *bind.Server, zone string) map[uint16]*dns.DNSKEY {
	keys, _ := bind.Keys(context.Background(), s.Addr, zone)
	return keys
}

// TestUnattendedRollOvers: BIND replaces a KSK, a ZSK and the algorithm when it is time, the controller has the parent follow and tells BIND,
// and a client of a validating resolver gets every answer, and has it proven from the DS record on.
func TestUnattendedRollOvers(t *testing.T) {
	for name, c := range map[string]struct {
		ksk, zsk string
		// start has BIND begin what does not begin by itself.
		start func(*chainRig) error
		// isOld selects the keys that go.
		isOld func(*dns.DNSKEY) bool
		// told is how often BIND is told of DS records, at least.
		told int
	}{
		"KSK": {ksk: "60s", zsk: "unlimited", isOld: func(k *dns.DNSKEY) bool { return k.Flags&dns.SEP != 0 }, told: 3},
		"ZSK": {ksk: "unlimited", zsk: "60s", isOld: func(k *dns.DNSKEY) bool { return k.Flags&dns.SEP == 0 }, told: 1},
		"algorithm": {ksk: "unlimited", zsk: "unlimited", isOld: func(k *dns.DNSKEY) bool { return k.Algorithm == dns.ECDSAP256SHA256 }, told: 3,
			start: func(r *chainRig) error { return r.reconfigure("ecdsap256sha256", "ed25519") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRollRig(t, c.ksk, c.zsk)
			var anchor *dns.DNSKEY
			r.passes(nil, "signed parent", func(passResult) bool {
				for _, anchor = range keysAt(r.secondary, rigZone) {
					return true
				}
				return false
			})
			asking := r.startClient(anchor)
			r.passes(asking, "DS record", func(passResult) bool { return len(r.told) == 1 })
			r.passes(asking, "proof", func(passResult) bool { return asking.Counts().Proven > 10 })
			unproven := asking.Counts().Unproven()
			old := keysAt(r.primary[0], chainZone)
			maps.DeleteFunc(old, func(_ uint16, k *dns.DNSKEY) bool { return !c.isOld(k) })
			if len(old) == 0 {
				t.Fatal("there are no keys to be replaced")
			}
			if c.start != nil {
				r.passes(asking, "BIND's count on the DS record", func(passResult) bool { return strings.Contains(r.status(), "ds:             omnipresent") })
				if err := c.start(r); err != nil {
					t.Fatal(err)
				}
			}
			r.passes(asking, "end of the roll-over", func(passResult) bool {
				for _, s := range []*bind.Server{r.primary[0], r.secondary} {
					now := keysAt(s, chainZone)
					if len(now) == 0 || slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(tag uint16) bool { return old[tag] != nil }) {
						return false
					}
				}
				return len(r.told) >= c.told
			})
			rolled := asking.Counts().Answers
			r.passes(asking, "time after the roll-over", func(passResult) bool { return asking.Counts().Answers > rolled+20 })
			counts := asking.Counts()
			if counts.Unproven() != unproven {
				t.Errorf("of %d answers, %d were not proven after the first that were", counts.Answers, counts.Unproven()-unproven)
			}
			t.Logf("%d answers, none lost; named was told %q", counts.Answers, r.told)
		})
	}
}

// reconfigure replaces text in the configuration of the server that signs.
func (r *chainRig) reconfigure(old, with string) error {
	path := filepath.Join(r.primary[0].Dir, "named.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(conf), old, with)), 0o600); err != nil {
		return err
	}
	out, err := r.primary[0].Rndc("reconfig")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// passBoth makes a pass over the child and one over the parent.
func (r *chainRig) passBoth() passResult {
	r.t.Helper()
	s := r.scope
	s.signing = r.signing
	if r.below != nil {
		s = *r.below
	}
	s.zone = r.zones.Members.Zone(membership.KeyOfZone(r.child))
	above := r.scope
	above.zone = r.zone
	switch {
	case r.withdrawn:
		s.former = []scope{above}
	case r.edges.registry == nil:
		s.parents = []scope{above}
	}
	p, err := zonePass{edges: r.edges, scope: s, state: r.states.stateOf(s.zone)}.run(r.t.Context())
	if err != nil || !p.event.Programmed.Holds() {
		r.t.Fatalf("%v, %+v", err, p.event.Programmed)
	}
	written := s.zone.DeepCopy()
	written.Status.DNSSEC = p.event.DNSSEC
	r.zones.Set(written)
	if parent := r.pass(); !parent.event.Programmed.Holds() || len(parent.event.Unprogrammed) > 0 && !parent.event.Paused {
		r.t.Fatalf("the parent: %+v, %v", parent.event.Programmed, parent.event.Unprogrammed)
	}
	return p
}
