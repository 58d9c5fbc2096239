package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/zonefile"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Greatest bodies, in bytes: a zone of 100,000 records takes some 10 MB.
const (
	maxZoneBody  = 64 << 20
	maxPatchBody = 1 << 20

	maxCommandBody = 1 << 10
)

func (s *server) createZone(w http.ResponseWriter, r *http.Request) error {
	var request bindcar.CreateZone
	if err := httperror.ReadJSON(w, r, maxZoneBody, &request); err != nil {
		return err
	}
	zone, err := s.describeZone(request)
	if err != nil {
		return err
	}
	unlock, err := s.zones.Lock(r.Context(), zone.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.addZone(r.Context(), zone, request); err != nil {
		return err
	}
	klog.FromContext(r.Context()).Info("zone added", "zone", zone.Name, "type", zone.Type, "records", len(request.ZoneConfig.Records))
	respondSuccess(w, http.StatusCreated, "zone "+zone.Name+" created", "")
	return nil
}

// describeZone makes the valid description that a request asks for; its error names the field.
func (s *server) describeZone(request bindcar.CreateZone) (zonefile.Description, error) {
	zone, err := zonefile.Describe(request)
	if err != nil {
		return zone, err
	}
	zone.NoticeAddress, zone.AdmitsGuests = s.noticeAddress, true
	if request.UpdateKeyName != "" && zone.Type == bindcar.Primary {
		if err := s.tsigKeys.checkUpdateKey(request.UpdateKeyName); err != nil {
			return zone, err
		}
		zone.UpdateKeyName = request.UpdateKeyName
	}
	if zone.TransferKey, err = s.tsigKeys.transferKey(); err != nil {
		return zone, err
	}
	return zone, zone.Validate()
}

// addZone puts the zone's files in place and then adds it to named. A zone that named has lost exists still, with the data that
// it had. A failure leaves nothing behind, unless named did not answer: it may have the zone by then, with these files. Once begun it is not
// interrupted by a caller that disconnects.
func (s *server) addZone(ctx context.Context, zone zonefile.Description, request bindcar.CreateZone) (err error) {
	ctx = context.WithoutCancel(ctx)
	files := s.zones.Files(zone.Name)
	if files.Exist() {
		if err := s.ensureMissing(ctx, zone.Name, request.ReplaceUnloaded); err != nil {
			return err
		}
		if lost, err := s.restoreMissing(ctx, zone.Name); lost && err == nil {
			return errZoneExists(zone.Name)
		} else if mayHaveRun(err) {
			return err
		}
		if err := files.Remove(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil && !mayHaveRun(err) {
			err = errors.Join(err, files.Remove())
		}
	}()
	if zone.Type == bindcar.Primary {
		if err := zonefile.Write(files.Content(), zone.Name, request.ZoneConfig); err != nil {
			return err
		}
	}
	if err := s.signingKeys.Restore(ctx, zone); err != nil {
		return err
	}
	if err := s.zones.SaveDescription(zone); err != nil {
		return err
	}
	if _, err = s.control.Command(ctx, fmt.Sprintf("addzone %q %s", zone.Name, zone.Clause(files.Content()))); err != nil {
		return err
	}
	if err := s.signingKeys.AwaitKeys(ctx, zone); err != nil {
		_, undo := s.control.Command(ctx, "delzone "+zone.Name)
		return errors.Join(err, undo)
	}
	return nil
}

// mayHaveRun reports whether named may have carried out the command that ended with an error: it was not heard of again. On a new connection, that
// looks like a wrong key to a client.
func mayHaveRun(err error) bool { return httperror.IsUnavailable(err) || errors.Is(err, rndc.ErrAuth) }

// ensureMissing asks named for a zone that has files: they may be in use, or left from before. Without files there is
// nothing to lose, and addzone itself fails when the zone is there. named runs one command at a time, so one less makes
// adding many zones faster. A zone without data is taken from named if that is asked for: it counts as lost then, and is
// loaded once more. It is not one that is just being loaded, because zonestatus waits for that.
func (s *server) ensureMissing(ctx context.Context, name string, takeUnloaded bool) error {
	text, err := s.zoneStatus(ctx, name)
	switch {
	case httperror.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case takeUnloaded && parseType(text) == "":
		_, err = s.control.Command(ctx, "delzone "+name)
		return err
	}
	return errZoneExists(name)
}

func errZoneExists(name string) error {
	return httperror.New(http.StatusConflict, "zone exists", "zone "+name+" is on this server already")
}

// lockZone locks the zone that the path of a request names.
func (s *server) lockZone(r *http.Request) (name string, unlock func(), err error) {
	if name, err = zonefile.ParseName("name", r.PathValue("name")); err == nil {
		unlock, err = s.zones.Lock(r.Context(), name)
	}
	return name, unlock, err
}

func (s *server) deleteZone(w http.ResponseWriter, r *http.Request) error {
	name, unlock, err := s.lockZone(r)
	if err != nil {
		return err
	}
	defer unlock()
	query := r.URL.Query()
	if err := s.checkOwner(name, bindcar.Owner{Name: query.Get("owner"), UID: query.Get("ownerUID")}); err != nil {
		return err
	}
	ctx := context.WithoutCancel(r.Context())
	if err := s.checkAddedAtRunTime(ctx, name); err != nil && !httperror.IsNotFound(err) {
		return err
	}
	_, err = s.control.Command(ctx, "delzone "+name)
	if err != nil && !httperror.IsNotFound(err) {
		return err
	}
	// Files go by name: named's own cleaning would remove what another zone may share.
	if err := errors.Join(err, s.zones.Files(name).Remove()); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("zone deleted", "zone", name)
	s.notifications.Log.Add(bindcar.Notification{Zone: name, At: time.Now()}) // Whoever wants it here sees that it is gone.
	respondSuccess(w, http.StatusOK, "zone "+name+" deleted", "")
	return nil
}

// checkOwner answers that there is no zone if the one of that name has the data of another DNSZone than owner. A damaged description names
// no owner.
func (s *server) checkOwner(name string, owner bindcar.Owner) error {
	if d, err := s.zones.LoadDescription(name); err == nil && owner.IsOther(bindcar.Owner{Name: d.Owner, UID: d.OwnerUID}) {
		return httperror.New(http.StatusNotFound, "zone not found", "zone "+name+" has the data of another DNSZone than "+owner.Name)
	}
	return nil
}

// checkAddedAtRunTime rejects zones of the static configuration, which delzone would remove as well.
func (s *server) checkAddedAtRunTime(ctx context.Context, name string) error {
	if s.zones.Files(name).Described() {
		return nil
	}
	if _, err := s.zoneStatus(ctx, name); err != nil {
		return err
	}
	return httperror.BadRequest("name", fmt.Errorf("zone %s is part of the server's configuration", name))
}

func (s *server) patchZone(w http.ResponseWriter, r *http.Request) error {
	name, err := zonefile.ParseName("name", r.PathValue("name"))
	if err != nil {
		return err
	}
	var patch bindcar.PatchZone
	if err := httperror.ReadJSON(w, r, maxPatchBody, &patch); err != nil {
		return err
	}
	unlock, err := s.zones.Lock(r.Context(), name)
	if err != nil {
		return err
	}
	defer unlock()
	ctx := context.WithoutCancel(r.Context())
	if err := s.checkAddedAtRunTime(ctx, name); err != nil {
		return err
	}
	before, err := s.zones.LoadDescription(name)
	if err != nil {
		return err
	}
	after, err := before.Patched(patch)
	if err != nil {
		return err
	}
	if after.DNSSECPolicy != before.DNSSECPolicy || after.KeySecret != before.KeySecret {
		if err := s.prepareSigning(ctx, before, after); err != nil {
			return err
		}
	}
	if err := s.replaceClause(ctx, before, after); err != nil {
		s.settleSoon()
		return err
	}
	if err := s.signingKeys.AwaitKeys(ctx, after); err != nil {
		return err
	}
	if before.Type == bindcar.Secondary && patch.Primaries != nil {
		// A zone that has data would ask its new primaries at its next refresh, which can be hours away.
		if _, err := s.control.Command(ctx, "refresh "+name); err != nil {
			return err
		}
	}
	klog.FromContext(ctx).Info("zone changed", "zone", name)
	respondSuccess(w, http.StatusOK, "zone "+name+" changed", "")
	return nil
}

// withdrawnFor is longer than a policy of named waits after a DS record has left the parent: a day for its TTL, and an hour for the parent's servers.
const withdrawnFor = 26 * time.Hour

// prepareSigning prepares another policy for an existing zone. A zone that was not signed gets its saved keys. A caller that
// asks for "insecure" says that the parent has no DS record any more, and named must know.
func (s *server) prepareSigning(ctx context.Context, before, after zonefile.Description) error {
	if before.DNSSECPolicy == "" {
		return s.signingKeys.Restore(ctx, after)
	}
	if after.DNSSECPolicy == clause.PolicyInsecure && before.DNSSECPolicy != clause.PolicyInsecure {
		when := time.Now().UTC().Add(-withdrawnFor).Format("20060102150405")
		if _, err := s.control.Command(ctx, "dnssec -checkds -when "+when+" withdrawn "+after.Name); err != nil {
			klog.FromContext(ctx).Info("named did not accept that the DS records are withdrawn", "zone", after.Name, "reason", err.Error())
		}
	}
	return nil
}

// checkDS tells named whether a key of a zone has a DS record in the zone above.
func (s *server) checkDS(w http.ResponseWriter, r *http.Request) error {
	var request bindcar.CheckDS
	if err := httperror.ReadJSON(w, r, maxCommandBody, &request); err != nil {
		return err
	}
	name, unlock, err := s.lockZone(r)
	if err != nil {
		return err
	}
	defer unlock()
	state := "withdrawn"
	if request.Published {
		state = "published"
	}
	text, err := s.control.Command(r.Context(), fmt.Sprintf("dnssec -checkds -key %d %s %s", request.KeyTag, state, name))
	if err != nil {
		return err
	}
	if !strings.Contains(text, "Marked DS") { // That there is no such key is a success to named.
		return httperror.New(http.StatusUnprocessableEntity, "DS record not noted", text)
	}
	klog.FromContext(r.Context()).Info("named knows of a DS record", "zone", name, "key", request.KeyTag, "state", state)
	respondSuccess(w, http.StatusOK, "DS record "+state, text)
	return nil
}

// replaceClause gives an existing zone a new clause, and saves its description. Until then the former one is on disk as unsettled: named may
// have the new clause although its reply is lost, or this process ends, and nobody may ask for that clause again.
func (s *server) replaceClause(ctx context.Context, before, after zonefile.Description) error {
	before.Unsettled = true
	if err := s.zones.SaveDescription(before); err != nil {
		return err
	}
	if err := s.modifyZone(ctx, &after); err != nil {
		return err
	}
	return s.zones.SaveDescription(after)
}

// modifyZone gives an existing zone a new clause, and completes its description. The running zone adopts the clause without a restart, and
// keeps its data.
func (s *server) modifyZone(ctx context.Context, zone *zonefile.Description) (err error) {
	zone.NoticeAddress, zone.AdmitsGuests, zone.Unsettled = s.noticeAddress, true, false
	if zone.TransferKey, err = s.tsigKeys.transferKey(); err != nil {
		return err
	}
	_, err = s.control.Command(ctx, fmt.Sprintf("modzone %q %s", zone.Name, zone.Clause(s.zones.Files(zone.Name).Content())))
	return err
}

// runZoneCommand handles requests with an rndc command on their zone.
func (s *server) runZoneCommand(command string) handlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := zonefile.ParseName("name", r.PathValue("name"))
		if err != nil {
			return err
		}
		text, err := s.control.Command(r.Context(), command+" "+name)
		if err != nil {
			return err
		}
		klog.FromContext(r.Context()).Info("zone command", "zone", name, "command", command)
		respondSuccess(w, http.StatusOK, command+" "+name, text)
		return nil
	}
}
