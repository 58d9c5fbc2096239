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

// maxDifferences is how many differences a report shows: nobody reads more, and a line of a zone file can make 65,536.
const maxDifferences = 10_000

// differenceReport collects differences: the first in the order in which they are found, and the number of the rest.
type differenceReport struct {
	all  []zoneDifference
	more int
}

func (r *differenceReport) add(d zoneDifference) {
	if len(r.all) < maxDifferences {
		r.all = append(r.all, d)
	} else {
		r.more++
	}
}

// count returns how many differences were found.
func (r *differenceReport) count() int { return len(r.all) + r.more }

// leaveOut notes an RRset that is not in the manifests.
func (r *differenceReport) leaveOut(place recordPlace, key rrset.Key, why string) {
	r.add(zoneDifference{place, key, "left out: " + why})
}

// keep notes an RRset that is in the manifests and is not published before something else has changed.
func (r *differenceReport) keep(place recordPlace, key rrset.Key, format string, args ...any) {
	r.add(zoneDifference{place, key, "kept: " + fmt.Sprintf(format, args...)})
}

// change notes an RRset that is in the manifests and not as it was.
func (r *differenceReport) change(place recordPlace, key rrset.Key, format string, args ...any) {
	r.add(zoneDifference{place, key, "changed: " + fmt.Sprintf(format, args...)})
}

// write writes one line for each difference that it has, in the order of the zone's files and of names.
func (r *differenceReport) write(w io.Writer) {
	slices.SortStableFunc(r.all, func(a, b zoneDifference) int {
		return cmp.Or(cmp.Compare(a.place.source, b.place.source), cmp.Compare(a.place.line, b.place.line), a.key.Compare(b.key))
	})
	for _, d := range r.all {
		fmt.Fprintln(w, manifest.Printable(fmt.Sprintf("%s: %s: %s", d.place, d.key, d.text)))
	}
	if r.more > 0 {
		fmt.Fprintf(w, "and %d more differences\n", r.more)
	}
}
