package integration

import (
	"time"
)

// randomKinds are the kinds of steps with their weights. A step that is not possible at the moment returns false.
var randomKinds = []struct {
	weight int
	do     func(*randomWorld) bool
}{
	{22, (*randomWorld).stepCreate},
	{10, (*randomWorld).stepChange},
	{9, (*randomWorld).stepRename},
	{8, (*randomWorld).stepRelabel},
	{10, (*randomWorld).stepDelete},
	{5, (*randomWorld).stepRecreate},
	{4, (*randomWorld).stepRace},
	{5, (*randomWorld).stepCreateEndpoint},
	{5, (*randomWorld).stepChangeEndpoint},
	{5, (*randomWorld).stepForeign},
	{2, (*randomWorld).stepForeignGone},
	{5, (*randomWorld).stepDrift},
	{2, (*randomWorld).stepKillPod},
	{2, (*randomWorld).stepKillNamed},
	{1, (*randomWorld).stepKillController},
	{2, (*randomWorld).stepPause},
	{2, (*randomWorld).stepSelector},
	{2, (*randomWorld).stepEditZone},
	{1, (*randomWorld).stepRecreateZone},
}

// step does one random thing, and now and then lets the controller catch up.
func (w *randomWorld) step(i int) {
	w.Helper()
	total := 0
	for _, k := range randomKinds {
		total += k.weight
	}
	w.logStep("step %d", i)
	for done := false; !done; {
		n := w.rng.IntN(total)
		for _, k := range randomKinds {
			if n -= k.weight; n < 0 {
				done = k.do(w)
				break
			}
		}
	}
	if w.rng.IntN(3) == 0 {
		time.Sleep(time.Duration(w.rng.IntN(200)) * time.Millisecond)
	}
}

func pick[T any](w *randomWorld, of ...T) T { return of[w.rng.IntN(len(of))] }
