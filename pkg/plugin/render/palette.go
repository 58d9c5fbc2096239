package render

import "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"

// textColor is an SGR parameter of ECMA-48; "" leaves text as it is.
type textColor string

const (
	plain  textColor = ""
	bold   textColor = "1"
	faint  textColor = "2"
	red    textColor = "31"
	green  textColor = "32"
	yellow textColor = "33"
	cyan   textColor = "36"
)

// Palette paints text, or leaves it alone.
type Palette struct {
	// On turns colors on.
	On bool
}

func (p Palette) paint(c textColor, text string) string {
	if !p.On || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// phaseColor is green for what is well, yellow for what time will put right, red for the rest.
func phaseColor(p v1alpha1.Phase) textColor {
	switch p {
	case v1alpha1.PhaseInSync:
		return green
	case v1alpha1.PhasePropagating:
		return yellow
	default:
		return red
	}
}

func stateColor(s v1alpha1.ServerState) textColor {
	switch s {
	case v1alpha1.StateInSync:
		return green
	case v1alpha1.StateStale:
		return yellow
	default:
		return red
	}
}
