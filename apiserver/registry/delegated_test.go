package registry

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

func delegatedReason(s *syncv1.SyncStatus) string {
	if c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionDelegated); c != nil {
		return c.Reason
	}
	return ""
}

// Whether the parent delegates to a zone is seen by readers and watchers alike, also from the namespace of another parent.
func TestParentDelegates(t *testing.T) {
	zones := bothRecords
	zones.Records += "\nsub NS ns1.sub\nns1.sub A 192.0.2.1"
	w, primary, _ := single(t, bind.Options{Zones: []bind.Zone{zones, {Name: "sub.example.test."}}})
	w.Apply(fakekube.Zone("sub.example.test", "primary"))
	const name = "dnszone.sub.example.test"
	w.Eventually("the parent is known", func() bool { return delegatedReason(w.get(name)) == "Delegated" })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	become := func(want string) {
		t.Helper()
		for {
			if _, s := events.next(); s.Name == name && delegatedReason(s) == want {
				break
			}
		}
		got, listed := w.get(name), w.listed(name)
		if delegatedReason(got) != want || delegatedReason(listed) != want || got.ResourceVersion != listed.ResourceVersion {
			t.Errorf("get %s, list %s, want %s", delegatedReason(got), delegatedReason(listed), want)
		}
	}
	become("Delegated")
	fakekube.Update(t, primary, "example.test.", "ns1.sub.example.test.", "192.0.2.2")
	become("GlueDiffers")
	fakekube.Update(t, primary, "sub.example.test.", "ns1.sub.example.test.", "192.0.2.2")
	become("Delegated")
	delegate(t, primary, "example.test.", "sub.example.test.", "")
	become("NotDelegated")
	if c := decidingCondition(w.get(name)); c.Type != syncv1.ConditionPropagated {
		t.Errorf("tables show %s", c.Type)
	}
	if s := w.get("dnszone.example.test"); delegatedReason(s) != "" {
		t.Errorf("a zone without a parent: %s", delegatedReason(s))
	}
}

// Anybody may declare a zone above another one on servers of their own. What it says of that counts only if it delegates it to its name servers.
func TestStrangersAreNoParents(t *testing.T) {
	w := newWorld(t)
	one := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "sub.example.test.", Records: "www A 192.0.2.7"}, {Name: "test.", Records: "sub.example NS ns1.sub.example\nns1.sub.example A 192.0.2.1"}}, Transfer: w.Key})
	far := bind.Start(t, bind.Options{Zones: []bind.Zone{{Name: "example.test.", Records: "www A 192.0.2.7"}}, Transfer: w.Key})
	w.Server("one", v1beta1.RolePrimary, one.Addr)
	w.ServerIn("elsewhere", "far", v1beta1.RolePrimary, far.Addr)
	zone, stranger := fakekube.Zone("sub.example.test", "one"), fakekube.Zone("example.test", "far")
	stranger.Namespace = "elsewhere"
	w.Apply(stranger)
	w.Apply(zone)
	const name = "dnszone.sub.example.test"
	w.Eventually("both are known", func() bool {
		_, known := w.verdicts.index.Resolve(desired.Key{Kind: subject.ZoneKind.Kind, Namespace: "elsewhere", Name: stranger.Name})
		return known && w.get(name).Status.InSync
	})
	become := func(want string) {
		t.Helper()
		w.Eventually(want, func() bool {
			_ = w.list(query{namespace: "elsewhere"}) // Its servers are asked.
			return delegatedReason(w.get(name)) == want && delegatedReason(w.listed(name)) == want
		})
	}
	become("")
	delegate(t, far, "example.test.", "sub.example.test.", "ns1.sub.example.test.")
	become("GlueDiffers")
	delegate(t, far, "example.test.", "sub.example.test.", "")
	delegate(t, far, "example.test.", "sub.example.test.", "ns1.evil.test.")
	become("")

	// One that shares the namespace, or servers, goes before one with a longer name.
	w.Apply(fakekube.Zone("test", "one"))
	become("Delegated")
	delegate(t, one, "test.", "example.test.", "ns1.example.test.")
	become("")
}
