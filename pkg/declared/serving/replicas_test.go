package serving_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

// The replicas of CoreDNS are those that are declared, or those that the controller has found behind the Service; without any, one row says
// what is missing. All are read by query, without keys and serials.
func TestReplicas(t *testing.T) {
	addresses := v1beta1.CoreDNSServers{Addresses: []v1beta1.ProviderServer{{Address: "10.0.0.5"}, {Address: "10.0.0.6", Port: 1053}}}
	service := v1beta1.CoreDNSServers{Service: &v1beta1.ServiceReference{Name: "coredns", Port: 1053}}
	elsewhere := v1beta1.CoreDNSServers{Service: &v1beta1.ServiceReference{Name: "coredns", Namespace: "kube-system"}}
	for name, c := range map[string]struct {
		servers v1beta1.CoreDNSServers
		known   []v1beta1.ProviderServerStatus
		want    string
		says    string
	}{
		"addresses":         {addresses, []v1beta1.ProviderServerStatus{{Address: "10.0.0.9:53"}}, "10.0.0.5:53 10.0.0.6:1053", ""},
		"endpoints":         {service, []v1beta1.ProviderServerStatus{{Address: "10.0.0.7:1053", Message: "no answer"}, {Address: "[fd00::7]:1053"}}, "10.0.0.7:1053 [fd00::7]:1053", ""},
		"no endpoints":      {service, []v1beta1.ProviderServerStatus{{Address: "coredns", Message: "Service coredns has no endpoints"}}, "invalid AddrPort", "has no endpoints"},
		"not looked up":     {service, nil, "invalid AddrPort", "not been looked up"},
		"none":              {v1beta1.CoreDNSServers{}, nil, "invalid AddrPort", "names no replica"},
		"another namespace": {elsewhere, []v1beta1.ProviderServerStatus{{Address: "10.0.0.7:53"}}, "invalid AddrPort", "may only name one of its own"},
	} {
		p := &v1beta1.DNSProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: "etcd", UID: "p"}}
		p.Spec.CoreDNS, p.Status.Servers = &v1beta1.CoreDNSProvider{Servers: c.servers}, c.known
		var found []string
		for _, s := range serving.AddProviders(nil, []*v1beta1.DNSProvider{p}) {
			found = append(found, s.Addr.String())
			isReplica := s.Unsigned && s.Shared && s.ReadBy == v1beta1.ReadByQuery || name == "another namespace"
			if !isReplica || s.Role != observe.Primary || (s.Message == "") != (c.says == "") || !strings.Contains(s.Message, c.says) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
