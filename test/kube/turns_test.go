package kube

import "testing"

// The first begin before the others, all in the order in which they came, and never more than there are places. A turn that ends twice, or
// before it began, frees no second place.
func TestTurns(t *testing.T) {
	s := &turns{free: 2}
	queue := map[string]*turn{}
	names := []string{"a", "b", "C", "d", "e", "F"} // Capitals are first.
	for _, name := range names {
		queue[name] = s.addTest(name < "a")
	}
	s.beginTests() // as the first to wait does
	for _, step := range []struct{ end, want string }{
		{"", "CF"}, {"C", "aCF"}, {"C", "aCF"}, {"d", "aCF"}, {"a", "abCF"}, {"b", "abCeF"}, {"F", "abCeF"}, {"e", "abCeF"},
	} {
		if step.end != "" {
			s.end(queue[step.end])
		}
		begun := ""
		for _, name := range names {
			select {
			case <-queue[name].began:
				begun += name
			default:
			}
		}
		if begun != step.want {
			t.Fatalf("after the end of %q, %s have begun, want %s", step.end, begun, step.want)
		}
	}
	s.wait(s.addTest(false)) // There are places again.
}
