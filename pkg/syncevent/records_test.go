package syncevent

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/source"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// settled is a pass over a zone of n records whose statuses already say all there is to say.
func settled(t testing.TB, n int) SyncCompleted {
	t.Helper()
	zone := &v1beta1.DNSZone{}
	zone.Name, zone.UID, zone.Spec.ZoneName = "example", "zone", "example.com"
	zone.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.com.", AdminEmail: "hostmaster.example.com."}
	records := make([]v1beta1.Record, n)
	e := SyncCompleted{Zone: zone, Records: map[types.UID]v1beta1.Record{}, Problem: status.Yes(status.ReconcileSucceeded, ""), At: time.Now()}
	for i := range records {
		name := fmt.Sprintf("host-%d", i)
		r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Generation: 1}}
		r.Spec.Name, r.Spec.IPv4Addresses = name, []string{"192.0.2.1"}
		records[i], e.Records[r.UID] = r, r
	}
	var err error
	if e.Desired, err = source.Build(zone, records, source.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range e.Desired.Declarations {
		d := &e.Desired.Declarations[i]
		own := e.Records[d.Ref.UID].GetRecordStatus()
		*own = status.Record(*own, recordFacts(e, d), e.At)
	}
	return e
}

// A listener without a client can write nothing: that it does not have to is the test.
func TestRecordsAreToldOnce(t *testing.T) {
	l, e := NewRecords(nil), settled(t, 3)
	for range 2 {
		if err := l.OnSyncCompleted(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	d := &e.Desired.Declarations[0]
	record := e.Records[d.Ref.UID]
	for what, change := range map[string]func(*SyncCompleted){
		"the data is not programmed": func(e *SyncCompleted) {
			e.Unprogrammed = map[rrset.Key]status.Verdict{d.Key: status.No(status.ReconcileFailed, "refused")}
		},
		"the zone has a problem": func(e *SyncCompleted) { e.Problem = status.No(status.PrimaryFailed, "gone") },
		"another zone has it": func(e *SyncCompleted) {
			e.Zone = e.Zone.DeepCopy()
			e.Zone.UID = "other"
		},
	} {
		changed := e
		change(&changed)
		if l.knows(record, newsOf(changed, d, record)) {
			t.Errorf("that %s is no news", what)
		}
	}
	record.SetResourceVersion("2")
	if l.knows(record, newsOf(e, d, record)) {
		t.Error("a changed record is not looked at")
	}
}

// What a record says of data that is programmed stays when the primary is away for a moment. Again there is no client.
func TestRecordsKeepTheirStatusWhileAPrimaryIsAway(t *testing.T) {
	l, e := NewRecords(nil), settled(t, 3)
	e.Problem = status.No(status.PrimaryFailed, "connection refused")
	if err := l.OnSyncCompleted(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	d := &e.Desired.Declarations[0]
	record := e.Records[d.Ref.UID]
	changed := *d
	changed.Ref.Generation++
	if !programmed(record, d) || programmed(record, &changed) {
		t.Error("a changed record is taken for programmed, or an unchanged one is not")
	}
}

func BenchmarkRecordsWithoutNews(b *testing.B) {
	l, e := NewRecords(nil), settled(b, 10_000)
	for b.Loop() {
		if err := l.OnSyncCompleted(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}
