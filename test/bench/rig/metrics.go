package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// system is the namespace that Lockstep runs in.
const system = "lockstep-system"

// metricsPort is the controller's.
const metricsPort = 8080

// metricSample is one line of a metrics page (Prometheus' text format).
type metricSample struct {
	name   string
	labels map[string]string
	value  float64
}

var labelPattern = regexp.MustCompile(`([a-zA-Z_]+)="((?:[^"\\]|\\.)*)"`)

func parseMetrics(page []byte) []metricSample {
	var all []metricSample
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			continue
		}
		s := metricSample{value: value, labels: map[string]string{}}
		var labels string
		s.name, labels, _ = strings.Cut(line[:cut], "{")
		for _, m := range labelPattern.FindAllStringSubmatch(labels, -1) {
			s.labels[m[1]] = m[2]
		}
		all = append(all, s)
	}
	return all
}

// sumSamples adds up the samples of a name that match.
func sumSamples(all []metricSample, name string, match func(labels map[string]string) bool) float64 {
	total := 0.0
	for _, s := range all {
		if s.name == name && (match == nil || match(s.labels)) {
			total += s.value
		}
	}
	return total
}

// Controller is the state of the controller's process.
type Controller struct {
	// CPU is what it has used since its start, in seconds; Resident is its memory in bytes.
	CPU, Resident float64
	Started       time.Time
	// Zones is how many it has been over, Queued how many wait for a pass or are in one.
	Zones, Queued float64
}

// ControllerState asks the controller's pod for its metrics. Of several replicas it takes the one that works.
func (r *Rig) ControllerState(ctx context.Context) (Controller, error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		return Controller{}, err
	}
	var found *Controller
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		page, err := fetchPage(ctx, fmt.Sprintf("http://%s:%d/metrics", pod.Status.PodIP, metricsPort))
		if err != nil {
			continue
		}
		if c := parseController(parseMetrics(page)); found == nil || c.Zones > found.Zones {
			found = &c
		}
	}
	if found == nil {
		return Controller{}, fmt.Errorf("none of %d pods of the controller shows its metrics", len(pods.Items))
	}
	return *found, nil
}

func parseController(all []metricSample) Controller {
	zones := func(l map[string]string) bool { return l["controller"] == "zone" }
	return Controller{
		CPU:      sumSamples(all, "process_cpu_seconds_total", nil),
		Resident: sumSamples(all, "process_resident_memory_bytes", nil),
		Started:  time.UnixMilli(int64(1000 * sumSamples(all, "process_start_time_seconds", nil))),
		Zones:    sumSamples(all, "lockstep_zones", nil),
		Queued:   sumSamples(all, "workqueue_depth", zones) + sumSamples(all, "controller_runtime_active_workers", zones),
	}
}

// RestartController deletes the controller's pods.
func (r *Rig) RestartController(ctx context.Context) error {
	return r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "controller"})
}

// WaitRestarted waits until another controller works and has been over at least so many zones, with none left in its queue.
func (r *Rig) WaitRestarted(ctx context.Context, zones int, limit time.Duration) (c Controller, err error) {
	err = PollUntil(ctx, limit, 100*time.Millisecond, func() error {
		switch c, err = r.ControllerState(ctx); {
		case err != nil:
			return err
		case c.Started.Equal(r.controllerStarted):
			return errors.New("the old controller is still there")
		case c.Zones < float64(zones) || c.Queued > 0:
			return fmt.Errorf("%.0f zones passed over, %.0f wait", c.Zones, c.Queued)
		}
		return nil
	})
	r.controllerStarted = c.Started
	return c, err
}

func fetchPage(ctx context.Context, url string) ([]byte, error) {
	return fetchPageWith(ctx, http.DefaultClient, url)
}

func fetchPageWith(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// CountWrites returns how many writes of our kinds and of Events the API server has taken since its start.
func (r *Rig) CountWrites(ctx context.Context) (float64, error) {
	requests, err := r.CountRequests(ctx)
	total := 0.0
	for what, n := range requests {
		switch verb, _, _ := strings.Cut(what, " "); verb {
		case "GET", "LIST", "WATCH", "CONNECT":
		default:
			total += n
		}
	}
	return total, err
}

// CountRequests returns how many requests for our kinds and for Events the API server has taken since its start, by verb and
// resource: "APPLY arecords/status".
func (r *Rig) CountRequests(ctx context.Context) (map[string]float64, error) {
	c, err := rest.UnversionedRESTClientFor(r.unversionedConfig())
	if err != nil {
		return nil, err
	}
	page, err := c.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	requests := map[string]float64{}
	for _, s := range parseMetrics(page) {
		l := s.labels
		if s.name == "apiserver_request_total" && (l["group"] == "bindy.firestoned.io" || l["group"] == "externaldns.k8s.io" || l["resource"] == "events") {
			requests[l["verb"]+" "+path.Join(l["resource"], l["subresource"])] += s.value
		}
	}
	return requests, nil
}

// TrackPeakMemory watches the controller's memory, once a second, until it is stopped; stop gives the greatest value in bytes.
func (r *Rig) TrackPeakMemory(ctx context.Context) (stop func() float64) {
	ctx, cancel := context.WithCancel(ctx)
	var peak float64
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if c, err := r.ControllerState(ctx); err == nil {
				peak = max(peak, c.Resident)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return func() float64 {
		cancel()
		wg.Wait()
		return peak
	}
}

// MiB returns bytes in MiB.
func MiB(bytes float64) float64 { return bytes / (1 << 20) }

// unversionedConfig returns a configuration for paths that belong to no API group.
func (r *Rig) unversionedConfig() *rest.Config {
	config := rest.CopyConfig(r.config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
