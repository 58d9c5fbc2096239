package acme

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-acme/lego/v5/providers/dns/dnsupdate"
	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/test/kube"
	testnamed "github.com/lockstep-dns/lockstep/test/named"
)

// legoProvider is lego's, for a server and a key.
func legoProvider(t *testing.T, server netip.AddrPort, key *wire.Key) *dnsupdate.DNSProvider {
	t.Helper()
	config := dnsupdate.NewDefaultConfig()
	config.Nameserver, config.TSIGKey, config.TSIGAlgorithm, config.TSIGSecret = server.String(), key.Name, key.Algorithm, key.Secret
	provider, err := dnsupdate.NewDNSProviderConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

// TestSymptoms: a client with a wrong key fails, and the guide explains its words and those of named's log. The key of challenges is a
// wrong one for example.com.
func TestSymptoms(t *testing.T) {
	kube.WithoutCluster(t)
	w := newWorld(t)
	const bad = "bad authentication"
	right := *w.challenges.UpdateKey
	for name, c := range map[string]struct {
		server          *testnamed.Pod
		key             wire.Key
		name, word, log string
	}{
		"another server":    {w.dns, right, "www.example.com", bad, "BADKEY"},
		"another zone":      {w.dns, right, "mail.example.com", bad, "BADKEY"},
		"another key":       {w.challenges, wire.Key{Name: "acme.", Algorithm: right.Algorithm, Secret: right.Secret}, "www.example.com", bad, "BADKEY"},
		"another algorithm": {w.challenges, wire.Key{Name: right.Name, Algorithm: dns.HmacSHA1, Secret: right.Secret}, "www.example.com", bad, "BADKEY"},
		"another secret":    {w.challenges, testnamed.NewKey(right.Name), "www.example.com", bad, "BADSIG"},
		"no alias":          {w.challenges, right, "ftp.example.com", "unexpected response", ""},
	} {
		before := len(c.server.Log())
		err := w.authority.obtain(t, c.name, legoProvider(t, c.server.DNS(), &c.key))
		if err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v, want %s", name, err, c.word)
		}
		kube.Eventually(t, kube.Answer, func(context.Context) error {
			if log := c.server.Log()[before:]; !strings.Contains(log, c.log) {
				return fmt.Errorf("%s: named logs no %s: %s", name, c.log, log)
			}
			return nil
		})
		if text := guide(t); !strings.Contains(text, "`"+c.word+"`") || c.log != "" && !strings.Contains(text, "`"+c.log+"`") {
			t.Errorf("%s explains no %s or no %s", page, c.word, c.log)
		}
	}
}

// TestKeyOpensNothingElse: servers refuse updates of example.com by the key of challenges, whatever program sends them.
func TestKeyOpensNothingElse(t *testing.T) {
	kube.WithoutCluster(t)
	w := newWorld(t)
	for zone, server := range map[string]*testnamed.Pod{"example.com.": w.dns, "acme.example.com.": w.dns, "com.": w.challenges} {
		if rcode := update(t, server.DNS(), w.challenges.UpdateKey, zone, "www.example.com. 60 A 192.0.2.66"); rcode == dns.RcodeSuccess {
			t.Errorf("the key of challenges changes %s", zone)
		}
	}
	if rcode := update(t, w.challenges.DNS(), w.challenges.UpdateKey, "acme.example.com.", "www.example.com. 60 A 192.0.2.66"); rcode != dns.RcodeNotZone {
		t.Errorf("a name outside of the zone: %s", dns.RcodeToString[rcode])
	}
	reply, err := wire.Query(t.Context(), w.dns.DNS(), "www.example.com.", dns.TypeA)
	if err != nil || len(reply.Msg.Answer) != 1 || !strings.HasSuffix(reply.Msg.Answer[0].String(), "192.0.2.10") {
		t.Errorf("www.example.com is %v, %v", reply.Msg, err)
	}
}

// update adds an RR, and returns the server's answer.
func update(t *testing.T, server netip.AddrPort, key *wire.Key, zone, text string) int {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate(zone)
	m.Insert([]dns.RR{rr})
	m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
	reply, _, err := (&dns.Client{Net: "tcp", TsigSecret: map[string]string{key.Name: key.Secret}}).ExchangeContext(t.Context(), m, server.String())
	if reply == nil {
		t.Fatal(err)
	}
	return reply.Rcode
}

var grants = regexp.MustCompile(`grant [^;]+;`)

// TestUpdatePolicy: a BIND with the guide's update-policy lets a key change one TXT record, which is enough for lego.
func TestUpdatePolicy(t *testing.T) {
	kube.WithoutCluster(t)
	key := testnamed.NewKey("acme-www.")
	server := testnamed.Start(t, testnamed.Options{
		Update: testnamed.NewKey("lockstep-update."), Keys: []wire.Key{key},
		Zones: []testnamed.Zone{{Name: "example.com.", File: zoneText("example.com", ""), Policy: strings.Join(grants.FindAllString(block(t, "update-policy"), -1), " ")}},
	})
	resolver := startResolver(t, map[string]netip.AddrPort{"example.com": server.Addr})
	if err := startAuthority(t, resolver).obtain(t, "www.example.com", legoProvider(t, server.Addr, &key)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]int{
		"_acme-challenge.www.example.com. 60 TXT x":       dns.RcodeSuccess,
		"_acme-challenge.www.example.com. 60 A 192.0.2.1": dns.RcodeRefused,
		"_acme-challenge.api.example.com. 60 TXT x":       dns.RcodeRefused,
		"www.example.com. 60 A 192.0.2.66":                dns.RcodeRefused,
	} {
		if got := update(t, server.Addr, &key, "example.com.", text); got != want {
			t.Errorf("%s: %s", text, dns.RcodeToString[got])
		}
	}
	if got := update(t, server.Addr, &server.Update, "example.com.", "www.example.com. 60 A 192.0.2.66"); got != dns.RcodeSuccess {
		t.Errorf("Lockstep's key: %s", dns.RcodeToString[got])
	}
}
