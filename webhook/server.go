package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/lockstep-dns/lockstep/pkg/component/ctrlmetrics"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/kube/cachehealth"
	"github.com/lockstep-dns/lockstep/pkg/kube/intern"
	"github.com/lockstep-dns/lockstep/pkg/kube/listwatch"
	"github.com/lockstep-dns/lockstep/webhook/mark"
	"github.com/lockstep-dns/lockstep/webhook/review"
)

// Run serves until the context ends and ShutdownDelay is over. Every replica is active: there is no leader.
func (o *Options) Run(ctx context.Context) error {
	ctrl.SetLogger(klog.Background())
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	config.DisableCompression = true
	if err := cachehealth.WaitForServer(ctx, config); err != nil {
		return err
	}
	limiter := newRequestLimiter(o.InFlight)
	mgr, err := o.newManager(config, limiter) //nolint:contextcheck // informers wait for nothing here
	if err != nil {
		return err
	}
	return mgr.Start(limiter.drain(ctx, o.ShutdownDelay))
}

// newManager puts together caches, certificate, handlers and probes.
func (o *Options) newManager(config *rest.Config, limiter *requestLimiter) (manager.Manager, error) {
	scheme, err := review.NewScheme()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	var serving *certs.Follower
	if o.CertFile == "" {
		serving = certs.NewFollower(client, types.NamespacedName{Namespace: o.Namespace, Name: certs.WebhookSecret})
	}
	listen := o.serverOptions(serving)
	if err := o.requireClientCertificates(&listen); err != nil {
		return nil, err
	}
	var proxy *frontProxy
	if o.Aggregated {
		if proxy, err = newFrontProxy(client); err != nil {
			return nil, err
		}
		listen.TLSOpts = append(listen.TLSOpts, proxy.requireCertificate)
	}
	own, err := listwatch.NewClients(config)
	if err != nil {
		return nil, err
	}
	caches := cachehealth.NewMonitor()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		MapperProvider:         cachehealth.NewMapper,
		WebhookServer:          crwebhook.NewServer(listen),
		HealthProbeBindAddress: o.HealthAddress,
		Metrics:                ctrlmetrics.Server(o.MetricsAddress),
		Cache:                  cache.Options{DefaultTransform: transformForCache(), NewInformer: own.Informers(caches.NewInformer)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	checks := map[string]healthz.Checker{"informers": caches.Check}
	if proxy == nil && o.ClientCAFile == "" { // It has no certificate to show: every check would be logged as an attempt.
		checks["server"] = mgr.GetWebhookServer().StartedChecker()
	}
	if proxy != nil {
		checks["front-proxy"] = proxy.checkReady
		if err := mgr.Add(manager.RunnableFunc(proxy.run)); err != nil {
			return nil, fmt.Errorf("adding the aggregation layer's certificate: %w", err)
		}
	}
	objects, err := o.serveReviews(mgr, limiter, proxy)
	if err != nil {
		return nil, err
	}
	return mgr, addProbes(mgr, limiter, objects, serving, checks)
}

// serveReviews has a manager serve all reviews, and returns what they look objects up in.
func (o *Options) serveReviews(mgr manager.Manager, limiter *requestLimiter, proxy *frontProxy) (*review.CachedObjects, error) {
	objects, err := review.NewCachedObjects(mgr.GetCache(), mgr.GetAPIReader(), o.Namespace)
	if err != nil {
		return nil, err
	}
	reviews := review.NewHandler(objects)
	reviews.Limits = o.Limits
	registerReviews(mgr.GetWebhookServer(), proxy, map[string]http.Handler{
		mark.Path:   limiter.limit(&admission.Webhook{Handler: review.NewMarkingHandler(reviews, o.trustedUsers())}),
		review.Path: limiter.limit(&admission.Webhook{Handler: reviews}),
	})
	return objects, nil
}

// transformForCache drops what no review looks at from objects that enter a cache, and has them share what many have in common.
func transformForCache() toolscache.TransformFunc {
	pool := &intern.Pool{}
	return func(o any) (any, error) {
		stripped, err := review.StripForCache(o)
		if err != nil {
			return nil, err
		}
		return pool.Transform(stripped)
	}
}

// registerReviews has a server serve reviews at their paths, or below the path of the aggregated API.
func registerReviews(server crwebhook.Server, proxy *frontProxy, handlers map[string]http.Handler) {
	for path, handler := range handlers {
		if proxy != nil {
			path, handler = aggregatedPath+path, proxy.requireAPIServer(handler)
		}
		server.Register(path, handler)
	}
	if proxy != nil {
		server.Register(aggregatedPath, http.HandlerFunc(serveDiscovery))
	}
}

// serverOptions decide how the webhook listens: with the certificate that the fleet manager issues, or with that of the files.
func (o *Options) serverOptions(issued *certs.Follower) crwebhook.Options {
	options := crwebhook.Options{Port: o.Port, TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }}}
	if issued == nil {
		options.CertDir, options.CertName, options.KeyName = filepath.Dir(o.CertFile), filepath.Base(o.CertFile), filepath.Base(o.KeyFile)
		return options
	}
	options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = issued.GetCertificate })
	return options
}

// addProbes makes readiness depend on checks, on the certificate, on full caches and on not being about to end.
func addProbes(mgr manager.Manager, limiter *requestLimiter, objects *review.CachedObjects, issued *certs.Follower, checks map[string]healthz.Checker) error {
	checks["caches"] = limiter.checkReady
	if issued != nil {
		checks[issued.Name()] = issued.Check
		if err := mgr.Add(issued); err != nil {
			return fmt.Errorf("adding the serving certificate: %w", err)
		}
	}
	// Plain runnables start once every cache is full; the index is filled from them.
	opener := func(ctx context.Context) error {
		if !toolscache.WaitForCacheSync(ctx.Done(), objects.HasSynced) {
			return nil // The end came first.
		}
		return limiter.setSynced(ctx)
	}
	if err := mgr.Add(manager.RunnableFunc(opener)); err != nil {
		return fmt.Errorf("adding the limiter: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness probe: %w", err)
	}
	for name, check := range checks {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("adding the readiness probe %s: %w", name, err)
		}
	}
	return nil
}
