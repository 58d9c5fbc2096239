package webhook

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/webhook/review"
)

// Options are the flags of the admission webhook.
type Options struct {
	// Namespace is the one that Lockstep runs in: it has the Secret with the serving certificate.
	Namespace string
	// ControllerServiceAccount is the name of the controller's ServiceAccount in Namespace. It alone, beside the one for
	// uninstalling, may take finalizers, zone annotations and former names away.
	ControllerServiceAccount string
	// CertFile and KeyFile hold the serving certificate; it is read again when they change. Without them it is the one that the
	// fleet manager issues.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of the client certificate that kube-apiserver shows, and ClientNames are the common
	// names that it may have; empty for any. Without a file and without Aggregated, everybody who reaches the port is answered.
	ClientCAFile string
	ClientNames  []string
	// Aggregated has the webhook answer kube-apiserver alone, which calls through its aggregation layer.
	Aggregated bool
	// Port of the webhook itself (HTTPS).
	Port int
	// HealthAddress serves /healthz and /readyz, MetricsAddress serves /metrics, both plain HTTP.
	HealthAddress, MetricsAddress string
	// InFlight is how many reviews of one address may run at once, and half of those of all; further ones get 503.
	InFlight int
	// Limits are how many zones, providers, instances and records a namespace may have.
	Limits review.Limits
	// ShutdownDelay is how long the webhook goes on serving after the signal to end, while it leaves the endpoints of Services.
	ShutdownDelay time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Namespace:                cmp.Or(os.Getenv("POD_NAMESPACE"), "lockstep-system"),
		ControllerServiceAccount: "lockstep-controller",
		Port:                     9443,
		HealthAddress:            ":8081",
		MetricsAddress:           ":8080",
		InFlight:                 64,
		Limits:                   review.Limits{Zones: 20_000, Providers: 50, Instances: 100, Records: 200_000},
		ShutdownDelay:            10 * time.Second,
	}
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace that Lockstep runs in; holds the serving certificate's Secret")
	fs.StringVar(&o.ControllerServiceAccount, "controller-service-account", o.ControllerServiceAccount, "name of the controller's ServiceAccount, which may change what is remembered on records")
	fs.StringVar(&o.CertFile, "tls-cert-file", o.CertFile, "file with the serving certificate; without one it is read from Secret lockstep-webhook-tls, which the fleet manager keeps")
	fs.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "file with the key of --tls-cert-file, in the same folder")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "file with the authorities of kube-apiserver's client certificate, without which nobody is answered then; none by default")
	fs.StringSliceVar(&o.ClientNames, "client-allowed-names", o.ClientNames, "common names that the certificate of --client-ca-file may have; any by default")
	fs.BoolVar(&o.Aggregated, "aggregated", o.Aggregated, "answer kube-apiserver alone, which calls through its aggregation layer: as manifests/components/authenticated-webhook configures it")
	fs.IntVar(&o.Port, "port", o.Port, "port of the webhook (HTTPS)")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "address of /healthz and /readyz")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, `address of /metrics and /version, "0" for none`)
	fs.IntVar(&o.InFlight, "max-in-flight", o.InFlight, "reviews of one address that may run at once; twice as many in all")
	fs.IntVar(&o.Limits.Zones, "max-zones", o.Limits.Zones, "DNSZones that a namespace may have; 0 for any number")
	fs.IntVar(&o.Limits.Providers, "max-providers", o.Limits.Providers, "DNSProviders that a namespace may have; 0 for any number")
	fs.IntVar(&o.Limits.Instances, "max-instances", o.Limits.Instances, "Bind9Instances that a namespace may have, with those that its Bind9Clusters ask for; 0 for any number")
	fs.IntVar(&o.Limits.Records, "max-records", o.Limits.Records, "records and endpoints of DNSEndpoints that a namespace may have; 0 for any number")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay", o.ShutdownDelay, "how long to go on serving after the signal to end")
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var problems component.Problems
	problems.AddAll("--namespace", o.Namespace, validation.IsDNS1123Label(o.Namespace))
	problems.AddAll("--controller-service-account", o.ControllerServiceAccount, validation.IsDNS1123Subdomain(o.ControllerServiceAccount))
	problems.Check((o.CertFile == "") == (o.KeyFile == "") && filepath.Dir(o.CertFile) == filepath.Dir(o.KeyFile),
		"--tls-cert-file=%q and --tls-private-key-file=%q: must be two files of one folder", o.CertFile, o.KeyFile)
	problems.Check(len(o.ClientNames) == 0 || o.ClientCAFile != "", "--client-allowed-names=%q: needs --client-ca-file", o.ClientNames)
	problems.Check(!o.Aggregated || o.ClientCAFile == "", "--aggregated and --client-ca-file exclude each other")
	problems.Check(o.Port >= 1 && o.Port <= 65535, "--port=%d: must be between 1 and 65535", o.Port)
	problems.Check(o.InFlight >= 1, "--max-in-flight=%d: must be at least 1", o.InFlight)
	l := o.Limits
	for flag, limit := range map[string]int{"max-zones": l.Zones, "max-providers": l.Providers, "max-instances": l.Instances, "max-records": l.Records} {
		problems.Check(limit >= 0, "--%s=%d: must be at least 0", flag, limit)
	}
	problems.Check(o.ShutdownDelay >= 0, "--shutdown-delay=%s: must not be negative", o.ShutdownDelay)
	return errors.Join(problems...)
}

// trustedUsers are the users who may change every mark.
func (o *Options) trustedUsers() map[string]bool {
	keepers := map[string]bool{}
	for _, account := range []string{o.ControllerServiceAccount, apply.UninstallAccount} {
		keepers["system:serviceaccount:"+o.Namespace+":"+account] = true
	}
	return keepers
}
