package ui

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// fleet is a replay of zones in sync on servers of one fleet, with some records of the first.
func fleet(zones, servers int) (*replay, []*v1alpha1.SyncStatus) {
	c := newReplay()
	var all []*v1alpha1.SyncStatus
	for i := range zones {
		all = append(all, newZone("dns", fmt.Sprintf("zone-%04d.example", i), max(1, servers/3), servers-max(1, servers/3)))
		c.set(all[i], nil)
	}
	for i, name := range []string{"www", "mail", "api"} {
		r := newRecord(all[0], name, fmt.Sprintf("192.0.2.%d", i+1))
		c.set(r, nil)
	}
	return c, all
}

// newRecord returns an A record of a zone, in sync.
func newRecord(zone *v1alpha1.SyncStatus, name, address string) *v1alpha1.SyncStatus {
	r := newStatus("ARecord", zone.Namespace, name, zone.Zone)
	r.RRsets = []v1alpha1.RRset{{Name: name + "." + zone.Zone + ".", Type: "A", TTL: new(int64(300)), Rdata: []string{address}}}
	for _, s := range zone.Servers {
		s.Records = nil
		r.Servers = append(r.Servers, s)
	}
	r.Summary = v1alpha1.Summary{Servers: int32(len(r.Servers)), InSync: int32(len(r.Servers))}
	return r
}

// busyFleet has most of what can be seen.
func busyFleet() *replay {
	c := newReplay()
	for _, name := range []string{"example.com", "example.net", "shop.example", "corp.example", "lab.example", "2.0.192.in-addr.arpa"} {
		c.set(newZone("dns", name, 1, 2), nil)
	}
	shop := newZone("dns", "shop.example", 1, 2)
	c.set(shop, breakServer(2, v1alpha1.StateUnreachable, func(s *v1alpha1.ServerStatus) {
		s.Message, s.Rcode, s.Serial, s.SerialLag = "no answer from 10.244.0.12:53 within 2s: i/o timeout", "", nil, nil
	}))
	c.set(newZone("dns", "corp.example", 1, 2), breakServer(1, v1alpha1.StateStale, func(s *v1alpha1.ServerStatus) { s.SerialLag = new(int64(3)) }))
	c.set(newZone("dns", "lab.example", 1, 2), breakServer(0, v1alpha1.StateDivergent, func(s *v1alpha1.ServerStatus) {
		s.Observed = []v1alpha1.RRset{{Name: "www.lab.example.", Type: "A", TTL: new(int64(60)), Rdata: []string{"203.0.113.9"}}}
	}))
	c.events = append(c.events, newEvent("DNSZone", "shop-example", "Warning", "ServerUnreachable", "dns-secondary-1-0 does not answer"))
	return c
}

func newEvent(kind, name, eventType, reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "dns", Name: strings.ToLower(reason)},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "dns", Name: name},
		Type:           eventType, Reason: reason, Message: message, LastTimestamp: metav1.Now(), Count: 2,
	}
}
