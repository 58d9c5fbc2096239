package render

import "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"

// colour is an SGR parameter of ECMA-48; "" leaves text as it is.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// Palette paints text, or leaves it alone.
type Palette struct {
	// On tells whether there are colours at all.
	On bool
}

func (p Palette) paint(c colour, text string) string {
	if !p.On || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// ofPhase is green for what is well, yellow for what time will put right, red for the rest.
func ofPhase(p v1alpha1.Phase) colour {
	switch p {
	case v1alpha1.PhaseInSync:
		return green
	case v1alpha1.PhasePropagating:
		return yellow
	}
	return red
}

func ofState(s v1alpha1.ServerState) colour {
	switch s {
	case v1alpha1.StateInSync:
		return green
	case v1alpha1.StateStale:
		return yellow
	}
	return red
}
