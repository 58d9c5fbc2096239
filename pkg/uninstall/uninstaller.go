package uninstall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// grace is how long the end of the process is put off at most: ten seconds less than the pod's
	// terminationGracePeriodSeconds.
	grace = 110 * time.Second
	// settle is how long after the signal to end the deletion of a definition may still come, when the namespace is being
	// deleted: kubectl deletes one object after the other.
	settle = 10 * time.Second
	// pace is how often the definitions are looked at meanwhile.
	pace = 250 * time.Millisecond
	// keepAccount is how often the account is put right.
	keepAccount = 10 * time.Minute
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Uninstaller takes our finalizers off custom resources whose definition is being deleted.
type Uninstaller struct {
	config    *rest.Config
	namespace string
	resources map[string]schema.GroupVersionResource // by the name of the definition
	log       logr.Logger
	token     token
}

// New prepares an Uninstaller for the installation in the namespace. The configuration is the controller's own.
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

// Guard runs the controller and everything that belongs to an uninstallation beside it. When the controller ends, for
// whatever reason, and an uninstallation is going on, Guard returns only after that is complete or its time is over.
func (u *Uninstaller) Guard(ctx context.Context, run func(context.Context) error) error {
	stopped, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := u.work(stopped); err != nil {
			u.log.Error(err, "Uninstalling")
		}
	}()
	err := run(ctx)
	stop()
	<-done
	return err
}

// work keeps the account and watches the definitions until stopped, and then completes an uninstallation that is going on.
func (u *Uninstaller) work(stopped context.Context) error {
	own, err := kubernetes.NewForConfig(u.config)
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	client, err := metadata.NewForConfig(u.token.config(u.config))
	if err != nil {
		return fmt.Errorf("making the account's client: %w", err)
	}
	if !u.firstToken(stopped, own) {
		return errors.New("ended before there was a token")
	}
	go u.keep(stopped, own)
	if err := u.watch(stopped, client); err != nil {
		return err
	}
	<-stopped.Done()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return u.complete(ctx, client)
}

// firstToken tries until there is a token, or until stopped.
func (u *Uninstaller) firstToken(stopped context.Context, own kubernetes.Interface) bool {
	for {
		err := u.ensure(stopped, own)
		if err == nil {
			_, err = u.token.renew(stopped, own, u.namespace)
		}
		if err == nil {
			return true
		}
		u.log.Error(err, "Cannot prepare for an uninstallation yet")
		if !sleep(stopped, 2*time.Second) {
			return false
		}
	}
}

// keep puts the account right and renews its token.
func (u *Uninstaller) keep(stopped context.Context, own kubernetes.Interface) {
	pause := time.Minute
	for sleep(stopped, pause) {
		err := u.ensure(stopped, own)
		if err == nil {
			_, err = u.token.renew(stopped, own, u.namespace)
		}
		pause = keepAccount
		if err != nil && stopped.Err() == nil {
			u.log.Error(err, "Cannot keep the account for an uninstallation")
			pause = 10 * time.Second
		}
	}
}

// watch strips the objects of every definition of ours as soon as it is being deleted.
func (u *Uninstaller) watch(stopped context.Context, client metadata.Interface) error {
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
		u.log.Info("The definition is being deleted; its objects are let go", "definition", definition.Name)
		go u.stripUntilGone(stopped, client, resource)
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

// complete finishes an uninstallation that is going on: every definition of ours is being deleted, or will be within
// moments, and none has an object with our finalizer any more. Otherwise it returns at once.
func (u *Uninstaller) complete(ctx context.Context, client metadata.Interface) error {
	began := time.Now()
	going, err := u.namespaceGoing(ctx, client)
	if err != nil {
		return err
	}
	for {
		kept, deleted, err := u.definitionsLeft(ctx, client)
		if err != nil {
			return err
		}
		left := u.stripAll(ctx, client, deleted)
		awaited := going && kept > 0 && time.Since(began) < settle
		if !left && !awaited {
			return nil
		}
		if !sleep(ctx, pace) {
			return fmt.Errorf("custom resources are left: %w", ctx.Err())
		}
	}
}

// stripAll strips the objects of the resources, and tells whether another look is needed.
func (u *Uninstaller) stripAll(ctx context.Context, client metadata.Interface, resources []schema.GroupVersionResource) bool {
	left := false
	for _, resource := range resources {
		n, err := u.strip(ctx, client, resource)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			u.log.Error(err, "Cannot let go all objects; trying again", "resource", resource.Resource)
		case n > 0:
			u.log.Info("Let go", "resource", resource.Resource, "objects", n)
		}
		left = left || n > 0 || err != nil
	}
	return left
}

func (u *Uninstaller) namespaceGoing(ctx context.Context, client metadata.Interface) (bool, error) {
	namespace, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, u.namespace, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", u.namespace, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// definitionsLeft counts our definitions that are not being deleted, and gives the resources of those that are.
func (u *Uninstaller) definitionsLeft(ctx context.Context, client metadata.Interface) (kept int, deleted []schema.GroupVersionResource, err error) {
	list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, nil, fmt.Errorf("listing definitions: %w", err)
	}
	for _, definition := range list.Items {
		resource, ours := u.resources[definition.Name]
		if !ours {
			continue
		}
		if definition.DeletionTimestamp != nil {
			deleted = append(deleted, resource)
		} else {
			kept++
		}
	}
	return kept, deleted, nil
}

// sleep waits, and tells whether the context goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
