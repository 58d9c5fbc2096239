package syncevent

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/status"
)

// Zones writes the status of the zone itself.
type Zones struct {
	Client client.Client
}

// OnSyncCompleted implements Listener.
func (l Zones) OnSyncCompleted(ctx context.Context, e SyncCompleted) error {
	next := status.Zone(e.Zone.Status, zoneFacts(e), e.At)
	if equality.Semantic.DeepEqual(next, e.Zone.Status) {
		return nil
	}
	return ApplyStatus(ctx, l.Client, v1beta1.GroupVersion.WithKind("DNSZone"), e.Zone, &next)
}

func zoneFacts(e SyncCompleted) status.ZoneFacts {
	f := status.ZoneFacts{
		Generation: e.Zone.Generation, Serial: e.Serial, Problem: e.Problem,
		Instances: zoneInstances(e.Servers), Servers: len(e.Servers),
	}
	for _, s := range e.Servers {
		if s.Current {
			f.Current++
		}
	}
	if e.Desired == nil {
		return f
	}
	for _, d := range e.Desired.Declarations {
		_, stuck := e.Unprogrammed[d.Key]
		if !d.Accepted || stuck || !e.Problem.Holds() {
			f.Unready++
			continue
		}
		ref := v1beta1.RecordReference{APIVersion: d.Ref.APIVersion, Kind: d.Ref.Kind, Namespace: d.Ref.Namespace, Name: d.Ref.Name}
		if record, ok := e.Records[d.Ref.UID]; ok {
			ref.RecordName = record.RecordName()
			ref.LastReconciledAt = record.GetRecordStatus().LastUpdated
		}
		f.Records = append(f.Records, ref)
	}
	return f
}

// zoneInstances sums up the servers by instance: an instance is configured when all its pods are.
func zoneInstances(servers []ServerOutcome) []v1beta1.ZoneInstance {
	type key struct{ namespace, name string }
	byName := map[key]*v1beta1.ZoneInstance{}
	for _, s := range servers {
		k := key{s.Namespace, s.Instance}
		i := byName[k]
		if i == nil {
			i = &v1beta1.ZoneInstance{
				APIVersion: v1beta1.GroupVersion.String(), Kind: "Bind9Instance",
				Namespace: s.Namespace, Name: s.Instance, Status: v1beta1.ZoneConfigured,
			}
			byName[k] = i
		}
		switch {
		case s.Err != nil:
			i.Status, i.Message = v1beta1.ZoneFailed, s.Pod+": "+s.Err.Error()
		case s.Serial == 0 && i.Status == v1beta1.ZoneConfigured:
			i.Status, i.Message = v1beta1.ZoneClaimed, s.Pod+" does not serve the zone yet"
		}
	}
	all := make([]v1beta1.ZoneInstance, 0, len(byName))
	for _, i := range byName {
		all = append(all, *i)
	}
	slices.SortFunc(all, func(a, b v1beta1.ZoneInstance) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}
