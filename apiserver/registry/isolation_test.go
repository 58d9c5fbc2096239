package registry

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Who may read one namespace learns nothing of another's, whatever is asked for: here all of the other is called secret.
func TestNothingOfAnotherNamespaceIsTold(t *testing.T) {
	w := newWorld(t)
	w.Lagging(bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	own, r := w.Declare("www")
	rival := fakekube.Zone("example.test", "primary", "secondary") // of the same name, and younger
	rival.Namespace, rival.Name = "secret-place", "secret-rival"
	rival.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
	hidden := fakekube.Zone("secret.test")
	hidden.Namespace = "secret-place"
	guest := w.Record(own, "secret-record", "192.0.2.7") // labeled for a zone that is not in its namespace
	guest.Namespace = "secret-place"
	w.Apply(rival)
	w.Apply(hidden)
	w.Apply(guest)
	w.Apply(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-instance"}})
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-cluster"}})
	w.Apply(&v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "secret-everywhere"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "secret-place"}})
	w.Eventually("the other namespace is in the caches", func() bool { return len(w.list(query{namespace: "secret-place"}).Items) == 6 })
	w.Eventually("the own record is in sync", func() bool { return w.get("arecord.www").Status.InSync })

	innocent := func(what string, told any) {
		t.Helper()
		raw, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "secret") {
			t.Errorf("%s tells: %s", what, raw)
		}
	}
	all := w.list(query{limit: 1})
	elsewhere := pageToken{Namespace: "secret-place", Name: "arecord.secret-record"}.encode()
	for what, q := range map[string]query{
		"everything":                {},
		"a page":                    {limit: 1},
		"another's page":            {continueAt: all.Continue},
		"a page in another place":   {continueAt: elsewhere},
		"its namespace":             {fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place")},
		"not the own namespace":     {fields: fields.ParseSelectorOrDie("metadata.namespace!=" + ns)},
		"its record":                {fields: fields.ParseSelectorOrDie("metadata.name=arecord.secret-record")},
		"its record, by both":       {fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place,metadata.name=arecord.secret-record")},
		"its cluster":               {fields: fields.ParseSelectorOrDie("metadata.name=bind9globalcluster.secret-everywhere")},
		"its zone":                  {fields: fields.ParseSelectorOrDie("zone=secret.test")},
		"what is called the same":   {fields: fields.ParseSelectorOrDie("zone=example.test")},
		"what is in trouble":        {fields: fields.ParseSelectorOrDie("status.inSync=false")},
		"what has failed":           {fields: fields.ParseSelectorOrDie("status.failureReason!=")},
		"clusters of all instances": {fields: fields.ParseSelectorOrDie("kind=Bind9GlobalCluster")},
	} {
		q.namespace = ns
		list := w.list(q)
		innocent("a list of "+what, list.Items)
		if list.RemainingItemCount != nil && *list.RemainingItemCount > 4 {
			t.Errorf("a list of %s tells that %d more are to come", what, *list.RemainingItemCount)
		}
	}
	for _, name := range []string{"dnszone.secret-rival", "arecord.secret-record", "bind9cluster.secret-cluster", "bind9globalcluster.secret-everywhere"} {
		kind, of, _ := subject.ParseName(name)
		_, err := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: kind.Kind, Namespace: ns, Name: of})
		_, never := w.verdicts.getVerdict(w.ctx, desired.Key{Kind: kind.Kind, Namespace: ns, Name: "never-was"})
		if err == nil || never == nil || strings.ReplaceAll(err.Error(), of, "X") != strings.ReplaceAll(never.Error(), "never-was", "X") {
			t.Errorf("asked for %s: %v; for one that does not exist: %v", name, err, never)
		}
	}

	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	sly := w.watch(query{namespace: ns, fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place")}, store.WatchOptions{Bookmarks: true})
	for begun := false; !begun; {
		kind, s := events.next()
		innocent("a watch's "+string(kind), s)
		begun = s.Name == "arecord.www"
	}
	guest.Labels = map[string]string{"secret": "label"}
	w.Apply(guest)
	w.Apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-newcomer"}})
	w.afterDeletion(desired.Key{Kind: "DNSZone", Namespace: "secret-place", Name: "secret.test"}, func() { w.Remove(hidden) })
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.Apply(r)
	for last := false; !last; {
		kind, s := events.next()
		innocent("a watch's "+string(kind), s)
		last = s.Name == "arecord.www" && s.Generation == 2
	}
	sly.begun() // and has told nothing
}
