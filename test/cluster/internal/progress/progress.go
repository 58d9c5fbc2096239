// Package progress prints what a long command is doing and how long it has
// taken, line by line.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// quiet is how long a phase may take before its start is printed.
	quiet = time.Second
	// heartbeat is how long it may be silent after that.
	heartbeat = 15 * time.Second
)

// Printer prints phases with the time since it was made.
type Printer struct {
	w     io.Writer
	start time.Time
}

// New returns a Printer whose clock starts now.
func New(w io.Writer) *Printer { return &Printer{w: w, start: time.Now()} }

// Say prints one line.
func (p *Printer) Say(format string, args ...any) {
	fmt.Fprintf(p.w, "[%8s] %s\n", roundDuration(time.Since(p.start)), fmt.Sprintf(format, args...))
}

// Phase runs f and prints its name with the time it took. For a phase that
// takes long it also prints the start, and now and then a line with the note
// that f may set.
func (p *Printer) Phase(name string, f func(*Note) error) error {
	note, begin, done := &Note{}, time.Now(), make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() { p.printHeartbeats(name, note, begin, done) })
	err := f(note)
	close(done)
	beats.Wait()
	if err != nil {
		p.Say("%s: failed after %s", name, roundDuration(time.Since(begin)))
		return err
	}
	p.Say("%s: done in %s%s", name, roundDuration(time.Since(begin)), note)
	return nil
}

func (p *Printer) printHeartbeats(name string, note *Note, begin time.Time, done <-chan struct{}) {
	next := quiet
	for started := false; ; started = true {
		select {
		case <-done:
			return
		case <-time.After(next):
		}
		if started {
			p.Say("%s: %s so far%s", name, roundDuration(time.Since(begin)), note)
		} else {
			p.Say("%s …", name)
		}
		next = heartbeat
	}
}

// Note is a phase's own word on how far it is.
type Note struct {
	mu   sync.Mutex
	text string
}

// Set replaces the text. It may be called from any goroutine.
func (n *Note) Set(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = fmt.Sprintf(format, args...)
}

func (n *Note) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text == "" {
		return ""
	}
	return " (" + n.text + ")"
}

func roundDuration(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
