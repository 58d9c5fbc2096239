package registry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dns/lockstep/apiserver/desired"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// pageToken is a continue token: where the last page ended, and the resourceVersion of the first, which all have (the contract of
// kube-apiserver, where all pages are of one revision). See store.ListRevision for what has changed between them.
type pageToken struct {
	ResourceVersion string `json:"rv"`
	Namespace       string `json:"ns"`
	Name            string `json:"name"`
}

func (p pageToken) encode() string {
	raw, _ := json.Marshal(p) // strings
	return base64.RawURLEncoding.EncodeToString(raw)
}

// skipPages removes what earlier pages have had, by the token of the last; "" is that of none.
func skipPages(token string, keys []desired.Key) (p pageToken, rest []desired.Key, err error) {
	if token == "" {
		return p, keys, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, nil, apierrors.NewBadRequest(fmt.Sprintf("continue token %.40q is not one of this API's", token))
	}
	kind, name, ok := subject.ParseName(p.Name)
	if !ok {
		return p, nil, apierrors.NewBadRequest("the continue token names no object of this API")
	}
	last := desired.Key{Kind: kind.Kind, Namespace: p.Namespace, Name: name}
	i, found := slices.BinarySearchFunc(keys, last, compareKeys)
	if found {
		i++
	}
	return p, keys[i:], nil
}

// compareKeys is the order of lists: namespace, then the SyncStatus's name.
func compareKeys(a, b desired.Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	if a.Kind != b.Kind {
		return strings.Compare(strings.ToLower(a.Kind), strings.ToLower(b.Kind))
	}
	return strings.Compare(a.Name, b.Name)
}

func nameOf(key desired.Key) string { return subject.Name(key.Kind, key.Name) }
