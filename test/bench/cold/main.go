// Command cold measures the first list after our API server was started anew: it knows nothing of what the servers hold, and has to
// transfer every zone from each of them. Beside it, in the same run, the bare transfers of all zones from all servers.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

var (
	count   = flag.Int("zones", 100, "zones")
	records = flag.Int("records", 1000, "RRs of each zone, in DNSEndpoints of ten")
	rounds  = flag.Int("rounds", 3, "how often our API server is started anew")
	limit   = flag.Duration("limit", 10*time.Minute, "when to give up waiting until all is served")

	profiles = flag.String("profiles", "", "folder for CPU profiles of the seconds in which the first list is made")
)

func main() { rig.Main("cold", measureCold) }

func measureCold(ctx context.Context, r *rig.Rig) error {
	names, err := createZones(ctx, r)
	if err != nil {
		return err
	}
	var ours, hop, bare rig.Times
	path := r.SyncStatusPath("") + "?fieldSelector=kind%3DDNSZone"
	for range *rounds {
		if err := r.RestartAPIServer(ctx); err != nil {
			return err
		}
		for _, m := range []struct {
			times   *rig.Times
			measure func() (time.Duration, error)
		}{
			{&hop, func() (time.Duration, error) { return measureHop(ctx, r) }},
			{&ours, func() (time.Duration, error) { return listInSync(ctx, r, path) }},
			{&bare, func() (time.Duration, error) { return transferAll(ctx, r, names) }},
		} {
			took, err := m.measure()
			if err != nil {
				return err
			}
			*m.times = append(*m.times, took)
		}
	}
	if err := profileList(ctx, r, path); err != nil {
		return err
	}
	fmt.Println("first LIST of all zones:", ours)
	fmt.Println("bare transfers:         ", bare)
	r.AddResult("cold", rig.Milliseconds(ours.Quantile(.5)), rig.Milliseconds(hop.Quantile(.5)+bare.Quantile(.5)), "ms",
		fmt.Sprintf("bare AXFRs of %d zones of %d RRs from %d servers and the hop to an aggregated API; medians", *count, *records, len(r.Servers)))
	return nil
}

// createZones makes the zones and waits until every server serves them completely.
func createZones(ctx context.Context, r *rig.Rig) (names []string, err error) {
	zones, endpoints := make([]client.Object, *count), []client.Object{}
	wanted := make([][]rig.Address, *count)
	for i := range zones {
		object, name := fmt.Sprintf("c-%d", i), fmt.Sprintf("c-%d.example", i)
		names, zones[i], wanted[i] = append(names, name), r.NewZone(object, name), rig.Endpoints.WantedRecords(name, *records)
		endpoints = append(endpoints, r.DeclareRecords(rig.Endpoints, object, name, wanted[i])...)
	}
	for _, objects := range [][]client.Object{zones, endpoints} {
		creation, err := r.CreateAll(ctx, objects)
		if err != nil {
			return nil, err
		}
		fmt.Println(creation)
	}
	for i, name := range names {
		f, err := r.FollowZone(ctx, name, wanted[i])
		if err != nil {
			return nil, err
		}
		if _, err := f.WaitServed(ctx, *limit); err != nil {
			return nil, err
		}
	}
	return names, r.WaitQuiet(ctx, 5*time.Second)
}

// measureHop measures the second request of a new connection of kube-apiserver to our API server.
func measureHop(ctx context.Context, r *rig.Rig) (time.Duration, error) {
	if _, err := r.MeasureHop(ctx); err != nil {
		return 0, err
	}
	return r.MeasureHop(ctx)
}

// transfersPerServer is how many transfers our API server has under way from one server.
const transfersPerServer = 4

// transferAll transfers every zone from every server, as many at a time as our API server does.
func transferAll(ctx context.Context, r *rig.Rig, names []string) (time.Duration, error) {
	began := time.Now()
	servers := &errgroup.Group{}
	for _, server := range r.Servers {
		servers.Go(func() error {
			transfers := &errgroup.Group{}
			transfers.SetLimit(transfersPerServer)
			for _, name := range names {
				transfers.Go(func() error {
					result, err := wire.Transfer(ctx, server, name+".", nil, r.Transfer)
					if err == nil && len(result.Records) < *records {
						err = fmt.Errorf("%s has %d RRs of %s", server, len(result.Records), name)
					}
					return err
				})
			}
			return transfers.Wait()
		})
	}
	err := servers.Wait()
	return time.Since(began), err
}

// profileList takes profiles while a list is made, if they are wanted: they last longer than it does, so nothing is measured meanwhile.
func profileList(ctx context.Context, r *rig.Rig, path string) error {
	if *profiles == "" {
		return nil
	}
	if err := r.RestartAPIServer(ctx); err != nil {
		return err
	}
	group := &errgroup.Group{}
	group.Go(func() error { return r.SaveProfiles(ctx, filepath.Join(*profiles, "cold-")) })
	group.Go(func() error {
		time.Sleep(time.Second) // The profiles have begun.
		_, err := listInSync(ctx, r, path)
		return err
	})
	return group.Wait()
}

// listInSync measures until a list says of all zones that they are in sync: of a server that is not read in time it says that.
func listInSync(ctx context.Context, r *rig.Rig, path string) (time.Duration, error) {
	began := time.Now()
	err := rig.PollUntil(ctx, *limit, time.Millisecond, func() error {
		_, err := r.ListInSync(ctx, path, *count)
		return err
	})
	return time.Since(began), err
}
