// Package controller sets up two processes. The controller programs zones: it brings the data of objects to servers, and
// writes nothing to Kubernetes but status, marks and Events. The fleet manager runs servers: clusters make instances, and
// instances make pods with all that these need. Each reconciler has a package of its own.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/cluster"
	"github.com/lockstep-dns/lockstep/pkg/fleet/instance"
	"github.com/lockstep-dns/lockstep/pkg/fleet/inventory"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/kube/failures"
	"github.com/lockstep-dns/lockstep/pkg/zone/dnsprovider"
)

// FleetOptions are the flags of the fleet manager, which runs servers.
type FleetOptions struct {
	Process
	Account           string
	ControllerAccount string
	APIServerAccount  string
	Bind9Image        string
	// Image is Lockstep's own, BindcarImage that of sidecars; empty for the one that goes with Image.
	Image, BindcarImage string
	// InjectCABundle publishes the certificate authority to kube-apiserver and issues the certificates of the API server and of the
	// webhook; somebody else does both when it is false.
	InjectCABundle bool
	// IssueVantage issues the certificate of a vantage in the Kubernetes cluster.
	IssueVantage bool
	Timeouts     inventory.Timeouts
	// Guard runs the process; nil just runs it. What has to outlive the process's work, such as an uninstallation, goes on until it returns.
	Guard GuardFunc
}

// GuardFunc runs a process of Lockstep in a namespace until it ends. The configuration is the process's own.
type GuardFunc func(ctx context.Context, config *rest.Config, namespace string, log logr.Logger, run func(context.Context) error) error

// NewFleetOptions returns the defaults, with a guard that may be nil.
func NewFleetOptions(guard GuardFunc) *FleetOptions {
	return &FleetOptions{
		Guard:             guard,
		Process:           newProcess("lockstep-fleet"),
		Account:           "lockstep-fleet",
		ControllerAccount: "lockstep-controller",
		APIServerAccount:  "lockstep-apiserver",
		Bind9Image:        "lockstep-bind9:9.20,9.18=lockstep-bind9:9.18",
		Image:             "lockstep:dev",
		InjectCABundle:    true,
		Timeouts:          inventory.Timeouts{Instance: status.InstanceTimeout, Key: status.KeyTimeout},
	}
}

// AddFlags registers the flags.
func (o *FleetOptions) AddFlags(fs *pflag.FlagSet) {
	o.addFlags(fs)
	fs.StringVar(&o.Account, "service-account", o.Account, "the fleet manager's own ServiceAccount in that namespace: instances say so where it has no rights")
	fs.StringVar(&o.ControllerAccount, "controller-service-account", o.ControllerAccount, "the controller's ServiceAccount in that namespace: it is granted the update and transfer keys")
	fs.StringVar(&o.APIServerAccount, "apiserver-service-account", o.APIServerAccount, "the aggregated API server's ServiceAccount in that namespace: it is granted the transfer keys")
	fs.StringVar(&o.Bind9Image, "bind9-image", o.Bind9Image, "image of named for instances that set none, and those of other releases: IMAGE,9.18=IMAGE")
	fs.StringVar(&o.Image, "image", o.Image, "image of this program")
	fs.StringVar(&o.BindcarImage, "bindcar-image", o.BindcarImage, "image of the sidecar for instances that set none; by default that of --image with -sidecar after its name, and the same tag")
	fs.BoolVar(&o.InjectCABundle, "inject-ca-bundle", o.InjectCABundle, "keep the certificate authority in the caBundle of the APIServices and of the webhook configurations, and issue the certificates of these servers; false when they have certificates of another authority")
	fs.BoolVar(&o.IssueVantage, "issue-vantage-certificate", o.IssueVantage, "issue a certificate for the Service lockstep-vantage, in the Secret lockstep-vantage-tls")
	fs.DurationVar(&o.Timeouts.Instance, "instance-timeout", o.Timeouts.Instance, "how long an instance or cluster may go without progress before it is Failed with ProgressDeadlineExceeded")
	fs.DurationVar(&o.Timeouts.Key, "key-timeout", o.Timeouts.Key, "how long an instance or cluster may wait for a Secret before it is Failed with ProgressDeadlineExceeded")
}

// images returns the images of instances that name none.
func (o *FleetOptions) images() (named.Images, error) {
	images := named.Images{Bindcar: o.BindcarImage}
	var bindErr, sidecarErr error
	if images.Bind9, bindErr = releases.ParseImages(o.Bind9Image); bindErr != nil && o.Bind9Image != "" { // requireFlags names one that is missing.
		bindErr = fmt.Errorf("--bind9-image: %w", bindErr)
	} else {
		bindErr = nil
	}
	if images.Bindcar == "" {
		if images.Bindcar, sidecarErr = named.SidecarImage(o.Image); sidecarErr != nil {
			sidecarErr = fmt.Errorf("--bindcar-image: must be set: %w", sidecarErr)
		}
	}
	return images, errors.Join(bindErr, sidecarErr)
}

// Validate names every flag that is wrong.
func (o *FleetOptions) Validate() error {
	_, err := o.images()
	return errors.Join(
		err,
		requireFlags(map[string]string{
			"--namespace": o.Namespace, "--service-account": o.Account, "--controller-service-account": o.ControllerAccount,
			"--apiserver-service-account": o.APIServerAccount, "--bind9-image": o.Bind9Image, "--image": o.Image,
		}),
		requireTimeouts(map[string]time.Duration{"--instance-timeout": o.Timeouts.Instance, "--key-timeout": o.Timeouts.Key}),
	)
}

// Run runs servers until the context ends.
func (o *FleetOptions) Run(ctx context.Context) error {
	mgr, config, err := o.newManager(ctx, trimZone)
	if err != nil {
		return err
	}
	if err := o.setup(mgr); err != nil {
		return err
	}
	if o.Guard == nil {
		return mgr.Start(ctx)
	}
	return o.Guard(ctx, config, o.Namespace, mgr.GetLogger(), mgr.Start)
}

// setupIssuing has the keeper issue the certificates of the components. It returns what reports each new bundle.
func (o *FleetOptions) setupIssuing(keeper *certs.Keeper) instance.BundleChanges {
	keeper.Self = certs.Subject{Identity: bindcar.FleetIdentity}
	keeper.Recipients = []certs.Recipient{
		{Secret: certs.ControllerClientSecret, Subject: certs.Subject{Identity: bindcar.ControllerIdentity}},
		{Secret: certs.APIServerClientSecret, Subject: certs.Subject{Identity: bindcar.APIServerIdentity}},
		{Secret: certs.MetricsClientSecret, Subject: certs.Subject{Identity: bindcar.MetricsIdentity}},
	}
	if o.InjectCABundle { // kube-apiserver trusts this authority
		for service, secret := range map[string]string{"lockstep-apiserver": certs.APIServerSecret, "lockstep-webhook": certs.WebhookSecret} {
			subject := certs.Subject{DNSNames: certs.ServiceNames(service, o.Namespace)}
			keeper.Recipients = append(keeper.Recipients, certs.Recipient{Secret: secret, Subject: subject})
		}
	}
	if o.IssueVantage {
		subject := certs.Subject{DNSNames: certs.ServiceNames("lockstep-vantage", o.Namespace)}
		keeper.Recipients = append(keeper.Recipients, certs.Recipient{Secret: certs.VantageSecret, Subject: subject})
	}
	bundles := make(instance.BundleChanges, 1)
	keeper.Changed = bundles.Report
	return bundles
}

func (o *FleetOptions) setup(mgr ctrl.Manager) error {
	keeper, err := certs.NewKeeper(mgr.GetConfig(), mgr.GetLogger(), certs.SecretKey(o.Namespace), o.caBundleTargets()...)
	if err != nil {
		return err
	}
	images, err := o.images()
	if err != nil {
		return err
	}
	bundles := o.setupIssuing(keeper)
	sidecar := bindcar.NewClient(bindcar.ClientOptions{TLS: keeper.ClientConfig, Gate: outbound.NewGate(nil, outbound.Limits{})})
	children := apply.NewChildren(mgr.GetClient())
	rights := inventory.NamespaceRights{Client: mgr.GetClient(), Account: client.ObjectKey{Namespace: o.Namespace, Name: o.Account}}
	wakeups := make(inventory.InstanceWakeups, 1024)
	keys := &keyrotation.Rotator{
		Client: mgr.GetClient(), Children: children, Cache: keyrotation.NewCache(mgr.GetAPIReader()), Sidecar: sidecar,
		Controller:      client.ObjectKey{Namespace: o.Namespace, Name: o.ControllerAccount},
		APIServer:       client.ObjectKey{Namespace: o.Namespace, Name: o.APIServerAccount},
		SystemNamespace: o.Namespace,
		Transitions:     apply.NewTransitions(mgr.GetEventRecorder(apply.FieldOwner), mgr.GetScheme()),
	}
	confirmed := &inventory.Confirmed{}
	grants := &dnsprovider.Grants{Client: mgr.GetClient(), Children: children, Controller: keys.Controller, APIServer: keys.APIServer}
	return errors.Join(
		mgr.Add(keeper),
		grants.Setup(mgr),
		failures.Setup(mgr, &v1beta1.Bind9Instance{}, &v1beta1.Bind9Cluster{}, &v1beta1.Bind9GlobalCluster{}, &v1beta1.ClusterBind9Provider{}),
		cluster.Setup(mgr, cluster.Options{SystemNamespace: o.Namespace, Timeouts: o.Timeouts, Rights: rights, Children: children, Keys: keys, Instances: wakeups, Confirmed: confirmed}),
		instance.Setup(mgr, instance.Options{
			SystemNamespace: o.Namespace, Images: images, Timeouts: o.Timeouts, Rights: rights,
			Children: children, Keys: keys, Authority: keeper, Bundles: bundles, Sidecar: sidecar, DNS: observe.New(observe.Options{}), Wakeups: wakeups, Confirmed: confirmed,
		}),
	)
}

// trimZone drops what the fleet manager does not read of a zone: the status lists up to a thousand records.
func trimZone(zone *v1beta1.DNSZone) { zone.Status.Records, zone.Status.ForeignRRsets = nil, nil }

// caBundleTargets hold the authority by which kube-apiserver verifies the other two servers.
func (o *FleetOptions) caBundleTargets() []certs.Target {
	if !o.InjectCABundle {
		return nil
	}
	return []certs.Target{
		certs.APIService("v1alpha1.sync.bindy.firestoned.io"), certs.APIService("v1.admission.bindy.firestoned.io"),
		certs.MutatingWebhook("lockstep-webhook"), certs.ValidatingWebhook("lockstep-webhook"),
	}
}
