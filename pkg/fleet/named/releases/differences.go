package releases

import (
	"slices"
	"strings"
)

// Statement is a statement of named.conf that some release does not have: with it, a server of that release does not start.
type Statement struct {
	// Keyword begins the statement.
	Keyword string
	// In is where the statement stands: options (and zones), dnssec-policy, or "" for the top of the file.
	In string
	// Sample is a valid statement.
	Sample string
	// Only are the releases that have it.
	Only []Release
	// Instead is what to write in the others.
	Instead string
}

var (
	until918 = []Release{BIND918}
	since920 = []Release{BIND920}
)

const remove = "remove it"

var statements = []Statement{
	{"auto-dnssec", inOptions, "auto-dnssec off;", until918, "sign zones by `dnssecPolicy`"},
	{"glue-cache", inOptions, "glue-cache no;", until918, remove},
	{"tkey-dhkey", inOptions, `tkey-dhkey "host" 1;`, until918, remove},
	{"root-delegation-only", inOptions, "root-delegation-only;", until918, remove},
	{"alt-transfer-source", inOptions, "alt-transfer-source *;", until918, "use `transfer-source`"},
	{"alt-transfer-source-v6", inOptions, "alt-transfer-source-v6 *;", until918, "use `transfer-source-v6`"},
	{"use-alt-transfer-source", inOptions, "use-alt-transfer-source no;", until918, remove},
	{"coresize", inOptions, "coresize default;", until918, "limit the container by `resources`"},
	{"datasize", inOptions, "datasize default;", until918, "limit the container by `resources`"},
	{"files", inOptions, "files default;", until918, "limit the container by `resources`"},
	{"stacksize", inOptions, "stacksize default;", until918, "limit the container by `resources`"},
	{"lock-file", inOptions, "lock-file none;", until918, remove},
	{"reserved-sockets", inOptions, "reserved-sockets 512;", until918, remove},
	{"resolver-nonbackoff-tries", inOptions, "resolver-nonbackoff-tries 3;", until918, remove},
	{"resolver-retry-interval", inOptions, "resolver-retry-interval 800;", until918, remove},

	{"allow-proxy", inOptions, "allow-proxy { none; };", since920, remove},
	{"allow-proxy-on", inOptions, "allow-proxy-on { any; };", since920, remove},
	{"check-svcb", inOptions, "check-svcb yes;", since920, remove},
	{"max-validations-per-fetch", inOptions, "max-validations-per-fetch 16;", since920, remove},
	{"min-transfer-rate-in", inOptions, "min-transfer-rate-in 10240 5;", since920, remove},
	{"notify-defer", inOptions, "notify-defer 0;", since920, "use `notify-delay`"},
	{"resolver-use-dns64", inOptions, "resolver-use-dns64 no;", since920, remove},
	{"responselog", inOptions, "responselog no;", since920, remove},
	{"sig0checks-quota", inOptions, "sig0checks-quota 1;", since920, remove},
	{"sig0key-checks-limit", inOptions, "sig0key-checks-limit 16;", since920, remove},
	{"tcp-reuse-timeout", inOptions, "tcp-reuse-timeout 50;", since920, remove},
	{"inline-signing", inPolicy, "inline-signing no;", since920, "Lockstep's zones say it themselves"},
	{"cdnskey", inPolicy, "cdnskey yes;", since920, remove},
	{"offline-ksk", inPolicy, "offline-ksk no;", since920, remove},
	{"key-store", inTop, `key-store "store" { directory "."; };`, since920, "use `key-directory`"},
	{"remote-servers", inTop, `remote-servers "servers" { 192.0.2.1; };`, since920, "use `primaries` or `parental-agents`"},
}

const (
	inOptions = "options"
	inPolicy  = "dnssec-policy"
	inTop     = ""
)

// Lacks returns the statement with the keyword in a block if the release is known not to have it, and does not start with it. parent is the
// keyword of the block, "" at the top. A statement of options can stand in a zone, too.
func (r Release) Lacks(parent, keyword string) (Statement, bool) {
	if !r.IsSupported() {
		return Statement{}, false
	}
	parent = strings.ToLower(parent)
	if parent == "zone" || parent == "view" {
		parent = inOptions
	}
	for _, s := range statements {
		if s.In == parent && strings.EqualFold(s.Keyword, keyword) && !slices.Contains(s.Only, r) {
			return s, true
		}
	}
	return Statement{}, false
}

// MaxNSEC3Iterations is the highest number of iterations in a dnssec-policy with which named starts.
func (r Release) MaxNSEC3Iterations() int32 {
	if r == BIND918 {
		return 150
	}
	return 0
}
