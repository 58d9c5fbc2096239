package signingkeys

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Store holds the key files of zones in Secrets, which somebody else creates.
type Store interface {
	// Load returns all entries of a Secret.
	Load(ctx context.Context, secret string) (map[string][]byte, error)
	// Save replaces the entries before, which were loaded or saved last, by after.
	Save(ctx context.Context, secret string, before, after map[string][]byte) error
}

const (
	// accountDir has the pod's credentials, which the kubelet replaces.
	accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// requestTimeout bounds a request, during which a zone is locked.
	requestTimeout = 30 * time.Second
	// maxAnswer bounds an answer, in bytes: a Secret has no more than 1 MiB, and is longer in base64.
	maxAnswer = 4 << 20
)

// secretStore uses the Secrets of the pod's own namespace, with the pod's credentials: these permit the Secrets of its
// zones' keys, by name, and no others. Requests are rare: each reads the credentials of its moment and has a connection of its own. The
// least of client-go would be a tenth of the program.
type secretStore struct {
	// server is kube-apiserver's address, dir has the credentials.
	server, dir string
}

// InCluster is the store of this pod.
func InCluster() (Store, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("preparing to save signing keys: the environment does not say where the Kubernetes API is")
	}
	return &secretStore{net.JoinHostPort(host, port), accountDir}, nil
}

// Load implements Store.
func (s *secretStore) Load(ctx context.Context, name string) (map[string][]byte, error) {
	return s.send(ctx, http.MethodGet, name, nil)
}

// Save implements Store by a merge patch, which touches no other entry.
func (s *secretStore) Save(ctx context.Context, name string, before, after map[string][]byte) error {
	data := map[string]any{}
	for entry := range before {
		data[entry] = nil
	}
	for entry, content := range after {
		data[entry] = content
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	_, err = s.send(ctx, http.MethodPatch, name+"?fieldManager=bindcar", patch)
	return err
}

// send returns the entries of the Secret in the answer. An error has the reason of a refusal, not the object that the API may have put into
// its message.
func (s *secretStore) send(ctx context.Context, method, name string, patch []byte) (map[string][]byte, error) {
	namespace, token, authorities, err := s.credentials()
	if err != nil {
		return nil, fmt.Errorf("reading the pod's credentials: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://"+s.server+"/api/v1/namespaces/"+namespace+"/secrets/"+name, bytes.NewReader(patch))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/merge-patch+json"}, "User-Agent": {"lockstep-bindcar"}}
	client := http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12},
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data   map[string][]byte `json:"data"`
		Reason string            `json:"reason"` // of a Status
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer)
	if response.StatusCode != http.StatusOK {
		err = errors.New(cmp.Or(answer.Reason, response.Status))
	}
	if err != nil {
		return nil, fmt.Errorf("the Secret of the zone's keys: %w", err)
	}
	return answer.Data, nil
}

// credentials returns the pod's namespace and token, and the authorities that verify kube-apiserver.
func (s *secretStore) credentials() (namespace, token string, authorities *x509.CertPool, err error) {
	var texts [3][]byte
	for i, file := range []string{"namespace", "token", "ca.crt"} {
		if texts[i], err = os.ReadFile(filepath.Join(s.dir, file)); err != nil {
			return "", "", nil, err
		}
	}
	authorities = x509.NewCertPool()
	authorities.AppendCertsFromPEM(texts[2])
	return strings.TrimSpace(string(texts[0])), strings.TrimSpace(string(texts[1])), authorities, nil
}
