package fault

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// kubernetesKinds put a proxy between a component and kube-apiserver, so that the component works by a state of the past (stale-cache),
// by states of different moments (reorder-watches), without ever seeing some states (miss-events), or ends between two of its writes
// (kill-after-write). Sun et al., "Automatic Reliability Testing For Cluster Management Controllers", OSDI '22, names these patterns.
var kubernetesKinds = []kind{
	{"stale-cache", 3, components, false, func(w *world, f *fault) error {
		return w.holdWatches(f, func(string) bool { return true }, false)
	}},
	{"reorder-watches", 3, components, false, func(w *world, f *fault) error {
		one := pick(w, "dnszones", "arecords", "dnsendpoints", "bind9instances", "pods")
		ahead := w.random(2) == 0
		return w.holdWatches(f, func(resource string) bool { return (resource == one) != ahead }, false)
	}},
	{"miss-events", 2, components, false, func(w *world, f *fault) error {
		return w.holdWatches(f, func(string) bool { return true }, true)
	}},
	{"kill-after-write", 3, fixed("controller", "fleet"), false, (*world).killAfterWrite},
}

const (
	// redirectTimeout is how long a component may take to connect again when its connections have been reset.
	redirectTimeout = 10 * time.Second
	// writesTimeout is how long a component may take for the writes of which the last one ends it.
	writesTimeout = 10 * time.Second
	// mostWrites is the highest number of a write that ends a component.
	mostWrites = 6
)

// holdWatches holds back the events of a component's watches for a while. Its reads and writes go on.
func (w *world) holdWatches(f *fault, holds func(resource string) bool, withGap bool) error {
	return w.withProxy(f, func(p *proxy, _ *place) error {
		p.holds = holds
		return nil
	}, func(p *proxy, _ *place) error {
		if err := w.until(redirectTimeout, func(context.Context) error {
			if p.countHeld() == 0 {
				return errors.New("the component watches nothing by way of the proxy")
			}
			return nil
		}); err != nil {
			return fmt.Errorf("%w: %w", errNotNow, err)
		}
		f.hold(w, 1000, 6000)
		p.release(withGap)
		w.pause(time.Second)
		return nil
	})
}

// killAfterWrite ends a component when one of its writes has taken effect, before it hears of that.
func (w *world) killAfterWrite(f *fault) error {
	last, ended := 1+w.random(mostWrites), make(chan error, 1)
	return w.withProxy(f, func(p *proxy, at *place) error {
		p.wrote = func(number int) {
			if number == last {
				f.started = now()
				ended <- w.endProcess(at)
			}
		}
		return nil
	}, func(_ *proxy, at *place) error {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
		case <-time.After(writesTimeout):
			return errNotNow
		}
		f.ending = now()
		return w.waitComponent(f.target, at)
	})
}

// withProxy has a component reach kube-apiserver by way of a proxy while it calls run. Its connections from before are reset.
func (w *world) withProxy(f *fault, prepare, run func(*proxy, *place) error) (err error) {
	at, err := w.component(f.target)
	if err != nil {
		return err
	}
	network, err := at.network()
	if err != nil {
		return err
	}
	defer network.Close()
	defer func() { // When the proxy has closed: without the rules the component would not hear that its connections have ended.
		err = errors.Join(err, inNetwork(network, "iptables", "--wait", "--flush"), inNetwork(network, "iptables", "--wait", "-t", "nat", "--flush"))
	}()
	service, p, err := w.newProxy()
	if err != nil {
		return err
	}
	defer p.close()
	if err := prepare(p, at); err != nil {
		return err
	}
	old := []string{"OUTPUT", "-p", "tcp", "-d", service.String(), "--dport", "443"}
	if err := inNetwork(network, "iptables", append(append([]string{"--wait", "-t", "nat", "--append"}, old...), "-j", "DNAT", "--to", p.addr.String())...); err != nil {
		return err
	}
	// New connections have the proxy's address when they come to this rule.
	if err := inNetwork(network, "iptables", append(append([]string{"--wait", "--append"}, old...), "-j", "REJECT", "--reject-with", "tcp-reset")...); err != nil {
		return err
	}
	return run(p, at)
}

// newProxy starts a proxy, and returns the address that components take for kube-apiserver's.
func (w *world) newProxy() (service netip.Addr, p *proxy, err error) {
	var s corev1.Service
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &s); err != nil {
		return service, nil, err
	}
	if service, err = netip.ParseAddr(s.Spec.ClusterIP); err != nil {
		return service, nil, err
	}
	identity, err := newIdentity(service, clusterCA)
	if err != nil {
		return service, nil, err
	}
	config := rest.CopyConfig(kube.Config(w))
	if err := rest.LoadTLSFiles(config); err != nil {
		return service, nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return service, nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(config.CAData)
	p, err = startProxy(server, trusted, identity)
	return service, p, err
}
