// Package secondary is a zone on a secondary that others run: it is asked and, if it follows our primaries, notified. Nothing is written to it.
package secondary

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// Grace is for how long a secondary may be behind without anything being said about it.
const Grace = time.Minute

// errOtherContent is a secondary that has the primaries' serial with other content.
var errOtherContent = fmt.Errorf("%w: it holds other data than they on their serial; have it transfer the whole zone", host.ErrTransfer)

// Host implements host.Secondary.
type Host struct {
	host.Foreign
	// isGuest is true if it transfers the zone from our primaries.
	isGuest bool
}

// New is the zone on a secondary of a provider.
func New(at *host.Access, reader host.ReadMethod, provider *v1beta1.DNSProvider) Host {
	return Host{Foreign: host.Foreign{Access: at, ReadMethod: reader}, isGuest: provider != nil && provider.Spec.Secondaries != nil}
}

// At implements host.Host: what is shared has primaries of its own, and what is read by query is not known in whole.
func (h Host) At() host.Place {
	at := h.Foreign.At()
	at.Restores = at.Line == "" && h.Partial() == nil && at.Addr.IsValid()
	return at
}

// Follow implements host.Secondary: it says that the secondary does not follow, once that has lasted. A guest is notified: what our
// primaries sent may have come before they knew its key.
func (h Host) Follow(ctx context.Context, seen observe.Observation, serial uint32, known *host.Follower) error {
	if h.isGuest {
		if err := h.Notify(ctx, serial); err != nil {
			log.FromContext(ctx).V(1).Info("NOTIFY was not answered", "server", h.Server.Pod, "reason", err.Error())
		}
	}
	since := known.StaysAt(seen.Serial, h.Now())
	if h.Now().Sub(since) < Grace {
		return nil
	}
	if !seen.Authoritative {
		return fmt.Errorf("%s; make it a secondary of the zone there", seen.Message())
	}
	return &transferError{have: seen.Serial, want: serial, since: since, follows: host.LineOf(h.Server)}
}

// Repair implements host.Secondary.
func (h Host) Repair(context.Context, observe.Observation, uint32, *host.Follower) error {
	return errOtherContent
}

// transferError is a secondary that does not follow its primaries.
type transferError struct {
	have, want uint32
	since      time.Time
	// follows is the line of primaries with serials of their own that it follows; empty if it follows those of the zone.
	follows string
}

func (e *transferError) Error() string {
	if e.follows == "" && rrset.SerialLess(e.want, e.have) {
		return fmt.Sprintf("%s: %s", status.ZoneTransferFailed, status.AheadOfPrimaries(e.have, e.want))
	}
	return fmt.Sprintf("%s: the secondary stays at serial %d instead of %d since %s; its log says why (do its primaries notify it, may it transfer from them?)",
		status.ZoneTransferFailed, e.have, e.want, e.since.UTC().Format(time.RFC3339))
}

// Is makes it a host.ErrTransfer.
func (e *transferError) Is(target error) bool { return target == host.ErrTransfer }

// Guests are whom our primaries notify of the zone outside, and who may transfer it: the keys of the zone's own providers, under names
// that are theirs alone, and the addresses of those without a key.
func Guests(providers []*v1beta1.DNSProvider) (notified, transfer []string) {
	for _, p := range providers {
		name, err := serving.GuestKeyName(p.Namespace, p.Name)
		byAddress := serving.IsByAddress(p)
		if p.Spec.Secondaries == nil || p.UID == "" || err != nil && !byAddress {
			continue
		}
		if !byAddress {
			transfer = append(transfer, "key "+name)
		}
		for _, server := range serving.ServersOf(p) {
			switch {
			case !server.Addr.IsValid():
			case byAddress:
				notified = append(notified, server.Addr.String()+clause.Unsigned)
				transfer = append(transfer, server.Addr.Addr().Unmap().String())
			default:
				notified = append(notified, server.Addr.String()+" key "+name)
			}
		}
	}
	return notified, transfer
}
