package cachehealth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	"k8s.io/client-go/rest"
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

// A kube-apiserver that has just started refuses what it grants later: that is no answer yet, for a while.
func TestEarlyRefusalIsNoAnswer(t *testing.T) {
	gone := &url.Error{Op: "Get", URL: "https://kubernetes", Err: syscall.ECONNREFUSED}
	resource := v1beta1.GroupVersion.WithResource("x").GroupResource()
	for name, early := range map[string]error{
		"forbidden": apierrors.NewForbidden(resource, "", errors.New("no role binding")), "no such kind": apierrors.NewNotFound(resource, ""),
		"unknown token": apierrors.NewUnauthorized("no"), "too much": apierrors.NewTooManyRequests("storage is initializing", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &monitored{Monitor: NewMonitor(), name: "Bind9Instance"}
				answers := []error{gone, early, early, nil}
				_, err := untilAnswered(t.Context(), w, func() (int, error) {
					err := answers[0]
					answers = answers[1:]
					if err == nil && w.Failing(0) == nil {
						t.Error("nothing fails meanwhile")
					}
					return 0, err
				})
				if err != nil || len(answers) != 0 {
					t.Errorf("%v, and %d more answers", err, len(answers))
				}
				time.Sleep(settleTime) // of the bubble's clock
				if _, err := untilAnswered(t.Context(), w, func() (int, error) { return 0, early }); !errors.Is(err, early) {
					t.Errorf("%v long after", err)
				}
			})
		})
	}
}

// A cache of a kind that was removed, as when Cluster API is uninstalled, has all that there is. A kube-apiserver that has just started may
// not know the kind yet.
func TestRemovedKindIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &monitored{Monitor: NewMonitor(), name: "Cluster"}
		removed := apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("clusters").GroupResource(), "")
		w.reportOutcome(t.Context(), errEnded)
		w.reportOutcome(t.Context(), removed)
		if err := w.Failing(0); err != nil {
			t.Errorf("a kind that was removed: %v", err)
		}
		w.reportOutcome(t.Context(), &url.Error{Op: "Get", URL: "https://kubernetes", Err: syscall.ECONNREFUSED})
		w.reportOutcome(t.Context(), removed)
		if w.Failing(0) == nil {
			t.Error("a kind that is not known yet is taken for removed")
		}
	})
}

// A component waits for a kube-apiserver that is away, or not ready, but not for one that answers something else, or is never ready.
func TestWaitForServer(t *testing.T) {
	for name, answers := range map[string][]int{
		"away, then ready": {0, 0, http.StatusOK}, "not ready, then ready": {0, http.StatusInternalServerError, http.StatusOK}, "hidden": {http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				code := answers[min(int(asked.Add(1)), len(answers))-1]
				if code == 0 {
					panic(http.ErrAbortHandler) // cuts the connection
				}
				w.WriteHeader(code)
			}))
			defer server.Close()
			if err := WaitForServer(t.Context(), &rest.Config{Host: server.URL}); err != nil || int(asked.Load()) != len(answers) {
				t.Errorf("%v after %d requests", err, asked.Load())
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WaitForServer(ctx, &rest.Config{Host: "127.0.0.1:1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v although nobody waits any more", err)
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
