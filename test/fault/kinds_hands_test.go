package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/model"
)

// handKinds change zones on servers by hand.
var handKinds = []kind{
	{"overwrite", 4, fleetNames, false, (*world).overwrite},
	{"remove-data", 3, fleetNames, false, (*world).removeData},
	{"foreign-data", 4, fleetNames, false, (*world).changeForeign},
	{"delegate", 2, fleetNames, false, func(w *world, f *fault) error {
		return w.hideNames(f, pick(w, "a0", "deep", "a1"), "NS ns.elsewhere.example.")
	}},
	{"redirect", 2, fleetNames, false, func(w *world, f *fault) error { return w.hideNames(f, "deep", "DNAME elsewhere.example.") }},
	{"serial-ahead", 2, fleetNames, false, (*world).jumpSerial},
}

// key reads one of a fleet's TSIG keys.
func (w *world) key(ctx context.Context, fleet string, role named.KeyRole) (*wire.Key, error) {
	secret := &corev1.Secret{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: named.KeyringSecretName(fleet, role)}, secret); err != nil {
		return nil, err
	}
	return named.KeyFromSecret(secret)
}

// update sends an UPDATE to a pod and notes that it may have changed a name and type of the zone; "*" is all of it.
func (w *world) update(f *fault, pod, zone, key string, edit func(*dns.Msg)) error {
	ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
	defer cancel()
	secret, err := w.key(ctx, f.fleet, named.KeyUpdate)
	if err != nil {
		return err
	}
	p, err := w.pod(ctx, w.namespace, pod)
	if err != nil {
		return err
	}
	m := new(dns.Msg)
	m.SetUpdate(zone + ".")
	edit(m)
	m.SetTsig(secret.Name, secret.Algorithm, 300, time.Now().Unix())
	c := &dns.Client{Net: "tcp", Timeout: 2 * time.Second, TsigSecret: map[string]string{secret.Name: secret.Secret}}
	begin := now()
	reply, _, err := c.ExchangeContext(ctx, m, net.JoinHostPort(p.Status.PodIP, dnsPort))
	if err == nil && reply.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("%s answered %s", pod, dns.RcodeToString[reply.Rcode])
	}
	w.history.write("hand", entry{"begin": begin, "end": now(), "zone": zone, "pod": pod, "key": key, "fault": f.id})
	return err
}

func record(text string) []dns.RR {
	rr, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return []dns.RR{rr}
}

func (f *fault) primary(w *world) string {
	return pick(w, fleetOf(f.fleet).pods()[:fleetOf(f.fleet).primaries]...)
}

func (f *fault) zone(w *world) string { return pick(w, fleetOf(f.fleet).zones...) }

// overwrite adds a value to what is declared. The objects stay as they are until it is mended: what nobody declares any more would be
// foreign, and stay.
func (w *world) overwrite(f *fault) error {
	zone := f.zone(w)
	owner := pick(w, "a0", "a1", "shared", "e0")
	release := w.keepDeclared(zone, owner)
	if release == nil {
		return errNotNow
	}
	defer release()
	name := owner + "." + zone + "."
	if err := w.update(f, f.primary(w), zone, name+" A", func(m *dns.Msg) { m.Insert(record(name + " 17 A " + overwritten)) }); err != nil {
		return err
	}
	f.end = now()
	if err := w.until(mendTimeout, func(ctx context.Context) error {
		return w.onAll(ctx, f.fleet, name, dns.TypeA, func(text string) bool { return !strings.Contains(text, overwritten) })
	}); err != nil {
		w.Logf("overwritten: %v", err)
	}
	return nil
}

const (
	// overwritten is an address that no object declares.
	overwritten = "203.0.113.9"
	// mendTimeout is how long a change by hand may take to be mended or copied, with other faults at the same time.
	mendTimeout = 20 * time.Second
)

// keepDeclared keeps objects that declare addresses at a name from changing until the returned function is called. It returns nil
// if there is none, or one of them changes now.
func (w *world) keepDeclared(zone, owner string) (release func()) {
	var kept []*slot
	release = func() {
		for _, s := range kept {
			s.mutex.Unlock()
		}
	}
	declared := false
	for _, s := range w.slots {
		if s.zone != zone || !slices.Contains(s.owners, owner) || s.kind != "ARecord" && s.kind != model.EndpointKind {
			continue
		}
		if !s.mutex.TryLock() {
			release()
			return nil
		}
		kept = append(kept, s)
		declared = declared || s.there && s.owner == owner
	}
	if !declared {
		release()
		return nil
	}
	return release
}

// removeData removes what may be declared.
func (w *world) removeData(f *fault) error {
	zone := f.zone(w)
	name, rrtype, _ := strings.Cut(pick(w, "a0 A", "t0 TXT", "c0 CNAME", "shared A", "d0 NS"), " ")
	name += "." + zone + "."
	return w.update(f, f.primary(w), zone, name+" "+rrtype, func(m *dns.Msg) {
		m.RemoveRRset([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: name, Rrtype: dns.StringToType[rrtype]}}})
	})
}

// hideNames puts a record above what may be declared, so that servers hold it and answer something else, and takes it away again
// from every primary.
func (w *world) hideNames(f *fault, owner, text string) error {
	zone := f.zone(w)
	rrs := record(owner + "." + zone + ". 300 " + text)
	name, rrtype := rrs[0].Header().Name, rrs[0].Header().Rrtype
	if err := w.update(f, f.primary(w), zone, "*", func(m *dns.Msg) { m.Insert(rrs) }); err != nil {
		// A server that has not answered may have taken it all the same, or still take it.
		return errors.Join(err, w.until(mendTimeout, func(context.Context) error { return w.removeFrom(f, zone, rrs) }))
	}
	f.hold(w, 500, 4000)
	if err := w.until(writeTimeout, func(context.Context) error { return w.removeFrom(f, zone, rrs) }); err != nil {
		return err
	}
	f.end = now()
	isGone := func(ctx context.Context) error {
		err := w.onAll(ctx, f.fleet, name, rrtype, func(text string) bool { return text == "none" })
		if err != nil && w.onPrimaries(ctx, f.fleet, name, rrtype, func(text string) bool { return text == "none" }) != nil {
			return errors.Join(err, w.removeFrom(f, zone, rrs)) // another primary has brought it back
		}
		return err
	}
	return w.until(writeTimeout, func(ctx context.Context) error {
		if err := isGone(ctx); err != nil {
			return err
		}
		w.pause(time.Second) // a pass that has seen it on a primary may be about to bring it to the others
		return isGone(ctx)
	})
}

// removeFrom removes records from every primary of a fleet.
func (w *world) removeFrom(f *fault, zone string, rrs []dns.RR) error {
	for _, pod := range fleetOf(f.fleet).pods()[:fleetOf(f.fleet).primaries] {
		if err := w.update(f, pod, zone, "*", func(m *dns.Msg) { m.Remove(rrs) }); err != nil {
			return err
		}
	}
	return nil
}

// changeForeign adds what no object declares, or removes it, and waits until all servers have it so.
func (w *world) changeForeign(f *fault) error {
	zone := f.zone(w)
	key := pick(w, foreignKeys(zone)...)
	name, rrtype, _ := strings.Cut(key, " ")
	text := fmt.Sprintf(`"by hand %d"`, w.random(1000))
	if rrtype == "A" {
		text = fmt.Sprint("203.0.113.", 1+w.random(200))
	}
	want := "none"
	edit := func(m *dns.Msg) { m.RemoveName(record(name + " 60 " + rrtype + " " + text)) }
	if w.random(3) > 0 {
		want = "60 " + text
		edit = func(m *dns.Msg) {
			rrs := record(name + " 60 " + rrtype + " " + text)
			m.RemoveRRset(rrs)
			m.Insert(rrs)
		}
	}
	if err := w.update(f, f.primary(w), zone, key, edit); err != nil {
		return err
	}
	f.end = now()
	if err := w.until(mendTimeout, func(ctx context.Context) error {
		return w.onAll(ctx, f.fleet, name, dns.StringToType[rrtype], func(text string) bool { return text == want })
	}); err != nil {
		w.Logf("foreign data: %v", err) // whether it stays is open then
		return nil
	}
	w.history.write("foreign", entry{"zone": zone, "key": key, "value": want, "begin": f.begin, "end": now()})
	return nil
}

// jumpSerial sets a zone's serial far ahead; two such jumps go around.
func (w *world) jumpSerial(f *fault) error {
	zone, pod := f.zone(w), f.primary(w)
	p, err := w.pod(w.Context(), w.namespace, pod)
	if err != nil {
		return err
	}
	reply, err := ask(p.Status.PodIP, zone+".", dns.TypeSOA)
	if err != nil {
		return err
	}
	if len(reply.Answer) != 1 {
		return errNotNow
	}
	soa := dns.Copy(reply.Answer[0]).(*dns.SOA)
	soa.Serial += 1 << 30
	return w.update(f, pod, zone, "serial", func(m *dns.Msg) { m.Insert([]dns.RR{soa}) })
}

func ask(address, name string, rrtype uint16) (*dns.Msg, error) {
	return kube.Query(net.JoinHostPort(address, dnsPort), name, rrtype, time.Second)
}

// waitAnswers waits until a server answers anything.
func (w *world) waitAnswers(address string) error {
	return w.until(restartTimeout, func(context.Context) error {
		_, err := ask(address, "version.bind.", dns.TypeTXT)
		return err
	})
}

// onAll returns an error unless the answers of all servers of a fleet fit.
func (w *world) onAll(ctx context.Context, fleet, name string, rrtype uint16, fits func(string) bool) error {
	return w.onPods(ctx, fleetOf(fleet).pods(), name, rrtype, fits)
}

func (w *world) onPrimaries(ctx context.Context, fleet, name string, rrtype uint16, fits func(string) bool) error {
	return w.onPods(ctx, fleetOf(fleet).pods()[:fleetOf(fleet).primaries], name, rrtype, fits)
}

func (w *world) onPods(ctx context.Context, pods []string, name string, rrtype uint16, fits func(string) bool) error {
	for _, pod := range pods {
		p, err := w.pod(ctx, w.namespace, pod)
		if err != nil {
			return err
		}
		reply, err := ask(p.Status.PodIP, name, rrtype)
		if err != nil {
			return err
		}
		if text := textOf(reply, name, rrtype); !fits(text) {
			return fmt.Errorf("%s answers %s for %s", pod, text, name)
		}
	}
	return nil
}

// textOf returns an RRset of an answer as questions.py does.
func textOf(reply *dns.Msg, name string, rrtype uint16) string {
	var ttl uint32
	var all []string
	for _, rr := range slices.Concat(reply.Answer, reply.Ns) {
		if rr.Header().Name == name && rr.Header().Rrtype == rrtype {
			ttl, all = rr.Header().Ttl, append(all, rdataOf(rr))
		}
	}
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return fmt.Sprint(ttl, " ", strings.Join(all, " | "))
}

func rdataOf(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }

// transferAll transfers every zone from every server.
func (w *world) transferAll() {
	w.Helper()
	for _, f := range fleets {
		for _, zone := range f.zones {
			for _, pod := range f.pods() {
				if err := w.until(20*time.Second, func(ctx context.Context) error { return w.transfer(ctx, f.name, zone, pod) }); err != nil {
					w.Errorf("transferring %s from %s: %v", zone, pod, err)
				}
			}
		}
	}
}

// transfer transfers a zone and writes its RRsets down as the observer writes answers.
func (w *world) transfer(ctx context.Context, fleet, zone, pod string) error {
	secret, err := w.key(ctx, fleet, named.KeyTransfer)
	if err != nil {
		return err
	}
	p, err := w.pod(ctx, w.namespace, pod)
	if err != nil {
		return err
	}
	m := new(dns.Msg)
	m.SetAxfr(zone + ".")
	m.SetTsig(secret.Name, secret.Algorithm, 300, time.Now().Unix())
	t := &dns.Transfer{TsigSecret: map[string]string{secret.Name: secret.Secret}}
	begin := now()
	envelopes, err := t.In(m, net.JoinHostPort(p.Status.PodIP, dnsPort))
	if err != nil {
		return err
	}
	var records []dns.RR
	var errs []error
	for e := range envelopes {
		records, errs = append(records, e.RR...), append(errs, e.Error)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	ttls, rdata, rrsets, serial := map[string]uint32{}, map[string][]string{}, map[string]string{}, uint32(0)
	for _, rr := range records {
		key := rr.Header().Name + " " + dns.TypeToString[rr.Header().Rrtype]
		if soa, ok := rr.(*dns.SOA); ok {
			serial = soa.Serial
			continue
		}
		ttls[key], rdata[key] = rr.Header().Ttl, append(rdata[key], rdataOf(rr))
	}
	for key, all := range rdata {
		slices.Sort(all)
		rrsets[key] = fmt.Sprint(ttls[key], " ", strings.Join(all, " | "))
	}
	w.history.write("transfer", entry{"begin": begin, "end": now(), "zone": zone, "pod": pod, "serial": serial, "rrsets": rrsets})
	return nil
}
