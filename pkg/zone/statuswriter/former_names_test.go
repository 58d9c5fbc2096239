package statuswriter

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// patched counts how often an object is changed.
type patched struct {
	*shelf
	changed int
}

func (p *patched) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	p.changed++
	return nil
}

// namedOld is a record that was called old before, and the zone that has it.
func namedOld(t *testing.T) (*v1beta1.ARecord, SyncCompleted) {
	t.Helper()
	record := &v1beta1.ARecord{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "app", Generation: 1}}
	record.Spec.Name, record.Spec.IPv4Addresses = "www", []string{"192.0.2.1"}
	record.SetAnnotations(map[string]string{v1beta1.FormerNamesAnnotation: "old/A"})
	zone := zoneNamed("a")
	desired, err := source.Build(zone, []source.Object{record}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return record, SyncCompleted{Zone: zone, Desired: desired, At: time.Now(), Serial: 7, Programmed: status.True(status.ReconcileSucceeded, "")}
}

// An object whose new name cannot be served, because of data that others have there, has its former names until their data is gone, and no
// longer.
func TestFormerNamesAreForgottenDuringAConflict(t *testing.T) {
	record, pass := namedOld(t)
	for name, noted := range map[string]bool{"www": false, "old": true, "other": false} {
		stuck := rrset.Key{Name: name + "." + pass.Desired.Name, Type: dns.TypeA}
		pass.Unprogrammed = map[rrset.Key]status.Verdict{stuck: status.False(status.Conflict, "")}
		writes := &patched{shelf: shelve(record)}
		w := NewWriter(Options{Client: writes})
		if err := w.removeFormerNames(t.Context(), record, source.PublishedKeys(record, pass.Desired.Name), pass); err != nil {
			t.Fatal(err)
		}
		if is := writes.changed == 0; is != noted {
			t.Errorf("while %s waits, the former names are noted: %t", name, is)
		}
	}
}

// A secondary that is behind may still answer with a former name, and one that does not answer may be back with it: the object has the name
// until the secondary has followed, or was silent for long.
func TestFormerNamesAreNotedUntilTheSecondariesHaveFollowed(t *testing.T) {
	record, pass := namedOld(t)
	w := NewWriter(Options{Client: shelve(record)})
	key, keys, now := source.KeyOf(record), source.PublishedKeys(record, pass.Desired.Name), pass.At
	for i, step := range []struct {
		secondary   ServerOutcome
		look, noted bool
	}{
		{ServerOutcome{HasZone: true, Serial: 7, Current: true}, true, false}, // The first pass: all objects are looked at.
		{ServerOutcome{HasZone: true, Serial: 6}, true, true},
		{ServerOutcome{HasZone: true, Serial: 6}, false, true},
		{ServerOutcome{HasZone: true}, false, true}, // On serial 0.
		{ServerOutcome{SilentSince: now}, false, true},
		{ServerOutcome{SilentSince: now.Add(-silenceLimit)}, true, false},
	} {
		step.secondary.Role = observe.Secondary
		pass.Servers = []ServerOutcome{step.secondary}
		w.OnSyncCompleted(pass)
		if _, look := w.queue.takeTask(key); look != step.look {
			t.Errorf("outcome %d: the object is looked at: %t", i, look)
		}
		w.watchOutcomes(key, record, zoneKey("a"))
		writes := &patched{shelf: shelve(record)}
		w.Client = writes
		if err := w.removeFormerNames(t.Context(), record, keys, pass); err != nil {
			t.Fatal(err)
		}
		if noted := writes.changed == 0; noted != step.noted {
			t.Errorf("outcome %d: the former names are noted: %t", i, noted)
		}
	}
}
