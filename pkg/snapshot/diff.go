package snapshot

import (
	"iter"
	"slices"
)

// Diff yields, once each and in no particular order, the keys that one of two maps has and the other has not, and those
// whose values are not the same. It costs as much as there is in the shards that a and b do not have in common; when they
// have different numbers of shards, that is all of them.
func Diff[K comparable, V any](a, b Map[K, V], same func(V, V) bool) iter.Seq[K] {
	return func(yield func(K) bool) {
		if len(a.shards) != len(b.shards) {
			_ = a.lacks(b, same, yield) && b.lacks(a, nil, yield)
			return
		}
		for i, s := range a.shards {
			if t := b.shards[i]; !identical(s, t) && !(lacks(s, t, same, yield) && lacks(t, s, nil, yield)) {
				return
			}
		}
	}
}

// lacks yields the keys of m that o lacks; with same, also those of which o has another value. It is false when yield was.
func (m Map[K, V]) lacks(o Map[K, V], same func(V, V) bool, yield func(K) bool) bool {
	for k, v := range m.All() {
		w, ok := o.Get(k)
		if (!ok || (same != nil && !same(v, w))) && !yield(k) {
			return false
		}
	}
	return true
}

// lacks is Map.lacks for two shards with the same place.
func lacks[K comparable, V any](s, t []entry[K, V], same func(V, V) bool, yield func(K) bool) bool {
	for i := range s {
		j, ok := find(t, s[i].hash, s[i].key)
		if (!ok || (same != nil && !same(s[i].value, t[j].value))) && !yield(s[i].key) {
			return false
		}
	}
	return true
}

// identical tells whether two shards are the same piece of memory.
func identical[K comparable, V any](s, t []entry[K, V]) bool {
	return len(s) == len(t) && (len(s) == 0 || &s[0] == &t[0])
}

// Share gives m with every shard replaced by like's where both hold the same. Maps that were made apart and have much in
// common then take the memory of one, and Diff between them and what follows from them is cheap.
func Share[K comparable, V any](m, like Map[K, V], same func(V, V) bool) Map[K, V] {
	if like.count == 0 {
		return m
	}
	if len(m.shards) != len(like.shards) {
		if !like.fits(m.count) {
			return m
		}
		m = m.resharded(len(like.shards))
	}
	shards, apart := slices.Clone(m.shards), 0
	for i, s := range shards {
		switch t := like.shards[i]; {
		case identical(s, t):
		case equal(s, t, same):
			shards[i] = t
		default:
			apart++
		}
	}
	if apart == 0 {
		return like
	}
	m.shards = shards
	return m
}

// fits tells whether the number of shards of m would do for so many entries.
func (m Map[K, V]) fits(entries int) bool {
	want := shardCount(entries)
	return want <= 2*len(m.shards) && len(m.shards) <= 4*want
}

func equal[K comparable, V any](s, t []entry[K, V], same func(V, V) bool) bool {
	return len(s) == len(t) && lacks(s, t, same, func(K) bool { return false })
}
