package bindcar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// statistics is the part of named's statistics channel that lists zones.
type statistics struct {
	Views map[string]struct {
		Zones []struct {
			Name   string  `json:"name"`
			Class  string  `json:"class"`
			Type   string  `json:"type"`
			Serial *uint32 `json:"serial"`
		} `json:"zones"`
	} `json:"views"`
}

// view is where named puts everything when no view is configured.
const view = "_default"

func (s *server) listZones(w http.ResponseWriter, r *http.Request) error {
	zones, err := s.zones(r.Context())
	if err != nil {
		return err
	}
	list := ZoneList{Count: len(zones), Zones: make([]string, 0, len(zones)), Items: zones}
	for _, zone := range zones {
		list.Zones = append(list.Zones, zone.Name)
	}
	respond(w, http.StatusOK, list)
	return nil
}

func (s *server) getZone(w http.ResponseWriter, r *http.Request) error {
	name, err := zoneName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	zones, err := s.zones(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(zones, func(z Zone) bool { return z.Name == name })
	if i < 0 {
		return failure(http.StatusNotFound, "zone not found", "zone "+name+" is not on this server")
	}
	respond(w, http.StatusOK, zones[i])
	return nil
}

// zones lists what named serves, sorted by name: its statistics channel has all zones and serials in one answer.
func (s *server) zones(ctx context.Context) ([]Zone, error) {
	stats, err := s.statistics(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.options.ZonesDir)
	if err != nil {
		return nil, fmt.Errorf("listing zone files: %w", err)
	}
	added := make(map[string]bool, len(entries))
	for _, entry := range entries {
		if stem, ok := strings.CutSuffix(entry.Name(), suffixDescription); ok {
			added[stem] = true
		}
	}
	var zones []Zone
	for _, z := range stats.Views[view].Zones {
		if z.Class != "IN" || z.Type != Primary && z.Type != Secondary {
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(z.Name, "."))
		zone := Zone{Name: name, Type: z.Type, Serial: z.Serial, Added: added[fileStem(name)]}
		if zone.Added {
			zone.FilePath = s.files(name).zone()
		}
		zones = append(zones, zone)
	}
	slices.SortFunc(zones, func(a, b Zone) int { return strings.Compare(a.Name, b.Name) })
	return zones, nil
}

func (s *server) statistics(ctx context.Context) (statistics, error) {
	var stats statistics
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.options.StatisticsURL+"/json/v1/zones", nil)
	if err != nil {
		return stats, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return stats, fmt.Errorf("asking named for its zones: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return stats, fmt.Errorf("asking named for its zones: %s", response.Status)
	}
	return stats, json.NewDecoder(response.Body).Decode(&stats)
}
