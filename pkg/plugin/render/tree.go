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
	// OutOfSync leaves out what is in sync, follows its primaries, and has nothing below it of which that is not true.
	OutOfSync bool
	// Now is the time that durations are counted to.
	Now     time.Time
	Palette Palette
}

// Tree shows objects by what they are part of: cluster, instance, pod; zone, record, server. An object whose parent is not
// among items stands under the parent's name, or by itself when it has none.
func Tree(items []v1alpha1.SyncStatus, o TreeOptions) string {
	roots := buildForest(items, o)
	if o.OutOfSync {
		roots = pruneInSync(roots)
	}
	if len(roots) == 0 {
		return ""
	}
	rows := [][]cell{{{"NAME", bold}, {"STATE", bold}, {"SERVERS", bold}, {"ROLE", bold}, {"SERIAL", bold}, {"LAG", bold}, {"MESSAGE", bold}}}
	for _, n := range roots {
		rows = n.appendRows(rows, "", "")
	}
	return o.Palette.formatTable(rows)
}

// treeNode is one line of the tree.
type treeNode struct {
	name cell
	// cells are the cells beside the name.
	cells  [columns - 1]cell
	inSync bool
	// stuck is true of a server that is in sync and does not follow: a later serial than its primaries' keeps it from transferring.
	stuck    bool
	children []*treeNode
}

// columns of a tree.
const columns = 7

// appendRows adds the lines of a node and of all below it. lead goes before the node's name, and below before what is before
// those of its children.
func (n *treeNode) appendRows(rows [][]cell, lead, below string) [][]cell {
	name := cell{lead + n.name.text, n.name.in}
	rows = append(rows, append([]cell{name}, n.cells[:]...))
	for i, c := range n.children {
		if i == len(n.children)-1 {
			rows = c.appendRows(rows, below+"└─ ", below+"   ")
		} else {
			rows = c.appendRows(rows, below+"├─ ", below+"│  ")
		}
	}
	return rows
}

// pruneInSync keeps what is not in sync, and what that is part of.
func pruneInSync(nodes []*treeNode) []*treeNode {
	var kept []*treeNode
	for _, n := range nodes {
		if n.children = pruneInSync(n.children); !n.inSync || n.stuck || len(n.children) > 0 {
			kept = append(kept, n)
		}
	}
	return kept
}

// buildForest makes the trees of all objects, namespace by namespace.
func buildForest(items []v1alpha1.SyncStatus, o TreeOptions) []*treeNode {
	spaces := map[string]*namespaceObjects{}
	var names []string
	for i := range items {
		s := &items[i]
		in := spaces[s.Namespace]
		if in == nil {
			in = &namespaceObjects{name: s.Namespace, now: o.Now, instances: map[string]*v1alpha1.SyncStatus{}}
			spaces[s.Namespace] = in
			names = append(names, s.Namespace)
		}
		in.addObject(s)
	}
	slices.Sort(names)
	var roots []*treeNode
	for _, name := range names {
		trees := spaces[name].allNodes()
		if o.Namespaces {
			trees = []*treeNode{{name: cell{"Namespace/" + name, bold}, inSync: true, children: trees}}
		}
		roots = append(roots, trees...)
	}
	return roots
}

// namespaceObjects is one namespace's objects, sorted out by what they are to the tree.
type namespaceObjects struct {
	name      string
	now       time.Time
	clusters  []*v1alpha1.SyncStatus
	instances map[string]*v1alpha1.SyncStatus
	zones     []*v1alpha1.SyncStatus
	records   []*v1alpha1.SyncStatus
}

func (sp *namespaceObjects) addObject(s *v1alpha1.SyncStatus) {
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

func (sp *namespaceObjects) allNodes() []*treeNode {
	return append(sp.clusterNodes(), sp.zoneNodes()...)
}

// clusterNodes has clusters with their instances, then the instances of no cluster.
func (sp *namespaceObjects) clusterNodes() []*treeNode {
	var roots []*treeNode
	claimed := map[string]bool{}
	sortObjects(sp.clusters)
	for _, c := range sp.clusters {
		n := sp.objectNode(c)
		for _, rows := range byInstance(c.Servers) {
			name := rows[0].Instance
			if own := sp.instances[name]; own != nil && rows[0].Namespace == "" {
				n.children = append(n.children, sp.instanceNode(own))
				claimed[name] = true
				continue
			}
			heading := &treeNode{name: cell{"Bind9Instance/" + name, plain}, inSync: true}
			heading.children = podNodes(rows, sp.now)
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
		roots = append(roots, sp.instanceNode(s))
	}
	return roots
}

func (sp *namespaceObjects) instanceNode(s *v1alpha1.SyncStatus) *treeNode {
	n := sp.objectNode(s)
	n.children = podNodes(s.Servers, sp.now)
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

// zoneNodes has zones with their servers and records, then the records of zones that are not shown, then those of none.
func (sp *namespaceObjects) zoneNodes() []*treeNode {
	sortObjects(sp.zones)
	sortObjects(sp.records)
	var roots []*treeNode
	shown := map[string]*treeNode{}
	for _, z := range sp.zones {
		n := sp.objectNode(z)
		n.children = podNodes(z.Servers, sp.now)
		roots = append(roots, n)
		// Of two zones with one name, the one that is not served has no records.
		if shown[z.Zone] == nil || z.Status.FailureReason == "" {
			shown[z.Zone] = n
		}
	}
	var others, alone []*treeNode
	for _, r := range sp.records {
		if r.Zone == "" {
			alone = append(alone, sp.recordNode(r, ""))
			continue
		}
		for zone := range strings.SplitSeq(r.Zone, ",") {
			if shown[zone] == nil {
				shown[zone] = &treeNode{name: cell{"Zone/" + zone, plain}, inSync: true}
				others = append(others, shown[zone])
			}
			shown[zone].children = append(shown[zone].children, sp.recordNode(r, zone))
		}
	}
	return slices.Concat(roots, others, alone)
}

// recordNode has an object and the servers of one of its zones.
func (sp *namespaceObjects) recordNode(s *v1alpha1.SyncStatus, zone string) *treeNode {
	n := sp.objectNode(s)
	for _, row := range s.Servers {
		if row.Zone == "" || row.Zone == zone {
			n.children = append(n.children, podNode(row, sp.now))
		}
	}
	return n
}

func (sp *namespaceObjects) objectNode(s *v1alpha1.SyncStatus) *treeNode {
	return &treeNode{
		name:   cell{s.ObjectRef.Kind + "/" + s.ObjectRef.Name, plain},
		inSync: s.Status.InSync,
		cells: [columns - 1]cell{
			{string(s.Status.Phase), phaseColor(s.Status.Phase)}, {text: serverCount(s)}, {}, {}, {}, {text: objectNote(s, sp.now)},
		},
	}
}

func sortObjects(all []*v1alpha1.SyncStatus) {
	slices.SortFunc(all, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(a.ObjectRef.Name, b.ObjectRef.Name), cmp.Compare(a.ObjectRef.Kind, b.ObjectRef.Kind))
	})
}
