package uninstall

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

// Times of an uninstallation.
const (
	// maxGrace is how long the end of the process is put off at most: ten seconds less than the pod's
	// terminationGracePeriodSeconds.
	maxGrace = 110 * time.Second
	// lateDeletion is how long after the signal to end the deletion of a definition may still come, when the namespace is being
	// deleted or Helm may be about to delete the definition: both kubectl and Helm delete one object after the other.
	lateDeletion = 10 * time.Second
	// checkInterval is how often the definitions are looked at meanwhile.
	checkInterval = 250 * time.Millisecond
	// accountInterval is how often the account is put right.
	accountInterval = 10 * time.Minute
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Uninstaller takes our finalizers off custom resources whose definition is being deleted.
type Uninstaller struct {
	config    *rest.Config
	namespace string
	resources map[string]schema.GroupVersionResource // by the name of the definition
	log       logr.Logger
	token     accountToken
}

// New prepares an Uninstaller for the installation in the namespace. The configuration is the fleet manager's own.
func New(config *rest.Config, namespace string, log logr.Logger) *Uninstaller {
	u := &Uninstaller{config: config, namespace: namespace, log: log, resources: map[string]schema.GroupVersionResource{}}
	all := []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("dnsendpoints")}
	for _, name := range []string{"dnszones", "bind9instances", "bind9clusters", "bind9globalclusters", "clusterbind9providers"} {
		all = append(all, v1beta1.GroupVersion.WithResource(name))
	}
	for _, kind := range v1beta1.RecordKinds {
		all = append(all, kind.GroupVersionResource())
	}
	for _, resource := range all {
		u.resources[resource.GroupResource().String()] = resource
	}
	return u
}

// Guard is Uninstaller.Guard of a new Uninstaller.
func Guard(ctx context.Context, config *rest.Config, namespace string, log logr.Logger, run func(context.Context) error) error {
	return New(config, namespace, log.WithName("uninstall")).Guard(ctx, run)
}

// Guard runs the fleet manager and everything that belongs to an uninstallation beside it. When it ends, for
// whatever reason, and an uninstallation is going on, Guard returns only after that is complete or its time is over.
func (u *Uninstaller) Guard(ctx context.Context, run func(context.Context) error) error { //nolint:contextcheck // what it starts outlives ctx
	stopped, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := u.runUntilStopped(stopped); err != nil {
			u.log.Error(err, "Uninstalling")
		}
	}()
	err := run(ctx)
	stop()
	<-done
	return err
}

// runUntilStopped keeps the account and watches the definitions until stopped, and then completes an uninstallation that is
// going on.
func (u *Uninstaller) runUntilStopped(stopped context.Context) error {
	own, err := kubernetes.NewForConfig(u.config)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	client, err := metadata.NewForConfig(u.token.restConfig(u.config))
	if err != nil {
		return fmt.Errorf("making the account's client: %w", err)
	}
	if err := u.awaitToken(stopped, own); err != nil {
		return fmt.Errorf("ended before there was a token: %w", err)
	}
	go u.maintainAccount(stopped, own)
	if err := u.watchDefinitions(stopped, client); err != nil {
		return err
	}
	<-stopped.Done()
	ctx, cancel := context.WithTimeout(context.Background(), maxGrace)
	defer cancel()
	return u.completeUninstall(ctx, client) //nolint:contextcheck // the context that it replaces has ended
}

// refreshAccount corrects the account and renews its token.
func (u *Uninstaller) refreshAccount(ctx context.Context, own kubernetes.Interface) error {
	if err := u.ensureAccount(ctx, own); err != nil {
		return err
	}
	return u.token.renewToken(ctx, own, u.namespace)
}

// awaitToken tries until there is a token. The error is that of the context.
func (u *Uninstaller) awaitToken(stopped context.Context, own kubernetes.Interface) error {
	return wait.PollUntilContextCancel(stopped, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		err := u.refreshAccount(ctx, own)
		if err != nil {
			u.log.Error(err, "Cannot prepare for an uninstallation yet")
		}
		return err == nil, nil
	})
}

// maintainAccount corrects the account and renews its token from time to time.
func (u *Uninstaller) maintainAccount(stopped context.Context, own kubernetes.Interface) {
	pause := time.Minute
	for sleepFor(stopped, pause) {
		pause = accountInterval
		if err := u.refreshAccount(stopped, own); err != nil && stopped.Err() == nil {
			u.log.Error(err, "Cannot keep the account for an uninstallation")
			pause = 10 * time.Second
		}
	}
}

// watchDefinitions frees the objects of every definition of ours as soon as it is being deleted.
func (u *Uninstaller) watchDefinitions(stopped context.Context, client metadata.Interface) error {
	informer := metadatainformer.NewFilteredMetadataInformer(client, definitions, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	begun := map[string]bool{} // by UID; handlers are called one at a time
	look := func(obj any) {
		definition, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok || definition.DeletionTimestamp == nil || begun[string(definition.UID)] {
			return
		}
		resource, ours := u.resources[definition.Name]
		if !ours {
			return
		}
		begun[string(definition.UID)] = true
		u.log.Info("The definition is being deleted; its objects are released", "definition", definition.Name)
		go u.removeFinalizersUntilGone(stopped, client, resource)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, obj any) { look(obj) },
	}); err != nil {
		return fmt.Errorf("watching our definitions: %w", err)
	}
	go informer.RunWithContext(stopped)
	return nil
}

// completeUninstall finishes an uninstallation that is going on: every definition of ours is being deleted, or will be
// within moments, and none has an object with our finalizer any more. Otherwise it returns at once.
func (u *Uninstaller) completeUninstall(ctx context.Context, client metadata.Interface) error {
	began := time.Now()
	going, err := u.isNamespaceTerminating(ctx, client)
	if err != nil {
		return err
	}
	for {
		expected, deleted, err := u.definitionsLeft(ctx, client, going)
		if err != nil {
			return err
		}
		left := false
		for _, resource := range deleted {
			more, _ := u.releaseObjects(ctx, client, resource)
			left = left || more
		}
		awaited := expected > 0 && time.Since(began) < lateDeletion
		if !left && !awaited {
			return nil
		}
		if !sleepFor(ctx, checkInterval) {
			return fmt.Errorf("custom resources are left: %w", ctx.Err())
		}
	}
}

func (u *Uninstaller) isNamespaceTerminating(ctx context.Context, client metadata.Interface) (bool, error) {
	namespace, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, u.namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", u.namespace, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// definitionsLeft counts our definitions whose deletion may follow, and returns the resources of those that are being deleted. If the
// namespace is being deleted, all may follow.
func (u *Uninstaller) definitionsLeft(ctx context.Context, client metadata.Interface, terminating bool) (expected int, deleted []schema.GroupVersionResource, err error) {
	list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, nil, fmt.Errorf("listing definitions: %w", err)
	}
	for _, definition := range list.Items {
		resource, ours := u.resources[definition.Name]
		switch {
		case !ours:
		case definition.DeletionTimestamp != nil:
			deleted = append(deleted, resource)
		case terminating || goesWithRelease(&definition):
			expected++
		}
	}
	return expected, deleted, nil
}

// goesWithRelease reports whether Helm deletes an object when its release is uninstalled. It does so right after it has deleted the
// Deployments, and leaves the namespace.
func goesWithRelease(object metav1.Object) bool {
	return object.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" && object.GetAnnotations()["helm.sh/resource-policy"] != "keep"
}

// sleepFor waits, and reports whether the context goes on.
func sleepFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
