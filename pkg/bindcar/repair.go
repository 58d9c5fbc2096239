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

// keyPace is how often the names of the keys are looked at.
const keyPace = 2 * time.Second

// repair has named load the keys that have changed, and gives zones the clause that they would get now: those that were
// added when another key was in use, or by an older sidecar on a volume that outlived its pod. It goes on until ctx ends.
func (s *server) repair(ctx context.Context) {
	const most = 30 * time.Second
	wait := time.Second
	var settled [2]string // The revisions that nothing is left to do for.
	for ctx.Err() == nil {
		revisions := s.revisions()
		if revisions != settled {
			if err := s.keepUp(ctx); err == nil {
				settled, wait = revisions, time.Second
			} else {
				klog.FromContext(ctx).V(2).Info("keys and zones not brought up to date yet", "reason", err.Error())
				wait = min(2*wait, most)
			}
		}
		pause := keyPace
		if revisions != settled {
			pause = wait
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// revisions are those of the key rings whose names are there.
func (s *server) revisions() (all [2]string) {
	for i, role := range keyRoles {
		if names, err := s.keyNames(role); err == nil {
			all[i] = names.Revision
		}
	}
	return all
}

func (s *server) keepUp(ctx context.Context) error {
	if err := s.loadKeys(ctx); err != nil {
		return err
	}
	done, err := s.repairAll(ctx)
	if done > 0 {
		klog.FromContext(ctx).Info("zones brought up to date", "zones", done)
	}
	return err
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
	if err != nil {
		return false, err
	}
	key, err := s.transferKey()
	if err != nil || s.upToDate(d, key) {
		return false, err
	}
	unlock, err := s.mutating.lock(ctx, d.Name)
	if err != nil {
		return false, err
	}
	defer unlock()
	// It may have been changed or deleted while others were repaired.
	if d, err = loadDescription(file); isGone(err) || err == nil && s.upToDate(d, key) {
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

// upToDate tells whether a zone's clause is what it would be with the key.
func (s *server) upToDate(d description, key string) bool {
	return d.NoticeAddress == s.options.NoticeAddress && d.TransferKey == key
}

func isGone(err error) bool { return err != nil && failureOf(err).code == http.StatusNotFound }
