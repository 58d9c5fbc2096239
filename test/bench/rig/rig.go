package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
)

// clusterName is the Bind9Cluster of every rig.
const clusterName = "dns"

// Rig is the namespace of one benchmark with its fleet: one primary, two secondaries.
type Rig struct {
	Client    client.Client
	Namespace string
	// Servers are where named answers in each pod; Primary is one of them.
	Servers []netip.AddrPort
	Primary netip.AddrPort
	// Update and Transfer are the fleet's keys.
	Update, Transfer *wire.Key

	name    string
	config  *rest.Config
	http    *http.Client
	pods    []corev1.Pod
	results []string
	// controllerStarted is when the controller that a run goes by was started.
	controllerStarted time.Time
}

func connectRig(name string) (*Rig, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	plain, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Rig{Client: c, Namespace: "bench-" + name, name: name, config: config, http: plain}, nil
}

// besideSuffix is what the namespace of [Rig.StartBeside] has after that of the rig.
const besideSuffix = "-beside"

// StartBeside starts a fleet in another namespace, which is removed with the rig's own.
func (r *Rig) StartBeside(ctx context.Context) (*Rig, error) {
	other := r.beside()
	if err := other.createNamespace(ctx); err != nil {
		return nil, err
	}
	return other, other.startFleet(ctx)
}

func (r *Rig) beside() *Rig {
	other := *r
	other.Namespace += besideSuffix
	return &other
}

func (r *Rig) createNamespace(ctx context.Context) error {
	err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s is left from an interrupted run; remove it with: %s", r.Namespace, clearCommand(r.name))
	}
	return err
}

// startFleet declares the fleet and waits until each of its servers is ready.
func (r *Rig) startFleet(ctx context.Context) error {
	one, two := int32(1), int32(2)
	cluster := &v1beta1.Bind9Cluster{ObjectMeta: r.ObjectMeta(clusterName, nil)}
	cluster.Spec.Primary, cluster.Spec.Secondary = &v1beta1.RoleConfig{Replicas: &one}, &v1beta1.RoleConfig{Replicas: &two}
	if err := r.Client.Create(ctx, cluster); err != nil {
		return err
	}
	return PollUntil(ctx, 3*time.Minute, 100*time.Millisecond, func() error { return r.findServers(ctx) })
}

func (r *Rig) findServers(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		return err
	}
	r.Servers, r.pods = nil, pods.Items
	for _, pod := range pods.Items {
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || !status.PodReady(&pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
		r.Servers = append(r.Servers, netip.AddrPortFrom(address, serving.Port))
		if pod.Labels[v1beta1.RoleLabel] == string(v1beta1.RolePrimary) {
			r.Primary = r.Servers[len(r.Servers)-1]
		}
	}
	if len(r.Servers) != 3 {
		return fmt.Errorf("%d of 3 servers have a pod", len(r.Servers))
	}
	return errors.Join(r.readKey(ctx, named.KeyUpdate, &r.Update), r.readKey(ctx, named.KeyTransfer, &r.Transfer))
}

func (r *Rig) readKey(ctx context.Context, role named.KeyRole, key **wire.Key) error {
	secret := &corev1.Secret{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: named.KeySecretName(clusterName, role)}, secret); err != nil {
		return err
	}
	var err error
	*key, err = named.KeyFromSecret(secret)
	return err
}

// ObjectMeta returns the metadata of an object of the rig.
func (r *Rig) ObjectMeta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: labels}
}

// PollUntil repeats check, with a pause in between, until it returns nil; after the limit it gives up with check's error.
func PollUntil(ctx context.Context, limit, pause time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		time.Sleep(pause)
	}
}
