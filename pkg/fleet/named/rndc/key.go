package rndc

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"os"
	"regexp"
)

// KeyName is the name of the key in named.conf.
const KeyName = "control"

// DefaultAlgorithm is the algorithm of keys that name none.
const DefaultAlgorithm = "hmac-sha256"

// Key authenticates both ends of named's control channel.
type Key struct {
	// Algorithm is hmac-sha224, hmac-sha256 (also when empty), hmac-sha384 or hmac-sha512.
	Algorithm string
	// Secret is the raw key.
	Secret []byte
}

// String hides the secret.
func (k Key) String() string { return "control key (" + k.algorithmName() + ")" }

// GoString hides the secret.
func (k Key) GoString() string { return k.String() }

func (k Key) algorithmName() string { return cmp.Or(k.Algorithm, DefaultAlgorithm) }

// algorithms maps a name to its number in the protocol and its hash.
var algorithms = map[string]struct {
	code byte
	hash func() hash.Hash
}{
	"hmac-sha224": {162, sha256.New224},
	"hmac-sha256": {163, sha256.New},
	"hmac-sha384": {164, sha512.New384},
	"hmac-sha512": {165, sha512.New},
}

func (k Key) algorithmCode() byte       { return algorithms[k.algorithmName()].code }
func (k Key) newHash() func() hash.Hash { return algorithms[k.algorithmName()].hash }

// NewKey returns a random key as long as the algorithm's digest.
func NewKey(algorithm string) (Key, error) {
	key := Key{Algorithm: algorithm}
	known, ok := algorithms[key.algorithmName()]
	if !ok {
		return Key{}, fmt.Errorf("rndc key algorithm %q is not one of hmac-sha224, hmac-sha256, hmac-sha384, hmac-sha512", algorithm)
	}
	key.Secret = make([]byte, known.hash().Size())
	_, err := rand.Read(key.Secret)
	return key, err
}

// Clause returns the key as a clause of named.conf.
func (k Key) Clause() string {
	return KeyClause(KeyName, k.algorithmName(), base64.StdEncoding.EncodeToString(k.Secret))
}

// KeyClause returns a clause of named.conf that defines a key; the secret is base64.
func KeyClause(name, algorithm, secret string) string {
	return fmt.Sprintf("key %q {\n\talgorithm %s;\n\tsecret %q;\n};\n", name, algorithm, secret)
}

var (
	algorithmStatement = regexp.MustCompile(`algorithm\s+"?([A-Za-z0-9-]+)"?\s*;`)
	secretStatement    = regexp.MustCompile(`secret\s+"([A-Za-z0-9+/=]+)"\s*;`)
)

// ParseKeyClause returns the algorithm and the base64 secret of a clause as KeyClause and rndc-confgen(8) write it.
func ParseKeyClause(text []byte) (algorithm, secret string, ok bool) {
	foundAlgorithm, foundSecret := algorithmStatement.FindSubmatch(text), secretStatement.FindSubmatch(text)
	if foundAlgorithm == nil || foundSecret == nil {
		return "", "", false
	}
	return string(foundAlgorithm[1]), string(foundSecret[1]), true
}

// IsAlgorithm reports whether a key may have the algorithm.
func IsAlgorithm(name string) bool {
	_, known := algorithms[name]
	return known
}

// ReadKey reads a file with a key clause.
func ReadKey(file string) (Key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Key{}, fmt.Errorf("reading the rndc key: %w", err)
	}
	algorithm, secret, ok := ParseKeyClause(text)
	if !ok {
		return Key{}, fmt.Errorf("%s holds no key clause", file)
	}
	if !IsAlgorithm(algorithm) {
		return Key{}, fmt.Errorf("%s: algorithm %q is not supported", file, algorithm)
	}
	key := Key{Algorithm: algorithm}
	if key.Secret, err = base64.StdEncoding.DecodeString(secret); err != nil {
		return Key{}, fmt.Errorf("%s: the secret is not base64", file)
	}
	return key, nil
}
