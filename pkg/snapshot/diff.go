package snapshot

import (
	"iter"
	"slices"
)

// Diff yields, once each and in no particular order, the keys that only one of two maps has, and those whose values
// differ. It visits the shards that a and b do not share; if they have different numbers of shards, these are all.
func Diff[K comparable, V any](a, b Map[K, V], same func(V, V) bool) iter.Seq[K] {
	return func(yield func(K) bool) {
		if len(a.shards) != len(b.shards) {
			_ = a.yieldLacking(b, same, yield) && b.yieldLacking(a, nil, yield)
			return
		}
		for i, s := range a.shards {
			if t := b.shards[i]; !sameMemory(s, t) && !(yieldShardLacking(s, t, same, yield) && yieldShardLacking(t, s, nil, yield)) {
				return
			}
		}
	}
}

// yieldLacking yields the keys of m that o lacks; with same, also those of which o has another value. It returns false once
// yield did.
func (m Map[K, V]) yieldLacking(o Map[K, V], same func(V, V) bool, yield func(K) bool) bool {
	for k, v := range m.All() {
		w, ok := o.Get(k)
		if (!ok || (same != nil && !same(v, w))) && !yield(k) {
			return false
		}
	}
	return true
}

// yieldShardLacking is Map.yieldLacking for two shards of the same index.
func yieldShardLacking[K comparable, V any](s, t []hashedEntry[K, V], same func(V, V) bool, yield func(K) bool) bool {
	for i := range s {
		j, ok := findKey(t, s[i].hash, s[i].key)
		if (!ok || (same != nil && !same(s[i].value, t[j].value))) && !yield(s[i].key) {
			return false
		}
	}
	return true
}

// sameMemory reports whether two shards are the same slice.
func sameMemory[K comparable, V any](s, t []hashedEntry[K, V]) bool {
	return len(s) == len(t) && (len(s) == 0 || &s[0] == &t[0])
}

// Share returns m with every shard replaced by like's where both hold the same. Maps that were made separately and have
// much in common then take the memory of one, and Diff between them and their successors is cheap.
func Share[K comparable, V any](m, like Map[K, V], same func(V, V) bool) Map[K, V] {
	if like.count == 0 {
		return m
	}
	if len(m.shards) != len(like.shards) {
		if !like.hasShardsFor(m.count) {
			return m
		}
		m = m.resharded(len(like.shards))
	}
	shards, apart := slices.Clone(m.shards), 0
	for i, s := range shards {
		switch t := like.shards[i]; {
		case sameMemory(s, t):
		case equalShards(s, t, same):
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

// hasShardsFor reports whether the number of shards of m suits so many entries.
func (m Map[K, V]) hasShardsFor(entries int) bool {
	want := shardCount(entries)
	return want <= 2*len(m.shards) && len(m.shards) <= 4*want
}

func equalShards[K comparable, V any](s, t []hashedEntry[K, V], same func(V, V) bool) bool {
	return len(s) == len(t) && yieldShardLacking(s, t, same, func(K) bool { return false })
}
