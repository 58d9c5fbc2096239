package sidecar

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

// TestStatistics: what a real named counts while it answers, takes an update and is transferred from.
func TestStatistics(t *testing.T) {
	p, s := pair(t, "counted.example")
	ask(t, p.DNS(), "www.counted.example", dns.TypeA)
	ask(t, p.DNS(), "none.counted.example", dns.TypeAAAA)
	p.update(t, "counted.example", 1)
	eventually(t, func() bool { return serialOf(t, s.DNS(), "counted.example") == firstSerial+1 })
	at, err := p.client.Statistics(testContext(t), p.addr)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(at.Version, "9.") || time.Since(at.BootTime) > time.Minute || at.ConfigTime.Before(at.BootTime) {
		t.Errorf("version %q, started %v, configured %v", at.Version, at.BootTime, at.ConfigTime)
	}
	if at.Zones != (bindcar.ZoneCounts{Primary: 1, Loaded: 1}) {
		t.Errorf("zones %+v", at.Zones)
	}
	if at.Queries["A"] == 0 || at.Queries["AAAA"] == 0 || at.Requests["UPDATE"] == 0 || at.Responses["NXDOMAIN"] == 0 || at.Responses["NOERROR"] == 0 {
		t.Errorf("queries %v, requests %v, responses %v", at.Queries, at.Requests, at.Responses)
	}
	if _, told := at.Responses["SERVFAIL"]; told {
		t.Errorf("responses that never were: %v", at.Responses)
	}
	if at.Transfers.Served == 0 || at.Updates.Done == 0 || at.Notifies.Sent == 0 {
		t.Errorf("transfers %+v, updates %+v, notifies %+v", at.Transfers, at.Updates, at.Notifies)
	}
	at, err = s.client.Statistics(testContext(t), s.addr)
	if err != nil || at.Zones != (bindcar.ZoneCounts{Secondary: 1, Loaded: 1}) || at.Transfers.Succeeded == 0 || at.Notifies.Received == 0 {
		t.Errorf("secondary: %+v, %v", at, err)
	}
}

// TestMetrics: the metrics follow named and say so when it is away. Readers of metrics read them and nothing else.
func TestMetrics(t *testing.T) {
	s := start(t, v1beta1.RolePrimary, [2]*wire.Key{})
	if err := s.client.CreateZone(testContext(t), s.addr, primaryZone("metrics.example", s.UpdateKey.Name)); err != nil {
		t.Fatal(err)
	}
	ask(t, s.DNS(), "www.metrics.example", dns.TypeA)
	text := s.metrics(t)
	for path, want := range map[string]int{"/metrics": http.StatusForbidden, bindcar.PathPrefix + "/notices": http.StatusOK, component.VersionPath: http.StatusOK} {
		response := s.respond(t, bindcar.APIServerIdentity, http.MethodGet, path)
		if _ = response.Body.Close(); response.StatusCode != want {
			t.Errorf("%s for the API server: %d, want %d", path, response.StatusCode, want)
		}
	}
	if code := s.request(t, bindcar.MetricsIdentity, http.MethodGet, "/notices"); code != http.StatusForbidden {
		t.Errorf("notices for a reader of metrics: %d", code)
	}
	for _, want := range []string{"bind_up 1", `bind_zones{type="primary"} 1`, "bind_zones_loaded 1", `bind_incoming_queries_total{type="A"} `,
		`bind_response_rcodes_total{rcode="NOERROR"} `, "bind_boot_time_seconds ", `bind_info{version="9.`, "# HELP bindcar_requests_total [ALPHA] "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	s.Stop()
	if _, err := s.client.Statistics(testContext(t), s.addr); !hasCode(err, http.StatusServiceUnavailable) {
		t.Errorf("statistics of a server that is away: %v", err)
	}
	s.stop()
	s.run(t, nil)
	if again := s.metrics(t); !strings.Contains(again, "bind_up 0") {
		t.Error("a server that is away is said to be up")
	}
}

func (s *sidecar) metrics(t *testing.T) string {
	t.Helper()
	response := s.respond(t, bindcar.MetricsIdentity, http.MethodGet, "/metrics")
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	return string(text)
}
