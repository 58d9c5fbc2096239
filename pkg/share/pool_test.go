package share

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// One user gets a share, all together what there is, and what is given back is there for others.
func TestPool(t *testing.T) {
	p := NewPool(100, 60)
	got := []error{p.Take("a", 60), p.Take("a", 1), p.Take("b", 40), p.Take("b", 1)}
	if diff := cmp.Diff([]error{nil, ErrShare, nil, ErrTotal}, got, cmpopts.EquateErrors()); diff != "" {
		t.Error(diff)
	}
	p.Add("a", -60)
	if err := p.Take("c", 60); err != nil || p.Used() != 100 {
		t.Errorf("of what was given back: %v, %d are used", err, p.Used())
	}
	p.Add("a", 70)
	if err := p.Take("a", 1); err != ErrShare || p.Used() != 170 { //nolint:errorlint // It is returned as it is.
		t.Errorf("after more than a share was added: %v, %d are used", err, p.Used())
	}
}

// Whatever users do, nobody who takes gets beyond a share, all stay within the total, and nothing is left of whoever gave all back.
func TestPoolKeepsItsBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const total, share = 1000, 400
	p, have := NewPool(total, share), map[string]int64{}
	for range 10_000 {
		user, n := string(rune('a'+random.IntN(5))), 1+random.Int64N(100)
		if fits := have[user]+n <= share && p.Used()+n <= total; fits != (p.Take(user, n) == nil) {
			t.Fatalf("%d for %s: %t is wrong", n, user, !fits)
		} else if fits {
			have[user] += n
		}
		if random.IntN(2) == 0 {
			user = string(rune('a' + random.IntN(5)))
			p.Add(user, -have[user])
			delete(have, user)
		}
		sum := int64(0)
		for user, n := range have {
			if sum += n; n > share {
				t.Fatalf("%s has %d", user, n)
			}
		}
		if sum > total || p.Used() != sum || len(p.of) != len(have) {
			t.Fatalf("%d are taken by %d users, counted %d and %d", sum, len(have), p.Used(), len(p.of))
		}
	}
}
