package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/test/kube"
)

// A first zone and a first record, as manifests that were written for another operator of this API: they apply as they
// are, the zone lists the record, the record carries the zone, and a change reaches every server.
func TestMainJobFirstZone(t *testing.T) {
	kube.Isolated(t, "dns-system")
	t.Cleanup(func() { kube.Kubectl(t, "", "delete", "namespace", "dns-system", "--timeout=120s") })
	kube.Kubectl(t, "", "apply", "-f", "test/e2e/testdata/my-cluster.yaml")
	kube.Kubectl(t, "", "apply", "-f", "test/e2e/testdata/first-zone.yaml")
	kube.Kubectl(t, "", "apply", "-f", "test/e2e/testdata/first-record.yaml")
	c := kube.Client(t)

	kube.Kubectl(t, "", "-n", "dns-system", "wait", "--for=condition=Propagated", "syncstatus/arecord.www-test", "--timeout=120s")
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error { return checkFirstZone(ctx, c) })
	servers := serverAddresses(t, c, "dns-system")
	if len(servers) != 2 {
		t.Fatalf("%d pods, want 2", len(servers))
	}
	for _, server := range servers {
		requireAddress(t, server, "www.test.example.com.", "192.0.2.1")
	}
	serial := kube.Kubectl(t, "", "-n", "dns-system", "get", "dnszone", "test-zone", "-o", "jsonpath={.status.serial}")

	kube.Kubectl(t, "", "patch", "arecord", "www-test", "-n", "dns-system", "--type=merge", "-p", `{"spec":{"ipv4Address":"192.0.2.2"}}`)
	kube.Kubectl(t, "", "-n", "dns-system", "wait", "--for=condition=Propagated", "syncstatus/arecord.www-test", "--timeout=120s")
	for _, server := range servers {
		requireAddress(t, server, "www.test.example.com.", "192.0.2.2")
	}
	kube.Eventually(t, kube.Settle, func(context.Context) error {
		now := kube.Kubectl(t, "", "-n", "dns-system", "get", "dnszone", "test-zone", "-o", "jsonpath={.status.serial}")
		if now == serial {
			return errors.New("the zone's serial did not change with the record")
		}
		logs := kube.Kubectl(t, "", "-n", "lockstep-system", "logs", "deployment/lockstep-controller", "--since=5m")
		for _, words := range []string{"nsupdate", "zone transfer"} {
			if !slices.ContainsFunc(strings.Split(logs, "\n"), func(line string) bool {
				return strings.Contains(line, words) && strings.Contains(line, `zone="test.example.com"`) && strings.Contains(line, "serial="+now)
			}) {
				return fmt.Errorf("the controller's log does not mention the %s of serial %s", words, now)
			}
		}
		return nil
	})

	kube.Kubectl(t, "", "-n", "dns-system", "delete", "arecord", "www-test", "--timeout=120s")
	kube.Eventually(t, kube.Settle, func(ctx context.Context) error {
		zone := &v1beta1.DNSZone{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "dns-system", Name: "test-zone"}, zone); err != nil {
			return err
		}
		if len(zone.Status.Records) != 0 {
			return fmt.Errorf("the zone still lists %v", zone.Status.Records)
		}
		for _, server := range servers {
			if got := queryAddress(t, server, "www.test.example.com."); got.Rcode != dns.RcodeNameError {
				return fmt.Errorf("%s answers %s for a deleted record", server, dns.RcodeToString[got.Rcode])
			}
		}
		return nil
	})
}

// checkFirstZone checks the status of the zone and of the record.
func checkFirstZone(ctx context.Context, c client.Client) error {
	zone, record := &v1beta1.DNSZone{}, &v1beta1.ARecord{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "dns-system", Name: "test-zone"}, zone); err != nil {
		return err
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "dns-system", Name: "www-test"}, record); err != nil {
		return err
	}
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	expect(len(zone.Status.Records) == 1 && zone.Status.Records[0].Name == "www-test" && zone.Status.Records[0].Kind == "ARecord",
		"status.records of the zone: %v", zone.Status.Records)
	expect(zone.Status.RecordsCount == 1, "recordsCount %d", zone.Status.RecordsCount)
	expect(zone.Status.Bind9InstancesCount == 2, "bind9InstancesCount %d", zone.Status.Bind9InstancesCount)
	expect(meta.IsStatusConditionTrue(zone.Status.Conditions, "Ready"), "the zone is not Ready: %v", zone.Status.Conditions)
	expect(record.Annotations[v1beta1.ZoneAnnotation] == "test.example.com", "annotations %v", record.Annotations)
	expect(record.Status.Zone == "test.example.com", "status.zone %q", record.Status.Zone)
	expect(len(record.Status.RecordHash) == 64, "recordHash %q", record.Status.RecordHash)
	expect(record.Status.LastUpdated != nil, "lastUpdated is not set")
	expect(record.Status.PublishedName == "www.test.example.com", "publishedName %q", record.Status.PublishedName)
	expect(record.Status.Addresses == "192.0.2.1", "addresses %q", record.Status.Addresses)
	for _, condition := range []string{"Ready", "Accepted", "Programmed"} {
		found := meta.FindStatusCondition(record.Status.Conditions, condition)
		expect(found != nil && found.Status == metav1.ConditionTrue && found.ObservedGeneration == record.Generation,
			"condition %s of the record: %v", condition, found)
	}
	return errors.Join(errs...)
}

func serverAddresses(t *testing.T, c client.Client, namespace string) []string {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "bind9"}); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, pod := range pods.Items {
		addresses = append(addresses, net.JoinHostPort(pod.Status.PodIP, "5353"))
	}
	return addresses
}

// queryAddress asks a server until it answers.
func queryAddress(t *testing.T, server, name string) *dns.Msg {
	t.Helper()
	var reply *dns.Msg
	kube.Eventually(t, kube.Settle, func(context.Context) (err error) {
		reply, err = kube.Query(server, name, dns.TypeA, kube.QueryTimeout)
		return err
	})
	return reply
}

func requireAddress(t *testing.T, server, name, address string) {
	t.Helper()
	reply := queryAddress(t, server, name)
	if len(reply.Answer) != 1 || !reply.Authoritative {
		t.Errorf("%s answers %v (authoritative: %t) for %s, want %s", server, reply.Answer, reply.Authoritative, name, address)
		return
	}
	if a, ok := reply.Answer[0].(*dns.A); !ok || a.A.String() != address {
		t.Errorf("%s answers %v for %s, want %s", server, reply.Answer[0], name, address)
	}
}
