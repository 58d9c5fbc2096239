package engine

// heardMost is how many namespaces are told apart.
const heardMost = 1000

// heard is the newest revision that any watch of a namespace has been handed, by an event or a bookmark, and may come back
// with. Whatever it has not been told of by then must be told at a newer one. What watches of a single object have heard is
// remembered with the object. hub.delivering guards it.
type heard struct {
	everywhere uint64 // by watches of all namespaces
	in         map[string]uint64
}

// note takes down what a watch of a namespace, "" for all, is handed.
func (h *heard) note(namespace string, rev uint64) {
	switch {
	case rev <= h.of(namespace):
	case namespace == "":
		h.everywhere = rev
	case h.in == nil || len(h.in) >= heardMost && h.in[namespace] == 0:
		h.fold()
		h.in[namespace] = rev
	default:
		h.in[namespace] = rev
	}
}

// fold forgets whose revisions they were. That loses nothing: at worst something is told once more than needed.
func (h *heard) fold() {
	for _, rev := range h.in {
		h.everywhere = max(h.everywhere, rev)
	}
	h.in = map[string]uint64{}
}

// of is what watches that see a namespace have heard.
func (h *heard) of(namespace string) uint64 { return max(h.everywhere, h.in[namespace]) }
