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
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/component/ctrlmetrics"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/kube/apply"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
	"github.com/lockstep-dns/lockstep/pkg/kube/listwatch"
)

// Process is what both processes have: a place in the cluster, a lease, and clients.
type Process struct {
	// name is that of the process's lease, podName that of its pod.
	name, podName  string
	Namespace      string
	MetricsAddress string
	ProbeAddress   string
	ProfileAddress string
	LeaderElect    bool
	// tenure is that of the lease; nil without one of a pod.
	tenure *tenure
}

func newProcess(name string) Process {
	return Process{
		name: name, podName: os.Getenv("POD_NAME"), Namespace: os.Getenv("POD_NAMESPACE"), MetricsAddress: ":8080", ProbeAddress: ":8081",
		ProfileAddress: "0", LeaderElect: true,
	}
}

func (p *Process) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.Namespace, "namespace", p.Namespace, "namespace that Lockstep runs in; default from the environment variable POD_NAMESPACE")
	fs.StringVar(&p.MetricsAddress, "metrics-bind-address", p.MetricsAddress, "address of /metrics and /version; 0 turns it off")
	fs.StringVar(&p.ProbeAddress, "health-probe-bind-address", p.ProbeAddress, "address of /healthz and /readyz")
	fs.StringVar(&p.ProfileAddress, "pprof-bind-address", p.ProfileAddress, "address of /debug/pprof, where anybody who reaches it gets profiles and may slow the process down; 0 turns it off")
	fs.BoolVar(&p.LeaderElect, "leader-elect", p.LeaderElect, "work only while holding the lease "+p.name+", so that several replicas are safe")
}

// newManager returns a manager without reconcilers, and the configuration of its clients. Its cache keeps of zones what trimZone leaves;
// nil leaves all.
func (p *Process) newManager(ctx context.Context, trimZone func(*v1beta1.DNSZone)) (ctrl.Manager, *rest.Config, error) {
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, nil, err
	}
	// kube-apiserver's priority and fairness decides how fast is too fast.
	config.QPS = -1
	config.DisableCompression = true // As Kubernetes' own controllers do: it takes CPU at both ends of each watch.
	config.UserAgent = p.name
	if err := cachehealth.WaitForServer(ctx, config); err != nil {
		return nil, nil, err
	}
	lock, err := p.newLock(config)
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the lease: %w", err)
	}
	own, err := listwatch.NewClients(config)
	if err != nil {
		return nil, nil, err
	}
	caches := cachehealth.NewMonitor()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                              newScheme(),
		MapperProvider:                      cachehealth.NewMapper,
		NewClient:                           apply.NewClient,
		LeaderElection:                      p.LeaderElect,
		LeaderElectionID:                    p.name,
		LeaderElectionNamespace:             p.Namespace,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       new(leaseDuration),
		RenewDeadline:                       new(renewDeadline),
		RetryPeriod:                         new(retryPeriod),
		HealthProbeBindAddress:              p.ProbeAddress,
		PprofBindAddress:                    p.ProfileAddress,
		Metrics:                             ctrlmetrics.Off(),
		Cache:                               cacheOptions(own.Informers(caches.NewInformer), trimZone),
		// Secrets, users' ConfigMaps and namespaces are read one at a time and by name, never listed.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Namespace{}}}},
	})
	if err != nil {
		return nil, nil, err
	}
	return mgr, config, errors.Join(ctrlmetrics.Serve(ctx, mgr, p.MetricsAddress), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", caches.Check))
}

// cacheOptions limits what the cache holds: of children only our own, and of all objects what many have in common only once.
func cacheOptions(newInformer listwatch.NewInformerFunc, trimZone func(*v1beta1.DNSZone)) cache.Options {
	pool := &intern.Pool{}
	transformZone := func(o any) (any, error) {
		if zone, ok := o.(*v1beta1.DNSZone); ok && trimZone != nil {
			trimZone(zone)
		}
		return pool.Transform(o)
	}
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{named.LabelManagedBy: named.Manager})}
	return cache.Options{
		DefaultTransform: pool.Transform,
		NewInformer:      newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.DNSZone{}:              {Transform: transformZone},
			&corev1.Pod{}:                   {Label: labels.SelectorFromSet(labels.Set{named.LabelName: named.AppName})},
			&discoveryv1.EndpointSlice{}:    {Label: endpointsByHand()},
			&corev1.Service{}:               managed,
			&appsv1.StatefulSet{}:           managed,
			&corev1.ServiceAccount{}:        managed,
			&policyv1.PodDisruptionBudget{}: managed,
			&rbacv1.Role{}:                  managed,
			&rbacv1.RoleBinding{}:           managed,
		},
	}
}

// endpointsByHand selects the EndpointSlices of Services that Kubernetes' own controller has not made.
func endpointsByHand() labels.Selector {
	selector, err := labels.Parse(discoveryv1.LabelServiceName + "," + discoveryv1.LabelManagedBy + "!=endpointslice-controller.k8s.io")
	if err != nil {
		panic(err)
	}
	return selector
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// requireFlags refuses flags that are empty.
func requireFlags(flags map[string]string) error {
	var errs []error
	for flag, value := range flags {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s must not be empty", flag))
		}
	}
	return errors.Join(errs...)
}

// requireTimeouts refuses flags that are too short to be meant.
func requireTimeouts(flags map[string]time.Duration) error {
	var errs []error
	for flag, value := range flags {
		if value < time.Second {
			errs = append(errs, fmt.Errorf("%s=%s: must be at least 1s", flag, value))
		}
	}
	return errors.Join(errs...)
}
