package cachehealth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// resumeInterval is at most how long a cache that kube-apiserver does not answer waits until it asks again. client-go's own
// waits double up to half a minute, over all interruptions of two minutes, and a watch that was cut off begins with a list: a
// component would learn of the next change that much later. There are some fifteen caches in a component.
const resumeInterval = time.Second

// settleTime is how long after it was away kube-apiserver may refuse what it grants as soon as it has read its roles and kinds.
const settleTime = 30 * time.Second

// untilAnswered repeats a request that kube-apiserver does not answer, or refuses as it may while it starts, until it is answered,
// or ctx ends. Each failure is reported.
func untilAnswered[T any](ctx context.Context, w *monitored, request func() (T, error)) (T, error) {
	for {
		result, err := request()
		if ctx.Err() != nil || !isAway(err) && !(isEarly(err) && w.wasAway()) {
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

// isAway reports whether no kube-apiserver is reached, or none that can read its store at present. An answer that cannot be read is no
// such error.
func isAway(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// isEarly recognizes the answers of a kube-apiserver that has just started to requests that it grants later.
func isEarly(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err)
}

// WaitForServer waits until the kube-apiserver at config is ready, or has answered for a while that it is not. A component that goes
// on without it ends, and its kubelet makes it wait longer each time.
func WaitForServer(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for kube-apiserver: %w", err)
	}
	var answered time.Time
	for logged := false; ; logged = true {
		err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if answer := apierrors.APIStatus(nil); answered.IsZero() && errors.As(err, &answer) {
			answered = time.Now()
		}
		if !isAway(err) || ctx.Err() != nil || !answered.IsZero() && time.Since(answered) > settleTime {
			return ctx.Err() // what else is wrong shows in what is asked next
		}
		if !logged {
			klog.FromContext(ctx).Info("waiting for kube-apiserver", "reason", err.Error())
		}
		waitToResume(ctx)
	}
}

// isCut reports whether a watch ended because its connection was lost: it can go on where it was.
func isCut(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || !apierrors.HasStatusCause(err, decodingCause) {
		return false
	}
	return utilnet.IsHTTP2ConnectionLost(err) || strings.Contains(err.Error(), "stream error: ") || strings.Contains(err.Error(), "GOAWAY")
}

// decodingCause is the cause that client-go gives an event that could not be read.
const decodingCause = "ClientWatchDecoding"
