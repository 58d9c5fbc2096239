package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
)

// named returns the metadata of an object; a greater age is older.
func named(namespace, name string, age int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
		CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-time.Duration(age) * time.Hour)),
	}
}

func zone(name, zoneName string, age int) *v1beta1.DNSZone {
	z := &v1beta1.DNSZone{ObjectMeta: named("dns", name, age)}
	z.Spec = v1beta1.DNSZoneSpec{ZoneName: zoneName, ClusterRef: "web", SOARecord: v1beta1.SOARecord{PrimaryNS: "ns1.other.example.", AdminEmail: "admin.other.example."}, RecordsFrom: []v1beta1.RecordSource{{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": name}},
	}}}
	return z
}

func address(object, in, name string, addresses ...string) *v1beta1.ARecord {
	r := &v1beta1.ARecord{ObjectMeta: named("dns", object, 1)}
	r.Labels = map[string]string{"zone": in}
	r.Spec.Name, r.Spec.IPv4Addresses = name, addresses
	return r
}

// describe writes the changes as lines.
func describe(zones []Zone, _ []Object) (lines []string) {
	data := func(d *Data) string {
		if d == nil {
			return "-"
		}
		return fmt.Sprintf("%d %s", d.TTL, strings.Join(d.Values, ","))
	}
	for _, z := range zones {
		for _, c := range z.Changes {
			var by []string
			for _, o := range c.Objects {
				by = append(by, o.Kind+"/"+o.Name)
			}
			lines = append(lines, fmt.Sprintf("%s %s %s: %s > %s by %s", c.Action, c.Name, c.Type, data(c.Before), data(c.After), strings.Join(by, " ")))
		}
		if z.Held {
			lines = append(lines, z.Object.Name+" is held")
		}
		if z.Problem != "" {
			lines = append(lines, "problem of "+z.Object.Name)
		}
	}
	return lines
}

func TestCompare(t *testing.T) {
	main := zone("main", "main.test", 9)
	other := zone("other", "other.test", 9)
	www, mail := address("www", "main", "www", "192.0.2.1"), address("mail", "main", "mail", "192.0.2.2")
	ttl := www.DeepCopy()
	ttl.Spec.TTL = new(int64(60))
	moved := www.DeepCopy()
	moved.Labels = map[string]string{"zone": "other"}
	moved.Annotations = map[string]string{v1beta1.ZoneAnnotation: "main.test"}
	renamed := address("www-2", "main", "www", "192.0.2.1")
	going := mail.DeepCopy()
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{v1beta1.Finalizer}
	endpoint := &v1alpha1.DNSEndpoint{ObjectMeta: named("dns", "ep", 1)}
	endpoint.Spec.Endpoints = []*v1alpha1.Endpoint{{DNSName: "mail.main.test", RecordType: "A", Targets: []string{"192.0.2.9"}}}
	minimum := main.DeepCopy()
	minimum.Spec.SOARecord.NegativeTTL = new(int64(77))
	twice := zone("twice", "main.test", 1)
	guarded := main.DeepCopy()
	guarded.Spec.Guard = &v1beta1.ZoneGuard{Removed: &v1beta1.GuardLimit{Count: new(int32(1))}, Changed: &v1beta1.GuardLimit{Count: new(int32(0))}, NeverEmpty: []string{"www"}}
	tests := map[string]struct {
		before, after []source.Object
		want          []string
	}{
		"nothing": {
			before: []source.Object{main, www}, after: []source.Object{www.DeepCopy(), main.DeepCopy()},
		},
		"one of each": {
			before: []source.Object{main, www, mail},
			after:  []source.Object{main, address("www", "main", "www", "192.0.2.1", "192.0.2.7"), address("new", "main", "new", "192.0.2.3")},
			want: []string{
				"vanishes mail.main.test. A: 3600 192.0.2.2 > - by ARecord/mail",
				"appears new.main.test. A: - > 3600 192.0.2.3 by ARecord/new",
				"changes www.main.test. A: 3600 192.0.2.1 > 3600 192.0.2.1,192.0.2.7 by ARecord/www",
			},
		},
		"TTL":                 {before: []source.Object{main, www}, after: []source.Object{main, ttl}, want: []string{"changes www.main.test. A: 3600 192.0.2.1 > 60 192.0.2.1 by ARecord/www"}},
		"another object":      {before: []source.Object{main, www}, after: []source.Object{main, renamed}},
		"values are united":   {before: []source.Object{main, mail}, after: []source.Object{main, mail, endpoint}, want: []string{"changes mail.main.test. A: 3600 192.0.2.2 > 3600 192.0.2.2,192.0.2.9 by ARecord/mail DNSEndpoint/ep"}},
		"one that is deleted": {before: []source.Object{main, going}, after: []source.Object{main}},
		"to another zone": {
			before: []source.Object{main, other, www}, after: []source.Object{main, other, moved},
			want: []string{
				"vanishes www.main.test. A: 3600 192.0.2.1 > - by ARecord/www",
				"appears www.other.test. A: - > 3600 192.0.2.1 by ARecord/www",
			},
		},
		"a zone": {
			before: []source.Object{main, www}, after: []source.Object{www},
			want: []string{
				"vanishes main.test. SOA: 3600 ns1.other.example. admin.other.example. 0 3600 600 604800 86400 > - by DNSZone/main",
				"vanishes main.test. NS: 3600 ns1.other.example. > - by DNSZone/main",
				"vanishes www.main.test. A: 3600 192.0.2.1 > - by ARecord/www",
			},
		},
		"more than the guard allows": {
			before: []source.Object{guarded, www, mail}, after: []source.Object{guarded, mail},
			want: []string{"vanishes www.main.test. A: 3600 192.0.2.1 > - by ARecord/www", "main is held"},
		},
		"what the guard allows": {
			before: []source.Object{guarded, www, mail}, after: []source.Object{guarded, www},
			want: []string{"vanishes mail.main.test. A: 3600 192.0.2.2 > - by ARecord/mail"},
		},
		"more changes than the guard allows": {
			before: []source.Object{guarded, www, mail}, after: []source.Object{guarded, mail, address("www", "main", "www", "192.0.2.4")},
			want: []string{"changes www.main.test. A: 3600 192.0.2.1 > 3600 192.0.2.4 by ARecord/www", "main is held"},
		},
		"SOA": {
			before: []source.Object{main}, after: []source.Object{minimum},
			want: []string{"changes main.test. SOA: 3600 ns1.other.example. admin.other.example. 0 3600 600 604800 86400 > 3600 ns1.other.example. admin.other.example. 0 3600 600 604800 77 by DNSZone/main"},
		},
		"a zone of a name that another one has": {
			before: []source.Object{main, instance()}, after: []source.Object{main, twice, instance()}, want: []string{"problem of twice"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := describe(Compare(test.before, test.after, "lockstep-system"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if back := describe(Compare(test.after, test.before, "lockstep-system")); len(test.want) > 0 && len(back) > 0 && slices.Equal(back, got) {
				t.Error("the way back is the same")
			}
		})
	}
}

// instance returns a primary that serves all zones of the test.
func instance() *v1beta1.Bind9Instance {
	i := &v1beta1.Bind9Instance{ObjectMeta: named("dns", "web-primary-0", 9)}
	i.Spec.ClusterRef, i.Spec.Role = "web", v1beta1.RolePrimary
	return i
}

// What becomes of records of another namespace when the zone selects it, and when the labels of the namespace change.
func TestCompareOtherNamespaces(t *testing.T) {
	closed := zone("main", "main.test", 9)
	open := closed.DeepCopy()
	open.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "yes"}}
	byName := closed.DeepCopy()
	byName.Spec.RecordsFrom[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "team"}}
	guest := address("www", "main", "www", "192.0.2.1")
	guest.Namespace, guest.Annotations = "team", map[string]string{v1beta1.AllowZoneNamespacesAnnotation: "dns"}
	team := func(label string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"team": label}}}
	}
	added, removed := []string{"appears www.main.test. A: - > 3600 192.0.2.1 by ARecord/www"}, []string{"vanishes www.main.test. A: 3600 192.0.2.1 > - by ARecord/www"}
	for name, c := range map[string]struct {
		before, after []source.Object
		want          []string
	}{
		"the zone opens":                {[]source.Object{closed, guest, team("yes")}, []source.Object{open, guest, team("yes")}, added},
		"the namespace is labeled":      {[]source.Object{open, guest, team("no")}, []source.Object{open, guest, team("yes")}, added},
		"and not any more":              {[]source.Object{open, guest, team("yes")}, []source.Object{open, guest, team("no")}, removed},
		"a namespace known by its name": {[]source.Object{closed, guest}, []source.Object{byName, guest}, added},
		"one that is not known":         {[]source.Object{closed, guest}, []source.Object{open, guest}, nil},
	} {
		if diff := cmp.Diff(c.want, describe(Compare(c.before, c.after, "home"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
