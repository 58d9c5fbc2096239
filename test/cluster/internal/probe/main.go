// Command probe runs in pods of the cluster's own test. It logs
// what its service account may read, and answers HTTP.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		printResponse(os.Args[2])
		return
	}
	for _, path := range []string{"configmaps", "secrets"} {
		log.Printf("%s: %s", path, requestStatus(path))
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(w, "pong from", name)
	})
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// printResponse prints what a URL answers.
func printResponse(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		log.Fatal(err)
	}
}

// requestStatus lists a resource of the pod's namespace by the API server's Service, and
// returns the status.
func requestStatus(resource string) string {
	ca, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return err.Error()
	}
	token, err := os.ReadFile(filepath.Join(account, "token"))
	if err != nil {
		return err.Error()
	}
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return err.Error()
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	req, err := http.NewRequest(http.MethodGet, "https://"+server+"/api/v1/namespaces/"+string(namespace)+"/"+resource, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	res, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	return res.Status
}
