package zoneimport

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/kube/manifest"
)

// zoneDifference is one point in which the manifests do not say what the zone says.
type zoneDifference struct {
	place recordPlace
	key   rrset.Key
	text  string
}

// differenceReport collects differences.
type differenceReport struct{ all []zoneDifference }

// leaveOut notes an RRset that is not in the manifests.
func (r *differenceReport) leaveOut(place recordPlace, key rrset.Key, why string) {
	r.all = append(r.all, zoneDifference{place, key, "left out: " + why})
}

// change notes an RRset that is in the manifests and not as it was.
func (r *differenceReport) change(place recordPlace, key rrset.Key, format string, args ...any) {
	r.all = append(r.all, zoneDifference{place, key, "changed: " + fmt.Sprintf(format, args...)})
}

// write writes one line for each difference, in the order of the zone's files and of names.
func (r *differenceReport) write(w io.Writer) {
	slices.SortStableFunc(r.all, func(a, b zoneDifference) int {
		return cmp.Or(cmp.Compare(a.place.source, b.place.source), cmp.Compare(a.place.line, b.place.line), a.key.Compare(b.key))
	})
	for _, d := range r.all {
		fmt.Fprintln(w, manifest.Printable(fmt.Sprintf("%s: %s: %s", d.place, d.key, d.text)))
	}
}
