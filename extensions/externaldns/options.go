package externaldns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1alpha1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
)

// maxWait bounds --wait-propagated: external-dns waits for no answer longer than 15 s.
const maxWait = answerWithin - time.Second

// Options are the flags of the webhook provider.
type Options struct {
	// Owner is the name of the external-dns that is served, one of several.
	Owner string
	// Address is where external-dns connects, on the loopback interface. ProbeAddress serves /healthz, /readyz, /metrics and /version.
	Address, ProbeAddress string
	// Namespaces are those that are served; empty for all.
	Namespaces []string
	// ZoneNamespaces are other namespaces whose zones may take the records, if they agree.
	ZoneNamespaces string
	// Domains is the domain filter that external-dns gets; empty for none.
	Domains []string
	// OwnerReferences has a DNSEndpoint deleted with its source object, even while external-dns is away.
	OwnerReferences bool
	// DryRun logs changes and writes none.
	DryRun bool
	// WaitPropagated is how long an answer waits for every server to answer what was changed.
	WaitPropagated time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Owner: "external-dns", Address: "localhost:8888", ProbeAddress: ":8080", OwnerReferences: true}
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Owner, "owner", o.Owner, "name of the external-dns that is served; with several of them each needs its own. It begins the names of its DNSEndpoints")
	fs.StringVar(&o.Address, "bind-address", o.Address, "address for external-dns, on the loopback interface: whoever reaches it can publish names")
	fs.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "address of /healthz, /readyz, /metrics and /version")
	fs.StringSliceVar(&o.Namespaces, "namespaces", o.Namespaces, "namespaces in which DNSEndpoints are kept; all by default, which needs a ClusterRole")
	fs.StringVar(&o.ZoneNamespaces, "allow-zone-namespaces", o.ZoneNamespaces, "other namespaces, separated by commas, whose zones may take the records if they list the namespace of the record")
	fs.StringSliceVar(&o.Domains, "domain-filter", o.Domains, "domains that external-dns is to look at; all by default")
	fs.BoolVar(&o.OwnerReferences, "owner-references", o.OwnerReferences, "delete records with their source object, even while external-dns is away; turn it off with --policy=upsert-only")
	fs.BoolVar(&o.DryRun, "dry-run", o.DryRun, "log what would be stored, and store nothing: external-dns' own --dry-run does not reach a webhook provider")
	fs.DurationVar(&o.WaitPropagated, "wait-propagated", o.WaitPropagated, fmt.Sprintf("how long an answer waits until every server answers what was changed, at most %s; by default it comes as soon as it is stored", maxWait))
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var problems component.Problems
	problems.AddAll("--owner", o.Owner, validation.IsDNS1123Label(o.Owner))
	host, _, err := net.SplitHostPort(o.Address)
	problems.Check(err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()), "--bind-address=%q: must be a port of localhost; run this in the pod of external-dns", o.Address)
	for _, namespace := range o.Namespaces {
		problems.AddAll("--namespaces", namespace, validation.IsDNS1123Label(namespace))
	}
	problems.Check(o.WaitPropagated >= 0 && o.WaitPropagated <= maxWait, "--wait-propagated=%s: must be between 0 and %s", o.WaitPropagated, maxWait)
	return errors.Join(problems...)
}

// Run serves until the context ends.
func (o *Options) Run(ctx context.Context) error {
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	config.QPS = -1 // kube-apiserver's priority and fairness decides how fast is too fast.
	config.UserAgent = "lockstep-externaldns"
	if err := cachehealth.WaitForServer(ctx, config); err != nil {
		return err
	}
	s, err := o.newServer(ctx, config)
	if err != nil {
		return err
	}
	probes := http.NewServeMux()
	healthy := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	probes.HandleFunc("GET /healthz", healthy)
	probes.HandleFunc("GET /readyz", healthy)
	probes.Handle("GET /metrics", s.metrics.handler())
	probes.HandleFunc("GET "+component.VersionPath, component.ServeVersion)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveUntilDone(ctx, o.Address, s.handler()) })
	group.Go(func() error { return serveUntilDone(ctx, o.ProbeAddress, probes) })
	return group.Wait()
}

func (o *Options) newServer(ctx context.Context, config *rest.Config) (*webhookServer, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), syncv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("preparing Events: %w", err)
	}
	kept := &store{client: c, owner: o.Owner, namespaces: o.Namespaces, zoneNamespaces: o.ZoneNamespaces, owned: o.OwnerReferences}
	return &webhookServer{
		store: kept, notices: newNotices(kept, broadcaster.NewRecorder(scheme, fieldOwner)), metrics: newServerMetrics(),
		filter: domainFilter{append([]string{}, o.Domains...), []string{}}, dryRun: o.DryRun, waitPropagated: o.WaitPropagated,
	}, nil
}

// serveUntilDone serves until the context ends, then finishes what it has begun to answer.
func serveUntilDone(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", address, err)
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		defer cancel()
		return server.Shutdown(ending)
	}
}
