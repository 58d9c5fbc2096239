package bindcar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/named"
)

// description is how a zone was added: all of it but its content. It is kept beside the zone file, because modzone
// wants the whole clause again.
type description struct {
	Name          string   `json:"name"`
	Type          string   `json:"type"`
	UpdateKeyName string   `json:"updateKeyName,omitempty"`
	AlsoNotify    []string `json:"alsoNotify,omitempty"`
	AllowTransfer []string `json:"allowTransfer,omitempty"`
	Primaries     []string `json:"primaries,omitempty"`
	DNSSECPolicy  string   `json:"dnssecPolicy,omitempty"`
	InlineSigning *bool    `json:"inlineSigning,omitempty"`
	KeySecret     string   `json:"keySecret,omitempty"`
	// TransferKey is the name of the key that the zone's clause has transfers and NOTIFY signed with.
	TransferKey string `json:"transferKey,omitempty"`
	// NoticeAddress is where the zone's clause has named tell of new serials, beside AlsoNotify. Zones that an older
	// sidecar added have none until repair gives them one.
	NoticeAddress string `json:"noticeAddress,omitempty"`
}

// describe checks a request; its error names the field.
func (s *server) describe(request CreateZone) (description, error) {
	name, err := zoneName("zoneName", request.ZoneName)
	if err != nil {
		return description{}, err
	}
	config := request.ZoneConfig
	d := description{
		Name: name, Type: strings.ToLower(request.ZoneType), AlsoNotify: config.AlsoNotify, AllowTransfer: config.AllowTransfer,
		Primaries: config.Primaries, DNSSECPolicy: config.DNSSECPolicy, InlineSigning: config.InlineSigning,
		KeySecret: config.KeySecret, NoticeAddress: s.options.NoticeAddress,
	}
	if request.UpdateKeyName != "" && d.Type == Primary {
		if err := s.knownUpdateKey(request.UpdateKeyName); err != nil {
			return description{}, err
		}
		d.UpdateKeyName = request.UpdateKeyName
	}
	if d.TransferKey, err = s.transferKey(); err != nil {
		return description{}, err
	}
	return d, d.validate()
}

var policyName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

func (d description) validate() error {
	switch {
	case d.Type != Primary && d.Type != Secondary:
		return badRequest("zoneType", fmt.Errorf("%q is neither primary nor secondary", d.Type))
	case d.Type == Secondary && len(d.Primaries) == 0:
		return badRequest("zoneConfig.primaries", errors.New("a secondary needs at least one primary"))
	case d.DNSSECPolicy != "" && !policyName.MatchString(d.DNSSECPolicy):
		return badRequest("zoneConfig.dnssecPolicy", fmt.Errorf("%q is not the name of a policy", d.DNSSECPolicy))
	case d.KeySecret != "" && len(validation.IsDNS1123Subdomain(d.KeySecret)) > 0:
		return badRequest("zoneConfig.keySecret", fmt.Errorf("%q is not the name of a Secret", d.KeySecret))
	}
	for field, list := range map[string][]string{"alsoNotify": d.AlsoNotify, "primaries": d.Primaries} {
		if _, err := servers(list, ""); err != nil {
			return badRequest("zoneConfig."+field, err)
		}
	}
	if _, err := named.MatchList("zoneConfig.allowTransfer", d.AllowTransfer, anyACL); err != nil {
		return failure(http.StatusBadRequest, "bad request", err.Error())
	}
	return nil
}

// anyACL: which names are defined is for named to judge.
func anyACL(string) bool { return true }

func (d description) patched(patch PatchZone) (description, error) {
	if patch.AlsoNotify != nil {
		d.AlsoNotify = *patch.AlsoNotify
	}
	if patch.AllowTransfer != nil {
		d.AllowTransfer = *patch.AllowTransfer
	}
	if patch.Primaries != nil {
		d.Primaries = *patch.Primaries
	}
	if patch.DNSSECPolicy != nil {
		d.DNSSECPolicy = *patch.DNSSECPolicy
	}
	if patch.KeySecret != nil {
		d.KeySecret = *patch.KeySecret
	}
	return d, d.validate()
}

// clause is the zone's clause as addzone and modzone take it. d is valid. Who may update and transfer is for the key rings
// to say, which change without the zones; transfers and NOTIFY carry the transfer key of the moment.
func (d description) clause(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{ type %s; file %q; ", d.Type, file)
	if d.UpdateKeyName != "" {
		fmt.Fprintf(&b, "allow-update { %q; }; ", named.KeyACL(named.KeyUpdate))
	}
	if d.Type == Secondary {
		list, _ := servers(d.Primaries, d.TransferKey)
		fmt.Fprintf(&b, "primaries { %s}; allow-notify { %q; }; ", list, named.KeyACL(named.KeyTransfer))
	}
	if list := d.notified(); list != "" {
		fmt.Fprintf(&b, "notify explicit; also-notify { %s}; ", list)
	}
	if len(d.AllowTransfer) > 0 {
		list, _ := named.MatchList("", d.AllowTransfer, anyACL)
		fmt.Fprintf(&b, "allow-transfer { %q; %s}; ", named.KeyACL(named.KeyTransfer), list)
	}
	if d.DNSSECPolicy != "" {
		inline := map[bool]string{true: "yes", false: "no"}[ptr.Deref(d.InlineSigning, false)]
		fmt.Fprintf(&b, "dnssec-policy %q; inline-signing %s; key-directory %q; ", d.DNSSECPolicy, inline, filepath.Dir(file))
	}
	b.WriteString("};")
	return b.String()
}

// notified lists whom named tells of a new serial, the other servers first: a zone's own list replaces the one among
// named's options, which has the sidecar.
func (d description) notified() string {
	list, _ := servers(d.AlsoNotify, d.TransferKey)
	if listener, err := named.ParseServer(d.NoticeAddress); err == nil {
		list += named.ServerClause(listener, 53, "")
	}
	return list
}

func servers(list []string, key string) (string, error) {
	var b strings.Builder
	for _, entry := range list {
		server, err := named.ParseServer(entry)
		if err != nil {
			return "", err
		}
		b.WriteString(named.ServerClause(server, 53, key))
	}
	return b.String(), nil
}

func (d description) save(file string) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := writeFile(file, text); err != nil {
		return fmt.Errorf("saving the description of zone %s: %w", d.Name, err)
	}
	return nil
}

func loadDescription(file string) (description, error) {
	var d description
	text, err := os.ReadFile(file) //nolint:gosec // the name is made by fileStem
	if errors.Is(err, fs.ErrNotExist) {
		return d, failure(http.StatusNotFound, "zone not found", "the zone was not added through this API")
	}
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return description{}, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}
