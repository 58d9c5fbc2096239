package snapshot

import (
	"iter"
	"math/bits"
	"slices"
)

// Diff yields, once each, the keys that only one of two maps has, and those whose values differ. Keys that share a hash follow each
// other. It visits the shards that a and b do not share; if they have different numbers of shards, these are all.
func Diff[K comparable, V any](a, b Map[K, V], same func(V, V) bool) iter.Seq[K] {
	return func(yield func(K) bool) {
		parts := max(len(a.shards), len(b.shards))
		for i := range parts {
			if s, t := a.part(i, parts), b.part(i, parts); !sameMemory(s, t) && !yieldDifferences(s, t, same, yield) {
				return
			}
		}
	}
}

// part cuts out what would be a shard if there were so many, at least as many as there are.
func (m Map[K, V]) part(i, parts int) []hashedEntry[K, V] {
	switch len(m.shards) {
	case 0:
		return nil
	case parts:
		return m.shards[i]
	}
	shard, width := m.shards[i*len(m.shards)/parts], 65-bits.Len(uint(parts))
	if i++; i < parts {
		shard = shard[:firstWithHash(shard, uint64(i)<<width)] //nolint:gosec // below maxShards
	}
	return shard[firstWithHash(shard, uint64(i-1)<<width):] //nolint:gosec // below maxShards
}

// yieldDifferences is Diff for the entries of two shards of the same index. It returns false once yield did.
func yieldDifferences[K comparable, V any](s, t []hashedEntry[K, V], same func(V, V) bool, yield func(K) bool) bool {
	for len(s) > 0 || len(t) > 0 {
		var n, m int // how many entries with the least hash there are
		if len(t) == 0 || len(s) > 0 && s[0].hash <= t[0].hash {
			n = countFirst(s, s[0].hash)
		}
		if n == 0 || len(t) > 0 && t[0].hash == s[0].hash {
			m = countFirst(t, t[0].hash)
		}
		for i := range n {
			if j := indexOf(t[:m], s[i].key); (j < 0 || !same(s[i].value, t[j].value)) && !yield(s[i].key) {
				return false
			}
		}
		for j := range m {
			if indexOf(s[:n], t[j].key) < 0 && !yield(t[j].key) {
				return false
			}
		}
		s, t = s[n:], t[m:]
	}
	return true
}

// countFirst counts the entries at the beginning that have a hash.
func countFirst[K comparable, V any](shard []hashedEntry[K, V], hash uint64) (n int) {
	for n < len(shard) && shard[n].hash == hash {
		n++
	}
	return n
}

func indexOf[K comparable, V any](few []hashedEntry[K, V], key K) int {
	for i := range few {
		if few[i].key == key {
			return i
		}
	}
	return -1
}

// sameMemory reports whether two shards are the same slice.
func sameMemory[K comparable, V any](s, t []hashedEntry[K, V]) bool {
	return len(s) == len(t) && (len(s) == 0 || &s[0] == &t[0])
}

// Share replaces every shard of m by like's where both hold the same. Maps that were made separately and have much in common then take
// the memory of one, and Diff between them and their successors is cheap.
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
		case len(s) == len(t) && yieldDifferences(s, t, same, func(K) bool { return false }):
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

// hasShardsFor decides whether the number of shards of m suits so many entries.
func (m Map[K, V]) hasShardsFor(entries int) bool {
	want := shardCount(entries)
	return want <= 2*len(m.shards) && len(m.shards) <= 4*want
}
