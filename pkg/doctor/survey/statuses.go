package survey

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

// readStatuses asks for the verdicts that matter: those of instances, and those that are bad.
func (s *Survey) readStatuses(ctx context.Context, f *doctor.Facts) {
	f.Instances = s.listStatuses(ctx, client.MatchingFields{syncv1.FieldKind: "Bind9Instance"})
	f.OutOfSync = s.listStatuses(ctx, client.MatchingFields{syncv1.FieldInSync: "false"})
}

func (s *Survey) listStatuses(ctx context.Context, selector client.MatchingFields) doctor.Fact[doctor.Statuses] {
	read := fact[doctor.Statuses]("list syncstatuses", s.Namespace)
	began := time.Now()
	var list syncv1.SyncStatusList
	read.Err = s.client.List(ctx, &list, client.InNamespace(s.Namespace), selector)
	read.Value = doctor.Statuses{Items: list.Items, Took: time.Since(began)}
	return read
}
