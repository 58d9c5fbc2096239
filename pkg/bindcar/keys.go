package bindcar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// keyFiles are the files of a zone's keys as entries of a Secret, which take no "+": "013-12345.private" is named's
// "Kexample.com.+013+12345.private". The state files are among them: without these named would begin anew to count when
// a key may be used, or dropped.
type keyFiles map[string][]byte

// keyPatience is how long named may take to make the first keys of a zone.
const keyPatience = 10 * time.Second

// keysEvery is how often the keys on disk are compared with those that are kept: named makes new ones when it rolls them,
// and notes in the others how far a roll is.
const keysEvery = 10 * time.Second

var keyEntry = regexp.MustCompile(`^([0-9]{3})-([0-9]{5})\.(key|private|state)$`)

// keyPrefix is how the names of a zone's key files begin.
func (s *server) keyPrefix(zone string) string {
	var b strings.Builder
	for _, c := range []byte(zone) {
		if plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return filepath.Join(s.options.ZonesDir, "K"+b.String()+".+")
}

// keysOnDisk reads the key files of a zone.
func (s *server) keysOnDisk(zone string) (keyFiles, error) {
	prefix := s.keyPrefix(zone)
	paths, err := filepath.Glob(prefix + "[0-9][0-9][0-9]+*")
	if err != nil {
		return nil, err
	}
	files := keyFiles{}
	for _, path := range paths {
		entry := strings.Replace(strings.TrimPrefix(path, prefix), "+", "-", 1)
		if !keyEntry.MatchString(entry) {
			continue
		}
		content, err := os.ReadFile(path) //nolint:gosec // the name is one of the zone's keys
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a key of zone %s: %w", zone, err)
		}
		files[entry] = content
	}
	return files, nil
}

// complete tells whether there is a key with its private half and its state.
func (k keyFiles) complete() bool {
	for entry := range k {
		stem, private := strings.CutSuffix(entry, ".private")
		if private && len(k[stem+".key"]) > 0 && len(k[stem+".state"]) > 0 {
			return true
		}
	}
	return false
}

func (k keyFiles) equal(o keyFiles) bool { return maps.EqualFunc(k, o, bytes.Equal) }

// signed tells whether keys sign the zone, and are to be kept.
func (d description) keepsKeys() bool {
	return d.Type == Primary && d.KeySecret != "" && d.DNSSECPolicy != "" && d.DNSSECPolicy != named.PolicyNone
}

// restoreKeys puts the kept keys of a zone on disk, in place of those there. Nothing happens when none are kept.
func (s *server) restoreKeys(ctx context.Context, d description) error {
	if !d.keepsKeys() {
		return nil
	}
	store, err := s.keyStore()
	if err != nil {
		return err
	}
	kept, err := store.load(ctx, d.KeySecret)
	if err != nil {
		return fmt.Errorf("reading the keys of zone %s from Secret %s: %w", d.Name, d.KeySecret, err)
	}
	maps.DeleteFunc(kept, func(entry string, _ []byte) bool { return !keyEntry.MatchString(entry) })
	if len(kept) == 0 {
		return nil
	}
	disk, err := s.keysOnDisk(d.Name)
	if err != nil {
		return err
	}
	prefix := s.keyPrefix(d.Name)
	for entry := range disk {
		if _, known := kept[entry]; !known {
			if err := removeFile(prefix + strings.Replace(entry, "-", "+", 1)); err != nil {
				return err
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(kept)) {
		if err := writeKey(prefix+strings.Replace(entry, "-", "+", 1), kept[entry]); err != nil {
			return fmt.Errorf("writing a key of zone %s: %w", d.Name, err)
		}
	}
	s.keptKeys.set(d.KeySecret, kept)
	return nil
}

func writeKey(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// awaitKeys waits until named has made the keys of a zone that it was just told to sign, and keeps them. Before they are
// kept nobody may tell the parent of them: a pod that is lost would take them along.
func (s *server) awaitKeys(ctx context.Context, d description) error {
	if !d.keepsKeys() || d.DNSSECPolicy == named.PolicyInsecure {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyPatience)
	defer cancel()
	for {
		files, err := s.keysOnDisk(d.Name)
		if err != nil {
			return err
		}
		if files.complete() {
			return s.keepKeys(ctx, d, files)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("named has made no key for zone %s by policy %q: its log says why", d.Name, d.DNSSECPolicy)
		}
	}
}

// keepKeys puts the keys into the zone's Secret unless it has them.
func (s *server) keepKeys(ctx context.Context, d description, files keyFiles) error {
	store, err := s.keyStore()
	if err != nil {
		return err
	}
	before, known := s.keptKeys.get(d.KeySecret)
	if known && before.equal(files) {
		return nil
	}
	if !known {
		if before, err = store.load(ctx, d.KeySecret); err != nil {
			return fmt.Errorf("reading Secret %s: %w", d.KeySecret, err)
		}
		maps.DeleteFunc(before, func(entry string, _ []byte) bool { return !keyEntry.MatchString(entry) })
	}
	if !before.equal(files) {
		if err := store.save(ctx, d.KeySecret, before, files); err != nil {
			return fmt.Errorf("keeping the keys of zone %s in Secret %s: %w", d.Name, d.KeySecret, err)
		}
		klog.FromContext(ctx).Info("keys of a zone kept", "zone", d.Name, "secret", d.KeySecret, "files", len(files))
	}
	s.keptKeys.set(d.KeySecret, files)
	return nil
}

// followKeys keeps the keys that named changes, until ctx ends.
func (s *server) followKeys(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.keepAllKeys(ctx); err != nil {
			klog.FromContext(ctx).Info("keys of zones not kept yet", "reason", err.Error())
		}
		select {
		case <-time.After(keysEvery):
		case <-ctx.Done():
		}
	}
}

func (s *server) keepAllKeys(ctx context.Context) error {
	all, err := s.descriptions.all(s.options.ZonesDir)
	if err != nil {
		return err
	}
	var problems []error
	for _, d := range all {
		if d.keepsKeys() {
			problems = append(problems, s.keepKeysOf(ctx, d.Name))
		}
	}
	return errors.Join(problems...)
}

func (s *server) keepKeysOf(ctx context.Context, zone string) error {
	unlock, err := s.mutating.lock(ctx, zone)
	if err != nil {
		return err
	}
	defer unlock()
	// It may have been changed or deleted meanwhile.
	d, err := loadDescription(s.files(zone).description())
	if err != nil || !d.keepsKeys() {
		return ignoreGone(err)
	}
	files, err := s.keysOnDisk(zone)
	if err != nil || !files.complete() {
		return err
	}
	return s.keepKeys(ctx, d, files)
}

func ignoreGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}
