package heap

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// childVariable names, in the environment of a child, the test that it runs for; argumentVariable has what the parent's setUp returned.
const (
	childVariable    = "LOCKSTEP_HEAP_CHILD"
	argumentVariable = "LOCKSTEP_HEAP_ARGUMENT"
)

// Cost is what a process of its own took.
type Cost struct {
	// Bytes are by how many bytes the memory grew that Go has from the operating system. That never shrinks, so no moment is missed, and the
	// race detector's own memory is not in it.
	Bytes uint64
	// Time is how long it took.
	Time time.Duration
}

// OfChild runs do in a child process, and returns what that took there. setUp runs before in this process, which is the hostile one: it
// returns what do needs to know, such as the address of a server. A failure in the child is one of the test. Whatever the test does before
// OfChild is done in both processes.
func OfChild(t *testing.T, setUp func() string, do func(argument string)) Cost {
	t.Helper()
	if os.Getenv(childVariable) == t.Name() {
		runtime.GC()
		before, began := mapped(), time.Now()
		do(os.Getenv(argumentVariable))
		fmt.Printf("\n%s %d %d\n", childVariable, mapped()-before, time.Since(began))
		t.SkipNow()
	}
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	argument := setUp()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v")
	child.Env = append(os.Environ(), childVariable+"="+t.Name(), argumentVariable+"="+argument)
	out, err := child.CombinedOutput()
	var cost Cost
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), childVariable+" %d %d", &cost.Bytes, &cost.Time); n == 2 && err == nil {
			return cost
		}
	}
	t.Fatalf("the child: %v\n%s", err, out)
	return Cost{}
}

// mapped is how much memory Go has ever had from the operating system.
func mapped() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
