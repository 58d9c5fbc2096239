package observe_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/named"
)

// TestZonesBeyondLimits: a zone that is too large has an error that names server and flag, is not transferred again at once,
// and neither the memory of other namespaces nor their zones suffer.
func TestZonesBeyondLimits(t *testing.T) {
	t.Parallel()
	hostile := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(2000)}, {Name: "small.test."}}})
	honest := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Records: hosts(100)}}})
	p := named.StartProxy(t, hostile.Addr)
	var transfers atomic.Int32
	p.Filter(func(network string, reply []byte) ([]byte, error) {
		if network == "tcp" {
			transfers.Add(1)
		}
		return reply, nil
	})
	for name, tc := range map[string]struct {
		limits observe.Limits
		want   string
	}{
		"records": {observe.Limits{ZoneRecords: 1000}, "the zone exceeds the limit of 1000 records, which --max-zone-records sets"},
		"bytes":   {observe.Limits{ZoneBytes: 200_000}, "the zone exceeds the limit of 200000 bytes, which --max-zone-bytes sets"},
		"total": {observe.Limits{TotalBytes: 800_000},
			"the content of all zones of namespace hostile exceeds the limit of 400000 bytes, half, which --max-content-bytes sets"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe.New(observe.Options{Limits: tc.limits})
			hostileZone, honestZone := observe.Zone{Namespace: "hostile", Name: zone}, observe.Zone{Namespace: "honest", Name: zone}
			for range 2 {
				obs := o.Observe(t.Context(), peerAt(p.Addr), hostileZone, &hostile.Transfer, time.Now())
				if obs.Mirror != nil || obs.Reason() != observe.ReasonTransferFailed || obs.Message() != "the zone's content could not be transferred: "+tc.want ||
					!strings.Contains(obs.Err.Error(), p.Addr.String()) || !errors.Is(obs.Err, wire.ErrTooLarge) {
					t.Errorf("%s: %v", obs.Message(), obs.Err)
				}
			}
			if n := transfers.Swap(0); n > 4 {
				t.Errorf("transferred again at once: %d messages", n)
			}
			if charged := o.Charged(); charged != 0 {
				t.Errorf("%d bytes are charged for a zone that was not taken", charged)
			}
			if obs := o.Observe(t.Context(), peerAt(honest.Addr), honestZone, &honest.Transfer, time.Now()); obs.Mirror == nil {
				t.Errorf("the zone of another namespace: %v", obs.Err)
			}
			if o.Charged() == 0 {
				t.Error("nothing is charged for a mirror")
			}
			o.Forget(peerAt(honest.Addr), honestZone)
			if charged := o.Charged(); charged != 0 {
				t.Errorf("%d bytes are charged for a zone that was forgotten", charged)
			}
		})
	}
}

// TestUnsignedSOA: an answer without a valid signature shows that a server runs, and nothing else: it is no evidence that the
// zone is unchanged, although it says so.
func TestUnsignedSOA(t *testing.T) {
	t.Parallel()
	s := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7}}})
	p := named.StartProxy(t, s.Addr)
	o := observe.New(observe.Options{})
	if obs := o.Observe(t.Context(), peerAt(p.Addr), zoneOf(zone), &s.Transfer, time.Now()); obs.Mirror == nil {
		t.Fatal(obs.Err)
	}
	stranger := named.NewKey("stranger.")
	for name, tc := range map[string]struct {
		key    *wire.Key
		filter named.Filter
		want   string
	}{
		"signature taken off": {&s.Transfer, func(_ string, reply []byte) ([]byte, error) { return withoutSignature(reply), nil },
			"the zone's content could not be transferred: the reply to a signed request is not signed"},
		"other serial": {&s.Transfer, func(_ string, reply []byte) ([]byte, error) { return withSerial(reply, 8), nil },
			"the zone's content could not be transferred: the reply's signature is not valid"},
		"unknown key": {&stranger, func(_ string, reply []byte) ([]byte, error) { return reply, nil },
			"the zone's content could not be transferred: BADKEY: the server does not know the key"},
	} {
		t.Run(name, func(t *testing.T) {
			p.Filter(tc.filter)
			for what, obs := range map[string]observe.Observation{
				"content": o.Observe(t.Context(), peerAt(p.Addr), zoneOf(zone), tc.key, time.Now()),
				"serial":  o.Serial(t.Context(), peerAt(p.Addr), zone, tc.key),
			} {
				if obs.Mirror != nil || !obs.Unverified || !obs.Authoritative || obs.Err == nil || obs.Reason() != observe.ReasonTransferFailed {
					t.Errorf("%s: %+v", what, obs)
				}
				if got := obs.Message(); got != tc.want {
					t.Errorf("%s: %q, want %q", what, got, tc.want)
				}
			}
		})
	}
	p.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	if obs := o.Observe(t.Context(), peerAt(p.Addr), zoneOf(zone), &s.Transfer, time.Now()); obs.Mirror == nil || obs.Unverified {
		t.Errorf("as it is: %+v", obs)
	}
}

// TestUnsignedContent: what was transferred without a key is not the content that a signed SOA stands for.
func TestUnsignedContent(t *testing.T) {
	t.Parallel()
	spoofer := named.Start(t, named.Options{Zones: []named.Zone{{Name: zone, Serial: 7, Records: "www A 203.0.113.66", Extra: "allow-transfer { any; };"}}})
	o := observe.New(observe.Options{})
	if obs := o.Observe(t.Context(), peerAt(spoofer.Addr), zoneOf(zone), nil, time.Now()); obs.Mirror == nil {
		t.Fatal(obs.Err)
	}
	spoofer.Stop()
	honest := named.Start(t, named.Options{Addr: spoofer.Addr, Zones: []named.Zone{{Name: zone, Serial: 7, Records: "www A 192.0.2.7"}}})
	obs := o.Observe(t.Context(), peerAt(honest.Addr), zoneOf(zone), &honest.Transfer, time.Now())
	if obs.Mirror == nil {
		t.Fatal(obs.Err)
	}
	if www, _ := obs.Mirror.Get(rrset.Key{Name: "www." + zone, Type: dns.TypeA}); len(www.Rdata) != 1 || www.Rdata[0] != "192.0.2.7" {
		t.Errorf("the content has %v", www)
	}
}

func withoutSignature(reply []byte) []byte {
	return change(reply, func(m *dns.Msg) {
		if m.IsTsig() != nil {
			m.Extra = m.Extra[:len(m.Extra)-1]
		}
	})
}

func withSerial(reply []byte, serial uint32) []byte {
	return change(reply, func(m *dns.Msg) {
		for _, rr := range m.Answer {
			if soa, ok := rr.(*dns.SOA); ok {
				soa.Serial = serial
			}
		}
	})
}

func change(reply []byte, edit func(*dns.Msg)) []byte {
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		panic(fmt.Sprint("a reply of named: ", err))
	}
	edit(m)
	out, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return out
}
