package coredns

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// encodeByLibrary returns what encoding/json makes of a value.
func encodeByLibrary(t *testing.T, v value) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// randomValue returns a value any of whose fields may be missing, and may have what JSON escapes or what looks like JSON.
func randomValue(r *rand.Rand) (v value) {
	texts := []string{"", "", "a.test.", "192.0.2.1", `v=spf1 "a"`, `back\slash`, "<&>", "ü", "\u2028", "\xff", "\x7f", "\n", `","text":"x`, "}", "{", ","}
	text := func() string { return texts[r.IntN(len(texts))] }
	number := func() int { return []int{0, 0, 1, -1, 65535, 1 << 40}[r.IntN(6)] }
	v = value{
		Host: text(), Port: number(), Priority: number(), Weight: number(), Text: text(), Mail: r.IntN(2) == 0, TTL: uint32(number()),
		TargetStrip: number(), Group: text(),
	}
	if r.IntN(2) == 0 {
		v.Marker = marker{Owner: text(), Zone: text(), Type: text()}
	}
	return v
}

// TestEncodeJSON: whatever a value is, it is written as encoding/json writes it.
func TestEncodeJSON(t *testing.T) {
	t.Parallel()
	plain := 0
	for seed := range uint64(20_000) {
		v := randomValue(rand.New(rand.NewPCG(seed, 3)))
		if isPlain(&v) {
			plain++
		}
		if got, want := encodeJSON(&v), encodeByLibrary(t, v); got != want {
			t.Fatalf("seed %d: %s, want %s", seed, got, want)
		}
	}
	if plain < 1000 || plain > 19_000 {
		t.Errorf("%d are plain", plain)
	}
}

// TestDecodeJSON: whatever is read, it is taken for what encoding/json takes it for.
func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	check := func(raw string) (valid bool) {
		var want value
		valid = json.Unmarshal([]byte(raw), &want) == nil
		if got, ok := decodeJSON([]byte(raw)); ok != valid || got != want {
			t.Fatalf("%q: %+v, %t; want %+v, %t", raw, got, ok, want, valid)
		}
		return valid
	}
	for _, raw := range []string{
		"", "{", "}", "{}", "null", "[]", `""`, "{}{}", " {}", "{} ", `{,}`, `{"text":"a\"}`, `{"text":"a\"}"}`, `{"host":"a","host":"b"}`, `{"HOST":"a"}`, `{"host":""}`,
		`{"port":01}`, `{"port":1e3}`, `{"port":1.5}`, `{"port":+1}`, `{"port":-0}`, `{"port":0}`, `{"port":"1"}`, `{"port":9223372036854775808}`, `{"port":1`, `{"port":`,
		`{"ttl":-1}`, `{"ttl":4294967295}`, `{"ttl":4294967296}`, `{"ttl":4294967297}`, `{"mail":false}`, `{"mail":true,}`, `{"mail":true}x`, `{"text":"a"b}`, `{"text":"a`, "{\"text\":\"a\nb\"}",
		`{"ttl":1,"host":"a"}`, `{"host":"a","x":1}`, `{"host":"a" }`, `{"host":"a","lockstep":{}}`, `{"host":"a","lockstep":{"owner":"","zone":"","type":""}}`,
		`{"lockstep":{"owner":"o","zone":"z","type":"A"},"host":"a"}`, `{"lockstep":{"owner":"o","zone":"z","type":"A","x":1}}`, `{"lockstep":{"owner":"o","zone":"z","type":"A"}`,
	} {
		check(raw)
	}
	valid, invalid := 0, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 4))
		raw := encodeByLibrary(t, randomValue(r))
		check(raw)
		damaged := []byte(raw)
		damaged[r.IntN(len(raw))] = `{}[]",:\-0a `[r.IntN(12)]
		if check(string(damaged)) {
			valid++
		} else {
			invalid++
		}
		check(raw[:r.IntN(len(raw))])
	}
	if min(valid, invalid) < 1000 {
		t.Errorf("%d of those with another byte are valid, %d are not", valid, invalid)
	}
}
