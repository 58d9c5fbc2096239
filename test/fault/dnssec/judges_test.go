package dnssec

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	syncv1 "github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/test/daemon"
	"github.com/lockstep-dns/lockstep/test/named"
	"github.com/lockstep-dns/lockstep/test/unbound"
)

// judges are Debian's unbound, which asks one server for the zone and that of its parent for the rest, and delv, which asks unbound for
// everything without its verdict, and validates for itself. By default unbound takes signatures that have expired for a tenth of the time that
// they were valid; BIND does not, and here neither does.
type judges struct {
	t testing.TB
	// addr is unbound's. Each judgement has an unbound of its own, as it remembers keys.
	addr                   netip.AddrPort
	dir, unbound, delvPath string
	// arguments are unbound's.
	arguments []string
}

func newJudges(t testing.TB, anchor key, server, parent netip.AddrPort) *judges {
	t.Helper()
	j := &judges{t: t, addr: named.Reserve(t), dir: t.TempDir(), unbound: unbound.Find(t), delvPath: daemon.Find(t, "delv", "bind9-dnsutils")}
	named.Release(t, j.addr)
	var err error
	j.arguments, err = unbound.Config{
		At: j.addr, Anchor: anchor.DNSKEY, Servers: map[string][]netip.AddrPort{zoneName: {server}, parentName: {parent}},
		Server: []string{"aggressive-nsec: no", "cache-max-ttl: 0", "cache-max-negative-ttl: 0", "val-sig-skew-min: 0", "val-sig-skew-max: 0"},
		Stub:   []string{"stub-no-cache: yes"},
	}.Write(j.dir)
	if err != nil {
		t.Fatal(err)
	}
	anchors := fmt.Sprintf("trust-anchors { %s static-key %d %d %d %q; };\n", parentName, anchor.Flags, anchor.Protocol, anchor.Algorithm, anchor.PublicKey)
	if err := os.WriteFile(filepath.Join(j.dir, "anchors"), []byte(anchors), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// opinion is what a judge makes of an answer.
type opinion struct {
	security syncv1.Security
	// cause is that of unbound, as an INFO-CODE of RFC 8914.
	cause uint16
}

var errNoOpinion = errors.New("no opinion")

// ask has unbound judge the answers to questions, and delv those that it is asked for as well.
func (j *judges) ask(questions []rrset, delv func(rrset, opinion) bool) (unbounds map[rrset]opinion, delvs map[rrset]syncv1.Security, err error) {
	stop, err := j.start()
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	unbounds, delvs = map[rrset]opinion{}, map[rrset]syncv1.Security{}
	for _, q := range questions {
		o, err := j.askUnbound(q)
		if err != nil {
			continue
		}
		unbounds[q] = o
		if delv != nil && delv(q, o) {
			if security, err := j.askDelv(q); err == nil {
				delvs[q] = security
			} else {
				j.t.Logf("delv: %v", err)
			}
		}
	}
	return unbounds, delvs, nil
}

func (j *judges) start() (stop func(), err error) {
	log, err := os.Create(filepath.Join(j.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(j.unbound, j.arguments...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := j.exchange(rrset{"localhost.", dns.TypeA}, false); err == nil {
			return stop, nil
		}
	}
	stop()
	text, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("unbound does not answer: %s", text)
}

func (j *judges) exchange(q rrset, unchecked bool) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(q.name, q.rrtype)
	m.SetEdns0(4096, true)
	m.CheckingDisabled = unchecked
	reply, _, err := (&dns.Client{Net: "tcp", Timeout: 20 * time.Second}).Exchange(m, j.addr.String())
	return reply, err
}

// askUnbound returns Bogus for an answer that clients get only if they ask for it unchecked.
func (j *judges) askUnbound(q rrset) (opinion, error) {
	m, err := j.exchange(q, false)
	if err != nil {
		return opinion{}, err
	}
	switch {
	case m.Rcode != dns.RcodeServerFailure && m.AuthenticatedData:
		return opinion{security: syncv1.SecuritySecure}, nil
	case m.Rcode != dns.RcodeServerFailure:
		return opinion{security: syncv1.SecurityInsecure}, nil
	}
	if raw, err := j.exchange(q, true); err != nil || raw.Rcode == dns.RcodeServerFailure {
		return opinion{}, errNoOpinion
	}
	o := opinion{security: syncv1.SecurityBogus}
	if opt := m.IsEdns0(); opt != nil {
		for _, option := range opt.Option {
			if ede, ok := option.(*dns.EDNS0_EDE); ok {
				o.cause = ede.InfoCode
			}
		}
	}
	return o, nil
}

var (
	validated = regexp.MustCompile(`(?m)^; (negative response, )?fully validated$`)
	plain     = regexp.MustCompile(`(?m)^; (negative response, )?unsigned answer$`)
	rejected  = regexp.MustCompile(`(?m)^;; resolution failed: (broken trust chain|no valid \w+|insecurity proof failed|RRSIG .*)$|got insecure response; parent indicates it should be secure$`)
)

func (j *judges) askDelv(q rrset) (syncv1.Security, error) {
	command := exec.Command(j.delvPath, "-a", filepath.Join(j.dir, "anchors"), "@"+j.addr.Addr().String(), "-p", fmt.Sprint(j.addr.Port()), "+cdflag", "+root="+parentName,
		q.name, dns.TypeToString[q.rrtype])
	out, err := command.CombinedOutput() // It fails for an answer that is Bogus.
	switch {
	case rejected.Match(out):
		return syncv1.SecurityBogus, nil
	case plain.Match(out):
		return syncv1.SecurityInsecure, nil
	case validated.Match(out):
		return syncv1.SecuritySecure, nil
	}
	return "", fmt.Errorf("%s: %w: %s", q, err, out)
}
