// Package zonefile keeps the files of zones that were added at run time: the content of a primary zone as named reads it,
// and beside it a description of how the zone was added.
package zonefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/httperror"
)

// ParseName brings a zone's name into the form that named prints: lower case, without the final dot. It rejects names that need escapes
// in presentation form, and the root; the error names the field.
func ParseName(field, name string) (string, error) {
	canonical := strings.ToLower(strings.TrimSuffix(name, "."))
	_, valid := dns.IsDomainName(canonical)
	if canonical == "" || !valid || len(canonical) > 253 || strings.Contains(canonical, "..") || strings.HasPrefix(canonical, ".") {
		return "", invalidName(field, name, "is not a domain name")
	}
	for _, c := range canonical {
		if !isPlain(c) && c != '/' {
			return "", invalidName(field, string(c), "must not stand in a zone's name")
		}
	}
	return canonical, nil
}

func invalidName(field, value, problem string) error {
	return httperror.New(http.StatusBadRequest, "invalid zone name", fmt.Sprintf("%s: %q %s", field, value, problem))
}

func isPlain(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// escapeName replaces all but plain characters of a name by format.
func escapeName(zone, format string) string {
	var b strings.Builder
	for _, c := range []byte(zone) {
		if isPlain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}

// maxStem leaves room for the longest suffix of named's and our files, within the 255 bytes of a file name.
const maxStem = 200

// fileStem is the name of a zone's files without their suffix. Distinct zones have distinct stems: special characters are
// percent-encoded, and names too long for a file end in their digest.
func fileStem(zone string) string {
	stem := escapeName(zone, "%%%02x")
	if len(stem) <= maxStem {
		return stem
	}
	digest := sha256.Sum256([]byte(zone))
	return stem[:maxStem-2*sha256.Size-1] + "%" + hex.EncodeToString(digest[:])
}
