package bindcar

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenLife is how long a token that was read is used; the kubelet renews the file long before the token expires.
const tokenLife = time.Minute

type tokenFile struct {
	path string

	mu    sync.Mutex
	token string
	since time.Time
}

func (f *tokenFile) read() (string, error) {
	if f.path == "" {
		return "", nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token != "" && time.Since(f.since) < tokenLife {
		return f.token, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return "", fmt.Errorf("reading the token for Bindcar API: %w", err)
	}
	f.token, f.since = strings.TrimSpace(string(text)), time.Now()
	return f.token, nil
}

// forget makes the next read look at the file; it tells whether that can change anything.
func (f *tokenFile) forget() bool {
	if f.path == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = ""
	return true
}
