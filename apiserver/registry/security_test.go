package registry

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/apiserver/store"
	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/validate"
	"github.com/lockstep-dns/lockstep/test/fakekube"
	bind "github.com/lockstep-dns/lockstep/test/named"
)

// signer signs a zone with one key.
type signer struct {
	t    testing.TB
	zone string
	dir  string
	ds   []dns.RR
}

func newSigner(t testing.TB, zone string) *signer {
	t.Helper()
	s := &signer{t: t, zone: zone, dir: t.TempDir()}
	key := strings.TrimSpace(s.run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", "-f", "KSK", zone))
	ds := s.run("dnssec-dsfromkey", "-2", key+".key")
	rr, err := dns.NewRR(strings.TrimSpace(ds))
	if err != nil {
		t.Fatal(err)
	}
	s.ds = []dns.RR{rr}
	return s
}

func (s *signer) run(program string, args ...string) string {
	s.t.Helper()
	command := exec.Command(program, args...)
	command.Dir = s.dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s", program, args, err, stderr.String())
	}
	return string(out)
}

// sign returns the file of the signed zone, with signatures that were valid for a day and will be for some time.
func (s *signer) sign(records string, valid time.Duration, options ...string) string {
	s.t.Helper()
	text := fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s\n", s.zone, records)
	if err := os.WriteFile(filepath.Join(s.dir, "zone"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("20060102150405") }
	s.run("dnssec-signzone", append(options, "-q", "-P", "-S", "-z", "-o", s.zone, "-O", "full", "-s", at(-24*time.Hour), "-e", at(valid), "zone")...)
	signed, err := os.ReadFile(filepath.Join(s.dir, "zone.signed"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(signed)
}

// without is a zone file without the lines that contain all of some texts.
func without(file string, texts ...string) string {
	var out []string
	for line := range strings.Lines(file) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

const day = 24 * time.Hour

// secured is a world with one signed zone, of which each server has a file of its own.
func secured(t *testing.T, anchors validate.Anchors, records []string, files map[string]string, extra ...bind.Zone) *world {
	t.Helper()
	w := newWorld(t, func(o *testOptions) {
		o.SignatureNotice = 3 * day
		o.TrustAnchors = func() *validate.Anchors { return &anchors }
	})
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	z := fakekube.Zone("example.test", names...)
	for _, name := range names {
		zone := bind.Zone{Name: "example.test.", File: files[name], Extra: "dnssec-update-mode no-resign;"}
		s := bind.Start(t, bind.Options{Zones: append([]bind.Zone{zone}, extra...), Transfer: w.Key})
		w.Server(name, v1beta1.RolePrimary, s.Addr)
	}
	w.Apply(z)
	for _, name := range records {
		w.Apply(w.Record(z, name, "192.0.2.10"))
	}
	return w
}

func security(s *syncv1.SyncStatus, instance string) (row syncv1.ServerStatus) {
	for _, r := range s.Servers {
		if r.Instance == instance {
			return r
		}
	}
	return row
}

// What a validating resolver makes of each server's answers is seen by whoever asks for one object, and by lists.
func TestSecurity(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	const records = "www A 192.0.2.10\n"
	good := s.sign(records, 10*day)
	other := newSigner(t, "example.test.")
	anchors := validate.Anchors{"example.test.": s.ds}
	wrong := strings.Replace(good, "192.0.2.10", "192.0.2.11", 1) // The signature is of other data.
	for name, c := range map[string]struct {
		anchors  validate.Anchors
		file     string
		get      syncv1.Security
		cause    string
		unlisted bool // Only who asks for the object sees it.
	}{
		"valid, by an anchor":    {anchors, good, syncv1.SecuritySecure, "", false},
		"valid, by its own keys": {nil, good, syncv1.SecuritySecure, "", false},
		"expires soon":           {anchors, s.sign(records, day), syncv1.SecurityExpiring, "", false},
		"expired":                {anchors, s.sign(records, -time.Hour), syncv1.SecurityBogus, "Signature Expired", false},
		"expired, own keys":      {nil, s.sign(records, -time.Hour), syncv1.SecurityBogus, "Signature Expired", false},
		"other key":              {anchors, other.sign(records, 10*day), syncv1.SecurityBogus, "DNSKEY Missing", false},
		"no signature":           {anchors, without(good, "www.example.test.", "RRSIG", "A 13"), syncv1.SecurityBogus, "RRSIGs Missing", false},
		"not signed, but should": {anchors, "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.10\n", syncv1.SecurityBogus, "DNSKEY Missing", false},
		"not signed":             {nil, "$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.10\n", syncv1.SecurityInsecure, "", false},
		"SOA without signature":  {anchors, without(good, "RRSIG", "SOA 13"), syncv1.SecuritySecure, "", false},
		"wrong signature":        {anchors, wrong, syncv1.SecurityBogus, "DNSSEC Bogus", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := secured(t, c.anchors, nil, map[string]string{"one": c.file})
			z := fakekube.Zone("example.test", "one")
			address := "192.0.2.10"
			if name == "wrong signature" {
				address = "192.0.2.11"
			}
			w.Apply(w.Record(z, "www", address))
			w.Eventually("the caches have the record", func() bool {
				s, err := w.verdicts.getVerdict(w.ctx, keyOf("arecord.www"))
				return err == nil && len(s.Servers) == 1
			})
			check := func(what string, s *syncv1.SyncStatus) {
				t.Helper()
				row := security(s, "one")
				if row.Security != c.get || row.SecurityCause != c.cause {
					t.Errorf("%s: %s %q (%s), want %s %q", what, row.Security, row.SecurityCause, row.Message, c.get, c.cause)
				}
				bogus := c.get == syncv1.SecurityBogus
				if (row.State == syncv1.StateBogus) != bogus || (s.Status.Phase == syncv1.PhaseOutOfSync) != bogus || s.Status.InSync == bogus {
					t.Errorf("%s: %s, row %+v", what, states(s), row)
				}
				cond := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionValidated)
				if cond == nil || (cond.Status == metav1.ConditionFalse) != bogus || cond.Reason != string(c.get) {
					t.Errorf("%s: %+v", what, cond)
				}
				isSigned := c.get == syncv1.SecuritySecure || c.get == syncv1.SecurityExpiring
				if isSigned && (row.SignaturesExpireAt == nil || len(row.KeyTags) != 1) {
					t.Errorf("%s: expires %v, keys %v", what, row.SignaturesExpireAt, row.KeyTags)
				}
			}
			if !c.unlisted {
				check("list, first", w.listed("arecord.www"))
			}
			got := w.get("arecord.www")
			check("get", got)
			if (len(got.Chain) > 0) != (c.get != syncv1.SecurityInsecure) {
				t.Errorf("chain %+v", got.Chain)
			}
			check("list", w.listed("arecord.www"))
			if name == "SOA without signature" { // Nobody needs it to believe the record.
				c.get, c.cause = syncv1.SecurityBogus, "RRSIGs Missing"
			}
			if name != "no signature" && !c.unlisted {
				check("zone", w.get("dnszone.example.test"))
			}
		})
	}
}

// A zone is judged by the DS records of its parent, which is judged by its own.
func TestSecurityByParent(t *testing.T) {
	t.Parallel()
	child, parent := newSigner(t, "example.test."), newSigner(t, "test.")
	file := child.sign("www A 192.0.2.10\n", 10*day)
	for name, c := range map[string]struct {
		records string
		anchors validate.Anchors
		want    syncv1.Security
		message string
	}{
		"with DS":                {delegation + child.ds[0].String(), nil, syncv1.SecuritySecure, "no trust anchor and no parent zone of test. is known here"},
		"with DS, and an anchor": {delegation + child.ds[0].String(), validate.Anchors{"test.": parent.ds}, syncv1.SecuritySecure, ""},
		"without DS":             {delegation, nil, syncv1.SecurityInsecure, "the parent zone test. has no DS record for example.test."},
		"with another DS":        {delegation + newSigner(t, "example.test.").ds[0].String(), nil, syncv1.SecurityBogus, "no usable key that one of its DS records"},
		"with another anchor":    {delegation + child.ds[0].String(), validate.Anchors{"test.": newSigner(t, "test.").ds}, syncv1.SecurityBogus, "the parent zone test. is Bogus"},
		"without delegation":     {"", nil, syncv1.SecuritySecure, "the parent zone test. does not delegate to example.test."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := bind.Zone{Name: "test.", File: parent.copy().sign(c.records, 10*day), Extra: "dnssec-update-mode no-resign;"}
			w := secured(t, c.anchors, []string{"www"}, map[string]string{"one": file}, above)
			w.Apply(fakekube.Zone("test", "one"))
			w.Eventually("the parent is known", func() bool {
				s := w.get("dnszone.example.test")
				return len(s.Servers) == 1 && meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionDelegated) != nil
			})
			for _, object := range []string{"arecord.www", "dnszone.example.test"} {
				for what, s := range map[string]*syncv1.SyncStatus{"get": w.get(object), "list": w.listed(object)} {
					row := security(s, "one")
					cond := meta.FindStatusCondition(s.Status.Conditions, syncv1.ConditionValidated)
					if row.Security != c.want || cond == nil || !strings.Contains(cond.Message, c.message) {
						t.Errorf("%s of %s: %s, %q, row %q; want %s, %q", what, object, row.Security, cond, row.Message, c.want, c.message)
					}
				}
			}
		})
	}
}

// What the controller has seen of a registry's DS records is no proof, and keeps a zone from being called Secure by its own keys alone.
func TestSecurityByRegistry(t *testing.T) {
	t.Parallel()
	own := newSigner(t, "example.test.")
	w := secured(t, nil, []string{"www"}, map[string]string{"one": own.sign("www A 192.0.2.10\n", 10*day)})
	become := func(want syncv1.Security, message string) {
		t.Helper()
		w.Eventually(string(want), func() bool {
			for _, object := range []string{"arecord.www", "dnszone.example.test"} {
				for _, s := range []*syncv1.SyncStatus{w.get(object), w.listed(object)} {
					row := security(s, "one")
					if row.Security != want || !strings.Contains(row.Message, message) || s.Status.InSync != (want == syncv1.SecuritySecure) {
						return false
					}
				}
			}
			return true
		})
	}
	become(syncv1.SecuritySecure, "")
	z := fakekube.Zone("example.test", "one")
	v := status.RegistryUnmatched([]string{"test"}, []string{"4711"})
	z.Status.Conditions = []metav1.Condition{{Type: status.Delegated, Status: v.Status, Reason: v.Reason, Message: v.Message, LastTransitionTime: metav1.Now()}}
	w.Apply(z)
	become(syncv1.SecurityUnknown, "and none of a key of the zone")
	z = z.DeepCopy()
	z.Status.Conditions[0].Reason = status.RegistryBehind
	w.Apply(z)
	become(syncv1.SecuritySecure, "")
}

// copy is the signer with a directory of its own.
func (s *signer) copy() *signer {
	c := *s
	c.dir = s.t.TempDir()
	if err := os.CopyFS(c.dir, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	return &c
}

// One of two servers strips signatures, has them expired, or is not signed. The other one is Secure.
func TestSecurityOfOneServer(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	good := s.sign("www A 192.0.2.10\n", 10*day)
	for name, c := range map[string]struct{ file, cause string }{
		"expired":    {s.sign("www A 192.0.2.10\n", -time.Hour), "Signature Expired"},
		"not signed": {"$ORIGIN example.test.\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.10\n", "DNSKEY Missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := secured(t, nil, []string{"www"}, map[string]string{"a": good, "b": c.file})
			for _, object := range []string{"arecord.www", "dnszone.example.test"} {
				w.Eventually("the servers are judged", func() bool {
					s := w.get(object)
					return security(s, "a").Security == syncv1.SecuritySecure && security(s, "b").Security == syncv1.SecurityBogus
				})
				if s := w.listed(object); security(s, "a").Security != syncv1.SecuritySecure || security(s, "b").SecurityCause != c.cause {
					t.Errorf("%s: %+v", object, s.Servers)
				}
			}
		})
	}
}

// A watch tells that a signature has expired, although no server says anything new.
func TestSecurityExpiresWhileWatched(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	w := secured(t, nil, []string{"www"}, map[string]string{"one": s.sign("www A 192.0.2.10\n", 20*time.Second)})
	w.Eventually("it expires soon", func() bool { return security(w.get("arecord.www"), "one").Security == syncv1.SecurityExpiring })
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	for {
		if _, s := events.next(); s.Name == "arecord.www" && security(s, "one").Security == syncv1.SecurityBogus {
			return
		}
	}
}

// Of a server that is read by query, too, keys and answers are judged.
func TestSecurityByQuery(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	for want, file := range map[syncv1.Security]string{
		syncv1.SecuritySecure: s.sign("www A 192.0.2.10\n", 10*day), syncv1.SecurityBogus: s.sign("www A 192.0.2.10\n", -time.Hour),
	} {
		w := newWorld(t, func(o *testOptions) {
			anchors := validate.Anchors{"example.test.": s.ds}
			o.TrustAnchors = func() *validate.Anchors { return &anchors }
		})
		server := bind.Start(t, bind.Options{Closed: true, Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", File: file, Extra: "dnssec-update-mode no-resign;"}}})
		w.ServerByQuery("one", v1beta1.RolePrimary, server.Addr)
		z := fakekube.Zone("example.test", "one")
		w.Apply(z)
		w.Apply(w.Record(z, "www", "192.0.2.10"))
		w.Eventually(string(want), func() bool { return security(w.get("arecord.www"), "one").Security == want })
		if got := security(w.listed("arecord.www"), "one"); got.Security != want {
			t.Errorf("list: %s, want %s: %s", got.Security, want, got.Message)
		}
		if got := security(w.get("dnszone.example.test"), "one"); got.Security != want {
			t.Errorf("zone: %s, want %s: %s", got.Security, want, got.Message)
		}
	}
}

// A server that signs its answers, and not what it transfers, is judged by its answers.
func TestSecurityOfAnswersAlone(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	const plain = "$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.10\n"
	anchors := validate.Anchors{"example.test.": s.ds}
	w := newWorld(t, func(o *testOptions) { o.TrustAnchors = func() *validate.Anchors { return &anchors } })
	server := bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", File: plain}}})
	path := filepath.Join(server.Dir, "named.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(conf), `zone "example.test."`)
	views := string(conf[:at]) + `view "ours" { match-clients { key "transfer."; key "update."; };` + string(conf[at:]) + `};
view "public" { match-clients { any; }; zone "example.test." { type primary; file "public.zone"; }; };
`
	for name, text := range map[string]string{path: views, filepath.Join(server.Dir, "public.zone"): s.sign("www A 192.0.2.10\n", 10*day)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server.Restart(t)
	w.Server("one", v1beta1.RolePrimary, server.Addr)
	z := fakekube.Zone("example.test", "one")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.10"))
	for _, object := range []string{"arecord.www", "dnszone.example.test"} {
		w.Eventually("the answers are judged", func() bool { return security(w.get(object), "one").Security == syncv1.SecuritySecure })
		if row := security(w.listed(object), "one"); row.Security != syncv1.SecuritySecure || row.State != syncv1.StateInSync {
			t.Errorf("list: %+v", row)
		}
	}
}

// That a name does not exist has to be proven: a zone without its chain of NSEC3 records is Bogus, and what exists in it is not. Opt-out makes
// no difference to the zone.
func TestSecurityOfDenial(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	for _, options := range [][]string{{}, {"-3", "-", "-H", "0"}, {"-3", "-", "-H", "0", "-A"}} {
		good := s.sign("www A 192.0.2.10\n", 10*day, options...)
		files := map[syncv1.Security]string{syncv1.SecuritySecure: good}
		if len(options) > 0 {
			files[syncv1.SecurityBogus] = strings.ReplaceAll(good, "IN NSEC3\t", "IN TYPE65300 \\# 0 ;")
		}
		for want, file := range files {
			w := secured(t, validate.Anchors{"example.test.": s.ds}, []string{"www"}, map[string]string{"one": file})
			w.Eventually(string(want), func() bool { return security(w.get("dnszone.example.test"), "one").Security == want })
			if row := security(w.listed("dnszone.example.test"), "one"); row.Security != want {
				t.Errorf("%v, list: %+v", options, row)
			}
			if row := security(w.get("arecord.www"), "one"); row.Security != syncv1.SecuritySecure {
				t.Errorf("%v: what exists is %s: %s", options, row.Security, row.Message)
			}
		}
	}
}

// A watch finds a signature that is present, in time and wrong, although nobody requests the object; and that it has been put right.
func TestSecurityWhileWatched(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	good := s.sign("www A 192.0.2.10\n", 10*day)
	wrong := strings.Replace(good, "192.0.2.10", "192.0.2.11", 1) // The signature is of other data.
	w := secured(t, validate.Anchors{"example.test.": s.ds}, []string{"www"}, map[string]string{"one": wrong})
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	for {
		if _, o := events.next(); o.Name == "arecord.www" && security(o, "one").Security == syncv1.SecurityBogus {
			return
		}
	}
}

// Whoever asks for one object gets a verdict by the DS records that the parent has then.
func TestSecurityByParentNow(t *testing.T) {
	t.Parallel()
	child, parent := newSigner(t, "example.test."), newSigner(t, "test.")
	file, other := parent.sign(delegation+child.ds[0].String(), 10*day), newSigner(t, "example.test.").ds[0].(*dns.DS)
	w := newWorld(t)
	server := bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{
		{Name: "example.test.", File: child.sign("www A 192.0.2.10\n", 10*day), Extra: "dnssec-update-mode no-resign;"},
		{Name: "test.", File: file, Extra: "dnssec-update-mode no-resign;"},
	}})
	w.Server("one", v1beta1.RolePrimary, server.Addr)
	z := fakekube.Zone("example.test", "one")
	w.Apply(fakekube.Zone("test", "one"))
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.10"))
	w.Eventually("the chain holds", func() bool {
		row := security(w.get("arecord.www"), "one")
		return row.Security == syncv1.SecuritySecure && len(w.get("arecord.www").Chain) > 2
	})
	replace(t, server, "test.", parent.sign(delegation+other.String(), 10*day, "-N", "increment"))
	w.Eventually("the parent has the other DS record", func() bool {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion("example.test.", dns.TypeDS), server.Addr.String())
		if err != nil || len(m.Answer) != 1 {
			return false
		}
		ds, ok := m.Answer[0].(*dns.DS)
		return ok && ds.KeyTag == other.KeyTag
	})
	if row := security(w.get("arecord.www"), "one"); row.Security != syncv1.SecurityBogus {
		t.Errorf("%s: %s", row.Security, row.Message)
	}
}

// replace puts a file in place of what a server has of a zone.
func replace(t *testing.T, server *bind.Server, zone, file string) {
	t.Helper()
	for _, command := range []string{"freeze", "thaw"} {
		if out, err := server.Rndc(command, zone); err != nil {
			t.Fatal(err, out)
		}
		if err := os.WriteFile(filepath.Join(server.Dir, strings.TrimSuffix(zone, ".")+".zone"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withParent is a world with a signed zone and its signed parent on a server of its own, which is asked through a proxy.
func withParent(t *testing.T, child, parent *signer, above string) (w *world, of *bind.Server, proxy *bind.Proxy) {
	t.Helper()
	anchors := validate.Anchors{"test.": parent.ds}
	w = secured(t, anchors, []string{"www"}, map[string]string{"one": child.sign("www A 192.0.2.10\n", 10*day)})
	of = bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "test.", File: above, Extra: "dnssec-update-mode no-resign;"}}})
	proxy = bind.StartProxy(t, of.Addr)
	w.Server("above", v1beta1.RolePrimary, proxy.Addr)
	w.Apply(fakekube.Zone("test", "above"))
	return w, of, proxy
}

const delegation = "example NS ns1.example\nns1.example A 192.0.2.1\n"

// While the parent's servers do not answer, neither the DS records that they had nor the zone's own keys prove anything.
func TestSecurityWhileParentIsSilent(t *testing.T) {
	t.Parallel()
	child, parent, other := newSigner(t, "example.test."), newSigner(t, "test."), newSigner(t, "example.test.")
	w, of, proxy := withParent(t, child, parent, parent.sign(delegation+child.ds[0].String(), 10*day))
	is := func(want syncv1.Security) func() bool {
		return func() bool { return security(w.get("arecord.www"), "one").Security == want }
	}
	w.Eventually("the chain holds", func() bool { return is(syncv1.SecuritySecure)() && len(w.get("arecord.www").Chain) > 2 })
	proxy.Filter(func(string, []byte) ([]byte, error) { return nil, nil })
	replace(t, of, "test.", parent.sign(delegation+other.ds[0].String(), 10*day, "-N", "increment"))
	for what, s := range map[string]*syncv1.SyncStatus{"get": w.get("arecord.www"), "zone": w.get("dnszone.example.test"), "list": w.listed("arecord.www")} {
		row := security(s, "one")
		if row.Security != syncv1.SecurityUnknown || s.Status.InSync || !strings.Contains(row.Message, "the content of the parent zone test. is not known") {
			t.Errorf("%s: %s, in sync %t: %s", what, row.Security, s.Status.InSync, row.Message)
		}
	}
	proxy.Filter(func(_ string, reply []byte) ([]byte, error) { return reply, nil })
	w.Eventually("it is Bogus by the new DS record", is(syncv1.SecurityBogus))
}

// Whoever asks for one object learns at once that the parent has DS records now, although the zone was Insecure without.
func TestSecurityByNewDS(t *testing.T) {
	t.Parallel()
	child, parent, other := newSigner(t, "example.test."), newSigner(t, "test."), newSigner(t, "example.test.")
	w, of, _ := withParent(t, child, parent, parent.sign(delegation, 10*day))
	w.Eventually("no parent vouches for it", func() bool { return security(w.get("arecord.www"), "one").Security == syncv1.SecurityInsecure })
	replace(t, of, "test.", parent.sign(delegation+other.ds[0].String(), 10*day, "-N", "increment"))
	w.Eventually("the parent has a DS record", func() bool {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion("example.test.", dns.TypeDS), of.Addr.String())
		return err == nil && len(m.Answer) == 1
	})
	if row := security(w.get("arecord.www"), "one"); row.Security != syncv1.SecurityBogus {
		t.Errorf("%s: %s", row.Security, row.Message)
	}
}

// A list goes by what the content shows now: keys that the server answered with before they were deleted do not count.
func TestSecurityAfterKeysWereDeleted(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	w := newWorld(t, func(o *testOptions) {
		anchors := validate.Anchors{"example.test.": s.ds}
		o.TrustAnchors = func() *validate.Anchors { return &anchors }
	})
	file := s.sign("www A 192.0.2.10\n", 10*day)
	server := bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", File: file, Extra: "dnssec-update-mode no-resign;"}}})
	w.Server("one", v1beta1.RolePrimary, server.Addr)
	z := fakekube.Zone("example.test", "one")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.10"))
	w.Eventually("it is secure", func() bool { return security(w.get("arecord.www"), "one").Security == syncv1.SecuritySecure })
	replace(t, server, "example.test.", without(s.sign("www A 192.0.2.10\n", 10*day, "-N", "increment"), "IN DNSKEY"))
	w.Eventually("the keys are gone", func() bool {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion("example.test.", dns.TypeDNSKEY), server.Addr.String())
		return err == nil && len(m.Answer) == 0
	})
	if row := security(w.listed("arecord.www"), "one"); row.Security != syncv1.SecurityBogus {
		t.Errorf("%s: %s", row.Security, row.Message)
	}
}

// A watch that has called answers Bogus does not call them Secure because the server gives none to resolvers for a while.
func TestBogusUntilAnswered(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "example.test.")
	w := newWorld(t, func(o *testOptions) {
		anchors := validate.Anchors{"example.test.": s.ds}
		o.TrustAnchors = func() *validate.Anchors { return &anchors }
		o.Deadline = 500 * time.Millisecond
	})
	file := s.sign("www A 192.0.2.10\n", 10*day)
	server := bind.Start(t, bind.Options{Transfer: w.Key, Zones: []bind.Zone{{Name: "example.test.", File: file, Extra: "dnssec-update-mode no-resign;"}}})
	proxy := bind.StartProxy(t, server.Addr)
	toResolvers := func(change func(*dns.Msg) bool) {
		proxy.Filter(func(_ string, reply []byte) ([]byte, error) {
			m := new(dns.Msg)
			if m.Unpack(reply) != nil || m.IsTsig() != nil {
				return reply, nil
			}
			if !change(m) {
				return nil, nil
			}
			return m.Pack()
		})
	}
	isKey := func(rr dns.RR) bool {
		sig, ok := rr.(*dns.RRSIG)
		return rr.Header().Rrtype == dns.TypeDNSKEY || ok && sig.TypeCovered == dns.TypeDNSKEY
	}
	toResolvers(func(m *dns.Msg) bool {
		m.Answer = slices.DeleteFunc(m.Answer, isKey)
		return true
	})
	w.Server("one", v1beta1.RolePrimary, proxy.Addr)
	z := fakekube.Zone("example.test", "one")
	w.Apply(z)
	w.Apply(w.Record(z, "www", "192.0.2.10"))
	events := w.watch(query{namespace: ns}, store.WatchOptions{})
	await := func(name string, is func(syncv1.ServerStatus) bool, never syncv1.Security) {
		t.Helper()
		for {
			_, o := events.next()
			row := security(o, "one")
			if o.Name == "arecord.www" && row.Security == never {
				t.Fatalf("the watch calls it %s: %+v", never, row)
			}
			if o.Name == name && is(row) {
				return
			}
		}
	}
	calls := func(security syncv1.Security) func(syncv1.ServerStatus) bool {
		return func(row syncv1.ServerStatus) bool { return row.Security == security }
	}
	await("arecord.www", calls(syncv1.SecurityBogus), "")
	toResolvers(func(*dns.Msg) bool { return false })
	await("arecord.www", calls(syncv1.SecurityUnknown), syncv1.SecuritySecure)
	w.Apply(w.Record(z, "api", "192.0.2.11"))
	isMissing := func(row syncv1.ServerStatus) bool { return row.State == syncv1.StateMissing }
	await("arecord.api", isMissing, syncv1.SecuritySecure)
	replace(t, server, "example.test.", s.sign("www A 192.0.2.10\napi A 192.0.2.11\n", 10*day, "-N", "increment"))
	await("arecord.api", func(row syncv1.ServerStatus) bool { return !isMissing(row) }, syncv1.SecuritySecure)
	w.Apply(w.Record(z, "late", "192.0.2.12"))
	await("arecord.late", isMissing, syncv1.SecuritySecure)
	toResolvers(func(*dns.Msg) bool { return true })
	await("arecord.www", calls(syncv1.SecuritySecure), "")
}
