package snapshot

import (
	"iter"
	"slices"
)

// Edit is a Map in the making. It is not safe for concurrent use.
type Edit[K comparable, V any] struct {
	m Map[K, V]
	// owned are the shards that this edit has made and may change; nil as long as even the list of shards is another's.
	owned []bool
}

// Edit begins a new version of m, which itself stays as it is. m must come from New, directly or by edits.
func (m Map[K, V]) Edit() *Edit[K, V] { return &Edit[K, V]{m: m} }

// Get finds the value of a key as edited so far.
func (e *Edit[K, V]) Get(key K) (V, bool) { return e.m.Get(key) }

// Near is Map.Near of what was edited so far. The edit must not go on before the iteration has ended.
func (e *Edit[K, V]) Near(key K) iter.Seq2[K, V] { return e.m.Near(key) }

// Len is the number of entries so far.
func (e *Edit[K, V]) Len() int { return e.m.count }

// Put sets the value of a key.
func (e *Edit[K, V]) Put(key K, value V) {
	e.Grow(1)
	h := e.m.hash(key)
	shard := e.shard(h)
	i, ok := find(*shard, h, key)
	if ok {
		(*shard)[i].value = value
		return
	}
	*shard = slices.Insert(*shard, i, entry[K, V]{h, key, value})
	e.m.count++
}

// Delete removes a key, which need not be there.
func (e *Edit[K, V]) Delete(key K) {
	if _, ok := e.m.Get(key); !ok {
		return
	}
	h := e.m.hash(key)
	shard := e.shard(h)
	i, _ := find(*shard, h, key)
	*shard = slices.Delete(*shard, i, i+1)
	e.m.count--
}

// Grow makes room for n further entries. Nobody needs to call it; who adds many saves time by it.
func (e *Edit[K, V]) Grow(n int) {
	if want := shardCount(e.m.count + n); want > 2*len(e.m.shards) {
		e.m = e.m.resharded(want)
		e.owned = slices.Repeat([]bool{true}, want)
	}
}

// Map ends the edit and gives its outcome. Should the edit go on, it does so on a copy.
func (e *Edit[K, V]) Map() Map[K, V] {
	if want := shardCount(e.m.count); 16*want < len(e.m.shards) {
		e.m, e.owned = e.m.resharded(want), nil
	}
	for i, owned := range e.owned {
		if s := e.m.shards[i]; owned && cap(s) > roomy(roomy(len(s))) {
			e.m.shards[i] = append(make([]entry[K, V], 0, len(s)), s...)
		}
	}
	e.owned = nil
	return e.m
}

// shard gives the shard of a hash for writing.
func (e *Edit[K, V]) shard(hash uint64) *[]entry[K, V] {
	if e.owned == nil {
		e.m.shards = slices.Clone(e.m.shards)
		e.owned = make([]bool, len(e.m.shards))
	}
	i := e.m.index(hash)
	s := &e.m.shards[i]
	if !e.owned[i] {
		e.owned[i] = true
		*s = append(make([]entry[K, V], 0, roomy(len(*s))), *s...)
	}
	return s
}

// roomy leaves room for a few more entries, so that a small edit copies a shard once.
func roomy(entries int) int { return entries + entries/16 + 1 }

// resharded is m in another number of shards.
func (m Map[K, V]) resharded(shards int) Map[K, V] {
	sizes := make([]int, shards)
	for _, shard := range m.shards {
		for i := range shard {
			sizes[index(shard[i].hash, shards)]++
		}
	}
	next := Map[K, V]{hash: m.hash, shards: make([][]entry[K, V], shards), count: m.count}
	for _, shard := range m.shards {
		for _, e := range shard { // In the order of hashes, and so they stay.
			s := &next.shards[index(e.hash, shards)]
			if *s == nil {
				*s = make([]entry[K, V], 0, sizes[index(e.hash, shards)])
			}
			*s = append(*s, e)
		}
	}
	return next
}
