package coredns

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// pageSize is how many keys a read asks for at once, and shrink how many times fewer it asks for after a page that was too large.
const (
	pageSize = 2000
	shrink   = 4
)

// entrySize is what a key and its value take in a snapshot and its content, beside their text.
const entrySize = 512

var (
	// errDisordered is a page that no etcd sends.
	errDisordered = errors.New("etcd answers with keys that it was not asked for, or not in their order")
	// errChanging is a zone that could not be read at one revision.
	errChanging = errors.New("the zone was changed, and etcd compacted, while it was read")
	errTooSlow  = errors.New("etcd takes too long for a zone")
)

// reading is the reading of one zone.
type reading struct {
	*Backend
	client   *clientv3.Client
	snapshot *snapshot
	from, to string
	page     int64 // how many keys are asked for
	pinned   bool  // all pages are of the first one's revision
	decoding sync.WaitGroup
	pages    [][]entry
}

// readZone reads a zone of one revision. If that is compacted meanwhile, whatever has changed between the pages is found by one more
// question.
func (b *Backend) readZone(ctx context.Context, client *clientv3.Client, zone string, memory *outbound.Reservation) (*snapshot, error) {
	s, err := b.read(ctx, client, zone, memory, true)
	for range 3 {
		if !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, errChanging) {
			break
		}
		memory.Release()
		s, err = b.read(ctx, client, zone, memory, false)
	}
	return s, err
}

// read decodes a page while the next one is on its way.
func (b *Backend) read(ctx context.Context, client *clientv3.Client, zone string, memory *outbound.Reservation, pinned bool) (*snapshot, error) {
	s := &snapshot{layout: b.layoutOf(zone), memory: memory}
	r := &reading{Backend: b, client: client, snapshot: s, page: pageSize, pinned: pinned, from: s.pathOf(zone) + "/", to: s.pathOf(zone) + "0"}
	begin := r.from
	defer r.decoding.Wait()
	for {
		more, err := r.next(ctx)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if !pinned {
		if err := r.requireUnchanged(ctx, begin); err != nil {
			return nil, err
		}
	}
	r.decoding.Wait()
	s.entries = slices.Concat(r.pages...)
	return s, nil
}

// next reads a page. It reports whether there are more.
func (r *reading) next(ctx context.Context) (more bool, err error) {
	options := []clientv3.OpOption{clientv3.WithRange(r.to), clientv3.WithLimit(r.page)}
	if r.pinned {
		options = append(options, clientv3.WithRev(r.snapshot.revision))
	}
	page, err := r.get(ctx, r.client, r.from, options...)
	if isTooLarge(err) && r.page > 1 {
		r.page = max(r.page/shrink, 1)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if r.snapshot.revision == 0 {
		r.snapshot.revision = page.Header.GetRevision()
	}
	if err := r.take(page.Kvs); err != nil {
		return false, err
	}
	if page.More && len(page.Kvs) == 0 {
		return false, errDisordered
	}
	return page.More, nil
}

// take keeps a page. Every key comes after the one before, so that each page brings the reading nearer to its end.
func (r *reading) take(kvs []*mvccpb.KeyValue) error {
	size := int64(0)
	for i, kv := range kvs {
		key := string(kv.Key)
		if int64(i) >= r.page || key < r.from || key >= r.to {
			return errDisordered
		}
		r.from = key + "\x00"
		size += int64(len(kv.Key)+len(kv.Value)) + entrySize
	}
	if err := r.snapshot.memory.Add(size); err != nil {
		return err
	}
	entries := make([]entry, len(kvs))
	r.pages = append(r.pages, entries)
	r.decoding.Go(func() {
		for i, kv := range kvs {
			entries[i] = newEntry(string(kv.Key), kv.Value, kv.ModRevision)
		}
	})
	return nil
}

// requireUnchanged fails if the zone has changed since the first page was read: a key was written after it, or there are more or fewer.
func (r *reading) requireUnchanged(ctx context.Context, begin string) error {
	reply, err := r.get(ctx, r.client, begin, clientv3.WithRange(r.to), clientv3.WithLimit(1), clientv3.WithKeysOnly(),
		clientv3.WithMinModRev(r.snapshot.revision+1))
	if err != nil {
		return err
	}
	read := 0
	for _, page := range r.pages {
		read += len(page)
	}
	if len(reply.Kvs) > 0 || reply.Count != int64(read) {
		return errChanging
	}
	return nil
}

// isTooLarge reports whether an answer is larger than one may be, encoded or decoded.
func isTooLarge(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "larger than max") || strings.Contains(err.Error(), errDecodedTooLarge.Error()))
}
