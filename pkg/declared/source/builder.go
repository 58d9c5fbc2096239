package source

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/apis/externaldns/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/status"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/dns/snapshot"
)

// Build computes the desired content of a zone that selects the given objects, in any order, each once. An error means that the zone itself
// is invalid, and joins all reasons, each naming its field; an invalid object has Declarations that are not accepted. Objects that are being
// deleted declare nothing. The objects are not changed, and the result shares only strings with them.
//
// Values of one name and type are merged over objects. Where declarations exclude each other, the zone's own win, then those of objects in
// its namespace, then the oldest: by creationTimestamp, then namespace, name, kind and UID, and in one object the first endpoint.
func Build(zone *v1beta1.DNSZone, objects []Object, opts Options) (*Zone, error) {
	b, err := NewBuilder(zone, opts)
	if err != nil {
		return nil, err
	}
	live := make([]Object, 0, len(objects))
	for _, o := range objects {
		if o != nil && o.GetDeletionTimestamp() == nil {
			live = append(live, o)
		}
	}
	return b.buildFresh(len(live), slices.Values(live)), nil
}

// Builder keeps the desired content of a zone up to date while its objects change: Zone returns what Build would for the current objects,
// at the cost of what changed. It is not safe for concurrent use; the Zones that it returns are immutable. It keeps the objects that it is
// given, which must not be changed any more.
//
// A change costs the declarations that it may affect: those of its name, those of all names that depend on each other if delegations or
// name servers of the zone are concerned, and the remarks on declarations that name the host. After many changes the zone is built anew.
type Builder struct {
	declaration.Apex
	ref  *Ref
	opts Options
	// signers are those of opts, by name.
	signers map[string]Signer
	objects map[ObjectKey]Object
	// pending are the objects that changed since the last Zone; nil for one that declares nothing any more.
	pending map[ObjectKey]Object
	// tree is the index of the objects without what is pending; nil until the first Zone.
	tree *nameTree
	zone *Zone
	// nameServers is what was found about the zone's name servers when the apex was decided last.
	nameServers NameServers
	// revisions is the number of revisions so far.
	revisions int
}

// NewBuilder returns a Builder for a zone without objects. The error is that of Build.
func NewBuilder(zone *v1beta1.DNSZone, opts Options) (*Builder, error) {
	a, err := declaration.ReadApex(zone)
	if err != nil {
		return nil, err
	}
	ref := refOf(zone)
	signers := map[string]Signer{}
	for _, s := range opts.Signers {
		signers[s.Name] = s
	}
	return &Builder{
		Apex: a, ref: &ref, opts: opts, signers: signers,
		objects: map[ObjectKey]Object{}, pending: map[ObjectKey]Object{},
	}, nil
}

// Set adds an object, or replaces the one with the same key. An object that is being deleted declares nothing. A DNSEndpoint has to be set
// again when Options.Owns answers differently.
func (b *Builder) Set(o Object) {
	switch {
	case o.GetDeletionTimestamp() != nil:
		b.Remove(KeyOf(o))
	case b.zone == nil:
		b.objects[KeyOf(o)] = o
	default:
		b.pending[KeyOf(o)] = o
	}
}

// Remove takes an object out; it need not be there.
func (b *Builder) Remove(key ObjectKey) {
	if b.zone == nil {
		delete(b.objects, key)
		return
	}
	b.pending[key] = nil
}

// Object returns an object as it was set last; nil if it declares nothing.
func (b *Builder) Object(key ObjectKey) Object {
	if o, changed := b.pending[key]; changed {
		return o
	}
	return b.objects[key]
}

// Zone returns the desired content of the current objects: the same *Zone while nothing changes.
func (b *Builder) Zone() *Zone {
	switch {
	case b.zone == nil:
		b.zone = b.buildFresh(len(b.objects), maps.Values(b.objects))
	case len(b.pending) > 1000 && len(b.pending) > len(b.objects)/2:
		b.zone = b.rebuildShared()
	case len(b.pending) > 0:
		b.zone = b.buildNext()
	}
	return b.zone
}

// buildFresh makes the zone of count objects without an earlier one.
func (b *Builder) buildFresh(count int, objects iter.Seq[Object]) *Zone {
	b.tree = newNameTree(b.Name, count)
	for _, server := range b.Servers {
		if rrset.IsSubdomain(server, b.Name) {
			host := b.tree.nodeAt(server)
			b.tree.countNameServer(host, 1)
			host.glue++
		}
	}
	r := b.newRevision(&Zone{Name: b.Name, Ref: b.ref, SOA: b.SOA})
	declared, refs := make([]declaredIndex, 0, count), make([]Ref, 0, count)
	for o := range objects {
		refs = append(refs, refOf(o))
		for index := range b.declaredIndexes(o) {
			declared = append(declared, declaredIndex{o, &refs[len(refs)-1], index})
		}
	}
	r.fresh = b.readFresh(declared)
	for i := range r.fresh.declarations {
		d := &r.fresh.declarations[i]
		r.enterDeclaration(d.Key, declared[i].by, &d.Value)
	}
	r.decideName(b.tree.apex) // The zone itself declares something there.
	return r.finishZone()
}

// rebuildShared makes the zone afresh and shares with the last one what stayed.
func (b *Builder) rebuildShared() *Zone {
	last := b.zone
	for key, o := range b.pending {
		b.applyPending(key, o)
	}
	z := b.buildFresh(len(b.objects), maps.Values(b.objects))
	z.RRsets = snapshot.Share(z.RRsets, last.RRsets, RRset.Equal)
	z.Declarations = snapshot.Share(z.Declarations, last.Declarations, Declaration.Equal)
	return z
}

// buildNext makes the zone that follows from the last one by what is pending.
func (b *Builder) buildNext() *Zone {
	r := b.newRevision(b.zone)
	for key, o := range b.pending {
		r.replaceObject(key, o)
		b.applyPending(key, o)
	}
	return r.finishZone()
}

// applyPending makes a pending object one of the zone's.
func (b *Builder) applyPending(key ObjectKey, o Object) {
	if delete(b.pending, key); o != nil {
		b.objects[key] = o
	} else {
		delete(b.objects, key)
	}
}

// declaredIndexes yields the indexes of an object's declarations in the zone.
func (b *Builder) declaredIndexes(o Object) iter.Seq[int] {
	return func(yield func(int) bool) {
		e, ok := o.(*v1alpha1.DNSEndpoint)
		if !ok {
			yield(0)
			return
		}
		for i, endpoint := range e.Spec.Endpoints {
			if endpoint != nil && b.takesEndpoint(e, endpoint.DNSName) && !yield(i) {
				return
			}
		}
	}
}

func (b *Builder) takesEndpoint(e *v1alpha1.DNSEndpoint, dnsName string) bool {
	name, _ := declaration.EndpointName(dnsName)
	return rrset.IsSubdomain(name, b.Name) && (b.opts.Owns == nil || b.opts.Owns(e, dnsName))
}

// readDeclaration reads one declaration of an object: well-formed by itself and marked as accepted, or Invalid.
func (b *Builder) readDeclaration(from declaredIndex) Declaration {
	var read declaration.Declared
	switch o := from.by.(type) {
	case v1beta1.Record:
		read = declaration.ReadRecord(o, b.Apex)
	case *v1alpha1.DNSEndpoint:
		read = declaration.ReadEndpoint(o, from.index, b.Apex)
	default:
		read.Err = fmt.Errorf("%T declares no DNS data", o)
	}
	d := Declaration{Ref: from.ref, Key: read.Key, Rdata: read.Rdata, TTL: read.TTL, Spelling: read.Spelling, Note: read.Note, Accepted: read.Err == nil}
	if read.Err != nil {
		d.markRefused(status.Invalid, declaration.Label(from.by, from.index)+status.JoinSome(strings.Split(read.Err.Error(), "\n"), 5, "; "))
	}
	return d
}
