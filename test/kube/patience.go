package kube

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Patience is how long a test waits for an event before it calls it lost, by the kind of the event, on an idle machine of the usual speed.
// A test never waits for a time of its own: a limit is no claim about speed, and a slow or busy machine gets a longer one.
type Patience time.Duration

const (
	// Answer is for a process that runs: it answers, or has read what was written.
	Answer = Patience(time.Minute)
	// Settle is for a change of objects: all servers serve it, and all statuses say so.
	Settle = Patience(2 * time.Minute)
	// Start is for pods that are made: scheduled, started, and ready.
	Start = Patience(4 * time.Minute)
	// Roll is for pods that are replaced one after the other, and for Secrets that the kubelet brings to pods several times.
	Roll = Patience(10 * time.Minute)
)

// PatienceEnv is the environment variable with a factor for all waiting.
const PatienceEnv = "LOCKSTEP_PATIENCE"

// Duration returns how long to wait on this machine.
func (p Patience) Duration() time.Duration {
	return time.Duration(float64(p) * slowness())
}

func (p Patience) String() string { return p.Duration().Round(time.Second).String() }

// slowness is how much longer than usual things take here, measured once: at least 1.
var slowness = sync.OnceValue(func() float64 {
	return scale(os.Getenv(PatienceEnv), measureSorting)
})

const (
	// usualSorting is how long measureSorting takes on an idle machine of the usual speed.
	usualSorting = 25 * time.Millisecond
	// longestScale bounds what is measured: a moment without a processor does not make a slow machine, and what Lockstep does by itself
	// every five minutes must not pass for its answer to an event.
	longestScale = 2
)

// scale returns the factor of the environment, or the measured one. It panics if the former is none.
func scale(environment string, measure func() time.Duration) float64 {
	if environment == "" {
		return min(max(1, float64(measure())/float64(usualSorting)), longestScale)
	}
	factor, err := strconv.ParseFloat(environment, 64)
	if err != nil || factor < 1 || factor > 100 {
		panic(fmt.Sprintf("%s is %q, and has to be a number from 1 to 100", PatienceEnv, environment))
	}
	return factor
}

// measureSorting returns the median of five times that 200,000 numbers take to be sorted.
func measureSorting() time.Duration {
	numbers, times := make([]uint64, 200_000), make([]time.Duration, 5)
	for i := range times {
		source := rand.New(rand.NewPCG(1, 2)) // the same numbers each time
		for n := range numbers {
			numbers[n] = source.Uint64()
		}
		began := time.Now()
		slices.Sort(numbers)
		times[i] = time.Since(began)
	}
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
