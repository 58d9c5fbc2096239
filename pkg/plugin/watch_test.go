package plugin

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// expect compares what a display has written since the last call with parts that it must have, in this order, and leaves
// nothing.
func expect(t *testing.T, out *bytes.Buffer, parts ...string) {
	t.Helper()
	rest := out.String()
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("%q lacks %q, or not in this order", out, p)
			return
		}
		rest = after
	}
	if len(parts) == 0 && rest != "" {
		t.Errorf("wrote %q, want nothing", rest)
	}
	out.Reset()
}

func offStep(s v1alpha1.SyncStatus) *v1alpha1.SyncStatus {
	s.Status.Phase, s.Status.InSync = v1alpha1.PhaseOutOfSync, false
	return &s
}

// Where no terminal is, a tree is followed by a line for each change of what it shows, and trouble is told once.
func TestLog(t *testing.T) {
	www, mail := object("dns", "ARecord", "www", "example.com"), object("dns", "MXRecord", "mail", "example.com")
	var out, errOut bytes.Buffer
	l := &lineDisplay{treeView: &treeView{subtreeSelection: subtreeSelection{roots: []*v1alpha1.SyncStatus{&www}}}, out: &out, errOut: &errOut}
	w := worldOf(www, mail)
	l.showTree(w)
	expect(t, &out, "NAME ", "└─ ARecord/www     InSync\n")
	l.showChange(w, watchEvent{current: offStep(mail)})
	l.updateLags(w)
	expect(t, &out)
	l.showChange(w, watchEvent{current: offStep(www)})
	expect(t, &out, " dns/arecord.www OutOfSync\n")
	l.showChange(w, watchEvent{deleted: &www})
	expect(t, &out, " dns/arecord.www gone\n")
	for range 2 {
		l.showConnection(w, errors.New("refused"))
		l.showConnection(w, errors.New("refused"))
		expect(t, &errOut, "connection lost, trying again: refused\n")
		l.showConnection(w, nil)
	}
	l.showEnd(w)
	expect(t, &out)
	expect(t, &errOut)
}

// A terminal shows the tree as it is, cut to its height, and gets back what it had before, with the last tree below.
func TestScreen(t *testing.T) {
	www, mail := object("dns", "ARecord", "www", "example.com"), object("dns", "MXRecord", "mail", "example.com")
	var out bytes.Buffer
	height := 24
	s := &screenDisplay{treeView: &treeView{}, out: &out, height: func() int { return height }}
	w := worldOf(www, mail)
	s.showTree(w)
	expect(t, &out, enterScreen, cursorHome, "  2 of 2 in sync"+clearLine+"\n", "└─ ARecord/www", "InSync"+clearLine+"\n", clearBelow)
	s.updateLags(w)
	expect(t, &out)
	w.put(offStep(www))
	s.showChange(w, watchEvent{current: offStep(www)})
	s.updateLags(w) // makes up for a change that came too soon after the last
	expect(t, &out, cursorHome, "  1 of 2 not in sync"+clearLine+"\n", "└─ ARecord/www", "OutOfSync"+clearLine+"\n", clearBelow)
	s.showConnection(w, errors.New("refused"))
	expect(t, &out, cursorHome, "  connection lost, trying again: refused"+clearLine+"\n", clearBelow)
	s.showConnection(w, nil)
	expect(t, &out, cursorHome, "  1 of 2 not in sync")
	height = 4
	s.updateLags(w)
	expect(t, &out, cursorHome, "NAME ", "\n… 3 more lines", clearBelow)
	s.showEnd(w)
	expect(t, &out, leaveScreen, "└─ ARecord/www")
}
