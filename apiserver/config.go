package apiserver

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"

	"github.com/lockstep-dns/lockstep/apiserver/refresh"
	"github.com/lockstep-dns/lockstep/apiserver/registry"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/openapi"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/share"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// Config is what a Server is made from.
type Config struct {
	// Generic is the part that every Kubernetes API server has.
	Generic *server.RecommendedConfig
	// Verdicts says how DNS servers are asked.
	Verdicts registry.Options
	// Client is this server's certificate as a client of sidecars, and what verifies theirs.
	Client *certs.Follower
	// Serving is the serving certificate that the fleet manager issues; nil when it comes from files.
	Serving *certs.Follower
	// TrustAnchors follows the file with trust anchors; nil if there is none.
	TrustAnchors *validate.AnchorFile
}

// Config turns flags into a configuration. It opens the port.
func (o *Options) Config() (*Config, error) {
	generic := server.NewRecommendedConfig(codecs)
	if err := o.ServerRun.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("setting the effective version: %w", err)
	}
	c := &Config{Generic: generic, Verdicts: o.Verdicts}
	c.Verdicts.SystemNamespace = o.Namespace
	c.Verdicts.Gate = outbound.NewGate(nil, outbound.Limits{Networks: o.Networks})
	if err := o.CoreAPI.ApplyTo(generic); err != nil {
		return nil, fmt.Errorf("finding kube-apiserver: %w", err)
	}
	generic.ClientConfig.QPS, generic.ClientConfig.Burst = -1, -1 // kube-apiserver's own fairness is enough
	rest.AddUserAgent(generic.ClientConfig, "lockstep-apiserver")
	if err := o.chooseCertificates(c); err != nil {
		return nil, err
	}
	var err error
	if c.Verdicts.Vantages, err = o.vantages(c.Client.ClientConfig); err != nil {
		return nil, err
	}
	if o.TrustAnchorFile != "" {
		if c.TrustAnchors, err = validate.OpenAnchors(o.TrustAnchorFile); err != nil {
			return nil, fmt.Errorf("--trust-anchor-file: %w", err)
		}
		c.Verdicts.TrustAnchors = c.TrustAnchors.Anchors
	}
	sidecars := bindcar.NewClient(bindcar.ClientOptions{TLS: c.Client.ClientConfig, Gate: c.Verdicts.Gate})
	c.Verdicts.Notifications = func(ctx context.Context, server refresh.Peer, fn func(bindcar.Notification)) error {
		at := netip.AddrPortFrom(server.Addr.Addr(), layout.SidecarPort) // in the same pod
		return sidecars.ReadNotifications(ctx, bindcar.Address{Addr: at, Namespace: server.Namespace, Instance: server.Instance}, fn)
	}
	generic.OpenAPIConfig, generic.OpenAPIV3Config = openAPIConfigs()
	if err := o.applyTo(generic); err != nil {
		return nil, err
	}
	return c, nil
}

// chooseCertificates chooses the client certificate, and the serving certificate: the files that were named, else the one that
// the fleet manager issues.
func (o *Options) chooseCertificates(c *Config) error {
	client, err := kubernetes.NewForConfig(c.Generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("making a client for the certificates: %w", err)
	}
	follow := func(secret string) *certs.Follower {
		return certs.NewFollower(client, types.NamespacedName{Namespace: o.Namespace, Name: secret})
	}
	c.Client = follow(certs.APIServerClientSecret)
	c.Verdicts.TLS = c.Client.ClientConfig
	if files := o.SecureServing.ServerCert.CertKey; files.CertFile == "" && files.KeyFile == "" {
		c.Serving = follow(certs.APIServerSecret)
		o.SecureServing.ServerCert.GeneratedCert = c.Serving
	}
	return nil
}

// maxConnections bounds open connections. kube-apiserver has few; anybody who reaches the port can open more, and send a megabyte of headers on each.
const maxConnections = 512

func (o *Options) applyServing(generic *server.Config) error {
	if err := o.SecureServing.ApplyToConfig(generic); err != nil || generic.SecureServing == nil {
		return err
	}
	generic.SecureServing.Listener = share.NewListener(generic.SecureServing.Listener, maxConnections)
	return nil
}

func (o *Options) applyTo(generic *server.RecommendedConfig) error {
	for _, step := range []struct {
		what  string
		apply func() error
	}{
		{"server", func() error { return o.ServerRun.ApplyTo(&generic.Config) }},
		{"serving", func() error { return o.applyServing(&generic.Config) }},
		{"authentication", func() error {
			return o.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig)
		}},
		{"authorization", func() error { return o.Authorization.ApplyTo(&generic.Authorization) }},
		{"audit", func() error { return o.Audit.ApplyTo(&generic.Config) }},
		{"features", func() error {
			client, err := kubernetes.NewForConfig(generic.ClientConfig)
			if err != nil {
				return err
			}
			return o.Features.ApplyTo(&generic.Config, client, generic.SharedInformerFactory)
		}},
	} {
		if err := step.apply(); err != nil {
			return fmt.Errorf("configuring %s: %w", step.what, err)
		}
	}
	generic.Authorization.Authorizer = allNamesFirst(generic.Authorization.Authorizer)
	return nil
}

// ownVersion has the version of Lockstep at /version. What Kubernetes' libraries emulate stays theirs.
type ownVersion struct {
	compatibility.EffectiveVersion
}

// Info implements compatibility.EffectiveVersion.
func (ownVersion) Info() *version.Info { return component.Version() }

func openAPIConfigs() (v2 *openapiV2, v3 *openapiV3) {
	namer := openapinamer.NewDefinitionNamer(scheme)
	v2 = server.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	v3 = server.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	v2.Info.Title, v3.Info.Title = "Lockstep", "Lockstep"
	return v2, v3
}

// Completed is a configuration with nothing left to fill in.
type Completed struct {
	generic  server.CompletedConfig
	config   *Config
	shutdown *gracefulShutdown
}

// Complete fills in what can be derived.
func (c *Config) Complete() Completed {
	s := &gracefulShutdown{delay: c.Generic.ShutdownDelayDuration}
	c.Generic.BuildHandlerChainFunc = s.handlerChain
	c.Generic.EffectiveVersion = ownVersion{c.Generic.EffectiveVersion}
	return Completed{generic: c.Generic.Complete(), config: c, shutdown: s}
}
