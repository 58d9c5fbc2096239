package review

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Batch reviews objects as if they were all there is, and each were applied after those before it: of two that contradict
// each other the later one has the problem, unless their creationTimestamps say otherwise. There is one result for each
// object, an empty one for kinds that only their schema checks. The objects get the timestamps and UIDs that they lack.
func Batch(ctx context.Context, all []client.Object) ([]Result, error) {
	assignAges(all)
	objects := newStaticObjects(all...)
	results := make([]Result, len(all))
	for i, o := range all {
		var err error
		if results[i], err = reviewStored(ctx, objects, o); err != nil {
			return nil, fmt.Errorf("reviewing %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		warnings, err := objects.fileWarnings(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("reviewing the files of %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		results[i].Warnings = append(results[i].Warnings, warnings...)
	}
	addZoneTraps(objects.members, all, results)
	return results, nil
}

// reviewStored reviews an object beside all others as if nothing in it had changed: problems are those of the object
// itself, not of those that it prevails over.
func reviewStored(ctx context.Context, objects Objects, o client.Object) (Result, error) {
	switch o := o.(type) {
	case v1beta1.Record:
		return recordReviewer{objects: objects, complete: true}.review(ctx, o, o)
	case *v1beta1.DNSZone:
		return zoneReviewer{objects}.review(ctx, o, nil)
	case *v1beta1.Bind9Instance:
		return instanceReviewer{objects}.review(ctx, o, nil)
	case *v1beta1.Bind9Cluster, *v1beta1.Bind9GlobalCluster, *v1beta1.ClusterBind9Provider:
		return clusterResult(o)
	case *v1beta1.DNSProvider:
		return providerReviewer{objects}.review(ctx, o, nil)
	case *v1alpha1.DNSEndpoint:
		return endpointReviewer{objects}.review(ctx, o, nil)
	}
	return Result{}, nil
}

// assignAges makes every object younger than those before it, and than all that have a timestamp.
func assignAges(all []client.Object) {
	latest := time.Unix(0, 0)
	for _, o := range all {
		if t := o.GetCreationTimestamp(); t.After(latest) {
			latest = t.Time
		}
	}
	for i, o := range all {
		if t := o.GetCreationTimestamp(); t.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(latest.Add(time.Duration(i+1) * time.Second)))
		}
		if zone, ok := o.(*v1beta1.DNSZone); ok { // Where it was served elsewhere does not count.
			zone.Generation, zone.Status = 0, v1beta1.DNSZoneStatus{}
		}
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("%09d", i)))
		}
	}
}
