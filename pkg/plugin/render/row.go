package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// note is what a tree says about an object that the lines below it do not.
func note(s *v1alpha1.SyncStatus, now time.Time) string {
	var parts []string
	if s.ObjectRef.Kind == "DNSZone" {
		parts = append(parts, s.Zone)
		if s.Summary.Records > 0 {
			parts = append(parts, rrsets(s.Summary))
		}
	}
	if s.Status.FailureReason != "" || len(s.Servers) == 0 || s.Status.InSync {
		parts = append(parts, message(s, now))
	}
	return joined(parts...)
}

func rrsets(s v1alpha1.Summary) string {
	if s.RecordsOutOfSync > 0 {
		return fmt.Sprintf("%d of %s not in step", s.RecordsOutOfSync, counted(s.Records, "RRset"))
	}
	return counted(s.Records, "RRset")
}

func counted(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(int(n)) + " " + what + "s"
}

// joined separates by commas what is not empty.
func joined(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

func pods(servers []v1alpha1.ServerStatus, now time.Time) []*node {
	var nodes []*node
	for _, s := range servers {
		nodes = append(nodes, pod(s, now))
	}
	return nodes
}

// pod is the line of one server; zones that it does not serve as it should are below it.
func pod(s v1alpha1.ServerStatus, now time.Time) *node {
	n := &node{
		name:   cell{"Pod/" + s.Pod, plain},
		inStep: s.State == v1alpha1.StateInSync,
		about: [columns - 1]cell{
			{string(s.State), ofState(s.State)}, {}, {text: s.Role}, {text: number(s.Serial)}, {text: lag(s, now)},
			{text: serverNote(s)},
		},
	}
	if s.Zones == nil {
		return n
	}
	for _, z := range s.Zones.Worst {
		if z.State == v1alpha1.StateInSync {
			continue
		}
		n.children = append(n.children, &node{
			name: cell{"Zone/" + z.Zone, plain},
			about: [columns - 1]cell{
				{string(z.State), ofState(z.State)}, {}, {}, {text: number(z.Serial)}, {text: number(z.SerialLag)}, {text: z.Message},
			},
		})
	}
	return n
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// lag is how far a server is behind, in serials and, as far as that was seen, in time.
func lag(s v1alpha1.ServerStatus, now time.Time) string {
	if s.SerialLag == nil || s.BehindSince == nil {
		return number(s.SerialLag)
	}
	return fmt.Sprintf("%d (%s)", *s.SerialLag, max(0, now.Sub(s.BehindSince.Time)).Round(time.Second))
}

func serverNote(s v1alpha1.ServerStatus) string {
	var parts []string
	if s.Namespace != "" {
		parts = append(parts, "in namespace "+s.Namespace)
	}
	if s.Version != "" {
		parts = append(parts, "BIND "+s.Version)
	}
	if s.Zones != nil && s.Zones.OutOfSync == 0 {
		parts = append(parts, counted(s.Zones.InSync, "zone"))
	}
	if s.Restarts > 0 {
		parts = append(parts, counted(s.Restarts, "restart"))
	}
	if s.Sidecar != "" && s.Sidecar != "Ready" {
		parts = append(parts, "sidecar "+s.Sidecar)
	}
	return joined(append(parts, unsaid(s))...)
}

// unsaid is what a row's message says; of one without a message, that it is not as usual.
func unsaid(s v1alpha1.ServerStatus) string {
	if s.Message == "" && !s.PodReady {
		return "the pod is " + cmp.Or(strings.ToLower(string(s.PodPhase)), "not there") + " and not ready"
	}
	return s.Message
}
