package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// group is the path of the aggregated API. Our server answers it from memory, through kube-apiserver as everything else.
const group = "/apis/sync.bindy.firestoned.io/v1alpha1"

// SyncStatuses is the path of the rig's SyncStatus objects; of one of them when it is named.
func (r *Rig) SyncStatuses(name string) string {
	return r.pathOf(group, "syncstatuses", name)
}

// ConfigMaps is the path of the rig's ConfigMaps, kube-apiserver's own objects; of one of them when it is named.
func (r *Rig) ConfigMaps(name string) string {
	return r.pathOf("/api/v1", "configmaps", name)
}

// ARecord is the path of the rig's ARecords as they are stored; of one of them when it is named.
func (r *Rig) ARecord(name string) string {
	return r.pathOf("/apis/bindy.firestoned.io/v1beta1", "arecords", name)
}

func (r *Rig) pathOf(group, resource, name string) string {
	path := group + "/namespaces/" + r.Namespace + "/" + resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// Read asks kube-apiserver for a path as any client does, over connections that stay open, and returns the answer and how
// long it took until all of it was there.
func (r *Rig) Read(ctx context.Context, path string) ([]byte, time.Duration, error) {
	began := time.Now()
	response, err := r.open(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return body, time.Since(began), err
}

// Lines asks kube-apiserver for a path, as that of a watch, and calls back with each line of the answer as it comes.
func (r *Rig) Lines(ctx context.Context, path string, begun func(), line func([]byte)) error {
	response, err := r.open(ctx, path)
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

func (r *Rig) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.config.Host+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("%s answers %s: %s", path, response.Status, text)
	}
	return response, nil
}

// Hop is what a request to an aggregated API costs without anything to compute: the group's list of resources.
func (r *Rig) Hop(ctx context.Context) (time.Duration, error) {
	_, took, err := r.Read(ctx, group)
	return took, err
}

// Serials asks every server for the SOA of every zone, as many at once to each as our API server has, and tells how long
// that took. Zones are absolute names.
func (r *Rig) Serials(ctx context.Context, zones ...string) (time.Duration, error) {
	began := time.Now()
	all := &errgroup.Group{}
	for _, server := range r.Servers {
		all.Go(func() error { return r.serials(ctx, server, zones) })
	}
	err := all.Wait()
	return time.Since(began), err
}

// questions is how many questions our API server has under way to one server.
const questions = 32

func (r *Rig) serials(ctx context.Context, server netip.AddrPort, zones []string) error {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(questions)
	for _, zone := range zones {
		asking.Go(func() error {
			_, err := r.soa(ctx, server, zone)
			return err
		})
	}
	return asking.Wait()
}

// InSync reads a list of SyncStatus objects and fails unless there are so many, all of them in step on three servers.
func (r *Rig) InSync(ctx context.Context, path string, count int) (*syncv1.SyncStatusList, error) {
	body, _, err := r.Read(ctx, path)
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
