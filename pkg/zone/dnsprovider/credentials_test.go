package dnsprovider

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/fleet/keyrotation"
)

// countingReader is what kube-apiserver answers to a question for a Secret; it counts the questions.
type countingReader struct {
	client.Reader
	err   error
	asked int
}

func (r *countingReader) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if r.asked++; r.err != nil {
		return r.err
	}
	o.(*corev1.Secret).Data = map[string][]byte{"username": []byte("admin"), "password": []byte("correct-horse")}
	return nil
}

func providerWithPassword(endpoints ...string) *v1beta1.DNSProvider {
	p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "etcd", UID: "1", Generation: 1}}
	p.Spec.CoreDNS = &v1beta1.CoreDNSProvider{Etcd: v1beta1.EtcdStore{Endpoints: endpoints, CredentialsSecretRef: &v1beta1.ProviderSecret{Name: "database"}}}
	return p
}

// A provider that was stored with a password and an endpoint without TLS: the password is not even read, and the status says why.
func TestPasswordNeedsTLS(t *testing.T) {
	for endpoints, usable := range map[string]bool{
		"https://a:2379": true, "http://a:2379": false, "https://a:2379 http://b:2379": false, "HTTPS://a:2379": false,
	} {
		reader := &countingReader{}
		b, p := &Backends{Reader: reader}, providerWithPassword(strings.Fields(endpoints)...)
		if _, err := b.Of(t.Context(), p); (err == nil) != usable || (reader.asked > 0) != usable {
			t.Errorf("%s: error %v after %d reads of the Secret", endpoints, err, reader.asked)
		}
		if usable {
			continue
		}
		facts := (&reconciler{stores: b}).probe(t.Context(), p, nil)
		conditions := status.Provider(p.Status, facts, time.Now()).Conditions
		ready := meta.FindStatusCondition(conditions, status.Ready)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != status.Unsupported || !strings.Contains(ready.Message, "used with https only") {
			t.Errorf("%s: condition %+v", endpoints, ready)
		}
		if reader.asked > 0 {
			t.Errorf("%s: the Secret is read for the status", endpoints)
		}
	}
}

// What a status says about a Secret is the same whether there is one or not.
func TestUnreadableSecretsAreAlike(t *testing.T) {
	resource := corev1.Resource("secrets")
	var said []string
	for _, err := range []error{
		apierrors.NewNotFound(resource, "database"),
		apierrors.NewForbidden(resource, "database", errors.New(`User "system:serviceaccount:lockstep-system:lockstep-controller" cannot get resource "secrets"`)),
	} {
		reader := &countingReader{err: err}
		_, store := (&Backends{Reader: reader}).Of(t.Context(), providerWithPassword("https://a:2379"))
		_, key := keyrotation.NewCache(reader).Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "database"})
		if store == nil || key == nil {
			t.Fatalf("errors %v and %v", store, key)
		}
		said = append(said, store.Error()+"\n"+key.Error()+"\n"+keyProblem(client.ObjectKey{Name: "database"}, key))
	}
	if said[0] != said[1] {
		t.Errorf("a missing Secret and a forbidden one differ:\n%s\n\n%s", said[0], said[1])
	}
}
