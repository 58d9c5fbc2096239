package syncstatus

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	sync "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Path is how clients reach the pods of an instance: the address of its Service, and a protocol.
type Path struct {
	Namespace, Instance string
	Addr                netip.AddrPort
	TCP                 bool
}

// PathsTo are the paths to some servers, by instance, over UDP first.
func PathsTo(servers []observe.Server) []Path {
	var paths []Path
	for _, s := range servers {
		if !s.Service.IsValid() {
			continue
		}
		p := Path{Namespace: s.Namespace, Instance: s.Instance, Addr: netip.AddrPortFrom(s.Service, serving.ServicePort)}
		if slices.Contains(paths, p) {
			continue
		}
		overTCP := p
		overTCP.TCP = true
		paths = append(paths, p, overTCP)
	}
	return paths
}

func (p Path) protocol() corev1.Protocol {
	if p.TCP {
		return corev1.ProtocolTCP
	}
	return corev1.ProtocolUDP
}

// PathState is what an answer on a path to a question without a key shows: InSync if clients get the zone.
func PathState(o observe.Observation) sync.ServerState {
	state, _ := answerState(o)
	return cmp.Or(state, sync.StateInSync)
}

// access is what the clients of a zone's servers get. It is told once every server has what is declared.
type access struct {
	paths []sync.Path
	// answered says whether clients get an answer on every path.
	answered status.Verdict
	// reason and problem are why clients do not get the servers' answers, or get others as well; empty if they do. soon is true
	// if that ends by itself.
	reason, problem string
	soon            bool
	// doubt is why it is not known what some clients get; empty if it is.
	doubt string
}

// readPaths reads what was answered on the paths to the zone's servers, and what follows.
func (j *Evaluation) readPaths(servers []observe.Server) (a access) {
	if j.past.OnPath == nil || v1beta1.IsGoing(j.zone) {
		return a
	}
	var pending, failed, refused []string
	broken := false
	for _, p := range PathsTo(servers) {
		o, asked := j.past.OnPath(p)
		row := j.pathRow(p, o, asked)
		switch {
		case !asked:
			pending = append(pending, describePath(p, row))
		case row.State == sync.StateRefused:
			refused = append(refused, describePath(p, row))
		case row.State != sync.StateInSync:
			if isAnyReady(servers, p) {
				broken = true
			} else {
				row.Message = "no pod of the instance is ready, so the Service has no endpoints"
			}
			failed = append(failed, describePath(p, row))
		}
		a.paths = append(a.paths, row)
	}
	if len(refused) > 0 {
		a.doubt = fmt.Sprintf("what clients get is not known: %s; does allowQuery admit them, but not the API server?", strings.Join(refused, "; "))
	}
	message := fmt.Sprintf("%d of %d paths answer", len(a.paths)-len(pending)-len(failed)-len(refused), len(a.paths))
	switch {
	case len(failed) > 0:
		a.reason, a.soon, a.problem = status.NotAnswered, !broken, "clients get no answer from "+strings.Join(failed, "; ")
		a.answered = status.False(a.reason, message+"; "+a.problem)
	case len(pending) > 0:
		a.reason, a.soon, a.problem = status.Pending, true, "it is being asked what clients get from "+strings.Join(pending, "; ")
		a.answered = status.Unknown(a.reason, message+"; "+a.problem)
	case a.doubt != "":
		a.answered = status.Unknown(string(sync.StateRefused), message+"; "+a.doubt)
	default:
		a.answered = status.True(status.Answered, message)
	}
	return a
}

// withForeign adds what the Services of some servers send queries to besides these.
func (a access) withForeign(servers []observe.Server) access {
	for _, s := range servers {
		if s.Foreign != "" {
			a.reason, a.problem, a.soon = status.ForeignPods, s.Foreign, false
			return a
		}
	}
	return a
}

func (j *Evaluation) pathRow(p Path, o observe.Observation, asked bool) sync.Path {
	row := sync.Path{Instance: p.Instance, Address: p.Addr.String(), Protocol: p.protocol(), State: sync.StateUnreachable, Message: "it has not been asked yet"}
	if p.Namespace != j.zone.Namespace {
		row.Namespace = p.Namespace
	}
	if !asked {
		return row
	}
	state, message := answerState(o)
	row.State, row.Message = cmp.Or(state, sync.StateInSync), message
	if errors.Is(o.Err, syscall.ECONNREFUSED) {
		row.Message = "nobody listens there: the connection is refused"
	}
	if state == sync.StateRefused {
		row.Message = "answers REFUSED to a question without a key"
	}
	row.ObservedAt = new(metav1.NewMicroTime(o.At))
	if o.RTT > 0 {
		row.RTT = &metav1.Duration{Duration: o.RTT}
	}
	if o.Rcode != observe.NoReply {
		row.Rcode = wire.RcodeName(o.Rcode)
	}
	if o.Authoritative {
		row.Serial = new(int64(o.Serial))
	}
	return row
}

func describePath(p Path, row sync.Path) string {
	return fmt.Sprintf("instance %s at %s over %s (%s)", p.Instance, row.Address, row.Protocol, row.Message)
}

// isAnyReady reports whether a path's Service has a pod to send queries to.
func isAnyReady(servers []observe.Server, p Path) bool {
	return slices.ContainsFunc(servers, func(s observe.Server) bool {
		return s.Namespace == p.Namespace && s.Instance == p.Instance && s.PodReady
	})
}

// or is the first access with a problem, else the first with a doubt.
func (a access) or(b access) access {
	if a.problem == "" && (b.problem != "" || a.doubt == "") {
		return b
	}
	return a
}
