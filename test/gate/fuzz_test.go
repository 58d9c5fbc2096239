package main

import (
	"os"
	"path/filepath"
	"testing"
)

// outsiders are the fuzz tests of what outsiders send: answers of DNS servers, of vantages, of etcd and of sidecars, NOTIFY, zone files, and
// requests of external-dns.
var outsiders = map[string][]string{
	"pkg/dns/dnssec":           {"FuzzAnswers"},
	"pkg/dns/wire":             {"FuzzReply", "FuzzTransfer"},
	"pkg/dns/ledger":           {"FuzzEntry"},
	"pkg/dns/observe":          {"FuzzAnswers"},
	"pkg/zone/host/coredns":    {"FuzzMessages", "FuzzPages", "FuzzValues"},
	"pkg/dns/vantage":          {"FuzzResponse"},
	"pkg/fleet/bindcar":        {"FuzzResponse", "FuzzNotifications"},
	"pkg/fleet/bindcar/notify": {"FuzzNotify"},
	"pkg/dns/masterfile":       {"FuzzRead"},
	"extensions/zoneimport":    {"FuzzReadZoneFile"},
	"extensions/externaldns":   {"FuzzRequests"},
}

// Every decoder of what outsiders send is fuzzed, and begins with a corpus.
func TestOutsidersAreFuzzed(t *testing.T) {
	t.Chdir("../..")
	found, err := fuzzFunctions(".", "")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range found {
		known[f.folder+"."+f.name] = true
	}
	for folder, names := range outsiders {
		for _, name := range names {
			if !known[folder+"."+name] {
				t.Errorf("make fuzz does not find %s.%s", folder, name)
			}
			corpus := filepath.Join(folder, "testdata/fuzz", name)
			if entries, err := os.ReadDir(corpus); err != nil || len(entries) == 0 {
				t.Errorf("%s is empty: %v", corpus, err)
			}
		}
	}
}
