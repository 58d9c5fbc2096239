package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	pluginui "github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

// replay answers lists, watches and events with what a test gives it. It shows how the page renders, and nothing about the API: that is
// what TestClusterPage is for.
type replay struct {
	mu      sync.Mutex
	objects map[string]*v1alpha1.SyncStatus
	events  []corev1.Event
	// log has the events of watches; the resourceVersion of an event is its place in the log, from 1.
	log []logged
	// oldest is the first resourceVersion that a watch may begin at, refusal what every request is answered with, if anything.
	oldest  int
	refusal *metav1.Status
	// changed is closed at each change, ended at each end of all watches.
	changed, ended chan struct{}
	lists, gets    int
	// mute watches send nothing, as if the way to their server was cut.
	mute bool
}

type logged struct {
	kind   string
	object *v1alpha1.SyncStatus
	status *metav1.Status
}

func newReplay() *replay {
	return &replay{objects: map[string]*v1alpha1.SyncStatus{}, changed: make(chan struct{}), ended: make(chan struct{})}
}

// serve returns the URL of a page that shows the replay.
func (c *replay) serve(t testing.TB, scope pluginui.Scope) string {
	t.Helper()
	cluster := httptest.NewServer(c)
	t.Cleanup(cluster.Close)
	t.Cleanup(c.endWatches)
	s, err := pluginui.NewServer(t.Context(), &rest.Config{Host: cluster.URL}, scope, 0)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(serving.Wait)
	return s.URL()
}

// set stores an object, changed by edit, and tells the watches.
func (c *replay) set(o *v1alpha1.SyncStatus, edit func(*v1alpha1.SyncStatus)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, kind := o.Namespace+"/"+o.Name, "MODIFIED"
	if c.objects[key] == nil {
		kind = "ADDED"
	}
	now := o.DeepCopy()
	if old := c.objects[key]; old != nil {
		now = old.DeepCopy()
	}
	if edit != nil {
		edit(now)
	}
	c.record(kind, now)
	c.objects[key] = now
}

func (c *replay) remove(o *v1alpha1.SyncStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, o.Namespace+"/"+o.Name)
	c.record("DELETED", o.DeepCopy())
}

func (c *replay) record(kind string, o *v1alpha1.SyncStatus) {
	o.ResourceVersion = strconv.Itoa(len(c.log) + 1)
	c.log = append(c.log, logged{kind: kind, object: o})
	close(c.changed)
	c.changed = make(chan struct{})
}

// fail sends an event of type ERROR to all watches.
func (c *replay) fail(status *metav1.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, logged{kind: "ERROR", status: status})
	close(c.changed)
	c.changed = make(chan struct{})
}

// refuse answers all requests with a status; nil ends that.
func (c *replay) refuse(status *metav1.Status) {
	c.mu.Lock()
	c.refusal = status
	c.mu.Unlock()
	c.endWatches()
}

// expire forgets all versions before the present one.
func (c *replay) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.oldest = len(c.log)
}

// endWatches ends all watches, in the middle of a line.
func (c *replay) endWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ended)
	c.ended = make(chan struct{})
}

func (c *replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	refusal := c.refusal
	c.mu.Unlock()
	q := r.URL.Query()
	_, name, isGet := strings.Cut(r.URL.Path, "/syncstatuses/")
	switch {
	case refusal != nil:
		w.WriteHeader(int(refusal.Code))
		writeJSON(w, refusal)
	case strings.HasSuffix(r.URL.Path, "/events"):
		writeJSON(w, c.eventsOf(q.Get("fieldSelector")))
	case isGet:
		c.get(w, name)
	case q.Has("watch"):
		c.watch(w, r)
	default:
		c.list(w, r)
	}
}

func writeJSON(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) } // An error means that the page has gone.

func (c *replay) eventsOf(selector string) corev1.EventList {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := corev1.EventList{}
	for _, e := range c.events {
		if strings.Contains(selector, "kind="+e.InvolvedObject.Kind+",") && strings.HasSuffix(selector, "name="+e.InvolvedObject.Name) {
			list.Items = append(list.Items, e)
		}
	}
	return list
}

func (c *replay) get(w http.ResponseWriter, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets++
	for _, o := range c.objects {
		if o.Name == name {
			writeJSON(w, o)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	writeJSON(w, metav1.Status{Code: http.StatusNotFound, Message: name + " not found"})
}

// selects does what the field selectors that the page uses do.
func selects(selector string, o *v1alpha1.SyncStatus) bool {
	if zone, ok := strings.CutPrefix(selector, "zone="); ok {
		return o.Zone == zone
	}
	return selector == "kind="+o.ObjectRef.Kind
}

func (c *replay) list(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	list := v1alpha1.SyncStatusList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(c.log))}}
	for _, o := range c.objects {
		if selects(r.FormValue("fieldSelector"), o) {
			list.Items = append(list.Items, *o)
		}
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.SyncStatus) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	offset, _ := strconv.Atoi(r.FormValue("continue"))
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	list.Items = list.Items[min(offset, len(list.Items)):]
	if len(list.Items) > limit {
		list.Items, list.Continue = list.Items[:limit], strconv.Itoa(offset+limit)
	}
	writeJSON(w, list)
}

func (c *replay) isMute() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mute
}

func (c *replay) setMute(mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = mute
}

func (c *replay) watch(w http.ResponseWriter, r *http.Request) {
	at, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	c.mu.Lock()
	expired, ended := at < c.oldest, c.ended
	c.mu.Unlock()
	if expired {
		writeJSON(w, map[string]any{"type": "ERROR", "object": metav1.Status{Code: http.StatusGone, Message: "too old"}})
		return
	}
	w.WriteHeader(http.StatusOK)
	if c.isMute() {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	for {
		c.mu.Lock()
		news, changed := c.log[min(at, len(c.log)):], c.changed
		c.mu.Unlock()
		at += len(news)
		for _, e := range news {
			if e.status != nil {
				writeJSON(w, map[string]any{"type": e.kind, "object": e.status})
			} else if selects(r.FormValue("fieldSelector"), e.object) {
				writeJSON(w, map[string]any{"type": e.kind, "object": e.object})
			}
		}
		writeJSON(w, map[string]any{"type": "BOOKMARK", "object": map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(at)}}})
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-ended:
			fmt.Fprint(w, `{"type":"MODI`)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// newZone returns a zone in sync on its servers, which are named dns-primary-N-0 and dns-secondary-N-0.
func newZone(namespace, zone string, primaries, secondaries int) *v1alpha1.SyncStatus {
	object := strings.ReplaceAll(zone, ".", "-")
	o := newStatus("DNSZone", namespace, object, zone)
	for i := range primaries + secondaries {
		name, role := fmt.Sprintf("dns-primary-%d", i), "Primary"
		if i >= primaries {
			name, role = fmt.Sprintf("dns-secondary-%d", i-primaries), "Secondary"
		}
		o.Servers = append(o.Servers, v1alpha1.ServerStatus{
			Instance: name, Pod: name + "-0", Role: role, Address: fmt.Sprintf("10.244.0.%d:53", i+10), PodPhase: corev1.PodRunning, PodReady: true,
			State: v1alpha1.StateInSync, Serial: new(int64(1795230639)), SerialLag: new(int64(0)), Rcode: "NOERROR", Authoritative: true,
			RTT: &metav1.Duration{Duration: 412 * time.Microsecond}, Records: &v1alpha1.RecordCounts{InSync: 7}, ObservedAt: new(metav1.NowMicro()),
		})
	}
	o.Summary = v1alpha1.Summary{Servers: int32(len(o.Servers)), InSync: int32(len(o.Servers)), Records: 7}
	return o
}

func newStatus(kind, namespace, name, zone string) *v1alpha1.SyncStatus {
	o := &v1alpha1.SyncStatus{Zone: zone, ObservedAt: new(metav1.NowMicro())}
	o.Namespace, o.Name = namespace, strings.ToLower(kind)+"."+name
	o.ObjectRef = v1alpha1.ObjectReference{APIVersion: "bindy.firestoned.io/v1beta1", Kind: kind, Namespace: namespace, Name: name}
	o.Status = v1alpha1.SyncStatusStatus{Phase: v1alpha1.PhaseInSync, InSync: true}
	return o
}

// breakServer makes one server of an object be in another state.
func breakServer(i int, state v1alpha1.ServerState, edit ...func(*v1alpha1.ServerStatus)) func(*v1alpha1.SyncStatus) {
	return func(o *v1alpha1.SyncStatus) {
		s := &o.Servers[i]
		s.State, s.BehindSince = state, new(metav1.NowMicro())
		for _, e := range edit {
			e(s)
		}
		o.Status.Phase, o.Status.InSync = v1alpha1.PhaseOutOfSync, false
		if state == v1alpha1.StateStale {
			o.Status.Phase = v1alpha1.PhasePropagating
		}
		o.Summary.InSync--
	}
}
