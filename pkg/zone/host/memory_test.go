package host

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// What hosts know stays for as long as they are the zone's.
func TestMemoryIsOfHostsThatAreThere(t *testing.T) {
	var m Memory
	kept, gone := types.NamespacedName{Name: "kept"}, types.NamespacedName{Name: "gone"}
	for _, id := range []types.NamespacedName{kept, gone} {
		*Recall[int](&m, id) = 1
		*Recall[string](&m, id) = "known"
	}
	m.KeepOnly(sets.New(kept))
	left := 0
	m.kept.Range(func(any, any) bool { left++; return true })
	if left != 2 || *Recall[int](&m, kept) != 1 || *Recall[string](&m, kept) != "known" || *Recall[int](&m, gone) != 0 {
		t.Errorf("%d things are left, of a host that is there %d and %q", left, *Recall[int](&m, kept), *Recall[string](&m, kept))
	}
}
