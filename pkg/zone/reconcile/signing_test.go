package reconcile

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/dnssec"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// signedRig has a zone on a primary that signs it by a policy.
func signedRig(t *testing.T, policy, definition string) *rig {
	r := newRig(t, 1, bind.Zone{Extra: `dnssec-policy "` + policy + `"; inline-signing no;`, Globals: definition})
	r.scope.signing = dnssec.Signing{Policy: policy, Signer: r.scope.instances[0]}
	r.zone.Status.DNSSEC = &v1beta1.DNSSECStatus{Policy: policy}
	return r
}

// await passes over the zone until a check holds.
func (r *rig) await(what string, holds func(passResult) bool) passResult {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p := r.pass(); holds(p) {
			return p
		}
	}
	r.t.Fatalf("%s: not within 30 seconds", what)
	return passResult{}
}

func isSigned(p passResult) bool { return p.event.DNSSEC != nil && p.event.DNSSEC.Signed }

// TestSignedZone: records go into a signed zone on the serial that is assigned, are signed, and reach the secondary; the
// status holds the DS record that what is served can be proved with.
func TestSignedZone(t *testing.T) {
	r := signedRig(t, "default", "")
	p := r.await("signing", isSigned)
	before := p.event.Serial
	r.zones.Set(r.a("www", 1, "192.0.2.7"))
	p = r.pass()
	r.holds("www", "192.0.2.7")
	if got, want := p.event.Serial, p.Serial; got != want || !rrset.SerialLess(before, got) {
		t.Errorf("the zone went from serial %d to %d, want the assigned %d", before, got, want)
	}
	if !p.event.Programmed.Holds() || len(p.event.Unprogrammed) > 0 || p.event.Foreign > 0 {
		t.Errorf("problem %v, unprogrammed %v, foreign %v", p.event.Programmed, p.event.Unprogrammed, p.event.ForeignSample)
	}
	if len(p.event.DNSSEC.DSRecords) != 1 || p.event.DNSSEC.Algorithm != "ECDSAP256SHA256" {
		t.Fatalf("status.dnssec is %+v", p.event.DNSSEC)
	}
	r.await("the secondary", func(p passResult) bool { return p.Rested && p.event.Servers[1].Current })
	for _, s := range []*bind.Server{r.primary[0], r.secondary} {
		if err := bind.Validate(t.Context(), s.Addr, p.event.DNSSEC.DSRecords, "www.example.test.", dns.TypeA); err != nil {
			t.Error(err)
		}
	}
	if again := r.pass(); !again.Rested || again.event.DNSSEC == nil {
		t.Errorf("a pass over a signed zone that nobody changed: rested is %t, status.dnssec %v", again.Rested, again.event.DNSSEC)
	}
}

// TestSignaturesAreRenewed by named, with serials of its own: nothing is to be done then, and the next change follows the
// serial that is there.
func TestSignaturesAreRenewed(t *testing.T) {
	r := signedRig(t, "brief", `dnssec-policy "brief" { keys { csk lifetime unlimited algorithm ecdsap256sha256; };
  signatures-validity 60s; signatures-refresh 50s; signatures-validity-dnskey 60s; signatures-jitter 1s; };`)
	r.zones.Set(r.a("www", 1, "192.0.2.7"))
	p := r.await("signing", isSigned)
	before := p.event.Serial
	p = r.await("renewal", func(p passResult) bool {
		if p.event.Changes.HasChanges() {
			t.Fatalf("named's signatures made the controller change %+v", p.event.Changes)
		}
		return rrset.SerialLess(before, p.event.Serial)
	})
	if !p.event.Programmed.Holds() || p.event.Drift > 0 {
		t.Errorf("problem %v, drift %d", p.event.Programmed, p.event.Drift)
	}
	r.zones.Set(r.a("www", 2, "192.0.2.8"))
	p = r.pass()
	r.holds("www", "192.0.2.8")
	if err := bind.Validate(t.Context(), r.primary[0].Addr, p.event.DNSSEC.DSRecords, "www.example.test.", dns.TypeA); err != nil {
		t.Error(err)
	}
}
