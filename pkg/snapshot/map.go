// Package snapshot holds large maps of which many versions exist at once and whose versions differ in little: the content
// of a zone as it was, as it is, and as each of its servers has it.
//
// A Map never changes. A new version is made from an older one by an Edit, which copies only what it touches; all else is
// shared. Because it is shared, Diff finds what changed between two versions without looking at what did not:
//
//	e := zone.Edit()
//	e.Put(key, value)
//	next := e.Map()
//	for key := range snapshot.Diff(zone, next, Value.Equal) { … }
//
// The package knows nothing of DNS and does no I/O.
package snapshot

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// Map is an immutable map. Copies of it are cheap, and any number of goroutines may read it. The zero Map is empty and
// readable; one that is to be edited comes from New.
//
// Maps that are compared (Diff) or share memory (Share) must have the same hash function.
type Map[K comparable, V any] struct {
	hash func(K) uint64
	// shards is empty or a power of two of slices. All entries, shard by shard, are in the order of their hashes: an entry
	// is in the shard that the highest bits of its hash say. No shard changes once a Map that holds it was handed out.
	shards [][]entry[K, V]
	count  int
}

type entry[K comparable, V any] struct {
	hash  uint64
	key   K
	value V
}

// Sizes of shards: small enough that copying one costs microseconds, large enough that there are few.
const (
	shardSize = 128
	maxShards = 4096
)

// shardCount is how many shards suit a number of entries: a power of two.
func shardCount(entries int) int {
	n := max(1, entries/shardSize)
	return min(maxShards, 1<<bits.Len(uint(n-1))) //nolint:gosec // n is positive
}

// New makes an empty Map. hash must spread keys over all 64 bits, as String does. Keys may share a hash on purpose: Near
// then finds them together.
func New[K comparable, V any](hash func(K) uint64) Map[K, V] { return Map[K, V]{hash: hash} }

var seed = maphash.MakeSeed()

// String is the hash of a string, the same for as long as the process runs.
func String(s string) uint64 { return maphash.String(seed, s) }

// Get finds the value of a key. What the value refers to must not be changed.
func (m Map[K, V]) Get(key K) (value V, ok bool) {
	if m.count == 0 {
		return value, false
	}
	h := m.hash(key)
	shard := m.shards[m.index(h)]
	if i, ok := find(shard, h, key); ok {
		return shard[i].value, true
	}
	return value, false
}

// Len is the number of entries.
func (m Map[K, V]) Len() int { return m.count }

// All yields every entry, in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, shard := range m.shards {
			for i := range shard {
				if !yield(shard[i].key, shard[i].value) {
					return
				}
			}
		}
	}
}

// Near yields every entry whose key has the hash of the given one, which need not be there. Keys that are not meant to
// share a hash may do so by chance: callers check.
func (m Map[K, V]) Near(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.count == 0 {
			return
		}
		h := m.hash(key)
		shard := m.shards[m.index(h)]
		for i := first(shard, h); i < len(shard) && shard[i].hash == h; i++ {
			if !yield(shard[i].key, shard[i].value) {
				return
			}
		}
	}
}

// index is the shard of a hash.
func (m Map[K, V]) index(hash uint64) int { return index(hash, len(m.shards)) }

func index(hash uint64, shards int) int {
	return int(hash >> (65 - bits.Len(uint(shards)))) //nolint:gosec // below maxShards
}

// first is where entries of a hash begin, or would.
func first[K comparable, V any](shard []entry[K, V], hash uint64) int {
	lo, hi := 0, len(shard)
	for lo < hi {
		if mid := (lo + hi) / 2; shard[mid].hash < hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find gives the place of a key, or the one where it belongs.
func find[K comparable, V any](shard []entry[K, V], hash uint64, key K) (int, bool) {
	i := first(shard, hash)
	for ; i < len(shard) && shard[i].hash == hash; i++ {
		if shard[i].key == key {
			return i, true
		}
	}
	return i, false
}
