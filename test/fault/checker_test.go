package fault

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
	"github.com/lockstep-dns/lockstep/test/named"
)

// The judge itself: histories of a few moments, each true or false in one way.
func TestJudge(t *testing.T) {
	kube.WithoutCluster(t)
	if out, err := python("judge_test.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The rules for the messages of conditions.
func TestSentences(t *testing.T) {
	kube.WithoutCluster(t)
	if out, err := python("sentences_test.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The judge on the history of a real run, which is true, and after each of many lies.
func TestJudgeReportsLies(t *testing.T) {
	kube.WithoutCluster(t)
	if out, err := python("lies_test.py", filepath.Join("testdata", "history.jsonl.xz")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// What questions.py makes of the answers of a real server.
func TestQuestions(t *testing.T) {
	kube.WithoutCluster(t)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.test.", Records: `
a 60 A 192.0.2.2
a 60 A 192.0.2.1
aaaa AAAA 2001:DB8::A
alias CNAME elsewhere.example.
team NS ns.elsewhere.example.
text TXT "one text"
@ MX 10 mail.example.net.
@ CAA 0 issue "ca.example.net"
_sip._tcp SRV 1 2 5060 sip.example.net.
*.wild A 192.0.2.3`}}})
	for key, want := range map[string]string{
		"a.example.test. A":             "60 192.0.2.1 | 192.0.2.2",
		"a.example.test. AAAA":          "none",
		"nothing.example.test. A":       "none",
		"aaaa.example.test. AAAA":       "300 2001:db8::a",
		"alias.example.test. CNAME":     "300 elsewhere.example.",
		"alias.example.test. A":         "alias",
		"team.example.test. NS":         "300 ns.elsewhere.example.",
		"www.team.example.test. A":      "referral",
		"text.example.test. TXT":        `300 "one text"`,
		"example.test. MX":              "300 10 mail.example.net.",
		"example.test. CAA":             `300 0 issue "ca.example.net"`,
		"_sip._tcp.example.test. SRV":   "300 1 2 5060 sip.example.net.",
		"*.wild.example.test. A":        "300 192.0.2.3",
		"www.elsewhere.example. A":      "REFUSED",
		"x.wild.example.test. A":        "300 192.0.2.3",
		"nothing.wild.example.test. MX": "none",
	} {
		out, err := python("questions.py", server.Addr.Addr().String(), fmt.Sprint(server.Addr.Port()), key).CombinedOutput()
		if got := string(out); err != nil || got != want {
			t.Errorf("%s: %v %s, want %s", key, err, got, want)
		}
	}
	if out, err := python("questions.py", "127.0.0.1", fmt.Sprint(named.Reserve(t).Port()), "a.example.test. A").CombinedOutput(); err != nil || string(out) != "silent" {
		t.Errorf("no server: %v %s", err, out)
	}
}

// What a client makes of the answers of a real server over UDP and TCP, and of nobody's.
func TestClientQuestions(t *testing.T) {
	kube.WithoutCluster(t)
	server := named.Start(t, named.Options{Zones: []named.Zone{{Name: "example.test."}}})
	nobody := fmt.Sprint(named.Reserve(t).Port())
	for _, protocol := range []string{"UDP", "TCP"} {
		for _, c := range []struct{ zone, port, want string }{
			{"example.test", fmt.Sprint(server.Addr.Port()), "answer"},
			{"elsewhere.example", fmt.Sprint(server.Addr.Port()), "REFUSED"},
			{"example.test", nobody, "silent"},
		} {
			out, err := python("questions.py", "client", server.Addr.Addr().String(), protocol, c.zone, c.port).CombinedOutput()
			if got := string(out); err != nil || got != c.want {
				t.Errorf("%s over %s at port %s: %v %s, want %s", c.zone, protocol, c.port, err, got, c.want)
			}
		}
	}
}
