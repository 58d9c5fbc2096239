package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/test/bench/rig"
)

// Creating 100,000 records takes kube-apiserver a quarter of an hour, and writing their statuses as long. What is measured here are
// records that exist. So they are stored in etcd as kube-apiserver would have stored them: copies of one that was created and is ready,
// each with a name, an address, a UID and a hash of its own. kube-apiserver's caches see them come, as if another replica had written
// them; the controller publishes them. Only the dev cluster lets anybody do that.

// recordPrefix is where kube-apiserver stores the records of a namespace.
const recordPrefix = "/registry/bindy.firestoned.io/arecords/"

// storedAtOnce is how many records are on their way to etcd at a time. Each is a transaction of its own: kube-apiserver relies on no two objects
// having one resourceVersion, and its watches lose some of those that do.
const storedAtOnce = 64

// example is the record that is copied.
var example = rig.Address{Name: "example-to-copy." + apex, IP: "198.51.100.77"}

// etcdStore is the store of the dev cluster.
type etcdStore struct {
	*clientv3.Client
	namespace string
}

// openStore connects with kube-apiserver's own certificate.
func openStore(endpoint, pki, namespace string) (*etcdStore, error) {
	certificate, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	if err != nil {
		return nil, fmt.Errorf("-stored needs the dev cluster's etcd: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(pki, "etcd-ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	return &etcdStore{c, namespace}, err
}

func (s *etcdStore) key(name string) string { return recordPrefix + s.namespace + "/" + name }

// storeRecords stores a record for each address, as many as kube-apiserver has never seen.
func (b *singleBench) storeRecords(ctx context.Context, store *etcdStore, wanted []rig.Address) (rig.Creation, error) {
	text, err := b.createExample(ctx, store)
	if err != nil {
		return rig.Creation{}, err
	}
	var record v1beta1.ARecord
	if err := json.Unmarshal(text, &record); err != nil {
		return rig.Creation{}, err
	}
	if hash := hashOf(example); record.Status.RecordHash != hash {
		return rig.Creation{}, fmt.Errorf("the example's status has the hash %q instead of %q", record.Status.RecordHash, hash)
	}
	var puts []clientv3.Op
	for i, a := range wanted {
		host := strings.TrimSuffix(a.Name, "."+apex)
		copied := strings.NewReplacer(
			record.Name, "stored-"+host, strings.TrimSuffix(example.Name, "."+apex), host, example.IP, a.IP,
			record.Status.RecordHash, hashOf(a), string(record.UID), fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i),
		).Replace(string(text))
		puts = append(puts, clientv3.OpPut(store.key("stored-"+host), copied))
	}
	c := rig.Creation{Began: time.Now(), Count: len(wanted)}
	err = rig.ForEachParallel(ctx, storedAtOnce, "stored", puts, func(ctx context.Context, put clientv3.Op) error {
		_, err := store.Do(ctx, put)
		return err
	})
	c.Ended = time.Now()
	return c, err
}

// createExample creates the record to copy and returns it as it is stored once it is ready.
func (b *singleBench) createExample(ctx context.Context, store *etcdStore) (text []byte, err error) {
	// Admission may still know records that etcd has lost a moment before the zone is deleted.
	allow := client.RawPatch(rig.MergePatch, []byte(`{"metadata":{"annotations":{"`+v1beta1.AllowDeletionAnnotation+`":"true"}}}`))
	if err := b.Client.Patch(ctx, b.NewZone(object, zone), allow); err != nil {
		return nil, err
	}
	o := b.DeclareRecords(rig.Objects, "copied-object", zone, []rig.Address{example})[0]
	o.SetLabels(rig.ZoneLabels(object))
	if err := b.Client.Create(ctx, o); err != nil {
		return nil, err
	}
	err = rig.PollUntil(ctx, time.Minute, 100*time.Millisecond, func() error {
		found, err := store.Get(ctx, store.key(o.GetName()))
		if err != nil {
			return err
		}
		if len(found.Kvs) == 0 {
			return errors.New("the example is not in etcd")
		}
		if text = found.Kvs[0].Value; !bytes.Contains(text, []byte(`"recordHash"`)) {
			return errors.New("the example is not published")
		}
		return nil
	})
	return text, err
}

func hashOf(a rig.Address) string {
	return source.Hash(source.Declaration{Key: rrset.Key{Name: a.Name, Type: dns.TypeA}, TTL: 3600, Rdata: []string{a.IP}})
}

// removeStored takes all records that were stored out of etcd, each by itself.
func (s *etcdStore) removeStored(ctx context.Context) error {
	left, err := s.Get(ctx, s.key("stored-"), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	var deletions []clientv3.Op
	for _, kv := range left.Kvs {
		deletions = append(deletions, clientv3.OpDelete(string(kv.Key)))
	}
	err = rig.ForEachParallel(ctx, storedAtOnce, "removed from etcd", deletions, func(ctx context.Context, deletion clientv3.Op) error {
		_, err := s.Do(ctx, deletion)
		return err
	})
	return errors.Join(err, s.Close())
}

// measureLeader starts the controller anew, waits until it has been over the zone, and returns how long that took and what memory it has.
func (b *singleBench) measureLeader(ctx context.Context) (took time.Duration, memory float64, err error) {
	if err := b.WaitQuiet(ctx, 2*time.Second); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := b.RestartController(ctx); err != nil {
		return 0, 0, err
	}
	if _, err := b.WaitRestarted(ctx, 1, 5*time.Minute); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if err := b.WaitQuiet(ctx, rig.SettleTime); err != nil {
		return 0, 0, err
	}
	state, err := b.ControllerState(ctx)
	return took, state.Resident, err
}

// measureAPIServer returns the memory of our API server after a start, with the zone from all servers.
func (b *singleBench) measureAPIServer(ctx context.Context) (memory float64, err error) {
	return b.MemoryAfterRestart(ctx, b.SyncStatusPath("dnszone."+object), rig.SettleTime)
}

// emptyMemory is what new processes need with the zone and hardly a record.
type emptyMemory struct{ controller, apiServer float64 }

func (b *singleBench) measureEmpty(ctx context.Context) (empty emptyMemory, err error) {
	if _, empty.controller, err = b.measureLeader(ctx); err != nil {
		return empty, err
	}
	empty.apiServer, err = b.measureAPIServer(ctx)
	return empty, err
}

// measureFull is measureEmpty with all records, beside what a bare client needs to read the same.
func (b *singleBench) measureFull(ctx context.Context, empty emptyMemory) error {
	took, controller, err := b.measureLeader(ctx)
	if err != nil {
		return err
	}
	apiServer, err := b.measureAPIServer(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	objects, _, err := b.ReadPath(ctx, b.ARecordPath("")+"?resourceVersion=0")
	if err != nil {
		return err
	}
	data, err := b.CountZoneBytes(ctx, apex)
	if err != nil {
		return err
	}
	bare := time.Since(began)
	each := func(bytes float64) float64 { return bytes / 1024 / float64(*records) }
	what := fmt.Sprintf("%d records as JSON, %%s, for each", *records)
	b.AddResult("objects-memory-controller", each(controller-empty.controller), each(float64(len(objects)+data/3)), "KiB", fmt.Sprintf(what, "and the primary's data"))
	b.AddResult("objects-memory-apiserver", each(apiServer-empty.apiServer), each(float64(len(objects)+data)), "KiB", fmt.Sprintf(what, "and the data of three servers"))
	b.AddResult("objects-leader", took.Seconds(), bare.Seconds(), "s", fmt.Sprintf("a bare LIST of %d records and their AXFR from three servers", *records))
	return nil
}

// patchOf returns the patch that gives an object of a form another address.
func patchOf(form rig.Form, address string) client.Patch {
	patch := fmt.Appendf(nil, `{"spec":{"ipv4Addresses":[%q]}}`, address)
	if form == rig.Endpoints {
		patch = fmt.Appendf(nil, `{"spec":{"endpoints":[{"dnsName":"changing.%s","recordType":"A","targets":[%q]}]}}`, apex, address)
	}
	return client.RawPatch(rig.MergePatch, patch)
}
