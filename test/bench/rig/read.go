package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// syncStatusGroup is the path of the aggregated API. Our server answers it from memory, through kube-apiserver as everything else.
const syncStatusGroup = "/apis/sync.bindy.firestoned.io/v1alpha1"

// SyncStatusPath returns the path of the rig's SyncStatus objects, or of the one that is named.
func (r *Rig) SyncStatusPath(name string) string {
	return r.resourcePath(syncStatusGroup, "syncstatuses", name)
}

// ConfigMapPath returns the path of the rig's ConfigMaps, kube-apiserver's own objects, or of the one that is named.
func (r *Rig) ConfigMapPath(name string) string {
	return r.resourcePath("/api/v1", "configmaps", name)
}

// ARecordPath returns the path of the rig's ARecords as they are stored, or of the one that is named.
func (r *Rig) ARecordPath(name string) string {
	return r.resourcePath("/apis/bindy.firestoned.io/v1beta1", "arecords", name)
}

func (r *Rig) resourcePath(group, resource, name string) string {
	path := group + "/namespaces/" + r.Namespace + "/" + resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// ReadPath asks kube-apiserver for a path as any client does, over connections that stay open, and returns the answer and how
// long it took until all of it was there.
func (r *Rig) ReadPath(ctx context.Context, path string) ([]byte, time.Duration, error) {
	began := time.Now()
	response, err := r.openPath(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return body, time.Since(began), err
}

// ReadLines asks kube-apiserver for a path, as that of a watch, and calls back with each line of the answer as it comes.
func (r *Rig) ReadLines(ctx context.Context, path string, begun func(), line func([]byte)) error {
	response, err := r.openPath(ctx, path)
	if err != nil {
		return err
	}
	begun()
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReaderSize(response.Body, 16<<10)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		line(text)
	}
}

func (r *Rig) openPath(ctx context.Context, path string) (*http.Response, error) {
	return r.send(ctx, http.MethodGet, path, "", nil)
}

// SendRequest sends kube-apiserver a request with a body that is encoded already, and returns what it answers.
func (r *Rig) SendRequest(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	response, err := r.send(ctx, method, path, contentType, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

func (r *Rig) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.config.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("%s %s answers %s: %s", method, path, response.Status, text)
	}
	return response, nil
}

// MeasureHop is what a request to an aggregated API costs without anything to compute: the group's list of resources.
func (r *Rig) MeasureHop(ctx context.Context) (time.Duration, error) {
	_, took, err := r.ReadPath(ctx, syncStatusGroup)
	return took, err
}

// MeasureSerials asks every server for the SOA of every zone, as many at once to each as our API server has, and returns how
// long that took. Zones are absolute names.
func (r *Rig) MeasureSerials(ctx context.Context, zones ...string) (time.Duration, error) {
	return r.measureQuestions(ctx, zones, func(ctx context.Context, server netip.AddrPort, zone string) error {
		_, err := r.querySOA(ctx, server, zone)
		return err
	})
}

// MeasureSignedSerials is MeasureSerials with questions that are signed, and so are the answers.
func (r *Rig) MeasureSignedSerials(ctx context.Context, zones ...string) (time.Duration, error) {
	return r.measureQuestions(ctx, zones, func(ctx context.Context, server netip.AddrPort, zone string) error {
		_, err := r.querySOA(ctx, server, zone, wire.WithKey(r.Transfer))
		return err
	})
}

// maxQuestions is how many questions our API server has under way to one server.
const maxQuestions = 32

// measureQuestions asks every server about every zone and returns how long that took.
func (r *Rig) measureQuestions(ctx context.Context, zones []string, ask func(ctx context.Context, server netip.AddrPort, zone string) error) (time.Duration, error) {
	began := time.Now()
	all := &errgroup.Group{}
	for _, server := range r.Servers {
		all.Go(func() error {
			asking, ctx := errgroup.WithContext(ctx)
			asking.SetLimit(maxQuestions)
			for _, zone := range zones {
				asking.Go(func() error { return ask(ctx, server, zone) })
			}
			return asking.Wait()
		})
	}
	err := all.Wait()
	return time.Since(began), err
}

// MeasureTakeOver does the least with which a controller knows zones that it has not made, and returns how long it took: it lists the zones and
// the DNSEndpoints, asks every server for the SOA of every zone, signed, and the primary for the zone itself.
func (r *Rig) MeasureTakeOver(ctx context.Context, zones ...string) (time.Duration, error) {
	began := time.Now()
	for _, list := range []string{r.resourcePath("/apis/bindy.firestoned.io/v1beta1", "dnszones", ""), r.resourcePath("/apis/externaldns.k8s.io/v1alpha1", "dnsendpoints", "")} {
		if _, _, err := r.ReadPath(ctx, list+"?resourceVersion=0"); err != nil {
			return 0, err
		}
	}
	_, err := r.measureQuestions(ctx, zones, func(ctx context.Context, server netip.AddrPort, zone string) error {
		_, err := r.querySOA(ctx, server, zone, wire.WithKey(r.Transfer))
		if err == nil && server == r.Primary {
			_, err = wire.Transfer(ctx, server, zone, nil, r.Transfer)
		}
		return err
	})
	return time.Since(began), err
}

// ListInSync reads a list of SyncStatus objects and fails unless there are so many, all of them in sync on three servers.
func (r *Rig) ListInSync(ctx context.Context, path string, count int) (*syncv1.SyncStatusList, error) {
	body, _, err := r.ReadPath(ctx, path)
	if err != nil {
		return nil, err
	}
	list := &syncv1.SyncStatusList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, err
	}
	if len(list.Items) != count {
		return nil, fmt.Errorf("%s has %d objects, want %d", path, len(list.Items), count)
	}
	for i := range list.Items {
		if s := &list.Items[i]; !s.Status.InSync || len(s.Servers) != len(r.Servers) {
			return nil, fmt.Errorf("%s is %s on %d servers", s.Name, s.Status.Phase, len(s.Servers))
		}
	}
	return list, nil
}
