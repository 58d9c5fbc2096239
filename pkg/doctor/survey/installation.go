package survey

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/doctor"
)

// ownLabels are those of Lockstep's own Deployments.
var ownLabels = client.MatchingLabels{"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/part-of": "lockstep"}

// readKnown reads what the plugin itself has.
func (s *Survey) readKnown(f *doctor.Facts) error {
	definitions := manifests.Definitions()
	names, err := fs.Glob(definitions, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(definitions, name)
		if err != nil {
			return err
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("reading definition %s: %w", name, err)
		}
		f.Known = append(f.Known, d)
	}
	for _, document := range bytes.Split(manifests.Admission(), []byte("\n---\n")) {
		var target any = &f.KnownMutating
		if bytes.Contains(document, []byte("kind: ValidatingWebhookConfiguration")) {
			target = &f.KnownValidating
		}
		if err := yaml.Unmarshal(document, target); err != nil {
			return fmt.Errorf("reading the webhook configurations: %w", err)
		}
	}
	return nil
}

func (s *Survey) readInstallation(ctx context.Context, f *doctor.Facts) {
	var deployments appsv1.DeploymentList
	f.Deployments = fact[[]appsv1.Deployment]("list deployments", s.System)
	f.Deployments.Err = s.client.List(ctx, &deployments, client.InNamespace(s.System), ownLabels)
	if f.Deployments.Value = deployments.Items; f.Deployments.Err == nil && len(deployments.Items) == 0 {
		f.Elsewhere = s.findElsewhere(ctx)
	}
	var definitions apiextensionsv1.CustomResourceDefinitionList
	f.Definitions = fact[[]apiextensionsv1.CustomResourceDefinition]("list customresourcedefinitions", "")
	f.Definitions.Err = s.client.List(ctx, &definitions)
	f.Definitions.Value = definitions.Items
	for _, name := range []string{"lockstep-controller", "lockstep-fleet"} {
		l := fact[coordinationv1.Lease]("get lease "+name, s.System)
		l.Err = s.client.Get(ctx, client.ObjectKey{Namespace: s.System, Name: name}, &l.Value)
		l.Value.Name = name
		f.Leases = append(f.Leases, l)
	}
}

// findElsewhere lists the other namespaces in which Lockstep runs, as far as the user may know.
func (s *Survey) findElsewhere(ctx context.Context) (namespaces []string) {
	var all appsv1.DeploymentList
	if s.client.List(ctx, &all, ownLabels) != nil {
		return nil
	}
	for _, d := range all.Items {
		if strings.HasPrefix(d.Name, "lockstep-") && !slices.Contains(namespaces, d.Namespace) {
			namespaces = append(namespaces, d.Namespace)
		}
	}
	return namespaces
}

// fact makes a fact that is not read yet: what is asked for, in a namespace if it has one.
func fact[T any](request, namespace string) doctor.Fact[T] {
	if namespace != "" {
		request += " in namespace " + namespace
	}
	return doctor.Fact[T]{Request: request}
}
