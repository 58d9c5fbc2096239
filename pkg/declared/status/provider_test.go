package status_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

// A provider whose zones are in etcd is ready when etcd can be used and every replica answers. Why it is not is in one condition, and
// what follows from that is unknown.
func TestProviderWithStore(t *testing.T) {
	replica := status.ProviderServerFacts{Address: "10.0.0.5:53", Role: "Primary", Reachable: true, HasZone: true}
	silent := status.ProviderServerFacts{Address: "10.0.0.6:53", Role: "Primary", Problem: "no answer"}
	usable := status.True(status.AllAuthenticated, "")
	for name, c := range map[string]struct {
		store                           status.Verdict
		servers                         []status.ProviderServerFacts
		reachable, authenticated, ready string
		capable                         bool
	}{
		"ready":          {usable, []status.ProviderServerFacts{replica}, "True AllReachable", "True AllAuthenticated", "True AllReady", true},
		"silent replica": {usable, []status.ProviderServerFacts{replica, silent}, "False Unreachable", "True AllAuthenticated", "False Unreachable", true},
		"no etcd": {
			status.False(status.Unreachable, "etcd: no answer"), []status.ProviderServerFacts{replica}, "False Unreachable", "Unknown Unreachable", "False Unreachable", false,
		},
		"wrong password": {
			status.False(status.AuthenticationFailed, "etcd: no"), []status.ProviderServerFacts{replica},
			"True AllReachable", "False AuthenticationFailed", "False AuthenticationFailed", false,
		},
		"no Secret": {
			status.False(status.SecretUnusable, "Secret a does not exist"), []status.ProviderServerFacts{replica},
			"Unknown SecretUnusable", "False SecretUnusable", "False SecretUnusable", false,
		},
		"no quorum": {
			status.False("NoQuorum", "etcd: no leader"), []status.ProviderServerFacts{replica}, "True AllReachable", "Unknown NoQuorum", "False NoQuorum", false,
		},
	} {
		s := status.Provider(v1beta1.DNSProviderStatus{}, status.ProviderFacts{Type: "coreDNS", Store: c.store, Servers: c.servers}, time.Now())
		for kind, want := range map[string]string{status.Reachable: c.reachable, status.Authenticated: c.authenticated, status.Ready: c.ready} {
			if got := describe(meta.FindStatusCondition(s.Conditions, kind)); got != want {
				t.Errorf("%s: %s is %q, want %q", name, kind, got, want)
			}
		}
		if found := s.Capabilities; (found != nil) != c.capable || found != nil && (found.Serial || found.Transfer || found.Wildcards || !ptr.Deref(found.Atomic, false) || len(found.RecordTypes) != 7) {
			t.Errorf("%s: capabilities %+v", name, found)
		}
	}
}

// Updates are atomic if all primaries compare, and are not if one does not; one of which that is not known leaves it open.
func TestAtomic(t *testing.T) {
	yes, no := new(true), new(false)
	for name, c := range map[string]struct {
		compare []*bool
		want    *bool
	}{
		"one": {[]*bool{yes}, yes}, "all": {[]*bool{yes, yes}, yes}, "one does not": {[]*bool{yes, no, yes}, no},
		"not known": {[]*bool{yes, nil, yes}, nil}, "one does not, another is not known": {[]*bool{nil, no, nil}, no},
	} {
		facts := status.ProviderFacts{}
		for _, compares := range c.compare {
			facts.Servers = append(facts.Servers, status.ProviderServerFacts{Role: "Primary", Reachable: true, HasZone: true, Compares: compares})
		}
		got := status.Provider(v1beta1.DNSProviderStatus{}, facts, time.Now()).Capabilities.Atomic
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func describe(c *metav1.Condition) string { return string(c.Status) + " " + c.Reason }
