// Package live runs Debian's Prometheus beside an installed Lockstep, with what the component monitoring ships: its monitors as scrape
// configurations, as the Prometheus Operator would write them, its account, its rules and its dashboard.
package live

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// component is what kustomize makes of the component.
type component struct {
	monitors []monitor
	rules    ruleSpec
	// account are the objects that every Kubernetes has the kinds of, as one manifest.
	account string
}

// monitor is a ServiceMonitor or a PodMonitor. A field that is not here fails the test: nobody would have tested it.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NamespaceSelector   struct{ MatchNames []string } `json:"namespaceSelector"`
		Selector            metav1.LabelSelector          `json:"selector"`
		Endpoints           []endpoint                    `json:"endpoints"`
		PodMetricsEndpoints []endpoint                    `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port          string `json:"port"`
	Scheme        string `json:"scheme"`
	Authorization struct {
		Credentials *secretKey `json:"credentials"`
	} `json:"authorization"`
	TLSConfig struct {
		CA         secretSource `json:"ca"`
		Cert       secretSource `json:"cert"`
		KeySecret  *secretKey   `json:"keySecret"`
		ServerName string       `json:"serverName"`
	} `json:"tlsConfig"`
}

type secretSource struct {
	Secret *secretKey `json:"secret"`
}

type secretKey struct{ Name, Key string }

// ruleSpec is what a PrometheusRule has, and a file of rules too.
type ruleSpec struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// renderComponent has kubectl render the component alone.
func renderComponent(t *testing.T) (c component) {
	t.Helper()
	parent := filepath.Join(kube.Root(t), "_output")
	if err := os.MkdirAll(parent, 0o750); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "monitoring-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	content := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\ncomponents: [../../manifests/components/monitoring]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var account []string
	for _, document := range strings.Split(kube.Kubectl(t, "", "kustomize", dir), "\n---\n") {
		var kind metav1.TypeMeta
		decode(t, document, &kind, yaml.Unmarshal)
		switch kind.Kind {
		case "ServiceMonitor", "PodMonitor":
			c.monitors = append(c.monitors, parseMonitor(t, document))
		case "PrometheusRule":
			var object struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
				Spec              ruleSpec `json:"spec"`
			}
			decode(t, document, &object, yaml.UnmarshalStrict)
			c.rules = object.Spec
		default:
			account = append(account, document)
		}
	}
	c.account = strings.Join(account, "\n---\n")
	return c
}

func decode(t *testing.T, document string, into any, unmarshal func([]byte, any, ...yaml.JSONOpt) error) {
	t.Helper()
	if err := unmarshal([]byte(document), into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

func parseMonitor(t *testing.T, document string) (m monitor) {
	t.Helper()
	decode(t, document, &m, yaml.UnmarshalStrict)
	return m
}

// serverMonitor returns the PodMonitor of docs/reference/metrics.md for the servers of an instance.
func serverMonitor(t *testing.T, namespace, instance string) monitor {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(kube.Root(t), "docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, b := range blocks {
		if strings.Contains(b[1], "kind: PodMonitor") {
			return parseMonitor(t, strings.NewReplacer("<namespace>", namespace, "<instance>", instance).Replace(b[1]))
		}
	}
	t.Fatal("docs/reference/metrics.md has no PodMonitor")
	return monitor{}
}

// hasten is by how much alerts wait shorter in the test: a minute, for which Prometheus would have to see a server down, becomes two
// seconds. What the expressions of the rules say is as it is shipped.
const hasten = 30

// hastened returns the rules with shorter waits.
func (s ruleSpec) hastened(t *testing.T) ruleSpec {
	t.Helper()
	for _, group := range s.Groups {
		for i := range group.Rules {
			if wait := group.Rules[i].wait(t); wait > 0 {
				group.Rules[i].For = (wait / hasten).String()
			}
		}
	}
	return s
}

// wait is how long an alert waits.
func (r rule) wait(t *testing.T) time.Duration {
	t.Helper()
	if r.For == "" {
		return 0
	}
	d, err := time.ParseDuration(r.For)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// alert returns an alert by its name.
func (s ruleSpec) alert(t *testing.T, name string) rule {
	t.Helper()
	for _, group := range s.Groups {
		for _, r := range group.Rules {
			if r.Alert == name {
				return r
			}
		}
	}
	t.Fatalf("there is no alert %s", name)
	return rule{}
}

// panel is a graph of the dashboard. One with a description may have no data while all is well.
type panel struct {
	Title, Description string
	Targets            []struct{ Expr string }
}

func readDashboard(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	content, err := os.ReadFile(filepath.Join(kube.Root(t), "manifests/components/monitoring/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}
