package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dns/lockstep/apiserver"
	"github.com/lockstep-dns/lockstep/pkg/controller"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/webhook"
)

// The component for cert-manager fits together, alone and with the others: each certificate is for the name by which its
// server is called, its Secret is where the server reads it, its authority exists and is the one that is injected.
func TestServeCertManager(t *testing.T) {
	kube.Isolated(t)
	for name, c := range map[string]struct {
		namespace, extra string
		components       []string
	}{
		"alone":         {system, "", []string{"cert-manager"}},
		"with others":   {system, "", []string{"cert-manager", "high-availability", "network-policy"}},
		"authenticated": {system, "", []string{"authenticated-webhook", "cert-manager"}},
		"elsewhere":     {"team-dns", "namespace: team-dns\ntransformers: [MANIFESTS/references, MANIFESTS/references/cert-manager]\n", []string{"authenticated-webhook", "cert-manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			built := kustomized(t, c.extra, c.components...)
			for _, face := range servedComponents {
				cert := built.find(t, "Certificate", "lockstep-"+face)
				if names, _, _ := unstructured.NestedStringSlice(cert.Object, "spec", "dnsNames"); !slices.Equal(names, certs.ServiceNames("lockstep-"+face, c.namespace)) {
					t.Errorf("the certificate of the %s is for %v", face, names)
				}
				secret, _, _ := unstructured.NestedString(cert.Object, "spec", "secretName")
				built.reads(t, face, secret)
				built.signed(t, cert)
			}
			for kind, face := range map[string]string{"APIService": "apiserver", "MutatingWebhookConfiguration": "webhook", "ValidatingWebhookConfiguration": "webhook"} {
				object := built.find(t, kind, map[string]string{"apiserver": apiService, "webhook": "lockstep-webhook"}[face])
				if got, want := object.GetAnnotations()["cert-manager.io/inject-ca-from"], c.namespace+"/lockstep-"+face; got != want {
					t.Errorf("%s gets the authority of %q, want that of %s", kind, got, want)
				}
			}
			if slices.Contains(c.components, "authenticated-webhook") {
				object := built.find(t, "APIService", "v1.admission.bindy.firestoned.io")
				if got, want := object.GetAnnotations()["cert-manager.io/inject-ca-from"], c.namespace+"/lockstep-webhook"; got != want {
					t.Errorf("the webhook's APIService gets the authority of %q, want that of %s", got, want)
				}
			}
			o := controller.NewFleetOptions(nil)
			built.parse(t, "fleet", o.AddFlags)
			if o.InjectCABundle {
				t.Error("the fleet manager injects its own authority")
			}
		})
	}
}

// kustomization is what kustomize has built.
type kustomization []*unstructured.Unstructured

// kustomized builds an overlay; MANIFESTS in extra stands for the folder of that name.
func kustomized(t *testing.T, extra string, components ...string) (built kustomization) {
	t.Helper()
	dir := t.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(kube.Root(t), "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + manifests + "/overlays/default]\n" +
		strings.ReplaceAll(extra, "MANIFESTS", manifests) + "components:\n"
	for _, c := range components {
		text += "- " + manifests + "/components/" + c + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := kube.Kubectl(t, "", "kustomize", dir)
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(out), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			return built
		} else if err != nil {
			t.Fatal(err)
		}
		built = append(built, u)
	}
}

func (k kustomization) find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range k {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

func (k kustomization) deployment(t *testing.T, face string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(k.find(t, "Deployment", "lockstep-"+face).Object, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// parse reads a component's arguments as the component does.
func (k kustomization) parse(t *testing.T, face string, add func(*pflag.FlagSet)) {
	t.Helper()
	container := k.deployment(t, face).Spec.Template.Spec.Containers[0]
	args := strings.Join(container.Args[1:], "\n")
	for _, env := range container.Env {
		args = strings.ReplaceAll(args, "$("+env.Name+")", env.Value)
	}
	flags := pflag.NewFlagSet(face, pflag.ContinueOnError)
	add(flags)
	if err := flags.Parse(strings.Split(args, "\n")); err != nil {
		t.Errorf("%s: %v", face, err)
	}
}

// reads checks that a component mounts the files of a Secret and uses them.
func (k kustomization) reads(t *testing.T, face, secret string) {
	t.Helper()
	pod, folder := k.deployment(t, face).Spec.Template.Spec, ""
	for _, v := range pod.Volumes {
		for _, m := range pod.Containers[0].VolumeMounts {
			if v.Secret != nil && v.Secret.SecretName == secret && m.Name == v.Name {
				folder = m.MountPath
			}
		}
	}
	var cert, key string
	var err error
	switch face {
	case "apiserver":
		o := apiserver.NewOptions()
		k.parse(t, face, o.AddFlags)
		cert, key, err = o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile, o.Validate()
	case "webhook":
		o := webhook.NewOptions()
		k.parse(t, face, o.AddFlags)
		cert, key, err = o.CertFile, o.KeyFile, o.Validate()
	}
	if err != nil || folder == "" || cert != folder+"/tls.crt" || key != folder+"/tls.key" {
		t.Errorf("%s uses %s and %s, and Secret %s is mounted at %q: %v", face, cert, key, secret, folder, err)
	}
}

// signed checks that a certificate's issuer exists, and that it has an authority.
func (k kustomization) signed(t *testing.T, cert *unstructured.Unstructured) {
	t.Helper()
	name, _, _ := unstructured.NestedString(cert.Object, "spec", "issuerRef", "name")
	issuer := k.find(t, "Issuer", name)
	authority, isCA, _ := unstructured.NestedString(issuer.Object, "spec", "ca", "secretName")
	if !isCA {
		if _, selfSigned, _ := unstructured.NestedMap(issuer.Object, "spec", "selfSigned"); !selfSigned {
			t.Errorf("Issuer %s issues nothing", name)
		}
		return
	}
	for _, o := range k {
		if secret, _, _ := unstructured.NestedString(o.Object, "spec", "secretName"); o.GetKind() == "Certificate" && secret == authority {
			if is, _, _ := unstructured.NestedBool(o.Object, "spec", "isCA"); !is {
				t.Errorf("Certificate %s is no authority's", o.GetName())
			}
			k.signed(t, o)
			return
		}
	}
	t.Errorf("nobody makes Secret %s of Issuer %s", authority, name)
}
