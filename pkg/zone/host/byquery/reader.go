package byquery

import (
	"context"
	"errors"
	"iter"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// errAlone is a primary whose foreign data is not known, among others that are to have it.
var errAlone = errors.New("readBy: Query cannot be combined with other primaries, because undeclared records are invisible there: set readBy to Transfer, or writers to Shared")

// Reader implements host.Reader by questions.
type Reader struct {
	*host.Access
	Content *Content
}

func (r Reader) ask(ctx context.Context, questions ...observe.Question) observe.Observation {
	return r.DNS.ObserveNames(ctx, r.Server.Peer(), r.Asked(), r.TransferKey, questions...)
}

// Read implements host.Reader.
func (r Reader) Read(ctx context.Context, wanted host.Wanted) observe.Observation {
	keys, declared := wanted()
	return r.Content.Read(ctx, r.Name, r.ask, keys, declared)
}

// Forget implements host.Reader.
func (r Reader) Forget() {
	r.DNS.ForgetZone(r.Server.Peer(), r.Asked())
	r.Content.Forget()
}

// Written implements host.Reader.
func (r Reader) Written(from, to rrset.SOA, changed iter.Seq[rrset.Key]) {
	r.Content.Written(from, to, changed)
}

// Knows implements host.Reader.
func (r Reader) Knows(key rrset.Key) bool { return r.Content.Knows(key) }

// Partial implements host.ReadMethod: what nobody declares is not known.
func (r Reader) Partial() error { return errAlone }

// Compare implements host.Secondary: each call asks for some of what there should be. What the server has beside that is not known.
func (r Reader) Compare(ctx context.Context, want *observe.Mirror, known *host.Comparison) (seen observe.Observation, err error) {
	err = Continue(ctx, known, r.ask, want)
	r.DNS.ForgetZone(r.Server.Peer(), r.Asked())
	return seen, err
}
