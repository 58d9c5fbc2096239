package integration

import (
	"time"
)

// kinds of steps, each as often as its weight says. A step that is not possible at the moment gives false.
var randomKinds = []struct {
	weight int
	do     func(*world) bool
}{
	{22, (*world).stepCreate},
	{10, (*world).stepChange},
	{9, (*world).stepRename},
	{8, (*world).stepRelabel},
	{10, (*world).stepDelete},
	{5, (*world).stepRecreate},
	{4, (*world).stepRace},
	{5, (*world).stepCreateEndpoint},
	{5, (*world).stepChangeEndpoint},
	{5, (*world).stepForeign},
	{2, (*world).stepForeignGone},
	{5, (*world).stepDrift},
	{2, (*world).stepKillPod},
	{2, (*world).stepKillNamed},
	{1, (*world).stepKillController},
	{2, (*world).stepPause},
	{2, (*world).stepSelector},
	{2, (*world).stepEditZone},
	{1, (*world).stepRecreateZone},
}

// step does one random thing, and now and then lets the controller catch up.
func (w *world) step(i int) {
	w.Helper()
	total := 0
	for _, k := range randomKinds {
		total += k.weight
	}
	w.note("step %d", i)
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

func pick[T any](w *world, of ...T) T { return of[w.rng.IntN(len(of))] }
