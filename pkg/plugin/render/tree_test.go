package render

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
)

func fleet(r *v1alpha1.ServerStatus) { r.Version, r.Sidecar = "9.20.15", "Ready" }

func serves(zones int32, worst ...v1alpha1.ServerZone) func(*v1alpha1.ServerStatus) {
	return func(r *v1alpha1.ServerStatus) {
		r.Zones = &v1alpha1.ServerZones{InSync: zones - int32(len(worst)), OutOfSync: int32(len(worst)), Worst: worst}
	}
}

func TestTree(t *testing.T) {
	in, stale := v1alpha1.StateInSync, v1alpha1.StateStale
	elsewhere := func(r *v1alpha1.ServerStatus) { r.Namespace = "dns-system" }
	counts := func(s v1alpha1.SyncStatus, records, off int32) v1alpha1.SyncStatus {
		s.Summary.Records, s.Summary.RecordsOutOfSync = records, off
		return s
	}
	zone := counts(object("DNSZone", "example-com", "example.com",
		row("primary-0", in, serial(9, 0)), row("secondary-0", stale, serial(7, 2), behindFor(12*time.Second), says("2 behind"))), 14, 1)
	www := object("ARecord", "www", "example.com", row("primary-0", in, serial(9, 0)), row("secondary-0", stale, serial(7, 2), behindFor(12*time.Second)))
	mail := object("MXRecord", "mail", "example.com", row("primary-0", in, serial(9, 0)), row("secondary-0", in, serial(7, 2)))
	cached := mail
	cached.CachesExpireAt = new(metav1.NewTime(now.Add(90 * time.Second)))
	stray := failed(object("ARecord", "stray", ""), "NotSelected", "no DNSZone selects it")
	endpoint := object("DNSEndpoint", "shop", "example.com,example.org", row("primary-0", in, func(r *v1alpha1.ServerStatus) { r.Zone = "example.com" }),
		row("primary-1", in, elsewhere, func(r *v1alpha1.ServerStatus) { r.Zone = "example.org" }))
	cluster := object("Bind9Cluster", "dns", "", row("primary-0", in, fleet, serves(3)), row("secondary-0", v1alpha1.StateUnreachable, func(r *v1alpha1.ServerStatus) {
		r.PodPhase, r.PodReady = "", false
	}), row("secondary-9", in, elsewhere))
	instance := object("Bind9Instance", "primary-0", "", row("primary-0", in, fleet, serves(3)))
	lagging := object("Bind9Instance", "alone", "", row("alone-0", stale, fleet, serves(2, v1alpha1.ServerZone{
		Zone: "example.com", State: stale, Serial: new(int64(7)), SerialLag: new(int64(2)), Message: "2 behind"}),
		func(r *v1alpha1.ServerStatus) { r.Restarts, r.Sidecar = 1, "BindcarUnreachable" }))
	ahead := object("DNSZone", "moved", "example.net", row("primary-0", in, serial(9, 0)), row("secondary-0", in, serial(12, -3), says(status.AheadOfPrimaries(12, 9)),
		func(r *v1alpha1.ServerStatus) {
			r.Provider, r.Instance, r.Pod, r.Address = "isp", "", "", "192.0.2.53:53"
		}))
	other := www
	other.Namespace = "shop"
	for name, tc := range map[string]struct {
		items   []v1alpha1.SyncStatus
		options TreeOptions
		want    string
	}{
		"nothing": {},
		"a zone, its servers and its records": {items: []v1alpha1.SyncStatus{www, zone, cached}, want: `
NAME                    STATE       SERVERS   ROLE        SERIAL   LAG       MESSAGE
DNSZone/example-com     OutOfSync   1/2                                      example.com, 1 of 14 RRsets not in sync
├─ Pod/primary-0        InSync                Primary     9        0
├─ Pod/secondary-0      Stale                 Secondary   7        2 (12s)   2 behind
├─ MXRecord/mail        InSync      2/2                                      resolvers may have the old data cached for 1m30s
│  ├─ Pod/primary-0     InSync                Primary     9        0
│  └─ Pod/secondary-0   InSync                Secondary   7        2
└─ ARecord/www          OutOfSync   1/2
   ├─ Pod/primary-0     InSync                Primary     9        0
   └─ Pod/secondary-0   Stale                 Secondary   7        2 (12s)
`},
		"only what is not in sync": {items: []v1alpha1.SyncStatus{zone, www, mail, instance}, options: TreeOptions{OutOfSync: true}, want: `
NAME                    STATE       SERVERS   ROLE        SERIAL   LAG       MESSAGE
DNSZone/example-com     OutOfSync   1/2                                      example.com, 1 of 14 RRsets not in sync
├─ Pod/secondary-0      Stale                 Secondary   7        2 (12s)   2 behind
└─ ARecord/www          OutOfSync   1/2
   └─ Pod/secondary-0   Stale                 Secondary   7        2 (12s)
`},
		"a secondary outside that is ahead, and will never transfer again": {items: []v1alpha1.SyncStatus{ahead, mail}, options: TreeOptions{OutOfSync: true}, want: `
NAME                               STATE    SERVERS   ROLE        SERIAL   LAG   MESSAGE
DNSZone/moved                      InSync   2/2                                  example.net
└─ DNSProvider/isp/192.0.2.53:53   InSync             Secondary   12       -3    serial 12 is ahead of the primaries' 9: no transfer will repair it until theirs is higher; set spec.soaRecord.serial of the DNSZone to 13
`},
		"nothing is not in sync": {items: []v1alpha1.SyncStatus{mail, instance}, options: TreeOptions{OutOfSync: true}},
		"records without their zones": {items: []v1alpha1.SyncStatus{stray, mail}, want: `
NAME                    STATE    SERVERS   ROLE        SERIAL   LAG   MESSAGE
Zone/example.com
└─ MXRecord/mail        InSync   2/2
   ├─ Pod/primary-0     InSync             Primary     9        0
   └─ Pod/secondary-0   InSync             Secondary   7        2
ARecord/stray           Failed                                        NotSelected: no DNSZone selects it
`},
		"an object of two zones is in each with the servers of that": {items: []v1alpha1.SyncStatus{endpoint}, want: `
NAME                  STATE    SERVERS   ROLE      MESSAGE
Zone/example.com
└─ DNSEndpoint/shop   InSync   2/2
   └─ Pod/primary-0   InSync             Primary
Zone/example.org
└─ DNSEndpoint/shop   InSync   2/2
   └─ Pod/primary-1   InSync             Primary   in namespace dns-system
`},
		"a cluster with an instance that is shown, one that is not, and one of another namespace": {
			items: []v1alpha1.SyncStatus{instance, lagging, cluster}, want: `
NAME                           STATE         SERVERS   ROLE        SERIAL   LAG   MESSAGE
Bind9Cluster/dns               OutOfSync     2/3
├─ Bind9Instance/primary-0     InSync        1/1
│  └─ Pod/primary-0            InSync                  Primary                    BIND 9.20.15, 3 zones
├─ Bind9Instance/secondary-0
│  └─ Pod/secondary-0          Unreachable             Secondary                  the pod is not there and not ready
└─ Bind9Instance/secondary-9
   └─ Pod/secondary-9          InSync                  Secondary                  in namespace dns-system
Bind9Instance/alone            OutOfSync     0/1
└─ Pod/alone-0                 Stale                   Primary                    BIND 9.20.15, 1 restart, sidecar BindcarUnreachable
   └─ Zone/example.com         Stale                               7        2     2 behind
`},
		"namespaces, in color": {items: []v1alpha1.SyncStatus{other, mail}, options: TreeOptions{Namespaces: true, OutOfSync: true, Palette: Palette{On: true}},
			want: "\n" +
				"\x1b[1mNAME\x1b[0m                       \x1b[1mSTATE\x1b[0m       \x1b[1mSERVERS\x1b[0m   \x1b[1mROLE\x1b[0m        \x1b[1mSERIAL\x1b[0m   \x1b[1mLAG\x1b[0m\n" +
				"\x1b[1mNamespace/shop\x1b[0m\n" +
				"└─ Zone/example.com\n" +
				"   └─ ARecord/www          \x1b[31mOutOfSync\x1b[0m   1/2\n" +
				"      └─ Pod/secondary-0   \x1b[33mStale\x1b[0m                 Secondary   7        2 (12s)\n"},
		"what servers say cannot reach the terminal": {items: []v1alpha1.SyncStatus{
			object("DNSZone", "z", "example.com", row("primary-0", v1alpha1.StateLame, says("a\x1b[2J\nb\u009b0m")))}, want: `
NAME               STATE       SERVERS   ROLE      MESSAGE
DNSZone/z          OutOfSync   0/1                 example.com
└─ Pod/primary-0   Lame                  Primary   a [2J b 0m
`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.Now = now
			got := Tree(tc.items, tc.options)
			if got != "" {
				got = "\n" + got
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
