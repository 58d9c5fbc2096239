package cachehealth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// resumeInterval is at most how long a cache that kube-apiserver does not answer waits until it asks again. client-go's own
// waits double up to half a minute, over all interruptions of two minutes, and a watch that was cut off begins with a list: a
// component would learn of the next change that much later. There are some fifteen caches in a component.
const resumeInterval = time.Second

// untilAnswered repeats a request that kube-apiserver does not answer until it does, or ctx ends. Each failure is reported.
func untilAnswered[T any](ctx context.Context, w *monitored, request func() (T, error)) (T, error) {
	for {
		result, err := request()
		if !isAway(err) || ctx.Err() != nil {
			return result, err
		}
		w.reportOutcome(ctx, err)
		waitToResume(ctx)
	}
}

func waitToResume(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(wait.Jitter(resumeInterval/2, 1)):
	}
}

// isAway reports whether an error is that no kube-apiserver is reached, or none that can read its store at present. What was
// answered and cannot be read is no such error.
func isAway(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// isCut reports whether an error that a watch ends with is that its connection was lost: it can go on where it was.
func isCut(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || !apierrors.HasStatusCause(err, decodingCause) {
		return false
	}
	return utilnet.IsHTTP2ConnectionLost(err) || strings.Contains(err.Error(), "stream error: ") || strings.Contains(err.Error(), "GOAWAY")
}

// decodingCause is the cause that client-go gives an event that could not be read.
const decodingCause = "ClientWatchDecoding"
