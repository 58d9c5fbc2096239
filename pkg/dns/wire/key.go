package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	"github.com/miekg/dns"
)

// Key is a TSIG key (RFC 8945). It is comparable, so that it can be part of a map key. Its secret is neither printed nor
// part of its JSON.
type Key struct {
	// Name is the key's name: absolute and lower case, for example "update.".
	Name string
	// Algorithm is the name of an HMAC, absolute and lower case: "hmac-sha256." and its relatives 224, 384, 512.
	Algorithm string
	// Secret is the shared secret in base64.
	Secret string `json:"-"`
}

// String has name and algorithm, never the secret.
func (k Key) String() string { return fmt.Sprintf("%s (%s)", k.Name, k.Algorithm) }

// GoString keeps the secret out of %#v.
func (k Key) GoString() string { return "wire.Key{" + k.String() + "}" }

// LogValue keeps the secret out of structured logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Validate joins everything that is wrong with the key, without its secret.
func (k Key) Validate() error {
	var problems []error
	if _, ok := dns.IsDomainName(k.Name); !ok || !dns.IsFqdn(k.Name) || k.Name != dns.CanonicalName(k.Name) {
		problems = append(problems, fmt.Errorf("key name %q is not an absolute lower-case domain name", k.Name))
	}
	if hmacHash(k.Algorithm) == nil {
		problems = append(problems, fmt.Errorf("key algorithm %q is not hmac-sha224., hmac-sha256., hmac-sha384. or hmac-sha512. (with the dot)", k.Algorithm))
	}
	if secret, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || len(secret) == 0 {
		problems = append(problems, fmt.Errorf("the secret of key %q is not base64", k.Name))
	}
	return errors.Join(problems...)
}
