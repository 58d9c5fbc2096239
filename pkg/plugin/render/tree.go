package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
)

// TreeOptions say how a tree looks.
type TreeOptions struct {
	// Namespaces puts a heading above each namespace's objects.
	Namespaces bool
	// OutOfStep leaves out what is in step and has nothing below it that is not.
	OutOfStep bool
	// Now is the time that durations are counted to.
	Now     time.Time
	Palette Palette
}

// Tree shows objects by what they are part of: cluster, instance, pod; zone, record, server. An object whose parent is not
// among items stands under the parent's name, or by itself when it has none.
func Tree(items []v1alpha1.SyncStatus, o TreeOptions) string {
	roots := forest(items, o)
	if o.OutOfStep {
		roots = prune(roots)
	}
	if len(roots) == 0 {
		return ""
	}
	rows := [][]cell{{{"NAME", bold}, {"STATE", bold}, {"SERVERS", bold}, {"ROLE", bold}, {"SERIAL", bold}, {"LAG", bold}, {"MESSAGE", bold}}}
	for _, n := range roots {
		rows = n.rows(rows, "", "")
	}
	return o.Palette.table(rows)
}

// node is one line of the tree.
type node struct {
	name cell
	// about are the cells beside the name.
	about    [columns - 1]cell
	inStep   bool
	children []*node
}

// columns of a tree.
const columns = 7

// rows adds the lines of a node and of all below it. lead goes before the node's name, and below before what is before
// those of its children.
func (n *node) rows(rows [][]cell, lead, below string) [][]cell {
	name := cell{lead + n.name.text, n.name.in}
	rows = append(rows, append([]cell{name}, n.about[:]...))
	for i, c := range n.children {
		if i == len(n.children)-1 {
			rows = c.rows(rows, below+"└─ ", below+"   ")
		} else {
			rows = c.rows(rows, below+"├─ ", below+"│  ")
		}
	}
	return rows
}

// prune keeps what is not in step, and what that is part of.
func prune(nodes []*node) []*node {
	var kept []*node
	for _, n := range nodes {
		if n.children = prune(n.children); !n.inStep || len(n.children) > 0 {
			kept = append(kept, n)
		}
	}
	return kept
}

// forest gives the trees of all objects, those of a namespace together.
func forest(items []v1alpha1.SyncStatus, o TreeOptions) []*node {
	spaces := map[string]*space{}
	var names []string
	for i := range items {
		s := &items[i]
		in := spaces[s.Namespace]
		if in == nil {
			in = &space{name: s.Namespace, now: o.Now, instances: map[string]*v1alpha1.SyncStatus{}}
			spaces[s.Namespace] = in
			names = append(names, s.Namespace)
		}
		in.add(s)
	}
	slices.Sort(names)
	var roots []*node
	for _, name := range names {
		trees := spaces[name].trees()
		if o.Namespaces {
			trees = []*node{{name: cell{"Namespace/" + name, bold}, inStep: true, children: trees}}
		}
		roots = append(roots, trees...)
	}
	return roots
}

// space is one namespace's objects, sorted out by what they are to the tree.
type space struct {
	name      string
	now       time.Time
	clusters  []*v1alpha1.SyncStatus
	instances map[string]*v1alpha1.SyncStatus
	zones     []*v1alpha1.SyncStatus
	records   []*v1alpha1.SyncStatus
}

func (sp *space) add(s *v1alpha1.SyncStatus) {
	switch s.ObjectRef.Kind {
	case "Bind9Cluster", "Bind9GlobalCluster", "ClusterBind9Provider":
		sp.clusters = append(sp.clusters, s)
	case "Bind9Instance":
		sp.instances[s.ObjectRef.Name] = s
	case "DNSZone":
		sp.zones = append(sp.zones, s)
	default:
		sp.records = append(sp.records, s)
	}
}

func (sp *space) trees() []*node {
	return append(sp.fleet(), sp.data()...)
}

// fleet gives clusters with their instances, then the instances that are no cluster's.
func (sp *space) fleet() []*node {
	var roots []*node
	claimed := map[string]bool{}
	sortObjects(sp.clusters)
	for _, c := range sp.clusters {
		n := sp.object(c)
		for _, rows := range byInstance(c.Servers) {
			name := rows[0].Instance
			if own := sp.instances[name]; own != nil && rows[0].Namespace == "" {
				n.children = append(n.children, sp.instance(own))
				claimed[name] = true
				continue
			}
			heading := &node{name: cell{"Bind9Instance/" + name, plain}, inStep: true}
			heading.children = pods(rows, sp.now)
			n.children = append(n.children, heading)
		}
		roots = append(roots, n)
	}
	var alone []*v1alpha1.SyncStatus
	for name, s := range sp.instances {
		if !claimed[name] {
			alone = append(alone, s)
		}
	}
	sortObjects(alone)
	for _, s := range alone {
		roots = append(roots, sp.instance(s))
	}
	return roots
}

func (sp *space) instance(s *v1alpha1.SyncStatus) *node {
	n := sp.object(s)
	n.children = pods(s.Servers, sp.now)
	return n
}

// byInstance groups rows, in the order in which the instances come.
func byInstance(servers []v1alpha1.ServerStatus) [][]v1alpha1.ServerStatus {
	var groups [][]v1alpha1.ServerStatus
	for _, s := range servers {
		i := slices.IndexFunc(groups, func(g []v1alpha1.ServerStatus) bool {
			return g[0].Instance == s.Instance && g[0].Namespace == s.Namespace
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

// data gives zones with their servers and records, then the records of zones that are not shown, then those of none.
func (sp *space) data() []*node {
	sortObjects(sp.zones)
	sortObjects(sp.records)
	var roots []*node
	shown := map[string]*node{}
	for _, z := range sp.zones {
		n := sp.object(z)
		n.children = pods(z.Servers, sp.now)
		roots = append(roots, n)
		// Of two zones with one name, the one that is not served has no records.
		if shown[z.Zone] == nil || z.Status.FailureReason == "" {
			shown[z.Zone] = n
		}
	}
	var others, alone []*node
	for _, r := range sp.records {
		if r.Zone == "" {
			alone = append(alone, sp.record(r, ""))
			continue
		}
		for zone := range strings.SplitSeq(r.Zone, ",") {
			if shown[zone] == nil {
				shown[zone] = &node{name: cell{"Zone/" + zone, plain}, inStep: true}
				others = append(others, shown[zone])
			}
			shown[zone].children = append(shown[zone].children, sp.record(r, zone))
		}
	}
	return slices.Concat(roots, others, alone)
}

// record is an object with the servers of one of its zones.
func (sp *space) record(s *v1alpha1.SyncStatus, zone string) *node {
	n := sp.object(s)
	for _, row := range s.Servers {
		if row.Zone == "" || row.Zone == zone {
			n.children = append(n.children, pod(row, sp.now))
		}
	}
	return n
}

func (sp *space) object(s *v1alpha1.SyncStatus) *node {
	return &node{
		name:   cell{s.ObjectRef.Kind + "/" + s.ObjectRef.Name, plain},
		inStep: s.Status.InSync,
		about: [columns - 1]cell{
			{string(s.Status.Phase), ofPhase(s.Status.Phase)}, {text: servers(s)}, {}, {}, {}, {text: note(s, sp.now)},
		},
	}
}

func sortObjects(all []*v1alpha1.SyncStatus) {
	slices.SortFunc(all, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.ObjectRef.Name, b.ObjectRef.Name), cmp.Compare(a.ObjectRef.Kind, b.ObjectRef.Kind))
	})
}
