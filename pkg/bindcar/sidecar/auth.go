package sidecar

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dns/lockstep/pkg/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/bindcar/httperror"
)

// tokenReviewer returns the user of a token, which is empty when the token is not valid for our audience.
type tokenReviewer func(ctx context.Context, token string) (user string, err error)

// newTokenReviewer returns a reviewer that asks the Kubernetes API.
func newTokenReviewer(clients kubernetes.Interface) tokenReviewer {
	reviews := clients.AuthenticationV1().TokenReviews()
	return func(ctx context.Context, token string) (string, error) {
		review, err := reviews.Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{bindcar.Audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, bindcar.Audience) {
			return "", nil
		}
		return review.Status.User.Username, nil
	}
}

// Reviews are cached: those of accounts with rights for a minute, so that a deleted ServiceAccount loses access soon, others
// long enough to make guessing cheap for us.
const (
	acceptedTTL      = time.Minute
	refusedTTL       = 10 * time.Second
	maxCachedReviews = 256
)

// accessLevel is what an account may do; each level includes those before.
type accessLevel int

const (
	// readNotifications is which zones have a new serial.
	readNotifications accessLevel = iota + 1
	// fullAccess is everything.
	fullAccess
)

// authenticator decides who may use the API.
type authenticator struct {
	review tokenReviewer
	levels map[string]accessLevel
	// limiter bounds the requests to the Kubernetes API, whoever sends us tokens.
	limiter *rate.Limiter
	// reviewed has the user by the digest of a token; tokens themselves are not kept.
	reviewed *cache.LRUExpireCache
}

func newAuthenticator(review tokenReviewer, controllers, readers []string) *authenticator {
	levels := make(map[string]accessLevel, len(controllers)+len(readers))
	grant := func(accounts []string, level accessLevel) {
		for _, account := range accounts {
			user := "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)
			levels[user] = max(levels[user], level)
		}
	}
	grant(controllers, fullAccess)
	grant(readers, readNotifications)
	return &authenticator{review: review, levels: levels, limiter: rate.NewLimiter(10, 50), reviewed: cache.NewLRUExpireCache(maxCachedReviews)}
}

// authorize returns nil when the request carries the token of an account with the access level.
func (a *authenticator) authorize(r *http.Request, needed accessLevel) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !ok || token == "" {
		return httperror.New(http.StatusUnauthorized, "authentication required", "send a ServiceAccount token for the audience "+bindcar.Audience+" as Bearer token")
	}
	user, err := a.userOf(r.Context(), token)
	switch {
	case err != nil:
		return err
	case user == "":
		return httperror.New(http.StatusUnauthorized, "invalid token", "the token is expired or not made for the audience "+bindcar.Audience)
	case a.levels[user] == readNotifications && needed > readNotifications:
		return httperror.New(http.StatusForbidden, "forbidden", user+" may read notices and nothing else")
	case a.levels[user] < needed:
		return httperror.New(http.StatusForbidden, "forbidden", user+" may not use this API")
	}
	return nil
}

func (a *authenticator) userOf(ctx context.Context, token string) (string, error) {
	digest := sha256.Sum256([]byte(token))
	if user, ok := a.reviewed.Get(digest); ok {
		return user.(string), nil
	}
	if !a.limiter.Allow() {
		return "", httperror.New(http.StatusTooManyRequests, "too many requests", "too many tokens to check")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	user, err := a.review(ctx, token)
	if err != nil {
		return "", httperror.New(http.StatusServiceUnavailable, "cannot check the token", err.Error())
	}
	ttl := refusedTTL
	if a.levels[user] > 0 {
		ttl = acceptedTTL
	}
	a.reviewed.Add(digest, user, ttl)
	return user, nil
}
