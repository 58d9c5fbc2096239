package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
)

// lateShare is the part of a certificate's life that is left when its issuer should have replaced it long ago: both Lockstep and
// cert-manager do so when a third is left.
const lateShare = 0.25

// parseCertificates reads every certificate of a PEM file.
func parseCertificates(text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return all, nil
}

// remedy says how a certificate is replaced.
func (c Certificate) remedy(f *Facts) string {
	if c.CertManager != "" {
		return fmt.Sprintf("kubectl -n %s describe certificate %s", c.Secret.Namespace, c.CertManager)
	}
	return fmt.Sprintf("have it issued again: kubectl -n %s delete secret %s; if that does not help: kubectl -n %s logs deployment/%s",
		c.Secret.Namespace, c.Secret.Name, f.Namespace, fleetName)
}

// judgeCertificate judges one certificate by its dates, its name and the authorities by which its owner's peers verify it; nil leaves
// the authorities out.
func (f *Facts) judgeCertificate(c Certificate, bundle []byte) Finding {
	chain, err := parseCertificates(c.Certificate)
	if err != nil {
		return failure(c.remedy(f), "the certificate in Secret %s cannot be read: %v", c.Secret, err)
	}
	leaf := chain[0]
	left := leaf.NotAfter.Sub(f.Now)
	switch {
	case f.Now.Before(leaf.NotBefore):
		return failure(c.remedy(f), "the certificate in Secret %s is not valid before %s", c.Secret, leaf.NotBefore.UTC().Format(time.RFC3339))
	case left <= 0:
		return failure(c.remedy(f), "the certificate in Secret %s expired %s", c.Secret, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if c.Name != "" {
		// That of a sidecar is for all names below its instance's.
		if err := leaf.VerifyHostname(hostOf(c.Name)); err != nil {
			return failure(c.remedy(f), "the certificate in Secret %s is not for %s", c.Secret, c.Name)
		}
	}
	if bundle != nil {
		if err := verifyLeaf(chain, bundle, f.Now); err != nil {
			return failure(c.remedy(f), "the certificate in Secret %s is not trusted: %v", c.Secret, err)
		}
	}
	if float64(left) < lateShare*float64(leaf.NotAfter.Sub(leaf.NotBefore)) {
		return warning(c.remedy(f), "the certificate in Secret %s should have been replaced: it expires %s", c.Secret, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return ok("")
}

func hostOf(name string) string {
	if len(name) > 0 && name[0] == '*' {
		return "any" + name[1:]
	}
	return name
}

// verifyLeaf verifies the first certificate of a chain by a bundle.
func verifyLeaf(chain []*x509.Certificate, bundle []byte, now time.Time) error {
	roots, err := parseCertificates(bundle)
	if err != nil {
		return fmt.Errorf("its authority: %w", err)
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, c := range roots {
		o.Roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err = chain[0].Verify(o)
	return err
}

// judgeCertificates judges some certificates, each by the bundle beside it.
func (f *Facts) judgeCertificates(all []Fact[Certificate]) Finding {
	worst, read := ok(""), 0
	var first time.Time
	for _, c := range all {
		if c.Err != nil {
			worst = worse(worst, f.unreadCertificate(c))
			continue
		}
		read++
		worst = worse(worst, f.judgeCertificate(c.Value, c.Value.Bundle))
		if chain, err := parseCertificates(c.Value.Certificate); err == nil && (first.IsZero() || chain[0].NotAfter.Before(first)) {
			first = chain[0].NotAfter
		}
	}
	if worst.Level == OK {
		worst.Found = fmt.Sprintf("%s; the first expires %s", status.CountOf(read, "certificate"), first.UTC().Format(time.DateOnly))
	}
	return worst
}

// unreadCertificate is unread for a certificate whose Secret may be missing.
func (f *Facts) unreadCertificate(c Fact[Certificate]) Finding {
	if apierrors.IsNotFound(c.Err) {
		return failure(fmt.Sprintf("the fleet manager issues it: kubectl -n %s logs deployment/%s", f.Namespace, fleetName), "Secret %s does not exist", c.Value.Secret)
	}
	return unread(c.Request, c.Err)
}

func judgeServing(f *Facts) Finding { return f.judgeCertificates(f.Serving) }

func judgeClients(f *Facts) Finding { return f.judgeCertificates(f.Clients) }

func judgeSidecarCertificates(f *Facts) Finding {
	if len(f.Sidecars) == 0 {
		return f.nothingOf(instanceKind, "there are no instances")
	}
	return f.judgeCertificates(f.Sidecars)
}

// caBundle is one by which kube-apiserver verifies a server.
type caBundle struct {
	// object has it, as kubectl names it; secret has the certificate of the server.
	object, secret string
	pem            []byte
}

// bundles lists every caBundle that could be read.
func (f *Facts) bundles() (all []caBundle) {
	if f.APIService.Err == nil && f.APIService.Value.Exists {
		all = append(all, caBundle{"apiservice " + f.APIService.Value.Name, certs.APIServerSecret, f.APIService.Value.CABundle})
	}
	if f.AdmissionAPIService.Err == nil && f.AdmissionAPIService.Value.Exists {
		all = append(all, caBundle{"apiservice " + f.AdmissionAPIService.Value.Name, certs.WebhookSecret, f.AdmissionAPIService.Value.CABundle})
	}
	if f.AdmissionAPIService.Value.Exists {
		return all // kube-apiserver calls webhooks through itself: their bundles verify its own certificate.
	}
	for _, w := range f.Mutating.Value.Webhooks {
		all = append(all, caBundle{"mutatingwebhookconfiguration " + webhookName, certs.WebhookSecret, w.ClientConfig.CABundle})
	}
	for _, w := range f.Validating.Value.Webhooks {
		all = append(all, caBundle{"validatingwebhookconfiguration " + webhookName, certs.WebhookSecret, w.ClientConfig.CABundle})
	}
	return all
}

// judgeBundles verifies each server's certificate by the caBundles by which kube-apiserver does. Of a certificate that may not be read it
// looks at the bundle alone.
func judgeBundles(f *Facts) Finding {
	all := f.bundles()
	for _, err := range []struct {
		request string
		err     error
	}{{f.APIService.Request, f.APIService.Err}, {f.Mutating.Request, f.Mutating.Err}, {f.Validating.Request, f.Validating.Err}} {
		if err.err != nil && !apierrors.IsNotFound(err.err) {
			return unread(err.request, err.err)
		}
	}
	if len(all) == 0 {
		return failure(applyManifests, "there is neither an APIService nor a webhook")
	}
	worst, judged := ok(""), map[string]bool{}
	for _, b := range all {
		key := b.object + string(b.pem)
		if !judged[key] {
			judged[key] = true
			worst = worse(worst, f.judgeBundle(b))
		}
	}
	if worst.Level == OK {
		worst.Found = fmt.Sprintf("%s verify the certificates of the API server and of the webhook", status.CountOf(len(all), "caBundle"))
	}
	return worst
}

func (f *Facts) judgeBundle(b caBundle) Finding {
	remedy := fmt.Sprintf("the fleet manager (or cert-manager, if you use it) puts it back: kubectl -n %s logs deployment/%s", f.Namespace, fleetName)
	roots, err := parseCertificates(b.pem)
	if err != nil {
		return failure(remedy, "the caBundle of %s cannot be read: %v", b.object, err)
	}
	valid := false
	for _, c := range roots {
		valid = valid || c.NotBefore.Before(f.Now) && c.NotAfter.After(f.Now)
	}
	if !valid {
		return failure(remedy, "the caBundle of %s has no authority that is valid now", b.object)
	}
	for _, c := range f.Serving {
		if c.Err != nil || c.Value.Secret.Name != b.secret {
			continue
		}
		if chain, err := parseCertificates(c.Value.Certificate); err == nil && verifyLeaf(chain, b.pem, f.Now) != nil {
			return failure(remedy, "the caBundle of %s does not verify the certificate in Secret %s: kube-apiserver does not trust the server", b.object, c.Value.Secret)
		}
	}
	return ok("")
}
