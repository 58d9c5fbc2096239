package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// A zone is served by hosts: instances of ours and DNSProviders. Servers of both are brought to one content and one serial. What
// only our own have (a sidecar that adds and removes zones, notifications, signing keys) is asked of no other.

// hasHosts reports whether the zone is to be served anywhere.
func (s scope) hasHosts() bool { return len(s.instances)+len(s.providers) > 0 }

// lacksProvider reports whether a DNSProvider that the zone names does not exist.
func (s scope) lacksProvider() bool {
	return slices.ContainsFunc(s.providers, func(p *v1beta1.DNSProvider) bool { return p.UID == "" })
}

// isForeignServer reports whether somebody else runs a server: it has no sidecar.
func isForeignServer(server observe.Server) bool { return server.Provider != "" }

// A zone's primaries are kept on one content and one serial, as one line, but for those that others write to as well (writers Shared):
// each of these counts its own serial, keeps what nobody declares to itself, and has secondaries of its own.

// countOnLine counts the zone's primaries that are kept on one serial.
func (s scope) countOnLine() (n int) {
	for _, o := range s.servers {
		if o.Role == observe.Primary && !o.Shared {
			n++
		}
	}
	return n
}

// isOnLine reports whether the zone has primaries that are kept on one serial.
func (s scope) isOnLine() bool { return s.countOnLine() > 0 }

// isSharedOnly reports whether the zone has primaries, and others write to all of them as well.
func (s scope) isSharedOnly() bool {
	return !s.isOnLine() && slices.ContainsFunc(s.servers, func(o observe.Server) bool { return o.Role == observe.Primary })
}

// instanceOf returns the instance of a server; nil if it is somebody else's.
func (s scope) instanceOf(server observe.Server) *v1beta1.Bind9Instance {
	for _, i := range s.instances {
		if isServerOf(i, server) {
			return i
		}
	}
	return nil
}

// isStranger reports whether data that nobody declares is not followed from a server.
func (s scope) isStranger(server observe.Server) bool {
	return slices.ContainsFunc(s.strangers, func(i *v1beta1.Bind9Instance) bool { return isServerOf(i, server) })
}

func isServerOf(i *v1beta1.Bind9Instance, server observe.Server) bool {
	return !isForeignServer(server) && i.Namespace == server.Namespace && i.Name == server.Instance
}

// secretsOf names the Secrets with the keys of a server: that for updates, and that for questions and transfers.
func (s scope) secretsOf(server observe.Server) (update, transfer client.ObjectKey) {
	if i := s.instanceOf(server); i != nil {
		return keyrotation.UpdateKeySecret(i), keyrotation.TransferKeySecret(i)
	}
	for _, p := range s.providers {
		if isForeignServer(server) && p.Name == server.Provider {
			return tsigkey.ProviderSecrets(p)
		}
	}
	return update, transfer
}

// transferKey returns the key that questions to a server are signed with.
func (p zonePass) transferKey(ctx context.Context, server observe.Server) (*wire.Key, error) {
	_, secret := p.secretsOf(server)
	return p.keys.Get(ctx, secret)
}

// countPods counts the primaries that are ours.
func countPods(primaries []*primary) (n int) {
	for _, q := range primaries {
		if !isForeignServer(q.server) {
			n++
		}
	}
	return n
}

// errSignedHere is a provider's primary of a zone that an instance of ours signs.
var errSignedHere = errors.New("the zone is signed by an instance, and a primary that others run cannot have its signatures: set dnssecPolicy to none, or remove the provider from spec.providerRefs")

// errAloneByQuery is a primary whose foreign data is not known, among others that are to have it.
var errAloneByQuery = errors.New("it is read by query, so that what nobody declares is not known there, and the zone's other primaries cannot be kept equal to it: set readBy to Transfer, or writers to Shared")

// missingZoneError is a zone that a primary does not have and that cannot be created there.
type missingZoneError struct {
	rcode  int
	detail string
}

func (e *missingZoneError) Error() string {
	return fmt.Sprintf("%s; create the zone there, as a primary zone that the update key may update and the transfer key may transfer: nobody else does on servers of a DNSProvider", e.detail)
}

// Transient reports whether it may pass by itself.
func (e *missingZoneError) Transient() bool { return e.rcode == dns.RcodeServerFailure }

// guests returns whom our primaries notify of the zone outside, and which keys may transfer it: those of the zone's own
// providers, under names that are theirs alone.
func (s scope) guests() (notified, keys []string) {
	for _, p := range s.providers {
		name, err := serving.GuestKeyName(p.Namespace, p.Name)
		if p.Spec.Secondaries == nil || p.UID == "" || err != nil {
			continue
		}
		keys = append(keys, "key "+name)
		for _, server := range serving.AddProviders(nil, []*v1beta1.DNSProvider{p}) {
			if server.Addr.IsValid() {
				notified = append(notified, server.Addr.String()+" key "+name)
			}
		}
	}
	return notified, keys
}

// follows reports whether somebody else's secondary transfers the zone from our primaries.
func (s scope) follows(server observe.Server) bool {
	return slices.ContainsFunc(s.providers, func(p *v1beta1.DNSProvider) bool { return p.Name == server.Provider && p.Spec.Secondaries != nil })
}

// foreignGrace is for how long a secondary that others run may be behind without anything being said about it.
const foreignGrace = time.Minute

// awaitForeign says that a secondary that others run does not follow its primaries, once that has lasted. One that follows ours is
// notified: what they sent may have come before they knew its key.
func (s secondarySync) awaitForeign(ctx context.Context, server observe.Server, known *secondaryState, seen observe.Observation) error {
	if s.follows(server) {
		if err := s.notifySecondary(ctx, server); err != nil {
			log.FromContext(ctx).V(1).Info("NOTIFY was not answered", "server", server.Pod, "reason", err.Error())
		}
	}
	if known.since.IsZero() || known.serial != seen.Serial {
		*known = secondaryState{serial: seen.Serial, since: s.now(), had: known.had}
	}
	if s.now().Sub(known.since) < foreignGrace {
		return nil
	}
	if !seen.Authoritative {
		return fmt.Errorf("%s; make it a secondary of the zone there", seen.Message())
	}
	return &foreignTransferError{have: seen.Serial, want: s.serial, since: known.since}
}

// foreignTransferError is a secondary of somebody else's that does not follow its primaries.
type foreignTransferError struct {
	have, want uint32
	since      time.Time
}

func (e *foreignTransferError) Error() string {
	return fmt.Sprintf("%s: the secondary stays at serial %d instead of %d since %s; its log says why (do its primaries notify it, may it transfer from them?)",
		status.ZoneTransferFailed, e.have, e.want, e.since.UTC().Format(time.RFC3339))
}

// Is makes it a host.ErrTransfer.
func (e *foreignTransferError) Is(target error) bool { return target == host.ErrTransfer }
