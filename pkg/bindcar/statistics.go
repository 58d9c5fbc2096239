package bindcar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Statistics is the answer to GET /statistics: named's own counters since BootTime, by named's own names. Counters that
// named leaves out are zero.
type Statistics struct {
	// Version of named.
	Version string `json:"version"`
	// BootTime is when named started, ConfigTime when it read its configuration last.
	BootTime   time.Time `json:"bootTime"`
	ConfigTime time.Time `json:"configTime"`
	// Zones counts primary and secondary zones, and those of them that have data.
	Zones ZoneCounts `json:"zones"`
	// Requests are counted by opcode, Queries by type, Responses by rcode.
	Requests  map[string]uint64 `json:"requests"`
	Queries   map[string]uint64 `json:"queries"`
	Responses map[string]uint64 `json:"responses"`
	Transfers TransferCounts    `json:"transfers"`
	// Notifies and Updates (RFC 1996, RFC 2136) are those that named sent and took.
	Notifies NotifyCounts `json:"notifies"`
	Updates  UpdateCounts `json:"updates"`
}

// ZoneCounts are numbers of zones.
type ZoneCounts struct {
	Primary   int `json:"primary"`
	Secondary int `json:"secondary"`
	Loaded    int `json:"loaded"`
}

// TransferCounts are numbers of zone transfers: those that this server asked for, and those that it was asked for.
type TransferCounts struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`
	Served    uint64 `json:"served"`
	Refused   uint64 `json:"refused"`
}

// NotifyCounts are numbers of NOTIFY messages.
type NotifyCounts struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
	Refused  uint64 `json:"refused"`
}

// UpdateCounts are numbers of UPDATE messages; an unmet prerequisite is how a compare-and-swap fails.
type UpdateCounts struct {
	Done              uint64 `json:"done"`
	Refused           uint64 `json:"refused"`
	Failed            uint64 `json:"failed"`
	UnmetPrerequisite uint64 `json:"unmetPrerequisite"`
}

// serverStatistics is the part of named's statistics channel that we read (/json/v1/server).
type serverStatistics struct {
	Version    string            `json:"version"`
	BootTime   time.Time         `json:"boot-time"`
	ConfigTime time.Time         `json:"config-time"`
	Opcodes    map[string]uint64 `json:"opcodes"`
	Rcodes     map[string]uint64 `json:"rcodes"`
	Qtypes     map[string]uint64 `json:"qtypes"`
	Server     map[string]uint64 `json:"nsstats"`
	Zone       map[string]uint64 `json:"zonestats"`
}

func (s *server) getStatistics(w http.ResponseWriter, r *http.Request) error {
	stats, err := s.statistics(r.Context())
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, stats)
	return nil
}

func (s *server) statistics(ctx context.Context) (Statistics, error) {
	var raw serverStatistics
	if err := s.readStatistics(ctx, "server", &raw); err != nil {
		return Statistics{}, err
	}
	var listed zoneStatistics
	if err := s.readStatistics(ctx, "zones", &listed); err != nil {
		return Statistics{}, err
	}
	stats := raw.summary()
	for _, zone := range listed.Views[view].Zones {
		switch {
		case zone.Class != "IN":
			continue
		case zone.Type == Primary:
			stats.Zones.Primary++
		case zone.Type == Secondary:
			stats.Zones.Secondary++
		default:
			continue
		}
		if zone.Serial != nil {
			stats.Zones.Loaded++
		}
	}
	return stats, nil
}

func (raw serverStatistics) summary() Statistics {
	return Statistics{
		Version: raw.Version, BootTime: raw.BootTime, ConfigTime: raw.ConfigTime,
		Requests: counted(raw.Opcodes), Queries: counted(raw.Qtypes), Responses: counted(raw.Rcodes),
		Transfers: TransferCounts{
			Succeeded: raw.Zone["XfrSuccess"], Failed: raw.Zone["XfrFail"], Served: raw.Server["XfrReqDone"], Refused: raw.Server["XfrRej"],
		},
		Notifies: NotifyCounts{
			Sent:     raw.Zone["NotifyOutv4"] + raw.Zone["NotifyOutv6"],
			Received: raw.Zone["NotifyInv4"] + raw.Zone["NotifyInv6"],
			Refused:  raw.Zone["NotifyRej"],
		},
		Updates: UpdateCounts{
			Done: raw.Server["UpdateDone"], Refused: raw.Server["UpdateRej"], Failed: raw.Server["UpdateFail"],
			UnmetPrerequisite: raw.Server["UpdateBadPrereq"],
		},
	}
}

// counted leaves out what never happened: named lists every code that could be.
func counted(all map[string]uint64) map[string]uint64 {
	some := map[string]uint64{}
	for name, count := range all {
		if count > 0 {
			some[name] = count
		}
	}
	return some
}

// readStatistics asks named's statistics channel for one of its documents.
func (s *server) readStatistics(ctx context.Context, document string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.options.StatisticsURL+"/json/v1/"+document, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking named for its statistics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking named for its statistics: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("reading named's statistics: %w", err)
	}
	return nil
}
