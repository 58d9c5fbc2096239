package registry

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
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
