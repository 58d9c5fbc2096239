package certs

import (
	"crypto/x509"
	"testing"
	"time"
)

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	policy = Policy{CALife: 90 * 24 * time.Hour, LeafLife: 24 * time.Hour, Overlap: 12 * time.Hour}
)

// settle advances until nothing changes, as Keeper.Sync does with targets that take every bundle.
func settle(t *testing.T, s State, now time.Time) State {
	t.Helper()
	published := false
	for range 10 {
		next, changed, err := policy.Advance(s, now, published)
		if err != nil {
			t.Fatal(err)
		}
		if !changed && published {
			return next
		}
		s, published = next, true
	}
	t.Fatal("the state does not settle")
	return s
}

func verify(t *testing.T, bundle []byte, leaf *Leaf, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	_, err := leaf.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "a.b.svc"})
	return err
}

func mint(t *testing.T, s State, now time.Time) *Leaf {
	t.Helper()
	leaf, err := s.Signer.Mint(now, policy.LeafLife, Subject{DNSNames: []string{"a.b.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// A year in steps of three hours: at every step, both the newest leaf and the one of the step before verify with the
// newest bundle and with the bundle of the step before.
func TestRollOverLeavesNoGap(t *testing.T) {
	s := settle(t, State{}, epoch)
	leaf, bundle := mint(t, s, epoch), s.Bundle()
	signers := map[string]bool{}
	for now := epoch; now.Before(epoch.Add(365 * 24 * time.Hour)); now = now.Add(3 * time.Hour) {
		s = settle(t, s, now)
		signers[s.Signer.Cert.Subject.String()] = true
		newLeaf := leaf
		if isDue(leaf.Cert, now) || leaf.Cert.Issuer.String() != s.Signer.Cert.Subject.String() {
			newLeaf = mint(t, s, now)
		}
		for _, b := range [][]byte{bundle, s.Bundle()} {
			for _, l := range []*Leaf{leaf, newLeaf} {
				if err := verify(t, b, l, now); err != nil {
					t.Fatalf("%s: %v", now, err)
				}
			}
		}
		leaf, bundle = newLeaf, s.Bundle()
	}
	if len(signers) < 6 {
		t.Errorf("%d authorities in a year, want one each 60 days", len(signers))
	}
	if n := len(s.trustedCerts()); n > 2 {
		t.Errorf("%d trusted certificates at the end: old ones are not dropped", n)
	}
}

func TestAdvance(t *testing.T) {
	fresh := settle(t, State{}, epoch)
	day := 24 * time.Hour
	rolling, _, err := policy.Advance(fresh, epoch.Add(61*day), false)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		state                     State
		now                       time.Time
		published                 bool
		wantChanged               bool
		wantNext, wantSameSigner  bool
		wantRetired, wantBundleOf int
	}{
		"no authority yet":                         {State{}, epoch, false, true, false, false, 0, 1},
		"young":                                    {fresh, epoch.Add(59 * day), true, false, false, true, 0, 1},
		"two thirds over":                          {fresh, epoch.Add(60 * day), true, true, true, true, 0, 2},
		"published, overlap not over":              {rolling, epoch.Add(61*day + 11*time.Hour), true, false, true, true, 0, 2},
		"overlap over, not published":              {rolling, epoch.Add(61*day + 12*time.Hour), false, false, true, true, 0, 2},
		"overlap over and published":               {rolling, epoch.Add(61*day + 12*time.Hour), true, true, false, false, 1, 2},
		"expired: successor first":                 {fresh, epoch.Add(91 * day), true, true, true, true, 0, 2},
		"expired with a successor: no overlap":     {rolling, epoch.Add(90*day + time.Hour), true, true, false, false, 1, 2},
		"clock set back before the making":         {fresh, epoch.Add(-2 * time.Hour), true, true, true, true, 0, 2},
		"clock a little behind":                    {fresh, epoch.Add(-30 * time.Minute), true, false, false, true, 0, 1},
		"clock set back before the next one's":     {rolling, epoch.Add(10 * day), true, true, true, true, 0, 2},
		"expired, successor not published: waits ": {rolling, epoch.Add(91 * day), false, false, true, true, 0, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed, err := policy.Advance(tc.state, tc.now, tc.published)
			if err != nil {
				t.Fatal(err)
			}
			if changed != tc.wantChanged {
				t.Errorf("changed = %v", changed)
			}
			if (got.Next != nil) != tc.wantNext {
				t.Errorf("has a next authority = %v", got.Next != nil)
			}
			if same := tc.state.Signer == got.Signer; same != tc.wantSameSigner {
				t.Errorf("same signer = %v", same)
			}
			if len(got.Retired) != tc.wantRetired {
				t.Errorf("retired = %d", len(got.Retired))
			}
			if n := len(got.trustedCerts()); n != tc.wantBundleOf {
				t.Errorf("bundle of %d", n)
			}
		})
	}
}

func TestClockJumpsHeal(t *testing.T) {
	s := settle(t, State{}, epoch)
	for _, now := range []time.Time{epoch.AddDate(5, 0, 0), epoch.AddDate(-3, 0, 0), epoch, epoch.AddDate(0, 1, 0)} {
		s = settle(t, s, now)
		if err := verify(t, s.Bundle(), mint(t, s, now), now); err != nil {
			t.Errorf("after a jump to %s: %v", now, err)
		}
	}
}

func TestReplaceKeepsSignerUntilSuccessorIsPublished(t *testing.T) {
	s := settle(t, State{}, epoch)
	got, err := policy.Replace(s, epoch.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got.Signer != s.Signer || got.Next == nil {
		t.Errorf("signer kept = %v, successor = %v", got.Signer == s.Signer, got.Next != nil)
	}
	if later := settle(t, got, epoch.Add(13*time.Hour)); later.Signer != got.Next {
		t.Error("the successor does not sign after the overlap")
	}
}
