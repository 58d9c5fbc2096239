// Package controller sets up the manager and its reconcilers. Clusters make instances, instances make pods, zones bring the
// data of their objects to the pods: each has a package of its own.
package controller

import (
	"context"
	"errors"

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
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/certs"
	"github.com/lockstep-dns/lockstep/pkg/controller/apply"
	"github.com/lockstep-dns/lockstep/pkg/controller/cluster"
	"github.com/lockstep-dns/lockstep/pkg/controller/fleet"
	"github.com/lockstep-dns/lockstep/pkg/controller/instance"
	"github.com/lockstep-dns/lockstep/pkg/controller/tsigkeys"
	"github.com/lockstep-dns/lockstep/pkg/controller/zone"
	"github.com/lockstep-dns/lockstep/pkg/named"
	"github.com/lockstep-dns/lockstep/pkg/observe"
	"github.com/lockstep-dns/lockstep/pkg/uninstall"
)

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

// caBundleTargets returns the objects that hold the authority by which kube-apiserver verifies the other two components.
func (o *Options) caBundleTargets() []certs.Target {
	if !o.InjectCABundle {
		return nil
	}
	return []certs.Target{
		certs.APIService("v1alpha1.sync.bindy.firestoned.io"), certs.MutatingWebhook("lockstep-webhook"), certs.ValidatingWebhook("lockstep-webhook"),
	}
}

func (o *Options) setup(mgr ctrl.Manager) error {
	authority := instance.NewAuthority(mgr.GetAPIReader(), certs.SecretKey(o.Namespace))
	sidecar := bindcar.NewClient(bindcar.ClientOptions{TokenFile: o.BindcarTokenFile, Roots: authority.Roots})
	observer := observe.New(observe.Options{})
	children := apply.NewChildren(mgr.GetClient())
	wakeups := make(fleet.InstanceWakeups, 1024)
	keys := &tsigkeys.Rotator{
		Client: mgr.GetClient(), Children: children, Cache: tsigkeys.NewCache(mgr.GetAPIReader()), Sidecar: sidecar,
		Reader: client.ObjectKey{Namespace: o.Namespace, Name: o.APIServerAccount},
	}
	keeper, err := certs.NewKeeper(mgr.GetConfig(), mgr.GetLogger(), certs.SecretKey(o.Namespace), o.caBundleTargets()...)
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(keeper),
		cluster.Setup(mgr, cluster.Options{Home: o.Namespace, Timeouts: o.Timeouts, Children: children, Keys: keys, Instances: wakeups}),
		instance.Setup(mgr, instance.Options{
			Home: o.Namespace, ControllerAccount: o.ControllerAccount, APIServerAccount: o.APIServerAccount,
			Images: named.Images{Bind9: o.Bind9Image, Bindcar: o.BindcarImage}, Timeouts: o.Timeouts, Children: children, Keys: keys,
			Authority: authority, Sidecar: sidecar, DNS: observer, Wakeups: wakeups,
		}),
		zone.Setup(mgr, zone.Options{
			Home: o.Namespace, Timeouts: o.Timeouts, Children: children, Keys: keys.Cache, Observer: observer, Sidecar: sidecar, Instances: wakeups,
		}),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	)
}
