package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/load"
)

// watchBackoff is how long a client waits before it opens a watch again that it could not open.
const watchBackoff = 100 * time.Millisecond

// requestClients are those who ask kube-apiserver without pause. Like every client of Kubernetes they try again what failed on the way to
// kube-apiserver or inside of it. What it says of our servers is never tried again: it has failed.
type requestClients struct {
	*testing.T
	host    string
	http    *http.Client
	stalls  *load.StallClock
	running sync.WaitGroup

	mu               sync.Mutex
	requests         map[string]int
	failures, passed []string
}

func newClients(t *testing.T) *requestClients {
	t.Helper()
	config := rest.CopyConfig(kube.Config(t))
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &requestClients{T: t, host: config.Host, http: client, stalls: load.NewStallClock(t.Context()), requests: map[string]int{}}
}

// repeat repeats one kind of request until ctx ends. A request that is under way then still counts.
func (l *requestClients) repeat(ctx context.Context, what string, pause time.Duration, do func() error) {
	l.running.Go(func() {
		for ctx.Err() == nil {
			l.record(what, do())
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

func (l *requestClients) record(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[what]++
	if err != nil {
		l.failures = append(l.failures, describeFailure(what, err))
	}
}

func describeFailure(what string, err error) string {
	return fmt.Sprintf("%s %s: %v", time.Now().Format("15:04:05.000"), what, err)
}

// tryAgain reports whether a request that began at a time and failed with err is one to try again, and notes it.
func (l *requestClients) tryAgain(what string, began time.Time, err error) bool {
	if !isKubernetesOwn(err) && !(isLate(err) && l.stalls.Since(began) > seriousStall) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = append(l.passed, describeFailure(what, err))
	return true
}

// requestError is an answer of another code than wanted.
type requestError struct {
	code int
	text string
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%d %s: %.300s", e.code, http.StatusText(e.code), e.text)
}

// isKubernetesOwn reports whether a request failed on the way to kube-apiserver, or because that could not serve it, nor read from etcd.
// The text of an answer is about what is behind kube-apiserver: a refused connection in there is one to us.
func isKubernetesOwn(err error) bool {
	var answer *requestError
	if errors.As(err, &answer) {
		return answer.code == http.StatusTooManyRequests || answer.code == http.StatusInternalServerError && strings.Contains(answer.text, "etcdserver: ")
	}
	if utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || strings.Contains(err.Error(), "GOAWAY") {
		return true
	}
	var unsent *url.Error // Without one, an answer broke off: kube-apiserver hands on those of our servers.
	return errors.As(err, &unsent) && utilnet.IsProbableEOF(err)
}

// isLate reports whether a request failed because somebody did not wait any longer.
func isLate(err error) bool {
	text := err.Error()
	return utilnet.IsTimeout(err) || strings.Contains(text, "deadline exceeded") || strings.Contains(text, "imeout")
}

// requireNoFailure waits for the clients, whose context has ended, and fails the test for each request that failed.
func (l *requestClients) requireNoFailure() {
	l.Helper()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, failure := range l.failures {
		l.Error(failure)
	}
	l.Logf("requests: %v; %d were tried again: %q", l.requests, len(l.passed), l.passed[:min(len(l.passed), 5)])
}

// get asks and throws the answer away.
func (l *requestClients) get(path string) func() error {
	return func() error { return l.send(http.MethodGet, path, nil, http.StatusOK) }
}

// create sends an object; with ?dryRun=All admission reviews it and nothing is stored.
func (l *requestClients) create(path string, object any) func() error {
	body, err := json.Marshal(object)
	if err != nil {
		l.Fatal(err)
	}
	return func() error { return l.send(http.MethodPost, path, body, http.StatusCreated) }
}

// send sends a request, and again while it fails in a way that passes.
func (l *requestClients) send(method, path string, body []byte, want int) error {
	began := time.Now()
	again := func(err error) bool {
		defer func() { began = time.Now() }()
		return l.tryAgain(method+" "+path, began, err)
	}
	return retryWhile(context.WithoutCancel(l.Context()), kube.Settle, again, func(context.Context) error { return l.sendOnce(method, path, body, want) })
}

func (l *requestClients) sendOnce(method, path string, body []byte, want int) error {
	request, err := http.NewRequest(method, l.host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if reply.StatusCode != want {
		return &requestError{reply.StatusCode, string(text)}
	}
	return nil
}

// resumingWatcher resumes a watch that ends, as an informer does: from the last revision that it has read.
type resumingWatcher struct {
	*requestClients
	path     string
	revision string
	// started counts the requests that it took.
	started atomic.Int32
	// seen gets the name and generation of each object that was reported in sync.
	seen func(name string, generation int64)
}

// watchedEvent is what a watcher reads of an event.
type watchedEvent struct {
	Type   string
	Object json.RawMessage
}

// errGone says that a server has not been there for long enough to know what happened since the revision.
var errGone = errors.New("the revision is gone")

// start watches until ctx ends. A watch may end, but only as one that was finished, or with the connection to kube-apiserver, and never
// with an error. That a revision is gone is not one: whoever watches lists again then.
func (w *resumingWatcher) start(ctx context.Context) {
	w.running.Go(func() {
		for ctx.Err() == nil {
			w.started.Add(1)
			began := time.Now()
			err := w.watchOnce(ctx)
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, errGone):
				w.record("list again", w.list())
			case err != nil && w.tryAgain("watch", began, err):
				time.Sleep(watchBackoff)
			default:
				w.record("watch", err)
			}
		}
	})
}

func (w *resumingWatcher) list() error {
	began := time.Now()
	again := func(err error) bool { return w.tryAgain("list again", began, err) }
	return retryWhile(context.WithoutCancel(w.Context()), kube.Settle, again, func(context.Context) error { return w.listOnce() })
}

func (w *resumingWatcher) listOnce() error {
	reply, err := w.http.Get(w.host + w.path)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reply.Body)
		return &requestError{reply.StatusCode, string(text)}
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil {
		return err
	}
	for _, o := range list.Items {
		if err := w.takeEvent(watchedEvent{Type: "ADDED", Object: o}); err != nil {
			return err
		}
	}
	w.revision = list.Metadata.ResourceVersion
	return nil
}

func (w *resumingWatcher) watchOnce(ctx context.Context) error {
	path := w.host + w.path + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + w.revision
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	reply, err := w.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	switch reply.StatusCode {
	case http.StatusOK:
	case http.StatusGone:
		return errGone
	default:
		text, _ := io.ReadAll(reply.Body)
		return &requestError{reply.StatusCode, string(text)}
	}
	for events := json.NewDecoder(reply.Body); ; {
		var e watchedEvent
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the watch broke off: %w", err)
		}
		if err := w.takeEvent(e); err != nil {
			return err
		}
	}
}

func (w *resumingWatcher) takeEvent(e watchedEvent) error {
	var o struct {
		Metadata  struct{ Name, ResourceVersion string }
		ObjectRef struct{ Generation int64 }
		Status    struct{ InSync bool }
	}
	if err := json.Unmarshal(e.Object, &o); err != nil {
		return err
	}
	if e.Type == "ERROR" {
		return &requestError{http.StatusOK, "the watch got an error: " + string(e.Object)}
	}
	w.revision = o.Metadata.ResourceVersion
	if o.Status.InSync {
		w.seen(o.Metadata.Name, o.ObjectRef.Generation)
	}
	return nil
}
