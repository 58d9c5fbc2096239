package certs

import (
	"bytes"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var (
	aServer = Subject{DNSNames: []string{"*.a.b.internal"}}
	aClient = Subject{Identity: "spiffe://lockstep.internal/controller"}
)

func TestIsCurrent(t *testing.T) {
	life := DefaultPolicy.LeafLife
	state := settle(t, State{}, epoch)
	rolling, err := policy.Replace(state, epoch)
	if err != nil {
		t.Fatal(err)
	}
	successor := settle(t, rolling, epoch.Add(13*time.Hour))
	issue := func(subject Subject) map[string][]byte {
		data, err := state.Issue(epoch, subject)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	server, other, client := issue(aServer), issue(aServer), issue(aClient)
	with := func(key string, value []byte) map[string][]byte {
		changed := maps.Clone(server)
		changed[key] = value
		return changed
	}
	cases := map[string]struct {
		state   State
		data    map[string][]byte
		now     time.Time
		subject Subject
		want    bool
	}{
		"fresh":                 {state, server, epoch, aServer, true},
		"a client's":            {state, client, epoch, aClient, true},
		"half of its life over": {state, server, epoch.Add(life / 2), aServer, true},
		"due":                   {state, server, epoch.Add(life * 7 / 10), aServer, false},
		"clock set back":        {state, server, epoch.Add(-3 * time.Hour), aServer, false},
		"another name":          {state, server, epoch, Subject{DNSNames: []string{"*.x.b.internal"}}, false},
		"one name of two":       {state, server, epoch, Subject{DNSNames: []string{"*.a.b.internal", "c"}}, false},
		"another identity":      {state, client, epoch, Subject{Identity: "spiffe://lockstep.internal/apiserver"}, false},
		"a server for a client": {state, server, epoch, aClient, false},
		"a client for a server": {state, client, epoch, aServer, false},
		"a retired authority's": {successor, server, epoch.Add(13 * time.Hour), aServer, false},
		"a bundle of before":    {rolling, server, epoch, aServer, false},
		"another's key":         {state, with(corev1.TLSPrivateKeyKey, other[corev1.TLSPrivateKeyKey]), epoch, aServer, false},
		"another bundle":        {state, with(BundleKey, successor.Bundle()), epoch, aServer, false},
		"none":                  {state, nil, epoch, aServer, false},
		"no authority":          {State{}, server, epoch, aServer, false},
	}
	for name, c := range cases {
		if got := c.state.IsCurrent(c.data, c.now, c.subject); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !bytes.Equal(server[BundleKey], state.Bundle()) {
		t.Error("the bundle does not come with the certificate")
	}
}

// A certificate is for a server or for a client.
func TestIssueRefusals(t *testing.T) {
	state := settle(t, State{}, epoch)
	for name, c := range map[string]struct {
		state   State
		subject Subject
	}{
		"no authority":      {State{}, aServer},
		"nobody":            {state, Subject{}},
		"server and client": {state, Subject{DNSNames: aServer.DNSNames, Identity: aClient.Identity}},
		"no URI":            {state, Subject{Identity: ":"}},
	} {
		if _, err := c.state.Issue(epoch, c.subject); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
}
