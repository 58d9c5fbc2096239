package lockio

import (
	"go/types"
	"slices"
	"strings"
)

// own is where Lockstep's own packages are.
const own = "github.com/lockstep-dns/lockstep/"

// talking are packages whose functions may wait for the network if they take a context.
var talking = []string{
	own + "pkg/dns/outbound", own + "pkg/dns/wire", own + "pkg/dns/observe", own + "pkg/fleet/bindcar", own + "pkg/fleet/named/rndc",
	own + "pkg/fleet/bindcar/signingkeys", own + "pkg/fleet/bindcar/statistics", own + "pkg/dns/vantage",
	own + "pkg/fleet/certs", own + "pkg/fleet/dnssec", own + "pkg/fleet/keyrotation", own + "pkg/fleet/tsigkey",
	own + "pkg/zone/host", own + "pkg/zone/host/bind", own + "pkg/zone/host/byquery", own + "pkg/zone/host/coredns", own + "pkg/zone/host/owned",
	own + "pkg/zone/host/rfc2136", own + "pkg/zone/host/shared", own + "pkg/zone/dnsprovider", own + "pkg/zone/registry", own + "pkg/zone/unreachable",
	own + "pkg/kube/apply", own + "pkg/fleet/inventory",
	"sigs.k8s.io/controller-runtime/pkg/client", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc",
	"k8s.io/client-go/dynamic", "k8s.io/client-go/rest", "k8s.io/client-go/metadata",
}

// talkingBelow are folders of packages like these.
var talkingBelow = []string{"k8s.io/client-go/kubernetes/typed/"}

// waiting are other functions that may wait for the network, and the types all of whose methods do.
var waiting = []string{
	"net.Dial", "net.DialTimeout", "net.DialTCP", "net.DialUDP", "net.DialIP", "net.DialUnix", "(*net.Dialer).", "(*net.Resolver).", "net.Lookup",
	"net.ResolveTCPAddr", "net.ResolveUDPAddr", "net.ResolveIPAddr", "(net.Conn).Read", "(net.Conn).Write",
	"(*crypto/tls.Conn).Handshake", "(*crypto/tls.Conn).Read", "(*crypto/tls.Conn).Write", "(*crypto/tls.Dialer).", "crypto/tls.Dial",
	"net/http.Get", "net/http.Head", "net/http.Post", "(*net/http.Client).Do", "(*net/http.Client).Get", "(*net/http.Client).Head", "(*net/http.Client).Post",
	"(net/http.RoundTripper).", "(*net/http.Transport).RoundTrip",
	"go.etcd.io/etcd/client/v3.New", // It signs in.
	"(go.etcd.io/etcd/client/v3.Txn).Commit",
	"(*github.com/miekg/dns.Client).", "github.com/miekg/dns.Exchange", "(*github.com/miekg/dns.Transfer).",
	"(*github.com/lockstep-dns/lockstep/pkg/dns/wire.Conn).Close", // It waits for the exchange under way.
}

// waitsByRule reports whether a function may wait for the network.
func waitsByRule(fn *types.Func) bool {
	name := fn.FullName()
	if slices.ContainsFunc(waiting, func(w string) bool {
		if strings.HasSuffix(w, ".") || w == "net.Lookup" {
			return strings.HasPrefix(name, w)
		}
		return name == w || name == w+"Context" || name == w+"Form"
	}) {
		return true
	}
	return fn.Pkg() != nil && isTalking(fn.Pkg().Path()) && takesContext(fn.Signature())
}

func isTalking(path string) bool {
	return slices.Contains(talking, path) || slices.ContainsFunc(talkingBelow, func(folder string) bool { return strings.HasPrefix(path, folder) })
}

// takesContext reports whether a function is called with a context, and not in order to get another one.
func takesContext(s *types.Signature) bool {
	isContext := func(t *types.Var) bool { return t.Type().String() == "context.Context" }
	for result := range s.Results().Variables() {
		if isContext(result) {
			return false
		}
	}
	return s.Params().Len() > 0 && isContext(s.Params().At(0))
}
