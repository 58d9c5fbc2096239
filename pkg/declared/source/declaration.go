package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// Declaration is what became of one record, or of one endpoint of a DNSEndpoint, in this zone.
type Declaration struct {
	// Ref is shared by all that the object declares.
	Ref *Ref
	// Key is the RRset that values are declared of.
	Key rrset.Key
	// Rdata are the declared values in canonical form; TTL is the effective TTL (own, zone's, 3600).
	Rdata []string
	TTL   uint32
	// Spelling is how names are spelled, nil where that is their canonical form.
	Spelling *rrset.Spelling
	// Accepted is true when the values are part of Zone.RRsets. Otherwise Reason (Invalid, Conflict, or Unsupported for more values than
	// servers take) and Message say why, naming the field and, for a conflict, the winner.
	Accepted bool
	// Waits is true if nothing but older data of its own name, a delegation that is still to come, or how much servers take, excludes a
	// declaration: it is published when that has changed.
	Waits           bool
	Reason, Message string
	// Note is a remark on an accepted declaration, such as a TTL lowered by another object; empty when there is none.
	Note string
}

// IsElsewhere reports whether the declaration is for other programs: its type is not published here.
func (d Declaration) IsElsewhere() bool {
	return !d.Accepted && d.Key.Type == dns.TypeNone && d.Ref.Kind == EndpointKind
}

func (d Declaration) rrset() rrset.RRset {
	return rrset.RRset{Key: d.Key, TTL: d.TTL, Rdata: d.Rdata, Spelling: d.Spelling}
}

// Equal compares all that a declaration says.
func (d Declaration) Equal(o Declaration) bool {
	return d.Ref.isSame(o.Ref) && d.Key == o.Key && d.TTL == o.TTL && d.Accepted == o.Accepted && d.Waits == o.Waits &&
		d.Reason == o.Reason && d.Message == o.Message && d.Note == o.Note && slices.Equal(d.Rdata, o.Rdata) &&
		d.Spelling.Equal(o.Spelling)
}

func (d *Declaration) markRefused(reason, message string) {
	d.Accepted, d.Reason, d.Message, d.Note = false, reason, message, ""
}

// markWaiting refuses a declaration that is published when what is in its way is gone.
func (d *Declaration) markWaiting(reason, message string) {
	d.markRefused(reason, message)
	d.Waits = true
}

// addNote adds to a declaration's note.
func (d *Declaration) addNote(text string) {
	if text != "" && d.Note != "" {
		d.Note += "; "
	}
	d.Note += text
}

// Hash is the SHA-256, in lower-case hexadecimal, of everything in a declaration that affects DNS: owner name, type, TTL
// and values. Which object declares it, and whether it is accepted, is no part of it.
func Hash(decl Declaration) string {
	b := make([]byte, 0, 256)
	b = append(append(b, decl.Key.Name...), 0)
	b = binary.BigEndian.AppendUint16(b, decl.Key.Type)
	b = binary.BigEndian.AppendUint32(b, decl.TTL)
	for _, rdata := range decl.Rdata {
		b = append(append(b, rdata...), 0)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
