package bindcar

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/miekg/dns"
)

// zoneName brings a zone's name into the form that named prints: lower case, without the final dot. Names that need
// escapes in presentation form are refused, and so is the root.
func zoneName(field, name string) (string, error) {
	canonical := strings.ToLower(strings.TrimSuffix(name, "."))
	_, valid := dns.IsDomainName(canonical)
	if canonical == "" || !valid || len(canonical) > 253 || strings.Contains(canonical, "..") || strings.HasPrefix(canonical, ".") {
		return "", failure(http.StatusBadRequest, "invalid zone name", fmt.Sprintf("%s: %q is not a domain name", field, name))
	}
	for _, c := range canonical {
		if !plain(c) && c != '/' {
			return "", failure(http.StatusBadRequest, "invalid zone name", fmt.Sprintf("%s: %q must not stand in a zone's name", field, c))
		}
	}
	return canonical, nil
}

func plain(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// maxStem leaves room for the longest suffix that named or we put behind it, within the 255 bytes of a file name.
const maxStem = 200

// fileStem is the name of a zone's files without their suffix. Distinct zones have distinct stems: what is not plain is
// percent-encoded, and names too long for a file end in their digest.
func fileStem(zone string) string {
	var b strings.Builder
	for _, c := range []byte(zone) {
		if plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	stem := b.String()
	if len(stem) <= maxStem {
		return stem
	}
	digest := sha256.Sum256([]byte(zone))
	return stem[:maxStem-2*sha256.Size-1] + "%" + hex.EncodeToString(digest[:])
}
