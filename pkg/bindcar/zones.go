package bindcar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// Greatest bodies, in bytes: a zone of 100,000 records takes some 10 MB.
const (
	maxZoneBody  = 64 << 20
	maxPatchBody = 1 << 20
)

func (s *server) createZone(w http.ResponseWriter, r *http.Request) error {
	var request CreateZone
	if err := decode(w, r, maxZoneBody, &request); err != nil {
		return err
	}
	d, err := s.describe(request)
	if err != nil {
		return err
	}
	unlock, err := s.mutating.lock(r.Context(), d.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.add(r.Context(), d, request.ZoneConfig); err != nil {
		return err
	}
	klog.FromContext(r.Context()).Info("zone added", "zone", d.Name, "type", d.Type, "records", len(request.ZoneConfig.Records))
	respond(w, http.StatusCreated, Answer{Success: true, Message: "zone " + d.Name + " created"})
	return nil
}

// add puts the zone's files in place and then tells named. A failure leaves nothing behind. Once begun it is not
// interrupted by a caller who hangs up.
func (s *server) add(ctx context.Context, d description, config ZoneConfig) (err error) {
	ctx = context.WithoutCancel(ctx)
	files := s.files(d.Name)
	if files.any() {
		if err := s.mustBeMissing(ctx, d.Name); err != nil {
			return err
		}
		if err := files.remove(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.remove())
		}
	}()
	if d.Type == Primary {
		if err := writeZone(files.zone(), d.Name, config); err != nil {
			return err
		}
	}
	if err := s.restoreKeys(ctx, d); err != nil {
		return err
	}
	if err := d.save(files.description()); err != nil {
		return err
	}
	if _, err = s.control.Command(ctx, fmt.Sprintf("addzone %q %s", d.Name, d.clause(files.zone()))); err != nil {
		return err
	}
	if err := s.awaitKeys(ctx, d); err != nil {
		_, undo := s.control.Command(ctx, "delzone "+d.Name)
		return errors.Join(err, undo)
	}
	return nil
}

// mustBeMissing asks named for a zone that has files: they may be in use, or left from before. Without files there is
// nothing to lose, and addzone itself tells that the zone is there. named does one command at a time, so that one less
// makes many zones faster.
func (s *server) mustBeMissing(ctx context.Context, name string) error {
	switch _, err := s.status(ctx, name); {
	case err == nil:
		return failure(http.StatusConflict, "zone exists", "zone "+name+" is on this server already")
	case !isNotFound(err):
		return err
	}
	return nil
}

func (s *server) deleteZone(w http.ResponseWriter, r *http.Request) error {
	name, err := zoneName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	unlock, err := s.mutating.lock(r.Context(), name)
	if err != nil {
		return err
	}
	defer unlock()
	ctx := context.WithoutCancel(r.Context())
	if err := s.addedAtRunTime(ctx, name); err != nil && !isNotFound(err) {
		return err
	}
	_, err = s.control.Command(ctx, "delzone "+name)
	if err != nil && !isNotFound(err) {
		return err
	}
	// Files go by name: named's own cleaning would remove what another zone may share.
	if err := errors.Join(err, s.files(name).remove()); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("zone deleted", "zone", name)
	respond(w, http.StatusOK, Answer{Success: true, Message: "zone " + name + " deleted"})
	return nil
}

// addedAtRunTime refuses zones of the static configuration, which delzone would remove as well.
func (s *server) addedAtRunTime(ctx context.Context, name string) error {
	if _, err := os.Stat(s.files(name).description()); err == nil {
		return nil
	}
	if _, err := s.status(ctx, name); err != nil {
		return err
	}
	return badRequest("name", fmt.Errorf("zone %s is part of the server's configuration", name))
}

// status is named's description of a zone. A zone without data has one as well.
func (s *server) status(ctx context.Context, name string) (string, error) {
	text, err := s.control.Command(ctx, "zonestatus "+name)
	var refused *named.CommandError
	if errors.As(err, &refused) && refused.NotLoaded() {
		return refused.Message, nil
	}
	return text, err
}

func (s *server) patchZone(w http.ResponseWriter, r *http.Request) error {
	name, err := zoneName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	var patch PatchZone
	if err := decode(w, r, maxPatchBody, &patch); err != nil {
		return err
	}
	unlock, err := s.mutating.lock(r.Context(), name)
	if err != nil {
		return err
	}
	defer unlock()
	ctx := context.WithoutCancel(r.Context())
	if err := s.addedAtRunTime(ctx, name); err != nil {
		return err
	}
	files := s.files(name)
	d, err := loadDescription(files.description())
	if err != nil {
		return err
	}
	changed, err := d.patched(patch)
	if err != nil {
		return err
	}
	if changed.DNSSECPolicy != d.DNSSECPolicy || changed.KeySecret != d.KeySecret {
		if err := s.beforeSigning(ctx, d, changed); err != nil {
			return err
		}
	}
	if err := s.modify(ctx, changed); err != nil {
		return err
	}
	if err := s.awaitKeys(ctx, changed); err != nil {
		return err
	}
	if d.Type == Secondary && patch.Primaries != nil {
		// A zone that has data would ask its new primaries at its next refresh, which can be hours away.
		if _, err := s.control.Command(ctx, "refresh "+name); err != nil {
			return err
		}
	}
	klog.FromContext(ctx).Info("zone changed", "zone", name)
	respond(w, http.StatusOK, Answer{Success: true, Message: "zone " + name + " changed"})
	return nil
}

// beforeSigning prepares another policy for a zone that is there. A zone that was not signed gets the keys that are kept.
// Who asks for "insecure" says that the parent has no DS record any more; named has to be told.
func (s *server) beforeSigning(ctx context.Context, before, after description) error {
	if before.DNSSECPolicy == "" {
		return s.restoreKeys(ctx, after)
	}
	if after.DNSSECPolicy == named.PolicyInsecure && before.DNSSECPolicy != named.PolicyInsecure {
		if _, err := s.control.Command(ctx, "dnssec -checkds withdrawn "+after.Name); err != nil {
			klog.FromContext(ctx).Info("named was not told that the DS records are withdrawn", "zone", after.Name, "reason", err.Error())
		}
	}
	return nil
}

// modify gives a zone that is there a new clause. The running zone takes it on without a restart, and keeps its data.
func (s *server) modify(ctx context.Context, d description) error {
	files := s.files(d.Name)
	d.NoticeAddress = s.options.NoticeAddress
	var err error
	if d.TransferKey, err = s.transferKey(); err != nil {
		return err
	}
	if _, err := s.control.Command(ctx, fmt.Sprintf("modzone %q %s", d.Name, d.clause(files.zone()))); err != nil {
		return err
	}
	return d.save(files.description())
}

func (s *server) zoneStatus(w http.ResponseWriter, r *http.Request) error {
	name, err := zoneName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	text, err := s.status(r.Context(), name)
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, Answer{Success: true, Message: "zone status", Details: text})
	return nil
}

// zoneCommand runs an rndc command on a zone.
func (s *server) zoneCommand(command string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := zoneName("name", r.PathValue("name"))
		if err != nil {
			return err
		}
		text, err := s.control.Command(r.Context(), command+" "+name)
		if err != nil {
			return err
		}
		klog.FromContext(r.Context()).Info("zone command", "zone", name, "command", command)
		respond(w, http.StatusOK, Answer{Success: true, Message: command + " " + name, Details: text})
		return nil
	}
}

// decode reads a JSON body. Unknown fields are let through: callers of newer versions may send them.
func decode(w http.ResponseWriter, r *http.Request, limit int64, out any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch err := decoder.Decode(out); {
	case errors.As(err, &tooLarge):
		return failure(http.StatusRequestEntityTooLarge, "body too large", fmt.Sprintf("the limit is %d bytes", tooLarge.Limit))
	case err != nil:
		return badRequest("body", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badRequest("body", errors.New("there is more than one JSON value"))
	}
	return nil
}

func isNotFound(err error) bool {
	var refused *named.CommandError
	return errors.As(err, &refused) && refused.NotFound()
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
