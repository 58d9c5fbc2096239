package named

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"os"
	"regexp"
)

// ControlKey authenticates both ends of named's control channel.
type ControlKey struct {
	// Algorithm is hmac-sha224, hmac-sha256 (also when empty), hmac-sha384 or hmac-sha512.
	Algorithm string
	// Secret is the raw key.
	Secret []byte
}

// String hides the secret.
func (k ControlKey) String() string { return "control key (" + k.algorithm() + ")" }

// GoString hides the secret.
func (k ControlKey) GoString() string { return k.String() }

func (k ControlKey) algorithm() string {
	if k.Algorithm == "" {
		return "hmac-sha256"
	}
	return k.Algorithm
}

// controlAlgorithms maps a name to its number in the protocol and its hash.
var controlAlgorithms = map[string]struct {
	code byte
	hash func() hash.Hash
}{
	"hmac-sha224": {162, sha256.New224},
	"hmac-sha256": {163, sha256.New},
	"hmac-sha384": {164, sha512.New384},
	"hmac-sha512": {165, sha512.New},
}

func (k ControlKey) code() byte             { return controlAlgorithms[k.algorithm()].code }
func (k ControlKey) hash() func() hash.Hash { return controlAlgorithms[k.algorithm()].hash }

// NewControlKey makes a random key as long as the algorithm's digest.
func NewControlKey(algorithm string) (ControlKey, error) {
	key := ControlKey{Algorithm: algorithm}
	known, ok := controlAlgorithms[key.algorithm()]
	if !ok {
		return ControlKey{}, fmt.Errorf("rndc key algorithm %q is not one of hmac-sha224, hmac-sha256, hmac-sha384, hmac-sha512", algorithm)
	}
	key.Secret = make([]byte, known.hash().Size())
	_, err := rand.Read(key.Secret)
	return key, err
}

// Clause is the key as a clause of named.conf.
func (k ControlKey) Clause() string {
	return keyClause(ControlKeyName, k.algorithm(), base64.StdEncoding.EncodeToString(k.Secret))
}

func keyClause(name, algorithm, secret string) string {
	return fmt.Sprintf("key %q {\n\talgorithm %s;\n\tsecret %q;\n};\n", name, algorithm, secret)
}

var (
	keyAlgorithm = regexp.MustCompile(`algorithm\s+"?([A-Za-z0-9-]+)"?\s*;`)
	keySecret    = regexp.MustCompile(`secret\s+"([A-Za-z0-9+/=]+)"\s*;`)
)

// ReadControlKey reads a key clause as Clause and rndc-confgen(8) write it.
func ReadControlKey(file string) (ControlKey, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the path is a flag of ours
	if err != nil {
		return ControlKey{}, fmt.Errorf("reading the rndc key: %w", err)
	}
	algorithm, secret := keyAlgorithm.FindSubmatch(text), keySecret.FindSubmatch(text)
	if algorithm == nil || secret == nil {
		return ControlKey{}, fmt.Errorf("%s holds no key clause", file)
	}
	key := ControlKey{Algorithm: string(algorithm[1])}
	if _, ok := controlAlgorithms[key.Algorithm]; !ok {
		return ControlKey{}, fmt.Errorf("%s: algorithm %q is not supported", file, key.Algorithm)
	}
	if key.Secret, err = base64.StdEncoding.DecodeString(string(secret[1])); err != nil {
		return ControlKey{}, fmt.Errorf("%s: the secret is not base64", file)
	}
	return key, nil
}
