package statuswriter

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// settled is a pass over a zone of n records whose statuses already say all there is to say.
func settled(t testing.TB, n int) (SyncCompleted, []source.Object) {
	t.Helper()
	zone := &v1beta1.DNSZone{}
	zone.Namespace, zone.Name, zone.UID, zone.Spec.ZoneName, zone.Generation = "team", "example", "zone", "example.com", 1
	zone.Spec.SOARecord = v1beta1.SOARecord{PrimaryNS: "ns1.example.com.", AdminEmail: "hostmaster.example.com."}
	objects := make([]source.Object, n)
	for i := range objects {
		name := fmt.Sprintf("host-%d", i)
		r := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), ResourceVersion: "1", Generation: 1}}
		r.Spec.Name, r.Spec.IPv4Addresses = name, []string{"192.0.2.1"}
		objects[i] = r
	}
	desired, err := source.Build(zone, objects, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := SyncCompleted{Zone: zone, Desired: desired, Programmed: status.True(status.ReconcileSucceeded, ""), Serial: 7, At: time.Now()}
	for _, o := range objects {
		for _, d := range desired.Of(source.KeyOf(o)) {
			own := o.(v1beta1.Record).GetRecordStatus()
			*own = status.Record(*own, recordFacts(e, d), e.At)
		}
	}
	return e, objects
}

// shelf is a cache of objects to read from. It cannot be written to: that nothing has to be written is what its tests show.
type shelf struct {
	client.Client
	objects map[shelfKey]client.Object
	reads   int
}

type shelfKey struct {
	kind reflect.Type
	name client.ObjectKey
}

func shelve[T client.Object](objects ...T) *shelf {
	s := &shelf{objects: map[shelfKey]client.Object{}}
	for _, o := range objects {
		s.put(o)
	}
	return s
}

func (s *shelf) put(o client.Object) {
	s.objects[shelfKey{reflect.TypeOf(o), client.ObjectKeyFromObject(o)}] = o
}

func (s *shelf) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.reads++
	if o := s.objects[shelfKey{reflect.TypeOf(into), name}]; o != nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
}

// tellAll handles all that waits, in this goroutine.
func (w *Writer) tellAll(t *testing.T) (told int) {
	t.Helper()
	for {
		w.queue.mu.Lock()
		var key source.ObjectKey
		var n statusTask
		for key, n = range w.queue.tasks {
			break
		}
		delete(w.queue.tasks, key)
		w.queue.mu.Unlock()
		if key.Kind == "" {
			return told
		}
		if key.Kind == source.ZoneKind {
			continue
		}
		told++
		if _, err := w.writeObject(t.Context(), key, n); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordsWithoutNewsAreNotWritten(t *testing.T) {
	e, objects := settled(t, 3)
	w := NewWriter(Options{Client: shelve(objects...)})
	first := e
	first.At = e.At.Add(time.Hour)
	w.OnSyncCompleted(first)
	if told := w.tellAll(t); told != 3 {
		t.Errorf("the first pass looks at %d of 3 records", told)
	}
	again := e
	again.Touched = []source.ObjectKey{source.KeyOf(objects[1])}
	w.OnSyncCompleted(again)
	if told := w.tellAll(t); told != 1 {
		t.Errorf("a pass that touched one record looks at %d", told)
	}
	broken := e
	broken.Programmed = status.False(status.PrimaryFailed, "connection refused")
	w.OnSyncCompleted(broken)
	if told := w.tellAll(t); told != 3 {
		t.Errorf("a pass with a new problem looks at %d of 3 records", told)
	}
}

// A zone that selects a record which another one has is woken by its changes as well. What it says must not take the place of
// what the record's own zone has to tell and has not written yet.
func TestAnotherZonesNewsReplaceNone(t *testing.T) {
	e, objects := settled(t, 1)
	w := NewWriter(Options{Client: shelve(objects...)})
	other := e
	other.Zone = e.Zone.DeepCopy()
	other.Zone.Name, other.Zone.UID = "other", "other"
	var err error
	if other.Desired, err = source.Build(other.Zone, nil, source.Options{}); err != nil {
		t.Fatal(err)
	}
	key := source.KeyOf(objects[0])
	for _, e := range []SyncCompleted{e, other} {
		e.Touched = []source.ObjectKey{key}
		w.OnSyncCompleted(e)
	}
	if n, _ := w.queue.takeTask(key); n.zone != client.ObjectKeyFromObject(e.Zone) {
		t.Errorf("the record is told the news of zone %q", n.zone)
	}
}

// What a record says of data that is programmed stays when the primary is away for a moment, but not when it changed.
func TestProgrammedIsAboutThePresentData(t *testing.T) {
	e, objects := settled(t, 1)
	record := objects[0].(v1beta1.Record)
	for _, d := range e.Desired.Of(source.KeyOf(record)) {
		if !isProgrammed(record, d) {
			t.Error("an unchanged record is not taken for programmed")
		}
		d.Ref = ofGeneration(d.Ref, d.Ref.Generation+1)
		if isProgrammed(record, d) {
			t.Error("a changed record is taken for programmed")
		}
	}
}

// ofGeneration returns the reference to another generation of the same object.
func ofGeneration(ref *source.Ref, generation int64) *source.Ref {
	other := *ref
	other.Generation = generation
	return &other
}

func TestAReleaseThatHasBeenOvertaken(t *testing.T) {
	a, b, none := zoneKey("a"), zoneKey("b"), types.NamespacedName{}
	cases := map[string]struct {
		at   Placement
		by   types.NamespacedName
		want bool
	}{
		"nobody has it":                             {Placement{}, a, false},
		"its status still names the zone":           {Placement{Held: []types.NamespacedName{a}}, a, false},
		"another zone waits for it":                 {Placement{Taken: []types.NamespacedName{b}, Held: []types.NamespacedName{a}}, a, false},
		"the zone has taken it again":               {Placement{Taken: []types.NamespacedName{a}}, a, true},
		"it was nobody's and is so":                 {Placement{}, none, false},
		"it was nobody's and a zone has it":         {Placement{Taken: []types.NamespacedName{a}}, none, true},
		"it was nobody's and a zone may hold of it": {Placement{Held: []types.NamespacedName{a}}, none, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.at.isClaimed(c.by); got != c.want {
				t.Errorf("claimed: %t", got)
			}
		})
	}
}

func TestUnreadyCountsDeclarations(t *testing.T) {
	e, _ := settled(t, 5)
	e.Unprogrammed = map[rrset.Key]status.Verdict{
		{Name: "host-1.example.com.", Type: dns.TypeA}:  status.False(status.ReconcileFailed, "refused"),
		{Name: "gone.example.com.", Type: dns.TypeA}:    status.False(status.ReconcileFailed, "still there"),
		{Name: "example.com.", Type: dns.TypeNS}:        status.False(status.ReconcileFailed, "refused"),
		{Name: "host-2.example.com.", Type: dns.TypeMX}: status.False(status.ReconcileFailed, "still there"),
	}
	if f := zoneFacts(e); f.Unready != 1 || f.Ready != 4 {
		t.Errorf("%d are programmed, %d not", f.Ready, f.Unready)
	}
	e.Programmed = status.False(status.PrimaryFailed, "gone")
	if f := zoneFacts(e); f.Unready != 5 || f.Ready != 0 {
		t.Errorf("without a primary %d are programmed, %d not", f.Ready, f.Unready)
	}
}

func TestARecordThatLostIsAbsentOnceItsDataIsSeenToBeGone(t *testing.T) {
	e, objects := settled(t, 1)
	record := objects[0].(v1beta1.Record)
	keys := source.PublishedKeys(record, e.Desired.Name)
	cases := map[string]struct {
		change func(*SyncCompleted, *source.Declaration)
		want   bool
	}{
		"gone":               {func(*SyncCompleted, *source.Declaration) {}, true},
		"accepted":           {func(_ *SyncCompleted, d *source.Declaration) { d.Accepted = true }, false},
		"changed since":      {func(_ *SyncCompleted, d *source.Declaration) { d.Ref = ofGeneration(d.Ref, d.Ref.Generation-1) }, false},
		"the zone is paused": {func(e *SyncCompleted, _ *source.Declaration) { e.Paused, e.Pending = true, 1 }, false},
		"a primary is away": {func(e *SyncCompleted, _ *source.Declaration) {
			e.Programmed = status.False(status.PrimaryFailed, "gone")
		}, false},
		"its deletion is denied": {func(e *SyncCompleted, _ *source.Declaration) {
			e.Unprogrammed = map[rrset.Key]status.Verdict{keys[0]: {}}
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := e
			for _, d := range e.Desired.Of(source.KeyOf(record)) {
				d.Accepted = false
				c.change(&e, &d)
				if got := e.isAbsent(d, record, keys); got != c.want {
					t.Errorf("absent: %t", got)
				}
			}
		})
	}
}

// A record that was renamed to a name at which it cannot be served is absent once its data is gone from the former one.
func TestRenamedRecordIsAbsentOnceItsDataIsGone(t *testing.T) {
	e, objects := settled(t, 1)
	record := objects[0].(v1beta1.Record)
	var own source.Declaration
	for _, d := range e.Desired.Of(source.KeyOf(record)) {
		own = d
	}
	former := rrset.Key{Name: "former." + e.Desired.Name, Type: own.Key.Type}
	for name, c := range map[string]struct {
		published string
		stuck     []rrset.Key
		want      bool
	}{
		"gone":                   {"former.example.com", []rrset.Key{own.Key}, true},
		"still there":            {"former.example.com", []rrset.Key{own.Key, former}, false},
		"other data at its name": {strings.TrimSuffix(own.Key.Name, "."), []rrset.Key{own.Key}, false},
		"never served":           {"", []rrset.Key{own.Key}, false},
	} {
		t.Run(name, func(t *testing.T) {
			record.GetRecordStatus().PublishedName, e.Unprogrammed = c.published, map[rrset.Key]status.Verdict{}
			for _, k := range c.stuck {
				e.Unprogrammed[k] = status.False(status.Conflict, "")
			}
			if got := e.isAbsent(own, record, source.PublishedKeys(record, e.Desired.Name)); got != c.want {
				t.Errorf("absent: %t", got)
			}
		})
	}
}

// That the data of a record that lost is gone at last, after its deletion was refused at first, is no change of the record.
func TestARecordThatLostIsLookedAtAgainWhenItsDataIsGone(t *testing.T) {
	e, objects := settled(t, 1)
	loser := objects[0].(*v1beta1.ARecord)
	winner := &v1beta1.CNAMERecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "older", UID: "older", Generation: 1}}
	winner.Spec.Name, winner.Spec.Target = loser.Spec.Name, "elsewhere.example.net."
	winner.CreationTimestamp = metav1.Unix(1, 0)
	var err error
	if e.Desired, err = source.Build(e.Zone, []source.Object{loser, winner}, source.Options{}); err != nil {
		t.Fatal(err)
	}
	key := source.KeyOf(loser)
	e.Unprogrammed = map[rrset.Key]status.Verdict{{Name: "host-0.example.com.", Type: dns.TypeA}: status.False(status.ReconcileFailed, "refused")}
	for _, d := range e.Desired.Of(key) {
		if d.Accepted {
			t.Fatal("the newer record won")
		}
		loser.Status = status.Record(loser.Status, recordFacts(e, d), e.At)
	}
	w := NewWriter(Options{Client: shelve[source.Object](loser, winner)})
	looked := func() bool {
		w.OnSyncCompleted(e)
		_, posted := w.queue.takeTask(key)
		return posted
	}
	looked()
	if _, err := w.writeObject(t.Context(), key, statusTask{zone: client.ObjectKeyFromObject(e.Zone)}); err != nil {
		t.Fatal(err)
	}
	if looked() {
		t.Error("it is looked at although the outcome is the same")
	}
	e.Unprogrammed = nil
	if !looked() {
		t.Error("it is not looked at when its data is gone")
	}
}

func TestListOfALargeZoneIsBoundedAndStays(t *testing.T) {
	e, objects := settled(t, 3*status.MaxZoneRecords)
	cache := shelve(objects...)
	w := NewWriter(Options{Client: cache})
	list := func(before []v1beta1.RecordReference) []v1beta1.RecordReference {
		cache.reads = 0
		refs := w.listRecords(t.Context(), e, zoneFacts(e).Ready, before)
		if cache.reads > status.MaxZoneRecords {
			t.Errorf("%d reads for a list of %d", cache.reads, len(refs))
		}
		return refs
	}
	first := list(nil)
	if len(first) != status.MaxZoneRecords {
		t.Fatalf("%d records listed", len(first))
	}
	if diff := cmp.Diff(first, list(first)); diff != "" {
		t.Errorf("nothing changed, and the list did:\n%s", diff)
	}
	lost := first[10]
	e.Unprogrammed = map[rrset.Key]status.Verdict{{Name: lost.RecordName + ".example.com.", Type: dns.TypeA}: status.False(status.ReconcileFailed, "refused")}
	after := list(first)
	still := map[string]bool{}
	for _, r := range after {
		still[r.Name] = true
	}
	if len(after) != status.MaxZoneRecords || still[lost.Name] {
		t.Errorf("%d records listed, among them %s: %t", len(after), lost.Name, still[lost.Name])
	}
	for _, r := range first {
		if r.Name != lost.Name && !still[r.Name] {
			t.Errorf("%s left the list without a reason", r.Name)
		}
	}
}

func TestAlsoSelected(t *testing.T) {
	keys := []source.ObjectKey{key("a"), key("b"), key("c"), key("d")}
	cases := map[string]struct {
		e    SyncCompleted
		want string
	}{
		"none":  {SyncCompleted{}, ""},
		"one":   {SyncCompleted{AlsoSelected: keys[:1], OlderZones: []string{"main"}}, "1 record is also selected (ARecord team/a) by an older zone, which has it: DNSZone main"},
		"many":  {SyncCompleted{AlsoSelected: keys, OlderZones: []string{"main", "old"}}, "4 records are also selected (ARecord team/a, ARecord team/b, ARecord team/c, …) by older zones, which have them: DNSZone main, old"},
		"older": {SyncCompleted{AlsoSelected: keys[:2], OlderZones: []string{"a", "b", "c", "d", "e"}}, "2 records are also selected (ARecord team/a, ARecord team/b) by older zones, which have them: DNSZone a, b, c and 2 more"},
		"quiet": {SyncCompleted{AlsoSelected: keys[:2]}, "2 records are also selected (ARecord team/a, ARecord team/b) by older zones, which have them"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := alsoSelectedRemark(c.e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A pass over a large zone that touched one record.
func BenchmarkOnSyncCompleted(b *testing.B) {
	e, objects := settled(b, 100_000)
	w := NewWriter(Options{Client: shelve(objects...)})
	w.OnSyncCompleted(e)
	e.Touched = []source.ObjectKey{source.KeyOf(objects[77])}
	b.ResetTimer()
	for b.Loop() {
		w.OnSyncCompleted(e)
	}
}

// The first pass over a large zone after the start.
func BenchmarkOnFirstSyncCompleted(b *testing.B) {
	e, _ := settled(b, 100_000)
	for b.Loop() {
		w := NewWriter(Options{})
		w.OnSyncCompleted(e)
		w.queue.queue.ShutDown()
	}
}

// Looking at one record that has no news.
func BenchmarkTellNothing(b *testing.B) {
	e, objects := settled(b, 1000)
	w := NewWriter(Options{Client: shelve(objects...)})
	_, _ = w.storeOutcome(client.ObjectKeyFromObject(e.Zone), e)
	n := statusTask{zone: client.ObjectKeyFromObject(e.Zone)}
	i := 0
	for b.Loop() {
		if err := w.writeRecord(b.Context(), source.KeyOf(objects[i%len(objects)]), n); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// What a zone's status costs that is counted for every pass, and listed at most once a second.
func BenchmarkZoneStatus(b *testing.B) {
	e, objects := settled(b, 100_000)
	w := NewWriter(Options{Client: shelve(objects...)})
	refs := w.listRecords(b.Context(), e, 100_000, nil)
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			zoneFacts(e)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			w.listRecords(b.Context(), e, 100_000, refs)
		}
	})
}
