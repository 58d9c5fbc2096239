package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// object is the SyncStatus of an object that is in sync on servers of the given instances.
func object(namespace, kind, name, zone string, instances ...string) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(kind) + "." + name},
		ObjectRef:  v1alpha1.ObjectReference{Kind: kind, Name: name},
		Zone:       zone,
		Status:     v1alpha1.SyncStatusStatus{Phase: v1alpha1.PhaseInSync, InSync: true},
	}
	for _, i := range instances {
		s.Servers = append(s.Servers, v1alpha1.ServerStatus{Instance: i, Pod: i + "-0", State: v1alpha1.StateInSync})
	}
	return s
}

func names(items []v1alpha1.SyncStatus) string {
	var out []string
	for _, s := range items {
		out = append(out, s.Namespace+"/"+s.Name)
	}
	return strings.Join(out, " ")
}

func worldOf(items ...v1alpha1.SyncStatus) statusSet {
	w := statusSet{}
	for i := range items {
		w.put(&items[i])
	}
	return w
}

// What is asked for by name is shown with what belongs to it, and nothing else of what the queries find.
func TestWanted(t *testing.T) {
	zone, double := object("dns", "DNSZone", "z", "example.com"), object("dns", "DNSZone", "double", "example.com")
	www, other := object("dns", "ARecord", "www", "example.com"), object("dns", "ARecord", "other", "example.org")
	shop := object("dns", "DNSEndpoint", "shop", "example.org,example.com")
	elsewhere := object("far", "ARecord", "www", "example.com")
	cluster := object("dns", "Bind9Cluster", "c", "", "p", "s", "foreign")
	cluster.Servers[2].Namespace = "far"
	p, s, foreign, q := object("dns", "Bind9Instance", "p", ""), object("dns", "Bind9Instance", "s", ""), object("dns", "Bind9Instance", "foreign", ""),
		object("dns", "Bind9Instance", "q", "")
	before := object("dns", "Bind9Cluster", "c", "", "q")
	w := worldOf(zone, double, www, other, shop, elsewhere, cluster, p, s, foreign, q)
	for name, tc := range map[string]struct {
		roots []*v1alpha1.SyncStatus
		want  string
	}{
		"a zone":                     {[]*v1alpha1.SyncStatus{&zone}, "dns/arecord.www dns/dnsendpoint.shop dns/dnszone.z"},
		"a record":                   {[]*v1alpha1.SyncStatus{&www}, "dns/arecord.www"},
		"a cluster, as it is by now": {[]*v1alpha1.SyncStatus{&before}, "dns/bind9cluster.c dns/bind9instance.p dns/bind9instance.s"},
		"an instance and a record":   {[]*v1alpha1.SyncStatus{&q, &elsewhere}, "dns/bind9instance.q far/arecord.www"},
		"everything":                 {nil, names(w.sortedItems())},
	} {
		if diff := cmp.Diff(tc.want, names(subtreeSelection{roots: tc.roots}.selectItems(w))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSelection(t *testing.T) {
	o := newOptions()
	for args, want := range map[string]string{
		"":                     " ",
		"arecord/www":          "metadata.name=arecord.www ",
		"dnszones":             "kind=DNSZone ",
		"dnszone/a aaaa/b.com": "metadata.name=dnszone.a , metadata.name=aaaarecord.b.com ",
	} {
		targets, err := parseTargets(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range o.queriesFor(targets) {
			var l metav1.ListOptions
			q.applyTo(&l)
			got = append(got, l.FieldSelector+" "+l.LabelSelector)
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
	o.selector = "app=shop"
	var l metav1.ListOptions
	o.queriesFor(nil)[0].applyTo(&l)
	if l.FieldSelector != "" || l.LabelSelector != "app=shop" {
		t.Errorf("by label: %+v", l)
	}
}

// Who waits for what was deleted meanwhile is told, and not that the rest is in sync.
func TestMissing(t *testing.T) {
	c, w := &statusClient{namespace: "dns"}, worldOf(object("dns", "ARecord", "www", ""), object("far", "MXRecord", "mail", ""))
	for args, want := range map[string]string{
		"":                      "",
		"arecords":              "",
		"mxrecords":             "",
		"arecord/www":           "",
		"arecord/www mx/mail":   "there is no MXRecord mail in namespace dns any more",
		"arecord/gone arecords": "there is no ARecord gone in namespace dns any more",
	} {
		targets, err := parseTargets(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := c.checkNamedExist(w, targets); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}

func TestApply(t *testing.T) {
	www, mail := object("dns", "ARecord", "www", ""), object("dns", "MXRecord", "mail", "")
	off := www
	off.ResourceVersion, off.Status.InSync = "2", false
	w := worldOf(mail)
	for i, tc := range []struct {
		watchEvent
		news bool
	}{
		{watchEvent{current: &www}, true}, {watchEvent{current: &www}, false}, {watchEvent{synced: true}, false}, {watchEvent{current: &off}, true},
		{watchEvent{deleted: &mail}, true}, {watchEvent{deleted: &mail}, false},
	} {
		if news := w.applyEvent(tc.watchEvent); news != tc.news {
			t.Errorf("event %d: news is %v", i, news)
		}
	}
	if got := names(w.sortedItems()); got != "dns/arecord.www" || len(notInSync(w.sortedItems())) != 1 {
		t.Errorf("%s, %d of them behind", got, len(notInSync(w.sortedItems())))
	}
}
