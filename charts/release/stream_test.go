package release

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/load"
)

// stream asks for something again and again, and counts what is answered.
type stream struct {
	name  string
	pause time.Duration
	ask   func(context.Context) error
}

// keepAsking runs streams until stop is called, which fails the test for each request that failed.
func keepAsking(t *testing.T, streams ...stream) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, s := range streams {
		running.Go(func() {
			asked, failed := 0, []string{}
			for ctx.Err() == nil {
				began := time.Now()
				if err := s.ask(context.WithoutCancel(ctx)); err != nil {
					failed = append(failed, fmt.Sprintf("%s: %v", began.Format("15:04:05.000"), err))
				}
				asked++
				select {
				case <-ctx.Done():
				case <-time.After(s.pause):
				}
			}
			t.Logf("%s: %d requests, %d failed", s.name, asked, len(failed))
			for _, f := range failed[:min(3, len(failed))] {
				t.Errorf("%s: %s", s.name, f)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// ask returns an error unless a server answers with these addresses.
func ask(server, name string, want ...string) error {
	m := new(dns.Msg)
	m.SetQuestion(name, dns.TypeA)
	reply, _, err := (&dns.Client{Timeout: 2 * time.Second}).Exchange(m, server)
	if err != nil {
		return err
	}
	if !reply.Authoritative {
		return errors.New("the answer is not authoritative")
	}
	var got []string
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			got = append(got, a.A.String())
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the answer is %q, want %q", got, want)
	}
	return nil
}

// askAll asks all servers of a namespace.
func askAll(t *testing.T, namespace, name string, want ...string) func(context.Context) error {
	c := kube.Client(t)
	return func(ctx context.Context) error {
		servers, err := kube.Servers(ctx, c, namespace)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if err := ask(server, name, want...); err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
		}
		return nil
	}
}

// resolve asks the Services of a namespace's servers as a resolver does, until one answers. That one has to be right.
func resolve(t *testing.T, namespace, name, want string) func(context.Context) error {
	t.Helper()
	var services corev1.ServiceList
	if err := kube.Client(t).List(t.Context(), &services, client.InNamespace(namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		t.Fatal(err)
	}
	servers := map[string]string{}
	for _, service := range services.Items {
		servers[service.Name] = net.JoinHostPort(service.Spec.ClusterIP, "53")
	}
	return func(ctx context.Context) error {
		answer, err := load.Resolve(ctx, servers, name)
		if err == nil && answer != want {
			err = fmt.Errorf("the answer is %s, want %s", answer, want)
		}
		return err
	}
}
