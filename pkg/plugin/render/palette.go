package render

import "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"

// textColour is an SGR parameter of ECMA-48; "" leaves text as it is.
type textColour string

const (
	plain  textColour = ""
	bold   textColour = "1"
	faint  textColour = "2"
	red    textColour = "31"
	green  textColour = "32"
	yellow textColour = "33"
	cyan   textColour = "36"
)

// Palette paints text, or leaves it alone.
type Palette struct {
	// On turns colours on.
	On bool
}

func (p Palette) paint(c textColour, text string) string {
	if !p.On || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// phaseColour is green for what is well, yellow for what time will put right, red for the rest.
func phaseColour(p v1alpha1.Phase) textColour {
	switch p {
	case v1alpha1.PhaseInSync:
		return green
	case v1alpha1.PhasePropagating:
		return yellow
	}
	return red
}

func stateColour(s v1alpha1.ServerState) textColour {
	switch s {
	case v1alpha1.StateInSync:
		return green
	case v1alpha1.StateStale:
		return yellow
	}
	return red
}
