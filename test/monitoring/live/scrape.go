package live

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scrapeConfig is a part of Prometheus' configuration, by the names that it has there.
type scrapeConfig struct {
	JobName       string         `json:"job_name"`
	Scheme        string         `json:"scheme,omitempty"`
	Authorization map[string]any `json:"authorization,omitempty"`
	TLSConfig     map[string]any `json:"tls_config,omitempty"`
	StaticConfigs []targetGroup  `json:"static_configs"`
}

type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// translator makes scrape configurations of monitors. It finds targets with the rights of the test, as a Prometheus does with its own:
// the account of the component is for reading metrics alone.
type translator struct {
	client client.Client
	// dir gets the Secrets that monitors name.
	dir string
}

// translate does what the Prometheus Operator does with a monitor: one configuration for each endpoint, with the labels that it sets.
func (tr *translator) translate(t *testing.T, m monitor) (configs []scrapeConfig) {
	t.Helper()
	for i, e := range slices.Concat(m.Spec.Endpoints, m.Spec.PodMetricsEndpoints) {
		kind, find := "podMonitor", tr.findPods
		if m.Kind == "ServiceMonitor" {
			kind, find = "serviceMonitor", tr.findServices
		}
		c := scrapeConfig{JobName: fmt.Sprintf("%s/%s/%s/%d", kind, m.Namespace, m.Name, i), Scheme: e.Scheme, TLSConfig: map[string]any{}}
		if e.Authorization.Credentials != nil {
			c.Authorization = map[string]any{"credentials_file": tr.secret(t, m.Namespace, e.Authorization.Credentials)}
		}
		tls := e.TLSConfig
		for name, key := range map[string]*secretKey{"ca_file": tls.CA.Secret, "cert_file": tls.Cert.Secret, "key_file": tls.KeySecret} {
			if key != nil {
				c.TLSConfig[name] = tr.secret(t, m.Namespace, key)
			}
		}
		if tls.ServerName != "" {
			c.TLSConfig["server_name"] = tls.ServerName
		}
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		namespaces := m.Spec.NamespaceSelector.MatchNames
		if len(namespaces) == 0 {
			namespaces = []string{m.Namespace}
		}
		for _, namespace := range namespaces {
			c.StaticConfigs = append(c.StaticConfigs, find(t, m, e, namespace, selector)...)
		}
		if len(c.StaticConfigs) == 0 {
			t.Errorf("%s %s finds no target", m.Kind, m.Name)
		}
		configs = append(configs, c)
	}
	return configs
}

// secret writes a value of a Secret into a file.
func (tr *translator) secret(t *testing.T, namespace string, from *secretKey) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := tr.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: from.Name}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Data[from.Key]) == 0 {
		t.Fatalf("Secret %s has no %s", from.Name, from.Key)
	}
	file := filepath.Join(tr.dir, from.Name+"-"+from.Key)
	if err := os.WriteFile(file, secret.Data[from.Key], 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (tr *translator) findPods(t *testing.T, m monitor, e endpoint, namespace string, selector labels.Selector) (groups []targetGroup) {
	t.Helper()
	var pods corev1.PodList
	if err := tr.client.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if port.Name == e.Port {
					groups = append(groups, targetGroup{
						Targets: []string{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))},
						Labels: map[string]string{
							"job": m.Namespace + "/" + m.Name, "namespace": namespace, "pod": pod.Name, "container": container.Name, "endpoint": e.Port,
						},
					})
				}
			}
		}
	}
	return groups
}

func (tr *translator) findServices(t *testing.T, _ monitor, e endpoint, namespace string, selector labels.Selector) (groups []targetGroup) {
	t.Helper()
	var services corev1.ServiceList
	if err := tr.client.List(t.Context(), &services, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		t.Fatal(err)
	}
	for _, service := range services.Items {
		var slices discoveryv1.EndpointSliceList
		if err := tr.client.List(t.Context(), &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
			t.Fatal(err)
		}
		for _, slice := range slices.Items {
			groups = append(groups, endpointTargets(slice, service.Name, e.Port)...)
		}
	}
	return groups
}

func endpointTargets(slice discoveryv1.EndpointSlice, service, name string) (groups []targetGroup) {
	for _, port := range slice.Ports {
		if port.Name == nil || *port.Name != name || port.Port == nil {
			continue
		}
		for _, target := range slice.Endpoints {
			labels := map[string]string{"job": service, "namespace": slice.Namespace, "service": service, "endpoint": name}
			if target.TargetRef != nil {
				labels["pod"] = target.TargetRef.Name
			}
			groups = append(groups, targetGroup{Targets: []string{net.JoinHostPort(target.Addresses[0], strconv.Itoa(int(*port.Port)))}, Labels: labels})
		}
	}
	return groups
}

// componentPods are the pods of Lockstep itself by name.
func componentPods(ctx context.Context, c client.Client, namespace string) (names []string, err error) {
	var pods corev1.PodList
	err = c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": "lockstep"})
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names, err
}
