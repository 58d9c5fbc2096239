package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/rrset"
)

// mailboxName gives the SOA's RNAME for a mail address (RFC 1035 section 8): admin@example.com and admin@example.com. become
// admin.example.com., first.last@example.com becomes first\.last.example.com. What holds no "@" is an RNAME already.
// It is never relative to the zone.
func mailboxName(address string) (string, error) {
	local, domain, isAddress := strings.Cut(address, "@")
	switch {
	case address == "":
		return "", errors.New("there is no address; write one such as admin@example.com")
	case !isAddress:
		return rrset.CanonicalName(address)
	case local == "" || domain == "" || strings.Contains(domain, "@"):
		return "", fmt.Errorf("%q is not a mail address such as admin@example.com", address)
	}
	var name strings.Builder
	for _, c := range []byte(local) {
		if c >= 0x80 {
			return "", fmt.Errorf("%q: the part before the @ has to be ASCII", address)
		}
		if c <= ' ' || c == 0x7f {
			return "", fmt.Errorf("%q: the part before the @ has a blank or control character", address)
		}
		if (c < '0' || c > '9') && !isLetter(c) {
			name.WriteByte('\\')
		}
		name.WriteByte(c)
	}
	domain, err := rrset.CanonicalName(domain)
	if err != nil {
		return "", err
	}
	return rrset.CanonicalName(name.String() + "." + strings.TrimPrefix(domain, "."))
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
