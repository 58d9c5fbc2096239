package source

import (
	"cmp"
	"iter"
	"slices"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// nodeItem is a well-formed declaration in the index.
type nodeItem struct {
	object Object
	index  int
	// raw is what the object declares, before anything is decided; nil once that is done, for it can be read again.
	raw *Declaration
}

// compareItems puts the objects of the zone's own namespace first, whatever their age: one of another namespace may be old and have got its name
// and its way into the zone since. Then comes the older.
func (d *groupDecision) compareItems(a, b *nodeItem) int {
	switch ownA, ownB := d.isOwn(a.object), d.isOwn(b.object); {
	case ownA && !ownB:
		return -1
	case ownB && !ownA:
		return 1
	}
	if c := cmp.Compare(creationTime(a.object), creationTime(b.object)); c != 0 {
		return c
	}
	return cmp.Or(compareObjects(a.object, b.object), cmp.Compare(a.index, b.index))
}

// nameNode is a name in the zone: an owner name, a host that something names, or a name on the way to one.
type nameNode struct {
	name string
	// parent is one label up, first one of the names one label down; next and prev have the same parent.
	parent, first, next, prev *nameNode
	// items are the well-formed declarations at the name; the first has its place in only.
	items []nodeItem
	only  [1]nodeItem
	// users are the owner names of declarations that name this host, with their number.
	users map[*nameNode]int
	// cuts counts the NS declarations at the name, below the apex, and the DNAME declarations: what is below is elsewhere. glue counts the NS
	// declarations, anywhere, that name this host.
	cuts, glue int32
	// serves counts, for a name server of the zone itself, the zone's spec and the NS declarations at the apex.
	serves int32
	// decided is the number of the revision that decided the name last.
	decided int
}

// nameTree is the tree of all names in a zone that its content depends on.
type nameTree struct {
	apex   *nameNode
	byName map[string]*nameNode
	// hosts are the name servers of the zone itself.
	hosts map[*nameNode]struct{}
	// cuts is the number of names with cuts.
	cuts int
	// spare are nodes to use next.
	spare []nameNode
}

func newNameTree(zone string, size int) *nameTree {
	t := &nameTree{apex: &nameNode{name: zone}, byName: make(map[string]*nameNode, size+1), hosts: map[*nameNode]struct{}{}}
	t.byName[zone] = t.apex
	return t
}

// nodeAt finds or creates the node of a name inside the zone.
func (t *nameTree) nodeAt(name string) *nameNode {
	if n, ok := t.byName[name]; ok {
		return n
	}
	parent := t.apex
	if up := rrset.ParentName(name); up != parent.name {
		parent = t.nodeAt(up)
	}
	n := t.newNode()
	n.name, n.parent, n.next = name, parent, parent.first
	if n.next != nil {
		n.next.prev = n
	}
	parent.first = n
	t.byName[name] = n
	return n
}

// newNode cuts nodes from pieces that grow with the zone.
func (t *nameTree) newNode() *nameNode {
	if len(t.spare) == 0 {
		t.spare = make([]nameNode, min(64, 1+len(t.byName)/16))
	}
	n := &t.spare[0]
	t.spare = t.spare[1:]
	n.items = n.only[:0]
	return n
}

// subtree yields a name and all names below it.
func (n *nameNode) subtree() iter.Seq[*nameNode] {
	return func(yield func(*nameNode) bool) { n.walkSubtree(yield) }
}

func (n *nameNode) walkSubtree(yield func(*nameNode) bool) bool {
	if !yield(n) {
		return false
	}
	for c := n.first; c != nil; c = c.next {
		if !c.walkSubtree(yield) {
			return false
		}
	}
	return true
}

// pruneNode drops a name that nothing is known of any more, and those above it that were there for its sake.
func (t *nameTree) pruneNode(n *nameNode) {
	for n != t.apex && n.first == nil && len(n.items) == 0 && len(n.users) == 0 && t.byName[n.name] == n && n.serves == 0 {
		delete(t.byName, n.name)
		if n.next != nil {
			n.next.prev = n.prev
		}
		if n.prev != nil {
			n.prev.next = n.next
		} else {
			n.parent.first = n.next
		}
		n = n.parent
	}
}

// addItem enters a well-formed declaration.
func (t *nameTree) addItem(it nodeItem, d *Declaration) *nameNode {
	n := t.nodeAt(d.Key.Name)
	if n.items = append(n.items, it); len(n.items) == 2 {
		n.only[0] = nodeItem{} // It has moved.
	}
	t.countReferences(n, d, 1)
	return n
}

// removeItem takes out what add has entered.
func (t *nameTree) removeItem(o Object, index int, d *Declaration) *nameNode {
	n := t.nodeAt(d.Key.Name)
	i := slices.IndexFunc(n.items, func(it nodeItem) bool { return it.index == index && it.object == o })
	n.items = slices.Delete(n.items, i, i+1)
	t.countReferences(n, d, -1)
	return n
}

// countReferences keeps account of hosts and cuts.
func (t *nameTree) countReferences(n *nameNode, d *Declaration, by int) {
	isNS := d.Key.Type == dns.TypeNS
	if t.mayCut(n, d.Key.Type) {
		before := n.cuts
		n.cuts += int32(by) //nolint:gosec // 1 or -1
		if before == 0 || n.cuts == 0 {
			t.cuts += by
		}
	}
	for host := range t.hostsOf(d) {
		if host.users == nil {
			host.users = map[*nameNode]int{}
		}
		addCount(host.users, n, by)
		if isNS {
			host.glue += int32(by) //nolint:gosec // 1 or -1
		}
		if isNS && n == t.apex {
			t.countNameServer(host, by)
		}
	}
}

// mayCut reports whether data of a type takes the names below its own elsewhere: a delegation, or a DNAME.
func (t *nameTree) mayCut(n *nameNode, rrtype uint16) bool {
	return rrtype == dns.TypeNS && n != t.apex || rrtype == dns.TypeDNAME
}

// countNameServer counts who makes a host a name server of the zone.
func (t *nameTree) countNameServer(host *nameNode, by int) {
	if host.serves += int32(by); host.serves > 0 { //nolint:gosec // 1 or -1
		t.hosts[host] = struct{}{}
	} else {
		delete(t.hosts, host)
	}
}

func addCount(counts map[*nameNode]int, n *nameNode, by int) {
	if counts[n] += by; counts[n] == 0 {
		delete(counts, n)
	}
}

// namesHosts is true for types whose rdata names a host that should have an address. The targets of CNAME and PTR need not.
func namesHosts(rrtype uint16) bool {
	return rrtype == dns.TypeNS || rrtype == dns.TypeMX || rrtype == dns.TypeSRV
}

// hostsOf yields the hosts inside the zone that a declaration names.
func (t *nameTree) hostsOf(d *Declaration) iter.Seq[*nameNode] {
	return func(yield func(*nameNode) bool) {
		if !namesHosts(d.Key.Type) {
			return
		}
		for _, rdata := range d.Rdata {
			if host, _ := rrset.HostOf(d.Key.Type, rdata); rrset.IsSubdomain(host, t.apex.name) && !yield(t.nodeAt(host)) {
				return
			}
		}
	}
}

// cutsAbove yields the names at and above one where a delegation or a DNAME may be, the nearest first.
func (t *nameTree) cutsAbove(n *nameNode) iter.Seq[*nameNode] {
	return func(yield func(*nameNode) bool) {
		if t.cuts == 0 {
			return
		}
		for ; n != nil; n = n.parent {
			if n.cuts > 0 && !yield(n) {
				return
			}
		}
	}
}

// highestCut is the highest of cutsAbove, nil when there is none.
func (t *nameTree) highestCut(n *nameNode) *nameNode {
	var top *nameNode
	for cut := range t.cutsAbove(n) {
		top = cut
	}
	return top
}

// isRelated reports whether the declarations of other names may exclude those of a name.
func (t *nameTree) isRelated(n *nameNode) bool {
	return n.serves > 0 || n == t.apex || t.highestCut(n) != nil
}

// relatedNodes lists all names whose declarations may exclude those of one, itself included: what is at and below the highest cut above
// it, and the apex with the zone's own name servers if it is one of those.
func (t *nameTree) relatedNodes(start *nameNode) []*nameNode {
	if !t.isRelated(start) {
		return []*nameNode{start}
	}
	seen, tops := map[*nameNode]struct{}{}, map[*nameNode]struct{}{}
	var all []*nameNode
	var visit func(n *nameNode)
	visit = func(n *nameNode) {
		if _, again := seen[n]; again {
			return
		}
		seen[n] = struct{}{}
		all = append(all, n)
		if top := t.highestCut(n); top != nil {
			if _, again := tops[top]; !again {
				tops[top] = struct{}{}
				for m := range top.subtree() {
					visit(m)
				}
			}
		}
		if n.serves > 0 || n == t.apex {
			visit(t.apex)
			for host := range t.hosts {
				visit(host)
			}
		}
	}
	visit(start)
	return all
}
