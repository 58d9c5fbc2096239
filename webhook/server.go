package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
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
	secure, files, err := o.serverConfig(serving)
	if err != nil {
		return nil, err
	}
	var proxy *frontProxy
	if o.Aggregated {
		if proxy, err = newFrontProxy(client); err != nil {
			return nil, err
		}
		proxy.requireCertificate(secure)
	}
	own, err := listwatch.NewClients(config)
	if err != nil {
		return nil, err
	}
	caches := cachehealth.NewMonitor()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		MapperProvider:         cachehealth.NewMapper,
		HealthProbeBindAddress: o.HealthAddress,
		Metrics:                ctrlmetrics.Off(),
		Cache:                  cache.Options{DefaultTransform: transformForCache(), NewInformer: own.Informers(caches.NewInformer)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if files != nil {
		if err := mgr.Add(files); err != nil {
			return nil, fmt.Errorf("following the serving certificate: %w", err)
		}
	}
	checks := map[string]healthz.Checker{"informers": caches.Check}
	if proxy != nil {
		checks["front-proxy"] = proxy.checkReady
		if err := mgr.Add(manager.RunnableFunc(proxy.run)); err != nil {
			return nil, fmt.Errorf("adding the aggregation layer's certificate: %w", err)
		}
	}
	objects, err := review.NewCachedObjects(mgr.GetCache(), mgr.GetAPIReader(), o.Namespace)
	if err != nil {
		return nil, err
	}
	handler, err := o.handlerOfReviews(objects, limiter, proxy)
	if err != nil {
		return nil, err
	}
	if err := o.addServer(mgr, handler, secure); err != nil {
		return nil, err
	}
	return mgr, errors.Join(ctrlmetrics.Serve(context.Background(), mgr, o.MetricsAddress), addProbes(mgr, limiter, objects, serving, checks))
}

// handlerOfReviews serves all reviews.
func (o *Options) handlerOfReviews(objects review.Objects, limiter *requestLimiter, proxy *frontProxy) (http.Handler, error) {
	reviews := review.NewHandler(objects)
	reviews.Limits = o.Limits
	handlers := map[string]http.Handler{}
	for path, handler := range map[string]admission.Handler{mark.Path: review.NewMarkingHandler(reviews, o.trustedUsers()), review.Path: reviews} {
		hook, err := admission.StandaloneWebhook(&admission.Webhook{Handler: handler}, admission.StandaloneOptions{MetricsPath: path})
		if err != nil {
			return nil, fmt.Errorf("making the webhook %s: %w", path, err)
		}
		handlers[path] = limiter.limit(hook)
	}
	mux := http.NewServeMux()
	registerReviews(mux, proxy, handlers)
	return mux, nil
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

// registerReviews has a mux serve reviews at their paths, or below the path of the aggregated API.
func registerReviews(mux *http.ServeMux, proxy *frontProxy, handlers map[string]http.Handler) {
	for path, handler := range handlers {
		if proxy != nil {
			path, handler = aggregatedPath+path, proxy.requireAPIServer(handler)
		}
		mux.Handle(path, handler)
	}
	if proxy != nil {
		mux.HandleFunc(aggregatedPath, serveDiscovery)
	}
}

// serverConfig decides how the webhook listens: with the certificate that the fleet manager issues, or with that of the files, which are to be
// followed then.
func (o *Options) serverConfig(issued *certs.Follower) (config *tls.Config, files *certwatcher.CertWatcher, err error) {
	config = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"}}
	if issued != nil {
		config.GetCertificate = issued.GetCertificate
	} else if files, err = certwatcher.New(o.CertFile, o.KeyFile); err != nil {
		return nil, nil, fmt.Errorf("reading the serving certificate: %w", err)
	} else {
		config.GetCertificate = files.GetCertificate
	}
	return config, files, o.requireClientCertificates(config)
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
