package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/plan"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/zone/host"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/coredns"
	"github.com/lockstep-dns/lockstep/pkg/zone/host/hosttest"
	"github.com/lockstep-dns/lockstep/test/coredns/servers"
)

// addressOf returns an RRset of a zone.
func addressOf(zone, address string) rrset.RRset {
	return rrset.New(rrset.Key{Name: "a." + zone, Type: 1}, 60, address)
}

// isReason fails the test unless an error has a reason and a remedy.
func isReason(t *testing.T, err error, reason string) {
	t.Helper()
	if failure, ok := errors.AsType[*host.Error](err); !ok || failure.Reason != reason || failure.Remedy == "" {
		t.Errorf("error %v (%+v), want reason %s and a remedy", err, failure, reason)
		return
	}
	t.Log(err)
}

// TestTLSAndCredentials: both work, and whatever is wrong with them is said.
func TestTLSAndCredentials(t *testing.T) {
	certificates, foreign := servers.NewCertificates(t), servers.NewCertificates(t)
	w := &world{etcd: servers.StartEtcd(t, servers.EtcdOptions{TLS: certificates}), zones: []string{"z.test."}}
	w.etcd.EnableAuth("lockstep", "secret", "/skydns/")
	w.coreDNS = servers.StartCoreDNS(t, w.etcd, w.zones,
		fmt.Sprintf("tls %s %s %s\n credentials lockstep secret", certificates.ClientCert, certificates.ClientKey, certificates.CA), "")
	zone := w.zones[0]
	want := hosttest.MapOf(addressOf(zone, "192.0.2.1"))
	good := func(o *coredns.Options) { o.Username, o.Password = "lockstep", "secret" }
	if refused, _, err := hosttest.Sync(t.Context(), w.backend(t, good), zone, want); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	for key, set := range want {
		if got := w.coreDNS.Ask(t, key); !got.Equal(set) {
			t.Errorf("answered %s", got)
		}
	}
	elsewhere := newProxy(t, strings.TrimPrefix(w.etcd.Endpoints[0], "https://"))
	for name, tc := range map[string]struct {
		change func(*coredns.Options)
		reason string
	}{
		"wrong password":    {func(o *coredns.Options) { o.Username, o.Password = "lockstep", "wrong" }, "AuthenticationFailed"},
		"unknown user":      {func(o *coredns.Options) { o.Username, o.Password = "nobody", "secret" }, "AuthenticationFailed"},
		"no credentials":    {func(*coredns.Options) {}, "PermissionDenied"},
		"no permission":     {func(o *coredns.Options) { good(o); o.Prefix = "/elsewhere" }, "PermissionDenied"},
		"foreign authority": {func(o *coredns.Options) { good(o); o.TLS = foreign.Client }, "CertificateFailed"},
		"no certificate":    {func(o *coredns.Options) { good(o); o.TLS = &tls.Config{RootCAs: certificates.Client.RootCAs} }, "CertificateFailed"},
		"unknown authority": {func(o *coredns.Options) { good(o); o.TLS = &tls.Config{RootCAs: x509.NewCertPool()} }, "CertificateFailed"},
		"other host":        {func(o *coredns.Options) { good(o); o.Endpoints = []string{"https://" + elsewhere.address} }, "CertificateFailed"},
		"address not permitted": {func(o *coredns.Options) {
			good(o)
			o.Account = outbound.NewGate(nil, outbound.Limits{}).Account("team", "corp", 1)
		}, "Unreachable"},
		"nobody listening":     {func(o *coredns.Options) { good(o); o.Endpoints = []string{"https://127.0.0.1:1"} }, "Unreachable"},
		"name without address": {func(o *coredns.Options) { good(o); o.Endpoints = []string{"https://nobody.invalid:2379"} }, "Unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := w.backend(t, func(o *coredns.Options) { tc.change(o); o.Timeout = 5 * time.Second })
			_, err := b.Observe(t.Context(), zone)
			isReason(t, err, tc.reason)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("the error has a secret")
			}
		})
	}
}

// TestNoSpace: when etcd takes no more data, that is said, what is there stays, and once there is space the zone is complete.
func TestNoSpace(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{Quota: 16 << 20}, "", "")
	b, zone := w.backend(t, nil), w.zone()
	first := hosttest.MapOf(addressOf(zone, "192.0.2.1"))
	if _, _, err := hosttest.Sync(t.Context(), b, zone, first); err != nil {
		t.Fatal(err)
	}
	client, filler := w.etcd.Client, strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if _, err := client.Put(t.Context(), fmt.Sprintf("/filler/%d", i), filler); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil || i > 100 {
			t.Fatal(i, err)
		}
	}
	second := hosttest.MapOf(addressOf(zone, "192.0.2.2"))
	_, _, err := hosttest.Sync(t.Context(), b, zone, second)
	isReason(t, err, "NoSpace")
	for key, set := range first {
		if got := w.coreDNS.Ask(t, key); !got.Equal(set) {
			t.Errorf("answered %s, want %s", got, set)
		}
	}
	freeSpace(t, w.etcd)
	if _, _, err := hosttest.Sync(t.Context(), b, zone, second); err != nil {
		t.Fatal(err)
	}
	for key, set := range second {
		if got := w.coreDNS.Ask(t, key); !got.Equal(set) {
			t.Errorf("answered %s, want %s", got, set)
		}
	}
}

// freeSpace does what the remedy says.
func freeSpace(t *testing.T, e *servers.Etcd) {
	t.Helper()
	ctx, client := t.Context(), e.Client
	deleted, err := client.Delete(ctx, "/filler/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(ctx, deleted.Header.GetRevision(), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(ctx, e.Endpoints[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
}

// TestNoQuorum: without a majority of members nothing is written, and that is said; with it everything goes on.
func TestNoQuorum(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{Members: 3}, "", "")
	b, zone := w.backend(t, nil), w.zone()
	first, second := hosttest.MapOf(addressOf(zone, "192.0.2.1")), hosttest.MapOf(addressOf(zone, "192.0.2.2"))
	if _, _, err := hosttest.Sync(t.Context(), b, zone, first); err != nil {
		t.Fatal(err)
	}
	w.etcd.Stop(0)
	if _, _, err := hosttest.Sync(t.Context(), b, zone, second); err != nil {
		if failure, ok := errors.AsType[*host.Error](err); !ok || !failure.Temporary {
			t.Fatal(err)
		}
	}
	w.etcd.Stop(1)
	servers.Eventually(t, "the reason is not NoQuorum", func() error {
		_, _, err := hosttest.Sync(t.Context(), b, zone, first)
		if failure, ok := errors.AsType[*host.Error](err); ok && failure.Reason == "NoQuorum" {
			return nil
		}
		return fmt.Errorf("%w", err)
	})
	w.etcd.Start(0)
	w.etcd.Start(1)
	servers.Eventually(t, "it does not go on", func() error {
		_, _, err := hosttest.Sync(t.Context(), b, zone, second)
		return err
	})
	for key, set := range second {
		if got := w.coreDNS.Ask(t, key); !got.Equal(set) {
			t.Errorf("answered %s, want %s", got, set)
		}
	}
}

// TestCompaction: a zone of several pages is read whole while others write and compact. One that is larger than it may be is not.
func TestCompaction(t *testing.T) {
	w := newWorld(t, servers.EtcdOptions{}, "", "")
	b, zone := w.backend(t, nil), w.zone()
	want := hosttest.ManySets(zone, 12_000)
	if _, _, err := hosttest.Sync(t.Context(), b, zone, want); err != nil {
		t.Fatal(err)
	}
	small := w.backend(t, func(o *coredns.Options) { o.MaxBytes = 1 << 20 })
	_, err := small.Observe(t.Context(), zone)
	isReason(t, err, "TooLarge")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			reply, err := w.etcd.Client.Put(ctx, "/other", fmt.Sprint(i))
			if err == nil {
				_, _ = w.etcd.Client.Compact(ctx, reply.Header.GetRevision())
			}
		}
	}()
	for range 5 {
		seen, err := b.Observe(t.Context(), zone)
		if err != nil || seen.Content.Len() != len(want) {
			t.Fatalf("%v, error %v", seen.Content, err)
		}
	}
}

// TestValueBetween: somebody else writes one of the keys of a change after the look. That one is not touched, and the change is planned again.
func TestValueBetween(t *testing.T) {
	w := &world{etcd: servers.StartEtcd(t, servers.EtcdOptions{})}
	zone, want := "z.test.", hosttest.ManySets("z.test.", 500)
	b, other := w.backend(t, func(*coredns.Options) {}), w.backend(t, func(o *coredns.Options) { o.Owner = "team/other" })
	seen, err := b.Observe(t.Context(), zone)
	if err != nil {
		t.Fatal(err)
	}
	key := rrset.Key{Name: "h00100." + zone, Type: 1}
	if _, _, err := hosttest.Sync(t.Context(), other, zone, hosttest.MapOf(want[key])); err != nil {
		t.Fatal(err)
	}
	changes := plan.Calculate(want, seen.Content, seen.Ours, rrset.SOA{}, rrset.SOA{})
	if _, err := b.Apply(t.Context(), zone, changes, seen); !errors.Is(err, host.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if refused, _, err := hosttest.Sync(t.Context(), b, zone, want); err != nil || len(refused) > 0 { // It has the value that is wanted.
		t.Errorf("refused %v, error %v", refused, err)
	}
	if seen, err = b.Observe(t.Context(), zone); err != nil || seen.Ours(key) || !seen.Ours(rrset.Key{Name: "h00101." + zone, Type: 1}) {
		t.Errorf("%s is ours: %t, error %v", key, seen.Ours(key), err)
	}
}
