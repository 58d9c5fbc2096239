package snapshot

import (
	"iter"
	"slices"
)

// Edit is a Map under construction. It is not safe for concurrent use.
type Edit[K comparable, V any] struct {
	m Map[K, V]
	// owned are the shards that this edit has copied and may change; nil as long as the list of shards itself is shared.
	owned []bool
}

// Edit starts a new version of m, which itself does not change. m must come from New, directly or by edits.
func (m Map[K, V]) Edit() *Edit[K, V] { return &Edit[K, V]{m: m} }

// Get finds the value of a key as edited so far.
func (e *Edit[K, V]) Get(key K) (V, bool) { return e.m.Get(key) }

// Near is Map.Near of what was edited so far. The edit must not continue before the iteration has ended.
func (e *Edit[K, V]) Near(key K) iter.Seq2[K, V] { return e.m.Near(key) }

// Len counts the entries so far.
func (e *Edit[K, V]) Len() int { return e.m.count }

// Put sets the value of a key.
func (e *Edit[K, V]) Put(key K, value V) {
	e.Grow(1)
	h := e.m.hash(key)
	shard := e.writableShard(h)
	i, ok := findKey(*shard, h, key)
	if ok {
		(*shard)[i].value = value
		return
	}
	*shard = slices.Insert(*shard, i, hashedEntry[K, V]{h, key, value})
	e.m.count++
}

// Delete removes a key, which need not exist.
func (e *Edit[K, V]) Delete(key K) {
	if _, ok := e.m.Get(key); !ok {
		return
	}
	h := e.m.hash(key)
	shard := e.writableShard(h)
	i, _ := findKey(*shard, h, key)
	*shard = slices.Delete(*shard, i, i+1)
	e.m.count--
}

// Grow makes room for n further entries. It is optional and saves time before many are added.
func (e *Edit[K, V]) Grow(n int) {
	if want := shardCount(e.m.count + n); want > 2*len(e.m.shards) {
		e.m = e.m.resharded(want)
		e.owned = slices.Repeat([]bool{true}, want)
	}
}

// Map is the edited map. If the edit continues, it does so on a copy.
func (e *Edit[K, V]) Map() Map[K, V] {
	if want := shardCount(e.m.count); 16*want < len(e.m.shards) {
		e.m, e.owned = e.m.resharded(want), nil
	}
	for i, owned := range e.owned {
		if s := e.m.shards[i]; owned && cap(s) > roomyCapacity(roomyCapacity(len(s))) {
			e.m.shards[i] = append(make([]hashedEntry[K, V], 0, len(s)), s...)
		}
	}
	e.owned = nil
	return e.m
}

// writableShard copies the shard of a hash unless this edit already owns it.
func (e *Edit[K, V]) writableShard(hash uint64) *[]hashedEntry[K, V] {
	if e.owned == nil {
		e.m.shards = slices.Clone(e.m.shards)
		e.owned = make([]bool, len(e.m.shards))
	}
	i := e.m.shardIndex(hash)
	s := &e.m.shards[i]
	if !e.owned[i] {
		e.owned[i] = true
		*s = append(make([]hashedEntry[K, V], 0, roomyCapacity(len(*s))), *s...)
	}
	return s
}

// roomyCapacity leaves room for a few more entries, so that a small edit copies a shard once.
func roomyCapacity(entries int) int { return entries + entries/16 + 1 }

func (m Map[K, V]) resharded(shards int) Map[K, V] {
	sizes := make([]int, shards)
	for _, shard := range m.shards {
		for i := range shard {
			sizes[shardOf(shard[i].hash, shards)]++
		}
	}
	next := Map[K, V]{hash: m.hash, shards: make([][]hashedEntry[K, V], shards), count: m.count}
	for _, shard := range m.shards {
		for _, e := range shard { // In the order of hashes, and so they stay.
			s := &next.shards[shardOf(e.hash, shards)]
			if *s == nil {
				*s = make([]hashedEntry[K, V], 0, sizes[shardOf(e.hash, shards)])
			}
			*s = append(*s, e)
		}
	}
	return next
}
