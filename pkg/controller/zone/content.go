package zone

import (
	"context"
	"errors"

	"github.com/lockstep-dns/lockstep/pkg/observe"
)

// A secondary takes its increments from whichever primary it asks. When primaries were apart, they may have passed through
// one serial with different content, and what a secondary took from one and then from another adds up to content that no
// primary has, on the right serial. After such a time the content of each secondary is read once, in whole, and compared.

// errMoved is a zone that changed while it was compared.
var errMoved = errors.New("the zone changed while its content was compared with the primaries'")

// doubtWhenApart distrusts the secondaries' content when the primaries are, or were since the last pass, not in step.
func (p *pass) doubtWhenApart() {
	for _, q := range p.primaries {
		if q.err == nil && (q.seen.Mirror == nil || q.seen.SOA != q.known.soa || q.seen.SOA != p.target.reference.SOA) {
			p.doubt()
			return
		}
	}
}

// doubt has the content of every secondary read again once it has the serial of the primaries.
func (p *pass) doubt() {
	p.comparing.Lock()
	defer p.comparing.Unlock()
	clear(p.state.verified)
}

// verify tells whether a secondary that has the serial of the pass has the primaries' content too. It looks only when
// something can have gone wrong since it did, and repairs what it finds.
func (p *pass) verify(ctx context.Context, server observe.Server, known *secondaryState) (same bool, err error) {
	if len(p.primaries) < 2 || p.event.Paused || p.isVerified(server) {
		return true, nil
	}
	want, err := p.agreed(ctx)
	if err != nil {
		return false, err
	}
	key, err := p.keys.TransferKey(ctx, p.instanceOf(server))
	if err != nil {
		return false, err
	}
	p.deps.Observer.Invalidate(server.Addr, p.state.desired.Name)
	have := p.observe(ctx, server, key)
	p.deps.Observer.Forget(server.Addr, p.state.desired.Name)
	switch {
	case have.Err != nil:
		return false, have.Err
	case have.Mirror == nil || have.Serial != want.SOA.Serial:
		return false, errMoved
	case !have.Mirror.SameContent(want):
		return false, p.hurry(ctx, server, known, have)
	}
	p.comparing.Lock()
	defer p.comparing.Unlock()
	p.state.verified[podOf(server)] = struct{}{}
	return true, nil
}

func (p *pass) isVerified(server observe.Server) bool {
	p.comparing.Lock()
	defer p.comparing.Unlock()
	_, ok := p.state.verified[podOf(server)]
	return ok
}

// agreed is the content of the primaries on the serial of the pass.
func (p *pass) agreed(ctx context.Context) (*observe.Mirror, error) {
	for _, q := range p.primaries {
		if q.err != nil {
			continue
		}
		// What was seen in this pass is at hand, unless the pass found all at rest.
		if seen := p.observe(ctx, q.server, q.transfer); seen.Mirror != nil && seen.Serial == p.event.Serial {
			return seen.Mirror, nil
		}
	}
	return nil, errMoved
}
