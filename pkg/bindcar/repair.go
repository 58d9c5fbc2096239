package bindcar

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// repair gives the zones that an older sidecar added, on a volume that outlived its pod, the clause that this one would
// give them. It goes on until named has taken all, or ctx ends.
func (s *server) repair(ctx context.Context) {
	const most = 30 * time.Second
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, most) {
		done, err := s.repairAll(ctx)
		if done > 0 {
			klog.FromContext(ctx).Info("zones brought up to date", "zones", done)
		}
		if err == nil {
			return
		}
		klog.FromContext(ctx).V(2).Info("zones not brought up to date yet", "reason", err.Error())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// repairAll tells how many zones it changed. The error is that of a named that does not answer; what named refuses about
// one zone is logged and stays as it is.
func (s *server) repairAll(ctx context.Context) (done int, err error) {
	entries, err := os.ReadDir(s.options.ZonesDir)
	if err != nil {
		return 0, fmt.Errorf("listing zone files: %w", err)
	}
	for _, entry := range entries {
		stem, ok := strings.CutSuffix(entry.Name(), suffixDescription)
		if !ok {
			continue
		}
		changed, err := s.repairZone(ctx, stem)
		switch {
		case err != nil && (isNetwork(err) || ctx.Err() != nil):
			return done, err
		case err != nil:
			klog.FromContext(ctx).Error(err, "zone not brought up to date", "file", entry.Name())
		case changed:
			done++
		}
	}
	return done, nil
}

func (s *server) repairZone(ctx context.Context, stem string) (changed bool, err error) {
	file := filepath.Join(s.options.ZonesDir, stem+suffixDescription)
	d, err := loadDescription(file)
	if err != nil || d.NoticeAddress == s.options.NoticeAddress {
		return false, err
	}
	unlock, err := s.mutating.lock(ctx, d.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	// It may have been changed or deleted while others were repaired.
	if d, err = loadDescription(file); isGone(err) || err == nil && d.NoticeAddress == s.options.NoticeAddress {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.modify(ctx, d); !isNotFound(err) {
		return err == nil, err
	}
	return false, nil
}

func isGone(err error) bool { return err != nil && failureOf(err).code == http.StatusNotFound }
