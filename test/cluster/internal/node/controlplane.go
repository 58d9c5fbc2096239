package node

import (
	"path/filepath"
	"time"
)

// etcd's addresses are not the usual ones, which other tests may want.
const (
	etcdClients = "127.0.0.1:12379"
	etcdPeers   = "127.0.0.1:12380"
	etcdHealth  = "127.0.0.1:12381"
	etcdHTTP    = "127.0.0.1:12382"
)

func (l Layout) etcd() Component {
	cert, key, ca := l.PKI("etcd.crt"), l.PKI("etcd.key"), l.PKI("etcd-ca.crt")
	return Component{
		Spec: l.componentSpec("etcd", filepath.Join(l.Bin, "etcd"), []string{cert, ca},
			"--name="+Name,
			"--data-dir="+filepath.Join(l.State, "etcd"),
			"--listen-client-urls=https://"+etcdClients,
			// etcd warns of HTTP at the port of gRPC: with TLS, watches may then wait behind the answers to large reads.
			"--listen-client-http-urls=https://"+etcdHTTP,
			"--advertise-client-urls=https://"+etcdClients,
			"--listen-peer-urls=https://"+etcdPeers,
			"--initial-advertise-peer-urls=https://"+etcdPeers,
			"--initial-cluster="+Name+"=https://"+etcdPeers,
			"--listen-metrics-urls=http://"+etcdHealth,
			"--cert-file="+cert, "--key-file="+key, "--client-cert-auth", "--trusted-ca-file="+ca,
			"--peer-cert-file="+cert, "--peer-key-file="+key, "--peer-client-cert-auth", "--peer-trusted-ca-file="+ca,
			"--unsafe-no-fsync", // a dev cluster's data is not worth a disk's time
			"--log-level=warn",
		),
		Listens: []string{etcdClients, etcdPeers, etcdHealth, etcdHTTP},
		Healthy: l.answersOK("http://" + etcdHealth + "/readyz"),
		Grace:   5 * time.Second,
	}
}

func (l Layout) apiServer() Component {
	return Component{
		Spec: l.componentSpec("kube-apiserver", filepath.Join(l.Bin, "kube-apiserver"),
			[]string{l.PKI("kube-apiserver.crt"), l.PKI("ca.crt"), l.PKI("front-proxy-client.crt"), l.PKI("service-account.pub")},
			append(l.apiServerTrust(),
				"--bind-address="+Address, "--advertise-address="+Address, "--secure-port=6443",
				"--etcd-servers=https://"+etcdClients,
				"--service-cluster-ip-range="+Services,
				"--authorization-mode=Node,RBAC",
				"--enable-admission-plugins=NodeRestriction",
				"--allow-privileged",
				"--kubelet-preferred-address-types=InternalIP",
				"--shutdown-delay-duration=0",
			)...),
		Listens: []string{Address + ":6443"},
		Healthy: l.answersOK(Server + "/readyz"),
		Grace:   20 * time.Second,
	}
}

// apiServerTrust says who the API server is and whom it believes.
func (l Layout) apiServerTrust() []string {
	return []string{
		"--tls-cert-file=" + l.PKI("kube-apiserver.crt"), "--tls-private-key-file=" + l.PKI("kube-apiserver.key"),
		"--client-ca-file=" + l.PKI("ca.crt"),
		"--etcd-cafile=" + l.PKI("etcd-ca.crt"),
		"--etcd-certfile=" + l.PKI("etcd-client.crt"), "--etcd-keyfile=" + l.PKI("etcd-client.key"),
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"),
		"--kubelet-client-certificate=" + l.PKI("kube-apiserver-kubelet.crt"),
		"--kubelet-client-key=" + l.PKI("kube-apiserver-kubelet.key"),
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.PKI("front-proxy-client.crt"),
		"--proxy-client-key-file=" + l.PKI("front-proxy-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc." + DNSDomain,
		"--service-account-key-file=" + l.PKI("service-account.pub"),
		"--service-account-signing-key-file=" + l.PKI("service-account.key"),
	}
}

func (l Layout) controllerManager() Component {
	return l.loopbackComponent("kube-controller-manager", "127.0.0.1:10257",
		"--controllers=*",
		"--flex-volume-plugin-dir="+filepath.Join(l.State, "kubelet", "volume-plugins"),
		"--use-service-account-credentials",
		"--cluster-cidr="+PodCIDR,
		"--cluster-signing-cert-file="+l.PKI("ca.crt"), "--cluster-signing-key-file="+l.PKI("ca.key"),
		"--root-ca-file="+l.PKI("ca.crt"),
		"--service-account-private-key-file="+l.PKI("service-account.key"),
	)
}

func (l Layout) scheduler() Component {
	return l.loopbackComponent("kube-scheduler", "127.0.0.1:10259")
}

// loopbackComponent describes a client of the API server that serves its own state on the
// loopback interface. There is one of it, so it need not be elected.
func (l Layout) loopbackComponent(name, address string, args ...string) Component {
	kubeconfig := l.clientConfig(name)
	return Component{
		Spec: l.componentSpec(name, filepath.Join(l.Bin, name), []string{kubeconfig, l.PKI("loopback.crt")},
			append([]string{
				"--kubeconfig=" + kubeconfig,
				"--authentication-kubeconfig=" + kubeconfig,
				"--authorization-kubeconfig=" + kubeconfig,
				"--bind-address=127.0.0.1",
				"--tls-cert-file=" + l.PKI("loopback.crt"), "--tls-private-key-file=" + l.PKI("loopback.key"),
				"--leader-elect=false",
			}, args...)...),
		Listens: []string{address},
		Healthy: l.answersOK("https://" + address + "/healthz"),
		Grace:   5 * time.Second,
	}
}
