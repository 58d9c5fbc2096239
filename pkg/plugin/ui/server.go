package ui

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

//go:embed page
var page embed.FS

// Scope is what the page shows.
type Scope struct {
	// Namespace to look in, empty for all.
	Namespace string `json:"namespace"`
	// Selector is a label selector, empty for all objects.
	Selector string `json:"selector"`
}

// Server serves the page on 127.0.0.1.
type Server struct {
	listener net.Listener
	session  *session
	handler  http.Handler
}

// NewServer listens on a port of 127.0.0.1; 0 means any that is free. It returns an error if the port is in use, or the config
// is not valid. Nothing is asked of the cluster.
func NewServer(ctx context.Context, config *rest.Config, scope Scope, port int) (*Server, error) {
	proxy, err := newProxy(config)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening for the browser: %w", err)
	}
	host := l.Addr().String()
	_, chosen, _ := net.SplitHostPort(host)
	s := &Server{listener: l, session: newSession(host, chosen)}
	s.handler = s.session.protect(newHandler(proxy, scope))
	return s, nil
}

// newHandler serves the files of the page, its scope, and what is read from the cluster.
func newHandler(proxy http.Handler, scope Scope) http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // The folder is embedded.
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "index.html")
		content, err := fs.ReadFile(files, name)
		switch {
		case err == nil:
			w.Header().Set("Content-Type", contentTypes[path.Ext(name)])
			_, _ = w.Write(content) //nolint:gosec // a file of the page; an error means that the browser has gone
		case name == "scope":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(scope)
		default:
			proxy.ServeHTTP(w, r)
		}
	})
}

// contentTypes are those of the page's files. Go would ask the system, and Windows can have others.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// URL opens the page. It works once.
func (s *Server) URL() string { return s.session.startURL() }

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}
