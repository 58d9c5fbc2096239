package named

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
)

// Statements that every server has. zone-statistics full keeps all zones in the statistics channel's list;
// max-cache-size keeps named from sizing its cache by the node's memory.
const commonOptions = `	empty-zones-enable no;
	allow-new-zones yes;
	minimal-responses yes;
	masterfile-format text;
	zone-statistics full;
	check-names primary ignore;
	check-names secondary ignore;
	check-integrity no;
	serial-query-rate 1000;
	tcp-clients 1000;
	session-keyfile none;
	version none;
	hostname none;
	server-id none;
`

// Defaults of the rate limit. named truncates all that a network asks while it asks more often than this, so the limit is above what all
// honest clients behind one address ask. A short window ends that with the flood; every truncated answer is one that can be had by TCP.
const (
	defaultRateLimit = 1000
	defaultWindow    = 1
	defaultSlip      = 1
)

// rateLimit answers what a network asks too often with truncated messages, so that a forged source address gets no more than it
// sends, and an honest resolver its answer over TCP. Holders of keys and the pod itself are exempt.
func (c Config) rateLimit() (string, error) {
	limits := ptr.Deref(c.Options.RateLimit, v1beta1.RateLimitConfig{})
	all := ptr.Deref(limits.ResponsesPerSecond, defaultRateLimit)
	nxdomains, failures := ptr.Deref(limits.NXDomainsPerSecond, all), ptr.Deref(limits.ErrorsPerSecond, all)
	if all == 0 && nxdomains == 0 && failures == 0 {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\trate-limit { responses-per-second %d; nxdomains-per-second %d; errors-per-second %d; window %d; slip %d; ",
		all, nxdomains, failures, ptr.Deref(limits.Window, defaultWindow), ptr.Deref(limits.Slip, defaultSlip))
	if limits.IPv4PrefixLength != nil {
		fmt.Fprintf(&b, "ipv4-prefix-length %d; ", *limits.IPv4PrefixLength)
	}
	if limits.IPv6PrefixLength != nil {
		fmt.Fprintf(&b, "ipv6-prefix-length %d; ", *limits.IPv6PrefixLength)
	}
	b.WriteString("exempt-clients { localhost; " + c.keyACLs())
	exempt, err := c.matchList("rateLimit.exemptClients", limits.ExemptClients)
	b.WriteString(exempt + "}; };\n")
	return b.String(), err
}

// A changed zone is announced at once: BIND's own pace is one NOTIFY after 5 s, 20 a second. The sidecar hears of every
// zone that names no others to notify; clauses that do must name the sidecar, too.
func (c Config) renderNotify() string {
	return fmt.Sprintf(`	notify explicit;
	also-notify { 127.0.0.1 port %d; };
	notify-delay 0;
	notify-rate 1000;
	startup-notify-rate 1000;
`, c.Layout.NoticePort)
}

const primaryOptions = `	transfers-out 200;
	max-ixfr-ratio 100%;
`

// named waits an hour by default for the rest of a transfer whose primary has gone.
const secondaryOptions = `	transfers-in 200;
	transfers-per-ns 200;
	request-ixfr yes;
	max-transfer-idle-in 1;
	min-refresh-time 5;
	min-retry-time 1;
`

func (c Config) renderOptions() (string, error) {
	var b strings.Builder
	b.WriteString("options {\n")
	fmt.Fprintf(&b, "\tdirectory %q;\n", c.Layout.CacheDir)
	fmt.Fprintf(&b, "\tnew-zones-directory %q;\n", c.Layout.ZonesDir)
	fmt.Fprintf(&b, "\tpid-file %q;\n", c.Layout.RunDir+"/named.pid")
	listenErr := c.writeListen(&b)
	b.WriteString(commonOptions)
	limit, limitErr := c.rateLimit()
	b.WriteString(limit)
	if most := c.Options.MaxRecordsPerType; most != nil { // BIND before 9.18.28 does not know the option.
		fmt.Fprintf(&b, "\tmax-records-per-type %d;\n", *most)
	}
	b.WriteString(c.renderNotify())
	if c.Role.Normalize() == v1beta1.RolePrimary {
		b.WriteString(primaryOptions)
	} else {
		b.WriteString(secondaryOptions)
		fmt.Fprintf(&b, "\tallow-notify { %q; };\n", clause.KeyACL(KeyTransfer))
	}
	accessErr := c.writeAccess(&b)
	recursionErr := c.writeRecursion(&b)
	b.WriteString("};\n")
	policy, policyErr := c.renderSigningPolicy()
	b.WriteString(policy)
	return b.String(), errors.Join(listenErr, limitErr, accessErr, recursionErr, policyErr)
}

func (c Config) writeListen(b *strings.Builder) error {
	v4, err4 := c.matchList("listenOn", anyIfEmpty(c.Options.ListenOn))
	v6, err6 := c.matchList("listenOnV6", anyIfEmpty(c.Options.ListenOnV6))
	fmt.Fprintf(b, "\tlisten-on port %d { %s };\n", c.Layout.Port, v4)
	fmt.Fprintf(b, "\tlisten-on-v6 port %d { %s };\n", c.Layout.Port, v6)
	return errors.Join(err4, err6)
}

// anyIfEmpty replaces an empty list and the unspecified addresses, which BIND would take literally, by "any".
func anyIfEmpty(list []string) []string {
	if len(list) == 0 {
		return []string{"any"}
	}
	out := make([]string, 0, len(list))
	for _, element := range list {
		switch element {
		case "0.0.0.0", "0.0.0.0/0", "::", "::/0":
			element = "any"
		}
		out = append(out, element)
	}
	return out
}

// writeAccess says who may ask and transfer. Our keys always may, whatever the lists say: without them nobody knows what the server serves,
// and there are no secondaries.
func (c Config) writeAccess(b *strings.Builder) error {
	transfer, transferErr := c.matchList("allowTransfer", c.Options.AllowTransfer)
	fmt.Fprintf(b, "\tallow-transfer { %q; %s};\n", clause.KeyACL(KeyTransfer), transfer)
	if len(c.Options.AllowQuery) > 0 {
		fmt.Fprintf(b, "\tallow-query { %q; };\n", clause.QueryACL)
	}
	return transferErr
}

// writeRecursion turns recursion off unless asked for. BIND lets those recurse that allowQuery names, else its own networks.
func (c Config) writeRecursion(b *strings.Builder) error {
	dnssec := ptr.Deref(c.Options.DNSSEC, v1beta1.DNSSECConfig{})
	validation := "no"
	if ptr.Deref(dnssec.Validation, false) {
		validation = "auto"
	}
	fmt.Fprintf(b, "\tdnssec-validation %s;\n", validation)
	if !ptr.Deref(c.Options.Recursion, false) {
		b.WriteString("\trecursion no;\n\tmax-cache-size 64m;\n")
		if len(c.Options.Forwarders) == 0 {
			return nil
		}
	} else {
		b.WriteString("\trecursion yes;\n")
	}
	list, err := renderForwarders(c.Options.Forwarders)
	if list != "" {
		fmt.Fprintf(b, "\tforwarders { %s};\n", list)
	}
	return err
}

// renderForwarders renders addresses, each with an optional port as "IP:port" or "IP port N".
func renderForwarders(list []string) (string, error) {
	var b strings.Builder
	var problems []error
	for i, entry := range list {
		addr, err := clause.ParseServer(entry)
		if err != nil {
			problems = append(problems, fmt.Errorf("forwarders[%d]: %w", i, err))
			continue
		}
		b.WriteString(clause.ServerClause(addr, clause.Port, ""))
	}
	return b.String(), errors.Join(problems...)
}

// MergeOptions lays the options of over on those of base, field by field: what over sets wins. Either may be nil.
func MergeOptions(base, over *v1beta1.Bind9Config) v1beta1.Bind9Config {
	merged := ptr.Deref(base, v1beta1.Bind9Config{})
	if over == nil {
		return merged
	}
	merged.Recursion = cmp.Or(over.Recursion, merged.Recursion)
	merged.AllowQuery = firstList(over.AllowQuery, merged.AllowQuery)
	merged.AllowTransfer = firstList(over.AllowTransfer, merged.AllowTransfer)
	merged.Forwarders = firstList(over.Forwarders, merged.Forwarders)
	merged.ListenOn = firstList(over.ListenOn, merged.ListenOn)
	merged.ListenOnV6 = firstList(over.ListenOnV6, merged.ListenOnV6)
	merged.DNSSEC = mergeDNSSEC(merged.DNSSEC, over.DNSSEC)
	merged.BindcarConfig = overlay(merged.BindcarConfig, over.BindcarConfig)
	merged.RNDCSecretRef = cmp.Or(over.RNDCSecretRef, merged.RNDCSecretRef)
	merged.RateLimit = mergeRateLimit(merged.RateLimit, over.RateLimit)
	merged.MaxRecordsPerType = cmp.Or(over.MaxRecordsPerType, merged.MaxRecordsPerType)
	return merged
}

// mergeDNSSEC merges field by field. signing and its older form enabled are one field: what over has of them wins.
func mergeDNSSEC(base, over *v1beta1.DNSSECConfig) *v1beta1.DNSSECConfig {
	merged := overlay(base, over)
	if base != nil && over != nil && over.Enabled != nil {
		merged.Signing = over.Signing
	}
	return merged
}

// mergeRateLimit merges field by field; an empty list that is set counts.
func mergeRateLimit(base, over *v1beta1.RateLimitConfig) *v1beta1.RateLimitConfig {
	merged := overlay(base, over)
	if base != nil && over != nil {
		merged.ExemptClients = firstList(over.ExemptClients, base.ExemptClients)
	}
	return merged
}

// firstList prefers the first list that is set; an empty list that is set counts.
func firstList[T ~[]string](over, base T) T {
	if over != nil {
		return over
	}
	return base
}

// overlay returns base with every field that over sets in place of its own. Either may be nil, and so is the result when both
// are.
func overlay[T any](base, over *T) *T {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	fields := fieldsOf(base)
	maps.Copy(fields, fieldsOf(over))
	text, err := json.Marshal(fields)
	merged := new(T)
	if err == nil {
		err = json.Unmarshal(text, merged)
	}
	if err != nil {
		panic(fmt.Sprintf("overlaying %T: %v", base, err)) // Both are values of the API, which has them in this form.
	}
	return merged
}

// fieldsOf returns the JSON form of an API value, by field; fields that are not set are left out.
func fieldsOf(value any) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("fields of %T: %v", value, err))
	}
	return fields
}

// firstSlice returns the first list that has anything in it.
func firstSlice[T any](lists ...[]T) []T {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}
