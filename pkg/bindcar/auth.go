package bindcar

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewer asks who a token belongs to. The user is empty when the token is not good for our audience.
type reviewer func(ctx context.Context, token string) (user string, err error)

// inCluster asks the Kubernetes API, with the credentials of the pod.
func inCluster() (reviewer, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("preparing to check tokens: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to check tokens: %w", err)
	}
	reviews := clients.AuthenticationV1().TokenReviews()
	return func(ctx context.Context, token string) (string, error) {
		review, err := reviews.Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, Audience) {
			return "", nil
		}
		return review.Status.User.Username, nil
	}, nil
}

// Answers about a token are kept: good ones a minute, so that a deleted ServiceAccount loses access soon, bad ones long
// enough to make guessing cheap for us.
const (
	goodFor    = time.Minute
	badFor     = 10 * time.Second
	maxReviews = 256
)

type review struct {
	user  string
	until time.Time
}

// right is what an account may do; each includes those before.
type right int

const (
	// mayListen is for notices: which zones have a new serial.
	mayListen right = iota + 1
	// mayControl is for everything.
	mayControl
)

// authenticator decides who may use the API. It keeps digests of tokens, never a token.
type authenticator struct {
	review reviewer
	rights map[string]right
	// reviews limits how often the Kubernetes API is asked, whoever sends us tokens.
	reviews *rate.Limiter

	mu    sync.Mutex
	known map[[sha256.Size]byte]review
}

func newAuthenticator(r reviewer, controllers, listeners []string) *authenticator {
	rights := make(map[string]right, len(controllers)+len(listeners))
	grant := func(accounts []string, to right) {
		for _, account := range accounts {
			user := "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)
			rights[user] = max(rights[user], to)
		}
	}
	grant(controllers, mayControl)
	grant(listeners, mayListen)
	return &authenticator{review: r, rights: rights, reviews: rate.NewLimiter(10, 50), known: map[[sha256.Size]byte]review{}}
}

// check returns nil when the request carries the token of an account with the right.
func (a *authenticator) check(r *http.Request, needed right) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token = strings.TrimSpace(token); !ok || token == "" {
		return failure(http.StatusUnauthorized, "authentication required", "send a ServiceAccount token for the audience "+Audience+" as Bearer token")
	}
	user, err := a.user(r.Context(), token)
	switch {
	case err != nil:
		return err
	case user == "":
		return failure(http.StatusUnauthorized, "invalid token", "the token is expired or not made for the audience "+Audience)
	case a.rights[user] == mayListen && needed > mayListen:
		return failure(http.StatusForbidden, "forbidden", user+" may read notices and nothing else")
	case a.rights[user] < needed:
		return failure(http.StatusForbidden, "forbidden", user+" may not use this API")
	}
	return nil
}

func (a *authenticator) user(ctx context.Context, token string) (string, error) {
	digest := sha256.Sum256([]byte(token))
	a.mu.Lock()
	known, ok := a.known[digest]
	a.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.user, nil
	}
	if !a.reviews.Allow() {
		return "", failure(http.StatusTooManyRequests, "too many requests", "too many tokens to check")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	user, err := a.review(ctx, token)
	if err != nil {
		return "", failure(http.StatusServiceUnavailable, "cannot check the token", err.Error())
	}
	life := badFor
	if a.rights[user] > 0 {
		life = goodFor
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxReviews {
		clear(a.known)
	}
	a.known[digest] = review{user, time.Now().Add(life)}
	return user, nil
}
