package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// display is where a tree that changes is shown.
type display interface {
	// begin shows what is there at first.
	begin(world)
	// change shows what an event has made of it.
	change(world, event)
	// connection tells why there is none at the moment; nil when there is one.
	connection(world, error)
	// tick shows that time goes by.
	tick(world)
	end(world)
}

// watch shows the tree and its changes until the context ends, which is no error. Trouble before the first tree is.
func (v *treeView) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := v.cmd.OutOrStdout()
	var d display = &log{treeView: v, out: out, errOut: v.cmd.ErrOrStderr()}
	if isTerminal(out) {
		d = &screen{treeView: v, out: out, height: func() int {
			_, height, _ := term.GetSize(int(out.(*os.File).Fd())) //nolint:gosec // a file descriptor
			return height
		}}
	}
	events, seen, begun := v.client.follow(ctx, v.queries...), world{}, false
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if begun {
				d.end(seen)
			}
			return nil
		case e := <-events:
			news := seen.apply(e)
			switch {
			case e.lost != nil && !begun:
				return e.lost
			case e.complete:
				begun = true
				d.begin(seen)
			case begun && (e.lost != nil || e.connected):
				d.connection(seen, e.lost)
			case begun && news:
				d.change(seen, e)
			}
		case <-ticker.C:
			if begun {
				d.tick(seen)
			}
		}
	}
}

// log shows the tree once and then a line for each object that changes.
type log struct {
	*treeView
	out, errOut io.Writer
	// lost is what was last said of the connection.
	lost string
}

func (l *log) begin(w world) { fmt.Fprint(l.out, l.draw(w, time.Now())) }

func (l *log) change(w world, e event) {
	switch {
	case e.is != nil && l.concerns(w, e.is):
		fmt.Fprint(l.out, render.Change(e.is, time.Now(), l.options.Palette))
	case e.gone != nil && l.concerns(w, e.gone):
		fmt.Fprint(l.out, render.Gone(e.gone, time.Now(), l.options.Palette))
	}
}

func (l *log) connection(_ world, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.lost && err != nil {
		fmt.Fprintln(l.errOut, lost, err)
	}
	l.lost = text
}

// lost goes before the reason why there is no connection.
const lost = "connection lost, trying again:"

func (l *log) tick(world) {}
func (l *log) end(world)  {}

// screen draws the tree over and over, on the terminal's second screen: what was on the first comes back at the end.
type screen struct {
	*treeView
	out io.Writer
	// height is the terminal's at the moment, in lines; 0 when it is not known.
	height func() int
	// stale is true when there is something new to draw.
	stale bool
	// drawn is when it was last drawn.
	drawn time.Time
	// lost is why there is no connection, nil when there is one.
	lost error
}

// Control sequences of terminals, as in xterm's ctlseqs.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // second screen, no cursor, long lines are cut off
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// often bounds how often the screen is drawn while many objects change; ticks make up for what that leaves out.
const often = 50 * time.Millisecond

func (s *screen) begin(w world) {
	fmt.Fprint(s.out, enterScreen)
	s.paint(w)
}

func (s *screen) change(w world, _ event) {
	s.stale = true
	if time.Since(s.drawn) > often {
		s.paint(w)
	}
}

func (s *screen) connection(w world, err error) {
	s.lost = err
	s.paint(w)
}

func (s *screen) tick(w world) {
	if s.stale || len(behind(w.items())) > 0 { // lags grow
		s.paint(w)
	}
}

func (s *screen) end(w world) {
	fmt.Fprint(s.out, leaveScreen, s.draw(w, time.Now()))
}

func (s *screen) paint(w world) {
	now := time.Now()
	text := firstLines(s.draw(w, now), s.height()-2)
	head := fmt.Sprintf("%s  %s\n", now.Format(time.TimeOnly), render.Summary(s.wanted(w), s.options.Palette))
	if s.lost != nil {
		head = fmt.Sprintf("%s  %s %v\n", now.Format(time.TimeOnly), lost, s.lost)
	}
	fmt.Fprint(s.out, home+strings.ReplaceAll(head+text, "\n", clearLine+"\n")+clearBelow)
	s.stale, s.drawn = false, now
}

// firstLines cuts a text off after n lines, the last of which tells how many there are.
func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	if all := len(lines) - 1; all > n && n > 0 {
		return strings.Join(lines[:n-1], "") + fmt.Sprintf("… %d more lines: a larger terminal, a name or --out-of-step shows them\n", all-n+1)
	}
	return text
}
