package cachehealth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
)

// forgetful is a kube-apiserver that forgets what was before its present version.
type forgetful struct {
	mu      sync.Mutex
	version int
	objects map[string]string // versions by name
	watcher *watch.FakeWatcher
	lists   int
}

func (f *forgetful) list(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	list := &v1beta1.Bind9InstanceList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(f.version)}}
	for name, version := range f.objects {
		list.Items = append(list.Items, v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}})
	}
	return list, nil
}

func (f *forgetful) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case o.SendInitialEvents != nil:
		return nil, apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
	case o.ResourceVersion != fmt.Sprint(f.version):
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	f.watcher = watch.NewFake()
	return f.watcher, nil
}

// change gives objects new versions, and deletes others, without an event. It returns the watcher that missed that.
func (f *forgetful) change(changed, deleted []string) *watch.FakeWatcher {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range changed {
		f.version++
		f.objects[name] = fmt.Sprint(f.version)
	}
	for _, name := range deleted {
		f.version++
		delete(f.objects, name)
	}
	return f.watcher
}

// A cache has what it missed within two seconds, however often that happens, if kube-apiserver says that it has forgotten the events.
func TestCacheCatchesUpSoon(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old resource version").ErrStatus
	for name, cut := range map[string]func(*watch.FakeWatcher){
		"the next watch is refused": func(w *watch.FakeWatcher) { w.Stop() },
		"the watch says so":         func(w *watch.FakeWatcher) { w.Error(&expired); w.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &forgetful{version: 10, objects: map[string]string{"a": "7", "b": "8", "gone-0": "9"}}
				ctx, cancel := context.WithCancel(t.Context())
				from := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
				informer := NewMonitor().NewInformer(from, &v1beta1.Bind9Instance{}, 0, cache.Indexers{})
				var seen []string
				_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
					AddFunc:    func(o any) { seen = append(seen, "+"+o.(*v1beta1.Bind9Instance).Name) },
					UpdateFunc: func(_, o any) { seen = append(seen, o.(*v1beta1.Bind9Instance).Name) },
					DeleteFunc: func(o any) { seen = append(seen, "-"+o.(*v1beta1.Bind9Instance).Name) },
				})
				if err != nil {
					t.Fatal(err)
				}
				go informer.RunWithContext(ctx)
				time.Sleep(10 * time.Second) // of the bubble's clock, here and below
				synctest.Wait()
				for n := range 6 {
					seen = nil
					next := fmt.Sprintf("gone-%d", n+1)
					cut(f.change([]string{"b", next}, []string{fmt.Sprintf("gone-%d", n)}))
					time.Sleep(2 * time.Second)
					synctest.Wait()
					if want := fmt.Sprintf("-gone-%d b +%s", n, next); strings.Join(seen, " ") != want {
						t.Errorf("gap %d: the events are %q, want %q", n, seen, want)
					}
					keys := informer.GetStore().ListKeys()
					slices.Sort(keys)
					if fmt.Sprint(keys) != fmt.Sprintf("[a b %s]", next) || informer.LastSyncResourceVersion() != fmt.Sprint(f.version) {
						t.Errorf("gap %d: it holds %v of version %s", n, keys, informer.LastSyncResourceVersion())
					}
					f.change([]string{"a"}, nil).Modify(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: fmt.Sprint(f.version)}})
					synctest.Wait()
				}
				if f.lists != 7 {
					t.Errorf("there were %d lists, want 7", f.lists)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A reader that stops anywhere among the events of a gap can go on from the version of the last one, and misses nothing.
func TestMissedEventsAreInOrder(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	add := func(name, version string) {
		if err := store.Add(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}); err != nil {
			t.Fatal(err)
		}
	}
	add("same", "5")
	add("changed", "6")
	add("deleted", "7")
	w := &monitored{Monitor: NewMonitor(), store: store, example: &v1beta1.Bind9Instance{}}
	list := &v1beta1.Bind9InstanceList{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
	for name, version := range map[string]string{"same": "5", "changed": "101", "first": "99", "last": "102"} {
		list.Items = append(list.Items, v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}})
	}
	events, err := w.missedEvents(list, "9")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Object.(*v1beta1.Bind9Instance).Name, versionOf(e.Object)))
	}
	want := []string{"DELETED deleted 9", "ADDED first 99", "MODIFIED changed 101", "ADDED last 102", "BOOKMARK  1000"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	list.Items[0].ResourceVersion = "none"
	if _, err := w.missedEvents(list, "9"); err == nil {
		t.Error("events without an order are passed on")
	}
}

// What an informer has not stored yet would be missing from the comparison, so it lists itself.
func TestCatchingUpWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{version: 20, objects: map[string]string{}}
		from := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
		w := NewMonitor().watch(&v1beta1.Bind9Instance{}, from)
		w.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		w.noteGiven(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "12"}})
		w.noteGiven(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "11"}})
		if _, err := w.catchUp(t.Context(), metav1.ListOptions{}); !apierrors.IsResourceExpired(err) {
			t.Errorf("nothing is stored: %v", err)
		}
		w.store.Bookmark("12")
		events, err := w.catchUp(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(errors.Join(err))
		}
		if e := <-events.ResultChan(); e.Type != watch.Bookmark {
			t.Errorf("the first event is %v", e)
		}
		events.Stop()
		synctest.Wait()
	})
}
