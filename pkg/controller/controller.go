package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/certs"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/status"
	"github.com/lockstep-dns/lockstep/pkg/uninstall"
)

// Names of what the manifests install beside the controller.
const (
	APIServiceName        = "v1alpha1.sync.bindy.firestoned.io"
	MutatingWebhookName   = "lockstep-webhook"
	ValidatingWebhookName = "lockstep-webhook"
)

// Options are the controller's flags.
type Options struct {
	Namespace         string
	ControllerAccount string
	APIServerAccount  string
	Bind9Image        string
	BindcarImage      string
	BindcarTokenFile  string
	MetricsAddress    string
	ProbeAddress      string
	LeaderElect       bool
	// InjectCABundle publishes the certificate authority to kube-apiserver; somebody else does it when it is false.
	InjectCABundle bool
	Timeouts       Timeouts
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:         os.Getenv("POD_NAMESPACE"),
		ControllerAccount: "lockstep-controller",
		APIServerAccount:  "lockstep-apiserver",
		Bind9Image:        "lockstep-bind9:9.18",
		BindcarImage:      "lockstep:dev",
		BindcarTokenFile:  "/var/run/secrets/bindcar/token",
		MetricsAddress:    ":8080",
		ProbeAddress:      ":8081",
		LeaderElect:       true,
		InjectCABundle:    true,
		Timeouts:          Timeouts{Instance: status.InstanceTimeout, Key: status.KeyTimeout, Zone: status.ZoneTimeout},
	}
}

// AddFlags registers the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace that Lockstep runs in; default from the environment variable POD_NAMESPACE")
	fs.StringVar(&o.ControllerAccount, "service-account", o.ControllerAccount, "the controller's own ServiceAccount in that namespace: sidecars let it in")
	fs.StringVar(&o.APIServerAccount, "apiserver-service-account", o.APIServerAccount, "the aggregated API server's ServiceAccount in that namespace: it is granted the transfer keys")
	fs.StringVar(&o.Bind9Image, "bind9-image", o.Bind9Image, "image of named for instances that set none")
	fs.StringVar(&o.BindcarImage, "bindcar-image", o.BindcarImage, "image of the sidecar for instances that set none")
	fs.StringVar(&o.BindcarTokenFile, "bindcar-token-file", o.BindcarTokenFile, "file with the token, of audience bindcar, that is shown to sidecars")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "address of /metrics; 0 turns it off")
	fs.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "address of /healthz and /readyz")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding the lease lockstep-controller, so that several replicas are safe")
	fs.BoolVar(&o.InjectCABundle, "inject-ca-bundle", o.InjectCABundle, "keep the certificate authority in the caBundle of the APIService and of the webhook configurations; false when these servers have certificates of another authority")
	fs.DurationVar(&o.Timeouts.Instance, "instance-timeout", o.Timeouts.Instance, "how long an instance or cluster may go without progress before it is Failed with ProgressDeadlineExceeded")
	fs.DurationVar(&o.Timeouts.Key, "key-timeout", o.Timeouts.Key, "how long an instance or cluster may wait for a Secret before it is Failed with ProgressDeadlineExceeded")
	fs.DurationVar(&o.Timeouts.Zone, "zone-timeout", o.Timeouts.Zone, "how long one of its instances may be without a zone before the zone says ProgressDeadlineExceeded")
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var errs []error
	for flag, value := range map[string]string{
		"--namespace": o.Namespace, "--service-account": o.ControllerAccount, "--apiserver-service-account": o.APIServerAccount,
		"--bind9-image": o.Bind9Image, "--bindcar-image": o.BindcarImage, "--bindcar-token-file": o.BindcarTokenFile,
	} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s must not be empty", flag))
		}
	}
	for flag, value := range map[string]time.Duration{
		"--instance-timeout": o.Timeouts.Instance, "--key-timeout": o.Timeouts.Key, "--zone-timeout": o.Timeouts.Zone,
	} {
		if value < time.Second {
			errs = append(errs, fmt.Errorf("%s=%s: must be at least 1s", flag, value))
		}
	}
	return errors.Join(errs...)
}

// Run runs the reconcilers until the context ends.
func (o *Options) Run(ctx context.Context) error {
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// kube-apiserver's priority and fairness decides how fast is too fast.
	config.QPS = -1
	config.UserAgent = "lockstep-controller"
	mgr, err := ctrl.NewManager(config, o.managerOptions())
	if err != nil {
		return err
	}
	if err := o.setup(mgr); err != nil {
		return err
	}
	return uninstall.New(config, o.Namespace, mgr.GetLogger().WithName("uninstall")).Guard(ctx, mgr.Start)
}

func (o *Options) managerOptions() ctrl.Options {
	return ctrl.Options{
		Scheme:                        newScheme(),
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              "lockstep-controller",
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.ProbeAddress,
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:         {Label: labels.SelectorFromSet(labels.Set{named.LabelName: named.AppName})},
				&corev1.Service{}:     {Label: labels.SelectorFromSet(labels.Set{named.LabelManagedBy: named.Manager})},
				&appsv1.StatefulSet{}: {Label: labels.SelectorFromSet(labels.Set{named.LabelManagedBy: named.Manager})},
			},
		},
		// Secrets and users' ConfigMaps are read one at a time and by name, never listed.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// verifiers hold the authority by which kube-apiserver verifies the other two faces.
func (o *Options) verifiers() []certs.Target {
	if !o.InjectCABundle {
		return nil
	}
	return []certs.Target{
		certs.APIService(APIServiceName), certs.MutatingWebhook(MutatingWebhookName), certs.ValidatingWebhook(ValidatingWebhookName),
	}
}

func (o *Options) setup(mgr ctrl.Manager) error {
	authority := &authority{reader: mgr.GetAPIReader(), secret: certs.SecretKey(o.Namespace)}
	deps := Deps{
		keys:              newKeyring(mgr.GetAPIReader()),
		Namespace:         o.Namespace,
		ControllerAccount: o.ControllerAccount,
		APIServerAccount:  o.APIServerAccount,
		Bind9Image:        o.Bind9Image,
		BindcarImage:      o.BindcarImage,
		Timeouts:          o.Timeouts,
		Observer:          observe.New(observe.Options{}),
		Bindcar:           bindcar.NewClient(bindcar.ClientOptions{TokenFile: o.BindcarTokenFile, Roots: authority.roots}),
		authority:         authority,
		Provisioned:       make(chan event.GenericEvent, 1024),
	}
	keeper, err := certs.NewKeeper(mgr.GetConfig(), mgr.GetLogger(), certs.SecretKey(o.Namespace), o.verifiers()...)
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(keeper),
		SetupCluster(mgr, deps),
		SetupInstance(mgr, deps),
		SetupZone(mgr, deps),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	)
}
