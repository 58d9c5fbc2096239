package externaldns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
)

const (
	// mediaType is that of every body, in the one version that there is.
	mediaType = "application/external.dns.webhook+json;version=1"
	// maxBody bounds a request, in bytes.
	maxBody = 32 << 20
	// answerWithin is when a request is answered at the latest; external-dns gives up after 15 s. What it asked for goes on.
	answerWithin = 13 * time.Second
	// applyTimeout is when the work behind a request is given up.
	applyTimeout = 5 * time.Minute
	// parallelWrites is how many objects are written at a time.
	parallelWrites = 24
)

// webhookServer answers external-dns. Whatever is wrong with data or with Kubernetes is answered with 503, after which external-dns tries
// again at its next interval. Any 4xx would end its process, so that one bad record would keep all others from being published.
type webhookServer struct {
	store   *store
	notices *notices
	metrics *serverMetrics
	// filter are the domains that external-dns is to look at; empty for all.
	filter domainFilter
	// dryRun logs changes and writes none.
	dryRun bool
	// waitPropagated is how long the answer waits for every server to answer what was changed.
	waitPropagated time.Duration
	// writing serializes changes: each begins with what the one before has left.
	writing sync.Mutex
}

// domainFilter is the body of the answer to GET /.
type domainFilter struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

// handler returns the routes of the protocol.
func (s *webhookServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.answer(func(context.Context, *http.Request) (any, error) { return s.filter, nil }))
	mux.HandleFunc("GET /records", s.answer(s.getRecords))
	mux.HandleFunc("POST /adjustendpoints", s.answer(s.adjustEndpoints))
	mux.HandleFunc("POST /records", s.answer(s.applyChanges))
	return mux
}

// answer returns a handler that writes what a function returns, 204 if that is nothing.
func (s *webhookServer) answer(do func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := do(r.Context(), r)
		s.metrics.observe(r.Method, r.URL.Path, err, time.Since(began))
		w.Header().Set("Vary", "Content-Type")
		switch {
		case err != nil:
			klog.FromContext(r.Context()).Error(err, "request failed", "method", r.Method, "path", r.URL.Path)
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case body == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", mediaType)
			_ = json.NewEncoder(w).Encode(body) // A client that is gone asks again.
		}
	}
}

func (s *webhookServer) getRecords(ctx context.Context, _ *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	stored, err := s.store.listStored(ctx)
	if err != nil {
		return nil, err
	}
	unserved := unservedNotes(stored, s.store.owner)
	s.metrics.setStored(len(stored), len(unserved))
	go s.notices.reportRefusals(context.WithoutCancel(ctx), unserved)
	return servedRecords(stored, s.store.owner), nil
}

func (s *webhookServer) adjustEndpoints(ctx context.Context, r *http.Request) (any, error) {
	var endpoints []*v1alpha1.Endpoint
	if err := json.NewDecoder(r.Body).Decode(&endpoints); err != nil {
		return nil, fmt.Errorf("reading endpoints: %w", err)
	}
	adjusted, refused := adjustEndpoints(endpoints)
	s.metrics.setRefused(len(refused))
	go s.notices.reportRefusals(context.WithoutCancel(ctx), refused)
	return adjusted, nil
}

// applyChanges answers when everything is stored, or with an error when that takes too long; then it goes on.
func (s *webhookServer) applyChanges(ctx context.Context, r *http.Request) (any, error) {
	var changes planChanges
	if err := json.NewDecoder(r.Body).Decode(&changes); err != nil {
		return nil, fmt.Errorf("reading changes: %w", err)
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- s.storeChanges(background, changes)
	}()
	select {
	case err := <-done:
		return nil, err
	case <-time.After(answerWithin):
		return nil, errors.New("not everything is stored yet; it goes on")
	}
}

func (s *webhookServer) storeChanges(ctx context.Context, changes planChanges) error {
	began := time.Now()
	s.writing.Lock()
	defer s.writing.Unlock()
	stored, err := s.store.listStored(ctx) //lockio:allow changes of one external-dns follow each other, and nobody else needs this mutex
	if err != nil {
		return err
	}
	next, refused := mergeChanges(stored, changes, s.store.owner)
	next, outside := s.dropOutside(next)
	if s.dryRun {
		for _, d := range next {
			klog.FromContext(ctx).Info("would store", "source", d.resource.String(), "endpoints", d.endpoints)
		}
		return nil
	}
	written, more, err := s.writeAll(ctx, next)
	s.notices.reportRefusals(ctx, append(append(refused, outside...), more...)) //lockio:allow as above
	if err != nil {
		return err
	}
	return s.waitAll(ctx, written, min(s.waitPropagated, answerWithin-time.Since(began)-time.Second))
}

// dropOutside drops the declarations of namespaces that are not served.
func (s *webhookServer) dropOutside(next []sourceDeclaration) (inside []sourceDeclaration, refused []refusal) {
	for _, d := range next {
		if s.store.serves(d.resource.namespace) {
			inside = append(inside, d)
			continue
		}
		refused = append(refused, refusal{resource{}, fmt.Sprintf("%s is in a namespace that --namespaces does not list", d.resource)})
	}
	return inside, refused
}

// writeAll writes declarations, and returns those that were written and those that kube-apiserver or admission refuses.
func (s *webhookServer) writeAll(ctx context.Context, next []sourceDeclaration) (written []sourceDeclaration, refused []refusal, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	var errs []error
	group.SetLimit(parallelWrites)
	present := newPresentObjects(s.store.client)
	for _, d := range next {
		group.Go(func() error {
			err := s.store.applyDeclaration(ctx, present, d)
			s.metrics.countWrite(err)
			mu.Lock()
			defer mu.Unlock()
			var no refusedError
			switch {
			case errors.As(err, &no):
				refused = append(refused, refusal{d.resource, "the records are not published: " + no.Error()})
			case err != nil:
				errs = append(errs, err)
			default:
				written = append(written, d)
			}
			return nil
		})
	}
	_ = group.Wait()
	if len(errs) > 3 {
		errs = append(errs[:3:3], fmt.Errorf("and %d more", len(errs)-3))
	}
	return written, refused, errors.Join(errs...)
}

// waitAll waits until what was written is propagated, or the time is over. That is no error: /records shows what is served.
func (s *webhookServer) waitAll(ctx context.Context, written []sourceDeclaration, limit time.Duration) error {
	if limit <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, d := range written {
		group.Go(func() error {
			s.store.waitPropagated(ctx, d)
			return nil
		})
	}
	return group.Wait()
}
