package podcheck

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

const (
	// maxExplained is how many zones of a pod named is asked about that it has not loaded.
	maxExplained = 3
	// maxExplanations is how many answers are remembered of a pod.
	maxExplanations = 16
	// explainInterval is how long its answer counts. The question is an order to load the zone, which is in its log each time.
	explainInterval = time.Minute
)

// explanation is why named did not load a zone, in its words, when it was asked.
type explanation struct {
	words string
	at    time.Time
}

// unloadedZones are the zones of a user's own configuration that a pod's named has no data for, the first few with the reason. It leaves
// out those that are loading.
func (c *Checker) unloadedZones(ctx context.Context, gate *readinessGate, sidecar bindcar.Address, list bindcar.ZoneList) (all []string) {
	explained := 0
	for _, zone := range list.Items {
		switch {
		case zone.Added || zone.Serial != nil:
		case zone.Type == bindcar.Secondary:
			all = append(all, zone.Name+": nothing transferred from its primaries yet")
		case explained == maxExplained:
			all = append(all, zone.Name)
		default:
			explained++
			if words := c.explain(ctx, gate, sidecar, zone.Name); words != "" {
				all = append(all, zone.Name+": "+words)
			}
		}
	}
	return all
}

// explain has named load a zone once more, unless it was asked lately, and returns why it cannot; empty if it can.
func (c *Checker) explain(ctx context.Context, gate *readinessGate, sidecar bindcar.Address, zone string) string {
	if known, ok := gate.explanations.Get(zone); ok && c.now().Sub(known.(explanation).at) < explainInterval {
		return known.(explanation).words
	}
	_, err := c.sidecar.Command(ctx, sidecar, zone, "reload")
	var answer *bindcar.Error
	if !errors.As(err, &answer) || answer.Code == 0 {
		return "" // It is loading, or the sidecar did not answer.
	}
	words := strings.TrimPrefix(answer.Details, "rndc reload: ")
	gate.explanations.Add(zone, explanation{words, c.now()})
	return words
}
