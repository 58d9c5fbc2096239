package bindcar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// keyRoles are the roles that a server can have keys of.
var keyRoles = []named.KeyRole{named.KeyUpdate, named.KeyTransfer}

// keyNames reads the names of the keys that named is to have; none when it needs none in the role. The sidecar never
// sees the keys themselves.
func (s *server) keyNames(role named.KeyRole) (names named.KeyNames, err error) {
	file := filepath.Join(s.options.KeyNamesDir, string(role), named.KeyNamesEntry)
	text, err := os.ReadFile(file) //nolint:gosec // the path is a flag of ours
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return names, fmt.Errorf("reading the names of the %s keys: %w", role, err)
	}
	return names, nil
}

// transferKey is the name of the key that transfers and NOTIFY are to be signed with. It becomes that only after every
// server has loaded it.
func (s *server) transferKey() (string, error) {
	names, err := s.keyNames(named.KeyTransfer)
	if err == nil && names.Active == "" {
		err = fmt.Errorf("%s names no transfer key", s.options.KeyNamesDir)
	}
	return names.Active, err
}

var tsigLine = regexp.MustCompile(`(?m)type "static"; key "([^"]+)";`)

// loadedKeys are the keys of each role that named has. What it has is known by the ring's revision, which is the name of a
// key as well: files that were read at another moment than these would have another.
func (s *server) loadedKeys(ctx context.Context) (loaded map[string][]string, complete bool, err error) {
	text, err := s.control.Command(ctx, "tsig-list")
	if err != nil {
		return nil, false, err
	}
	has := map[string]bool{}
	for _, found := range tsigLine.FindAllStringSubmatch(text, -1) {
		has[strings.TrimSuffix(found[1], ".")] = true
	}
	loaded, complete = map[string][]string{}, true
	for _, role := range keyRoles {
		names, err := s.keyNames(role)
		switch {
		case err != nil:
			return nil, false, err
		case names.Revision == "":
		case has[strings.TrimSuffix(names.Revision, ".")]:
			loaded[string(role)] = names.Accepted
		default:
			complete = false
		}
	}
	return loaded, complete, nil
}

// errKeysPending says that the files with the keys have yet to reach named's container.
var errKeysPending = errors.New("named has not loaded the present keys")

// loadKeys makes named read its configuration again when its keys have changed. Nothing is restarted.
func (s *server) loadKeys(ctx context.Context) error {
	_, complete, err := s.loadedKeys(ctx)
	if err != nil || complete {
		return err
	}
	if _, err := s.control.Command(ctx, "reconfig"); err != nil {
		return err
	}
	if _, complete, err = s.loadedKeys(ctx); err == nil && !complete {
		err = errKeysPending
	}
	if err == nil {
		klog.FromContext(ctx).Info("keys loaded")
	}
	return err
}

// signing is the transfer key that the clauses of all zones name; empty while they differ from what they are to name.
func (s *server) signing() (string, error) {
	key, err := s.transferKey()
	if err != nil {
		return "", err
	}
	all, err := s.descriptions.all(s.options.ZonesDir)
	if err != nil {
		return "", err
	}
	for _, d := range all {
		if d.TransferKey != key {
			return "", nil
		}
	}
	return key, nil
}

func (s *server) serverKeys(w http.ResponseWriter, r *http.Request) error {
	loaded, _, err := s.loadedKeys(r.Context())
	if err != nil {
		return err
	}
	signing, err := s.signing()
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, ServerKeys{Loaded: loaded, Signing: signing})
	return nil
}

// knownUpdateKey refuses the name of a key that may not update: named would take it and refuse every update later.
func (s *server) knownUpdateKey(name string) error {
	names, err := s.keyNames(named.KeyUpdate)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names.Accepted, func(known string) bool {
		return strings.EqualFold(strings.TrimSuffix(known, "."), strings.TrimSuffix(name, "."))
	}) {
		return badRequest("updateKeyName", fmt.Errorf("this server has no key %q", name))
	}
	return nil
}
