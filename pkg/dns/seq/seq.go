// Package seq combines iterators lazily: it stores nothing, and reads no element before the caller asks for it.
package seq

import "iter"

// Concat yields the elements of all sequences, one sequence after the other.
func Concat[T any](all ...iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, one := range all {
			for element := range one {
				if !yield(element) {
					return
				}
			}
		}
	}
}

// Map yields of(element) for each element.
func Map[A, B any](all iter.Seq[A], of func(A) B) iter.Seq[B] {
	return func(yield func(B) bool) {
		for element := range all {
			if !yield(of(element)) {
				return
			}
		}
	}
}

// FlatMap yields the elements of of(element) for each element.
func FlatMap[A, B any](all iter.Seq[A], of func(A) iter.Seq[B]) iter.Seq[B] {
	return func(yield func(B) bool) {
		for element := range all {
			for made := range of(element) {
				if !yield(made) {
					return
				}
			}
		}
	}
}

// Count returns the number of elements.
func Count[T any](all iter.Seq[T]) (count int) {
	for range all {
		count++
	}
	return count
}
