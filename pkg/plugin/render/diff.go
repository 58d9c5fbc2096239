package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// Comparison is what the servers of one object serve, set against what is declared.
type Comparison struct {
	// Text has the form of a unified diff: what a server serves and should not begins with "-", what it should serve and
	// does not with "+". Empty when there is nothing to show.
	Text string
	// Differs is true when a server serves something else than what is declared.
	Differs bool
	// Skipped says, in a sentence each, what could not be compared.
	Skipped []string
}

// Diff compares the servers of one object with what it declares.
func Diff(s *v1alpha1.SyncStatus, p Palette) Comparison {
	d := diffWriter{object: s, palette: p}
	if s.Status.FailureReason != "" {
		d.addSkipped("%s: %s", s.Status.FailureReason, s.Status.FailureMessage)
	} else if len(s.Servers) == 0 && !s.Status.InSync {
		d.addSkipped("%s", "there is no server to compare with")
	}
	for i := range s.Servers {
		d.compareServer(&s.Servers[i])
	}
	d.out.Text = d.text.String()
	return d.out
}

type diffWriter struct {
	object  *v1alpha1.SyncStatus
	palette Palette
	text    strings.Builder
	out     Comparison
}

func (d *diffWriter) compareServer(row *v1alpha1.ServerStatus) {
	switch row.State {
	case v1alpha1.StateInSync:
		return
	case v1alpha1.StateStale, v1alpha1.StateHeld, v1alpha1.StateMissing, v1alpha1.StateDivergent, v1alpha1.StateShadowed, v1alpha1.StateBogus:
	default:
		d.addSkipped("%s is %s: %s", row.ServerName(), row.State, serverNote(*row))
		return
	}
	if row.Records != nil && row.Records.Unknown > 0 {
		d.addSkipped("%s: %s not known", row.ServerName(), pluralize(row.Records.Unknown, "RRset"))
	}
	d.out.Differs = true
	d.writeLine(bold, "--- %s", serverHeader(row))
	d.writeLine(bold, "+++ %s", d.declaredHeader())
	if len(row.Observed) == 0 {
		d.writeLine(faint, "# %s", row.Message)
	}
	for _, have := range row.Observed {
		d.writeRRset(have)
	}
	if more := hiddenRRsets(row); more != "" {
		d.writeLine(faint, "# %s", more)
	}
}

// serverHeader names a server, and how it is, in the place where a diff names a file.
func serverHeader(row *v1alpha1.ServerStatus) string {
	facts := []string{row.Role, string(row.State)}
	if row.Zone != "" {
		facts = append(facts, "zone "+row.Zone)
	}
	if row.Serial != nil {
		facts = append(facts, "serial "+formatNumber(row.Serial))
	}
	if lag := row.SerialLag; lag != nil && *lag > 0 {
		facts = append(facts, fmt.Sprintf("%d behind", *lag))
	} else if lag != nil && *lag < 0 {
		facts = append(facts, fmt.Sprintf("%d ahead", -*lag))
	}
	return row.ServerName() + " (" + joinNonEmpty(facts...) + ")"
}

func (d *diffWriter) declaredHeader() string {
	ref := d.object.ObjectRef
	return fmt.Sprintf("%s %s/%s (generation %d)", ref.Kind, d.object.Namespace, ref.Name, ref.Generation)
}

// writeRRset shows one RRset as a hunk: all that is served, then what is missing.
func (d *diffWriter) writeRRset(have v1alpha1.RRset) {
	d.writeLine(cyan, "@@ %s %s @@", have.Name, have.Type)
	served := zoneFileLines(have)
	i := slices.IndexFunc(d.object.RRsets, func(s v1alpha1.RRset) bool { return s.Name == have.Name && s.Type == have.Type })
	if i < 0 {
		d.writeLine(faint, "# what is declared here is not known")
		for _, l := range served {
			d.writeLine(plain, " %s", l)
		}
		return
	}
	wanted := zoneFileLines(sameSerial(d.object.RRsets[i], have))
	for _, l := range served {
		if slices.Contains(wanted, l) {
			d.writeLine(plain, " %s", l)
		} else {
			d.writeLine(red, "-%s", l)
		}
	}
	if have.Omitted > 0 { // What is wanted may be among them.
		d.writeLine(faint, "# and %s more", pluralize(have.Omitted, "value"))
		return
	}
	for _, l := range wanted {
		if !slices.Contains(served, l) {
			d.writeLine(green, "+%s", l)
		}
	}
}

// sameSerial gives a declared SOA the served one's serial: the serial is not declared.
func sameSerial(want, have v1alpha1.RRset) v1alpha1.RRset {
	const serial = 2 // of the fields of RFC 1035 section 3.3.13
	if want.Type != "SOA" || len(want.Rdata) != 1 || len(have.Rdata) != 1 {
		return want
	}
	w, h := strings.Fields(want.Rdata[0]), strings.Fields(have.Rdata[0])
	if len(w) > serial && len(h) > serial {
		w[serial] = h[serial]
	}
	want.Rdata = []string{strings.Join(w, " ")}
	return want
}

// zoneFileLines writes an RRset's records as a zone file has them.
func zoneFileLines(s v1alpha1.RRset) []string {
	var out []string
	for _, data := range s.Rdata {
		out = append(out, fmt.Sprintf("%s %d IN %s %s", s.Name, ptr.Deref(s.TTL, 0), s.Type, data))
	}
	return out
}

// maxObserved is how many differing RRsets a server's row shows at most.
const maxObserved = 20

func hiddenRRsets(row *v1alpha1.ServerStatus) string {
	shown := 0
	for _, s := range row.Observed {
		if s.Type != "SOA" { // is not counted
			shown++
		}
	}
	switch {
	case row.Records != nil && int(row.Records.OutOfSync) > shown:
		return fmt.Sprintf("and %s more", pluralize(row.Records.OutOfSync-int32(shown), "RRset"))
	case row.Records == nil && shown >= maxObserved:
		return fmt.Sprintf("no more than %d RRsets are shown", maxObserved)
	}
	return ""
}

func (d *diffWriter) writeLine(c textColor, format string, args ...any) {
	d.text.WriteString(d.palette.paint(c, oneLine(fmt.Sprintf(format, args...))) + "\n")
}

func (d *diffWriter) addSkipped(format string, args ...any) {
	d.out.Skipped = append(d.out.Skipped, oneLine(fmt.Sprintf(format, args...)))
}
