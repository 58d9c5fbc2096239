package signingkeys

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// storeOf returns the store of a pod whose kube-apiserver answers with a handler.
func storeOf(t *testing.T, handler http.HandlerFunc) *secretStore {
	t.Helper()
	web := httptest.NewTLSServer(handler)
	t.Cleanup(web.Close)
	s := &secretStore{strings.TrimPrefix(web.URL, "https://"), t.TempDir()}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	for file, text := range map[string]string{"namespace": "dns\n", "token": "first", "ca.crt": string(authority)} {
		s.write(t, file, text)
	}
	return s
}

func (s *secretStore) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A Secret is read and patched with the token of the moment. A patch takes away the entries that are not there any more, and no other.
func TestSecretStore(t *testing.T) {
	var got []string
	s := storeOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, strings.Join([]string{r.Method, r.URL.String(), r.Header.Get("Authorization"), string(body)}, " "))
		if r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/merge-patch+json" {
			t.Errorf("the patch is of type %s", r.Header.Get("Content-Type"))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "data": map[string][]byte{"013-1.key": []byte("a")}})
	})
	data, err := s.Load(t.Context(), "keys")
	if err != nil || !maps.EqualFunc(data, map[string][]byte{"013-1.key": []byte("a")}, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("loaded %q, %v", data, err)
	}
	s.write(t, "token", "second")
	if err := s.Save(t.Context(), "keys", data, map[string][]byte{"013-2.key": []byte("b")}); err != nil {
		t.Error(err)
	}
	want := []string{
		"GET /api/v1/namespaces/dns/secrets/keys Bearer first ",
		`PATCH /api/v1/namespaces/dns/secrets/keys?fieldManager=bindcar Bearer second {"data":{"013-1.key":null,"013-2.key":"Yg=="}}`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the requests are\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is refused says why, without what the API had to say about the object; the token goes to the cluster's kube-apiserver alone.
func TestSecretStoreRefused(t *testing.T) {
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request went elsewhere") }))
	t.Cleanup(other.Close)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		change func(*secretStore)
		want   string
	}{
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "message": "the secret text", "reason": "Forbidden"}`)
		}, nil, "the Secret of the zone's keys: Forbidden"},
		"no Status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, nil, "the Secret of the zone's keys: 502 Bad Gateway"},
		"no JSON":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, nil, "the Secret of the zone's keys: invalid"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, nil, "307"},
		"a stranger": {nil, func(s *secretStore) { s.write(t, "ca.crt", "") }, "certificate"},
		"no token":   {nil, func(s *secretStore) { _ = os.Remove(filepath.Join(s.dir, "token")) }, "reading the pod's credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeOf(t, func(w http.ResponseWriter, r *http.Request) {
				if c.answer == nil {
					t.Error("it was asked")
					return
				}
				c.answer(w, r)
			})
			if c.change != nil {
				c.change(s)
			}
			_, err := s.Load(t.Context(), "keys")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret text") {
				t.Errorf("Load: %v, want %s", err, c.want)
			}
			if err := s.Save(t.Context(), "keys", nil, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Save: %v, want %s", err, c.want)
			}
		})
	}
}
