package mark

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// maxFormerNames bounds the annotation of former names, in bytes: a rewritten DNSEndpoint can leave thousands.
const maxFormerNames = 200 << 10

// mergeFormerNames makes the annotation of former names after an update: what it held, then the names that the update takes away, without
// those that are current. Entries are NAME/TYPE. Of what does not fit into the room (bytes), the oldest entries are dropped; lost counts
// them.
func mergeFormerNames(held string, before, after []string, room int) (former string, lost int) {
	current := make(map[string]bool, len(after))
	for _, entry := range after {
		current[canonicalEntry(entry)] = true
	}
	entries := append(splitEntries(held), before...)
	seen := make(map[string]bool, len(entries))
	var kept []string
	for _, entry := range slices.Backward(entries) {
		same := canonicalEntry(entry)
		if current[same] || seen[same] {
			continue
		}
		seen[same] = true
		if room -= len(entry) + 1; room < -1 || lost > 0 { // the first has no comma
			lost++
			continue
		}
		kept = append(kept, entry)
	}
	slices.Reverse(kept)
	return strings.Join(kept, ","), lost
}

// formerNamesRoom is how long the annotation of former names may be beside an object's other annotations, which Kubernetes
// limits together.
func formerNamesRoom(annotations map[string]string) int {
	room := validation.TotalAnnotationSizeLimitB - len(v1beta1.FormerNamesAnnotation)
	for key, value := range annotations {
		if key != v1beta1.FormerNamesAnnotation {
			room -= len(key) + len(value)
		}
	}
	return min(room, maxFormerNames)
}

func splitEntries(former string) []string {
	var entries []string
	for entry := range strings.SplitSeq(former, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// canonicalEntry makes entries equal that name one RRset: names have no case, and a complete one may end in a dot or not.
func canonicalEntry(entry string) string {
	i := strings.LastIndexByte(entry, '/')
	if i < 0 {
		return entry
	}
	return strings.ToLower(strings.TrimSuffix(entry[:i], ".")) + entry[i:]
}
