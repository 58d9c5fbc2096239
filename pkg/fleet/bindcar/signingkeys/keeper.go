// Package signingkeys saves the DNSSEC keys that named makes for a zone in the zone's Secret, and restores them, so that a
// zone is signed by the same keys after its pod has lost its volume.
package signingkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// keyTimeout is how long named may take to make the first keys of a zone.
const keyTimeout = 10 * time.Second

const (
	// saveInterval is how often the keys on disk are compared with the saved ones: named makes new keys when it rolls them, and
	// notes in the others how far a roll-over is.
	saveInterval = 10 * time.Second
	// rereadAfter is how long a Secret counts as it was read or written: somebody may delete it, and an empty one takes its place.
	rereadAfter = time.Hour
)

// Keeper saves and restores the keys of all zones in a directory.
type Keeper struct {
	zones *zonefile.Dir
	open  func() (Store, error)

	mu    sync.Mutex
	saved map[string]savedKeys // by Secret
}

// savedKeys are the keys that a Secret had at a time.
type savedKeys struct {
	keyFiles
	at time.Time
}

// NewKeeper returns a keeper. open is called when a zone needs the store.
func NewKeeper(zones *zonefile.Dir, open func() (Store, error)) *Keeper {
	return &Keeper{zones: zones, open: open, saved: map[string]savedKeys{}}
}

// Restore puts the saved keys of a zone that begins to be signed on disk, in place of those there. Keys on disk that its Secret
// does not have are those of a former zone of that name, perhaps somebody else's: named must not find them.
func (k *Keeper) Restore(ctx context.Context, zone zonefile.Description) error {
	if !zone.SavesKeys() {
		return nil
	}
	store, err := k.open()
	if err != nil {
		return err
	}
	entries, err := store.Load(ctx, zone.KeySecret)
	if err != nil {
		return fmt.Errorf("reading the keys of zone %s from Secret %s: %w", zone.Name, zone.KeySecret, err)
	}
	saved := onlyKeys(entries)
	if err := saved.writeTo(k.zones.KeyFilePrefix(zone.Name)); err != nil {
		return fmt.Errorf("restoring the keys of zone %s: %w", zone.Name, err)
	}
	k.rememberSaved(zone.KeySecret, saved)
	return nil
}

// AwaitKeys waits until named has made the keys of a zone that it has just begun to sign, and saves them. Before they are
// saved nobody may publish them at the parent: a lost pod would take them along.
func (k *Keeper) AwaitKeys(ctx context.Context, zone zonefile.Description) error {
	if !zone.SavesKeys() || zone.DNSSECPolicy == clause.PolicyInsecure {
		return nil
	}
	var files keyFiles
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, keyTimeout, true, func(context.Context) (complete bool, err error) {
		files, err = readKeyFiles(k.zones.KeyFilePrefix(zone.Name))
		return files.isComplete(), err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("named has made no key for zone %s by policy %q: its log says why", zone.Name, zone.DNSSECPolicy)
	}
	if err != nil {
		return err
	}
	return k.saveKeys(ctx, zone, files)
}

// saveKeys puts the keys into the zone's Secret unless it has them. Files that go from disk while this process runs are deleted there, too:
// named has done with the key. What the disk lacks at the start stays: a volume that was restored from a backup lacks later keys, and nobody else
// has these.
func (k *Keeper) saveKeys(ctx context.Context, zone zonefile.Description, files keyFiles) error {
	store, err := k.open()
	if err != nil {
		return err
	}
	k.mu.Lock()
	last := k.saved[zone.KeySecret]
	k.mu.Unlock()
	saved, known := last.keyFiles, time.Since(last.at) < rereadAfter
	if known && saved.equal(files) {
		return nil
	}
	if !known {
		entries, err := store.Load(ctx, zone.KeySecret)
		if err != nil {
			return fmt.Errorf("reading Secret %s: %w", zone.KeySecret, err)
		}
		saved = onlyKeys(entries)
		maps.DeleteFunc(saved, func(entry string, _ []byte) bool { return !files.has(entry) && !last.has(entry) })
	}
	if !saved.equal(files) {
		if err := store.Save(ctx, zone.KeySecret, saved, files); err != nil {
			return fmt.Errorf("saving the keys of zone %s in Secret %s: %w", zone.Name, zone.KeySecret, err)
		}
		klog.FromContext(ctx).Info("signing keys saved", "zone", zone.Name, "secret", zone.KeySecret, "files", len(files))
	}
	k.rememberSaved(zone.KeySecret, files)
	return nil
}

func (k *Keeper) rememberSaved(secret string, files keyFiles) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saved[secret] = savedKeys{files, time.Now()}
}

// Run saves the keys that named changes, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.SaveAll(ctx); err != nil {
			klog.FromContext(ctx).Info("signing keys not saved yet", "reason", err.Error())
		}
	}, saveInterval)
}

// SaveAll saves the keys of all zones that have changed.
func (k *Keeper) SaveAll(ctx context.Context) error {
	zones, _, err := k.zones.LoadDescriptions()
	if err != nil {
		return err
	}
	var problems []error
	for _, zone := range zones {
		if zone.SavesKeys() {
			problems = append(problems, k.saveZone(ctx, zone.Name))
		}
	}
	return errors.Join(problems...)
}

func (k *Keeper) saveZone(ctx context.Context, name string) error {
	unlock, err := k.zones.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	// It may have been changed or deleted meanwhile.
	zone, err := k.zones.LoadDescription(name)
	if httperror.IsNotFound(err) || err == nil && !zone.SavesKeys() {
		return nil
	}
	if err != nil {
		return err
	}
	files, err := readKeyFiles(k.zones.KeyFilePrefix(name))
	if err != nil || !files.isComplete() {
		return err
	}
	return k.saveKeys(ctx, zone, files)
}
