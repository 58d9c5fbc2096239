package apiserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/lockstep-dns/lockstep/apiserver/engine"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/certs"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

type (
	openapiV2 = common.Config
	openapiV3 = common.OpenAPIV3Config
)

// Server is the aggregated API server, ready to run.
type Server struct {
	Generic   *server.GenericAPIServer
	Engine    *engine.Engine
	authority *certs.Serving // nil to verify no sidecar
	minted    bool
	departure *departure
}

// New builds the server. It talks to nobody yet.
func (c Completed) New() (*Server, error) {
	e, err := engine.New(c.config.Generic.ClientConfig, c.config.Engine)
	if err != nil {
		return nil, err
	}
	generic, err := c.generic.New("lockstep-apiserver", server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the API server: %w", err)
	}
	if err := install(generic, e); err != nil {
		return nil, err
	}
	s := &Server{Generic: generic, Engine: e, authority: c.config.Authority, minted: c.config.Minted, departure: c.departure}
	if err := generic.AddReadyzChecks(e.Informers()); err != nil {
		return nil, fmt.Errorf("adding a readiness check: %w", err)
	}
	if s.minted {
		if err := generic.AddReadyzChecks(s.authority); err != nil {
			return nil, fmt.Errorf("adding a readiness check: %w", err)
		}
	}
	return s, nil
}

// install adds the API group.
func install(generic *server.GenericAPIServer, e *engine.Engine) error {
	storage := map[string]rest.Storage{"syncstatuses": &statuses{engine: e}}
	for _, k := range syncstatus.Kinds() {
		storage[k.Resource] = parent{k}
		storage[k.Resource+"/syncstatus"] = &subresource{kind: k, engine: e}
	}
	info := server.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, parameterCodec, codecs)
	info.NegotiatedSerializer = withoutProtobuf{info.NegotiatedSerializer}
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = storage
	if err := generic.InstallAPIGroup(&info); err != nil {
		return fmt.Errorf("installing API group %s: %w", v1alpha1.GroupName, err)
	}
	return nil
}

// Run serves until the context ends, then lets requests in flight finish.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Engine.RegisterMetrics(legacyregistry.Register, legacyregistry.CustomRegister); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	// The caches outlive the signal to end: requests are still answered until the server has drained.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go s.Engine.Run(running)
	if s.authority != nil {
		go s.authority.Run(running)
	}
	if s.minted {
		s.awaitCertificate(ctx)
	}
	go s.departure.follow(ctx, running, s.Engine.EndWatches)
	return s.prepare().RunWithContext(ctx)
}

type prepared interface {
	RunWithContext(ctx context.Context) error
}

// prepare installs what documents the API and tells of the server's health. Of what every API server has, such as the list
// of groups and the version, nothing is documented: kube-apiserver has the same under the same names, hands requests for
// them to any server that lists them too, and fails them when that one has other words.
func (s *Server) prepare() prepared {
	p := s.Generic.PrepareRun()
	for _, service := range s.Generic.Handler.GoRestfulContainer.RegisteredWebServices() {
		if path := strings.TrimPrefix(service.RootPath(), "/"); !strings.Contains(path, v1alpha1.GroupName) {
			s.Generic.OpenAPIV3VersionedService.DeleteGroupVersion(path)
		}
	}
	return p
}

// certificateWithin is how long the port stays closed for want of a certificate. Then it opens, and handshakes fail until
// the controller has made the authority's Secret.
const certificateWithin = 5 * time.Second

func (s *Server) awaitCertificate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, certificateWithin)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for s.authority.Ready() != nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
