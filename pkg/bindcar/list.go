package bindcar

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// zoneStatistics is the part of named's statistics channel that lists zones.
type zoneStatistics struct {
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
	zone, err := s.zone(r.Context(), name)
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, zone)
	return nil
}

// zone describes one zone without a look at the others.
func (s *server) zone(ctx context.Context, name string) (Zone, error) {
	text, err := s.status(ctx, name)
	if err != nil {
		return Zone{}, err
	}
	zone := Zone{Name: name, Type: typeIn(text)}
	if serial, ok := serialIn(text); ok {
		zone.Serial = &serial
	}
	if d, err := loadDescription(s.files(name).description()); !isGone(err) {
		s.describeAs(&zone, d)
	}
	if zone.Type != Primary && zone.Type != Secondary {
		return s.zoneInList(ctx, name)
	}
	return zone, nil
}

// describeAs adds what we know of a zone that was added here. named tells the type only of a zone that has data.
func (s *server) describeAs(zone *Zone, d description) {
	zone.Added, zone.FilePath = true, s.files(zone.Name).zone()
	if d.Name == "" {
		return // it could not be read
	}
	known := func(list []string) []string { return append([]string{}, list...) }
	zone.AlsoNotify, zone.AllowTransfer, zone.Primaries = known(d.AlsoNotify), known(d.AllowTransfer), known(d.Primaries)
	zone.DNSSECPolicy, zone.KeySecret = d.DNSSECPolicy, d.KeySecret
	if zone.Type == "" {
		zone.Type = d.Type
	}
}

// zoneInList finds a zone that only the list of all tells the type of: one without data in the static configuration.
func (s *server) zoneInList(ctx context.Context, name string) (Zone, error) {
	zones, err := s.zones(ctx)
	if err != nil {
		return Zone{}, err
	}
	i := slices.IndexFunc(zones, func(z Zone) bool { return z.Name == name })
	if i < 0 {
		return Zone{}, failure(http.StatusNotFound, "zone not found", "zone "+name+" is not on this server")
	}
	return zones[i], nil
}

// zones lists what named serves, sorted by name: its statistics channel has all zones and serials in one answer.
func (s *server) zones(ctx context.Context) ([]Zone, error) {
	var stats zoneStatistics
	if err := s.readStatistics(ctx, "zones", &stats); err != nil {
		return nil, err
	}
	added, err := s.descriptions.all(s.options.ZonesDir)
	if err != nil {
		return nil, err
	}
	var zones []Zone
	for _, z := range stats.Views[view].Zones {
		if z.Class != "IN" || z.Type != Primary && z.Type != Secondary {
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(z.Name, "."))
		zone := Zone{Name: name, Type: z.Type, Serial: z.Serial}
		if d, ok := added[fileStem(name)]; ok {
			s.describeAs(&zone, d)
		}
		zones = append(zones, zone)
	}
	slices.SortFunc(zones, func(a, b Zone) int { return strings.Compare(a.Name, b.Name) })
	return zones, nil
}
