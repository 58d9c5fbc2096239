package dnssec

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/miekg/dns"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// fault is one fault of a server, or of the parent and so of all servers.
type fault struct {
	*world
	server *server
	random *rand.Rand
	// what says what was done.
	what string
	// effective is when it was in force, if that is not when it has begun.
	effective time.Time
	end       func()
}

// kind is a kind of fault.
type kind struct {
	name string
	// above is true for a fault of the parent.
	above bool
	begin func(*fault)
	// want is what the judges find: Bogus if empty, for at least one question.
	want syncv1.Security
}

// allKinds are the kinds of faults, and some changes that are none.
var allKinds = slices.Concat(signatureKinds, keyKinds, denialKinds, answerKinds, parentKinds)

// pick returns one of some values.
func pick[T any](f *fault, all ...T) T { return all[f.random.IntN(len(all))] }

// between returns a random time.
func (f *fault) between(least, most time.Duration) time.Duration {
	return least + time.Duration(f.random.Int64N(int64(most-least)))
}

// set is one of the RRsets that somebody asks for.
func (f *fault) set() rrset {
	all := allQuestions()
	all = slices.DeleteFunc(all, func(k rrset) bool { return k.rrtype == dns.TypeTXT })
	slices.SortFunc(all, func(a, b rrset) int { return compareNames(a.name, b.name)*10 + int(a.rrtype) - int(b.rrtype) })
	return append(all, rrset{zoneName, dns.TypeDNSKEY})[f.random.IntN(len(all)+1)]
}

// serve has the server serve a content until the fault ends.
func (f *fault) serve(c content, format string, args ...any) {
	f.what = fmt.Sprintf(format, args...)
	s := f.server
	s.serves(c)
	f.end = func() {
		s.good = f.signed(f.below, lasting())
		s.serves(s.good)
	}
}

// signed is the zone with a newer serial.
func (f *fault) signed(by *signer, v validity) content { return by.sign(f.records(f.server.next()), v) }

// changed is what the server has with some records replaced: with a newer serial and other signatures, or silently.
func (f *fault) changed(change func(dns.RR) []dns.RR) content {
	if f.random.IntN(2) == 0 {
		f.what = "silently "
		return f.server.good.with(change)
	}
	return f.signed(f.below, lasting()).with(change)
}

// ended is the time of signatures that have expired.
func (f *fault) ended() validity {
	to := time.Now().Add(-f.between(time.Minute, 48*time.Hour))
	return validity{to.Add(-14 * 24 * time.Hour), to}
}

var signatureKinds = []kind{
	{name: "expired", begin: func(f *fault) {
		f.serve(f.signed(f.below, f.ended()), "all signatures have expired")
	}},
	{name: "expired-one", begin: func(f *fault) {
		k, old := f.set(), f.below.sign(f.server.good.without(isDNSSEC), f.ended())
		i := slices.IndexFunc(old, isSignatureOf(k))
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if isSignatureOf(k)(rr) {
				return []dns.RR{old[i]}
			}
			return []dns.RR{rr}
		}), "%sthe signature of %s has expired", f.what, k)
	}},
	{name: "expires-meanwhile", begin: func(f *fault) {
		v := lasting()
		v.to = time.Now().Add(f.between(2*time.Second, 6*time.Second)).Truncate(time.Second)
		f.serve(f.signed(f.below, v), "all signatures expire at %s", v.to)
		f.effective = v.to.Add(time.Second)
		time.Sleep(time.Until(f.effective)) // It is when, and not after how long.
	}},
	{name: "expires-soon", want: syncv1.SecurityExpiring, begin: func(f *fault) {
		v := lasting()
		v.to = time.Now().Add(f.between(time.Hour, 71*time.Hour))
		f.serve(f.signed(f.below, v), "all signatures expire at %s", v.to)
	}},
	{name: "notice", want: syncv1.SecurityExpiring, begin: func(f *fault) {
		v := lasting()
		v.to = time.Now().Add(notice + f.between(time.Second, 3*time.Second)).Truncate(time.Second)
		f.serve(f.signed(f.below, v), "all signatures expire at %s", v.to)
		f.effective = v.to.Add(-notice)
	}},
	{name: "clock-ahead", begin: func(f *fault) { // Signers date signatures back by an hour.
		from := time.Now().Add(time.Hour)
		f.serve(f.signed(f.below, validity{from, from.Add(14 * 24 * time.Hour)}), "the signer's clock is two hours ahead")
	}},
	{name: "clock-behind", begin: func(f *fault) {
		from := time.Now().Add(-3 * time.Hour)
		f.serve(f.signed(f.below, validity{from, from.Add(f.between(time.Hour, 3*time.Hour))}), "the signer's clock is two hours behind, and its signatures are valid for less")
	}},
	{name: "rrsig-tampered", begin: func(f *fault) {
		k, bit := f.set(), f.random.IntN(256)
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if isSignatureOf(k)(rr) {
				rr = dns.Copy(rr)
				rr.(*dns.RRSIG).Signature = flip(rr.(*dns.RRSIG).Signature, bit)
			}
			return []dns.RR{rr}
		}), "%sbit %d of the signature of %s has changed", f.what, bit, k)
	}},
	{name: "data-tampered", begin: func(f *fault) {
		k := rrset{pick(f, slices.Sorted(maps.Values(owners))...) + "." + zoneName, dns.TypeA}
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if keyOf(rr) == k {
				rr = dns.Copy(rr)
				rr.(*dns.A).A.To4()[3] ^= byte(1 << f.random.IntN(8))
			}
			return []dns.RR{rr}
		}), "%s%s has changed", f.what, k)
	}},
	{name: "rrsig-missing", begin: func(f *fault) {
		k := f.set()
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if isSignatureOf(k)(rr) {
				return nil
			}
			return []dns.RR{rr}
		}), "%s%s has no signature", f.what, k)
	}},
	{name: "unsigned", begin: func(f *fault) {
		f.serve(f.records(f.server.next()), "the zone is not signed")
	}},
	{name: "signed-again", want: syncv1.SecuritySecure, begin: func(f *fault) {
		f.serve(f.signed(f.below, lasting()), "signed again")
	}},
}

func isDNSSEC(rr dns.RR) bool {
	switch rr.(type) {
	case *dns.DNSKEY, *dns.RRSIG, *dns.NSEC, *dns.NSEC3, *dns.NSEC3PARAM:
		return true
	}
	return false
}

var keyKinds = []kind{
	{name: "dnskey-tampered", begin: func(f *fault) {
		of, bit := pick(f, f.below.ksk, f.below.zsk), 64+f.random.IntN(128)
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if k, ok := rr.(*dns.DNSKEY); ok && k.Flags == of.Flags {
				rr = dns.Copy(rr)
				rr.(*dns.DNSKEY).PublicKey = flip(k.PublicKey, bit)
			}
			return []dns.RR{rr}
		}), "%sbit %d of the key %d has changed", f.what, bit, of.KeyTag())
	}},
	{name: "keys-deleted", begin: func(f *fault) {
		flags := pick(f, []uint16{256}, []uint16{257}, []uint16{256, 257})
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if k, ok := rr.(*dns.DNSKEY); ok && slices.Contains(flags, k.Flags) {
				return nil
			}
			return []dns.RR{rr}
		}), "%sthe keys with the flags %d are gone", f.what, flags)
	}},
	{name: "other-keys", begin: func(f *fault) {
		f.serve(f.signed(newSigner(f, zoneName, f.below.ksk.Algorithm, f.below.nsec3), lasting()), "signed with other keys")
	}},
	{name: "unknown-zsk", begin: func(f *fault) {
		other := *f.below
		other.zsk = newKey(f, zoneName, other.zsk.Algorithm, dns.ZONE)
		signed, keys := f.signed(&other, lasting()), f.signed(f.below, lasting())
		isKey := func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeDNSKEY || covers(rr) == dns.TypeDNSKEY }
		f.serve(append(signed.without(isKey), keys.without(func(rr dns.RR) bool { return !isKey(rr) })...), "signed with a key that is not published")
	}},
	{name: "other-zsk", want: syncv1.SecuritySecure, begin: func(f *fault) {
		other := *f.below
		other.zsk = newKey(f, zoneName, other.zsk.Algorithm, dns.ZONE)
		f.serve(f.signed(&other, lasting()), "signed with another ZSK, which the KSK signs")
	}},
}

var denialKinds = []kind{
	{name: "denial-missing", begin: func(f *fault) {
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if isDenial(rr) {
				return nil
			}
			return []dns.RR{rr}
		}), "%snothing proves what does not exist", f.what)
	}},
	{name: "denial-tampered", begin: func(f *fault) {
		f.serve(f.changed(func(rr dns.RR) []dns.RR {
			if isDenial(rr) {
				rr = dns.Copy(rr)
				if n, ok := rr.(*dns.NSEC); ok {
					n.NextDomain = "\\000." + n.Hdr.Name
				} else if n, ok := rr.(*dns.NSEC3); ok {
					n.NextDomain = "0" + n.NextDomain[1:]
				}
			}
			return []dns.RR{rr}
		}), "%sthe chain that proves what does not exist has changed", f.what)
	}},
	{name: "nsec3-changed", want: syncv1.SecuritySecure, begin: func(f *fault) {
		other := *f.below
		other.nsec3 = pick(f, nil, params(zoneName, uint16(f.random.IntN(20)), pick(f, "", "d00d", "0102030405")))
		f.serve(f.signed(&other, lasting()), "signed with other parameters: %v", other.nsec3)
	}},
	{name: "nsec3-incomplete", begin: func(f *fault) { // A chain of other parameters whose records are not all there.
		other := *f.below
		other.nsec3 = params(zoneName, uint16(f.random.IntN(10)), "feed")
		probe := dns.HashName(questions[zoneObject][2].name, dns.SHA1, other.nsec3.Iterations, other.nsec3.Salt)
		all := f.signed(&other, lasting())
		var gone string
		for _, rr := range all {
			if n, ok := rr.(*dns.NSEC3); ok && n.Cover(questions[zoneObject][2].name) {
				gone = n.Hdr.Name
			}
		}
		f.serve(all.without(func(rr dns.RR) bool { return rr.Header().Name == gone }), "other parameters, and no record that covers %s", probe)
	}},
}

func isDenial(rr dns.RR) bool {
	t := rr.Header().Rrtype
	return t == dns.TypeNSEC || t == dns.TypeNSEC3 || covers(rr) == dns.TypeNSEC || covers(rr) == dns.TypeNSEC3
}

// alter has the server's answers changed on their way until the fault ends.
func (f *fault) alter(change func(*dns.Msg), format string, args ...any) {
	f.what = fmt.Sprintf(format, args...)
	s := f.server
	s.answers(change)
	f.end = func() { s.answers(nil) }
}

func strip(m *dns.Msg, is func(dns.RR) bool) {
	m.Answer, m.Ns, m.Extra = slices.DeleteFunc(m.Answer, is), slices.DeleteFunc(m.Ns, is), slices.DeleteFunc(m.Extra, is)
}

var answerKinds = []kind{
	{name: "rrsig-stripped", begin: func(f *fault) {
		f.alter(func(m *dns.Msg) { strip(m, func(rr dns.RR) bool { return covers(rr) != 0 }) }, "answers lack signatures")
	}},
	{name: "no-dnssec", begin: func(f *fault) {
		f.alter(func(m *dns.Msg) { strip(m, isDNSSEC) }, "answers lack all records of DNSSEC")
	}},
	{name: "denial-stripped", begin: func(f *fault) {
		f.alter(func(m *dns.Msg) { strip(m, isDenial) }, "answers lack proofs")
	}},
	{name: "keys-hidden", begin: func(f *fault) {
		f.alter(func(m *dns.Msg) {
			strip(m, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeDNSKEY || covers(rr) == dns.TypeDNSKEY })
		}, "answers lack keys")
	}},
	{name: "altered", begin: func(f *fault) {
		k, bit := f.set(), f.random.IntN(256)
		f.alter(func(m *dns.Msg) {
			for _, rr := range m.Answer {
				if isSignatureOf(k)(rr) {
					rr.(*dns.RRSIG).Signature = flip(rr.(*dns.RRSIG).Signature, bit)
				}
			}
		}, "bit %d of the signature of %s changes on its way", bit, k)
	}},
}

// delegate has the parent serve a content until the fault ends.
func (f *fault) delegate(c content, format string, args ...any) {
	f.what = fmt.Sprintf(format, args...)
	w := f.world
	w.parent.serves(c)
	f.end = func() { w.parent.serves(w.above.sign(w.delegation(w.below.ds()), lasting())) }
}

var parentKinds = []kind{
	{name: "wrong-ds", above: true, begin: func(f *fault) {
		other := newKey(f, zoneName, f.below.ksk.Algorithm, dns.ZONE|dns.SEP)
		f.delegate(f.above.sign(f.delegation(other.ToDS(dns.SHA256)), lasting()), "the parent has the DS record of another key")
	}},
	{name: "digest-tampered", above: true, begin: func(f *fault) {
		ds := f.below.ds()
		ds.Digest = ds.Digest[1:] + ds.Digest[:1]
		f.delegate(f.above.sign(f.delegation(ds), lasting()), "the digest of the DS record has changed")
	}},
	{name: "second-ds", above: true, want: syncv1.SecuritySecure, begin: func(f *fault) {
		other := newKey(f, zoneName, f.below.ksk.Algorithm, dns.ZONE|dns.SEP)
		f.delegate(f.above.sign(f.delegation(other.ToDS(dns.SHA256), f.below.ds()), lasting()), "the parent has the DS record of a future key, too")
	}},
	{name: "no-ds", above: true, want: syncv1.SecurityInsecure, begin: func(f *fault) {
		f.delegate(f.above.sign(f.delegation(), lasting()), "the parent has no DS record")
	}},
	{name: "ds-tampered", above: true, begin: func(f *fault) {
		bit := f.random.IntN(256)
		f.delegate(f.above.sign(f.delegation(f.below.ds()), lasting()).with(func(rr dns.RR) []dns.RR {
			if covers(rr) == dns.TypeDS {
				rr.(*dns.RRSIG).Signature = flip(rr.(*dns.RRSIG).Signature, bit)
			}
			return []dns.RR{rr}
		}), "bit %d of the signature of the DS record has changed", bit)
	}},
	{name: "parent-expired", above: true, begin: func(f *fault) {
		f.delegate(f.above.sign(f.delegation(f.below.ds()), f.ended()), "all signatures of the parent have expired")
	}},
	{name: "parent-other-keys", above: true, begin: func(f *fault) {
		other := newSigner(f, parentName, f.above.ksk.Algorithm, f.above.nsec3)
		f.delegate(other.sign(f.delegation(f.below.ds()), lasting()), "the parent is signed with keys that no anchor is of")
	}},
}
