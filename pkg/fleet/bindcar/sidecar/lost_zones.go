package sidecar

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// zoneCountInterval is how often named's zones are counted.
const zoneCountInterval = time.Second

// zoneCountLine is in the output of status: "number of zones: 103 (99 automatic)".
var zoneCountLine = regexp.MustCompile(`(?m)^number of zones: (\d+)\b`)

// watchZones gives named back the zones that it has lost although nobody deleted them here, by an "rndc delzone" for
// example: no NOTIFY reports that. It counts; only a count that does not fit, twice in a row so that no zone is just being
// added or deleted, is a reason to compare the lists. It runs until ctx ends.
func (s *server) watchZones(ctx context.Context) {
	const unknown = -1 << 31
	checked, last := unknown, unknown
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		others, err := s.countOthers(ctx)
		if err != nil {
			return // named is starting, or away: its readiness says so.
		}
		if others == last && others != checked {
			if err := s.restoreZones(ctx); err != nil {
				klog.FromContext(ctx).V(2).Info("zones not compared with those that were added", "reason", err.Error())
				return
			}
			checked = others
		}
		last = others
	}, zoneCountInterval)
}

// countOthers is how many more zones named has than were added here. That is constant while it loses none.
func (s *server) countOthers(ctx context.Context) (int, error) {
	text, err := s.control.Command(ctx, "status")
	if err != nil {
		return 0, err
	}
	found := zoneCountLine.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("named does not report its number of zones: %q", text)
	}
	all, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, err
	}
	added, err := s.zones.CountDescriptions()
	return all - added, err
}

// restoreZones adds the zones that named lacks, with the data that they had, and has the readers of notifications look at
// them. What cannot be restored is left to the controller, which adds it anew.
func (s *server) restoreZones(ctx context.Context) error {
	served, err := s.statistics.Zones(ctx)
	if err != nil {
		return err
	}
	added, _, err := s.zones.LoadDescriptions()
	if err != nil {
		return err
	}
	for _, zone := range served {
		delete(added, zone.Name)
	}
	for name := range added {
		lost, err := s.restoreZone(ctx, name)
		if lost {
			klog.FromContext(ctx).Info("named had lost a zone", "zone", name, "restored", err == nil)
			s.notifications.Log.Add(bindcar.Notification{Zone: name, At: time.Now()})
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "lost zone not restored", "zone", name)
		}
	}
	return nil
}

// restoreZone adds a zone again if named does not have it.
func (s *server) restoreZone(ctx context.Context, name string) (lost bool, err error) {
	unlock, err := s.zones.Lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer unlock()
	if _, err = s.zoneStatus(ctx, name); !httperror.IsNotFound(err) {
		return false, err
	}
	return s.restoreMissing(ctx, name)
}

// restoreMissing adds a zone again that named does not have and that was added here. Its lock is held.
func (s *server) restoreMissing(ctx context.Context, name string) (lost bool, err error) {
	zone, err := s.zones.LoadDescription(name)
	if err != nil {
		return false, ignoreNotFound(err) // It was deleted.
	}
	_, err = s.control.Command(ctx, fmt.Sprintf("addzone %q %s", name, zone.Clause(s.zones.Files(name).Content())))
	return true, err
}

func ignoreNotFound(err error) error {
	if httperror.IsNotFound(err) {
		return nil
	}
	return err
}
