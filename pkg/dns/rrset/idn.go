package rrset

import (
	"fmt"

	"golang.org/x/net/idna"
)

// toASCII maps as browsers do, without the host name rules that would refuse "_".
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// checkASCII refuses names that are not ASCII; the error has the form to write instead.
func checkASCII(name string) error {
	for i := range len(name) {
		if name[i] < 0x80 {
			continue
		}
		if ascii, err := toASCII.ToASCII(name); err == nil {
			return fmt.Errorf("%q is not ASCII; write %q, its form in DNS (RFC 5891)", shorten(name), ascii)
		}
		return fmt.Errorf("%q is not ASCII; write its xn-- form (RFC 5891)", shorten(name))
	}
	return nil
}
