package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/manifests"
	"github.com/lockstep-dns/lockstep/pkg/kube/schema"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

func TestParseTargets(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "",
		"arecord/www":                          "ARecord/www",
		"ARecord/www mx/mail":                  "ARecord/www MXRecord/mail",
		"arecord.www":                          "ARecord/www",
		"arecord.www.example.com":              "ARecord/www.example.com",
		"arecord/www.example.com":              "ARecord/www.example.com",
		"arecords www mail.x":                  "ARecord/www ARecord/mail.x",
		"a www":                                "ARecord/www",
		"dnszones":                             "DNSZone/",
		"zones dnsendpoint/shop":               "error: after a kind by itself there are names",
		"dnszone/example-com arecord.www":      "DNSZone/example-com ARecord/www",
		"arecord.bindy.firestoned.io/www":      "ARecord/www",
		"dnsendpoints.externaldns.k8s.io/shop": "DNSEndpoint/shop",
		"syncstatus.sync.bindy.firestoned.io/arecord.www": "ARecord/www",
		"sync/bind9globalcluster.all":                     "Bind9GlobalCluster/all",
		"arecords.bindy.firestoned.io":                    "ARecord/",
		"clusterbind9provider/p b9/i b9c/c b9gc/g":        "ClusterBind9Provider/p Bind9Instance/i Bind9Cluster/c Bind9GlobalCluster/g",
		"arecords.v1beta1.bindy.firestoned.io":            "ARecord/",
		"arecords.bindy.firestoned.io www mail":           "ARecord/www ARecord/mail",
		"arecords.www":                                    `error: there is no SyncStatus of "arecords.www"`,
		"ARecord.www":                                     `error: there is no SyncStatus of "ARecord.www"`,
		"a.www/www":                                       `error: there is no SyncStatus of "a.www"`,
		"arecord.externaldns.k8s.io/www":                  `error: there is no SyncStatus of "arecord.externaldns.k8s.io"`,
		"pod/dns-primary-0-0":                             `error: there is no SyncStatus of "pod"`,
		"www":                                             `error: there is no SyncStatus of "www"`,
		"arecord/":                                        "error: is not KIND/NAME",
		"arecord/a/b":                                     "error: is not KIND/NAME",
		"aaaa/x cname/x nsrecord/x txt/x srv/x caa/x ptr/x zone/x dz/x": "AAAARecord/x CNAMERecord/x NSRecord/x TXTRecord/x SRVRecord/x CAARecord/x PTRRecord/x DNSZone/x DNSZone/x",
		"nowhere www": `error: there is no SyncStatus of "nowhere"`,
	} {
		targets, err := parseTargets(strings.Fields(args))
		if message, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), message) {
				t.Errorf("%q: %v and error %v, want %q", args, targets, err, message)
			}
			continue
		}
		var got []string
		for _, x := range targets {
			got = append(got, x.String())
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" || err != nil {
			t.Errorf("%q: %v %s", args, err, diff)
		}
	}
}

// A kind with a SyncStatus is known by every name that kubectl knows it by.
func TestParseKind(t *testing.T) {
	kinds, err := schema.Load(manifests.Definitions())
	if err != nil || len(kinds) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	for gvk, k := range kinds {
		if gvk.Kind == "ZoneGrant" || gvk.Kind == "DNSProvider" {
			continue // They have no SyncStatus.
		}
		names := k.Definition.Spec.Names
		for _, name := range append(names.ShortNames, names.Plural, names.Singular, names.Kind, names.Plural+"."+gvk.Group) {
			if got, err := parseKind(name); err != nil || got.Kind != gvk.Kind {
				t.Errorf("%s is %s (%v), want %s", name, got.Kind, err, gvk.Kind)
			}
		}
	}
}

func mustKind(t *testing.T, word string) subject.Kind {
	t.Helper()
	kind, err := parseKind(word)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}
