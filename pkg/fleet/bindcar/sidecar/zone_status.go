package sidecar

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

func (s *server) listZones(w http.ResponseWriter, r *http.Request) error {
	zones, err := s.loadZones(r.Context())
	if err != nil {
		return err
	}
	list := bindcar.ZoneList{Count: len(zones), Zones: make([]string, 0, len(zones)), Items: zones}
	for _, zone := range zones {
		list.Zones = append(list.Zones, zone.Name)
	}
	httperror.WriteJSON(w, http.StatusOK, list)
	return nil
}

func (s *server) getZone(w http.ResponseWriter, r *http.Request) error {
	name, err := zonefile.ParseName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	zone, err := s.loadZone(r.Context(), name)
	if err != nil {
		return err
	}
	httperror.WriteJSON(w, http.StatusOK, zone)
	return nil
}

func (s *server) getZoneStatus(w http.ResponseWriter, r *http.Request) error {
	name, err := zonefile.ParseName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	text, err := s.zoneStatus(r.Context(), name)
	if err != nil {
		return err
	}
	respondSuccess(w, http.StatusOK, "zone status", text)
	return nil
}

// loadZone reads one zone without reading the others.
func (s *server) loadZone(ctx context.Context, name string) (bindcar.Zone, error) {
	text, err := s.zoneStatus(ctx, name)
	if err != nil {
		return bindcar.Zone{}, err
	}
	zone := bindcar.Zone{Name: name, Type: parseType(text)}
	if serial, ok := parseSerial(text); ok {
		zone.Serial = &serial
	}
	if description, err := s.zones.LoadDescription(name); !httperror.IsNotFound(err) {
		s.addDescription(&zone, description)
	}
	if zone.Type != bindcar.Primary && zone.Type != bindcar.Secondary {
		return s.findInList(ctx, name)
	}
	return zone, nil
}

// addDescription adds what we know of a zone that was added here; d is empty when its file is damaged. named reports the type
// only of a zone that has data.
func (s *server) addDescription(zone *bindcar.Zone, d zonefile.Description) {
	zone.Added, zone.FilePath = true, s.zones.Files(zone.Name).Content()
	if d.Name == "" {
		return
	}
	known := func(list []string) []string { return append([]string{}, list...) }
	zone.AlsoNotify, zone.AllowTransfer, zone.Primaries = known(d.AlsoNotify), known(d.AllowTransfer), known(d.Primaries)
	zone.DNSSECPolicy, zone.KeySecret, zone.Owner = d.DNSSECPolicy, d.KeySecret, d.Owner
	zone.OwnerUID, zone.Type = d.OwnerUID, cmp.Or(zone.Type, d.Type)
}

// findInList finds a zone whose type only the list of all has: one without data in the static configuration.
func (s *server) findInList(ctx context.Context, name string) (bindcar.Zone, error) {
	zones, err := s.loadZones(ctx)
	if err != nil {
		return bindcar.Zone{}, err
	}
	i := slices.IndexFunc(zones, func(z bindcar.Zone) bool { return z.Name == name })
	if i < 0 {
		return bindcar.Zone{}, httperror.New(http.StatusNotFound, "zone not found", "zone "+name+" is not on this server")
	}
	return zones[i], nil
}

// loadZones lists what named serves, sorted by name: its statistics channel has all zones and serials in one response.
func (s *server) loadZones(ctx context.Context) ([]bindcar.Zone, error) {
	served, err := s.statistics.Zones(ctx)
	if err != nil {
		return nil, err
	}
	added, damaged, err := s.zones.LoadDescriptions()
	if err != nil {
		return nil, err
	}
	var zones []bindcar.Zone
	for _, z := range served {
		zone := bindcar.Zone{Name: z.Name, Type: z.Type, Serial: z.Serial}
		if d, ok := added[z.Name]; ok || len(damaged) > 0 && s.zones.Files(z.Name).Described() {
			s.addDescription(&zone, d)
		}
		zones = append(zones, zone)
	}
	slices.SortFunc(zones, func(a, b bindcar.Zone) int { return strings.Compare(a.Name, b.Name) })
	return zones, nil
}

// zoneStatus is named's report on a zone, also for one without data.
func (s *server) zoneStatus(ctx context.Context, name string) (string, error) {
	text, err := s.control.Command(ctx, "zonestatus "+name)
	if refused, ok := errors.AsType[*rndc.CommandError](err); ok && refused.NotLoaded() {
		return refused.Message, nil
	}
	return text, err
}

// lookUpSerial asks named for the serial of a zone; 0 when it has no data.
func (s *server) lookUpSerial(ctx context.Context, zone string) (uint32, error) {
	name, err := zonefile.ParseName("zone", zone)
	if err != nil {
		return 0, err
	}
	text, err := s.zoneStatus(ctx, name)
	serial, _ := parseSerial(text)
	return serial, err
}

// Lines of the output of zonestatus. A zone that named signs has two serials, and serves the signed one.
var (
	typeLine         = regexp.MustCompile(`(?m)^type: (\S+)$`)
	serialLine       = regexp.MustCompile(`(?m)^serial: (\d+)$`)
	signedSerialLine = regexp.MustCompile(`(?m)^signed serial: (\d+)$`)
)

// parseType is empty for a zone without data.
func parseType(status string) string {
	if found := typeLine.FindStringSubmatch(status); found != nil {
		return found[1]
	}
	return ""
}

// parseSerial finds the serial that is served; a zone without data has none.
func parseSerial(status string) (uint32, bool) {
	for _, line := range []*regexp.Regexp{signedSerialLine, serialLine} {
		if found := line.FindStringSubmatch(status); found != nil {
			serial, err := strconv.ParseUint(found[1], 10, 32)
			return uint32(serial), err == nil
		}
	}
	return 0, false
}
