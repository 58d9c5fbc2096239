package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/mtls"
)

// newFleet is a fixture without a zone.
func newFleet(t *testing.T) *fixture {
	t.Helper()
	return &fixture{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "it")}
}

func (f *fixture) instance(name string, role v1beta1.ServerRole, replicas int32) *v1beta1.Bind9Instance {
	i := &v1beta1.Bind9Instance{ObjectMeta: f.meta(name, nil)}
	i.Spec.Role, i.Spec.Replicas = role, &replicas
	return i
}

// waitConditions waits until an object's conditions are exactly these, each as "type status reason: message", in any order.
func waitConditions[T client.Object](f *fixture, limit kube.Patience, o T, conditions func(T) []metav1.Condition, want ...string) {
	f.Helper()
	slices.Sort(want)
	kube.Eventually(f, limit, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		var got []string
		for _, c := range conditions(o) {
			got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("conditions are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
		return nil
	})
}

func clusterConditions(c *v1beta1.Bind9Cluster) []metav1.Condition   { return c.Status.Conditions }
func instanceConditions(i *v1beta1.Bind9Instance) []metav1.Condition { return i.Status.Conditions }

// A cluster's conditions report each instance, an instance's each pod, and scaling adds and removes both.
func TestFleetHierarchy(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	cluster := f.cluster("dns", 1, 2)
	f.create(cluster)
	waitConditions(f, kube.Start, cluster, clusterConditions,
		"Ready True AllReady: All 3 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)",
		"Bind9Instance-1 True Ready: Instance dns-secondary-0 is ready (1/1 pods)",
		"Bind9Instance-2 True Ready: Instance dns-secondary-1 is ready (1/1 pods)")
	waitConditions(f, kube.Settle, &v1beta1.Bind9Instance{ObjectMeta: f.meta("dns-primary-0", nil)}, instanceConditions,
		"Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod dns-primary-0-0 is ready")
	if s := cluster.Status; s.InstanceCount != 3 || s.ReadyInstances != 3 || !s.Ready || s.Phase != v1beta1.PhaseReady ||
		!slices.Equal(s.Instances, []string{"dns-primary-0", "dns-secondary-0", "dns-secondary-1"}) {
		t.Errorf("status %+v", s)
	}
	f.checkColumns("bind9cluster/dns", "NAME VERSION PRIMARY SECONDARY READY AGE", "dns "+cmp.Or(cluster.Spec.Version, v1beta1.DefaultVersion)+" 1 2 True")
	f.checkColumns("bind9instance/dns-primary-0", "NAME CLUSTER ROLE REPLICAS ZONES READY AGE", "dns-primary-0 dns primary 1 0 True")

	change(f, cluster, func(c *v1beta1.Bind9Cluster) { c.Spec.Secondary.Replicas = new(int32(0)) })
	waitConditions(f, kube.Settle, cluster, clusterConditions,
		"Ready True AllReady: All 1 instances are ready",
		"Bind9Instance-0 True Ready: Instance dns-primary-0 is ready (1/1 pods)")
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		var sets appsv1.StatefulSetList
		if err := f.client.List(ctx, &sets, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		if len(sets.Items) != 1 {
			return fmt.Errorf("%d StatefulSets, want 1", len(sets.Items))
		}
		return nil
	})

	alone := f.instance("alone", "PRIMARY", 2)
	f.create(alone)
	waitConditions(f, kube.Start, alone, instanceConditions, "Ready True AllReady: All 2 pods are ready",
		"Pod-0 True Ready: Pod alone-0 is ready", "Pod-1 True Ready: Pod alone-1 is ready")
	if s := alone.Status; s.Replicas != 2 || s.ReadyReplicas != 2 || net.ParseIP(s.ServiceAddress) == nil {
		t.Errorf("status %+v", s)
	}
	change(f, alone, func(i *v1beta1.Bind9Instance) { i.Spec.Replicas = new(int32(1)) })
	waitConditions(f, kube.Settle, alone, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
}

// What cannot work is reported on the object that is wrong, until it is repaired.
func TestFleetMistakes(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	orphan := f.instance("orphan", v1beta1.RoleSecondary, 1)
	orphan.Spec.ClusterRef = "nowhere"
	f.create(orphan)
	waitConditions(f, kube.Settle, orphan, instanceConditions,
		"Ready False NotReady: no Bind9Cluster nowhere is in namespace "+f.namespace)

	acl := f.instance("acl", v1beta1.RolePrimary, 1)
	acl.Spec.Config = &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"office"}}
	f.create(acl)
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(acl), acl); err != nil {
			return err
		}
		s := acl.Status
		if s.Phase != v1beta1.PhaseFailed || s.FailureReason != "ConfigurationInvalid" || !strings.Contains(s.FailureMessage, `allowQuery[0]: "office"`) {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	change(f, acl, func(i *v1beta1.Bind9Instance) { i.Spec.Config.AllowQuery = v1beta1.AddressMatchList{"any"} })
	waitConditions(f, kube.Start, acl, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod acl-0 is ready")

	f.create(&corev1.ConfigMap{ObjectMeta: f.meta("mine", nil), Data: map[string]string{"named.conf.options": "options { allow-new-zones yes; listen-on port 5353 { any; }; nonsense yes; };\n"}})
	crash := f.instance("crash", v1beta1.RolePrimary, 1)
	crash.Spec.ConfigMapRefs = &v1beta1.ConfigMapRefs{NamedConfOptions: "mine"}
	f.create(crash)
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(crash), crash); err != nil {
			return err
		}
		c := meta.FindStatusCondition(crash.Status.Conditions, "Pod-0")
		if c == nil || c.Reason != "PodsCrashing" || !strings.Contains(c.Message, "unknown option 'nonsense'") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	generated := &corev1.ConfigMap{}
	if err := f.client.Get(f.Context(), client.ObjectKey{Namespace: f.namespace, Name: "crash-config"}, generated); err != nil {
		f.Fatal(err)
	}
	change(f, &corev1.ConfigMap{ObjectMeta: f.meta("mine", nil)}, func(c *corev1.ConfigMap) { c.Data = generated.Data })
	waitConditions(f, kube.Start, crash, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod crash-0 is ready")
}

// TestFleetKeepsItsConfiguration: a pod goes on with the configuration that it was made for while a roll-out stops at another one, which its
// configuration breaks, also when named starts anew.
func TestFleetKeepsItsConfiguration(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "kept.example", 2, 0)
	f.createOptions("mine", "dns-primary-0", "nonsense yes;", "")
	change(f, f.cluster("dns", 0, 0), func(c *v1beta1.Bind9Cluster) {
		c.Spec.ConfigMapRefs = &v1beta1.ConfigMapRefs{NamedConfOptions: "mine"}
	})
	var kept string
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		for broken, other := range map[string]string{"dns-primary-0": "dns-primary-1-0", "dns-primary-1": "dns-primary-0-0"} {
			instance := &v1beta1.Bind9Instance{ObjectMeta: f.meta(broken, nil)}
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(instance.Status.Conditions, "Pod-0"); c != nil && c.Reason == "PodsCrashing" {
				kept = other
				return nil
			}
		}
		return errors.New("no pod crashes")
	})
	// The kubelet brings what volumes are made of once the pod changes, and else within two minutes.
	f.kubectl("annotate", "pod", kept, "example.com/look=now")
	time.Sleep(kubeletPause)
	f.kubectl("exec", kept, "-c", "bindcar", "--", "/lockstep", "rndc", "stop")
	kube.Eventually(f, kube.Start, func(context.Context) error {
		pod := f.pod(kept)
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name == "named" && (c.RestartCount == 0 || !c.Ready) {
				return fmt.Errorf("named is %+v", c.State)
			}
		}
		reply, err := kube.Query(net.JoinHostPort(pod.Status.PodIP, "5353"), "kept.example", dns.TypeSOA, kube.QueryTimeout)
		if err == nil && (reply.Rcode != dns.RcodeSuccess || !reply.Authoritative) {
			err = fmt.Errorf("answered %v", reply)
		}
		return err
	})
	good := &corev1.ConfigMap{ObjectMeta: f.meta("mine", nil)}
	change(f, good, func(c *corev1.ConfigMap) {
		c.Data[named.OptionsFile] = strings.Replace(c.Data[named.OptionsFile], "nonsense yes;", "", 1)
	})
	kube.WaitReady(f, f.client, f.namespace, kube.Roll, "bind9cluster/dns", "dnszone/main")
}

// kubeletPause is time for the kubelet to look at a pod. If it takes longer, nothing is tested; nothing fails.
const kubeletPause = 3 * time.Second

// A change of the cluster replaces its pods one instance after the other.
func TestFleetRollout(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "rollout.example", 1, 2)
	before, err := f.servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replaced := f.followReplacements("dns-primary-0", "dns-secondary-0", "dns-secondary-1")
	cluster := f.cluster("dns", 0, 0)
	change(f, cluster, func(c *v1beta1.Bind9Cluster) {
		c.Spec.Global = &v1beta1.Bind9Config{AllowQuery: v1beta1.AddressMatchList{"any"}}
	})
	kube.Eventually(f, kube.Start, func(ctx context.Context) error {
		var sets appsv1.StatefulSetList
		if err := f.client.List(ctx, &sets, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		done := 0
		for _, set := range sets.Items {
			s := set.Status
			if s.ReadyReplicas == 1 && s.ObservedGeneration == set.Generation && set.Generation > 1 && s.UpdatedReplicas == 1 && s.UpdateRevision == s.CurrentRevision {
				done++
			}
		}
		if done < 3 {
			return fmt.Errorf("%d of 3 instances have changed", done)
		}
		return nil
	})
	replaced()
	kube.WaitReady(f, f.client, f.namespace, kube.Roll, "bind9cluster/dns", "dnszone/main")
	after, err := f.servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != len(before) {
		t.Errorf("servers %v, before %v", after, before)
	}
}

// A primary that comes back empty answers nobody before it serves its zone again, on the serial that it had.
func TestFleetEmptiedPrimary(t *testing.T) {
	kube.Isolated(t)
	f := newFixture(t, "emptied.example", 1, 1)
	f.create(f.aRecord("www", "www", "192.0.2.1"))
	f.waitServed("www.emptied.example", "A", "192.0.2.1")
	var service corev1.Service
	if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "dns-primary-0"}, &service); err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(service.Spec.ClusterIP, "53")
	serial := f.waitSerial(address)

	var pod corev1.Pod
	key := client.ObjectKey{Namespace: f.namespace, Name: "dns-primary-0-0"}
	if err := f.client.Get(t.Context(), key, &pod); err != nil {
		t.Fatal(err)
	}
	kube.Kubectl(t, "", "-n", f.namespace, "delete", "pod", key.Name, "--wait=false")
	kube.Throughout(f, kube.Start, func(ctx context.Context) error {
		reply, err := kube.Query(address, "www.emptied.example.", dns.TypeA, 300*time.Millisecond)
		if err == nil && (reply.Rcode != dns.RcodeSuccess || len(reply.Answer) != 1) {
			t.Errorf("the primary is in service and answers %s with %d records", dns.RcodeToString[reply.Rcode], len(reply.Answer))
		}
		var again corev1.Pod
		if err := f.client.Get(ctx, key, &again); err != nil {
			return err
		}
		if again.UID == pod.UID || err != nil {
			return errors.New("the new pod does not answer yet")
		}
		return nil
	})
	if again := f.waitSerial(address); again != serial {
		t.Errorf("serial %d after, %d before", again, serial)
	}
}

// waitSerial returns the serial of the fixture's zone on a server, once that answers.
func (f *fixture) waitSerial(server string) (serial uint32) {
	f.Helper()
	kube.Eventually(f, kube.Settle, func(context.Context) (err error) {
		serial, err = querySerial(server, f.zone+".")
		return err
	})
	return serial
}

func querySerial(server, zone string) (uint32, error) {
	reply, err := kube.Query(server, zone, dns.TypeSOA, kube.QueryTimeout)
	if err != nil {
		return 0, err
	}
	for _, rr := range reply.Answer {
		if soa, ok := rr.(*dns.SOA); ok {
			return soa.Serial, nil
		}
	}
	return 0, fmt.Errorf("answered %s", dns.RcodeToString[reply.Rcode])
}

// A zone that moves to another instance leaves the servers that it was on.
func TestFleetZoneMoves(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	left, right := f.instance("left", v1beta1.RolePrimary, 1), f.instance("right", v1beta1.RolePrimary, 1)
	left.Labels, right.Labels = map[string]string{"side": "left"}, map[string]string{"side": "right"}
	zone := f.dnsZone("main", "moves.example")
	zone.Spec.ClusterRef = ""
	on := func(side string) []v1beta1.InstanceSource {
		return []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"side": side}}}}
	}
	zone.Spec.Bind9InstancesFrom = on("left")
	f.create(left, right, zone)
	f.waitHosted("moves.example", kube.Start, map[string]bool{"left-0": true, "right-0": false})
	change(f, zone, func(z *v1beta1.DNSZone) { z.Spec.Bind9InstancesFrom = on("right") })
	f.waitHosted("moves.example", kube.Settle, map[string]bool{"left-0": false, "right-0": true})
}

// waitHosted waits until the pods that have the zone are those given.
func (f *fixture) waitHosted(zone string, limit kube.Patience, want map[string]bool) {
	f.Helper()
	kube.Eventually(f, limit, func(ctx context.Context) error {
		servers, err := f.servers(ctx)
		if err != nil {
			return err
		}
		for pod, has := range want {
			serial, err := querySerial(servers[pod], dns.Fqdn(zone))
			if (serial != 0) != has {
				return fmt.Errorf("%s: serial %d, %w", pod, serial, err)
			}
		}
		return nil
	})
}

// What somebody changes by hand in an instance's objects is put back.
func TestFleetDrift(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	instance := f.instance("alone", v1beta1.RolePrimary, 1)
	f.create(instance)
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")

	service := &corev1.Service{ObjectMeta: f.meta("alone", nil)}
	change(f, service, func(s *corev1.Service) { s.Spec.Selector[serving.LabelInstance] = "other" })
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if got := service.Spec.Selector[serving.LabelInstance]; got != "alone" {
			return fmt.Errorf("the Service selects %s", got)
		}
		return nil
	})
	if err := f.client.Delete(t.Context(), &appsv1.StatefulSet{ObjectMeta: f.meta("alone", nil)}); err != nil {
		t.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		set := &appsv1.StatefulSet{}
		return f.client.Get(ctx, client.ObjectKeyFromObject(instance), set)
	})
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
}

// A Service that is open to the outside, by its specification or by hand, has port 53 alone: the sidecar's port is on another one.
func TestFleetExposedServiceHasPort53Alone(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	instance := f.instance("open", v1beta1.RolePrimary, 0)
	instance.Spec.BindcarConfig = &v1beta1.BindcarConfig{ServiceSpec: &corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	f.create(instance)
	waitPorts := func(service string, want ...int32) {
		t.Helper()
		kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
			got := &corev1.Service{ObjectMeta: f.meta(service, nil)}
			if err := f.client.Get(ctx, client.ObjectKeyFromObject(got), got); err != nil {
				return err
			}
			var ports []int32
			for _, p := range got.Spec.Ports {
				ports = append(ports, p.Port)
			}
			if !slices.Equal(ports, want) {
				return fmt.Errorf("Service %s has ports %v, want %v", service, ports, want)
			}
			return nil
		})
	}
	waitPorts("open", 53, 53)
	waitPorts("open-bindcar", 80)
	change(f, instance, func(i *v1beta1.Bind9Instance) { i.Spec.BindcarConfig = nil })
	waitPorts("open", 53, 53, 80)
	change(f, &corev1.Service{ObjectMeta: f.meta("open", nil)}, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.11"} })
	waitPorts("open", 53, 53)
}

// Nobody but the controller may use a sidecar, and nothing but the sidecar has credentials of Kubernetes.
func TestFleetSidecarsAreClosed(t *testing.T) {
	kube.Isolated(t)
	f := newFleet(t)
	instance := f.instance("alone", v1beta1.RolePrimary, 1)
	f.create(instance)
	waitConditions(f, kube.Start, instance, instanceConditions, "Ready True AllReady: All 1 pods are ready", "Pod-0 True Ready: Pod alone-0 is ready")
	at := f.sidecarAt(instance.Status.ServiceAddress, layout.ServiceBindcarPort, "alone")
	authority, err := f.authority(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := &corev1.Secret{ObjectMeta: f.meta(named.CertificateSecretName("alone"), nil)}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Fatal(err)
	}
	const refused = 0 // during the handshake
	for name, c := range map[string]struct {
		data map[string][]byte
		want int
	}{
		"no certificate":       {nil, refused},
		"another authority's":  {issueTo(t, mtls.NewAuthority(t), bindcar.ControllerIdentity), refused},
		"the sidecar's own":    {own.Data, refused},
		"nobody that is known": {issueTo(t, authority, "spiffe://lockstep.internal/stranger"), http.StatusForbidden},
		"another of ours":      {issueTo(t, authority, bindcar.APIServerIdentity), http.StatusForbidden},
		"the controller's":     {issueTo(t, authority, bindcar.ControllerIdentity), http.StatusOK},
		"the fleet manager's":  {issueTo(t, authority, bindcar.FleetIdentity), http.StatusOK},
	} {
		if got := f.askSidecar(at, c.data); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if _, err := bindcar.NewClient(bindcar.ClientOptions{}).Zones(t.Context(), at); err == nil {
		t.Error("the sidecar is served in clear text")
	}
	status := kube.Kubectl(t, "", "-n", f.namespace, "exec", "alone-0", "-c", "bindcar", "--", "/lockstep", "rndc", "status")
	if !strings.Contains(status, "server is up and running") {
		t.Errorf("rndc status: %s", status)
	}
	if out, err := kube.TryKubectl(t, "", "-n", f.namespace, "exec", "alone-0", "-c", "named", "--", "ls", "/var/run/secrets/kubernetes.io"); err == nil {
		t.Errorf("named has credentials: %s", out)
	}
}
