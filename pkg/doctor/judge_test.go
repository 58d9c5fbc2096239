package doctor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/certs"
)

const home = "lockstep-system"

// now is when the installation is looked at.
var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) certs.State { return newAuthorityOf(t, now) }

// newAuthorityOf returns an authority that was made at a time.
func newAuthorityOf(t *testing.T, at time.Time) certs.State {
	t.Helper()
	state, _, err := certs.DefaultPolicy.Advance(certs.State{}, at, false)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// issued is what the Secret of a certificate that was issued at a time has.
func issued(t *testing.T, authority certs.State, at time.Time, secret types.NamespacedName, subject certs.Subject) Fact[Certificate] {
	t.Helper()
	data, err := authority.Issue(at, subject)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{Secret: secret, Certificate: data[corev1.TLSCertKey], Bundle: data[certs.BundleKey]}
	if len(subject.DNSNames) > 0 {
		c.Name = subject.DNSNames[0]
	}
	return Fact[Certificate]{Value: c, Request: "get secret " + secret.String()}
}

func at(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func deployment(component, image string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "lockstep-" + component}}
	d.Spec.Replicas, d.Status.AvailableReplicas = new(int32(1)), 1
	c := corev1.Container{Name: component, Image: image}
	if component == "fleet" {
		c.Env = []corev1.EnvVar{{Name: "LOCKSTEP_IMAGE", Value: image}}
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{c, {Name: "proxy", Image: "somebody/else:1"}}
	return d
}

func definition(name string) apiextensionsv1.CustomResourceDefinition {
	d := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Default: &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)}},
	}}}
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	return d
}

func lease(name string, renewed time.Time) Fact[coordinationv1.Lease] {
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: new(name + "-x"), LeaseDurationSeconds: new(int32(30)), RenewTime: new(metav1.NewMicroTime(renewed))}
	return Fact[coordinationv1.Lease]{Request: "get lease " + name, Value: l}
}

func endpoints(ready bool) Fact[[]discoveryv1.EndpointSlice] {
	return Fact[[]discoveryv1.EndpointSlice]{Request: "list endpointslices in namespace " + home, Value: []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{
		{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
	}}}}
}

func verdict(kind, name string, phase v1alpha1.Phase, rows ...v1alpha1.ServerStatus) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: strings.ToLower(kind) + "." + name}, Zone: "example.com", Servers: rows}
	s.ObjectRef = v1alpha1.ObjectReference{Kind: kind, Namespace: "dns", Name: name}
	s.Status.Phase, s.Status.InSync = phase, phase == v1alpha1.PhaseInSync
	return s
}

func server(pod string, state v1alpha1.ServerState, message string) v1alpha1.ServerStatus {
	return v1alpha1.ServerStatus{Instance: "web", Pod: pod, PodReady: true, State: state, Sidecar: "Ready", Message: message}
}

// healthy is an installation with which everything is well.
func healthy(t *testing.T) *Facts {
	t.Helper()
	authority := newAuthority(t)
	f := &Facts{Namespace: home, Plugin: "v0.1.0", Now: now}
	f.Server = Fact[Server]{Request: "get the version of kube-apiserver", Value: Server{Version: "v1.37.1", Clock: now, Local: now.Add(time.Second)}}
	f.Deployments.Request = "list deployments in namespace " + home
	for _, component := range []string{"controller", "fleet", "apiserver", "webhook"} {
		f.Deployments.Value = append(f.Deployments.Value, deployment(component, "registry.example:5000/lockstep:v0.1.0"))
	}
	f.Definitions.Value = []apiextensionsv1.CustomResourceDefinition{definition("dnszones.x"), definition("others.y")}
	f.Known = []apiextensionsv1.CustomResourceDefinition{definition("dnszones.x")}
	f.Leases = []Fact[coordinationv1.Lease]{lease(controllerName, now.Add(-time.Second)), lease(fleetName, now.Add(-31*time.Second))}
	for service, secret := range map[string]string{apiServerName: certs.APIServerSecret, webhookName: certs.WebhookSecret} {
		f.Serving = append(f.Serving, issued(t, authority, now, at(home, secret), certs.Subject{DNSNames: certs.ServiceNames(service, home)}))
	}
	f.Clients = []Fact[Certificate]{issued(t, authority, now, at(home, certs.ControllerClientSecret), certs.Subject{Identity: "spiffe://x/y"})}
	f.Sidecars = []Fact[Certificate]{issued(t, authority, now, at("dns", "web-bindcar-tls"), certs.Subject{DNSNames: []string{"*.web.dns.bindcar.internal"}})}
	f.APIService.Value = APIService{Name: "v1.sync", Exists: true, CABundle: authority.Bundle(), Available: metav1.Condition{Status: metav1.ConditionTrue}}
	f.KnownMutating.Webhooks = []admissionv1.MutatingWebhook{{Name: "records", FailurePolicy: new(admissionv1.Fail)}}
	f.KnownValidating.Webhooks = []admissionv1.ValidatingWebhook{{Name: "zones", FailurePolicy: new(admissionv1.Fail)}}
	f.Mutating.Value, f.Validating.Value = *f.KnownMutating.DeepCopy(), *f.KnownValidating.DeepCopy()
	f.Mutating.Value.Webhooks[0].ClientConfig.CABundle = authority.Bundle()
	f.Validating.Value.Webhooks[0].ClientConfig.CABundle = authority.Bundle()
	f.WebhookEndpoints, f.APIServerEndpoints = endpoints(true), endpoints(true)
	f.Admission = Fact[time.Duration]{Request: "create arecords in namespace default", Value: 12 * time.Millisecond}
	f.Instances.Value.Items = []v1alpha1.SyncStatus{verdict(instanceKind, "web", v1alpha1.PhaseInSync, server("web-0", v1alpha1.StateInSync, ""))}
	f.Keys = []Fact[KeySecret]{{Request: "get secrets in namespace dns", Value: KeySecret{Secret: at("dns", "knot"), Owner: "DNSProvider dns/knot"}}}
	f.Objects = []Fact[Objects]{{Value: Objects{Kind: "DNSZone", Count: 1}}, {Value: Objects{Kind: "ARecord", Count: 5}}, {Value: Objects{Kind: "DNSEndpoint", Count: 1, Unready: []UnreadyObject{
		{Key: at("dns", "elsewhere"), Reason: "NoMatchingZone"},
	}}}}
	f.StoredInstances = []v1beta1.Bind9Instance{{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "web"}}}
	f.StoredInstances[0].Status.RNDCKeyRotation = &v1beta1.RNDCKeyRotationStatus{RotateAt: new(metav1.NewTime(now.Add(-time.Minute)))}
	f.Providers = []v1beta1.DNSProvider{{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "knot"}}}
	f.Providers[0].Status.Servers = []v1beta1.ProviderServerStatus{{Address: "192.0.2.7", Reachable: true}}
	return f
}

func TestHealthy(t *testing.T) {
	report := Judge(healthy(t))
	if len(report) != len(checks) || report.Count(OK) != len(report) || !report.Healthy() {
		t.Errorf("not well: %+v", report)
	}
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
}

func notFound() error { return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "x") }

// Each check finds what it is for, and says what to do.
func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		// broken changes a healthy installation.
		broken func(*Facts)
		check  string
		level  Level
		found  string
		remedy string
	}{
		"an old Kubernetes": {func(f *Facts) { f.Server.Value.Version = "v1.32.9" }, "Installation kube-apiserver", Failure, "v1.32.9", "upgrade"},
		"no deployment": {
			func(f *Facts) { f.Deployments.Value = nil }, "Installation deployments", Failure, "no Deployment of Lockstep", "kubectl apply -k",
		},
		"another namespace": {
			func(f *Facts) { f.Deployments.Value, f.Elsewhere = nil, []string{"team-dns"} }, "Installation deployments", Failure, "but in team-dns",
			"--system-namespace=team-dns",
		},
		"a deployment is missing": {
			func(f *Facts) { f.Deployments.Value = f.Deployments.Value[:3] }, "Installation deployments", Failure, "lockstep-webhook does not exist", "kubectl apply -k",
		},
		"scaled to 0": {
			func(f *Facts) {
				f.Deployments.Value[3].Spec.Replicas, f.Deployments.Value[3].Status.AvailableReplicas = new(int32(0)), 0
			},
			"Installation deployments", Failure, "lockstep-webhook is scaled to 0", "kubectl -n lockstep-system scale deployment/lockstep-webhook --replicas=1",
		},
		"crashing": {
			func(f *Facts) { f.Deployments.Value[0].Status.AvailableReplicas = 0 }, "Installation deployments", Failure,
			"lockstep-controller has no pod", "describe pods -l app.kubernetes.io/component=controller",
		},
		"half of it": {
			func(f *Facts) { f.Deployments.Value[1].Spec.Replicas = new(int32(2)) }, "Installation deployments", Warning, "lockstep-fleet has 1 of 2 pods", "component=fleet",
		},
		"a failure and a warning": {
			func(f *Facts) {
				f.Deployments.Value[0].Spec.Replicas = new(int32(2))
				f.Deployments.Value[2].Status.AvailableReplicas = 0
			}, "Installation deployments", Failure, "lockstep-apiserver has no pod that is available; lockstep-controller has 1 of 2 pods", "component=apiserver",
		},
		"no definition": {
			func(f *Facts) { f.Definitions.Value = nil }, "Installation definitions", Failure, "missing: dnszones.x", "kubectl apply -k",
		},
		"a definition that is not established": {
			func(f *Facts) { f.Definitions.Value[0].Status.Conditions = nil }, "Installation definitions", Failure, "not established: dnszones.x", "kubectl describe crd dnszones.x",
		},
		"a definition of another version": {
			func(f *Facts) { f.Definitions.Value[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Type = "string" }, "Installation definitions", Warning,
			"not those of this plugin: dnszones.x", "use the plugin of the version",
		},
		"the same definition in other words": {
			func(f *Facts) {
				f.Definitions.Value[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Default.Raw = []byte(`{ "a": 1 }`)
			}, "Installation definitions", OK, "all 1", "",
		},
		"two images": {
			func(f *Facts) { f.Deployments.Value[2].Spec.Template.Spec.Containers[0].Image = "lockstep:v0.0.9" }, "Installation images", Warning,
			"lockstep:v0.0.9 (apiserver)", "one version",
		},
		"an old sidecar": {
			func(f *Facts) {
				f.Deployments.Value[1].Spec.Template.Spec.Containers[0].Env[0].Value = "lockstep:v0.0.9"
			}, "Installation images", Warning,
			"lockstep:v0.0.9 (sidecars)", "one version",
		},
		"a sidecar of another version": {
			func(f *Facts) {
				f.Deployments.Value[1].Spec.Template.Spec.Containers[0].Args = []string{"fleet", "--bindcar-image=mirror/lockstep-sidecar:v0.0.9@sha256:00"}
			}, "Installation images", Warning,
			"mirror/lockstep-sidecar:v0.0.9@sha256:00 (sidecars)", "one version",
		},
		"a sidecar that is named": {
			func(f *Facts) {
				f.Deployments.Value[1].Spec.Template.Spec.Containers[0].Args = []string{"fleet", "--bindcar-image=mirror/lockstep-sidecar:v0.1.0@sha256:00"}
			}, "Installation images", OK, "sidecars", "",
		},
		"an old plugin": {func(f *Facts) { f.Plugin = "v0.0.9" }, "Installation plugin", Warning, "it is v0.0.9, and v0.1.0 is installed", "plugin of version v0.1.0"},
		"a plugin of a checkout": {
			func(f *Facts) { f.Plugin = "(devel)" }, "Installation plugin", OK, "only releases can be compared", "",
		},
		"no leader": {
			func(f *Facts) { f.Leases[0].Value.Spec.HolderIdentity = new("") }, "Installation leases", Failure, "nobody holds lease lockstep-controller",
			"logs deployment/lockstep-controller",
		},
		"never a leader": {
			func(f *Facts) { f.Leases[1].Err = notFound() }, "Installation leases", Failure, "nobody has ever held it", "deployments",
		},
		"a leader that hangs": {
			func(f *Facts) { f.Leases[1] = lease(fleetName, now.Add(-time.Minute)) }, "Installation leases", Failure,
			"lockstep-fleet-x has not renewed lease lockstep-fleet since 2026-11-24T11:59:00Z", "logs deployment/lockstep-fleet",
		},
		"a clock here": {
			func(f *Facts) { f.Server.Value.Local = now.Add(-time.Minute) }, "Installation clocks", Warning, "differ by 1m0s", "NTP",
		},
		"a clock of a node": {
			func(f *Facts) { f.Leases[0] = lease(controllerName, now.Add(time.Minute)) }, "Installation clocks", Warning, "leader of lockstep-controller is 1m0s ahead", "NTP",
		},
		"a certificate that expired": {
			func(f *Facts) {
				f.Serving[0] = issued(t, newAuthority(t), now.Add(-31*24*time.Hour), f.Serving[0].Value.Secret, certs.Subject{DNSNames: []string{f.Serving[0].Value.Name}})
			},
			"Certificates serving", Failure, "expired", "delete secret",
		},
		"one that will": {
			func(f *Facts) {
				then := now.Add(-24 * 24 * time.Hour)
				f.Clients[0] = issued(t, newAuthorityOf(t, then), then, f.Clients[0].Value.Secret, certs.Subject{Identity: "spiffe://x/y"})
			}, "Certificates clients", Warning, "should have been replaced", "delete secret lockstep-controller-client",
		},
		"one of the future": {
			func(f *Facts) {
				f.Clients[0] = issued(t, newAuthority(t), now.Add(48*time.Hour), f.Clients[0].Value.Secret, certs.Subject{Identity: "spiffe://x/y"})
			},
			"Certificates clients", Failure, "is not valid before", "delete secret",
		},
		"one of cert-manager": {
			func(f *Facts) {
				f.Serving[0].Value.CertManager, f.Serving[0].Value.Certificate = "lockstep-webhook", []byte("x")
			},
			"Certificates serving", Failure, "cannot be read", "describe certificate lockstep-webhook",
		},
		"one for another name": {
			func(f *Facts) { f.Sidecars[0].Value.Name = "*.other.dns.bindcar.internal" }, "Certificates sidecars", Failure, "is not for *.other", "delete secret web-bindcar-tls",
		},
		"one of another authority": {
			func(f *Facts) { f.Sidecars[0].Value.Bundle = newAuthority(t).Bundle() }, "Certificates sidecars", Failure, "is not trusted", "delete secret web-bindcar-tls",
		},
		"none": {func(f *Facts) { f.Clients[0].Err = notFound() }, "Certificates clients", Failure, "lockstep-controller-client does not exist", "logs deployment/lockstep-fleet"},
		"another caBundle": {
			func(f *Facts) { f.Mutating.Value.Webhooks[0].ClientConfig.CABundle = newAuthority(t).Bundle() }, "Certificates caBundles", Failure,
			"mutatingwebhookconfiguration lockstep-webhook does not verify the certificate in Secret lockstep-system/lockstep-webhook-tls", "lockstep-fleet",
		},
		"another caBundle of the APIService": {
			func(f *Facts) { f.APIService.Value.CABundle = newAuthority(t).Bundle() }, "Certificates caBundles", Failure,
			"does not verify the certificate in Secret lockstep-system/lockstep-apiserver-tls", "lockstep-fleet",
		},
		"no caBundle": {
			func(f *Facts) { f.Validating.Value.Webhooks[0].ClientConfig.CABundle = nil }, "Certificates caBundles", Failure, "cannot be read: there is no certificate", "lockstep-fleet",
		},
		"a caBundle that expired": {
			func(f *Facts) { f.Now = now.Add(400 * 24 * time.Hour) }, "Certificates caBundles", Failure, "no authority that is valid now", "lockstep-fleet",
		},
		"through the aggregation layer": {
			func(f *Facts) {
				f.AdmissionAPIService.Value = APIService{Name: "v1.admission", Exists: true, CABundle: f.APIService.Value.CABundle}
				f.Mutating.Value.Webhooks[0].ClientConfig.CABundle = newAuthority(t).Bundle()
			}, "Certificates caBundles", OK, "2 caBundles", "",
		},
		"no webhooks": {func(f *Facts) { f.Mutating.Err = notFound() }, "Admission webhooks", Failure, "nothing is reviewed", "kubectl apply -k"},
		"a webhook is missing": {
			func(f *Facts) { f.Validating.Value.Webhooks = nil }, "Admission webhooks", Failure, "missing: zones", "kubectl apply -k",
		},
		"a webhook that may be passed over": {
			func(f *Facts) { f.Mutating.Value.Webhooks[0].FailurePolicy = new(admissionv1.Ignore) }, "Admission webhooks", Warning, "records has failurePolicy Ignore, not Fail", "kubectl apply -k",
		},
		"no endpoint of the webhook": {
			func(f *Facts) { f.WebhookEndpoints = endpoints(false) }, "Admission endpoints", Failure, "Service lockstep-webhook has no endpoint that is ready, and 1 that are not",
			"component=webhook",
		},
		"nothing passes admission": {
			func(f *Facts) {
				f.Admission.Err = apierrors.NewInternalError(errors.New(`failed calling webhook "records": no endpoints`))
			}, "Admission dry run", Failure,
			"no record can be created", "logs deployment/lockstep-webhook",
		},
		"a webhook that is not trusted": {
			func(f *Facts) {
				f.Admission.Err = apierrors.NewInternalError(errors.New(`failed calling webhook "records": x509`))
			}, "Admission dry run", Failure,
			"no record can be created", "see caBundles",
		},
		"a cluster-scoped cluster": {
			func(f *Facts) {
				f.Objects[0].Value = Objects{Kind: "Bind9GlobalCluster", Unready: []UnreadyObject{{at("", "shared"), "NotReady", "no"}}}
			}, "Objects ready", Failure, "for example Bind9GlobalCluster shared: no", "docs/reference/api.md",
		},
		"admission refuses the record": {
			func(f *Facts) { f.Admission.Err = errors.New(`admission webhook "records" denied the request: x`) }, "Admission dry run", OK, "the webhook answers", "",
		},
		"slow admission": {func(f *Facts) { f.Admission.Value = 3 * time.Second }, "Admission dry run", Warning, "takes 3s", "lockstep-webhook"},
		"no such namespace": {
			func(f *Facts) { f.Admission.Err = notFound() }, "Admission dry run", Failure, "not found", "-n",
		},
		"no APIService": {func(f *Facts) { f.APIService.Value.Exists = false }, "SyncStatus APIService", Failure, "does not exist", "kubectl apply -k"},
		"an APIService that is not available": {
			func(f *Facts) {
				f.APIService.Value.Available = metav1.Condition{Status: metav1.ConditionFalse, Reason: "MissingEndpoints", Message: "no addresses"}
			},
			"SyncStatus APIService", Failure, "MissingEndpoints: no addresses", "logs deployment/lockstep-apiserver",
		},
		"no endpoint of the API server": {
			func(f *Facts) { f.APIServerEndpoints.Value = nil }, "SyncStatus endpoints", Failure, "lockstep-apiserver has no endpoint that is ready, and 0", "component=apiserver",
		},
		"no answer": {
			func(f *Facts) { f.OutOfSync.Err = apierrors.NewServiceUnavailable("no endpoints") }, "SyncStatus answers", Failure, "no endpoints", "logs deployment/lockstep-apiserver",
		},
		"a slow answer": {func(f *Facts) { f.OutOfSync.Value.Took = 11 * time.Second }, "SyncStatus answers", Warning, "takes 11s", "docs/scaling.md"},
		"a pod that does not answer": {
			func(f *Facts) {
				f.Instances.Value.Items[0].Servers[0] = v1alpha1.ServerStatus{Pod: "web-0", State: v1alpha1.StateUnreachable, Message: "the pod does not exist"}
			}, "Servers reachable", Failure, "1 of 2 servers do not serve: dns/web-0: the pod does not exist", "kubectl -n dns describe pod web-0",
		},
		"a server of others that does not answer": {
			func(f *Facts) {
				f.Providers[0].Status.Servers[0] = v1beta1.ProviderServerStatus{Address: "192.0.2.7", Message: "timed out"}
			},
			"Servers reachable", Failure, "dns/knot at 192.0.2.7: timed out", "describe dnsprovider knot",
		},
		"a sidecar": {
			func(f *Facts) { f.Instances.Value.Items[0].Servers[0].Sidecar = "BindcarAuthFailed" }, "Servers sidecars", Failure, "dns/web-0: BindcarAuthFailed", "-c bindcar",
		},
		"a server that refuses transfers": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("DNSZone", "main", v1alpha1.PhaseOutOfSync, server("web-0", v1alpha1.StateRefused, "the zone transfer answered REFUSED"))}
			}, "Servers transfers", Failure, "example.com on web-0 is Refused: the zone transfer answered REFUSED", "kubectl lockstep -n dns tree dnszone/main",
		},
		"a pod that is not there does not refuse": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("DNSZone", "main", v1alpha1.PhaseOutOfSync, v1alpha1.ServerStatus{Pod: "web-0", State: v1alpha1.StateUnreachable})}
			}, "Servers transfers", OK, "every server", "",
		},
		"a clock of a server": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("DNSZone", "main", v1alpha1.PhaseOutOfSync, server("web-0", v1alpha1.StateRefused, "BADTIME: the clock"))}
			}, "Servers clocks", Failure, "BADTIME is reported of web-0", "NTP",
		},
		"a clock of a provider": {
			func(f *Facts) { f.Providers[0].Status.Servers[0].Message = "BADTIME: the clock" }, "Servers clocks", Failure, "knot/192.0.2.7", "NTP",
		},
		"a clock in a condition": {
			func(f *Facts) {
				f.Objects[0].Value.Unready = []UnreadyObject{{Key: at("dns", "main"), Message: "BADTIME: the clock"}}
			}, "Servers clocks", Failure, "DNSZone dns/main", "NTP",
		},
		"no key": {func(f *Facts) { f.Keys[0].Err = notFound() }, "Servers keys", Failure, "Secret dns/knot does not exist of DNSProvider dns/knot", "kubectl -n dns describe secret knot"},
		"a key that is none": {
			func(f *Facts) { f.Keys[0].Value.Problem = "no usable TSIG key" }, "Servers keys", Failure, "no usable TSIG key of DNSProvider dns/knot", "describe secret knot",
		},
		"some keys": {
			func(f *Facts) { f.Keys = append(f.Keys, Fact[KeySecret]{Request: "get secrets", Err: forbidden()}) }, "Servers keys", OK, "1 Secret exist and can be used; you may not read the others", "",
		},
		"a rotation that is due": {
			func(f *Facts) {
				f.StoredInstances[0].Status.RNDCKeyRotation.RotateAt = new(metav1.NewTime(now.Add(-2 * time.Hour)))
			}, "Servers rotation", Warning,
			"dns/web since 2026-11-24T10:00:00Z", "lockstep-fleet",
		},
		"old statuses": {
			func(f *Facts) {
				before := now.Add(-2 * time.Minute)
				f.Objects[1].Value.Lagging = []LaggingObject{{at("dns", "www"), 3, 2, before}, {at("dns", "mail"), 2, 1, before}}
			}, "Objects statuses", Warning,
			"old status of 2 of 7 objects: ARecord dns/www has generation 3, and a status of 2; ARecord dns/mail has generation 2, and a status of 1", "logs deployment/lockstep-controller",
		},
		"a status that comes": {
			func(f *Facts) { f.Objects[1].Value.Lagging = []LaggingObject{{at("dns", "www"), 3, 2, now}} }, "Objects statuses", OK, "no old status among 7 objects", "",
		},
		"a record": {
			func(f *Facts) { f.Objects[1].Value.Unready = []UnreadyObject{{at("dns", "a"), "NotSelected", "none"}} }, "Objects ready", Warning,
			"not ready: 1 ARecord NotSelected; for example ARecord dns/a: none", "docs/reference/api.md",
		},
		"the most frequent reason first": {
			func(f *Facts) {
				f.Objects[0].Value.Unready = []UnreadyObject{{at("dns", "z"), "DuplicateZone", "older"}}
				f.Objects[1].Value.Unready = []UnreadyObject{{at("dns", "a"), "NotSelected", "none"}, {at("dns", "b"), "NotSelected", "none"}}
			}, "Objects ready", Failure, "not ready: 2 ARecord NotSelected, 1 DNSZone DuplicateZone; for example ARecord dns/a: none", "docs/reference/api.md",
		},
		"a server out of sync": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("ARecord", "www", v1alpha1.PhaseOutOfSync), verdict("ARecord", "x", v1alpha1.PhaseFailed)}
			}, "Objects in sync", Failure, "1 OutOfSync, 0 Unknown, 0 Propagating, 1 Failed; the first is dns/arecord.www", "kubectl lockstep status -A",
		},
		"nobody knows": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("ARecord", "www", v1alpha1.PhaseUnknown)}
			}, "Objects in sync", Warning, "1 Unknown", "kubectl lockstep status -A",
		},
		"a change on its way": {
			func(f *Facts) {
				f.OutOfSync.Value.Items = []v1alpha1.SyncStatus{verdict("ARecord", "www", v1alpha1.PhasePropagating)}
			}, "Objects in sync", OK, "1 Propagating", "",
		},
		"no servers": {
			func(f *Facts) { f.Instances.Value.Items, f.Providers = nil, nil }, "Servers sidecars", OK, "there are none", "",
		},
		"no instances": {func(f *Facts) { f.Sidecars = nil }, "Certificates sidecars", OK, "there are no instances", ""},
		"no keys":      {func(f *Facts) { f.Keys = nil }, "Servers keys", OK, "no object names a Secret", ""},
		"no rotation":  {func(f *Facts) { f.StoredInstances = nil }, "Servers rotation", OK, "no instance rotates", ""},
		"a kind that cannot be listed": {
			func(f *Facts) { f.Objects = []Fact[Objects]{{Request: "list dnszones", Err: errors.New("etcd")}} }, "Objects ready", Failure, "could not list dnszones: etcd", "readyz",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			tc.broken(f)
			for _, got := range Judge(f) {
				if got.Group+" "+got.Check != tc.check {
					continue
				}
				if got.Level != tc.level || !strings.Contains(got.Found, tc.found) || !strings.Contains(got.Remedy, tc.remedy) || (got.Level == OK) != (got.Remedy == "") {
					t.Errorf("%+v, want %s, %q and %q", got, tc.level, tc.found, tc.remedy)
				}
				return
			}
			t.Errorf("there is no check %q", tc.check)
		})
	}
}

// Who may read nothing gets no failures.
func TestForbidden(t *testing.T) {
	f := &Facts{Namespace: home, Now: now}
	f.Server.Err, f.Deployments.Err, f.Definitions.Err, f.APIService.Err, f.Mutating.Err, f.Validating.Err = forbidden(), forbidden(), forbidden(), forbidden(), forbidden(), forbidden()
	f.WebhookEndpoints.Err, f.APIServerEndpoints.Err, f.Admission.Err, f.Instances.Err, f.OutOfSync.Err = forbidden(), forbidden(), forbidden(), forbidden(), forbidden()
	f.Leases = []Fact[coordinationv1.Lease]{{Request: "get leases in namespace x", Err: forbidden()}}
	f.Serving, f.Clients = []Fact[Certificate]{{Err: forbidden()}}, []Fact[Certificate]{{Err: forbidden()}}
	f.Keys = []Fact[KeySecret]{{Request: "get secrets", Err: forbidden()}}
	f.Objects = []Fact[Objects]{{Value: Objects{Kind: instanceKind}, Err: forbidden()}}
	if !Judge(f).Blind() || Judge(healthy(t)).Blind() {
		t.Error("who may read nothing is blind, and nobody else")
	}
	f.Server = healthy(t).Server
	if !Judge(f).Blind() {
		t.Error("the version of kube-apiserver says nothing of Lockstep")
	}
	f.Server = Fact[Server]{Err: forbidden()}
	for _, got := range Judge(f) {
		if got.Level != Skipped {
			t.Errorf("%s %s: %s: %s", got.Group, got.Check, got.Level, got.Found)
		}
		if got.Check == "leases" && got.Found != "you may not get leases in namespace x" {
			t.Errorf("leases: %s", got.Found)
		}
	}
}

func TestReportJSON(t *testing.T) {
	text, err := json.Marshal(Report{{Group: "Servers", Check: "keys", Level: Warning, Found: "x", Remedy: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"checks":[{"group":"Servers","check":"keys","result":"warning","found":"x","remedy":"y"}],"summary":{"failure":0,"ok":0,"skipped":0,"warning":1}}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
