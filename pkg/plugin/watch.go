package plugin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
)

// treeDisplay is where a tree that changes is shown.
type treeDisplay interface {
	// showTree shows what is there at first.
	showTree(statusSet)
	// showChange shows what an event has made of it.
	showChange(statusSet, watchEvent)
	// showConnection shows why there is none at the moment; nil when there is one.
	showConnection(statusSet, error)
	// updateLags updates what depends on the time.
	updateLags(statusSet)
	showEnd(statusSet)
}

// watchChanges shows the tree and its changes until the context ends, which is no error. Trouble before the first tree is.
func (v *treeView) watchChanges(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := v.cmd.OutOrStdout()
	var d treeDisplay = &lineDisplay{treeView: v, out: out, errOut: v.cmd.ErrOrStderr()}
	if terminal := terminalOf(out); terminal != nil {
		d = &screenDisplay{treeView: v, out: terminal, height: func() int {
			_, height, _ := term.GetSize(int(terminal.Fd()))
			return height
		}}
	}
	events, seen, begun := v.client.followStatuses(ctx, v.queries...), statusSet{}, false
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if begun {
				d.showEnd(seen)
			}
			return nil
		case e := <-events:
			news := seen.applyEvent(e)
			switch {
			case e.connectionError != nil && !begun:
				return e.connectionError
			case e.synced:
				begun = true
				d.showTree(seen)
			case begun && (e.connectionError != nil || e.connected):
				d.showConnection(seen, e.connectionError)
			case begun && news:
				d.showChange(seen, e)
			}
		case <-ticker.C:
			if begun {
				d.updateLags(seen)
			}
		}
	}
}

// lineDisplay shows the tree once and then a line for each object that changes.
type lineDisplay struct {
	*treeView
	out, errOut io.Writer
	// connectionError is what was last said of the connection.
	connectionError string
}

func (l *lineDisplay) showTree(w statusSet) { fmt.Fprint(l.out, l.renderTree(w, time.Now())) }

func (l *lineDisplay) showChange(w statusSet, e watchEvent) {
	switch {
	case e.current != nil && l.isSelected(w, e.current):
		fmt.Fprint(l.out, render.Change(e.current, time.Now(), l.options.Palette))
	case e.deleted != nil && l.isSelected(w, e.deleted):
		fmt.Fprint(l.out, render.Gone(e.deleted, time.Now(), l.options.Palette))
	}
}

func (l *lineDisplay) showConnection(_ statusSet, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.connectionError && err != nil {
		fmt.Fprintln(l.errOut, connectionLost, err)
	}
	l.connectionError = text
}

// connectionLost goes before the reason why there is no connection.
const connectionLost = "connection lost, trying again:"

func (l *lineDisplay) updateLags(statusSet) {}
func (l *lineDisplay) showEnd(statusSet)    {}

// screenDisplay draws the tree over and over, on the terminal's second screen: what was on the first comes back at the end.
type screenDisplay struct {
	*treeView
	out io.Writer
	// height is the terminal's at the moment, in lines; 0 when it is not known.
	height func() int
	// stale is true when there is something new to draw.
	stale bool
	// drawn is when it was last drawn.
	drawn time.Time
	// connectionError is why there is no connection, nil when there is one.
	connectionError error
}

// Control sequences of terminals, as in xterm's ctlseqs.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // second screen, no cursor, long lines are cut off
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// minRedrawInterval bounds how often the screen is drawn while many objects change; ticks make up for what that leaves out.
const minRedrawInterval = 50 * time.Millisecond

func (s *screenDisplay) showTree(w statusSet) {
	fmt.Fprint(s.out, enterScreen)
	s.redraw(w)
}

func (s *screenDisplay) showChange(w statusSet, _ watchEvent) {
	s.stale = true
	if time.Since(s.drawn) > minRedrawInterval {
		s.redraw(w)
	}
}

func (s *screenDisplay) showConnection(w statusSet, err error) {
	s.connectionError = err
	s.redraw(w)
}

func (s *screenDisplay) updateLags(w statusSet) {
	if s.stale || len(notInSync(w.sortedItems())) > 0 { // lags grow
		s.redraw(w)
	}
}

func (s *screenDisplay) showEnd(w statusSet) {
	fmt.Fprint(s.out, leaveScreen, render.SafeText(s.renderTree(w, time.Now())))
}

func (s *screenDisplay) redraw(w statusSet) {
	now := time.Now()
	text := firstLines(s.renderTree(w, now), s.height()-2)
	head := fmt.Sprintf("%s  %s\n", now.Format(time.TimeOnly), render.Summary(s.selectItems(w), s.options.Palette))
	if s.connectionError != nil {
		head = fmt.Sprintf("%s  %s %v\n", now.Format(time.TimeOnly), connectionLost, s.connectionError)
	}
	fmt.Fprint(s.out, cursorHome+strings.ReplaceAll(render.SafeText(head+text), "\n", clearLine+"\n")+clearBelow)
	s.stale, s.drawn = false, now
}

// firstLines cuts a text off after n lines, the last of which says how many there are.
func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	if all := len(lines) - 1; all > n && n > 0 {
		return strings.Join(lines[:n-1], "") + fmt.Sprintf("… %d more lines: a larger terminal, a name or --out-of-step shows them\n", all-n+1)
	}
	return text
}
