package named

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// Zone to be served.
type Zone struct {
	// Name is absolute.
	Name string
	// Serial at the start; 0 means 1.
	Serial uint32
	// Records are lines of a zone file beside SOA, apex NS (ns1) and ns1's address, which every zone has.
	Records string
	// File is a complete zone file in place of all that.
	File string
	// Policy is the zone's update-policy; empty means that the update key may do everything.
	Policy string
	// Extra is put into a primary's zone clause as it is.
	Extra string
	// Globals stand before a primary's zone clause, at the top level of named.conf.
	Globals string
}

func (z Zone) file() string {
	if z.File != "" {
		return z.File
	}
	return fmt.Sprintf("$ORIGIN %s\n$TTL 300\n@ SOA ns1 hostmaster %d 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n%s\n",
		z.Name, max(1, z.Serial), z.Records)
}

func (z Zone) filename() string { return strings.Trim(strings.ToLower(z.Name), ".") + ".zone" }

func (s *Server) writeFiles() error {
	files := map[string]string{
		"named.conf": s.config(),
		"rndc.key":   clause(s.ControlKey),
	}
	if s.options.Role == Primary {
		for _, z := range s.options.Zones {
			files[z.filename()] = z.file()
		}
	}
	for name, content := range files {
		if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) config() string {
	var b strings.Builder
	for _, k := range append([]wire.Key{s.Update, s.Transfer, s.ControlKey}, s.options.Keys...) {
		b.WriteString(clause(k))
	}
	fmt.Fprintf(&b, "controls { inet %s port %d allow { 127.0.0.1; } keys { %q; }; };\n", s.Control.Addr(), s.Control.Port(), s.ControlKey.Name)
	fmt.Fprintf(&b, `logging { channel file { file %q; severity info; print-time yes; print-category yes; };
  category default { file; }; category unmatched { null; }; };
options {
  directory %q; pid-file none; session-keyfile none; server-id %q;
  listen-on port %d { %s; }; listen-on-v6 { none; };
  recursion %s; dnssec-validation no; empty-zones-enable no; minimal-responses yes; allow-new-zones yes;
  notify-delay 0; notify-rate 1000; startup-notify-rate 1000; serial-query-rate 1000;
  transfers-in 200; transfers-per-ns 200; transfers-out 200; tcp-clients 1000;
  masterfile-format text; max-ixfr-ratio 100%%; zone-statistics full; min-refresh-time 5; min-retry-time 1;
  allow-transfer { %s; }; allow-notify { key %q; };
  %s
  %s
};
`, s.path("named.log"), s.Dir, s.token, s.Addr.Port(), s.Addr.Addr(), s.recursion(), s.mayTransfer(), s.Transfer.Name, s.notify(), s.options.Extra)
	b.WriteString(s.options.Resolver)
	for _, z := range s.options.Zones {
		b.WriteString(s.zone(z))
	}
	return b.String()
}

func (s *Server) recursion() string {
	if s.options.Resolver == "" {
		return "no"
	}
	return "yes"
}

func (s *Server) mayTransfer() string {
	if s.options.Closed {
		return "none"
	}
	return fmt.Sprintf("key %q", s.Transfer.Name)
}

func (s *Server) notify() string {
	if len(s.options.AlsoNotify) == 0 {
		return "notify no;"
	}
	return "notify explicit; also-notify { " + s.peers(s.options.AlsoNotify) + "};"
}

// peers are servers that know the same transfer key.
func (s *Server) peers(addrs []netip.AddrPort) string {
	var b strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&b, "%s port %d key %q; ", a.Addr(), a.Port(), s.Transfer.Name)
	}
	return b.String()
}

func (s *Server) zone(z Zone) string {
	if s.options.Role == Secondary {
		primaries := append([]netip.AddrPort{s.options.Primary.Addr}, s.options.AlsoPrimaries...)
		return fmt.Sprintf("zone %q { type secondary; file %q; primaries { %s}; };\n", z.Name, z.filename(), s.peers(primaries))
	}
	policy := z.Policy
	if policy == "" {
		policy = fmt.Sprintf("grant %q zonesub ANY;", s.Update.Name)
	}
	return z.Globals + fmt.Sprintf("\nzone %q { type primary; file %q; update-policy { %s }; %s };\n", z.Name, z.filename(), policy, z.Extra)
}

func clause(k wire.Key) string {
	return fmt.Sprintf("key %q { algorithm %s; secret %q; };\n", k.Name, strings.TrimSuffix(k.Algorithm, "."), k.Secret)
}
