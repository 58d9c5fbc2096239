package dnssec

import (
	"bytes"
	"crypto"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/test/named"
)

var (
	manyAnswers = flag.Int("answers", 0, "`number` of answers that TestManyAnswers has delv judge")
	answerSeed  = flag.Uint64("answer-seed", 1, "`seed` of the random zones and questions")
)

// An answer is judged as delv, BIND's validating resolver, judges it.
func TestAnswersLikeDelv(t *testing.T) { compareWithDelv(t, *answerSeed, 200) }

// The same for more answers, with -answers.
func TestManyAnswers(t *testing.T) {
	if *manyAnswers == 0 {
		t.Skip("it compares as many answers as -answers says")
	}
	compareWithDelv(t, *answerSeed, *manyAnswers)
}

// compareWithDelv asks a real named for random answers from signed zones, and changes most of them. delv gets them from a proxy.
func compareWithDelv(t *testing.T, seed uint64, number int) {
	r := rand.New(rand.NewPCG(seed, 0))
	zones := make([]*liveZone, 0, 3*len(chains))
	options := named.Options{}
	for i := range cap(zones) {
		z := newLiveZone(t, r, fmt.Sprintf("z%d.test.", i), chains[i%len(chains)])
		zones = append(zones, z)
		options.Zones = append(options.Zones, named.Zone{Name: z.name, File: z.file})
	}
	server := named.Start(t, options)
	p := startProxy(t, server.Addr)
	verdicts := map[string]int{}
	for i := 0; i < number; i++ {
		z := zones[r.IntN(len(zones))]
		z.trust(t, server.Addr)
		q := z.question(r)
		m := ask(t, server.Addr, q)
		if isReferral(m, z.name) || m.Rcode == dns.RcodeServerFailure {
			i--
			continue // delv does not follow referrals to servers that are not there.
		}
		what := tamper(t, r, z, m)
		ours := z.keys.Judge(m, Clock{Now: time.Now()}, z.cuts...)
		p.answer(q, m)
		theirs, output := z.delv(t, p.addr, q)
		verdicts[string(ours.Security)]++
		// delv calls an answer validated whose proof has opt-out. RFC 5155 section 9.2 denies it the AD bit.
		optOut := strings.HasPrefix(ours.Detail, "opt-out") && theirs == string(Secure)
		if string(ours.Security) != theirs && !optOut {
			t.Errorf("seed %d, answer %d (%s, %s): %s here (%s), %s for delv\n%s\n%s", seed, i, z.kind, what, ours.Security, ours.Detail, theirs, m, output)
		}
	}
	t.Log(verdicts)
	for _, s := range []Security{Secure, Insecure, Bogus} {
		if verdicts[string(s)] < number/50 {
			t.Errorf("of %d answers, %d are %s", number, verdicts[string(s)], s)
		}
	}
}

// chains are options of dnssec-signzone, and the algorithm of the keys. BIND 9.18 follows 150 iterations.
var chains = []struct{ algorithm, options string }{
	{"ECDSAP256SHA256", ""},
	{"ED25519", "-3 aabb -H 0"},
	{"ECDSAP384SHA384", "-3 - -H 5 -A"},
	{"RSASHA256", ""},
	{"ECDSAP256SHA256", "-3 cc -H 200"},
	{"NSEC3RSASHA1", "-3 - -H 1 -A"},
}

// liveZone is a zone that dnssec-signzone has signed.
type liveZone struct {
	name, kind, file, dir string
	names, cuts           []string
	keys                  *Keys
	anchor                *dns.DNSKEY
	zsk                   signingKey
}

func newLiveZone(t *testing.T, r *rand.Rand, name string, kind struct{ algorithm, options string }) *liveZone {
	z := &liveZone{name: name, kind: kind.algorithm + " " + kind.options, dir: t.TempDir()}
	z.anchor = z.generate(t, kind.algorithm, "-f", "KSK").DNSKEY
	z.zsk = z.generate(t, kind.algorithm)
	file := filepath.Join(z.dir, "zone")
	if err := os.WriteFile(file, []byte(z.randomRecords(r)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-S", "-K", z.dir, "-d", z.dir, "-o", name, "-O", "full", "-f", file + ".signed"}, strings.Fields(kind.options)...)
	run(t, z.dir, "dnssec-signzone", append(args, file)...)
	signed, err := os.ReadFile(file + ".signed")
	if err != nil {
		t.Fatal(err)
	}
	z.file = string(signed)
	return z
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s (`apt-get install bind9 bind9-utils bind9-dnsutils`): %v\n%s%s", program, err, out, stderr.String())
	}
	return string(out)
}

func (z *liveZone) generate(t *testing.T, algorithm string, options ...string) signingKey {
	args := append([]string{"-q", "-a", algorithm, "-K", z.dir}, options...)
	if strings.Contains(algorithm, "RSA") {
		args = append(args, "-b", "2048")
	}
	base := filepath.Join(z.dir, strings.TrimSpace(run(t, z.dir, "dnssec-keygen", append(args, z.name)...)))
	public, err := os.ReadFile(base + ".key")
	if err != nil {
		t.Fatal(err)
	}
	private, err := os.Open(base + ".private")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = private.Close() }()
	key := records(t, string(public))[0].(*dns.DNSKEY)
	secret, err := key.ReadPrivateKey(private, base)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{key, secret.(crypto.Signer)}
}

// randomRecords writes a zone with few names, so that they are above, below and beside each other.
func (z *liveZone) randomRecords(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n")
	used := map[string]bool{}
	for range 14 {
		name := randomName(r)
		if used[name] {
			continue
		}
		used[name] = true
		if strings.HasPrefix(name, "*") {
			fmt.Fprintf(&b, "%s %s\n", name, [...]string{"A 192.0.2.8", "TXT wild", "CNAME " + randomName(r)}[r.IntN(3)])
			continue
		}
		line := ""
		switch r.IntN(9) {
		case 0:
			line = fmt.Sprintf("%[1]s NS ns.other.\n%[1]s DS 1 13 2 %064[2]x", name, r.Uint32())
			z.cuts = append(z.cuts, name+"."+z.name)
		case 1:
			line = name+" NS ns.other."
			z.cuts = append(z.cuts, name+"."+z.name)
		case 2:
			line = name+" DNAME "+randomName(r)
		case 3, 4:
			line = name + " CNAME " + randomName(r)
		case 5:
			line = name + " MX 10 mail." + z.name
		default:
			line = fmt.Sprintf("%[1]s A 192.0.2.9\n%[1]s A 192.0.2.7\n%[1]s TXT x", name)
		}
		fmt.Fprintln(&b, line)
		z.names = append(z.names, name)
	}
	return b.String()
}

func randomName(r *rand.Rand) string {
	labels := []string{string(rune('a' + r.IntN(6)))}
	for len(labels) < 3 && r.IntN(2) == 0 {
		labels = append(labels, string(rune('a'+r.IntN(6))))
	}
	if r.IntN(8) == 0 {
		labels[0] = "*"
		if len(labels) == 1 {
			labels = append(labels, "w")
		}
	}
	return strings.Join(labels, ".")
}

// question asks about names of the zone and others. Of delegations it asks the parent zone, for DS: delv does not follow a referral here.
func (z *liveZone) question(r *rand.Rand) dns.Question {
	for {
		name := randomName(r)
		if r.IntN(3) > 0 {
			name = z.names[r.IntN(len(z.names))]
		}
		if r.IntN(4) == 0 {
			name = string(rune('a'+r.IntN(6))) + "." + name
		}
		q := dns.Question{Name: name + "." + z.name, Qclass: dns.ClassINET, Qtype: [...]uint16{dns.TypeA, dns.TypeA, dns.TypeTXT, dns.TypeMX, dns.TypeDS, dns.TypeCNAME}[r.IntN(6)]}
		if r.IntN(30) == 0 {
			q.Name = z.name
			q.Qtype = [...]uint16{dns.TypeSOA, dns.TypeNS, dns.TypeTXT}[r.IntN(3)]
		}
		return q
	}
}

func (z *liveZone) trust(t *testing.T, server netip.AddrPort) {
	if z.keys != nil {
		return
	}
	m := ask(t, server, dns.Question{Name: z.name, Qtype: dns.TypeDNSKEY, Qclass: dns.ClassINET})
	z.keys = Trust(z.name, m.Answer, []dns.RR{z.anchor}, Clock{Now: time.Now()})
	if v := z.keys.Verdict(); v.Security != Secure {
		t.Fatalf("%+v", v)
	}
	anchor := fmt.Sprintf("trust-anchors { %s static-key %d %d %d %q; };\n", z.name, z.anchor.Flags, z.anchor.Protocol, z.anchor.Algorithm, z.anchor.PublicKey)
	if err := os.WriteFile(filepath.Join(z.dir, "anchors"), []byte(anchor), 0o600); err != nil {
		t.Fatal(err)
	}
}

// delv asks a server and reads the verdict. An answer of several parts is as secure as its weakest part.
func (z *liveZone) delv(t *testing.T, server netip.AddrPort, q dns.Question) (verdict, output string) {
	command := exec.Command("delv", "-a", filepath.Join(z.dir, "anchors"), "@"+server.Addr().String(), "-p", fmt.Sprint(server.Port()), "+root="+z.name, q.Name, dns.TypeToString[q.Qtype])
	out, _ := command.CombinedOutput() // It fails for an answer that is Bogus.
	text := string(out)
	switch {
	case strings.Contains(text, "resolution failed") && !strings.Contains(text, "resolution failed: ncache"):
		return string(Bogus), text
	case strings.Contains(text, "unsigned answer"):
		return string(Insecure), text
	case strings.Contains(text, "fully validated"):
		return string(Secure), text
	}
	t.Fatalf("delv says\n%s", text)
	return "", ""
}

func ask(t testing.TB, server netip.AddrPort, q dns.Question) *dns.Msg {
	t.Helper()
	reply, err := exchange(server, q)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func isReferral(m *dns.Msg, zone string) bool {
	return slices.ContainsFunc(m.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeNS && rr.Header().Name != zone })
}

func exchange(server netip.AddrPort, q dns.Question) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.Id, m.Question = dns.Id(), []dns.Question{q}
	m.SetEdns0(4096, true)
	c := dns.Client{Net: "tcp", Timeout: 5 * time.Second}
	reply, _, err := c.Exchange(m, server.String())
	return reply, err
}

// tamper changes an answer as an attacker or a broken server would.
func tamper(t *testing.T, r *rand.Rand, z *liveZone, m *dns.Msg) string {
	section := &m.Answer
	if len(m.Answer) == 0 || (len(m.Ns) > 0 && r.IntN(2) == 0) {
		section = &m.Ns
	}
	if len(*section) == 0 {
		return "as it is"
	}
	i := r.IntN(len(*section))
	rr := (*section)[i]
	signature, isSignature := rr.(*dns.RRSIG)
	switch kind := r.IntN(7); {
	case kind == 0 && isSignature:
		raw := decode(t, signature.Signature)
		raw[r.IntN(len(raw))] ^= 1 << r.IntN(8)
		signature.Signature = encode(raw)
		return "a bit of a signature"
	case kind <= 1 && isSignature, kind == 2 && (rr.Header().Rrtype == dns.TypeNSEC || rr.Header().Rrtype == dns.TypeNSEC3):
		*section = append((*section)[:i:i], (*section)[i+1:]...)
		return "without " + rr.String()
	case kind == 2 && isSignature:
		expire(t, z, *section, signature)
		return "expired: " + signature.String()
	case kind == 3 && rr.Header().Rrtype == dns.TypeA:
		rr.(*dns.A).A[3] ^= 1
		return "another address"
	case kind == 4 && r.IntN(3) == 0 && len(m.Answer) == 0:
		m.Rcode ^= dns.RcodeNameError
		return "another rcode"
	}
	return "as it is"
}

// expire signs the RRset of a signature with one that has expired.
func expire(t *testing.T, z *liveZone, section []dns.RR, signature *dns.RRSIG) {
	var set []dns.RR
	for _, rr := range section {
		if rr.Header().Name == signature.Hdr.Name && rr.Header().Rrtype == signature.TypeCovered {
			set = append(set, rr)
		}
	}
	signature.Inception, signature.Expiration = uint32(time.Now().Add(-9*day).Unix()), uint32(time.Now().Add(-day).Unix())
	labels := signature.Labels
	if err := signature.Sign(z.zsk.private, set); err != nil {
		t.Fatal(err)
	}
	signature.Labels = labels
}

// proxy answers one question with a given message, and all others as its server does.
type proxy struct {
	addr, server netip.AddrPort
	mu           sync.Mutex
	question     dns.Question
	message      *dns.Msg
}

func startProxy(t *testing.T, server netip.AddrPort) *proxy {
	t.Helper()
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: listener.LocalAddr().(*net.UDPAddr).AddrPort(), server: server}
	stream, err := net.Listen("tcp", p.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: listener, Handler: p}, {Listener: stream, Handler: p}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return p
}

func (p *proxy) answer(q dns.Question, m *dns.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.question, p.message = q, m
}

func (p *proxy) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	p.mu.Lock()
	q, reply := p.question, p.message.Copy()
	p.mu.Unlock()
	if !strings.EqualFold(query.Question[0].Name, q.Name) || query.Question[0].Qtype != q.Qtype {
		var err error
		if reply, err = exchange(p.server, query.Question[0]); err != nil {
			return
		}
	}
	reply.Id, reply.Question = query.Id, query.Question
	if w.LocalAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if opt := query.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		reply.Truncate(size)
	}
	_ = w.WriteMsg(reply)
}
