package survey

import (
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dateRecorder remembers the Date of the last response (RFC 9110 section 6.6.1), and the time here in the middle of its request.
type dateRecorder struct {
	mu            sync.Mutex
	server, local time.Time
}

func (d *dateRecorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			d.mu.Lock()
			d.server, d.local = at, began.Add(time.Since(began)/2)
			d.mu.Unlock()
		}
		return response, nil
	})
}

func (d *dateRecorder) last() (server, local time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server, d.local
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// isAnswer is true for errors that kube-apiserver has answered with, unless they are about who asks.
func isAnswer(err error) bool {
	return errors.As(err, new(apierrors.APIStatus)) && !apierrors.IsUnauthorized(err)
}
