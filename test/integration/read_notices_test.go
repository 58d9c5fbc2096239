package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/test/kube"
)

var openStreams = regexp.MustCompile(`(?m)^bindcar_notice_streams (\d+)`)

// countStreams are how many listen to the notices of a pod's server.
func (f *fixture) countStreams(ctx context.Context, pod, server string) (int, error) {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return 0, err
	}
	config, err := f.connectAs(ctx, bindcar.MetricsIdentity)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(host, "8080")+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	config.ServerName = strings.Replace(bindcar.CertificateName(f.namespace, strings.TrimSuffix(pod, "-0")), "*", "metrics", 1)
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	m := openStreams.FindSubmatch(body)
	if m == nil {
		return 0, fmt.Errorf("no count of streams in %.200s", body)
	}
	return strconv.Atoi(string(m[1]))
}

// waitStreams waits until every server has so many listeners.
func (f *fixture) waitStreams(listeners int) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if n, err := f.countStreams(ctx, pod, server); err != nil || n != listeners {
				return fmt.Errorf("%s has %d listeners, want %d: %w", pod, n, listeners, err)
			}
		}
		return nil
	})
}

// While somebody watches, the API server has a notification stream from each server, as the controller always has.
func TestReadWatchListens(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "listen.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitInSync("arecord.www", 2)
	f.waitStreams(1)

	watching, err := client.NewWithWatch(kube.Config(t), client.Options{Scheme: f.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &syncv1.SyncStatusList{}, client.InNamespace(f.namespace), client.MatchingFields{"metadata.name": "arecord.www"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	f.waitStreams(2)

	// The controller puts right what is done by hand, and the watch shows both.
	f.updateByHand("dns-primary-0-0", addRecords("www.listen.example. 3600 A 203.0.113.9"))
	f.waitServed("www.listen.example", "A", "192.0.2.1")
	f.awaitEvent(events, func(s *syncv1.SyncStatus) bool { return s.Status.InSync })

	events.Stop()
	f.waitStreams(1)
}

// awaitEvent reads a watch until an event is as wanted.
func (f *fixture) awaitEvent(events watch.Interface, wanted func(*syncv1.SyncStatus) bool) {
	f.Helper()
	timeout := time.After(kube.Settle.Duration())
	for {
		select {
		case e, ok := <-events.ResultChan():
			if !ok {
				f.Fatal("the watch has ended")
			}
			if s, is := e.Object.(*syncv1.SyncStatus); is && wanted(s) {
				return
			}
		case <-timeout:
			f.Fatal("the watch never shows it")
		}
	}
}
