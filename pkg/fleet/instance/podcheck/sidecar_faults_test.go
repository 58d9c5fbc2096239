package podcheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar/sidecar"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
	"github.com/lockstep-dns/lockstep/test/mtls"
	namedtest "github.com/lockstep-dns/lockstep/test/named"
)

// faultyPod is a pod with a real named, a real sidecar, and a proxy before the sidecar that may answer in its place.
type faultyPod struct {
	*testing.T
	named *namedtest.Pod
	// fault answers a request in place of the sidecar, and reports whether it did.
	fault   atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	client  *bindcar.Client
	proxy   bindcar.Address
	checker *Checker
	clock   time.Time
}

// newFaultyPod starts a pod whose sidecar has named's key, or the one in a file.
func newFaultyPod(t *testing.T, keyFile string) *faultyPod {
	t.Helper()
	f := &faultyPod{T: t, named: namedtest.StartPod(t, v1beta1.RolePrimary, [2]*wire.Key{}, nil), clock: time.Now()}
	authority := mtls.NewAuthority(t)
	f.client = mtls.Client(t, authority, bindcar.FleetIdentity)
	f.startProxy(authority, f.startSidecar(authority, cmp.Or(keyFile, f.named.Layout.ControlKeyFile)))
	f.checker = New(fake.NewClientBuilder().Build(), nil, "", f, observe.New(observe.Options{}), nil)
	f.checker.now = func() time.Time { return f.clock }
	return f
}

// startSidecar returns where the sidecar serves.
func (f *faultyPod) startSidecar(authority certs.State, keyFile string) string {
	f.Helper()
	dir := f.TempDir()
	mtls.WriteFiles(f, dir, mtls.Instance(f, authority, "dns", "web"))
	ports, err := namedtest.FreePorts(2)
	if err != nil {
		f.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", ports[0])
	o := sidecar.NewOptions()
	o.Listen, o.HealthAddress = []string{at}, fmt.Sprintf("127.0.0.1:%d", ports[1])
	o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	o.RNDCAddress, o.RNDCKeyFile, o.StatisticsURL = f.named.ControlAddr(), keyFile, f.named.StatisticsURL()
	o.NoticeAddress, o.ZonesDir, o.KeyNamesDir = f.named.NoticeAddr().String(), f.named.Layout.ZonesDir, f.named.Layout.KeyDir
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			f.Error(err)
		}
	})
	return at
}

// startProxy starts the proxy: to its clients it is the sidecar, to the sidecar it is the fleet manager.
func (f *faultyPod) startProxy(authority certs.State, to string) {
	f.Helper()
	config, err := mtls.Caller(f, authority, bindcar.FleetIdentity)(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	config.ServerName = strings.Replace(bindcar.CertificateName("dns", "web"), "*", "proxy", 1)
	relay := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: to})
	relay.Transport = &http.Transport{TLSClientConfig: config}
	own, err := tls.X509KeyPair(pair(mtls.Instance(f, authority, "dns", "web")))
	if err != nil {
		f.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := f.fault.Load(); fault == nil || !(*fault)(w, r) {
			relay.ServeHTTP(w, r)
		}
	}))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}
	web.StartTLS()
	f.Cleanup(web.Close)
	f.proxy = bindcar.Address{Addr: netip.MustParseAddrPort(web.Listener.Addr().String()), Namespace: "dns", Instance: "web"}
}

func pair(data map[string][]byte) (cert, key []byte) {
	return data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
}

// Ready, Zones and DeleteZone lead to the proxy, whose port is not that of pods.
func (f *faultyPod) Ready(ctx context.Context, _ bindcar.Address) error {
	return f.client.Ready(ctx, f.proxy)
}

func (f *faultyPod) Zones(ctx context.Context, _ bindcar.Address) (bindcar.ZoneList, error) {
	return f.client.Zones(ctx, f.proxy)
}

func (f *faultyPod) DeleteZone(ctx context.Context, _ bindcar.Address, zone string, owner bindcar.Owner) error {
	return f.client.DeleteZone(ctx, f.proxy, zone, owner)
}

func (f *faultyPod) Command(ctx context.Context, _ bindcar.Address, zone, command string) (string, error) {
	return f.client.Command(ctx, f.proxy, zone, command)
}

// condition returns the condition of the pod, as "reason: message", and the instance's failure, after a look at it.
func (f *faultyPod) condition(pod *corev1.Pod, zones ...*v1beta1.DNSZone) (condition, failure string) {
	f.Helper()
	s := f.look(pod, zones...)
	c := meta.FindStatusCondition(s.Conditions, "Pod-0")
	return c.Reason + ": " + c.Message, strings.TrimSpace(s.FailureReason + " " + s.FailureMessage)
}

// ready returns the instance's condition Ready after a look at its pod.
func (f *faultyPod) ready(pod *corev1.Pod) metav1.Condition {
	f.Helper()
	return *meta.FindStatusCondition(f.look(pod).Conditions, status.Ready)
}

// look returns the instance's status after a look at its pod.
func (f *faultyPod) look(pod *corev1.Pod, zones ...*v1beta1.DNSZone) v1beta1.Bind9InstanceStatus {
	f.Helper()
	instance := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web"}}
	instance.Spec.Role = v1beta1.RolePrimary
	objects := []client.Object{instance, pod}
	for _, zone := range zones {
		objects = append(objects, zone)
	}
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	f.checker.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}).Build()
	checked, err := f.checker.Check(f.Context(), instance)
	if err != nil {
		f.Fatal(err)
	}
	return status.Instance(instance.Status, status.InstanceFacts{Configured: status.True("", ""), Pods: checked.Pods, Failure: checked.Failure}, f.clock)
}

func (f *faultyPod) setFault(fault func(http.ResponseWriter, *http.Request) bool) {
	f.fault.Store(&fault)
}

// waitReady waits until the sidecar and its named answer.
func (f *faultyPod) waitReady() {
	f.Helper()
	f.waitUntil(func() error { return f.client.Ready(f.Context(), f.proxy) })
}

// waitCondition waits until the condition of the pod, which is not ready, begins like this.
func (f *faultyPod) waitCondition(want string) {
	f.Helper()
	f.waitUntil(func() error {
		if got, _ := f.condition(runningPod(corev1.ConditionFalse)); !strings.HasPrefix(got, want) {
			return fmt.Errorf("the condition is %s, want %s…", got, want)
		}
		return nil
	})
}

func (f *faultyPod) waitUntil(check func() error) {
	f.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		f.Fatal(last)
	}
}

// runningPod is a pod that runs, and is ready if the kubelet says so.
func runningPod(ready corev1.ConditionStatus) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web-0", UID: "1", Labels: named.SelectorLabels("web")}}
	pod.Spec.Containers = []corev1.Container{{Name: "named"}, {Name: "bindcar"}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "127.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	return pod
}

// Whatever a sidecar answers reaches the pod's condition: reason, message and the sidecar's own words.
func TestSidecarFaultsAreReported(t *testing.T) {
	f := newFaultyPod(t, "")
	pod := runningPod(corev1.ConditionFalse)
	f.waitReady()
	if got, failure := f.condition(pod); got != "Progressing: Pod web-0 is starting" || failure != "" {
		t.Errorf("without a fault: %s, failure %q", got, failure)
	}
	terminal := map[int]bool{400: true, 401: true, 403: true, 404: true, 418: true, 501: true}
	for code, want := range map[int]string{
		400: "BindcarBadRequest: Pod web-0 was sent an invalid request to Bindcar API (400): the details",
		401: "BindcarAuthFailed: Pod web-0 reports that Bindcar authentication failed: the details",
		403: "BindcarAuthFailed: Pod web-0 reports that Bindcar authentication failed: the details",
		404: "ZoneNotFound: Pod web-0 reports zone or resource not found in BIND9 (404): the details",
		418: "BindcarUnreachable: Pod web-0 gave an unexpected HTTP error from Bindcar (418): the details",
		500: "BindcarInternalError: Pod web-0 reports a Bindcar API internal error (500): the details",
		501: "BindcarNotImplemented: Pod web-0 reports operation not supported by Bindcar (501): the details",
		502: "GatewayError: Pod web-0 has a gateway error reaching Bindcar (502): the details",
		503: "GatewayError: Pod web-0 has a gateway error reaching Bindcar (503): the details",
		504: "GatewayError: Pod web-0 has a gateway error reaching Bindcar (504): the details",
	} {
		for _, path := range []string{"/ready", "/zones"} {
			t.Run(fmt.Sprint(code, path), func(t *testing.T) {
				f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, path) {
						return false
					}
					w.WriteHeader(code)
					fmt.Fprint(w, `{"error":"title","details":"the details"}`)
					return true
				})
				got, failure := f.condition(pod)
				if got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if (failure != "") != terminal[code] || failure != "" && failure != strings.Replace(want, ": ", " ", 1) {
					t.Errorf("failure %q", failure)
				}
			})
		}
	}
	f.setFault(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	if got, failure := f.condition(pod); !strings.HasPrefix(got, "BindcarUnreachable: Pod web-0 cannot connect to Bindcar API: ") || failure != "" {
		t.Errorf("hung up: %s, failure %q", got, failure)
	}
}

// What is wrong with named itself is said by the real sidecar.
func TestFaultsOfNamedAreReported(t *testing.T) {
	t.Run("its key", func(t *testing.T) {
		other, err := rndc.NewKey("")
		if err != nil {
			t.Fatal(err)
		}
		keyFile := filepath.Join(t.TempDir(), "rndc.key")
		if err := os.WriteFile(keyFile, []byte(other.Clause()), 0o600); err != nil {
			t.Fatal(err)
		}
		f := newFaultyPod(t, keyFile)
		f.waitCondition("RNDCAuthenticationFailed: Pod web-0 cannot authenticate to its named: ")
		if got, failure := f.condition(runningPod(corev1.ConditionFalse)); failure != strings.Replace(got, ": ", " ", 1) {
			t.Errorf("%s, failure %q", got, failure)
		}
	})
	t.Run("its absence", func(t *testing.T) {
		f := newFaultyPod(t, "")
		f.waitReady()
		f.named.Kill()
		f.waitCondition("GatewayError: Pod web-0 has a gateway error reaching Bindcar (503): ")
	})
}

// A pod that is not in service because it lacks a zone says which, and what its sidecar answered to the one who adds zones.
func TestMissingZoneIsNamed(t *testing.T) {
	f := newFaultyPod(t, "")
	f.waitReady()
	zone := &v1beta1.DNSZone{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "main"}}
	zone.Spec.ZoneName = "lacking.example"
	zone.Spec.Bind9InstancesFrom = []v1beta1.InstanceSource{{Selector: metav1.LabelSelector{}}}
	look := func(after time.Duration, want string) {
		t.Helper()
		f.clock = f.clock.Add(after)
		if got, failure := f.condition(runningPod(corev1.ConditionFalse), zone); got != want || failure != "" {
			t.Errorf("%s, failure %q; want %s", got, failure, want)
		}
	}
	look(0, "Progressing: Pod web-0 serves 0 of 1 zones")
	look(errorTolerance, "ZoneNotFound: Pod web-0 serves 0 of 1 zones: named does not have lacking.example")
	zone.Status.Bind9Instances = []v1beta1.ZoneInstance{{Kind: "Bind9Instance", APIVersion: "x", Namespace: "dns", Name: "web", Status: v1beta1.ZoneFailed,
		Reason: status.BindcarBadRequest, Message: "web-0: bindcar: was sent an invalid request to Bindcar API (400): no"}}
	look(time.Second, "BindcarBadRequest: Pod web-0 serves 0 of 1 zones: lacking.example: bindcar: was sent an invalid request to Bindcar API (400): no")
	zone.Status.Bind9Instances[0].Message = "web-1: another pod's"
	look(time.Second, "ZoneNotFound: Pod web-0 serves 0 of 1 zones: named does not have lacking.example")
}
