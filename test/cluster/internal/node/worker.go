package node

import (
	"path/filepath"
	"time"
)

func (l Layout) kubelet() Component {
	config, kubeconfig := l.Config("kubelet.yaml"), l.clientConfig("kubelet")
	return Component{
		Spec: l.componentSpec("kubelet", filepath.Join(l.Bin, "kubelet"), []string{config, kubeconfig, l.PKI("kubelet-server.crt")},
			"--config="+config,
			"--kubeconfig="+kubeconfig,
			"--root-dir="+filepath.Join(l.State, "kubelet"),
			"--cert-dir="+filepath.Join(l.State, "kubelet", "pki"),
			"--hostname-override="+Name,
			"--node-ip="+Address,
		),
		Listens: []string{Address + ":10250", "127.0.0.1:10248"},
		Healthy: l.answersOK("http://127.0.0.1:10248/healthz"),
		Grace:   5 * time.Second,
	}
}

func (l Layout) kubeProxy() Component {
	config, kubeconfig := l.Config("kube-proxy.yaml"), l.clientConfig("kube-proxy")
	return Component{
		Spec: l.componentSpec("kube-proxy", filepath.Join(l.Bin, "kube-proxy"), []string{config, kubeconfig},
			"--config="+config),
		Listens: []string{"127.0.0.1:10256", "127.0.0.1:10249"},
		Healthy: l.answersOK("http://127.0.0.1:10256/healthz"),
		Grace:   5 * time.Second,
	}
}
