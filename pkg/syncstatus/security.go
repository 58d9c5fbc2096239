package syncstatus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/dnssec"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// setSecurity completes the row of a server: whether a validating resolver accepts its answers about some RRsets; about the zone if keys
// is nil. What it rejects is Bogus, however the data is. Where it expects signatures, what could not be validated is not in sync.
func (ev *Evaluation) setSecurity(row *syncv1.ServerStatus, e *serverAnswer, keys []rrset.Key) {
	w := ev.past.Validation
	switch {
	case w == nil:
		return
	case e.mirror == nil:
		row.Security = syncv1.SecurityUnknown
		return
	}
	v := w.Of(e.index, keys)
	row.Security, row.SignaturesExpireAt, row.KeyTags = syncv1.Security(v.Security), expiryTime(v), keyTags(v)
	row.Security = cmp.Or(row.Security, syncv1.SecurityUnknown)
	calm := row.State == syncv1.StateInSync || row.State == syncv1.StateStale || row.State == syncv1.StateHeld
	switch v.Security {
	case dnssec.Bogus:
		row.SecurityCause = v.Cause()
		message := fmt.Sprintf("validating resolvers reject the answers: %s: %s", v.Cause(), v.Detail)
		if calm {
			row.State = syncv1.StateBogus
		}
		row.Message = joinMessages(row.Message, message)
	case dnssec.Unknown:
		if c := w.Servers[e.index].Chain; c.IsKnown() && c.IsSigned() && row.State == syncv1.StateInSync {
			row.State = syncv1.StateUnreachable
		}
		row.Message = joinMessages(row.Message, "the answers could not be validated: "+v.Detail)
	case dnssec.Expiring:
		row.Message = joinMessages(row.Message, "the first signature expires "+v.Expires.UTC().Format(time.RFC3339))
	case dnssec.Secure, dnssec.Insecure: // Nothing to say.
	}
}

func joinMessages(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

func expiryTime(v dnssec.Verdict) *metav1.Time {
	if v.Expires.IsZero() {
		return nil
	}
	return new(metav1.NewTime(v.Expires))
}

func keyTags(v dnssec.Verdict) (tags []int32) {
	for _, tag := range v.KeyTags {
		tags = append(tags, int32(tag))
	}
	return tags
}

// securitySeverity orders what rows say, the most serious first.
var securitySeverity = []syncv1.Security{syncv1.SecurityBogus, syncv1.SecurityUnknown, syncv1.SecurityExpiring, syncv1.SecurityInsecure, syncv1.SecuritySecure}

// Reasons of Validated.
const (
	reasonSecure       = "Secure"
	reasonExpiring     = "Expiring"
	reasonInsecure     = "Insecure"
	reasonBogus        = "Bogus"
	reasonNotValidated = "NotValidated"
)

// validated is the verdict over the security of all rows; without a Status if nothing was validated.
func (v statusFacts) validated() (out status.Verdict) {
	worst := len(securitySeverity)
	for i := range v.rows {
		if at := slices.Index(securitySeverity, v.rows[i].Security); at >= 0 {
			worst = min(worst, at)
		}
	}
	if worst == len(securitySeverity) {
		return out
	}
	security := securitySeverity[worst]
	_, all := countServers(v.rows)
	count := countOf(serversWith(v.rows, func(r *syncv1.ServerStatus) bool { return r.Security == security }), all, "servers", string(security))
	switch security {
	case syncv1.SecurityBogus:
		return status.False(reasonBogus, v.named(count, security))
	case syncv1.SecurityUnknown:
		return status.Unknown(reasonNotValidated, v.named(count, security))
	case syncv1.SecurityExpiring:
		return status.True(reasonExpiring, withRemark(v.named(count, security), strings.Join(v.gaps, "; ")))
	case syncv1.SecurityInsecure:
		return status.True(reasonInsecure, withRemark(count, strings.Join(v.gaps, "; ")))
	default:
		return status.True(reasonSecure, withRemark(count, strings.Join(v.gaps, "; ")))
	}
}

// named adds the servers with some security to how many they are, and what the first one says.
func (v statusFacts) named(count string, security syncv1.Security) string {
	isSuch := func(r *syncv1.ServerStatus) bool { return r.Security == security }
	message := ""
	for i := range v.rows {
		if isSuch(&v.rows[i]) {
			message = cmp.Or(message, v.rows[i].Message)
		}
	}
	return withRemark(count+": "+strings.Join(namesWith(v.rows, isSuch), ", "), message)
}

// findGaps finds what of the chain above the zone could not be reached, or why there is none.
func findGaps(w *validate.View) (gaps []string) {
	if w == nil {
		return nil
	}
	for _, a := range w.Servers {
		gap := a.Chain.Gap
		if a.Verdict.Security == dnssec.Insecure {
			gap = a.Verdict.Detail
		}
		if a.Verdict.Security != dnssec.Insecure && a.Chain.Source == validate.OwnKeys {
			gap = "validated up to the keys of the zone itself: " + gap
		}
		if gap != "" && a.Verdict.Security != dnssec.Unknown && !slices.Contains(gaps, gap) {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// chain are the links from the keys that are trusted to the answers of all servers about some RRsets; none if the zone is not signed.
func (ev *Evaluation) chain(rows []syncv1.ServerStatus, keys []rrset.Key) (links []syncv1.ChainLink) {
	w := ev.past.Validation
	if w == nil || !ev.past.WithChain || !w.IsSigned() {
		return nil
	}
	for i, a := range w.Servers {
		if !slices.ContainsFunc(w.Servers[:i], func(o *validate.Apex) bool { return o.Chain == a.Chain }) {
			links = appendLinks(links, "", w.Above(i))
		}
	}
	for i, e := range ev.servers {
		if i < len(rows) && e.mirror != nil {
			links = appendLinks(links, rows[i].ServerName(), append([]validate.Link{w.Zone(i)}, w.Answers(i, keys)...))
		}
	}
	return links
}

func appendLinks(links []syncv1.ChainLink, server string, more []validate.Link) []syncv1.ChainLink {
	for _, l := range more {
		out := syncv1.ChainLink{
			Server: server, Name: l.Name, Type: rrset.TypeName(l.Type), TrustedBy: string(l.TrustedBy), Keys: chainKeys(l.Keys),
			Security: syncv1.Security(cmp.Or(l.Verdict.Security, dnssec.Unknown)), SignaturesExpireAt: expiryTime(l.Verdict), KeyTags: keyTags(l.Verdict),
			Message: l.Verdict.Detail,
		}
		if l.Verdict.Security == dnssec.Bogus {
			out.SecurityCause = l.Verdict.Cause()
		}
		if l.Gap != "" && l.TrustedBy == validate.OwnKeys {
			out.Message = joinMessages(out.Message, l.Gap)
		}
		links = append(links, out)
	}
	return links
}

// maxChainKeys bounds the keys of a link.
const maxChainKeys = 32

func chainKeys(records []dns.RR) (keys []syncv1.ChainKey) {
	for _, rr := range records {
		var k syncv1.ChainKey
		switch rr := rr.(type) {
		case *dns.DNSKEY:
			k = syncv1.ChainKey{KeyTag: int32(rr.KeyTag()), Algorithm: algorithmName(rr.Algorithm), Role: "ZSK"}
			if rr.Flags&dns.SEP != 0 {
				k.Role = "KSK"
			}
		case *dns.DS:
			k = syncv1.ChainKey{KeyTag: int32(rr.KeyTag), Algorithm: algorithmName(rr.Algorithm), Role: cmp.Or(dns.HashToString[rr.DigestType], fmt.Sprintf("digest %d", rr.DigestType))}
		default:
			continue
		}
		if len(keys) < maxChainKeys {
			keys = append(keys, k)
		}
	}
	return keys
}

func algorithmName(algorithm uint8) string {
	return cmp.Or(dns.AlgorithmToString[algorithm], fmt.Sprintf("algorithm %d", algorithm))
}
