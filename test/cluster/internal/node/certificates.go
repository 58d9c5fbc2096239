package node

import "github.com/lockstep-dns/lockstep/test/cluster/internal/pki"

// authorities maps each certification authority to the certificates that it
// signs. The API server believes its front proxy's authority about who a user
// is, and etcd lets in whoever has a certificate of its own, so the three are
// kept apart.
var authorities = map[string][]pki.Certificate{
	"ca": {
		{Name: "kube-apiserver", User: "kube-apiserver", Hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + DNSDomain,
			"localhost", "127.0.0.1", Address, APIServer,
		}},
		{Name: "kube-apiserver-kubelet", User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		{Name: "kubelet-server", User: "kubelet", Hosts: []string{Name, Address}},
		{Name: "loopback", User: "lockstep-cluster", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: "admin", User: "lockstep-admin", Groups: []string{"system:masters"}},
		{Name: "kubelet", User: "system:node:" + Name, Groups: []string{"system:nodes"}},
		{Name: "kube-controller-manager", User: "system:kube-controller-manager"},
		{Name: "kube-scheduler", User: "system:kube-scheduler"},
		{Name: "kube-proxy", User: "system:kube-proxy"},
	},
	"front-proxy-ca": {
		{Name: "front-proxy-client", User: "front-proxy-client"},
	},
	"etcd-ca": {
		{Name: "etcd", User: "etcd", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: "etcd-client", User: "kube-apiserver"},
	},
}

// EnsureCertificates makes what is missing or near its end.
func (l Layout) EnsureCertificates() error {
	for name, certificates := range authorities {
		authority, err := pki.EnsureAuthority(l.PKI(""), name)
		if err != nil {
			return err
		}
		for _, c := range certificates {
			if err := authority.Ensure(c); err != nil {
				return err
			}
		}
	}
	return pki.EnsureKey(l.PKI("service-account"))
}
