// Package shared is a zone on a primary that others run and write to as well: each RRset is compared and swapped by itself, the SOA and the
// apex are the server's, and its secondaries follow its own serial.
package shared

import (
	"context"
	"fmt"

	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/rfc2136"
)

// Host implements host.Primary.
type Host struct {
	host.Foreign
	updates rfc2136.Updater
}

// New is the zone on a primary.
func New(at *host.Access, reader host.ReadMethod, updates rfc2136.Updater) Host {
	return Host{Foreign: host.Foreign{Access: at, ReadMethod: reader}, updates: updates}
}

// Apply implements host.Primary.
func (h Host) Apply(ctx context.Context, changes plan.Changes, have, want rrset.SOA) (host.Result, error) {
	return h.updates.Apply(ctx, rfc2136.Target{Server: h.Server.Addr, Zone: h.Name, Key: h.UpdateKey, Shared: true}, changes, have, want)
}

// Blame implements host.Primary: an update that fails is tried without changes before an RRset is blamed.
func (h Host) Blame(_ context.Context, failed host.Result, _ rrset.SOA) (host.Result, error) {
	return failed, nil
}

// Apex implements host.Primary.
func (h Host) Apex(rdata string) string {
	return fmt.Sprintf("%s: where others write as well, the NS records at the apex are theirs; have them add %s, and remove the record", h.Server.Pod, rdata)
}
