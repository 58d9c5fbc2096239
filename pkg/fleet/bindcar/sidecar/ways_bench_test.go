package sidecar

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// BenchmarkThousandZones is how long a thousand new zones take until a primary and two secondaries serve all of them: over
// the API as the controller uses it, and without it, with the secondaries taught zone by zone or by a catalog (RFC 9432).
// Run it with -benchtime 1x; the ways are to be compared, the figures hold for the machine.
func BenchmarkThousandZones(b *testing.B) {
	const zones = 1000
	for name, add := range map[string]func(*trio, []string) error{
		"1-rndc-in-turn":     (*trio).inTurn,
		"2-rndc-at-once":     (*trio).atOnce,
		"3-rndc-and-catalog": (*trio).byCatalog,
		"4-api":              (*trio).overAPI,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				servers := newTrio(b)
				names := make([]string, zones)
				for i := range names {
					names[i] = fmt.Sprintf("z%d.example", i)
				}
				b.StartTimer()
				began, before := time.Now(), cpu(b)
				if err := add(servers, names); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(began).Seconds(), "s/added")
				servers.await(names)
				b.ReportMetric(time.Since(began).Seconds(), "s/served")
				b.StopTimer()
				servers.stop()
				after := cpu(b)
				b.ReportMetric((after[0] - before[0]).Seconds(), "s/cpu-of-this-process")
				b.ReportMetric((after[1] - before[1]).Seconds(), "s/cpu-of-three-named")
				b.StartTimer()
			}
		})
	}
}

// cpu is what this process has used, sidecars and clients, and what the servers that it has ended have. Other work on the
// machine changes it less than it changes the time.
func cpu(b *testing.B) (used [2]time.Duration) {
	for i, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		used[i] = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return used
}

// trio is a primary and two secondaries that follow the same catalog, which is empty at first.
type trio struct {
	b       *testing.B
	servers []*sidecar
}

const catalog = "catalog.invalid"

func newTrio(b *testing.B) *trio {
	t := &trio{b: b, servers: []*sidecar{start(b, v1beta1.RolePrimary, [2]*wire.Key{})}}
	p := t.servers[0]
	for range 2 {
		s := start(b, v1beta1.RoleSecondary, [2]*wire.Key{p.UpdateKey, p.TransferKey})
		t.followCatalog(s)
		t.servers = append(t.servers, s)
	}
	zone := primaryZone(catalog, p.UpdateKey.Name)
	zone.ZoneConfig.AlsoNotify = t.secondaries()
	zone.ZoneConfig.Records = []bindcar.Record{{Name: "@", Type: "NS", Value: "invalid."}, {Name: "version", Type: "TXT", Value: `"2"`}}
	if err := p.client.CreateZone(b.Context(), p.addr, zone); err != nil {
		b.Fatal(err)
	}
	t.await([]string{catalog})
	return t
}

func (t *trio) followCatalog(s *sidecar) {
	primary := fmt.Sprintf("{ 127.0.0.1 port %d key %q; }", t.servers[0].DNS().Port(), s.TransferKey.Name)
	file := filepath.Join(s.Layout.ConfigDir, named.OptionsFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.b.Fatal(err)
	}
	options := strings.Replace(string(text), "options {", fmt.Sprintf(`options {
	catalog-zones { zone %q default-primaries %s in-memory no zone-directory %q min-update-interval 0; };`, catalog, primary, s.Layout.ZonesDir), 1)
	clause := fmt.Sprintf("zone %q { type secondary; file %q; primaries %s; };\n", catalog, filepath.Join(s.Layout.ZonesDir, "catalog"), primary)
	for name, text := range map[string]string{named.OptionsFile: options, named.ZonesFile: clause} {
		if err := os.WriteFile(filepath.Join(s.Layout.ConfigDir, name), []byte(text), 0o600); err != nil {
			t.b.Fatal(err)
		}
	}
	s.Restart(t.b)
}

func (t *trio) stop() {
	for _, s := range t.servers {
		s.stop()
		s.Stop()
	}
}

func (t *trio) secondaries() []string {
	return []string{t.servers[1].DNS().String(), t.servers[2].DNS().String()}
}

// await asks every server for the zones until it has all.
func (t *trio) await(zones []string) {
	for _, s := range t.servers {
		for _, zone := range zones {
			for serialOf(t.b, s.DNS(), zone) == 0 {
				if t.b.Context().Err() != nil {
					t.b.Fatal("interrupted")
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
}

// addPrimary and addSecondary are what the sidecar does, without it.
func (t *trio) addPrimary(zone string) error {
	p := t.servers[0]
	d, err := p.server.describeZone(t.primary(zone))
	if err != nil {
		return err
	}
	file := p.server.zones.Files(zone).Content()
	if err := zonefile.Write(file, zone, t.primary(zone).ZoneConfig); err != nil {
		return err
	}
	_, err = p.server.control.Command(t.b.Context(), fmt.Sprintf("addzone %q %s", zone, d.Clause(file)))
	return err
}

func (t *trio) addSecondary(s *sidecar, zone string) error {
	d, err := s.server.describeZone(t.secondary(zone))
	if err != nil {
		return err
	}
	_, err = s.server.control.Command(t.b.Context(), fmt.Sprintf("addzone %q %s", zone, d.Clause(s.server.zones.Files(zone).Content())))
	return err
}

func (t *trio) primary(zone string) bindcar.CreateZone {
	request := primaryZone(zone, t.servers[0].UpdateKey.Name)
	request.ZoneConfig.AlsoNotify = t.secondaries()
	return request
}

func (t *trio) secondary(zone string) bindcar.CreateZone {
	return bindcar.CreateZone{ZoneName: zone, ZoneType: bindcar.Secondary, ZoneConfig: bindcar.ZoneConfig{Primaries: []string{t.servers[0].DNS().String()}}}
}

func (t *trio) inTurn(zones []string) error {
	for _, zone := range zones {
		if err := t.addPrimary(zone); err != nil {
			return err
		}
		for _, s := range t.servers[1:] {
			if err := t.addSecondary(s, zone); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *trio) atOnce(zones []string) error {
	var group errgroup.Group
	added := [2]chan string{make(chan string, len(zones)), make(chan string, len(zones))}
	for i, s := range t.servers[1:] {
		group.Go(func() error {
			for zone := range added[i] {
				if err := t.addSecondary(s, zone); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(added[0])
		defer close(added[1])
		for _, zone := range zones {
			if err := t.addPrimary(zone); err != nil {
				return err
			}
			added[0] <- zone
			added[1] <- zone
		}
		return nil
	})
	return group.Wait()
}

// byCatalog adds the zones to the primary and then all of them to the catalog, in messages of 500 records.
func (t *trio) byCatalog(zones []string) error {
	for _, zone := range zones {
		if err := t.addPrimary(zone); err != nil {
			return err
		}
	}
	p := t.servers[0]
	conn, err := wire.Dial(t.b.Context(), p.DNS(), p.UpdateKey)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for some := range slices.Chunk(zones, 500) {
		update := new(dns.Msg).SetUpdate(catalog + ".")
		for _, zone := range some {
			update.Insert([]dns.RR{&dns.PTR{
				Hdr: dns.RR_Header{Name: member(zone) + ".zones." + catalog + ".", Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: 0}, Ptr: zone + ".",
			}})
		}
		if _, err := conn.Exchange(t.b.Context(), update); err != nil {
			return err
		}
	}
	return nil
}

func member(zone string) string {
	wireName := make([]byte, 256)
	n, _ := dns.PackDomainName(zone+".", wireName, 0, nil, false)
	digest := sha1.Sum(wireName[:n])
	return hex.EncodeToString(digest[:])
}

// overAPI is what the controller does: sixteen zones at a time, each on the primary and then on both secondaries.
func (t *trio) overAPI(zones []string) error {
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(16)
	for _, zone := range zones {
		group.Go(func() error {
			p := t.servers[0]
			if err := p.client.CreateZone(ctx, p.addr, t.primary(zone)); err != nil {
				return err
			}
			var both errgroup.Group
			for _, s := range t.servers[1:] {
				both.Go(func() error { return s.client.CreateZone(ctx, s.addr, t.secondary(zone)) })
			}
			return both.Wait()
		})
	}
	return group.Wait()
}
