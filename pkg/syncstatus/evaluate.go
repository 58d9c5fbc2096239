package syncstatus

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
)

// maxObserved bounds the differing RRsets in one row, maxObservedBytes their values: a server may have any number of them.
const maxObserved, maxObservedBytes = 20, 64 << 10

// Evaluation is the comparison of a zone's desired state with one round of answers.
type Evaluation struct {
	*DesiredState
	// asked are the servers that servers has the answers of.
	asked   []observe.Server
	servers []serverAnswer
	// at is the time of the oldest answer.
	at     time.Time
	past   History
	access access // of the clients of all servers
	gaps   []string
}

// serverAnswer is what follows from one server's answer before RRsets are compared.
type serverAnswer struct {
	id        serverID
	index     int        // among the servers of the zone
	namespace string     // of the instance
	service   netip.Addr // of the instance
	// serviceAddresses are those at which clients reach the Service.
	serviceAddresses []netip.Addr
	row              syncv1.ServerStatus // State is set if mirror is nil
	mirror           *observe.Mirror     // nil unless the state follows from the data
	observed         *observe.Observation
	// since is when an answer of a server that is read by query must have been given, unless the zone has not changed.
	since   time.Time
	answers askedAnswers
	// shared is the provider of a server whose primary others write to as well: it and its secondaries have serials of their own, and
	// the apex is not the zone object's there. Empty for all others, which have one serial.
	shared string
	// owner is who claims values there if each writer has its own; empty if not.
	owner string
	// reference is what the server's serial is compared with; lag the distance to it: positive when behind, negative when ahead.
	reference reference
	lag       int64
	// unsigned is true of a server without keys; configured and why are then how the zone is where the controller keeps it, and
	// cached counts the RRsets that may be from a cache.
	unsigned   bool
	configured v1beta1.ZoneInstanceStatus
	why        string
	cached     int
	// waiting is true while the controller has not configured the zone on this server's instance.
	waiting bool
}

// Evaluate compares a zone with the answers of its servers. answers[i] is that of servers[i]; a server without an address needs
// none. now is when the round ended.
func Evaluate(d *DesiredState, servers []observe.Server, answers []observe.Observation, now time.Time, past History) *Evaluation {
	ev := &Evaluation{DesiredState: d, asked: servers, at: now, past: past, gaps: findGaps(past.Validation)}
	lines := map[string]*serialLine{}
	for i, s := range servers {
		e := d.readAnswer(s, answers[i])
		e.index = i
		if lines[e.shared] == nil {
			lines[e.shared] = &serialLine{}
		}
		e.since = answers[i].At.Add(-MaxAnswerAge)
		if past.Since.After(e.since) {
			e.since = past.Since
		}
		if e.row.Serial != nil && !answers[i].Unverified {
			lines[e.shared].add(uint32(*e.row.Serial), s.Role) //nolint:gosec // it was a uint32
		}
		if at := answers[i].At; !at.IsZero() && at.Before(ev.at) {
			ev.at = at
		}
		ev.servers = append(ev.servers, e)
	}
	ev.access = ev.readPaths(servers).withForeign(servers)
	for i, a := range answers {
		s := &ev.servers[i]
		s.setReference(lines[s.shared].reference())
		s.setBehindSince(past, a.At)
	}
	return ev
}

// History is what was observed of a zone's servers before. The zero History has no observations.
type History struct {
	// Since is when the answers must have been given that servers read by query give for each RRset, unless their zone has not
	// changed; zero if older ones will do.
	Since time.Time
	// OnPath returns the last answer on a path to a question without a key for the zone's SOA; it is not ok if there is none.
	// Without it nothing is said about paths.
	OnPath func(Path) (o observe.Observation, ok bool)
	// OnFurther is OnPath for Evaluation.FurtherPaths, which only some zones are asked about; nil if none is.
	OnFurther func(Path) (a PathAnswer, ok bool)
	// IsFurtherAsked reports whether the zone was asked about on FurtherPaths lately; nil if it always is.
	IsFurtherAsked func() bool
	// Vantages are the names of those who ask from elsewhere.
	Vantages []string
	// Validation judges the servers, in their order, as a validating resolver does; nil if nothing is said about that. WithChain shows the
	// chains.
	Validation *validate.View
	WithChain  bool
	// BehindSince is called for each server with a serial and whether it is behind the newest at a time. It returns since when the
	// server has been behind; zero if it is not.
	BehindSince func(server observe.Peer, behind bool, at time.Time) time.Time
	// CachedUntil returns until when resolvers may cache what a server held before, and no longer holds, at a name and type; zero
	// if unknown.
	CachedUntil func(server observe.Peer, k rrset.Key) time.Time
}

func (p History) cachedUntil(server observe.Peer, k rrset.Key) time.Time {
	if p.CachedUntil == nil {
		return time.Time{}
	}
	return p.CachedUntil(server, k)
}

func (e *serverAnswer) setBehindSince(past History, at time.Time) {
	if past.BehindSince == nil || e.row.Serial == nil {
		return
	}
	if since := past.BehindSince(e.id.peer, e.lag > 0, at); !since.IsZero() {
		e.row.BehindSince = new(metav1.NewMicroTime(since))
	}
}

// reference is the newest serial of a line; nil if no server answered with one.
type reference struct {
	newest *uint32
	// fromPrimary is true if newest is a primary's.
	fromPrimary bool
}

// serialLine has the serials of servers that are to have the same one.
type serialLine struct{ primaries, all []uint32 }

func (l *serialLine) add(serial uint32, role observe.Role) {
	if l.all = append(l.all, serial); role == observe.Primary {
		l.primaries = append(l.primaries, serial)
	}
}

func (l *serialLine) reference() reference {
	if newest := newestSerial(l.primaries); newest != nil {
		return reference{newest, true}
	}
	return reference{newest: newestSerial(l.all)}
}

func newestSerial(serials []uint32) *uint32 {
	var newest *uint32
	for i := range serials {
		if newest == nil || rrset.SerialLess(*newest, serials[i]) {
			newest = &serials[i]
		}
	}
	return newest
}

func (e *serverAnswer) setReference(r reference) {
	if e.reference = r; e.row.Serial == nil || r.newest == nil {
		return
	}
	// The signed difference of the two 32-bit serials is their distance in RFC 1982's sense.
	e.lag = int64(int32(*r.newest - uint32(*e.row.Serial))) //nolint:gosec // wraps as intended
	e.row.SerialLag = &e.lag
}

// readAnswer makes a row of an answer, with its State if that does not depend on the data.
func (d *DesiredState) readAnswer(s observe.Server, o observe.Observation) serverAnswer {
	e := serverAnswer{id: serverID{s.Pod, s.Peer()}, namespace: s.Namespace, service: s.Service, serviceAddresses: s.ServiceAddresses, observed: &o, row: syncv1.ServerStatus{
		Instance: s.Instance, Pod: s.Pod, Role: string(s.Role), PodPhase: s.PodPhase, PodReady: s.PodReady,
	}}
	if s.ReadBy == v1beta1.ReadByQuery {
		e.row.ReadBy = string(s.ReadBy)
	}
	if s.Provider != "" {
		e.row.Provider, e.row.Pod = s.Provider, ""
	}
	if s.Shared {
		e.shared, e.owner = s.Provider, s.Owner
	}
	if s.Namespace != d.zone.Namespace {
		e.row.Namespace = s.Namespace
	}
	configured, why := d.hostStatus(s)
	e.waiting, e.unsigned, e.configured, e.why = configured == v1beta1.ZoneClaimed, s.Unsigned, configured, why
	if !s.Addr.IsValid() {
		e.row.State, e.row.Message = syncv1.StateUnreachable, podMessage(s)
		return e
	}
	e.row.Address = s.Addr.String()
	if !o.At.IsZero() {
		e.row.ObservedAt = new(metav1.NewMicroTime(o.At))
	}
	if o.RTT > 0 {
		e.row.RTT = &metav1.Duration{Duration: o.RTT}
	}
	e.row.Authoritative = o.AA
	if o.Rcode != observe.NoReply {
		e.row.Rcode = wire.RcodeName(o.Rcode)
	}
	if o.Authoritative && o.Rcode == dns.RcodeSuccess && !s.Unsigned {
		e.row.Serial = new(int64(o.Serial))
	}
	if s.Role != observe.Primary && o.ExpiresIn > 0 {
		e.row.ExpiresAt = new(metav1.NewTime(o.At.Add(o.ExpiresIn).Truncate(time.Second)))
	}
	e.row.State, e.row.Message = stateWithoutData(o)
	switch {
	case e.row.State == "":
		e.mirror, e.answers = o.Mirror, o.Answers
	case e.row.State == syncv1.StateUnreachable && s.Message != "":
		e.row.Message += "; " + s.Message
	case e.waiting && s.Provider == "":
		e.row.Message += "; the zone is not configured on this instance yet"
	case why != "" && configured != v1beta1.ZoneConfigured:
		e.row.Message += "; " + why
	}
	return e
}

// stateWithoutData is the state that follows from the answer alone; "" if it depends on the data.
func stateWithoutData(o observe.Observation) (syncv1.ServerState, string) {
	state, message := answerState(o)
	switch {
	case state != "":
		return state, message
	case o.Err != nil:
		return transferState(o)
	case o.Mirror == nil:
		return syncv1.StateUnreachable, "the zone's data could not be fetched for comparison"
	}
	return "", ""
}

// answerState is the state that follows from the answer to the query for the SOA; "" if the server serves the zone.
func answerState(o observe.Observation) (syncv1.ServerState, string) {
	switch {
	case o.Rcode == observe.NoReply:
		return syncv1.StateUnreachable, o.Message()
	case o.Rcode == dns.RcodeServerFailure:
		return syncv1.StateNotLoaded, "answers SERVFAIL: the zone is configured but has no data, or has expired"
	case o.Rcode == dns.RcodeNotAuth:
		return syncv1.StateNotLoaded, "answers NOTAUTH: the zone is not loaded"
	case o.Rcode == dns.RcodeRefused:
		return syncv1.StateRefused, "answers REFUSED: the zone is not configured on this server, or the server refuses our queries"
	case o.Rcode == dns.RcodeNameError && o.AA:
		return syncv1.StateLame, "answers NXDOMAIN for the zone's own name: it serves a parent zone but not this one"
	case o.Rcode == dns.RcodeNameError:
		return syncv1.StateLame, "answers NXDOMAIN without authority for the zone"
	case o.Rcode != dns.RcodeSuccess:
		return syncv1.StateRefused, "answers " + wire.RcodeName(o.Rcode)
	case !o.Authoritative && o.AA:
		return syncv1.StateLame, "answers without an SOA for the zone's own name: it serves a parent zone but not this one"
	case !o.Authoritative:
		return syncv1.StateLame, "answers without authority for the zone"
	}
	return "", ""
}

// transferState is the state of a server that answers for the zone but whose data could not be transferred: whether it is as declared is
// unknown.
func transferState(o observe.Observation) (syncv1.ServerState, string) {
	if we, ok := errors.AsType[*wire.Error](o.Err); ok && (we.Rcode != dns.RcodeSuccess || we.TSIGError != 0) {
		return syncv1.StateRefused, "answers queries, but its data cannot be compared: the zone transfer " + we.Detail()
	}
	return syncv1.StateUnreachable, o.Message()
}

func podMessage(s observe.Server) string {
	switch {
	case s.Message != "":
		return s.Message
	case s.PodPhase == "":
		return "the pod does not exist"
	case s.PodPhase == corev1.PodPending:
		return "the pod has no address yet"
	}
	return fmt.Sprintf("the pod has no address (%s)", s.PodPhase)
}

// compareRRsets compares the RRsets in keys on one server and returns its completed row.
func (ev *Evaluation) compareRRsets(e serverAnswer, keys []rrset.Key) syncv1.ServerStatus {
	row := e.row
	if e.mirror == nil {
		ev.setSecurity(&row, &e, keys)
		return row
	}
	var differing, missing int
	var hidden obstacles
	var unknown unknowns
	var oldest time.Time
	waiting, confirmed, held := true, true, false
	for _, k := range keys {
		want, have, at, known := e.contentAt(ev.DesiredState, k)
		if !known {
			unknown.add(e.mirror, k, ev.isPending(k) || ev.isUnobserved())
			continue
		}
		oldest = status.Earlier(oldest, at)
		confirmed = confirmed && (!e.unsigned || ev.isConfirmed(k))
		if sameData(want, have) && !hidden.add(ev.desired, &e, want) {
			continue
		}
		differing++
		if e.unsigned && ev.isCached(k, have, at) {
			e.cached++
		}
		waiting, held = waiting && (ev.isPending(k) || ev.isUnobserved()), held || ev.isHeld(k)
		if len(have.Rdata) == 0 {
			missing++
		}
		if !sameData(want, have) {
			showObserved(&row, k, have)
		}
	}
	row.State, row.Message = ev.stateByData(&e, differing, missing, waiting)
	e.markHeld(&row, held)
	hidden.describeIn(&row, differing == len(hidden.shadows))
	unknown.describeIn(&row, len(keys))
	setObservedAt(&row, oldest)
	e.confirmUnsigned(&row, confirmed)
	e.nameOthers(ev.DesiredState, &row, keys)
	ev.setSecurity(&row, &e, keys)
	return row
}

// maxOthers is how many values of others a row names.
const maxOthers = 5

// nameOthers says which values others have in RRsets of a server with an owner.
func (e *serverAnswer) nameOthers(d *DesiredState, row *syncv1.ServerStatus, keys []rrset.Key) {
	if e.owner == "" || row.State != syncv1.StateInSync && row.State != syncv1.StateDivergent {
		return
	}
	var all []string
	for _, k := range keys {
		if len(d.desiredAt(k).Rdata) > 0 {
			_, others := e.have(d, k)
			for _, value := range others {
				all = append(all, shorten(value))
			}
		}
	}
	if len(all) > 0 {
		row.Message = joinMessages(row.Message, "others have there: "+status.JoinSome(all, maxOthers, ", "))
	}
}

// shorten bounds a value in a message.
func shorten(value string) string {
	const most = 100
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "..."
}

// stateByData is the state of a server on which so many RRsets are not as declared.
func (ev *Evaluation) stateByData(e *serverAnswer, differing, missing int, pending bool) (syncv1.ServerState, string) {
	switch {
	case differing == 0:
		return syncv1.StateInSync, e.saysAhead()
	case e.lag > 0:
		return syncv1.StateStale, fmt.Sprintf("serial %d is %d behind %s", *e.row.Serial, e.lag, e.reference)
	case pending:
		return syncv1.StateStale, "the change has not been programmed yet"
	case e.unsigned:
		return unsignedState(differing, missing, e.cached)
	case e.lag < 0:
		return syncv1.StateDivergent, cmp.Or(e.saysAhead(), fmt.Sprintf("serial %d is ahead of the primaries' %d: no transfer will repair it", *e.row.Serial, *e.reference.newest))
	case differing == missing:
		return syncv1.StateMissing, fmt.Sprintf("serial %d is the newest, but the data is missing", *e.row.Serial)
	}
	return syncv1.StateDivergent, fmt.Sprintf("serial %d is the newest, but the data is not what is declared", *e.row.Serial)
}

// markHeld marks a server that waits for nothing but the confirmation of what the zone's guard holds back.
func (e *serverAnswer) markHeld(row *syncv1.ServerStatus, held bool) {
	if held && e.lag <= 0 && (row.State == syncv1.StateStale || row.State == syncv1.StateInSync) {
		row.State, row.Message = syncv1.StateHeld, "the zone's guard holds the change back"
	}
}

// saysAhead says that a secondary that others run is ahead of the zone's primaries; empty if it is not. A secondary of ours is ordered to
// transfer the zone, and the serial of shared primaries is not the zone's to set.
func (e *serverAnswer) saysAhead() string {
	if e.lag >= 0 || e.row.Provider == "" || e.shared != "" || e.row.Role != string(observe.Secondary) || !e.reference.fromPrimary {
		return ""
	}
	return status.AheadOfPrimaries(uint32(*e.row.Serial), *e.reference.newest) //nolint:gosec // it was a uint32
}

// String is the serial in words.
func (r reference) String() string {
	if r.fromPrimary {
		return fmt.Sprintf("the primaries' %d", *r.newest)
	}
	return fmt.Sprintf("%d, the newest of any server, as no primary reports one", *r.newest)
}

func sameData(want, have rrset.RRset) bool {
	if len(want.Rdata) == 0 {
		return len(have.Rdata) == 0
	}
	return want.TTL == have.TTL && slices.Equal(want.Rdata, have.Rdata)
}

// showObserved adds an RRset to those that a row shows, with as many of its values as there is room for; the first RRset has one at least.
func showObserved(row *syncv1.ServerStatus, k rrset.Key, s rrset.RRset) {
	if len(row.Observed) >= maxObserved {
		return
	}
	room := maxObservedBytes
	for _, shown := range row.Observed {
		room -= sizeOf(shown.Rdata)
	}
	out := renderRRset(k, s)
	for i, value := range out.Rdata {
		if room -= len(value); room < 0 && (i > 0 || len(row.Observed) > 0) {
			out.Rdata, out.Omitted = slices.Clone(out.Rdata[:i]), int32(len(out.Rdata)-i) //nolint:gosec // bounded by memory
			break
		}
	}
	row.Observed = append(row.Observed, out)
}

func sizeOf(values []string) (bytes int) {
	for _, v := range values {
		bytes += len(v)
	}
	return bytes
}

func renderRRset(k rrset.Key, s rrset.RRset) syncv1.RRset {
	out := syncv1.RRset{Name: k.Name, Type: dns.Type(k.Type).String()}
	if len(s.Rdata) > 0 {
		out.TTL, out.Rdata = new(int64(s.TTL)), s.Rdata
	}
	return out
}
