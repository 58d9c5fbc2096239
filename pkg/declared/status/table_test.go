package status

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	controlplane "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/controlplane/v1beta1"
	infrastructure "github.com/lockstep-dns/lockstep/pkg/apis/clusterapi/infrastructure/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// spoken is what the functions of this package say, by reason: the conditions of each kind ("Ready=False"), and the messages.
type spoken struct {
	conditions map[string]map[string][]string
	messages   map[string]map[string]bool
}

var ordinal = regexp.MustCompile(`-[0-9]+$`)

func (s spoken) add(kind string, conditions []metav1.Condition) {
	for _, c := range conditions {
		if s.conditions[c.Reason] == nil {
			s.conditions[c.Reason], s.messages[c.Reason] = map[string][]string{}, map[string]bool{}
		}
		condition := ordinal.ReplaceAllString(c.Type, "-N") + "=" + string(c.Status)
		if of := s.conditions[c.Reason]; !slices.Contains(of[kind], condition) {
			of[kind] = append(of[kind], condition)
		}
		s.messages[c.Reason][c.Message] = true
	}
}

var www = rrset.Key{Name: "www.example.com.", Type: dns.TypeA}

// zoneProblems are the reasons for which nothing of a zone is programmed. Those of undeclared come before its content is known.
func zoneProblems() (problems, undeclared []Verdict) {
	z := zone()
	err := errors.New("connection refused")
	undeclared = []Verdict{
		DuplicateOf(z, "team"), DuplicateOf(z, "other"), BelowOthers("example.com."), IsPublicSuffix("com."), NotGranted("team", "example.com."),
		False(ReconcileFailed, "spec.ttl: 0 is not a TTL"),
	}
	return append([]Verdict{
		NoHosts(z), NoPrimary(nil), NoPrimary([]string{"dns/a"}), PrimaryWithoutPods("dns/dns-primary-0"), NoPrimaryYet(err),
		False(AddressPending, "Service dns/dns-primary-0 has no address yet"), PrimariesFailed(1, 2, "dns-primary-0-0", err, ""), ProviderFailed("etcd", err),
	}, undeclared...), undeclared
}

// serverFailures are the reasons of errors of servers, and of etcd, that only a person can end, or that last.
func serverFailures() (reasons []string) {
	for _, e := range []wire.Error{
		{TSIGError: dns.RcodeBadKey}, {TSIGError: dns.RcodeBadTime}, {TSIGError: dns.RcodeBadSig}, {Rcode: 23},
		{Err: wire.ErrTooLarge}, {Err: wire.ErrReply}, {Err: wire.ErrUnsendable}, {Err: syscall.ECONNREFUSED}, {Err: syscall.ETIMEDOUT}, {Err: syscall.EHOSTUNREACH},
	} {
		reasons = append(reasons, e.Reason())
	}
	for rcode := dns.RcodeFormatError; rcode <= dns.RcodeNotZone; rcode++ {
		reasons = append(reasons, (&wire.Error{Rcode: rcode}).Reason())
	}
	return append(reasons, ZoneNotFound, "NoSpace", AuthenticationFailed, "PermissionDenied", "CertificateFailed", "TooLarge")
}

func (s spoken) addZones() {
	problems, _ := zoneProblems()
	facts := []ZoneFacts{
		{}, {Servers: 3, Current: 3, Serial: 7, Ready: 5}, {Servers: 3, Current: 2, Serial: 7, Ready: 5}, {Servers: 3, Current: 3, Serial: 7, Ready: 4, Unready: 1},
		{Servers: 3, Current: 2, Untransferred: "dns-secondary-0-0: it was told to transfer the zone and stays at serial 6"},
		{Servers: 3, Paused: true}, {Servers: 3, Paused: true, Pending: 2},
		{Servers: 1, Current: 1, Contested: []string{Contest{Server: "dns-primary-0-0", Key: www, Count: 12, First: early, Next: late, Seen: []string{"203.0.113.66"}}.Message()}},
	}
	held := GuardHolds(zone(), "f00d", 3, 0, []string{www.String()})
	facts = append(facts, ZoneFacts{Servers: 1, Current: 1, HeldPlan: "f00d", Guarded: held, Failure: held})
	above := []string{"example.com"}
	for _, v := range []Verdict{
		DSRecordsAtAll(2, above, []string{"19507"}), DSRecordsLack(above, []string{"19507"}), DSRecordsLeft(above, []string{"19507"}), NotSignedEverywhere(), DSRecordsFrom(late),
		DSRecordsDeclared(above, []string{"19507"}, true), DSRecordsDeclared(above, []string{"19507"}, false), DSRecordsEarly(above),
		RegistryIsBehind(above, []string{"19507"}, nil, late, false), RegistryIsBehind(above, []string{"19507"}, []string{"1"}, early, false),
		RegistryUnmatched(above, []string{"19507"}), ParentsSilent(1, 2, above, []string{"19507"}), ParentsSilent(2, 2, above, []string{"19507"}),
		SigningWaitsForRegistry(above, true), SigningWaitsForRegistry(above, false), SigningWaitsForServers(false, above, true), SigningWaitsForServers(true, above, false), SigningEndsAt(false, late), SigningMayEnd(false), SigningMayEnd(true),
		CDSNotFollowed("it has no CDS or CDNSKEY records", above, nil), CDSNotFollowed("the signature of example.com. CDS with key 19507 is wrong", above, []string{"19507"}),
	} {
		facts = append(facts, ZoneFacts{Servers: 1, Current: 1, DNSSECKnown: true, Delegated: v})
	}
	for i := range facts {
		facts[i].Programmed = True(ReconcileSucceeded, "")
	}
	for _, p := range problems {
		facts = append(facts, ZoneFacts{Programmed: p})
		if p.Reason == DuplicateZone || p.Reason == NotPermitted || p.Reason == ReconcileFailed {
			facts = append(facts, ZoneFacts{Programmed: p, Failure: p})
		}
	}
	for _, reason := range serverFailures() {
		facts = append(facts, ZoneFacts{Programmed: False(PrimaryFailed, ""), Failure: False(reason, "")})
	}
	for _, f := range facts {
		s.add("DNSZone", Zone(v1beta1.DNSZoneStatus{}, f, early).Conditions)
	}
	overdue := ZoneFacts{Programmed: True(ReconcileSucceeded, ""), Servers: 2, Current: 1, Instances: []v1beta1.ZoneInstance{{Namespace: "dns", Name: "dns-secondary-0", Status: v1beta1.ZoneClaimed, Message: "dns-secondary-0-0 does not serve the zone yet"}}}
	s.add("DNSZone", Zone(Zone(v1beta1.DNSZoneStatus{}, overdue, early), overdue, late).Conditions)
}

func (s spoken) addRecords() {
	accepted, programmed := PartOf("example.com", ""), AnsweredByAll("example.com", www)
	refused := []Verdict{False(Invalid, "spec.ipv4Addresses[0]: \"192.0.2.256\" is not an IPv4 address"), False(Conflict, "ARecord team/www has this name and came first")}
	unsupported := CannotHold("DNSProvider etcd", "CoreDNS cannot serve CAA records from etcd")
	type outcome struct {
		accepted, programmed Verdict
		ready                string
	}
	outcomes := []outcome{{accepted, programmed, ""}, {unsupported, unsupported, ReconcileFailed}}
	for _, v := range refused {
		outcomes = append(outcomes, outcome{v, v, ReconcileFailed})
	}
	for _, v := range []Verdict{
		HeldBack("example"), OnlyWatched("dns-primary-0-0", www), RefusedBy("dns-primary-0-0", errors.New("update: answered REFUSED")), ChangedByOthers("dns-primary-0-0", www),
		NotServed("dns-primary-0-0", www), NotPublishable("corp/10.0.0.5:53", www, "paris/dns/corp (CNAME) published there first what cannot stand beside it"), InTheWayOf("dns-primary-0-0", www, []rrset.Key{{Name: www.Name, Type: dns.TypeCNAME}}),
		HiddenBy("dns-primary-0-0", www, rrset.Key{Name: "www.example.com."}), HiddenBy("dns-primary-0-0", www, rrset.Key{Name: "www.example.com.", Type: dns.TypeNS}),
		False(Contested, Contest{Server: "dns-primary-0-0", Key: www, Count: 12, First: early, Next: late, Seen: []string{"203.0.113.66"}}.Message()),
	} {
		outcomes = append(outcomes, outcome{accepted, v, ReconcileFailed})
	}
	problems, undeclared := zoneProblems()
	for _, p := range problems {
		ready := ZoneNotConfigured
		if p.Reason == NoPrimaryInstances {
			ready = p.Reason
		}
		outcomes = append(outcomes, outcome{accepted, p, ready})
	}
	for _, o := range outcomes {
		s.add("records", Record(v1beta1.RecordStatus{}, RecordFacts{Zone: zone(), Accepted: o.accepted, Programmed: o.programmed, ReadyReason: o.ready}, early).Conditions)
		z := EndpointZoneFacts{Name: "example", ZoneName: "example.com", Judged: true, Endpoints: []EndpointOutcome{{RRset: "www.example.com./A", Accepted: o.accepted, Programmed: o.programmed}}}
		s.add("DNSEndpoint", Endpoint(v1alpha1.DNSEndpointStatus{}, EndpointFacts{Zones: []EndpointZoneFacts{z}}, early).Conditions)
	}
	for _, p := range append(undeclared, Verdict{}) {
		z := EndpointZoneFacts{Name: "example", ZoneName: "example.com", Programmed: p}
		s.add("DNSEndpoint", Endpoint(v1alpha1.DNSEndpointStatus{}, EndpointFacts{Zones: []EndpointZoneFacts{z}}, early).Conditions)
	}
	unplaced := EndpointFacts{Unplaced: []EndpointOutcome{{RRset: "www.example.net/A"}}}
	s.add("DNSEndpoint", Endpoint(v1alpha1.DNSEndpointStatus{}, unplaced, early).Conditions)
	s.add("records", Unselected(v1beta1.RecordStatus{}, 1, NoZoneSelects(&metav1.ObjectMeta{Namespace: "team"}), early).Conditions)
	s.add("records", Unselected(v1beta1.RecordStatus{}, 1, AboutToBeTaken("team/other"), early).Conditions)
	s.add("records", Held(v1beta1.RecordStatus{}, 1, "is about to move to DNSZone team/other", early).Conditions)
}

// addFleet adds instances, and the clusters of each.
func (s spoken) addFleet() {
	fine := True(ReconcileSucceeded, "")
	crashing, ended := waiting(corev1.PodRunning, "CrashLoopBackOff", ""), waiting(corev1.PodPending, "ImagePullBackOff", "back-off")
	loading := Loading(1, 2)
	pods := []PodFacts{holding("dns-0", pod(true)), holding("dns-0", pod(false)), holding("dns-0", nil), holding("dns-0", crashing), holding("dns-0", ended), {Name: "dns-0", Pod: pod(true), Serving: fine, Unloaded: []string{"a.example: file not found"}}}
	for _, v := range []Verdict{loading, LoadingBecause(loading, NoPrimaryReady("example.com.")), LoadingBecause(loading, NotInNamed("example.com."))} {
		pods = append(pods, PodFacts{Name: "dns-0", Pod: pod(false), Serving: v})
	}
	var facts []InstanceFacts
	for _, reason := range []string{BindcarBadRequest, BindcarAuthFailed, ZoneNotFound, UpstreamUnreachable, BindcarInternalError, BindcarNotImplemented, GatewayError, BindcarUnreachable, RNDCAuthenticationFailed} {
		p := PodFacts{Name: "dns-0", Pod: pod(false), Serving: False(reason, "")}
		facts = append(facts, InstanceFacts{Pods: []PodFacts{p}})
		if isLasting := !slices.Contains([]string{UpstreamUnreachable, BindcarInternalError, GatewayError}, reason); isLasting {
			facts = append(facts, InstanceFacts{Pods: []PodFacts{p}, Failure: p.Failure()})
		}
	}
	for _, p := range pods {
		facts = append(facts, InstanceFacts{Pods: []PodFacts{p}}, InstanceFacts{Pods: []PodFacts{holding("dns-0", pod(true)), holding("dns-1", nil)}})
	}
	unaccepted := zone()
	for _, reason := range []string{"BadKey", "BadSignature"} {
		unaccepted.Status.FailureReason = reason
		facts = append(facts, InstanceFacts{Failure: KeysRefused(unaccepted, "other")})
	}
	for i := range facts {
		facts[i].Configured = fine
	}
	facts = append(facts, InstanceFacts{Pods: pods[:1], Configured: fine, Foreign: []string{"Pod old-1"}}, InstanceFacts{Configured: NoCluster("dns", "team")}, InstanceFacts{Configured: WaitingFor("StatefulSet dns")},
		InstanceFacts{Configured: False(NotEnrolled, ""), Terminal: true}, InstanceFacts{Configured: False(ConfigurationInvalid, ""), Terminal: true})
	var clusters []ClusterFacts
	for _, f := range facts {
		was := Instance(v1beta1.Bind9InstanceStatus{}, f, early)
		for _, is := range []v1beta1.Bind9InstanceStatus{was, Instance(was, f, late)} {
			s.add("Bind9Instance", is.Conditions)
			clusters = append(clusters, ClusterFacts{Configured: fine, Instances: []ClusterInstance{{"dns-0", &v1beta1.Bind9Instance{Status: is}}}})
		}
	}
	some := clusters[len(clusters)-1].Instances
	some = append(some, instance("b", true), instance("c", true, false))
	clusters = append(clusters, ClusterFacts{Configured: fine}, ClusterFacts{Configured: fine, Instances: []ClusterInstance{{"dns-0", nil}}}, ClusterFacts{Configured: fine, Instances: some},
		ClusterFacts{Configured: WaitingFor("Bind9Instance dns-0")}, ClusterFacts{Configured: False(NotEnrolled, ""), Terminal: true}, ClusterFacts{Configured: False(ConfigurationInvalid, ""), Terminal: true},
		ClusterFacts{Configured: fine, Instances: []ClusterInstance{instance("b", true)}, Leaving: []string{"a"}})
	for _, f := range clusters {
		for _, was := range []v1beta1.Bind9ClusterStatus{{}, {InstanceCount: 1}} {
			is := Cluster(was, f, early)
			s.add("Bind9Cluster", is.Conditions)
			s.add("Bind9Cluster", Cluster(is, f, late).Conditions)
			is = GlobalCluster(was, f, early)
			s.add("Bind9GlobalCluster", is.Conditions)
			s.add("Bind9GlobalCluster", GlobalCluster(is, f, late).Conditions)
		}
	}
}

func (s spoken) addProviders() {
	good := ProviderServerFacts{Address: "192.0.2.1:53", Role: "Primary", Reachable: true, Authenticated: true, HasZone: true}
	change := func(change func(*ProviderServerFacts)) ProviderFacts {
		bad := good
		change(&bad)
		return ProviderFacts{Servers: []ProviderServerFacts{good, bad}}
	}
	facts := []ProviderFacts{
		change(func(*ProviderServerFacts) {}), change(func(s *ProviderServerFacts) { s.Reachable, s.Authenticated, s.Problem = false, false, "no answer" }),
		change(func(s *ProviderServerFacts) { s.Authenticated, s.Problem = false, "BADKEY" }), change(func(s *ProviderServerFacts) { s.Authenticated, s.Unproven = false, true }),
		change(func(s *ProviderServerFacts) { s.UpdateProblem = "answered REFUSED" }), change(func(s *ProviderServerFacts) { s.TransferProblem = "answered REFUSED" }),
		{Unsupported: "zones cannot be on it"}, {KeyProblem: "Secret update-key does not exist"}, {LeftOut: "too many"},
		{Store: True(AllAuthenticated, ""), Servers: []ProviderServerFacts{good}},
	}
	for _, reason := range []string{Unreachable, SecretUnusable, AuthenticationFailed, "NoQuorum", "CertificateFailed", "PermissionDenied", "NoSpace", "TooLarge", "RequestFailed"} {
		facts = append(facts, ProviderFacts{Store: False(reason, ""), Servers: []ProviderServerFacts{good}})
	}
	for _, f := range facts {
		s.add("DNSProvider", Provider(v1beta1.DNSProviderStatus{}, f, early).Conditions)
	}
}

func (s spoken) addClusterAPI() {
	names := []PublishedName{liveName(), {Name: "a.example.com", Unread: "timeout"}, {Name: "a.example.com"}, {Problem: PublishedLater("a.example.com")},
		{Problem: EndpointOfOthers("cluster-a")}, {Problem: False(EndpointRefused, "")}, {Problem: False(Invalid, ""), Terminal: true}}
	ready, stopped := readyWorkspace(), readyWorkspace()
	unsynced, unready := ready, ready
	stopped.Unread, unsynced.Synced, unready.Ready = "timeout", Verdict{}, Verdict{}
	secrets := []Verdict{NoSecretNamed("prod"), SecretElsewhere("prod", "team"), SecretForbidden("prod"), SecretIncomplete("prod", "connection", "vpc_id")}
	clusters, planes := []CAPTClusterFacts{readyCluster()}, []CAPTControlPlaneFacts{readyControlPlane()}
	add := func(change func(*CAPTClusterFacts, *CAPTControlPlaneFacts)) {
		c, p := readyCluster(), readyControlPlane()
		change(&c, &p)
		clusters, planes = append(clusters, c), append(planes, p)
	}
	for _, n := range names {
		var conditions []metav1.Condition
		n.setCondition(&conditions, 1, early)
		s.add("Cluster", conditions)
		add(func(c *CAPTClusterFacts, p *CAPTControlPlaneFacts) { c.Name, p.Name = n, n })
	}
	for _, w := range []Workspace{{Name: "prod"}, stopped, unsynced, unready} {
		add(func(c *CAPTClusterFacts, p *CAPTControlPlaneFacts) { c.Workspace, p.Workspace = w, w })
	}
	for _, v := range secrets {
		add(func(c *CAPTClusterFacts, p *CAPTControlPlaneFacts) { c.VPCID, c.SecretProblem, p.VPC = "", v, v })
	}
	add(func(c *CAPTClusterFacts, p *CAPTControlPlaneFacts) { c.Endpoint, p.Endpoint = "", "" })
	for i := range clusters {
		c, _ := CAPTCluster(infrastructure.CAPTClusterStatus{}, clusters[i], early)
		s.add("CAPTCluster", c.Conditions)
		c, _ = CAPTCluster(c, clusters[i], late)
		s.add("CAPTCluster", c.Conditions)
		p, _ := CAPTControlPlane(controlplane.CAPTControlPlaneStatus{}, planes[i], early)
		s.add("CAPTControlPlane", p.Conditions)
		p, _ = CAPTControlPlane(p, planes[i], late)
		s.add("CAPTControlPlane", p.Conditions)
	}
}

func everything() spoken {
	s := spoken{map[string]map[string][]string{}, map[string]map[string]bool{}}
	s.addZones()
	s.addRecords()
	s.addFleet()
	s.addProviders()
	s.addClusterAPI()
	return s
}

// TestTable: the table has the conditions that this package makes of all facts, and its examples are messages that it makes.
func TestTable(t *testing.T) {
	said := everything()
	for reason, in := range conditionsOf(Table) {
		delete(in, "SyncStatus") // pkg/syncstatus
		if diff := cmp.Diff(said.conditions[reason], in, cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s (-code +table):\n%s", reason, diff)
		}
		delete(said.conditions, reason)
	}
	for reason, in := range said.conditions {
		t.Errorf("the table has no %s: %v", reason, in)
	}
	for _, section := range Table {
		for _, r := range section.Reasons {
			if r.Example != "" && !said.messages[r.Name][r.Example] {
				t.Errorf("%s, %s: no such message is made: %s", section.Title, r.Name, r.Example)
			}
		}
	}
}

// conditionsOf are the conditions of each reason, by kind, from all of its rows.
func conditionsOf(table []Section) map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, section := range table {
		for _, r := range section.Reasons {
			if all[r.Name] == nil {
				all[r.Name] = map[string][]string{}
			}
			for kind, conditions := range r.Conditions() {
				all[r.Name][kind] = append(all[r.Name][kind], conditions...)
			}
		}
	}
	return all
}
