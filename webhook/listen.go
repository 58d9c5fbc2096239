package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dns/lockstep/pkg/share"
)

// Bounds of what anybody who reaches the port can hold. kube-apiserver has few connections, and sends what it has to say at once.
const (
	maxConnections = 512
	maxHeaderBytes = 64 << 10
	headerTimeout  = 5 * time.Second
	// answerTimeout is how long a request may take whose headers are there, until its answer has been read.
	answerTimeout = 15 * time.Second
	idleTimeout   = 90 * time.Second
)

// newServer returns a server of a handler, within these bounds.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout}
}

// listen opens the port.
func (o *Options) listen(config *tls.Config) (net.Listener, error) {
	port, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf(":%d", o.Port))
	if err != nil {
		return nil, fmt.Errorf("opening the port: %w", err)
	}
	return tls.NewListener(share.NewListener(port, maxConnections), config), nil
}

// addServer has a manager serve a handler at the port. controller-runtime's server of webhooks bounds neither connections nor the time
// that an answer takes.
func (o *Options) addServer(mgr manager.Manager, handler http.Handler, config *tls.Config) error {
	listener, err := o.listen(config)
	if err != nil {
		return err
	}
	if err := mgr.Add(&manager.Server{Name: "webhook", Server: newServer(handler), Listener: listener, ShutdownTimeout: new(time.Minute)}); err != nil {
		return fmt.Errorf("adding the server: %w", err)
	}
	return nil
}
