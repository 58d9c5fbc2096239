package apiserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/lockstep-dns/lockstep/apiserver/registry"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/component"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

type (
	openapiV2 = common.Config
	openapiV3 = common.OpenAPIV3Config
)

// Server is the aggregated API server, ready to run.
type Server struct {
	Generic  *server.GenericAPIServer
	Verdicts *registry.Verdicts
	client   *certs.Follower // nil to ask no sidecar
	serving  *certs.Follower // nil when files have the certificate
	shutdown *gracefulShutdown
	anchors  *validate.AnchorFile // nil if there is none
}

// New builds the server. It talks to nobody yet.
func (c Completed) New() (*Server, error) {
	verdicts, err := registry.New(c.config.Generic.ClientConfig, c.config.Verdicts)
	if err != nil {
		return nil, err
	}
	generic, err := c.generic.New("lockstep-apiserver", server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("making the API server: %w", err)
	}
	if err := installGroup(generic, verdicts); err != nil {
		return nil, err
	}
	s := &Server{Generic: generic, Verdicts: verdicts, client: c.config.Client, serving: c.config.Serving, shutdown: c.shutdown, anchors: c.config.TrustAnchors}
	if err := generic.AddReadyzChecks(verdicts.Informers()); err != nil {
		return nil, fmt.Errorf("adding a readiness check: %w", err)
	}
	if s.serving != nil {
		if err := generic.AddReadyzChecks(s.serving); err != nil {
			return nil, fmt.Errorf("adding a readiness check: %w", err)
		}
	}
	return s, nil
}

// installGroup adds the API group.
func installGroup(generic *server.GenericAPIServer, verdicts *registry.Verdicts) error {
	info := server.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, parameterCodec, codecs)
	info.NegotiatedSerializer = withoutProtobuf{info.NegotiatedSerializer}
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = verdicts.Storage()
	if err := generic.InstallAPIGroup(&info); err != nil {
		return fmt.Errorf("installing API group %s: %w", v1alpha1.GroupName, err)
	}
	return nil
}

// registerMetrics registers the metrics, once in a process: the libraries of Kubernetes have one registry.
func registerMetrics(verdicts *registry.Verdicts) error {
	if err := verdicts.RegisterMetrics(legacyregistry.Register, legacyregistry.CustomRegister); err != nil {
		return err
	}
	if err := component.RegisterMetrics(); err != nil {
		return err
	}
	legacyregistry.RawMustRegister(component.Collector())
	return nil
}

// Run serves until the context ends, then lets requests in flight finish.
func (s *Server) Run(ctx context.Context) error {
	if err := registerMetrics(s.Verdicts); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	// The caches outlive the signal to end: requests are still answered until the server has drained.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go s.Verdicts.Run(running)
	if s.client != nil {
		go s.client.Run(running)
	}
	if s.anchors != nil {
		go s.followAnchors(running)
	}
	if s.serving != nil {
		go s.serving.Run(running)
		s.awaitCertificate(ctx)
	}
	go s.shutdown.waitAndEnd(ctx, running, s.Verdicts.EndWatches)
	prepared := s.Generic.PrepareRun()
	s.undocumentCommonPaths()
	return prepared.RunWithContext(ctx)
}

// anchorInterval is how often the file with trust anchors is read. Kubernetes updates a mounted ConfigMap within about a minute.
const anchorInterval = 10 * time.Second

// followAnchors reads the file with trust anchors again and again. A file that cannot be used changes nothing.
func (s *Server) followAnchors(ctx context.Context) {
	failure := ""
	wait.UntilWithContext(ctx, func(context.Context) {
		err := s.anchors.Reload()
		if err != nil && err.Error() != failure {
			klog.ErrorS(err, "The trust anchors stay as they were: the file cannot be used")
		}
		if failure = ""; err != nil {
			failure = err.Error()
		}
	}, anchorInterval)
}

// undocumentCommonPaths leaves only our group in the OpenAPI documents. Of what every API server has, such as the list of
// groups and the version, kube-apiserver has the same under the same names: it hands requests for them to any server that
// lists them too, and fails them when that one has other words.
func (s *Server) undocumentCommonPaths() {
	for _, service := range s.Generic.Handler.GoRestfulContainer.RegisteredWebServices() {
		if path := strings.TrimPrefix(service.RootPath(), "/"); !strings.Contains(path, v1alpha1.GroupName) {
			s.Generic.OpenAPIV3VersionedService.DeleteGroupVersion(path)
		}
	}
}

// certificateTimeout is how long the port stays closed for want of a certificate. Then it opens, and handshakes fail until
// the fleet manager has issued it.
const certificateTimeout = 5 * time.Second

func (s *Server) awaitCertificate(ctx context.Context) {
	isReady := func(context.Context) (bool, error) { return s.serving.Ready() == nil, nil }
	_ = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, certificateTimeout, true, isReady)
}
