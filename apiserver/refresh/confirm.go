package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/apiserver/evaluate"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// Bounds of confirming wrong data. What exceeds them is judged from the caches.
const (
	// maxLiveReads is how many objects are read past the caches for one evaluation, concurrentReads how many at a time.
	maxLiveReads, concurrentReads = 256, 32
	// maxConfirmations is how often one read confirms verdicts that change each time.
	maxConfirmations = 5
)

// finding is a verdict by which servers hold wrong data on the right serial, or on one ahead of it.
type finding struct {
	key    desired.Key
	digest uint64
	// index is that of the key in its request.
	index int
	// doubted are the servers that are to be asked again, disputed the objects that are to be read past the caches. Of kinds
	// others may exist that decide, too.
	doubted  []placeOfZone
	disputed []desired.Key
	kinds    []kindIn
}

// kindIn is the objects of a kind in a namespace.
type kindIn struct {
	kind      subject.Kind
	namespace string
}

// kindsDeclaring are the kinds of objects that may declare what a verdict compares with, in the namespace of the zone.
func kindsDeclaring(v *syncv1.SyncStatus, namespace string) []kindIn {
	kinds := []kindIn{{subject.EndpointKind, namespace}}
	for _, k := range v1beta1.RecordKinds {
		if slices.ContainsFunc(v.RRsets, func(s syncv1.RRset) bool { return s.Type == k.Type }) {
			kinds = append(kinds, kindIn{subject.Kind{Kind: k.Kind, Resource: k.Resource, Singular: k.Singular}, namespace})
		}
	}
	return kinds
}

type placeOfZone struct {
	zone   *desired.Zone
	server int
}

// findingOf decides whether a verdict has to be confirmed, and by what: by content that was not transferred lately and, if the verdict is
// news, by the objects and by the primaries that a server seems to be ahead of.
func (r *Refresher) findingOf(s *desired.Subject, v *syncv1.SyncStatus) (f finding, doubtful bool) {
	if v == nil || !evaluate.HasWrongData(v) {
		return f, false
	}
	f = finding{key: s.Key, digest: r.publisher.Digest(v)}
	isNews := !r.publisher.IsPublished(s.Key, f.digest)
	for _, z := range s.Declaring() {
		current, ahead, shadowed := evaluate.ServersWithWrongData(v, z)
		for i, server := range z.Servers {
			place := evaluate.PlaceOf(server, z.Declared.ZoneName())
			if slices.Contains(current, server.Addr) && r.asker.DoubtContent(place) || isNews && len(ahead) > 0 && server.Role == observe.Primary && server.Addr.IsValid() {
				f.doubted = append(f.doubted, placeOfZone{z, i})
			}
		}
		if isNews && len(current)+len(ahead)+len(shadowed) > 0 {
			f.disputed = append(f.disputed, evaluate.DisputedObjects(s.Key, v, z)...)
			f.kinds = append(f.kinds, kindsDeclaring(v, z.Key.Namespace)...)
		}
	}
	return f, len(f.doubted)+len(f.disputed) > 0
}

// confirm asks the servers and kube-apiserver again for what findings follow from. Without an answer the caches are believed.
func (r *Refresher) confirm(ctx context.Context, found []finding) {
	places, disputed, kinds := map[placeOfZone]bool{}, map[desired.Key]bool{}, map[kindIn]bool{}
	for _, f := range found {
		for _, p := range f.doubted {
			places[p] = true
		}
		for _, of := range f.kinds {
			kinds[of] = true
		}
		for _, key := range f.disputed {
			if len(disputed) < maxLiveReads {
				disputed[key] = true
			}
		}
	}
	began := time.Now()
	var questions, reads sync.WaitGroup
	for p := range places {
		server := p.zone.Servers[p.server]
		if !r.asker.IsSilentSince(evaluate.PlaceOf(server, p.zone.Declared.ZoneName()), time.Time{}) { // It was asked a moment ago.
			questions.Go(func() { r.asker.AskServer(ctx, p.zone, server, began) })
		}
	}
	questions.Wait()
	ctx, cancel := context.WithTimeout(ctx, r.options.Deadline)
	defer cancel()
	for of := range kinds {
		reads.Go(func() { r.waitForKind(ctx, of) })
	}
	turns := make(chan struct{}, concurrentReads)
	for key := range disputed {
		turns <- struct{}{}
		reads.Go(func() {
			_ = r.WaitForObject(ctx, key)
			<-turns
		})
	}
	reads.Wait()
}
