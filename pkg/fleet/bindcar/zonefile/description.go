package zonefile

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// Description is how a zone was added: all of it but its content. It is kept beside the zone file, because modzone needs
// the whole clause again.
type Description struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Owner and OwnerUID are the DNSZone whose data the zone has; zones that an older sidecar added lack them.
	Owner         string   `json:"owner,omitempty"`
	OwnerUID      string   `json:"ownerUID,omitempty"`
	UpdateKeyName string   `json:"updateKeyName,omitempty"`
	AlsoNotify    []string `json:"alsoNotify,omitempty"`
	AllowTransfer []string `json:"allowTransfer,omitempty"`
	Primaries     []string `json:"primaries,omitempty"`
	DNSSECPolicy  string   `json:"dnssecPolicy,omitempty"`
	InlineSigning *bool    `json:"inlineSigning,omitempty"`
	KeySecret     string   `json:"keySecret,omitempty"`
	// TransferKey is the name of the key that signs the zone's transfers and NOTIFYs.
	TransferKey string `json:"transferKey,omitempty"`
	// NoticeAddress is the sidecar's listener, which the zone's clause notifies of new serials beside AlsoNotify. Zones that
	// an older sidecar added have none until they are reconciled.
	NoticeAddress string `json:"noticeAddress,omitempty"`
	// AdmitsGuests is true if the zone's clause lets AllowTransfer transfer and ask, beside whom the server's options let, as that of an older
	// sidecar does not.
	AdmitsGuests bool `json:"admitsGuests,omitempty"`
	// TransferSource is the address from which a secondary transfers, perhaps with " port N"; empty leaves it to the system.
	TransferSource string `json:"transferSource,omitempty"`
	// PrimariesTwice has a secondary's clause list each primary twice, which changes nothing but that it is another list.
	PrimariesTwice bool `json:"primariesTwice,omitempty"`
	// Unsettled is true while named may have another clause of the zone than this one.
	Unsettled bool `json:"unsettled,omitempty"`
}

// Describe makes the description that a request asks for, unchecked but for the name. NoticeAddress, UpdateKeyName and TransferKey are
// left to the caller.
func Describe(request bindcar.CreateZone) (Description, error) {
	name, err := ParseName("zoneName", request.ZoneName)
	if err != nil {
		return Description{}, err
	}
	config := request.ZoneConfig
	return Description{
		Name: name, Type: strings.ToLower(request.ZoneType), Owner: request.Owner, OwnerUID: request.OwnerUID, AlsoNotify: config.AlsoNotify, AllowTransfer: config.AllowTransfer,
		Primaries: config.Primaries, DNSSECPolicy: config.DNSSECPolicy, InlineSigning: config.InlineSigning, KeySecret: config.KeySecret,
	}, nil
}

var policyName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)

// Validate is an httperror that names the first invalid field.
func (d Description) Validate() error {
	switch {
	case d.Type != bindcar.Primary && d.Type != bindcar.Secondary:
		return httperror.BadRequest("zoneType", fmt.Errorf("%q is neither primary nor secondary", d.Type))
	case d.Type == bindcar.Secondary && len(d.Primaries) == 0:
		return httperror.BadRequest("zoneConfig.primaries", errors.New("a secondary needs at least one primary"))
	case d.DNSSECPolicy != "" && !policyName.MatchString(d.DNSSECPolicy):
		return httperror.BadRequest("zoneConfig.dnssecPolicy", fmt.Errorf("%q is not the name of a policy", d.DNSSECPolicy))
	case d.KeySecret != "" && len(validation.IsDNS1123Subdomain(d.KeySecret)) > 0:
		return httperror.BadRequest("zoneConfig.keySecret", fmt.Errorf("%q is not the name of a Secret", d.KeySecret))
	}
	for field, list := range map[string][]string{"alsoNotify": d.AlsoNotify, "primaries": d.Primaries} {
		if _, err := serverList(list, ""); err != nil {
			return httperror.BadRequest("zoneConfig."+field, err)
		}
	}
	if _, err := clause.MatchList("zoneConfig.allowTransfer", d.AllowTransfer, acceptAnyACL); err != nil {
		return httperror.New(http.StatusBadRequest, "bad request", err.Error())
	}
	return nil
}

// acceptAnyACL leaves it to named which names are defined.
func acceptAnyACL(string) bool { return true }

// Patched applies a valid patch to a copy.
func (d Description) Patched(patch bindcar.PatchZone) (Description, error) {
	d.AlsoNotify = ptr.Deref(patch.AlsoNotify, d.AlsoNotify)
	d.AllowTransfer = ptr.Deref(patch.AllowTransfer, d.AllowTransfer)
	d.Primaries = ptr.Deref(patch.Primaries, d.Primaries)
	d.DNSSECPolicy = ptr.Deref(patch.DNSSECPolicy, d.DNSSECPolicy)
	d.KeySecret = ptr.Deref(patch.KeySecret, d.KeySecret)
	if patch.Owner != nil && d.Owner == "" {
		d.Owner = *patch.Owner
	}
	if patch.Owner != nil && patch.OwnerUID != nil && d.Owner == *patch.Owner && d.OwnerUID == "" {
		d.OwnerUID = *patch.OwnerUID
	}
	return d, d.Validate()
}

// SavesKeys reports whether the keys that sign the zone are saved in a Secret.
func (d Description) SavesKeys() bool {
	return d.Type == bindcar.Primary && d.KeySecret != "" && d.DNSSECPolicy != "" && d.DNSSECPolicy != clause.PolicyNone
}

// Clause is the zone's clause for addzone and modzone. d is valid. It refers to the ACLs of the key rings, which change without the
// zones; only transfers and NOTIFY name the current transfer key.
func (d Description) Clause(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{ type %s; file %q; ", d.Type, file)
	if d.UpdateKeyName != "" {
		fmt.Fprintf(&b, "allow-update { %q; }; ", clause.KeyACL(clause.KeyUpdate))
	}
	if d.Type == bindcar.Secondary {
		primaries := d.Primaries
		if d.PrimariesTwice {
			primaries = slices.Concat(primaries, primaries)
		}
		list, _ := serverList(primaries, d.TransferKey)
		fmt.Fprintf(&b, "primaries { %s}; allow-notify { %q; }; ", list, clause.KeyACL(clause.KeyTransfer))
		b.WriteString(d.sourceClause())
	}
	if list := d.notifyList(); list != "" {
		fmt.Fprintf(&b, "notify explicit; also-notify { %s}; ", list)
	}
	if len(d.AllowTransfer) > 0 {
		list, _ := clause.MatchList("", d.AllowTransfer, acceptAnyACL)
		fmt.Fprintf(&b, "allow-transfer { %q; %s%q; }; allow-query { %[2]s%[4]q; }; ", clause.KeyACL(clause.KeyTransfer), list, clause.TransferACL, clause.QueryACL)
	}
	if d.DNSSECPolicy != "" {
		inline := map[bool]string{true: "yes", false: "no"}[ptr.Deref(d.InlineSigning, false)]
		fmt.Fprintf(&b, "dnssec-policy %q; inline-signing %s; key-directory %q; ", d.DNSSECPolicy, inline, filepath.Dir(file))
	}
	b.WriteString("};")
	return b.String()
}

// sourceClause is the option for TransferSource, which is written like a server.
func (d Description) sourceClause() string {
	source, err := clause.ParseServer(d.TransferSource)
	if err != nil {
		return ""
	}
	option := "transfer-source-v6 "
	if source.Addr().Is4() {
		option = "transfer-source "
	}
	return option + clause.ServerClause(source, 0, "")
}

// notifyList is whom named notifies of a new serial, the other servers first: a zone's own list replaces the one among named's options,
// which has the sidecar.
func (d Description) notifyList() string {
	list, _ := serverList(d.AlsoNotify, d.TransferKey)
	if listener, err := clause.ParseServer(d.NoticeAddress); err == nil {
		list += clause.ServerClause(listener, clause.Port, "")
	}
	return list
}

func serverList(list []string, key string) (string, error) {
	var b strings.Builder
	for _, entry := range list {
		server, key, err := clause.ParseNotified(entry, key)
		if err != nil {
			return "", err
		}
		b.WriteString(clause.ServerClause(server, clause.Port, key))
	}
	return b.String(), nil
}
