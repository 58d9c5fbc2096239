package dnssec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/membership"
	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
)

func TestSigner(t *testing.T) {
	now := time.Now()
	at := func(name string, role v1beta1.ServerRole, age time.Duration) *v1beta1.Bind9Instance {
		i := &v1beta1.Bind9Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		i.Spec.Role, i.Status.ServiceAddress = role, "192.0.2."+name
		return i
	}
	instances := []*v1beta1.Bind9Instance{at("1", "primary", 0), at("2", "primary", time.Hour), at("3", "secondary", 2*time.Hour), at("4", "primary", time.Hour)}
	s := Signing{Policy: "default", Signer: membership.SignerOf(instances)}
	if s.Signer.Name != "2" {
		t.Fatalf("instance %s signs, want the oldest primary", s.Signer.Name)
	}
	var servers []observe.Server
	for _, i := range instances {
		role := observe.Primary
		if i.Spec.Role == v1beta1.RoleSecondary {
			role = observe.Secondary
		}
		servers = append(servers, observe.Server{Namespace: "dns", Instance: i.Name, Role: role})
	}
	var roles []string
	for _, server := range s.Demote(servers) {
		roles = append(roles, string(server.Role))
	}
	if got := strings.Join(roles, " "); got != "Secondary Primary Secondary Secondary" {
		t.Errorf("the servers are %s", got)
	}
	if got := fmt.Sprint(s.ServiceAddresses(instances, v1beta1.RolePrimary)); got != "[192.0.2.2]" {
		t.Errorf("transfers come from %s", got)
	}
	if got := fmt.Sprint(s.ServiceAddresses(instances, v1beta1.RoleSecondary)); got != "[192.0.2.3 192.0.2.1 192.0.2.4]" {
		t.Errorf("the signer notifies %s", got)
	}
	if unsigned := (Signing{}).ServiceAddresses(instances, v1beta1.RolePrimary); len(unsigned) != 3 {
		t.Errorf("an unsigned zone has the primaries %v", unsigned)
	}
}
