package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// answersOK returns a check that passes when the URL answers with 200.
func (l Layout) answersOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.getFromServer(ctx, url)
		return err
	}
}

// getFromServer asks as the administrator, over TLS of the cluster's own authority.
func (l Layout) getFromServer(ctx context.Context, url string) ([]byte, error) {
	client, err := l.newClient()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %s", url, res.Status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

func (l Layout) newClient() (*http.Client, error) {
	ca, err := os.ReadFile(l.PKI("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(l.PKI("admin.crt"), l.PKI("admin.key"))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}}, nil
}

// Usable returns nil once the node takes pods and the default namespace has
// what a pod needs, and otherwise what is missing.
func (l Layout) Usable(ctx context.Context) error {
	if err := l.nodeReady(ctx); err != nil {
		return err
	}
	for _, path := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
		if _, err := l.getFromServer(ctx, Server+"/api/v1/namespaces/default/"+path); err != nil {
			return err
		}
	}
	return nil
}

func (l Layout) nodeReady(ctx context.Context) error {
	body, err := l.getFromServer(ctx, Server+"/api/v1/nodes/"+Name)
	if err != nil {
		return err
	}
	return readyCondition(body)
}

// readyCondition returns nil if a Node's JSON says that it is ready.
func readyCondition(body []byte) error {
	var n struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &n); err != nil {
		return fmt.Errorf("reading node %s: %w", Name, err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type != "Ready" {
			continue
		}
		if c.Status == "True" {
			return nil
		}
		return fmt.Errorf("node %s is not ready: %s", Name, c.Message)
	}
	return fmt.Errorf("node %s has not reported its state yet", Name)
}
