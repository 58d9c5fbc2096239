package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Paths prints a line for each path to a zone's name servers, those of published names first, and what follows from all of them.
func Paths(s *v1alpha1.SyncStatus, p Palette) string {
	paths := slices.Clone(s.Paths)
	slices.SortStableFunc(paths, func(a, b v1alpha1.Path) int {
		return cmp.Or(compareNames(a.NameServers, b.NameServers), cmp.Compare(a.Address, b.Address), cmp.Compare(b.Protocol, a.Protocol), cmp.Compare(a.Vantage, b.Vantage))
	})
	rows := [][]cell{{{"NAMESERVER", bold}, {"PATH", bold}, {"ADDRESS", bold}, {"PROTOCOL", bold}, {"FROM", bold}, {"STATE", bold}, {"SERVER", bold}, {"SERIAL", bold}, {"RTT", bold}, {"MESSAGE", bold}}}
	for _, path := range paths {
		rows = append(rows, []cell{
			{text: strings.Join(path.NameServers, ",")}, {text: strings.TrimSpace(string(path.Type) + " " + cmp.Or(path.Instance, path.Provider))},
			{text: path.Address}, {text: string(path.Protocol)}, {text: cmp.Or(path.Vantage, "API server")},
			{string(path.State), stateColor(path.State)}, {text: path.Server}, {text: formatNumber(path.Serial)}, {text: roundTrip(path)}, {text: path.Message},
		})
	}
	text := p.formatTable(rows)
	if len(paths) == 0 {
		text = "no path is known: no server of the zone has an address\n"
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnswered); c != nil {
		text += p.paint(conditionColor(c.Status == "True"), "Answered: "+string(c.Status)) + " (" + oneLine(c.Message) + ")\n"
	}
	return text
}

// compareNames sorts nameless paths to the end.
func compareNames(a, b []string) int {
	if (len(a) == 0) != (len(b) == 0) {
		return len(b) - len(a)
	}
	return slices.Compare(a, b)
}

func conditionColor(good bool) textColor {
	if good {
		return green
	}
	return red
}

func roundTrip(p v1alpha1.Path) string {
	if p.RTT == nil {
		return ""
	}
	return p.RTT.Round(10 * time.Microsecond).String()
}
