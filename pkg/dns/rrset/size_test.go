package rrset

import "testing"

func TestDecodedLength(t *testing.T) {
	for in, want := range map[string]int{`""`: 1, `"ab"`: 3, `"a\"b"`: 4, `"\001\\"`: 3} {
		if got := decodedLength(in); got != want {
			t.Errorf("decodedLength(%s) = %d, want %d", in, got, want)
		}
	}
}
