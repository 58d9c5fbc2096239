package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Chain prints a line for each link of the chains of some objects, each link once, the broken ones in words, and what follows.
func Chain(items []v1alpha1.SyncStatus, explain bool, p Palette) string {
	inOne := !slices.ContainsFunc(items, func(s v1alpha1.SyncStatus) bool { return s.Namespace != items[0].Namespace })
	links := mergeLinks(items, inOne)
	rows := [][]cell{{{"LINK", bold}, {"SERVER", bold}, {"TRUSTED BY", bold}, {"KEYS", bold}, {"SIGNED BY", bold}, {"SECURITY", bold}, {"EXPIRES", bold}}}
	for _, l := range links {
		rows = append(rows, linkRow(l))
	}
	var b strings.Builder
	if len(links) > 0 {
		b.WriteString(p.formatTable(rows))
	}
	for _, l := range links {
		if text := linkProblem(l); text != "" {
			b.WriteString(p.paint(securityColor(l.Security), oneLine(text)) + "\n")
		}
	}
	if explain {
		writeExplanations(&b, links, p)
	}
	for i := range items {
		s, name := &items[i], objectPath(&items[i])
		if inOne {
			name = s.Name
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionValidated)
		if c == nil {
			b.WriteString(p.paint(red, name+": nothing was validated") + "\n")
			continue
		}
		fmt.Fprintf(&b, "%s: %s (%s)\n", oneLine(name), p.paint(conditionColor(c.Status == "True"), c.Reason), oneLine(c.Message))
	}
	return b.String()
}

// mergeLinks has the links above the zones first, then those of each server, with its namespace unless all are in one. Zones of one name may
// have other servers in each namespace, and other keys.
func mergeLinks(items []v1alpha1.SyncStatus, inOne bool) (links []v1alpha1.ChainLink) {
	type key struct {
		server, name, rrtype string
		security             v1alpha1.Security
	}
	seen := map[key]bool{}
	for _, s := range items {
		for _, l := range s.Chain {
			if !inOne && l.Server != "" {
				l.Server = s.Namespace + "/" + l.Server
			}
			if k := (key{l.Server, l.Name, l.Type, l.Security}); !seen[k] {
				seen[k] = true
				links = append(links, l)
			}
		}
	}
	slices.SortStableFunc(links, func(a, b v1alpha1.ChainLink) int { return cmp.Compare(a.Server, b.Server) })
	return links
}

func linkRow(l v1alpha1.ChainLink) []cell {
	color := securityColor(l.Security)
	text := plain
	if l.Security == v1alpha1.SecurityBogus {
		text = color
	}
	var keys []string
	for _, k := range l.Keys {
		keys = append(keys, fmt.Sprintf("%s %d %s", k.Role, k.KeyTag, k.Algorithm))
	}
	expires := ""
	if l.SignaturesExpireAt != nil {
		expires = l.SignaturesExpireAt.UTC().Format(time.RFC3339)
	}
	return []cell{
		{l.Name + " " + l.Type, text}, {l.Server, text}, {l.TrustedBy, text}, {strings.Join(keys, ", "), text}, {strings.Trim(fmt.Sprint(l.KeyTags), "[]"), text},
		{string(l.Security), color}, {expires, text},
	}
}

func securityColor(s v1alpha1.Security) textColor {
	switch s {
	case v1alpha1.SecuritySecure:
		return green
	case v1alpha1.SecurityExpiring, v1alpha1.SecurityInsecure:
		return yellow
	default:
		return red
	}
}

// linkProblem says what is wrong with a link; empty if nothing is.
func linkProblem(l v1alpha1.ChainLink) string {
	where := l.Name + " " + l.Type
	if l.Server != "" {
		where += " on " + l.Server
	}
	switch l.Security {
	case v1alpha1.SecurityBogus:
		return fmt.Sprintf("broken: %s: %s: %s", where, l.SecurityCause, l.Message)
	case v1alpha1.SecurityExpiring:
		return "expires soon: " + where
	case v1alpha1.SecuritySecure:
		return ""
	default:
		return fmt.Sprintf("%s: %s: %s", strings.ToLower(string(l.Security)), where, l.Message)
	}
}

// writeExplanations says what the kinds of links are for, and what to do about those that are broken.
func writeExplanations(b *strings.Builder, links []v1alpha1.ChainLink, p Palette) {
	var lines []string
	add := func(text string) {
		if text != "" && !slices.Contains(lines, text) {
			lines = append(lines, text)
		}
	}
	for _, l := range links {
		switch l.Type {
		case "DS":
			add("DS: the parent zone names, by a digest, keys of the zone below. It signs that with its own key.")
		case "DNSKEY":
			add("DNSKEY: the keys of a zone. They count if one of them is named by a DS record of the parent or by a trust anchor, and has signed them all.")
			add(trustText[l.TrustedBy])
		default:
			add("Any other type: the answer itself, or the proof that there is none. A key of the zone has to have signed it.")
		}
		if l.Security == v1alpha1.SecurityBogus {
			add(l.SecurityCause + ": " + cmp.Or(remedies[l.SecurityCause], "see the message of the link"))
		}
	}
	for _, line := range lines {
		b.WriteString(p.paint(faint, "→ ") + oneLine(line) + "\n")
	}
}

var trustText = map[string]string{
	"TrustAnchor": "TrustAnchor: the file of --trust-anchor-file of the API server names a key of this zone.",
	"ParentDS":    "ParentDS: the parent zone is served here, and its DS records name a key of this zone.",
	"OwnKeys":     "OwnKeys: nothing that is known here vouches for the keys. They are trusted as the zone's newest content has them, and the parent is not compared.",
}

// remedies are what to do, by the words of RFC 8914.
var remedies = map[string]string{
	"Signature Expired":            "whoever signs the zone has to sign it anew; if one server alone has it, see why that does not transfer the zone.",
	"Signature Not Yet Valid":      "compare the clocks of the signer and of the API server.",
	"DNSKEY Missing":               "a DS record, a trust anchor or a signature names a key that the server does not have: remove the wrong DS record at the parent, or bring the key back.",
	"RRSIGs Missing":               "the server does not send signatures: have it sign or transfer the zone as the others do, or take the zone off it.",
	"NSEC Missing":                 "the proof that a name does not exist is not complete: have the zone signed anew.",
	"DNSSEC Bogus":                 "a signature does not fit the data or the key: have the server transfer the zone anew, or sign it anew.",
	"Unsupported DNSKEY Algorithm": "sign the zone with an algorithm of RFC 8624.",
}
