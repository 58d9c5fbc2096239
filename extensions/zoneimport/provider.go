package zoneimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/tsigkey"
)

// providerWords are what kubectl calls a DNSProvider.
var providerWords = []string{"dnsprovider", "dnsproviders", "dnsp", "dnsps", "dnsprovider.bindy.firestoned.io", "dnsproviders.bindy.firestoned.io"}

// parseProvider reads dnsprovider/NAME.
func parseProvider(arg string) (name string, err error) {
	word, name, _ := strings.Cut(arg, "/")
	if !slices.Contains(providerWords, strings.ToLower(word)) || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q: the zone of an object is imported from dnsprovider/NAME", arg)
	}
	return name, nil
}

// zoneOrigin is where a zone is transferred from.
type zoneOrigin struct {
	// servers are ADDRESS[:PORT], asked one after the other until one transfers the zone.
	servers []string
	key     *wire.Key
	// keyPlace is where a user has the key: a flag or a Secret.
	keyPlace string
}

// readProvider reads a DNSProvider and its transfer key, with the rights of the user whose kubeconfig it is, and returns the
// provider's primaries. The namespace of the objects becomes the provider's: a zone can name only one of its own.
func (o *Options) readProvider(ctx context.Context) (zoneOrigin, error) {
	kube, err := o.connect()
	if err != nil {
		return zoneOrigin{}, err
	}
	provider := &v1beta1.DNSProvider{}
	at := client.ObjectKey{Namespace: o.Namespace, Name: o.Provider}
	switch err := kube.Get(ctx, at, provider); {
	case meta.IsNoMatchError(err):
		return zoneOrigin{}, fmt.Errorf("this Kubernetes cluster has no DNSProviders: is Lockstep installed there? %w", err)
	case err != nil:
		return zoneOrigin{}, fmt.Errorf("reading DNSProvider %s: %w", at, err)
	case provider.Spec.RFC2136 == nil:
		return zoneOrigin{}, fmt.Errorf("DNSProvider %s has no primaries to transfer a zone from: use --server or --file", at)
	}
	o.maxRecordsPerType = ptr.Deref(provider.Spec.MaxRecordsPerType, 0)
	origin := zoneOrigin{}
	for _, server := range provider.Spec.RFC2136.Primaries {
		origin.servers = append(origin.servers, serving.ServerAddress(server))
	}
	_, name := tsigkey.ProviderSecrets(provider)
	origin.keyPlace = "Secret " + name.Name
	secret := &corev1.Secret{}
	switch err := kube.Get(ctx, name, secret); {
	case apierrors.IsForbidden(err):
		return origin, fmt.Errorf("you may not read Secret %s, which has the key for the transfer: have that permitted, or use --server and --key-file: %w", name, err)
	case err != nil:
		return origin, fmt.Errorf("reading the key for the transfer: %w", err)
	}
	origin.key, err = named.KeyFromSecret(secret)
	return origin, err
}

// connect returns a client of the cluster in the kubeconfig, and takes over its namespace.
func (o *Options) connect() (client.Client, error) {
	config, err := o.Kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := o.Kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	o.Namespace = cmp.Or(o.Namespace, namespace)
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}
