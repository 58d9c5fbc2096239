package dnssec

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

var (
	manyAnswers = flag.Int("answers", 0, "`number` of answers that TestManyAnswers has delv judge")
	answerSeed  = flag.Uint64("answer-seed", 1, "`seed` of the first zones and questions")
)

// An answer is judged as delv, BIND's validating resolver, judges it.
func TestAnswersLikeDelv(t *testing.T) { compareWithDelv(t, *answerSeed, 300) }

// The same for more answers, with -answers.
func TestManyAnswers(t *testing.T) {
	if *manyAnswers == 0 {
		t.Skip("it compares as many answers as -answers says")
	}
	const perSeed = 500
	for i := range (*manyAnswers + perSeed - 1) / perSeed {
		t.Run(fmt.Sprintf("seed %d", *answerSeed+uint64(i)), func(t *testing.T) { compareWithDelv(t, *answerSeed+uint64(i), perSeed) })
	}
}

// readings are how delv can come to its verdict: as we do, or for a reason that an RFC has.
var readings = []struct {
	name          string
	asks, lenient bool
	agrees        func(strict, ours Verdict, theirs opinion) bool
}{
	{"", false, false, func(_, ours Verdict, theirs opinion) bool { return ours.Security == theirs.security }},
	// delv prints that such a denial is validated, too. named clears its AD bit.
	{"RFC 5155 section 9.2: no AD bit if opt-out covers the next closer name", false, false, func(_, ours Verdict, theirs opinion) bool {
		return ours.Security == Insecure && strings.HasPrefix(ours.Detail, "opt-out") && theirs.security == Secure && theirs.denial
	}},
	// Judge does not ask.
	{"RFC 5155 section 6: DS records show that opt-out can hide an unsigned zone", true, false, func(strict, ours Verdict, theirs opinion) bool {
		return strict.Security == Bogus && ours.Security == theirs.security
	}},
	// delv leaves such an RRset out if it needs it for no proof. Unbound does not.
	{"RFC 4035 section 5.5: an answer with an RRset that has no valid signature is bad", true, true, func(strict, ours Verdict, theirs opinion) bool {
		return strict.Security == Bogus && ours.Security != Bogus && theirs.security != Bogus
	}},
}

// compareWithDelv asks a real named random questions about random zones.
func compareWithDelv(t *testing.T, seed uint64, number int) {
	l := newLab(t, rand.New(rand.NewPCG(seed, 0)))
	var next atomic.Uint64
	var mu sync.Mutex
	counts := map[string]int{}
	var workers sync.WaitGroup
	for range 8 { // delv waits for most of its time.
		v := newView(t, l)
		workers.Go(func() {
			for i := next.Add(1); i <= uint64(number); i = next.Add(1) {
				result, err := v.compare(rand.New(rand.NewPCG(seed, i)))
				if err != nil {
					t.Errorf("seed %d, question %d: %v", seed, i, err)
				}
				mu.Lock()
				counts[result]++
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Log(counts)
	for _, s := range []Security{Secure, Insecure, Bogus} {
		if counts[string(s)] < number/50 {
			t.Errorf("of %d answers, only %d are %s", number, counts[string(s)], s)
		}
	}
	if counts[string(Unknown)] > number/5 {
		t.Errorf("of %d answers, %d show nothing", number, counts[string(Unknown)])
	}
}

// compare asks a random question and returns the verdict.
func (v *view) compare(r *rand.Rand) (string, error) {
	z := v.zones[r.IntN(len(v.zones))]
	q := z.randomQuestion(r)
	m := ask(v.all, q)
	if (q.Qtype == dns.TypeCNAME || q.Qtype == dns.TypeDNAME) && slices.ContainsFunc(m.Answer, func(rr dns.RR) bool { return covered(rr) == dns.TypeDNAME }) {
		return "CNAME or DNAME of DNAME", nil // delv takes the DNAME record for the answer to the one, and follows it for the other.
	}
	v.forge(z.hostile(r, m))
	strict := v.resolve(q, z, false, false)
	if strict.Security == Unknown {
		return string(Unknown), nil
	}
	theirs, err := v.delv(q, z)
	if err == nil && theirs.security != strict.Security {
		theirs, err = v.delv(q, z) // A busy machine can have been too slow for it.
	}
	if err != nil {
		return "failed", err
	}
	for _, reading := range readings {
		if ours := v.resolve(q, z, reading.asks, reading.lenient); reading.agrees(strict, ours, theirs) {
			return cmp.Or(reading.name, string(ours.Security)), nil
		}
	}
	return "different", fmt.Errorf("%s: %s here (%s), %s for delv\n%s\n%s", z.kind, strict.Security, strict.Detail, theirs.security, v.ask(q), theirs.output)
}

func (z *liveZone) randomQuestion(r *rand.Rand) dns.Question {
	name := randomName(r)
	if r.IntN(3) > 0 {
		name = z.names[r.IntN(len(z.names))]
	}
	if r.IntN(4) == 0 {
		name = string(rune('a'+r.IntN(6))) + "." + name
	}
	q := dns.Question{Name: name + "." + z.name, Qtype: [...]uint16{dns.TypeA, dns.TypeA, dns.TypeTXT, dns.TypeMX, dns.TypeDS, dns.TypeCNAME, dns.TypeNS, dns.TypeDNAME, dns.TypeNSEC}[r.IntN(9)]}
	if q.Qtype == dns.TypeNSEC && slices.Contains(z.cuts(""), q.Name) {
		q.Qtype = dns.TypeA // Both zones have an NSEC record there.
	}
	if r.IntN(20) == 0 {
		q.Name, q.Qtype = z.name, [...]uint16{dns.TypeSOA, dns.TypeNS, dns.TypeTXT, dns.TypeDNSKEY, dns.TypeNSEC3PARAM}[r.IntN(5)]
	}
	return q
}

// hostile answers half of the questions whose answer is a denial with other denials of the zone. For others it is nil.
func (z *liveZone) hostile(r *rand.Rand, m *dns.Msg) *dns.Msg {
	if r.IntN(2) == 0 || len(z.denials) == 0 || len(m.Answer) > 0 || z.childOf(m.Question[0]) != "" {
		return nil
	}
	if r.IntN(4) == 0 {
		m.Rcode ^= dns.RcodeNameError
	}
	m.Ns = slices.DeleteFunc(m.Ns, func(rr dns.RR) bool { return isDenial(rr) && r.IntN(4) == 0 })
	for range r.IntN(4) {
		more := z.denials[r.IntN(len(z.denials))]
		if !slices.ContainsFunc(m.Ns, func(rr dns.RR) bool {
			return isDenial(rr) && strings.EqualFold(rr.Header().Name, more[0].Header().Name)
		}) {
			m.Ns = append(m.Ns, more...)
		}
	}
	return m
}

// opinion is what delv makes of an answer.
type opinion struct {
	security Security
	// denial is true if the answer ends with one.
	denial bool
	output string
}

var (
	part   = regexp.MustCompile(`(?m)^; (negative response, )?(fully validated|unsigned answer|signed answer, pending validation|authoritative)$`)
	denied = regexp.MustCompile(`(?m)^;; resolution failed: ncache nx(domain|rrset)$`)
	// delv gives up after some seconds if the proof that a name is unsigned needs itself.
	rejected = regexp.MustCompile(`(?m)^(;; resolution failed: (broken trust chain|no valid \w+|insecurity proof failed|RRSIG .*)|;; shut down hung fetch.*)$`)
)

// delv asks the server and returns the verdict. An answer of several parts is as secure as its weakest part.
func (v *view) delv(q dns.Question, z *liveZone) (opinion, error) {
	command := exec.Command("delv", "-a", filepath.Join(z.dir, "anchors"), "@"+v.addr.Addr().String(), "-p", fmt.Sprint(v.addr.Port()), "+root="+z.name, q.Name, dns.TypeToString[q.Qtype])
	raw, err := command.CombinedOutput() // It fails for an answer that is Bogus.
	o := opinion{security: Secure, output: string(raw), denial: denied.Match(raw)}
	if rejected.Match(raw) {
		o.security = Bogus
		return o, nil
	}
	parts := part.FindAllStringSubmatch(o.output, -1)
	if len(parts) == 0 || (strings.Contains(o.output, "resolution failed") && !o.denial) {
		return o, fmt.Errorf("%s (`apt-get install bind9-dnsutils`): %s\n%s\n%s", command.Args, fmt.Sprint(err), o.output, v.ask(q))
	}
	for _, p := range parts {
		if p[2] != "fully validated" {
			o.security = Insecure
		}
	}
	return o, nil
}
