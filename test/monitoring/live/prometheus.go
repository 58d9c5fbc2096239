package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/named"
)

// interval is how often Prometheus scrapes and evaluates rules.
const interval = time.Second

// prometheus is a running Prometheus.
type prometheus struct{ address string }

// startPrometheus starts a Prometheus on loopback that ends with the test.
func startPrometheus(t *testing.T, dir string, configs []scrapeConfig, rules ruleSpec) *prometheus {
	t.Helper()
	writeYAML(t, filepath.Join(dir, "rules.yaml"), rules)
	writeYAML(t, filepath.Join(dir, "prometheus.yaml"), map[string]any{
		"global":     map[string]any{"scrape_interval": interval.String(), "scrape_timeout": interval.String(), "evaluation_interval": interval.String()},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": configs,
	})
	at := named.Reserve(t)
	p := &prometheus{address: at.String()}
	var output bytes.Buffer
	cmd := exec.Command(daemon.Find(t, "prometheus", "prometheus"), "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	named.Release(t, at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("prometheus ended: %v\n%s", err, output.Bytes())
		}
	})
	kube.Eventually(t, kube.Answer, func(ctx context.Context) error { return p.get(ctx, "/-/ready", nil) })
	return p
}

func writeYAML(t *testing.T, file string, content any) {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// get reads a page, and the data of an answer of the API into a value unless that is nil.
func (p *prometheus) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if into == nil {
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// sample is one series and its value.
type sample struct {
	Metric map[string]string
	Value  float64
}

// UnmarshalJSON reads a value, which is an array of the time and a string.
func (s *sample) UnmarshalJSON(data []byte) error {
	var raw struct {
		Metric map[string]string
		Value  [2]any
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	text, ok := raw.Value[1].(string)
	if !ok {
		return fmt.Errorf("the value is %v", raw.Value)
	}
	var err error
	s.Metric = raw.Metric
	s.Value, err = strconv.ParseFloat(text, 64)
	return err
}

// query evaluates an expression now.
func (p *prometheus) query(ctx context.Context, expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &data)
	return data.Result, err
}

// value evaluates an expression that has one value.
func (p *prometheus) value(ctx context.Context, expr string) (float64, error) {
	samples, err := p.query(ctx, expr)
	if err == nil && len(samples) != 1 {
		err = fmt.Errorf("%s has %d values", expr, len(samples))
	}
	if err != nil {
		return 0, err
	}
	return samples[0].Value, nil
}

// alert is an active alert.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// alerts returns the active alerts of a name.
func (p *prometheus) alerts(ctx context.Context, name string) (active []alert, err error) {
	var data struct{ Alerts []alert }
	err = p.get(ctx, "/api/v1/alerts", &data)
	for _, a := range data.Alerts {
		if a.Labels["alertname"] == name {
			active = append(active, a)
		}
	}
	return active, err
}

// target is what Prometheus says of one.
type target struct {
	Labels            map[string]string
	Health, LastError string
}

func (p *prometheus) targets(ctx context.Context) ([]target, error) {
	var data struct{ ActiveTargets []target }
	err := p.get(ctx, "/api/v1/targets?state=active", &data)
	return data.ActiveTargets, err
}

// ruleErrors returns the rules that Prometheus cannot evaluate, and an error while it has not evaluated all of them.
func (p *prometheus) ruleErrors(ctx context.Context) (broken []string, err error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get(ctx, "/api/v1/rules", &data); err != nil {
		return nil, err
	}
	for _, group := range data.Groups {
		for _, r := range group.Rules {
			switch r.Health {
			case "ok":
			case "unknown":
				err = fmt.Errorf("%s has not been evaluated yet", r.Name)
			default:
				broken = append(broken, r.Name+": "+r.LastError)
			}
		}
	}
	return broken, err
}
