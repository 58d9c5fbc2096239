package sidecar

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
)

const (
	// keyCheckInterval is how often the names of the TSIG keys are read.
	keyCheckInterval = 2 * time.Second
	// settlePause is how long whoever could not change a zone has to try again, before it gets the clause that it had.
	settlePause = 2 * keyCheckInterval
)

var retryBackoff = wait.Backoff{Duration: 2 * time.Second, Factor: 2, Steps: math.MaxInt, Cap: 30 * time.Second}

// runReconciler makes named load keys that have changed, and replaces clauses of zones that differ from what they would be
// now: of those that were added with another key, or by an older sidecar on a volume that outlived its pod, and of those that may be another one
// than was saved. It runs until ctx ends.
func (s *server) runReconciler(ctx context.Context) {
	backoff := retryBackoff
	var reconciled [2]string // the revisions of the key rings that all zones have
	for ctx.Err() == nil {
		pause := keyCheckInterval
		if revisions := s.tsigKeys.ringRevisions(); revisions != reconciled {
			if err := s.reconcile(ctx); err == nil {
				reconciled, backoff = revisions, retryBackoff
			} else {
				klog.FromContext(ctx).V(2).Info("keys and zones not up to date yet", "reason", err.Error())
				pause = backoff.Step()
			}
		}
		select {
		case <-time.After(pause):
		case <-s.settle:
			reconciled = [2]string{}
		case <-ctx.Done():
		}
	}
}

// settleSoon has named given the clauses that are saved, of those zones whose it may not have.
func (s *server) settleSoon() {
	time.AfterFunc(settlePause, func() {
		select {
		case s.settle <- struct{}{}:
		default: // It is about to happen.
		}
	})
}

func (s *server) reconcile(ctx context.Context) error {
	if err := s.tsigKeys.ensureLoaded(ctx); err != nil {
		return err
	}
	changed, err := s.reconcileZones(ctx)
	if changed > 0 {
		klog.FromContext(ctx).Info("zones brought up to date", "zones", changed)
	}
	return err
}

// reconcileZones counts the zones that it changed. It fails when named does not answer; what named refuses about one zone is logged and
// stays as it is.
func (s *server) reconcileZones(ctx context.Context) (changed int, err error) {
	zones, damaged, err := s.zones.LoadDescriptions()
	if err != nil {
		return 0, err
	}
	for _, err := range damaged {
		klog.FromContext(ctx).Error(err, "zone not brought up to date: its description cannot be read")
	}
	for name, zone := range zones {
		done, err := s.reconcileZone(ctx, zone)
		switch {
		case err != nil && (httperror.IsUnavailable(err) || ctx.Err() != nil):
			return changed, err
		case err != nil:
			klog.FromContext(ctx).Error(err, "zone not brought up to date", "zone", name)
		case done:
			changed++
		}
	}
	return changed, nil
}

func (s *server) reconcileZone(ctx context.Context, zone zonefile.Description) (changed bool, err error) {
	key, err := s.tsigKeys.transferKey()
	if err != nil || s.isUpToDate(zone, key) {
		return false, err
	}
	unlock, err := s.zones.Lock(ctx, zone.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	// It may have been changed or deleted while others were reconciled.
	if zone, err = s.zones.LoadDescription(zone.Name); err == nil {
		if s.isUpToDate(zone, key) {
			return false, nil
		}
		if !isOwnAddress(zone.TransferSource) {
			zone.TransferSource = ""
		}
		err = s.replaceClause(ctx, zone, zone)
	}
	return err == nil, ignoreNotFound(err)
}

// isUpToDate reports whether a zone's clause is what it would be with the key.
func (s *server) isUpToDate(zone zonefile.Description, key string) bool {
	return !zone.Unsettled && zone.NoticeAddress == s.noticeAddress && zone.TransferKey == key && (zone.AdmitsGuests || len(zone.AllowTransfer) == 0) &&
		(zone.TransferSource == "" || isOwnAddress(zone.TransferSource))
}
