package rig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
	"github.com/lockstep-dns/lockstep/pkg/wire"
)

// look is how often a server is asked for its serial.
const look = 5 * time.Millisecond

// Follower keeps up with what the servers serve of one zone, by SOA and IXFR.
type Follower struct {
	rig  *Rig
	apex string
	want []Address
	at   []*follower
}

// follower is a Follower's view of one server.
type follower struct {
	server  netip.AddrPort
	soa     *rrset.SOA
	missing map[Address]struct{}
}

// Follow reads the zone from every server once; Served then costs only what changes.
func (r *Rig) Follow(ctx context.Context, zone string, want []Address) (*Follower, error) {
	f := &Follower{rig: r, apex: zone + ".", want: want}
	for _, server := range r.Servers {
		one := &follower{server: server}
		f.at = append(f.at, one)
		if err := f.catchUp(ctx, one); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Served waits until every server serves all that is wanted, and returns when the last of them was seen to.
func (f *Follower) Served(ctx context.Context, limit time.Duration) (time.Time, error) {
	type outcome struct {
		at  time.Time
		err error
	}
	done := make(chan outcome, len(f.at))
	for _, one := range f.at {
		go func() {
			at, err := f.served(ctx, one, limit)
			done <- outcome{at, err}
		}()
	}
	var last time.Time
	var errs []error
	for range f.at {
		o := <-done
		errs = append(errs, o.err)
		if o.at.After(last) {
			last = o.at
		}
	}
	return last, errors.Join(errs...)
}

func (f *Follower) served(ctx context.Context, one *follower, limit time.Duration) (at time.Time, err error) {
	at = time.Now()
	err = Within(ctx, limit, look, func() error {
		if len(one.missing) == 0 {
			return nil
		}
		soa, err := f.rig.soa(ctx, one.server, f.apex)
		if err != nil {
			return err
		}
		if soa.Serial != one.soa.Serial {
			// The answer came before the transfer that tells what it stands for.
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

func (f *Follower) catchUp(ctx context.Context, one *follower) error {
	result, err := wire.Transfer(ctx, one.server, f.apex, one.soa, f.rig.Transfer)
	if err != nil {
		return err
	}
	if result.Full {
		one.missing = make(map[Address]struct{}, len(f.want))
		for _, a := range f.want {
			one.missing[a] = struct{}{}
		}
		one.strike(result.Records)
	}
	for _, d := range result.Deltas {
		if err := f.restore(one, d.Deleted); err != nil {
			return err
		}
		one.strike(d.Added)
	}
	one.soa = &result.SOA
	return nil
}

func (o *follower) strike(records []wire.Record) {
	for _, r := range records {
		if r.Type == dns.TypeA {
			delete(o.missing, Address{Name: r.Name, IP: r.Rdata})
		}
	}
}

// restore fails on a deletion: what a benchmark adds stays.
func (f *Follower) restore(one *follower, deleted []wire.Record) error {
	for _, r := range deleted {
		if r.Type == dns.TypeA {
			return fmt.Errorf("%s has deleted %s A %s", one.server, r.Name, r.Rdata)
		}
	}
	return nil
}

// Check transfers the whole zone from every server: the increments that were followed may not have told the truth.
func (f *Follower) Check(ctx context.Context) error {
	var errs []error
	for _, one := range f.at {
		one.soa = nil
		err := f.catchUp(ctx, one)
		if err == nil && len(one.missing) > 0 {
			err = fmt.Errorf("%s lacks %d of %d RRs of %s", one.server, len(one.missing), len(f.want), f.apex)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
