package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"
)

// contentPolicy lets the page load what this server serves, without inline code, and nothing else. Browsers that know trusted types
// refuse to take a text for markup, whatever the page's code does.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// session admits the one browser that has opened the URL with the token.
type session struct {
	// host is the address that the server listens on, 127.0.0.1:PORT.
	host string
	// cookie is the cookie's name. Cookies are shared by all ports of a host, so the name has the port.
	cookie, secret string

	mu sync.Mutex
	// token is the one in the URL, empty once it has been used.
	token string
}

func newSession(host, port string) *session {
	return &session{host: host, cookie: "lockstep-ui-" + port, secret: rand.Text(), token: rand.Text()}
}

// startURL starts the session. It works once.
func (s *session) startURL() string { return "http://" + s.host + "/?token=" + s.token }

// redeemToken is true for the first use of the token.
func (s *session) redeemToken(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		return false
	}
	s.token = ""
	return true
}

// hasCookie admits the requests of the session.
func (s *session) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.secret)) == 1
}

// isForeign is true for requests that are not for this address, as after DNS rebinding, or were caused by another site.
func (s *session) isForeign(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	return r.Host != s.host || origin != "" && origin != "http://"+s.host || site != "" && site != "same-origin" && site != "none"
}

// protect answers requests that do not belong to the session, and hands on the others.
func (s *session) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		query := r.URL.Query()
		switch {
		case s.isForeign(r):
			http.Error(w, "this is only for kubectl lockstep ui: paste the URL that it printed into the address bar", http.StatusForbidden)
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed: the page is read-only", http.StatusMethodNotAllowed)
		case r.URL.Path == "/" && query.Has("token"):
			s.startSession(w, r, query.Get("token"))
		case !s.hasCookie(r):
			http.Error(w, "no session: run kubectl lockstep ui again, and open the URL that it prints", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// startSession exchanges the token for a cookie, and removes the token from the URL.
func (s *session) startSession(w http.ResponseWriter, r *http.Request, token string) {
	if !s.redeemToken(token) {
		http.Error(w, "the token in this URL is wrong or was used: run kubectl lockstep ui again", http.StatusUnauthorized)
		return
	}
	// Not Secure: the server has no TLS, and not every browser keeps such a cookie for 127.0.0.1.
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // see above
		Name: s.cookie, Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
