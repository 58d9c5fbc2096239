package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/kube/failures"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
	"github.com/lockstep-dns/lockstep/pkg/zone/reconcile"
)

// Options are the flags of the controller, which programs zones.
type Options struct {
	Process
	ZoneTimeout time.Duration
	// Limits bound what DNS servers can make the controller take.
	Limits observe.Limits
	// Networks are where nothing may be that objects of tenants name.
	Networks outbound.Networks
	// AskParents has zones above that are not declared here asked and notified.
	AskParents bool
	// QuestionRate is how many questions in a second a server that is read by query gets at most.
	QuestionRate int
	// Extensions run in this process as well.
	Extensions []Extension
}

// Extension is what the controller can do without: a source of names, with flags and reconcilers of its own.
type Extension interface {
	// AddFeatures adds its feature gates.
	AddFeatures(featuregate.MutableFeatureGate) error
	// AddFlags registers its flags with their defaults.
	AddFlags(*pflag.FlagSet)
	// Validate names every flag that is wrong.
	Validate() error
	// Setup adds its reconcilers to the manager, which has not started.
	Setup(ctrl.Manager) error
}

// NewOptions returns the defaults, with these extensions.
func NewOptions(extensions ...Extension) *Options {
	return &Options{Extensions: extensions, Process: newProcess("lockstep-controller"), ZoneTimeout: status.ZoneTimeout, Limits: observe.DefaultLimits(), QuestionRate: 1000}
}

// AddFeatures adds the feature gates of the extensions.
func (o *Options) AddFeatures(gate featuregate.MutableFeatureGate) error {
	var errs []error
	for _, extension := range o.Extensions {
		errs = append(errs, extension.AddFeatures(gate))
	}
	return errors.Join(errs...)
}

// AddFlags registers the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.addFlags(fs)
	fs.DurationVar(&o.ZoneTimeout, "zone-timeout", o.ZoneTimeout, "how long one of its instances may lack a zone before the zone says ProgressDeadlineExceeded")
	fs.IntVar(&o.QuestionRate, "max-queries-per-second", o.QuestionRate, "how many queries in a second a DNS server that is read by query gets at most; namespaces take turns")
	fs.BoolVar(&o.AskParents, "ask-parents", o.AskParents, "whether to ask zones above that are not declared here for DS records of signed zones, and to notify them of CDS records")
	o.Limits.AddFlags(fs)
	o.Networks.AddFlag(fs)
	for _, extension := range o.Extensions {
		extension.AddFlags(fs)
	}
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var rate error
	if o.QuestionRate < 1 {
		rate = fmt.Errorf("--max-queries-per-second=%d: must be at least 1", o.QuestionRate)
	}
	extensions := make([]error, len(o.Extensions))
	for i, extension := range o.Extensions {
		extensions[i] = extension.Validate()
	}
	return errors.Join(
		rate, o.Limits.Validate(), errors.Join(extensions...),
		requireFlags(map[string]string{"--namespace": o.Namespace}),
		requireTimeouts(map[string]time.Duration{"--zone-timeout": o.ZoneTimeout}),
	)
}

// Run programs zones until the context ends.
func (o *Options) Run(ctx context.Context) error {
	mgr, config, err := o.newManager(ctx, nil)
	if err != nil {
		return err
	}
	certificate, err := o.followCertificate(mgr, config)
	if err != nil {
		return err
	}
	keys := keyrotation.NewCache(mgr.GetAPIReader())
	gate := outbound.NewGate(nil, outbound.Limits{Networks: o.Networks})
	stores := &dnsprovider.Backends{Reader: mgr.GetAPIReader(), Gate: gate}
	if err := dnsprovider.Setup(mgr, keys, stores, o.Namespace); err != nil {
		return err
	}
	if err := reconcile.Setup(mgr, reconcile.Options{ //nolint:contextcheck // events of informers have no context
		SystemNamespace: o.Namespace, Timeout: o.ZoneTimeout, Keys: keys, Backends: stores, Gate: gate, AskParents: o.AskParents, Guard: o.tenure.guard,
		Observer: observe.New(observe.Options{Limits: o.Limits, QuestionRate: o.QuestionRate}), Sidecar: bindcar.NewClient(bindcar.ClientOptions{TLS: certificate.ClientConfig, Gate: gate}),
	}); err != nil {
		return err
	}
	if err := failures.Setup(mgr, zoneKinds()...); err != nil {
		return err
	}
	for _, extension := range o.Extensions {
		if err := extension.Setup(mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// zoneKinds are the kinds whose statuses the controller writes.
func zoneKinds() []client.Object {
	kinds := []client.Object{&v1beta1.DNSZone{}, &v1beta1.DNSProvider{}, &v1alpha1.DNSEndpoint{}}
	for _, kind := range v1beta1.RecordKinds {
		kinds = append(kinds, kind.New().(client.Object))
	}
	return kinds
}

// followCertificate provides the certificate with which the controller connects to sidecars. The manager is not ready without one.
func (o *Options) followCertificate(mgr ctrl.Manager, config *rest.Config) (*certs.Follower, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the certificate: %w", err)
	}
	follower := certs.NewFollower(clientset, types.NamespacedName{Namespace: o.Namespace, Name: certs.ControllerClientSecret})
	return follower, errors.Join(mgr.Add(follower), mgr.AddReadyzCheck(follower.Name(), follower.Check))
}
