package certs

import (
	"testing"
	"time"
)

func TestStands(t *testing.T) {
	day := 24 * time.Hour
	state := settle(t, State{}, epoch)
	successor, err := policy.Replace(state, epoch)
	if err != nil {
		t.Fatal(err)
	}
	successor = settle(t, successor, epoch.Add(13*time.Hour))
	leaf, err := state.Issue(epoch, "*.a.b.internal")
	if err != nil {
		t.Fatal(err)
	}
	other, err := state.Issue(epoch, "*.a.b.internal")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		state     State
		cert, key []byte
		now       time.Time
		names     []string
		want      bool
	}{
		"fresh":                 {state, leaf.CertPEM, leaf.KeyPEM, epoch, []string{"*.a.b.internal"}, true},
		"half of its life over": {state, leaf.CertPEM, leaf.KeyPEM, epoch.Add(3 * day), []string{"*.a.b.internal"}, true},
		"due":                   {state, leaf.CertPEM, leaf.KeyPEM, epoch.Add(5 * day), []string{"*.a.b.internal"}, false},
		"another name":          {state, leaf.CertPEM, leaf.KeyPEM, epoch, []string{"*.x.b.internal"}, false},
		"one name of two":       {state, leaf.CertPEM, leaf.KeyPEM, epoch, []string{"*.a.b.internal", "c"}, false},
		"a retired authority's": {successor, leaf.CertPEM, leaf.KeyPEM, epoch.Add(13 * time.Hour), []string{"*.a.b.internal"}, false},
		"another's key":         {state, leaf.CertPEM, other.KeyPEM, epoch, []string{"*.a.b.internal"}, false},
		"none":                  {state, nil, nil, epoch, []string{"*.a.b.internal"}, false},
		"no authority":          {State{}, leaf.CertPEM, leaf.KeyPEM, epoch, []string{"*.a.b.internal"}, false},
	}
	for name, c := range cases {
		if got := c.state.IsUsable(c.cert, c.key, c.now, c.names...); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := (State{}).Issue(epoch, "a"); err == nil {
		t.Error("issued without an authority")
	}
}
