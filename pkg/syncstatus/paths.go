package syncstatus

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/vantage"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Path is how clients reach servers: an address, and a protocol.
type Path struct {
	Type syncv1.PathType
	// Vantage is who asks; empty for the API server.
	Vantage string
	// Instance or Provider is what has the address, if anything of the zone's does. Namespace is its namespace, else the zone's.
	Namespace, Instance, Provider string
	Addr                          netip.AddrPort
	TCP                           bool
}

// PathsTo are the paths to the Services of some servers, by instance, over UDP first.
func PathsTo(servers []observe.Server) []Path {
	var paths []Path
	for _, s := range servers {
		if !s.Service.IsValid() {
			continue
		}
		p := pathTo(s, syncv1.PathService, netip.AddrPortFrom(s.Service, serving.ServicePort))
		if !slices.Contains(paths, p) {
			paths = append(paths, p, p.overTCP())
		}
	}
	return paths
}

func pathTo(s observe.Server, of syncv1.PathType, at netip.AddrPort) Path {
	return Path{Type: of, Namespace: s.Namespace, Instance: s.Instance, Provider: s.Provider, Addr: at}
}

func (p Path) overTCP() Path {
	p.TCP = true
	return p
}

// Bounds of the further paths to a zone: how many addresses of one zone are asked, and how many of those that are only published.
const maxAddresses, maxPublished = 64, 16

// FurtherPaths are the other paths to the zone's servers that are known, each address over UDP first: the outer addresses of Services, the
// pods, the servers of providers, and what is published for name servers. Those that somebody outside may use are asked from each vantage
// too. parent is nil if no zone above is known.
func (ev *Evaluation) FurtherPaths(parent *Evaluation) []Path {
	known := map[netip.AddrPort]bool{}
	var own []Path
	services := PathsTo(ev.asked)
	for _, p := range services {
		known[p.Addr] = true
	}
	add := func(p Path) {
		if p.Addr.IsValid() && p.Addr.Port() != 0 && !known[p.Addr] && len(own) < 2*maxAddresses {
			known[p.Addr] = true
			own = append(own, p, p.overTCP())
		}
	}
	for _, p := range serviceAddresses(ev.asked) {
		add(p)
	}
	own = append(own, nodePorts(ev.asked)...)
	for _, s := range ev.asked {
		if s.Provider != "" {
			add(pathTo(s, syncv1.PathProvider, s.Addr))
		}
	}
	names, published := ev.published(parent), 0
	for _, a := range slices.SortedFunc(maps.Keys(names), netip.Addr.Compare) {
		at := netip.AddrPortFrom(a, serving.ServicePort)
		if !known[at] && published < maxPublished {
			published++
			add(Path{Type: syncv1.PathNameServer, Namespace: ev.zone.Namespace, Addr: at})
		}
	}
	for _, s := range ev.asked {
		add(pathTo(s, syncv1.PathPod, s.Addr))
	}
	mayAsk := func(p Path) bool { return p.isOpen(names) || p.Type == syncv1.PathProvider }
	return append(own, fromVantages(ev.past.Vantages, slices.Concat(services, own), mayAsk)...)
}

// serviceAddresses are the paths to the further addresses of Services.
func serviceAddresses(servers []observe.Server) (paths []Path) {
	for _, s := range servers {
		of := syncv1.PathExternal
		if slices.Contains(s.ServiceAddresses, s.Service) {
			of = syncv1.PathService // of the other family
		}
		for _, a := range s.ServiceAddresses {
			paths = append(paths, pathTo(s, of, netip.AddrPortFrom(a, serving.ServicePort)))
		}
	}
	return paths
}

// fromVantages are those of some paths that each vantage may ask.
func fromVantages(vantages []string, paths []Path, may func(Path) bool) (all []Path) {
	for _, vantage := range vantages {
		for _, p := range paths {
			if may(p) {
				p.Vantage = vantage
				all = append(all, p)
			}
		}
	}
	return all
}

// nodePorts are the paths to the Services of some servers by way of the nodes that run their pods.
func nodePorts(servers []observe.Server) (paths []Path) {
	for _, s := range servers {
		for i, port := range s.NodePorts {
			p := pathTo(s, syncv1.PathNodePort, netip.AddrPortFrom(s.Node, port))
			if p.TCP = i == 1; port != 0 && s.Node.IsValid() && !slices.Contains(paths, p) && len(paths) < maxAddresses {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// published are the addresses of name servers in the zone and, as glue, in its parent, with the names that have them.
func (ev *Evaluation) published(parent *Evaluation) map[netip.Addr][]string {
	names := map[netip.Addr][]string{}
	add := func(m *observe.Mirror) {
		servers, _ := m.Get(rrset.Key{Name: ev.ZoneName(), Type: dns.TypeNS})
		for _, name := range servers.Rdata[:min(len(servers.Rdata), maxNameServers)] {
			for _, a := range addressesIn(m, name) {
				if !slices.Contains(names[a], name) {
					names[a] = append(names[a], name)
				}
			}
		}
	}
	for _, e := range ev.ofApex() {
		if e.mirror != nil {
			add(e.mirror)
		}
	}
	if parent != nil {
		if m := parent.newestContent(); m != nil {
			add(m)
		}
	}
	for _, n := range names {
		slices.Sort(n)
	}
	return names
}

// addressesIn are the addresses that a server's content has for a name.
func addressesIn(m *observe.Mirror, name string) (addresses []netip.Addr) {
	for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
		s, _ := m.Get(rrset.Key{Name: name, Type: t})
		for _, text := range s.Rdata {
			if a, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, a)
			}
		}
	}
	return addresses
}

// isOpen reports whether clients outside of the Kubernetes cluster may use the path, as far as that is declared.
func (p Path) isOpen(names map[netip.Addr][]string) bool {
	return p.Type == syncv1.PathExternal || p.Type == syncv1.PathNodePort || len(p.namesIn(names)) > 0
}

func (p Path) namesIn(names map[netip.Addr][]string) []string {
	if p.Addr.Port() != serving.ServicePort {
		return nil
	}
	return names[p.Addr.Addr()]
}

func (p Path) protocol() corev1.Protocol {
	if p.TCP {
		return corev1.ProtocolTCP
	}
	return corev1.ProtocolUDP
}

// PathState is what an answer on a path to a question without a key shows: InSync if clients get the zone.
func PathState(o observe.Observation) syncv1.ServerState {
	state, _ := answerState(o)
	return cmp.Or(state, syncv1.StateInSync)
}

// access is what the clients of a zone's servers get. It is told once every server has what is declared.
type access struct {
	paths []syncv1.Path
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
func (ev *Evaluation) readPaths(servers []observe.Server) (a access) {
	if ev.past.OnPath == nil || v1beta1.IsGoing(ev.zone) {
		return a
	}
	var pending, failed, refused []string
	broken := false
	for _, p := range PathsTo(servers) {
		o, asked := ev.past.OnPath(p)
		row := ev.pathRow(p, o, asked)
		switch {
		case !asked:
			pending = append(pending, describePath(p, row))
		case row.State == syncv1.StateRefused:
			refused = append(refused, describePath(p, row))
		case row.State != syncv1.StateInSync:
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
		a.answered = status.Unknown(string(syncv1.StateRefused), message+"; "+a.doubt)
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

func (ev *Evaluation) pathRow(p Path, o observe.Observation, asked bool) syncv1.Path {
	row := syncv1.Path{
		Type: p.Type, Vantage: p.Vantage, Instance: p.Instance, Provider: p.Provider, Address: p.Addr.String(), Protocol: p.protocol(),
		State: syncv1.StateUnreachable, Message: "it has not been asked yet", Server: o.ServerID,
	}
	if p.Namespace != ev.zone.Namespace {
		row.Namespace = p.Namespace
	}
	if !asked {
		return row
	}
	state, message := answerState(o)
	row.State, row.Message = cmp.Or(state, syncv1.StateInSync), message
	if errors.Is(o.Err, syscall.ECONNREFUSED) {
		row.Message = "nobody listens there: the connection is refused"
	}
	if state == syncv1.StateRefused {
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

func describePath(p Path, row syncv1.Path) string {
	return fmt.Sprintf("instance %s at %s over %s (%s)", p.Instance, row.Address, row.Protocol, row.Message)
}

// isAnyReady reports whether a path's Service has a pod to send queries to.
func isAnyReady(servers []observe.Server, p Path) bool {
	return slices.ContainsFunc(servers, func(s observe.Server) bool {
		return s.Namespace == p.Namespace && s.Instance == p.Instance && s.PodReady
	})
}

// PathAnswer is what came back on one of FurtherPaths.
type PathAnswer struct {
	observe.Observation
	// Known are the SOA records that the zone's servers were known to have when the question was sent.
	Known []rrset.SOA
}

// SOAs are those that the servers have; nil if there are servers without one of their own.
func (ev *Evaluation) SOAs() (known []rrset.SOA) {
	for _, e := range ev.servers {
		if e.unsigned {
			return nil
		}
		if e.row.Serial != nil && !slices.Contains(known, e.observed.SOA) {
			known = append(known, e.observed.SOA)
		}
	}
	return known
}

// furtherRows has a row for each of FurtherPaths if any was asked, and what the zone's condition Answered is by these: base is what it is
// without them; without a status if nobody is known to be a client. Nobody asks for them while nobody wants to know of this zone, so
// nothing is said then.
func (ev *Evaluation) furtherRows(parent *Evaluation, base status.Verdict) ([]syncv1.Path, status.Verdict) {
	if len(ev.access.paths) == 0 {
		base = status.Verdict{}
	}
	if ev.past.OnFurther == nil || ev.past.IsFurtherAsked != nil && !ev.past.IsFurtherAsked() {
		return ev.access.paths, base
	}
	rows, names, paths := slices.Clone(ev.access.paths), ev.published(parent), ev.FurtherPaths(parent)
	for i, p := range PathsTo(ev.asked)[:len(rows)] {
		rows[i].NameServers = p.namesIn(names)
	}
	var found furtherAnswers
	soas := ev.SOAs()
	for _, p := range paths {
		a, asked := ev.past.OnFurther(p)
		row := ev.pathRow(p, a.Observation, asked)
		row.NameServers = p.namesIn(names)
		if !asked || wire.IsLocal(a.Err) || errors.Is(a.Err, outbound.ErrForbidden) || vantage.IsNotAsked(a.Err) {
			row.State = syncv1.StateUnknown
		} else if row.State == syncv1.StateInSync {
			row.State, row.Message = ev.compareSOA(a, soas)
		}
		rows = append(rows, row)
		if p.isOpen(names) {
			found.add(row)
		}
	}
	return rows, found.addTo(base)
}

// compareSOA is the state of an answer with authority. It differs only if the servers cannot have had its SOA record between the question and
// now: they changed from one of those that they were known to have when it was sent to those of now.
func (ev *Evaluation) compareSOA(a PathAnswer, now []rrset.SOA) (syncv1.ServerState, string) {
	known := slices.Concat(now, a.Known)
	if len(now) == 0 || len(a.Known) == 0 || slices.Contains(known, a.SOA) {
		return syncv1.StateInSync, ""
	}
	newest := now[0]
	for _, soa := range now[1:] {
		if rrset.SerialLess(newest.Serial, soa.Serial) {
			newest = soa
		}
	}
	isNewer := func(known rrset.SOA) bool { return rrset.SerialLess(known.Serial, a.Serial) }
	behind := int64(int32(newest.Serial - a.Serial)) //nolint:gosec // wraps as intended (RFC 1982)
	switch {
	case slices.ContainsFunc(known, func(s rrset.SOA) bool { return s.Serial == a.Serial }):
		return syncv1.StateDivergent, fmt.Sprintf("answers with serial %d of the servers and another SOA record", a.Serial)
	case behind > 0 && slices.ContainsFunc(a.Known, isNewer):
		return syncv1.StateInSync, ""
	case behind > 0:
		return syncv1.StateStale, fmt.Sprintf("answers with serial %d, which is %d behind the servers' %d", a.Serial, behind, newest.Serial)
	case ev.at.Before(a.At):
		return syncv1.StateUnknown, fmt.Sprintf("answers with serial %d, which is newer than the servers' %d was a moment before", a.Serial, newest.Serial)
	}
	return syncv1.StateDivergent, fmt.Sprintf("answers with serial %d, which no server has: the newest is %d", a.Serial, newest.Serial)
}

// furtherAnswers are what clients were found to get on further paths.
type furtherAnswers struct {
	asked         int
	wrong, unseen []string
}

func (f *furtherAnswers) add(row syncv1.Path) {
	f.asked++
	switch row.State {
	case syncv1.StateInSync:
	case syncv1.StateUnknown, syncv1.StateUnreachable, syncv1.StateRefused:
		f.unseen = append(f.unseen, describeFurther(row))
	default:
		f.wrong = append(f.wrong, describeFurther(row))
	}
}

// addTo adds to a verdict about Services, and never makes it better.
func (f *furtherAnswers) addTo(base status.Verdict) status.Verdict {
	if f.asked == 0 {
		return base
	}
	message := fmt.Sprintf("%d of %d further paths of clients answer", f.asked-len(f.wrong)-len(f.unseen), f.asked)
	if base.Status == "" {
		base = status.True(status.Answered, message)
	} else {
		base.Message += "; " + message
	}
	switch {
	case base.Status == metav1.ConditionFalse:
	case len(f.wrong) > 0:
		return status.False(status.NotAnswered, base.Message+"; clients get something else from "+describeSome(f.wrong))
	case base.Holds() && len(f.unseen) > 0:
		return status.Unknown(string(syncv1.StateUnreachable), base.Message+"; what clients get is not known of "+describeSome(f.unseen))
	}
	return base
}

func describeSome(paths []string) string { return status.JoinSome(paths, maxDescribed, "; ") }

// maxDescribed bounds the paths in a message.
const maxDescribed = 5

func describeFurther(row syncv1.Path) string {
	text := row.Address + " over " + string(row.Protocol)
	if len(row.NameServers) > 0 {
		text = strings.Join(row.NameServers, ", ") + " at " + text
	}
	if row.Vantage != "" {
		text += " as seen from " + row.Vantage
	}
	return fmt.Sprintf("%s (%s)", text, row.Message)
}

// or is the first access with a problem, else the first with a doubt.
func (a access) or(b access) access {
	if a.problem == "" && (b.problem != "" || a.doubt == "") {
		return b
	}
	return a
}
