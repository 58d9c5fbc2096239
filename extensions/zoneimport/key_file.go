package zoneimport

import (
	"fmt"
	"os"
	"regexp"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Parts of a key clause of named.conf, and its comments.
var (
	quotedOrComment = regexp.MustCompile(`"[^"\n]*"|/\*(?s:.*?)\*/|(?://|#)[^\n]*`)
	keyClause       = regexp.MustCompile(`(?s)\bkey\s+"?([^"\s{};]+)"?\s*\{(.*?)\}`)
	keyAlgorithm    = regexp.MustCompile(`\balgorithm\s+"?([A-Za-z0-9.-]+)"?\s*;`)
	keySecret       = regexp.MustCompile(`\bsecret\s+"?([A-Za-z0-9+/=]+)"?\s*;`)
)

// readKeyFile reads a file with one key clause as tsig-keygen(8) writes it and nsupdate -k reads it. No error holds the secret.
func readKeyFile(name string) (*wire.Key, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--key-file: %w", err)
	}
	clauses := keyClause.FindAllSubmatch(removeComments(text), -1)
	if len(clauses) != 1 {
		return nil, fmt.Errorf(`--key-file=%s: there are %d key clauses; it takes one, as tsig-keygen(8) writes it: key "NAME" { algorithm hmac-sha256; secret "…"; };`, name, len(clauses))
	}
	algorithm, secret := keyAlgorithm.FindSubmatch(clauses[0][2]), keySecret.FindSubmatch(clauses[0][2])
	if algorithm == nil || secret == nil {
		return nil, fmt.Errorf("--key-file=%s: the key %q lacks an algorithm or a secret in base64", name, clauses[0][1])
	}
	key := &wire.Key{Name: dns.CanonicalName(string(clauses[0][1])), Algorithm: dns.CanonicalName(string(algorithm[1])), Secret: string(secret[1])}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("--key-file=%s: %w; tsig-keygen(8) makes a key that works", name, err)
	}
	return key, nil
}

// removeComments leaves what is in quotes alone: a secret may hold two slashes.
func removeComments(text []byte) []byte {
	return quotedOrComment.ReplaceAllFunc(text, func(part []byte) []byte {
		if part[0] == '"' {
			return part
		}
		return []byte(" ")
	})
}
