package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/unbound"
)

// quickPolicy needs seconds for what otherwise takes days: with signatures of a minute, renewed when they have 50 seconds left, a zone is
// signed anew with another key within ten.
const quickPolicy = `dnssec-policy %q { keys { ksk lifetime %s algorithm %[4]s; zsk lifetime %[3]s algorithm %[4]s; };
  dnskey-ttl 2; publish-safety 1s; retire-safety 1s; zone-propagation-delay 3s; max-zone-ttl 2s; parent-ds-ttl 2s; parent-propagation-delay 3s;
  signatures-validity 60s; signatures-validity-dnskey 60s; signatures-refresh 50s; signatures-jitter 1s; };
`

// quickPolicies are those of TestRollOvers. BIND looks every hour by itself whether a key is due.
var quickPolicies = "" +
	fmt.Sprintf(quickPolicy, "ksk", "60s", "unlimited", "ecdsap256sha256") +
	fmt.Sprintf(quickPolicy, "zsk", "unlimited", "60s", "ecdsap256sha256") +
	fmt.Sprintf(quickPolicy, "before", "unlimited", "unlimited", "ecdsap256sha256") +
	fmt.Sprintf(quickPolicy, "after", "unlimited", "unlimited", "ed25519")

// TestRollOvers: BIND replaces a KSK and a ZSK when they are due, and the algorithm when its zone gets another policy. Nobody does anything,
// and clients of a validating resolver that trusts the parent's key alone get every answer, each proven.
func TestRollOvers(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	f.zone, f.object, f.size = "rolls.test", "main", 2
	signer := f.instance("signer", v1beta1.RolePrimary, 1)
	signer.Spec.ClusterRef = "dns"
	f.create(f.cluster("dns", 0, 1), signer)
	f.createOptions("quick", "signer", "dnssec-loadkeys-interval 1;", quickPolicies)
	change(f, signer, func(i *v1beta1.Bind9Instance) {
		i.Spec.ConfigMapRefs = &v1beta1.ConfigMapRefs{NamedConfOptions: "quick"}
	})
	kube.WaitReady(f, f.client, f.namespace, kube.Start, "bind9instance/signer", "bind9cluster/dns")
	quick := func(z *v1beta1.DNSZone) { z.Spec.TTL, z.Spec.SOARecord.NegativeTTL = new(int64(2)), new(int64(2)) }
	parent := f.dnsZone("main", f.zone)
	quick(parent)
	parent.Spec.DNSSECPolicy = "default"
	f.create(parent)
	f.waitSigned()

	rolls := map[string]*rollOver{
		"ksk":    {isOld: func(k *dns.DNSKEY) bool { return k.Flags&dns.SEP != 0 }},
		"zsk":    {isOld: func(k *dns.DNSKEY) bool { return k.Flags&dns.SEP == 0 }},
		"before": {isOld: func(k *dns.DNSKEY) bool { return k.Algorithm == dns.ECDSAP256SHA256 }, next: "after"},
	}
	zones := map[string][]netip.AddrPort{f.zone + ".": f.addresses()}
	for policy, r := range rolls {
		ns := f.nsRecord("ns-"+policy, policy, "ns1."+policy+"."+f.zone+".")
		f.create(ns)
		r.fixture = f.newZone(t, policy+"."+f.zone, quick, func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = policy })
		r.create(r.aRecord("www-"+policy, "www", "192.0.2.1"))
		r.waitServed("www."+r.zone, "A", "192.0.2.1")
		zones[r.zone+"."] = f.addresses()
	}
	resolver := unbound.Start(t, f.anchor(), zones)
	for _, r := range rolls {
		r.asking = unbound.Ask(t, resolver, "www."+r.zone+".", r.zone+".")
	}
	for name, r := range rolls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.T = t
			r.run()
		})
	}
}

// rollOver is a zone whose keys are replaced.
type rollOver struct {
	*fixture
	// isOld selects the keys that go.
	isOld func(*dns.DNSKEY) bool
	// next is the policy that has them go, unless they go by themselves.
	next   string
	asking *unbound.Client
}

func (r *rollOver) run() {
	r.waitDelegated(status.DSPublished)
	r.waitAnswers("proof", kube.Settle, func(c unbound.Counts) error {
		if c.Proven < 10 {
			return errors.New("nothing is proven yet")
		}
		return nil
	})
	unproven := r.asking.Counts().Unproven()
	old, err := r.keys(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	maps.DeleteFunc(old, func(_ uint16, k *dns.DNSKEY) bool { return !r.isOld(k) })
	if len(old) == 0 {
		r.Fatal("there are no keys to be replaced")
	}
	if r.next != "" {
		r.setPolicy(r.next)
	}
	r.waitAnswers("end of the roll-over", kube.Roll, func(unbound.Counts) error {
		now, err := r.keys(r.Context())
		if err != nil {
			return err
		}
		for tag := range old {
			if now[tag] != nil {
				return fmt.Errorf("key %d is still there, beside %d others", tag, len(now)-1)
			}
		}
		return nil
	})
	r.waitDelegated(status.DSPublished)
	rolled := r.asking.Counts().Answers
	r.waitAnswers("time after the roll-over", kube.Answer, func(c unbound.Counts) error {
		if c.Answers < rolled+20 {
			return fmt.Errorf("%d answers since", c.Answers-rolled)
		}
		return nil
	})
	counts := r.asking.Counts()
	if counts.Unproven() != unproven {
		r.Errorf("of %d answers, %d were not proven after the first that were", counts.Answers, counts.Unproven()-unproven)
	}
	r.Logf("%d answers within %s, none lost", counts.Answers, r.asking.Age())
}

// waitAnswers waits until a check holds; until then, the client has to get all its answers.
func (r *rollOver) waitAnswers(what string, limit kube.Patience, check func(unbound.Counts) error) {
	r.Helper()
	kube.Eventually(r, limit, func(context.Context) error {
		if losses := r.asking.Losses(); len(losses) > 0 {
			r.Fatalf("before %s of %s, a client got %q", what, r.zone, losses)
		}
		return check(r.asking.Counts())
	})
}

// keys are the keys that any server of the zone has, by key tag.
func (f *fixture) keys(ctx context.Context) (map[uint16]*dns.DNSKEY, error) {
	keys := map[uint16]*dns.DNSKEY{}
	servers, err := f.servers(ctx)
	if err != nil {
		return nil, err
	}
	for pod, server := range servers {
		found, err := named.Keys(ctx, netip.MustParseAddrPort(server), f.zone+".")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pod, err)
		}
		maps.Copy(keys, found)
	}
	return keys, nil
}

// anchor is the key of a signed zone that has one.
func (f *fixture) anchor() *dns.DNSKEY {
	f.Helper()
	keys, err := f.keys(f.Context())
	if err != nil || len(keys) != 1 {
		f.Fatalf("%s has %d keys: %v", f.zone, len(keys), err)
	}
	for _, key := range keys {
		return key
	}
	return nil
}

// addresses are those of all servers.
func (f *fixture) addresses() (all []netip.AddrPort) {
	f.Helper()
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, server := range servers {
		all = append(all, netip.MustParseAddrPort(server))
	}
	return all
}
