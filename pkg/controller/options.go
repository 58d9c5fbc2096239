package controller

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/status"
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
	Timeouts       fleet.Timeouts
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{ //nolint:gosec // names of Secrets, no secrets
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
		Timeouts:          fleet.Timeouts{Instance: status.InstanceTimeout, Key: status.KeyTimeout, Zone: status.ZoneTimeout},
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
