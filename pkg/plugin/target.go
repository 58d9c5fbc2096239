package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// target is an object, or all of a kind when it has no name.
type target struct {
	kind subject.Kind
	name string
}

// String is KIND/NAME, as people write it.
func (t target) String() string { return t.kind.Kind + "/" + t.name }

func (t target) statusName() string { return subject.Name(t.kind.Kind, t.name) }

// shortNames names of kinds, as kubectl knows them.
var shortNames = map[string]string{
	"a": "ARecord", "aaaa": "AAAARecord", "cname": "CNAMERecord", "txt": "TXTRecord", "mx": "MXRecord",
	"srv": "SRVRecord", "caa": "CAARecord", "ptr": "PTRRecord", "rr": "DNSRecord", "zone": "DNSZone", "zones": "DNSZone", "dz": "DNSZone", "dzs": "DNSZone",
	"b9": "Bind9Instance", "b9s": "Bind9Instance", "b9c": "Bind9Cluster", "b9cs": "Bind9Cluster", "b9gc": "Bind9GlobalCluster",
	"cb9p": "ClusterBind9Provider", "cb9ps": "ClusterBind9Provider",
}

// parseTargets reads KIND/NAME, kind.name, KIND, and KIND NAME...
func parseTargets(args []string) ([]target, error) {
	var targets []target
	if kind, alone := kindAlone(args); alone && len(args) > 1 {
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, fmt.Errorf("%s %s: after a kind by itself there are names", args[0], name)
			}
			targets = append(targets, target{kind, name})
		}
		return targets, nil
	}
	for _, arg := range args {
		t, err := parseTarget(arg)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// kindAlone reads a kind that names follow.
func kindAlone(args []string) (kind subject.Kind, ok bool) {
	if len(args) == 0 || strings.Contains(args[0], "/") {
		return kind, false
	}
	kind, err := parseKind(args[0])
	return kind, err == nil
}

func parseTarget(arg string) (target, error) {
	word, name, slash := strings.Cut(arg, "/")
	if resource, _, _ := strings.Cut(word, "."); slash && slices.Contains([]string{"syncstatus", "syncstatuses", "sync"}, strings.ToLower(resource)) {
		arg, slash = name, false // as kubectl get syncstatus -o name has it
	}
	if !slash {
		if kind, object, ok := subject.ParseName(arg); ok {
			return target{kind, object}, nil
		}
		kind, err := parseKind(arg)
		return target{kind: kind}, err
	}
	kind, err := parseKind(word)
	if err == nil && (name == "" || strings.Contains(name, "/")) {
		err = fmt.Errorf("%q is not KIND/NAME", arg)
	}
	return target{kind, name}, err
}

// parseKind takes any name of a kind that kubectl takes: kind, plural, singular, short, each with the group, and its version, or without.
func parseKind(word string) (subject.Kind, error) {
	resource, group, qualified := strings.Cut(strings.ToLower(word), ".")
	for _, k := range subject.Kinds() {
		if qualified && !strings.HasSuffix("."+group, "."+k.GroupVersion().Group) {
			continue
		}
		if resource == k.Singular || resource == k.Resource || shortNames[resource] == k.Kind {
			return k, nil
		}
	}
	return subject.Kind{}, fmt.Errorf("there is no SyncStatus of %q: an object is KIND/NAME, with one of the kinds %s", word, kindNames())
}

func kindNames() string {
	var names []string
	for _, k := range subject.Kinds() {
		names = append(names, k.Singular)
	}
	return strings.Join(names, ", ")
}

// completeZone offers the names of zones for the first argument.
func (o *commandOptions) completeZone(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.completeNames(cmd, subject.ZoneKind, "")
}

// completeArgs offers kinds, and after a kind the names of its objects.
func (o *commandOptions) completeArgs(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if kind, alone := kindAlone(args); alone {
		return o.completeNames(cmd, kind, "")
	}
	word, _, slash := strings.Cut(begun, "/")
	if !slash {
		var kinds []string
		for _, k := range subject.Kinds() {
			kinds = append(kinds, k.Singular+"/")
		}
		return kinds, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	kind, err := parseKind(word)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.completeNames(cmd, kind, word+"/")
}

// completeNames offers the names of the objects of a kind.
func (o *commandOptions) completeNames(cmd *cobra.Command, kind subject.Kind, prefix string) ([]string, cobra.ShellCompDirective) {
	c, err := o.newClient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	items, err := c.listStatuses(cmd.Context(), o.queriesFor([]target{{kind: kind}})...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range items {
		names = append(names, prefix+s.ObjectRef.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
