package dnssec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// report counts what became of faults.
type report struct {
	mu    sync.Mutex
	kinds map[string]*tally
}

// tally counts what became of the faults of a kind.
type tally struct {
	faults, rows, undecided, disputed int
	falseSecure, falseBogus, others   int
	// named is how long it took until a watch named what was wrong, or that signatures expire soon; recovered until it called it right again.
	named, recovered []time.Duration
	// unnamed is how often it did not.
	unnamed int
}

func (r *report) note(kind string, change func(*tally)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds = map[string]*tally{}
	}
	if r.kinds[kind] == nil {
		r.kinds[kind] = new(tally)
	}
	change(r.kinds[kind])
}

func (y *tally) add(o *tally) {
	y.faults, y.rows, y.undecided, y.disputed = y.faults+o.faults, y.rows+o.rows, y.undecided+o.undecided, y.disputed+o.disputed
	y.falseSecure, y.falseBogus, y.others, y.unnamed = y.falseSecure+o.falseSecure, y.falseBogus+o.falseBogus, y.others+o.others, y.unnamed+o.unnamed
	y.named, y.recovered = append(y.named, o.named...), append(y.recovered, o.recovered...)
}

// late is how many were named after a time.
func (y *tally) late(limit time.Duration) (n int) {
	for _, d := range y.named {
		if d > limit {
			n++
		}
	}
	return n
}

func (y *tally) String() string {
	return fmt.Sprintf("%6d %6d %9d %8d %6d %6d %6d %7d %7s %7s %7s %7s", y.faults, y.rows, y.undecided, y.disputed, y.falseSecure, y.falseBogus, y.others, y.unnamed,
		quantile(y.named, 50), quantile(y.named, 99), quantile(y.named, 100), quantile(y.recovered, 100))
}

func quantile(all []time.Duration, percent int) string {
	if len(all) == 0 {
		return ""
	}
	all = slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%.1fs", all[min(len(all)-1, len(all)*percent/100)].Seconds())
}

// print writes the table, and fails the test for what must not be.
func (r *report) print(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	var total tally
	fmt.Fprintf(&b, "\n%-18s %6s %6s %9s %8s %6s %6s %6s %7s %7s %7s %7s %7s\n", "kind", "faults", "rows", "undecided", "disputed", "secure", "bogus", "others", "unnamed", "p50", "p99", "max", "back")
	for _, k := range allKinds {
		if y := r.kinds[k.name]; y != nil {
			fmt.Fprintf(&b, "%-18s %s\n", k.name, y)
			total.add(y)
		}
	}
	fmt.Fprintf(&b, "%-18s %s\n%d faults: %d falsely Secure, %d falsely Bogus, %d never named, %d named after more than %s", "all", &total,
		total.faults, total.falseSecure, total.falseBogus, total.unnamed, total.late(soon), soon)
	t.Log(b.String())
	if total.falseSecure+total.falseBogus+total.others+total.unnamed > 0 {
		t.Error("a status was false, or a fault was not named")
	}
}
