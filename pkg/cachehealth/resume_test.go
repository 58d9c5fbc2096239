package cachehealth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
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

// connection is one to a kube-apiserver that can be taken away.
type connection struct {
	down           atomic.Bool
	lists, watches atomic.Int32
	current        atomic.Pointer[watch.FakeWatcher]
	asked          atomic.Pointer[metav1.ListOptions]
}

func (c *connection) answer() error {
	if c.down.Load() {
		return &url.Error{Op: "Get", Err: syscall.ECONNREFUSED}
	}
	return nil
}

func (c *connection) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	c.lists.Add(1)
	return &v1beta1.Bind9InstanceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, c.answer()
}

func (c *connection) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := c.answer(); err != nil {
		return nil, err
	}
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
	}
	c.watches.Add(1)
	c.asked.Store(&o)
	w := watch.NewFake()
	c.current.Store(w)
	return w, nil
}

// A cache that was cut off goes on within a second when kube-apiserver answers again, however often that happens and however long it
// takes, from where it was.
func TestCacheGoesOnSoonWhereItWas(t *testing.T) {
	lost := func(err error) *metav1.Status {
		return apierrors.NewClientErrorReporter(http.StatusInternalServerError, "watch", decodingCause).AsObject(err).(*metav1.Status)
	}
	for name, cut := range map[string]func(*watch.FakeWatcher){
		"the stream ends":        func(w *watch.FakeWatcher) { w.Stop() },
		"the connection is lost": func(w *watch.FakeWatcher) { w.Error(lost(errors.New("http2: client connection lost"))); w.Stop() },
		"the stream is reset": func(w *watch.FakeWatcher) {
			w.Error(lost(errors.New("stream error: stream ID 447; INTERNAL_ERROR; received from peer")))
			w.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &connection{}
				ctx, cancel := context.WithCancel(t.Context())
				from := &cache.ListWatch{ListWithContextFunc: c.list, WatchFuncWithContext: c.watch}
				informer := NewMonitor().NewInformer(from, &v1beta1.Bind9Instance{}, 0, cache.Indexers{})
				go informer.RunWithContext(ctx)
				time.Sleep(time.Minute) // of the bubble's clock, here and below
				for n := range 5 {
					version := fmt.Sprint(100 + n)
					c.current.Load().Modify(&v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}})
					lists, watches := c.lists.Load(), c.watches.Load()
					c.down.Store(n > 0)
					cut(c.current.Load())
					time.Sleep(20 * time.Second)
					c.down.Store(false)
					time.Sleep(resumeInterval)
					synctest.Wait()
					if c.watches.Load() != watches+1 || c.lists.Load() != lists || c.asked.Load().ResourceVersion != version {
						t.Errorf("interruption %d: %d more watches, %d more lists, the last watch from %s", n, c.watches.Load()-watches, c.lists.Load()-lists, c.asked.Load().ResourceVersion)
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// What kube-apiserver answers is passed on, so that client-go reacts to it.
func TestAnswersArePassedOn(t *testing.T) {
	for name, err := range map[string]error{
		"too old":     apierrors.NewResourceExpired("too old"),
		"forbidden":   apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("x").GroupResource(), "", errors.New("no")),
		"too much":    apierrors.NewTooManyRequests("later", 1),
		"unreadable":  errors.New("the list cannot be decoded"),
		"unsupported": apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("x").GroupKind(), "", nil),
	} {
		times := 0
		_, got := untilAnswered(t.Context(), &monitored{Monitor: NewMonitor()}, func() (int, error) { times++; return 0, err })
		if !errors.Is(got, err) || times != 1 || isCut(err) {
			t.Errorf("%s: %v after %d requests", name, got, times)
		}
	}
	if undecodable := apierrors.NewInternalError(errors.New("unable to decode an event")); isCut(undecodable) {
		t.Error("an event that cannot be decoded is taken for a lost connection")
	}
}
