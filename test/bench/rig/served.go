package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// serialInterval is how often a server is asked for its serial.
const serialInterval = 5 * time.Millisecond

// Follower keeps up with what the servers serve of one zone, by SOA and IXFR.
type Follower struct {
	rig   *Rig
	apex  string
	want  []Address
	views []*serverView
}

// serverView is a Follower's view of one server.
type serverView struct {
	server  netip.AddrPort
	soa     *rrset.SOA
	missing map[Address]struct{}
}

// FollowZone reads the zone from every server once; Served then costs only what changes.
func (r *Rig) FollowZone(ctx context.Context, zone string, want []Address) (*Follower, error) {
	f := &Follower{rig: r, apex: zone + ".", want: want}
	for _, server := range r.Servers {
		one := &serverView{server: server}
		f.views = append(f.views, one)
		if err := f.catchUp(ctx, one); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// WaitServed waits until every server serves all that is wanted, and returns when the last of them was seen to.
func (f *Follower) WaitServed(ctx context.Context, limit time.Duration) (time.Time, error) {
	at := make([]time.Time, len(f.views))
	group := &errgroup.Group{}
	for i, one := range f.views {
		group.Go(func() (err error) {
			at[i], err = f.waitServedBy(ctx, one, limit)
			return err
		})
	}
	err := group.Wait()
	return slices.MaxFunc(at, time.Time.Compare), err
}

func (f *Follower) waitServedBy(ctx context.Context, one *serverView, limit time.Duration) (at time.Time, err error) {
	at = time.Now()
	err = PollUntil(ctx, limit, serialInterval, func() error {
		if len(one.missing) == 0 {
			return nil
		}
		soa, err := f.rig.querySOA(ctx, one.server, f.apex)
		if err != nil {
			return err
		}
		if soa.Serial != one.soa.Serial {
			// The answer came before the transfer that shows what it stands for.
			at = time.Now()
			if err := f.catchUp(ctx, one); err != nil {
				return err
			}
			if one.soa.Serial != soa.Serial {
				at = time.Now()
			}
		}
		if n := len(one.missing); n > 0 {
			return fmt.Errorf("%s lacks %d of %d RRs of %s", one.server, n, len(f.want), f.apex)
		}
		return nil
	})
	return at, err
}

func (f *Follower) catchUp(ctx context.Context, one *serverView) error {
	result, err := wire.Transfer(ctx, one.server, f.apex, one.soa, f.rig.Transfer)
	if err != nil {
		return err
	}
	if result.Full {
		one.missing = make(map[Address]struct{}, len(f.want))
		for _, a := range f.want {
			one.missing[a] = struct{}{}
		}
		one.removeServed(result.Records)
	}
	for _, d := range result.Deltas {
		if err := f.rejectDeletions(one, d.Deleted); err != nil {
			return err
		}
		one.removeServed(d.Added)
	}
	one.soa = &result.SOA
	return nil
}

func (o *serverView) removeServed(records []wire.Record) {
	for _, r := range records {
		if r.Type == dns.TypeA {
			delete(o.missing, Address{Name: r.Name, IP: r.Rdata})
		}
	}
}

// rejectDeletions fails on a deletion: what a benchmark adds stays.
func (f *Follower) rejectDeletions(one *serverView, deleted []wire.Record) error {
	for _, r := range deleted {
		if r.Type == dns.TypeA {
			return fmt.Errorf("%s has deleted %s A %s", one.server, r.Name, r.Rdata)
		}
	}
	return nil
}

// CheckTransfer transfers the whole zone from every server: the increments that were followed may have been wrong.
func (f *Follower) CheckTransfer(ctx context.Context) error {
	var errs []error
	for _, one := range f.views {
		one.soa = nil
		err := f.catchUp(ctx, one)
		if err == nil && len(one.missing) > 0 {
			err = fmt.Errorf("%s lacks %d of %d RRs of %s", one.server, len(one.missing), len(f.want), f.apex)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
