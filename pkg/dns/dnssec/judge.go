package dnssec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// maxChain is how many CNAME and DNAME records of an answer are followed, as many as BIND puts into one.
const maxChain = 16

// Judge judges an answer to a question with the DO bit about a name in the zone of the keys. The cuts are the delegations in the zone that
// the caller knows of: a server that has the child zones as well answers from them where it could have referred to them, and where a CNAME
// leads there. What is not signed by this zone and not below a cut is Bogus.
//
// Every RRset of the answer and authority sections that a zone signs has to have a valid signature. Where a name or type is denied,
// or a wildcard is expanded, the proof has to be there. A referral is Secure if it has a signed DS RRset, and Insecure if it proves that
// there is none. A CNAME or DNAME is followed as far as the zone reaches.
//
// Unknown are: other rcodes than NOERROR and NXDOMAIN, truncated messages, questions about other zones, about DS at the apex (the parent
// zone answers them), about RRSIG (never signed) or for transfers, and data of a zone below this one.
func (k *Keys) Judge(m *dns.Msg, clock Clock, cuts ...string) Verdict {
	return k.judge(m, clock, &work{}, cuts)
}

// maxCuts bounds CutsIn.
const maxCuts = 64

// CutsIn are those of the names in an answer and of the names above them, below a zone's own, that are cuts.
func CutsIn(m *dns.Msg, zone string, isCut func(name string) bool) (cuts []string) {
	for _, rr := range slices.Concat(m.Answer, m.Ns) {
		names := []string{rr.Header().Name}
		if cname, ok := rr.(*dns.CNAME); ok {
			names = append(names, cname.Target)
		}
		for _, name := range names {
			name, _ = rrset.CanonicalName(name)
			for at := range rrset.NamesBelow(zone, name) {
				if len(cuts) < maxCuts && !slices.Contains(cuts, at) && isCut(at) {
					cuts = append(cuts, at)
				}
			}
		}
	}
	return cuts
}

func (k *Keys) judge(m *dns.Msg, clock Clock, w *work, cuts []string) Verdict {
	v := newVerifier(k.zone, k.keys, clock, w)
	v.expires = k.verdict.Expires
	if f := k.checkQuestion(m); f != nil {
		return v.conclude(f)
	}
	if k.verdict.Security == Bogus || k.verdict.Security == Insecure {
		return v.conclude(&finding{k.verdict.Security, k.verdict.Code, k.verdict.Detail})
	}
	if clock.Now.After(v.expires) {
		return v.conclude(bogus(dns.ExtendedErrorCodeSignatureExpired, "the signature of the DNSKEY RRset of %s has expired", k.zone))
	}
	j := &judgement{
		verifier: v, rcode: m.Rcode, qtype: m.Question[0].Qtype,
		answer: groupRecords(m.Answer, k.zone), authority: groupRecords(m.Ns, k.zone),
	}
	for _, cut := range cuts {
		j.cuts = append(j.cuts, canonical(cut))
	}
	for _, s := range j.answer {
		if s.Type == dns.TypeDNAME && len(j.dnames) < maxChain {
			j.dnames = append(j.dnames, s)
		}
	}
	return v.conclude(j.judge(canonical(m.Question[0].Name)))
}

func (k *Keys) checkQuestion(m *dns.Msg) *finding {
	if !m.Response || m.Truncated || m.Opcode != dns.OpcodeQuery || len(m.Question) != 1 {
		return unknown("the message is no complete answer to one question")
	}
	if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
		return unknown("the server answered %s", dns.RcodeToString[m.Rcode])
	}
	name, q := canonical(m.Question[0].Name), m.Question[0]
	switch {
	case q.Qclass != dns.ClassINET || !rrset.IsSubdomain(name, k.zone):
		return unknown("the question is not about %s", k.zone)
	case q.Qtype == dns.TypeDS && name == k.zone && name != ".":
		return unknown("the parent zone of %s answers questions about its DS records", k.zone)
	case q.Qtype == dns.TypeRRSIG || q.Qtype == 0 || (q.Qtype >= 128 && q.Qtype <= 254):
		return unknown("answers to questions about %s are not signed", rrset.TypeName(q.Qtype))
	}
	return nil
}

// judgement is the work on one message.
type judgement struct {
	*verifier
	rcode             int
	qtype             uint16
	answer, authority sets
	dnames            sets
	cuts              []string
	// proof is made of the authority section when it is needed first.
	proof denial
	// weak is the finding of the first part of the answer that is accepted without being proven.
	weak *finding
}

func (j *judgement) judge(name string) *finding {
	if j.isDelegated(name, j.qtype) && (len(j.answer) > 0 || j.referral(name) == nil) {
		return unknown("%s is in a zone below %s", name, j.zone)
	}
	for _, s := range slices.Concat(j.answer, j.authority) {
		if f := j.verifyPart(s); f != nil {
			return f
		}
	}
	if f := j.follow(name); f != nil {
		return f
	}
	return j.weak
}

// isDelegated is true for what the zone below a known cut has.
func (j *judgement) isDelegated(name string, rrtype uint16) bool {
	return slices.ContainsFunc(j.cuts, func(cut string) bool {
		return cut != j.zone && rrset.IsSubdomain(name, cut) && (rrtype != dns.TypeDS || name != cut)
	})
}

// verifyPart verifies an RRset that this zone signs: no CNAME that was made from a DNAME, and not what a child zone has. At a cut, both can
// have an NSEC record (RFC 4035 section 2.3).
func (j *judgement) verifyPart(s *set) *finding {
	dname, _ := j.synthesis(s.Name)
	delegated := j.isDelegated(s.Name, s.Type)
	switch {
	case s.Type == dns.TypeCNAME && dname != nil,
		s.Type == dns.TypeNS && s.Name != j.zone && slices.Contains(j.authority, s),
		delegated && s.Type != dns.TypeNSEC:
		return nil
	}
	f := j.verify(s)
	if f != nil && delegated && f.security == Unknown {
		return nil
	}
	s.verified = f == nil
	return f
}

// follow goes from the name of the question to the end of the chain.
func (j *judgement) follow(name string) *finding {
	for range maxChain + 1 {
		target, ended, f := j.step(name)
		if ended || f != nil {
			return f
		}
		if name = target; !rrset.IsSubdomain(name, j.zone) || j.isDelegated(name, dns.TypeNone) {
			return nil
		}
	}
	return unknown("the answer has more than %d CNAME records", maxChain)
}

func (j *judgement) step(name string) (target string, ended bool, f *finding) {
	if dname, target := j.synthesis(name); dname != nil {
		if s := j.answer.find(name, dns.TypeCNAME); s != nil && !pointsTo(s, target) {
			return "", false, bogus(dns.ExtendedErrorCodeDNSBogus, "%s differs from what the DNAME record above it says", s.Key)
		}
		answered := j.qtype == dns.TypeCNAME && j.answer.find(name, dns.TypeCNAME) != nil
		return target, target == "" || answered, j.checkExpansion(dname)
	}
	found := false
	for _, s := range j.answer {
		if s.Name != name || (s.Type != j.qtype && j.qtype != dns.TypeANY) {
			continue
		}
		found = true
		if f := j.checkExpansion(s); f != nil {
			return "", false, f
		}
	}
	if found {
		return "", true, nil
	}
	if s := j.answer.find(name, dns.TypeCNAME); s != nil {
		if !s.verified { // It is at a cut, and the question is about DS.
			return "", false, bogus(dns.ExtendedErrorCodeRRSIGsMissing, "%s is not signed by %s", s.Key, j.zone)
		}
		return canonical(s.records[0].(*dns.CNAME).Target), false, j.checkExpansion(s)
	}
	return "", true, j.checkDenial(name)
}

// synthesis is what a DNAME record of the answer makes of a name below it (RFC 6672 section 2.2). The target is empty if it were too long
// for a name: then the answer ends there (YXDOMAIN).
func (j *judgement) synthesis(name string) (dname *set, target string) {
	for _, s := range j.dnames {
		if !isBelow(name, s.Name) {
			continue
		}
		target := strings.TrimSuffix(name, strings.TrimPrefix(s.Name, ".")) + strings.TrimPrefix(canonical(s.records[0].(*dns.DNAME).Target), ".")
		if _, valid := dns.IsDomainName(target); !valid {
			return s, ""
		}
		return s, canonical(target)
	}
	return nil, ""
}

func pointsTo(s *set, target string) bool {
	return len(s.records) == 1 && canonical(s.records[0].(*dns.CNAME).Target) == target
}

// checkExpansion has an RRset from a wildcard prove that no closer name exists (RFC 4035 section 5.3.4, RFC 5155 section 8.8).
func (j *judgement) checkExpansion(s *set) *finding {
	if !s.isExpanded() {
		return nil
	}
	return j.prove(func(d denial) (weak, f *finding) { return d.proveExpansion(s.Name, s.labels) })
}

// checkDenial judges an answer that has no data of the type at a name.
func (j *judgement) checkDenial(name string) *finding {
	if s := j.referral(name); s != nil {
		return j.checkDelegation(s.Name)
	}
	if j.rcode == dns.RcodeNameError {
		return j.prove(func(d denial) (weak, f *finding) { return d.proveNoName(name) })
	}
	return j.prove(func(d denial) (weak, f *finding) { return d.proveNoData(name, j.qtype) })
}

// referral is the NS RRset of the delegation that the server refers to, of this zone and not of one below it.
func (j *judgement) referral(name string) *set {
	if j.rcode != dns.RcodeSuccess || j.authority.find(j.zone, dns.TypeSOA) != nil {
		return nil
	}
	for _, s := range j.authority {
		leads := s.Type == dns.TypeNS && isBelow(s.Name, j.zone) && rrset.IsSubdomain(name, s.Name) && (j.qtype != dns.TypeDS || s.Name != name)
		if leads && !j.isDelegated(s.Name, dns.TypeDS) {
			return s
		}
	}
	return nil
}

// checkDelegation judges a referral (RFC 4035 section 5.2, RFC 5155 section 8.9).
func (j *judgement) checkDelegation(name string) *finding {
	if j.authority.find(name, dns.TypeDS) != nil {
		return nil
	}
	if f := j.prove(func(d denial) (weak, f *finding) { return d.proveNoDS(name) }); f != nil {
		return f
	}
	return insecure(dns.ExtendedErrorCodeOther, "the delegation of %s has no DS record", name)
}

// prove calls for a proof of the authority section, and keeps that it is weak.
func (j *judgement) prove(what func(denial) (weak, f *finding)) *finding {
	if j.proof == nil {
		d, f := j.collectProof()
		if f != nil {
			return f
		}
		j.proof = d
	}
	weak, f := what(j.proof)
	j.weak = cmp.Or(j.weak, weak)
	return f
}
