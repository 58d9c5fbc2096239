package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestKeyRotation replaces keys in every way that there is, all at the same time: both of a cluster under a load of records
// and of a client that updates by itself, one in a user's own Secret, and one that has reached its age. No update and no
// transfer may fail, no pod restarts, and at the end the old keys are worth nothing.
func TestKeyRotation(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "rotation.example", 2, 1)
	alone := *f
	alone.namespace = kube.Namespace(t, "alone")
	mine := &corev1.Secret{ObjectMeta: alone.meta("mine", nil), StringData: map[string]string{"key-name": "Mine.", "secret": "b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xk"}}
	user, auto := alone.standalone("user"), alone.standalone("auto")
	user.Spec.RNDCKey = &v1beta1.RNDCKeyConfig{SecretRef: &v1beta1.RNDCSecretRef{Name: "mine"}, AutoRotate: true}
	auto.Spec.RNDCKey = &v1beta1.RNDCKeyConfig{AutoRotate: true, RotateAfter: "1h"}
	f.create(mine, user, auto)
	alone.kubectl("wait", "--for=condition=Ready", "bind9instance", "--all", "--timeout=180s")
	pods := slices.Concat(f.podStates(), alone.podStates())

	old := map[string]*wire.Key{}
	for owner, f := range map[string]*fixture{"dns": f, "user": &alone, "auto": &alone} {
		for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
			old[named.KeyringSecretName(owner, role)] = f.activeKey(f.Context(), owner, role)
		}
	}
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	refusals := f.followRefusals(f.Context())
	records, foreign := f.declareSteadily(ctx), f.updateSteadily(ctx)

	fresh := f.replaceKeys()
	for role := range fresh {
		alone.age(named.KeyringSecretName("auto", role), 2*time.Hour)
	}
	change(f, mine, func(s *corev1.Secret) { s.Data["secret"] = []byte("bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3") })

	began := time.Now()
	for name, before := range old {
		switch owner, _, _ := strings.Cut(name, "-"); {
		case owner == "dns":
			f.waitRotated(name, before)
		case name != named.KeyringSecretName("user", named.KeyTransfer): // Nobody changed that one.
			alone.waitRotated(name, before)
		}
	}
	f.Logf("the keys are replaced after %s", time.Since(began).Round(time.Second))
	cancel()
	lines, updates := <-records, <-foreign
	f.Logf("%d records were declared and %d updates sent meanwhile", len(lines), len(updates))
	f.waitSameContent(kube.Start, passesBoth(contains(lines...), contains(updates...)))
	for _, refusal := range refusals() {
		f.Errorf("meanwhile the zone said %s", refusal)
	}
	f.noKeyRefused()
	for _, name := range []string{"user", "auto"} {
		rotated := &v1beta1.Bind9Instance{ObjectMeta: alone.meta(name, nil)}
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(rotated), rotated); err != nil {
			f.Fatal(err)
		}
		alone.waitEvent(rotated, "Normal KeyRotated", "it signs from now on")
		alone.isDescribed("KeyRotated", "bind9instance/"+name)
	}
	if after := slices.Concat(f.podStates(), alone.podStates()); !slices.Equal(pods, after) {
		f.Errorf("pods %v became %v", pods, after)
	}
	f.oldKeysAreWorthNothing(old)
	f.freshKeysWork(fresh)
	f.waitRotationReported(map[string]bool{"dns-primary-0": false, "dns-secondary-0": false})
	alone.waitRotationReported(map[string]bool{"user": false, "auto": true})
	f.testNamesakeRefused()
}

// standalone declares a primary without a cluster.
func (f *fixture) standalone(name string) *v1beta1.Bind9Instance {
	i := &v1beta1.Bind9Instance{ObjectMeta: f.meta(name, nil)}
	i.Spec.Role = v1beta1.RolePrimary
	return i
}

// activeKey is the key to sign with at this moment.
func (f *fixture) activeKey(ctx context.Context, owner string, role named.KeyRole) *wire.Key {
	f.Helper()
	secret := &corev1.Secret{}
	err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: named.KeyringSecretName(owner, role)}, secret)
	if err != nil {
		f.Error(err)
		return &wire.Key{}
	}
	key, err := named.KeyFromSecret(secret)
	if err != nil {
		f.Error(err)
		return &wire.Key{}
	}
	return key
}

// replaceKeys replaces both keys of the cluster dns, as its users do.
func (f *fixture) replaceKeys() (fresh map[named.KeyRole]*wire.Key) {
	f.Helper()
	fresh = map[named.KeyRole]*wire.Key{}
	for _, role := range []named.KeyRole{named.KeyUpdate, named.KeyTransfer} {
		key, err := named.NewKey(f.namespace, "dns", role)
		if err != nil {
			f.Fatal(err)
		}
		fresh[role] = key
		change(f, &corev1.Secret{ObjectMeta: f.meta(named.KeySecretName("dns", role), nil)}, func(s *corev1.Secret) { s.Data = named.KeyData(key) })
	}
	return fresh
}

// declareSteadily creates a record every second, and sends what they are in DNS once the context ends.
func (f *fixture) declareSteadily(ctx context.Context) <-chan []string {
	out := make(chan []string, 1)
	go func() {
		var lines []string
		for n := 0; ctx.Err() == nil; n++ {
			record := f.aRecord(fmt.Sprint("steady-", n), fmt.Sprint("r", n), "192.0.2.1")
			if err := retryWhile(f.Context(), kube.Settle, func(error) bool { return true }, func(ctx context.Context) error {
				err := f.client.Create(ctx, record.DeepCopy())
				if apierrors.IsAlreadyExists(err) {
					return nil // by a request whose answer was lost
				}
				return err
			}); err != nil {
				f.Error(err)
			}
			lines = append(lines, fmt.Sprintf("r%d.rotation.example. 3600 A 192.0.2.1", n))
			time.Sleep(time.Second)
		}
		out <- lines
	}()
	return out
}

// updateSteadily is a client that updates a primary by itself, with the key that is to be signed with at the time. It asks again when no
// answer comes, but a refusal is one.
func (f *fixture) updateSteadily(ctx context.Context) <-chan []string {
	out := make(chan []string, 1)
	servers, err := f.servers(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	go func() {
		var lines []string
		for n := 0; ctx.Err() == nil; n++ {
			line := fmt.Sprintf("u%d.rotation.example. 300 A 192.0.2.2", n)
			if err := retryWhile(f.Context(), kube.Settle, isSilence, func(ctx context.Context) error {
				key := f.activeKey(ctx, "dns", named.KeyUpdate)
				if err := sendUpdate(ctx, servers["dns-primary-0-0"], f.zone, key, addRecords(line)); err != nil {
					return fmt.Errorf("update %d with key %s: %w", n, key, err)
				}
				return nil
			}); err != nil {
				f.Error(err)
			}
			lines = append(lines, line)
			time.Sleep(time.Second)
		}
		out <- lines
	}()
	return out
}

// age makes a ring's key, and the last switch to another one, older than they are.
func (f *fixture) age(name string, by time.Duration) {
	f.Helper()
	change(f, &corev1.Secret{ObjectMeta: f.meta(name, nil)}, func(s *corev1.Secret) {
		ring, err := named.KeyringFromSecret(s)
		if err != nil {
			f.Fatal(err)
		}
		ring.Keys[0].Since, ring.SwitchedAt = ring.Keys[0].Since.Add(-by), ring.SwitchedAt.Add(-by)
		if s.Data["keys.json"], err = json.Marshal(ring); err != nil {
			f.Fatal(err)
		}
	})
}

// readRing returns what a ring holds.
func (f *fixture) readRing(ctx context.Context, name string) (layout.KeyNames, error) {
	secret := &corev1.Secret{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, secret); err != nil {
		return layout.KeyNames{}, err
	}
	ring, err := named.KeyringFromSecret(secret)
	return ring.Names(), err
}

// waitRing waits until what a ring holds is as wanted.
func (f *fixture) waitRing(name string, wanted func(layout.KeyNames) bool) {
	f.Helper()
	kube.Eventually(f, kube.Roll, func(ctx context.Context) error {
		names, err := f.readRing(ctx, name)
		if err == nil && !wanted(names) {
			err = fmt.Errorf("%s has %+v", name, names)
		}
		return err
	})
}

// waitRotated waits until a ring holds nothing but another key.
func (f *fixture) waitRotated(name string, before *wire.Key) {
	f.Helper()
	f.waitRing(name, func(names layout.KeyNames) bool { return names.Active != before.Name && len(names.Accepted) == 1 })
}

// podStates returns a line for each pod that changes when the pod or a container is replaced.
func (f *fixture) podStates() []string {
	f.Helper()
	var pods corev1.PodList
	if err := f.client.List(f.Context(), &pods, client.InNamespace(f.namespace), client.MatchingLabels{named.LabelName: named.AppName}); err != nil {
		f.Fatal(err)
	}
	var states []string
	for _, pod := range pods.Items {
		restarts := int32(0)
		for _, c := range pod.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		states = append(states, fmt.Sprint(pod.Name, " ", pod.UID, " ", restarts))
	}
	slices.Sort(states)
	return states
}

// keyProbe is what named 9.20 logs when its sidecar asks whether it has loaded a key, with another secret, as there is no rndc tsig-list.
var keyProbe = regexp.MustCompile(` client @\S+ 127\.0\.0\.1#\d+: request has invalid signature: TSIG \S+: tsig verify failure \((BADSIG|BADKEY)\)$`)

// noKeyRefused reads what the servers of the cluster have logged.
func (f *fixture) noKeyRefused() {
	f.Helper()
	for _, pod := range []string{"dns-primary-0-0", "dns-primary-1-0", "dns-secondary-0-0"} {
		for line := range strings.Lines(f.kubectl("logs", pod, "-c", "named")) {
			if keyProbe.MatchString(strings.TrimSpace(line)) {
				continue
			}
			for _, bad := range []string{"BADKEY", "BADSIG", "tsig verify failure", "tsig indicates error", "denied", "REFUSED", "NOTAUTH", "unable to find key"} {
				if strings.Contains(line, bad) {
					f.Errorf("%s: %s", pod, line)
				}
			}
		}
	}
}

func (f *fixture) oldKeysAreWorthNothing(old map[string]*wire.Key) {
	f.Helper()
	kube.Eventually(f, kube.Roll, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, server := range servers {
			if _, err := transferZone(ctx, server, f.zone, old[named.KeyringSecretName("dns", named.KeyTransfer)]); err == nil {
				return fmt.Errorf("%s lets the old key transfer", pod)
			}
			if err := sendUpdate(ctx, server, f.zone, old[named.KeyringSecretName("dns", named.KeyUpdate)], addRecords("stale."+f.zone+". 300 A 192.0.2.1")); err == nil {
				return fmt.Errorf("%s lets the old key update", pod)
			}
		}
		return nil
	})
}

// freshKeysWork under the name that they were given.
func (f *fixture) freshKeysWork(fresh map[named.KeyRole]*wire.Key) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		if _, err := transferZone(ctx, servers["dns-secondary-0-0"], f.zone, fresh[named.KeyTransfer]); err != nil {
			return err
		}
		return sendUpdate(ctx, servers["dns-primary-1-0"], f.zone, fresh[named.KeyUpdate], addRecords("fresh."+f.zone+". 300 A 192.0.2.1"))
	})
	f.waitSameContent(kube.Settle, contains("fresh."+f.zone+". 300 A 192.0.2.1"))
}

// waitRotationReported in the status of the instances; want says of each whether its key will be replaced in time.
func (f *fixture) waitRotationReported(want map[string]bool) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		for name, due := range want {
			i := &v1beta1.Bind9Instance{}
			if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, i); err != nil {
				return err
			}
			r := i.Status.RNDCKeyRotation
			if r == nil || r.CreatedAt == nil || r.LastRotatedAt == nil || r.RotationCount != 1 || (r.RotateAt != nil) != due {
				return fmt.Errorf("%s reports the rotation %+v", name, r)
			}
		}
		return nil
	})
}

// testNamesakeRefused: an instance with the name of the cluster does not get the cluster's keys.
func (f *fixture) testNamesakeRefused() {
	f.Helper()
	namesake := f.standalone("dns")
	f.create(namesake)
	waitCondition(f, namesake, instanceConditions,
		"Ready", metav1.ConditionFalse, "ConfigurationInvalid", "Bind9Cluster dns", "different names")
	if err := f.client.Delete(f.Context(), namesake); err != nil {
		f.Fatal(err)
	}
}

// keyRefusals are the errors of a server that does not accept a key, or may not be believed.
var keyRefusals = []*wire.Error{
	{TSIGError: dns.RcodeBadKey}, {TSIGError: dns.RcodeBadSig}, {TSIGError: dns.RcodeBadTrunc},
	{Rcode: dns.RcodeNotAuth, Err: wire.ErrUnsigned}, {Rcode: dns.RcodeRefused},
	{Err: wire.ErrUnsigned}, {Err: wire.ErrSignature},
}

// isSilence reports whether a request got no answer, neither a good one nor a refusal.
func isSilence(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Rcode == dns.RcodeSuccess && e.TSIGError == 0 && e.Transient() && !errors.Is(err, wire.ErrReply)
}

// refusesKey reports whether a reason or a message of a status says that a server has refused a key. That a server cannot be reached is
// no refusal.
func refusesKey(reason, message string) bool {
	return slices.ContainsFunc(keyRefusals, func(e *wire.Error) bool { return reason == e.Reason() || strings.Contains(message, e.Detail()) })
}

// followRefusals follows the zone's status until ctx ends. The returned function then returns all that it has said of refused keys.
func (f *fixture) followRefusals(ctx context.Context) (said func() []string) {
	f.Helper()
	var mu sync.Mutex
	var all []string
	followObjects(ctx, f.T, f.namespace, &v1beta1.DNSZone{}, func(zone *v1beta1.DNSZone) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range append(slices.Clone(zone.Status.Conditions), metav1.Condition{Type: "Failure", Reason: zone.Status.FailureReason, Message: zone.Status.FailureMessage}) {
			if text := fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message); refusesKey(c.Reason, c.Message) && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}
