package integration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/test/kube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// TestDNSSEC: a signed zone on two primaries and a secondary. Every server proves its answers by the DS records that the
// zone's status lists, also after the pod that signs has lost all it had; and a zone is signed, and unsigned, while it is
// served.
func TestDNSSEC(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "turned.test", 2, 1)
	f.runSub("signed from the start", func(f *fixture) {
		s := f.newZone(f.T, "signed.test", func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "default" })
		s.create(s.aRecord("signed-www", "www", "192.0.2.1"))
		s.waitServed("www.signed.test", "A", "192.0.2.1")
		ds := s.waitSigned()
		s.waitValidated(ds, "www.signed.test.")
		s.checkKeyAccess()

		old := s.pod("dns-primary-0-0")
		if err := s.client.Delete(s.Context(), old); err != nil {
			s.Fatal(err)
		}
		kube.Eventually(s, kube.Start, func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(old), pod); err != nil {
				return err
			}
			if pod.UID == old.UID || !status.PodReady(pod) {
				return errors.New("the pod is not back")
			}
			return nil
		})
		s.waitValidated(ds, "www.signed.test.")
		s.create(s.aRecord("signed-late", "late", "192.0.2.2"))
		s.waitServed("late.signed.test", "A", "192.0.2.2")
		s.waitValidated(ds, "late.signed.test.")
		if again := s.waitSigned(); !slices.Equal(again, ds) {
			s.Errorf("the DS records were %q and are %q", ds, again)
		}
		s.waitSecurity("arecord.signed-late", map[string]syncv1.Security{
			"dns-primary-0-0": syncv1.SecuritySecure, "dns-primary-1-0": syncv1.SecuritySecure, "dns-secondary-0-0": syncv1.SecuritySecure,
		}, metav1.ConditionTrue)
		s.checkBogus()
	})
	f.runSub("signed while served", func(f *fixture) {
		f.create(f.aRecord("www", "www", "192.0.2.1"))
		f.waitServed("www.turned.test", "A", "192.0.2.1")
		f.setPolicy("default")
		ds := f.waitSigned()
		f.waitValidated(ds, "www.turned.test.")

		f.setPolicy("none")
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			z, err := f.readZone(ctx)
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(z.Status.Conditions, "Ready")
			if z.Status.DNSSEC == nil || c == nil || !strings.Contains(c.Message, "stays signed") {
				return fmt.Errorf("status.dnssec is %v, Ready %v", z.Status.DNSSEC, c)
			}
			return nil
		})
		f.waitValidated(ds, "www.turned.test.")

		f.setPolicy("insecure")
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			z, err := f.readZone(ctx)
			if err == nil && z.Status.DNSSEC != nil {
				err = fmt.Errorf("status.dnssec is %+v", z.Status.DNSSEC)
			}
			return err
		})
		f.waitServed("turned.test", "DNSKEY")
		f.setPolicy("")
		f.create(f.aRecord("after", "after", "192.0.2.3"))
		f.waitServed("after.turned.test", "A", "192.0.2.3")
	})
}

// checkBogus: a zone whose parent, which is served here, has a DS record of another key is Bogus on all servers, and Secure when it has the
// right one. Until then its parent has none, and it is Insecure.
func (f *fixture) checkBogus() {
	f.Helper()
	all := func(security syncv1.Security) map[string]syncv1.Security {
		return map[string]syncv1.Security{"dns-primary-0-0": security, "dns-primary-1-0": security, "dns-secondary-0-0": security}
	}
	parent := f.zone
	child := f.newZone(f.T, "child."+parent, func(z *v1beta1.DNSZone) { z.Spec.DNSSECPolicy = "default" })
	child.create(child.aRecord("child-www", "www", "192.0.2.1"))
	child.waitServed("www.child."+parent, "A", "192.0.2.1")
	ds := child.waitSigned()
	f.create(f.nsRecord("child-ns", "child", "ns1.example.net."))
	child.waitSecurity("arecord.child-www", all(syncv1.SecurityInsecure), metav1.ConditionTrue)

	right := strings.Fields(ds[0])[4:]
	wrong := append(slices.Clone(right[:3]), strings.Repeat("0", len(right[3])))
	signer := f.dnsRecord("child-ds", "child", "DS", strings.Join(wrong, " "))
	f.create(signer)
	child.waitSecurity("arecord.child-www", all(syncv1.SecurityBogus), metav1.ConditionFalse)
	change(f, signer, func(r *v1beta1.DNSRecord) { r.Spec.Data = []string{strings.Join(right, " ")} })
	child.waitSecurity("arecord.child-www", all(syncv1.SecuritySecure), metav1.ConditionTrue)
}

// waitSecurity waits until the rows of a SyncStatus have some security, and its condition Validated a status.
func (f *fixture) waitSecurity(name string, want map[string]syncv1.Security, validated metav1.ConditionStatus) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		s, err := f.status(ctx, name)
		if err != nil {
			return err
		}
		for _, r := range s.Servers {
			if r.Security != want[r.Pod] || (r.Security == syncv1.SecurityBogus) != (r.SecurityCause != "") {
				return fmt.Errorf("%s on %s is %s %s, want %s: %s", name, r.Pod, r.Security, r.SecurityCause, want[r.Pod], r.Message)
			}
		}
		if c := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionValidated); len(s.Servers) != len(want) || c == nil || c.Status != validated {
			return fmt.Errorf("%s: %d rows, Validated %v, want %s", name, len(s.Servers), c, validated)
		}
		return nil
	})
}

// checkKeyAccess: Kubernetes lets the account of the pod that signs read the Secret of the zone's keys, and refuses it to
// those of the zone's other servers. None may list Secrets.
func (f *fixture) checkKeyAccess() {
	f.Helper()
	var secrets corev1.SecretList
	if err := f.client.List(f.Context(), &secrets, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	at := slices.IndexFunc(secrets.Items, func(s corev1.Secret) bool { return s.Annotations[v1beta1.ZoneAnnotation] == f.zone })
	if at < 0 {
		f.Fatalf("no Secret has the keys of %s", f.zone)
	}
	for pod, signs := range map[string]bool{"dns-primary-0-0": true, "dns-primary-1-0": false, "dns-secondary-0-0": false} {
		account := f.pod(pod).Spec.ServiceAccountName
		for verb, want := range map[string]bool{"get": signs, "patch": signs, "list": false, "delete": false} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + f.namespace + ":" + account,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + f.namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: f.namespace, Verb: verb, Version: "v1", Resource: "secrets", Name: secrets.Items[at].Name,
				},
			}}
			if err := f.client.Create(f.Context(), review); err != nil {
				f.Fatal(err)
			}
			if review.Status.Allowed != want {
				f.Errorf("pod %s, as account %s: %s of the zone's keys is allowed: %t", pod, account, verb, review.Status.Allowed)
			}
		}
	}
}

// setPolicy sets the zone's dnssecPolicy.
func (f *fixture) setPolicy(policy string) {
	f.Helper()
	change(f, &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.object}}, func(z *v1beta1.DNSZone) {
		z.Spec.DNSSECPolicy = policy
	})
}

func (f *fixture) readZone(ctx context.Context) (*v1beta1.DNSZone, error) {
	z := &v1beta1.DNSZone{}
	return z, f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: f.object}, z)
}

// waitSigned waits until the zone's status lists DS records, and returns them.
func (f *fixture) waitSigned() (ds []string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		z, err := f.readZone(ctx)
		if err != nil {
			return err
		}
		if z.Status.DNSSEC == nil || !z.Status.DNSSEC.Signed || len(z.Status.DNSSEC.DSRecords) == 0 {
			return fmt.Errorf("status.dnssec is %+v", z.Status.DNSSEC)
		}
		ds = z.Status.DNSSEC.DSRecords
		return nil
	})
	return ds
}

// waitValidated waits until every server proves the addresses of a name by the DS records.
func (f *fixture) waitValidated(ds []string, name string) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if err := bind.Validate(ctx, netip.MustParseAddrPort(server), ds, name, dns.TypeA); err != nil {
				return fmt.Errorf("%s: %w", pod, err)
			}
		}
		if len(servers) < f.size {
			return fmt.Errorf("only %d of %d servers run", len(servers), f.size)
		}
		return nil
	})
}

func (f *fixture) pod(name string) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, pod); err != nil {
		f.Fatal(err)
	}
	return pod
}
