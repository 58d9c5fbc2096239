package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

const (
	// aggregatedGroup and aggregatedVersion name the API as which kube-apiserver reaches reviews through its aggregation layer
	// (manifests/components/authenticated-webhook).
	aggregatedGroup, aggregatedVersion = "admission.bindy.firestoned.io", "v1"
	aggregatedPath                     = "/apis/" + aggregatedGroup + "/" + aggregatedVersion

	// Where kube-apiserver publishes how to recognize its aggregation layer (Kubernetes, "Configure the Aggregation Layer").
	proxyNamespace, proxyConfigMap = "kube-system", "extension-apiserver-authentication"
)

// frontProxy recognizes kube-apiserver's aggregation layer by its client certificate, and by the user that this passes on whether
// kube-apiserver itself asks. A webhook of Service default/kubernetes is the only one for which kube-apiserver authenticates
// itself without being configured: it calls itself, as user.APIServerUser, and passes the request on like any other one.
type frontProxy struct {
	authorities *dynamiccertificates.ConfigMapCAController
	headers     *headerrequest.RequestHeaderAuthRequestController
}

// newFrontProxy knows no authority, and so refuses everybody, until run has read the ConfigMap.
func newFrontProxy(client kubernetes.Interface) (*frontProxy, error) {
	authorities, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
		"front-proxy", proxyNamespace, proxyConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("following ConfigMap %s/%s: %w", proxyNamespace, proxyConfigMap, err)
	}
	return &frontProxy{authorities, headerrequest.NewRequestHeaderAuthRequestController(proxyConfigMap, proxyNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")}, nil
}

// run follows the ConfigMap until the context ends.
func (p *frontProxy) run(ctx context.Context) error {
	go p.authorities.Run(ctx, 1)
	p.headers.Run(ctx, 1)
	return nil
}

// checkReady is the readiness probe.
func (p *frontProxy) checkReady(*http.Request) error {
	if _, known := p.authorities.VerifyOptions(); !known || len(p.headers.UsernameHeaders()) == 0 {
		return fmt.Errorf("ConfigMap %s/%s has not been read, or has no request header settings", proxyNamespace, proxyConfigMap)
	}
	return nil
}

// requireCertificate has a server end the handshake of everybody but the aggregation layer.
func (p *frontProxy) requireCertificate(config *tls.Config) {
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error { return p.verify(state.PeerCertificates) }
}

// verify checks the certificate of a client, and those that come with it.
func (p *frontProxy) verify(chain []*x509.Certificate) error {
	options, known := p.authorities.VerifyOptions()
	if !known || len(chain) == 0 {
		return errors.New("the authority of the client's certificate is not known")
	}
	options.Intermediates = x509.NewCertPool()
	for _, intermediate := range chain[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return fmt.Errorf("verifying the client's certificate: %w", err)
	}
	return checkCommonName(chain, p.headers.AllowedClientNames())
}

// requireAPIServer lets through what kube-apiserver itself asks: its users can reach the aggregation layer, too.
func (p *frontProxy) requireAPIServer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isAsker := func(header string) bool { return r.Header.Get(header) == user.APIServerUser }
		if !slices.ContainsFunc(p.headers.UsernameHeaders(), isAsker) {
			http.Error(w, "only kube-apiserver may ask for a review", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveDiscovery answers what the aggregation layer asks to find out whether the API works: one without resources.
func serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: aggregatedGroup + "/" + aggregatedVersion, APIResources: []metav1.APIResource{},
	}
	body, err := utiljson.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
