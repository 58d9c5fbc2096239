package render

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// objectNote is what a tree says about an object that the lines below it do not.
func objectNote(s *v1alpha1.SyncStatus, now time.Time) string {
	var parts []string
	if s.ObjectRef.Kind == "DNSZone" {
		parts = append(parts, s.Zone)
		if s.Summary.Records > 0 {
			parts = append(parts, rrsetCount(s.Summary))
		}
	}
	if s.Status.FailureReason != "" || len(s.Servers) == 0 || s.Status.InSync {
		parts = append(parts, statusMessage(s, now))
	}
	return joinNonEmpty(parts...)
}

func rrsetCount(s v1alpha1.Summary) string {
	if s.RecordsOutOfSync > 0 {
		return fmt.Sprintf("%d of %s not in sync", s.RecordsOutOfSync, pluralize(s.Records, "RRset"))
	}
	return pluralize(s.Records, "RRset")
}

func pluralize(n int32, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(int(n)) + " " + what + "s"
}

// joinNonEmpty separates by commas what is not empty.
func joinNonEmpty(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

func podNodes(servers []v1alpha1.ServerStatus, now time.Time) []*treeNode {
	var nodes []*treeNode
	for _, s := range servers {
		nodes = append(nodes, podNode(s, now))
	}
	return nodes
}

// podNode makes the line of one server; zones that it does not serve as it should are below it.
func podNode(s v1alpha1.ServerStatus, now time.Time) *treeNode {
	n := &treeNode{
		name:   cell{serverNode(s), plain},
		inSync: s.State == v1alpha1.StateInSync,
		stuck:  s.SerialLag != nil && *s.SerialLag < 0 && s.Message != "",
		cells: [columns - 1]cell{
			{string(s.State), stateColor(s.State)}, {}, {text: s.Role}, {text: formatNumber(s.Serial)}, {text: formatLag(s, now)},
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
		n.children = append(n.children, &treeNode{
			name: cell{"Zone/" + z.Zone, plain},
			cells: [columns - 1]cell{
				{string(z.State), stateColor(z.State)}, {}, {}, {text: formatNumber(z.Serial)}, {text: formatNumber(z.SerialLag)}, {text: z.Message},
			},
		})
	}
	return n
}

// serverNode names a server as kubectl names objects.
func serverNode(s v1alpha1.ServerStatus) string {
	if s.Provider != "" {
		return "DNSProvider/" + s.ServerName()
	}
	return "Pod/" + s.Pod
}

func formatNumber(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// formatLag is how far a server is behind, in serials and, as far as that was seen, in time.
func formatLag(s v1alpha1.ServerStatus, now time.Time) string {
	if s.SerialLag == nil || s.BehindSince == nil {
		return formatNumber(s.SerialLag)
	}
	return fmt.Sprintf("%d (%s)", *s.SerialLag, max(0, now.Sub(s.BehindSince.Time)).Round(time.Second))
}

func serverNote(s v1alpha1.ServerStatus) string {
	var parts []string
	if s.Namespace != "" {
		parts = append(parts, "in namespace "+s.Namespace)
	}
	if s.ReadBy != "" {
		parts = append(parts, "read by "+strings.ToLower(s.ReadBy))
	}
	if s.Version != "" {
		parts = append(parts, "BIND "+s.Version)
	}
	if s.Zones != nil && s.Zones.OutOfSync == 0 {
		parts = append(parts, pluralize(s.Zones.InSync, "zone"))
	}
	if s.Restarts > 0 {
		parts = append(parts, pluralize(s.Restarts, "restart"))
	}
	if s.Sidecar != "" && s.Sidecar != "Ready" {
		parts = append(parts, "sidecar "+s.Sidecar)
	}
	return joinNonEmpty(append(parts, rowMessage(s))...)
}

// rowMessage is a row's message; without one it says what is unusual about the pod.
func rowMessage(s v1alpha1.ServerStatus) string {
	if s.Message == "" && !s.PodReady && s.Provider == "" {
		return "the pod is " + cmp.Or(strings.ToLower(string(s.PodPhase)), "not there") + " and not ready"
	}
	return s.Message
}
