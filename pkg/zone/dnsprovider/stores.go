package dnsprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
)

// maxReplicas is how many endpoints of a Service are asked.
const maxReplicas = 64

// probeStore finds out the state of a provider that keeps its zones in etcd: etcd itself, on the connection that zones are written on, and
// every replica of CoreDNS.
func (r *reconciler) probeStore(ctx context.Context, p *v1beta1.DNSProvider, zone string, facts *status.ProviderFacts) {
	facts.Store = storeVerdict(r.checkStore(ctx, p, zone))
	facts.Servers = askAll(p, func(s observe.Server) status.ProviderServerFacts { return askReplica(ctx, s, zone) })
}

func (r *reconciler) checkStore(ctx context.Context, p *v1beta1.DNSProvider, zone string) error {
	for {
		b, err := r.stores.Of(ctx, p)
		if err != nil {
			return err
		}
		if err = b.Check(ctx, zone); !errors.Is(err, context.Canceled) || ctx.Err() != nil { // Else it was closed because no zone needs it any more.
			return err
		}
	}
}

func storeVerdict(err error) status.Verdict {
	var failure *host.Error
	switch {
	case err == nil:
		return status.True(status.AllAuthenticated, "")
	case errors.As(err, &failure):
		return status.StoreFailed(failure.Reason, failure)
	}
	return status.StoreFailed(status.Unreachable, err)
}

// askReplica finds out whether a replica of CoreDNS answers. It has no keys.
func askReplica(ctx context.Context, s observe.Server, zone string) status.ProviderServerFacts {
	_, address, _ := strings.Cut(s.Pod, "/")
	f := status.ProviderServerFacts{Address: address, Role: string(s.Role), Problem: s.Message}
	if !s.Addr.IsValid() {
		return f
	}
	f.IP = s.Addr.Addr().String()
	f.Software, _ = wire.Version(ctx, s.Addr)
	reply, err := wire.Query(ctx, s.Addr, zone, dns.TypeSOA)
	if f.Reachable = err == nil; err != nil {
		f.Problem = err.Error()
		return f
	}
	f.HasZone = reply.Msg.Authoritative && slices.ContainsFunc(reply.Msg.Answer, func(rr dns.RR) bool {
		return rr.Header().Rrtype == dns.TypeSOA && dns.CanonicalName(rr.Header().Name) == zone
	})
	return f
}

// endpointsOf are the addresses of the endpoints of a provider's Service, sorted; or one entry that says why there is none.
func (r *reconciler) endpointsOf(ctx context.Context, p *v1beta1.DNSProvider) []v1beta1.ProviderServerStatus {
	service := p.Spec.CoreDNS.Servers.Service
	var slicesOf discoveryv1.EndpointSliceList
	err := r.stores.Reader.List(ctx, &slicesOf, client.InNamespace(p.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	addresses := usableEndpoints(slicesOf.Items, r.stores.Gate)
	problem := ""
	switch {
	case apierrors.IsForbidden(err):
		problem = fmt.Sprintf("the endpoints of Service %s may not be read yet: the fleet manager grants that within seconds, unless namespace %s has to be enrolled by an administrator first (docs/install.md)", service.Name, p.Namespace)
	case err != nil:
		problem = fmt.Sprintf("the endpoints of Service %s cannot be read: %v", service.Name, err)
	case len(addresses) == 0:
		problem = fmt.Sprintf("Service %s has no endpoints in namespace %s: is there such a Service, and do its pods run?", service.Name, p.Namespace)
	}
	if problem != "" {
		return []v1beta1.ProviderServerStatus{{Address: service.Name, Role: string(observe.Primary), Message: problem}}
	}
	var found []v1beta1.ProviderServerStatus
	for _, a := range addresses[:min(len(addresses), maxReplicas)] {
		at := netip.AddrPortFrom(a, uint16(cmp.Or(service.Port, 53))) //nolint:gosec // validated
		found = append(found, v1beta1.ProviderServerStatus{Address: at.String(), IP: a.String(), Role: string(observe.Primary)})
	}
	return found
}

// usableEndpoints are the permitted addresses of all endpoints that are not on their way out, ready or not.
func usableEndpoints(all []discoveryv1.EndpointSlice, gate *outbound.Gate) (addresses []netip.Addr) {
	var found []string
	for _, s := range all {
		for _, e := range s.Endpoints {
			if !ptr.Deref(e.Conditions.Terminating, false) {
				found = append(found, e.Addresses...)
			}
		}
	}
	for _, address := range found {
		if a, err := netip.ParseAddr(address); err == nil && gate.Permits(a) {
			addresses = append(addresses, a.Unmap())
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
