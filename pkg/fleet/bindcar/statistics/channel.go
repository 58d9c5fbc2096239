// Package statistics reads the counters of named from its statistics channel.
package statistics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// Channel is named's statistics channel.
type Channel struct {
	// URL of the channel, without a path.
	URL string
}

// Zone is a primary or secondary zone as the channel lists it.
type Zone struct {
	// Name is in lower case, without the final dot.
	Name string `json:"name"`
	// Class of the zone, for example "IN".
	Class string `json:"class"`
	// Type is bindcar.Primary or bindcar.Secondary.
	Type string `json:"type"`
	// Serial is nil while named has no data for the zone.
	Serial *uint32 `json:"serial"`
}

// defaultView is where named puts everything when no view is configured.
const defaultView = "_default"

// Zones lists the zones that named serves.
func (c Channel) Zones(ctx context.Context) ([]Zone, error) {
	var document struct {
		Views map[string]struct {
			Zones []Zone `json:"zones"`
		} `json:"views"`
	}
	if err := c.readDocument(ctx, "zones", &document); err != nil {
		return nil, err
	}
	var zones []Zone
	for _, zone := range document.Views[defaultView].Zones {
		if zone.Class == "IN" && (zone.Type == bindcar.Primary || zone.Type == bindcar.Secondary) {
			zone.Name = strings.ToLower(strings.TrimSuffix(zone.Name, "."))
			zones = append(zones, zone)
		}
	}
	return zones, nil
}

// Transfer is a transfer to a secondary zone that is under way, or the zone's wait for the next one.
type Transfer struct {
	// Zone is in lower case, without the final dot.
	Zone string `json:"name"`
	// Seconds since the transfer began, and the bytes that have come; both 0 while none is under way.
	Seconds int    `json:"duration"`
	Bytes   uint64 `json:"nbytes"`
}

// Transfers lists the transfers to secondary zones. named 9.18 has no such list: this is an error.
func (c Channel) Transfers(ctx context.Context) ([]Transfer, error) {
	var document struct {
		Views map[string]struct {
			Transfers []Transfer `json:"xfrins"`
		} `json:"views"`
	}
	if err := c.readDocument(ctx, "xfrins", &document); err != nil {
		return nil, err
	}
	transfers := document.Views[defaultView].Transfers
	for i := range transfers {
		transfers[i].Zone = strings.ToLower(strings.TrimSuffix(transfers[i].Zone, "."))
	}
	return transfers, nil
}

// serverDocument is the part of /json/v1/server that we read.
type serverDocument struct {
	Version    string            `json:"version"`
	BootTime   time.Time         `json:"boot-time"`
	ConfigTime time.Time         `json:"config-time"`
	Opcodes    map[string]uint64 `json:"opcodes"`
	Rcodes     map[string]uint64 `json:"rcodes"`
	Qtypes     map[string]uint64 `json:"qtypes"`
	Server     map[string]uint64 `json:"nsstats"`
	Zone       map[string]uint64 `json:"zonestats"`
}

// Read reads all counters.
func (c Channel) Read(ctx context.Context) (bindcar.Statistics, error) {
	var document serverDocument
	if err := c.readDocument(ctx, "server", &document); err != nil {
		return bindcar.Statistics{}, err
	}
	zones, err := c.Zones(ctx)
	if err != nil {
		return bindcar.Statistics{}, err
	}
	stats := document.summarize()
	for _, zone := range zones {
		if zone.Type == bindcar.Primary {
			stats.Zones.Primary++
		} else {
			stats.Zones.Secondary++
		}
		if zone.Serial != nil {
			stats.Zones.Loaded++
		}
	}
	return stats, nil
}

func (d serverDocument) summarize() bindcar.Statistics {
	return bindcar.Statistics{
		Version: d.Version, BootTime: d.BootTime, ConfigTime: d.ConfigTime,
		Requests: withoutZeros(d.Opcodes), Queries: withoutZeros(d.Qtypes), Responses: withoutZeros(d.Rcodes),
		Transfers: bindcar.TransferCounts{
			Succeeded: d.Zone["XfrSuccess"], Failed: d.Zone["XfrFail"], Served: d.Server["XfrReqDone"], Refused: d.Server["XfrRej"],
		},
		Notifies: bindcar.NotifyCounts{
			Sent:     d.Zone["NotifyOutv4"] + d.Zone["NotifyOutv6"],
			Received: d.Zone["NotifyInv4"] + d.Zone["NotifyInv6"],
			Refused:  d.Zone["NotifyRej"],
		},
		Updates: bindcar.UpdateCounts{
			Done: d.Server["UpdateDone"], Refused: d.Server["UpdateRej"], Failed: d.Server["UpdateFail"],
			UnmetPrerequisite: d.Server["UpdateBadPrereq"],
		},
		RateLimited: bindcar.RateLimitCounts{Truncated: d.Server["RateSlipped"], Dropped: d.Server["RateDropped"]},
	}
}

// withoutZeros leaves out what never happened: named lists every code that could be.
func withoutZeros(all map[string]uint64) map[string]uint64 {
	some := map[string]uint64{}
	for name, count := range all {
		if count > 0 {
			some[name] = count
		}
	}
	return some
}

func (c Channel) readDocument(ctx context.Context, document string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/json/v1/"+document, nil)
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
