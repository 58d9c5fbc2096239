package snapshot

import (
	"cmp"
	"slices"
)

// Entry is a key with its value.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Collect makes a map of many entries at once, which takes a fraction of the time of putting them one by one. Of several
// entries of one key the last counts. The map can be edited like one from New.
func Collect[K comparable, V any](hash func(K) uint64, entries []Entry[K, V]) Map[K, V] {
	m := New[K, V](hash)
	if len(entries) == 0 {
		return m
	}
	m.shards = make([][]entry[K, V], shardCount(len(entries)))
	for i, places := range m.places(entries) {
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
		})
		shard := make([]entry[K, V], 0, len(places))
		for _, p := range places {
			e := &entries[p.index]
			if j, again := find(shard, p.hash, e.Key); again {
				shard[j].value = e.Value
				continue
			}
			shard = append(shard, entry[K, V]{p.hash, e.Key, e.Value})
		}
		m.shards[i] = shard
		m.count += len(shard)
	}
	return m
}

// place is where an entry stands in the list that is collected.
type place struct {
	hash  uint64
	index int
}

// places sorts entries into the shards of m.
func (m Map[K, V]) places(entries []Entry[K, V]) [][]place {
	all, ends := make([]place, len(entries)), make([]int, len(m.shards))
	for i := range entries {
		all[i] = place{m.hash(entries[i].Key), i}
		ends[m.index(all[i].hash)]++
	}
	shards, sorted, start := make([][]place, len(m.shards)), make([]place, len(entries)), 0
	for i, size := range ends {
		shards[i] = sorted[start : start : start+size]
		start += size
	}
	for _, p := range all {
		shard := &shards[m.index(p.hash)]
		*shard = append(*shard, p)
	}
	return shards
}
