package refresh

import (
	"context"
	"time"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/parallel"
)

// CurrentVerdict judges an object as it is in the Kubernetes cluster now, by answers from since or later; nil if it does not exist, and
// when ctx ends. Servers are asked and the verdict is evaluated and published while kube-apiserver is asked which version of the object
// is the present one: what the caches have is nearly always that. If not, or if anything else has changed meanwhile, the verdict is
// evaluated again. Errors are API errors.
func (r *Refresher) CurrentVerdict(ctx context.Context, key desired.Key, since time.Time) (*syncv1.SyncStatus, error) {
	assumed, _ := r.index.Resolve(key)
	if len(assumed.Zones) == 0 { // No server is asked, or the caches may learn of others until then.
		if err := r.WaitForObject(ctx, key); err != nil {
			return nil, err
		}
		return r.ResolvedVerdicts(ctx, []desired.Key{key}, since)[0], nil
	}
	early, outdate := context.WithCancel(ctx)
	defer outdate()
	var v *syncv1.SyncStatus
	evaluated := parallel.Start(func() {
		r.prefetch(early, &assumed, since)
		v = r.ResolvedVerdicts(early, []desired.Key{key}, since)[0]
	})
	if err := r.WaitForObject(ctx, key); err != nil { // It takes longest, and is sent first.
		return nil, err
	}
	if now, _ := r.index.Resolve(key); now.Equal(&assumed) {
		if evaluated(); v != nil && r.publisher.IsPublished(key, r.publisher.Digest(v)) {
			return v, nil
		}
	}
	outdate()
	return r.ResolvedVerdicts(ctx, []desired.Key{key}, since)[0], nil
}

// prefetch asks the servers of an object all that its verdict needs, at once. Nobody waits for the answers here; who asks next
// shares them.
func (r *Refresher) prefetch(ctx context.Context, s *desired.Subject, since time.Time) {
	ctx = context.WithoutCancel(ctx)
	go r.askZones(ctx, zonesOf(s), since)
	for z, keys := range resolvable(s) {
		for _, server := range z.Servers {
			if server.ReadBy != v1beta1.ReadByQuery {
				go r.askEach(ctx, z, server, keys, since)
			}
		}
	}
	for z, server := range readByQuery(s) {
		go r.askObject(ctx, z, server, s.Key, since)
	}
}
