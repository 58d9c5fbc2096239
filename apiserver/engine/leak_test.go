package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// Who may read one namespace learns nothing of another's, whatever is asked for: here all of the other is called secret.
func TestNothingOfAnotherNamespaceIsTold(t *testing.T) {
	w := newWorld(t)
	lagging(t, w, bind.Zone{Name: "example.test.", Records: "www A 192.0.2.7"})
	own := zone("example.test", "primary", "secondary")
	r := w.record(own, "www", "192.0.2.7")
	w.apply(own)
	w.apply(r)
	rival := zone("example.test", "primary", "secondary") // of the same name, and younger
	rival.Namespace, rival.Name = "secret-place", "secret-rival"
	rival.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
	hidden := zone("secret.test")
	hidden.Namespace = "secret-place"
	guest := w.record(own, "secret-record", "192.0.2.7") // labelled for a zone that is not in its namespace
	guest.Namespace = "secret-place"
	w.apply(rival)
	w.apply(hidden)
	w.apply(guest)
	w.apply(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-instance"}})
	w.apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-cluster"}})
	w.apply(&v1beta1.Bind9GlobalCluster{ObjectMeta: metav1.ObjectMeta{Name: "secret-everywhere"}, Spec: v1beta1.GlobalClusterSpec{Namespace: "secret-place"}})
	w.eventually("the other namespace is in the caches", func() bool { return len(w.list(Query{Namespace: "secret-place"}).Items) == 6 })
	w.eventually("the own record is in step", func() bool { return w.get("arecord.www").Status.InSync })

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
	all := w.list(Query{Limit: 1})
	elsewhere := page{Namespace: "secret-place", Name: "arecord.secret-record"}.token()
	for what, q := range map[string]Query{
		"everything":                {},
		"a page":                    {Limit: 1},
		"another's page":            {Continue: all.Continue},
		"a page in another place":   {Continue: elsewhere},
		"its namespace":             {Fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place")},
		"not the own namespace":     {Fields: fields.ParseSelectorOrDie("metadata.namespace!=" + ns)},
		"its record":                {Fields: fields.ParseSelectorOrDie("metadata.name=arecord.secret-record")},
		"its record, by both":       {Fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place,metadata.name=arecord.secret-record")},
		"its cluster":               {Fields: fields.ParseSelectorOrDie("metadata.name=bind9globalcluster.secret-everywhere")},
		"its zone":                  {Fields: fields.ParseSelectorOrDie("zone=secret.test")},
		"what is called the same":   {Fields: fields.ParseSelectorOrDie("zone=example.test")},
		"what is in trouble":        {Fields: fields.ParseSelectorOrDie("status.inSync=false")},
		"what has failed":           {Fields: fields.ParseSelectorOrDie("status.failureReason!=")},
		"clusters of all instances": {Fields: fields.ParseSelectorOrDie("kind=Bind9GlobalCluster")},
	} {
		q.Namespace = ns
		list := w.list(q)
		innocent("a list of "+what, list.Items)
		if list.RemainingItemCount != nil && *list.RemainingItemCount > 4 {
			t.Errorf("a list of %s tells that %d more are to come", what, *list.RemainingItemCount)
		}
	}
	for _, name := range []string{"dnszone.secret-rival", "arecord.secret-record", "bind9cluster.secret-cluster", "bind9globalcluster.secret-everywhere"} {
		kind, of, _ := syncstatus.ParseName(name)
		_, err := w.engine.Get(w.ctx, kind, ns, of)
		_, never := w.engine.Get(w.ctx, kind, ns, "never-was")
		if err == nil || never == nil || strings.ReplaceAll(err.Error(), of, "X") != strings.ReplaceAll(never.Error(), "never-was", "X") {
			t.Errorf("asked for %s: %v; for one that does not exist: %v", name, err, never)
		}
	}

	events := w.watch(Query{Namespace: ns}, WatchOptions{})
	sly := w.watch(Query{Namespace: ns, Fields: fields.ParseSelectorOrDie("metadata.namespace=secret-place")}, WatchOptions{})
	for begun := false; !begun; {
		kind, s := events.next()
		innocent("a watch's "+string(kind), s)
		begun = s.Name == "arecord.www"
	}
	guest.Labels = map[string]string{"secret": "label"}
	w.apply(guest)
	w.apply(&v1beta1.Bind9Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "secret-place", Name: "secret-newcomer"}})
	w.remove(hidden)
	w.eventually("the other namespace has changed", func() bool { return len(w.engine.memory.gone(0)) > 0 })
	r.Generation, r.Spec.IPv4Addresses = 2, []string{"192.0.2.8"}
	w.apply(r)
	for last := false; !last; {
		kind, s := events.next()
		innocent("a watch's "+string(kind), s)
		last = s.Name == "arecord.www" && s.Generation == 2
	}
	sly.quiet(10 * time.Millisecond)
}
