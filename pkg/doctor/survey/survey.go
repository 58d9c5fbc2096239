package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	externaldns "github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
	"github.com/lockstep-dns/lockstep/pkg/version"
)

// Options say what to look at.
type Options struct {
	// System is the namespace that Lockstep runs in.
	System string
	// Namespace is that of the objects; empty for all.
	Namespace string
	// TryIn is the namespace in which a record is created with dryRun.
	TryIn string
}

// Survey reads facts.
type Survey struct {
	Options
	client client.Client
	// server asks kube-apiserver for its version and its time.
	server func(context.Context) (doctor.Server, error)
	// keys are the Secrets that the objects read so far name.
	keys []keyUse
}

// requestTimeout bounds a request if the user does not.
const requestTimeout = 30 * time.Second

// New surveys the Kubernetes cluster of a configuration.
func New(config *rest.Config, o Options) (*Survey, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS, config.WarningHandler = "kubectl-lockstep", -1, rest.NoWarnings{}
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	dates := &dateRecorder{}
	config.Wrap(dates.wrap)
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper(scheme)})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	server := func(context.Context) (doctor.Server, error) {
		info, err := clientset.Discovery().ServerVersion()
		if err != nil {
			return doctor.Server{}, err
		}
		clock, local := dates.last()
		return doctor.Server{Version: info.GitVersion, Clock: clock, Local: local}, nil
	}
	return &Survey{Options: o, client: c, server: server}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme), externaldns.AddToScheme(scheme), syncv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme))
	return scheme, err
}

// clusterScoped are the kinds without a namespace that are read.
var clusterScoped = map[string]bool{
	"CustomResourceDefinition": true, "MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true,
	"Bind9GlobalCluster": true, "ClusterBind9Provider": true, "APIService": true, "Namespace": true,
}

// newMapper knows the resources of the kinds that are read. Discovery, which would know them as well, may be what is broken.
func newMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		addKind(mapper, kind)
	}
	addKind(mapper, apiServiceKind)
	return mapper
}

func addKind(mapper *meta.DefaultRESTMapper, kind schema.GroupVersionKind) {
	scope := meta.RESTScopeNamespace
	if clusterScoped[kind.Kind] {
		scope = meta.RESTScopeRoot
	}
	mapper.Add(kind, scope)
}

// ErrNoServer wraps the error of a kube-apiserver that does not answer: then there is nothing to judge.
var ErrNoServer = errors.New("kube-apiserver does not answer")

// Read reads all facts. It fails only if kube-apiserver does not answer; what else cannot be read is a fact.
func (s *Survey) Read(ctx context.Context) (*doctor.Facts, error) {
	f := &doctor.Facts{Namespace: s.System, Plugin: version.Module(), Now: time.Now()}
	var err error
	f.Server.Request = "get the version of kube-apiserver"
	if f.Server.Value, f.Server.Err = s.server(ctx); f.Server.Err != nil && !isAnswer(f.Server.Err) {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, f.Server.Err)
	}
	if err = s.readKnown(f); err != nil {
		return nil, err
	}
	s.readInstallation(ctx, f)
	s.readAdmission(ctx, f)
	s.readObjects(ctx, f)
	s.readSecrets(ctx, f)
	s.readStatuses(ctx, f)
	if skew := f.Server.Value.Clock.Sub(f.Server.Value.Local); f.Server.Err == nil && !f.Server.Value.Clock.IsZero() {
		f.Now = time.Now().Add(skew)
	}
	return f, ctx.Err()
}

// readStatuses asks for the verdicts that matter: those of instances, and those that are bad.
func (s *Survey) readStatuses(ctx context.Context, f *doctor.Facts) {
	f.Instances = s.listStatuses(ctx, client.MatchingFields{syncv1.FieldKind: "Bind9Instance"})
	f.OutOfSync = s.listStatuses(ctx, client.MatchingFields{syncv1.FieldInSync: "false"})
}

func (s *Survey) listStatuses(ctx context.Context, selector client.MatchingFields) doctor.Fact[doctor.Statuses] {
	read := fact[doctor.Statuses]("list syncstatuses", s.Namespace)
	began := time.Now()
	var list syncv1.SyncStatusList
	read.Err = s.client.List(ctx, &list, client.InNamespace(s.Namespace), selector)
	read.Value = doctor.Statuses{Items: list.Items, Took: time.Since(began)}
	return read
}
