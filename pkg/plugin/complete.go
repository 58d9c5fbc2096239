package plugin

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

// completeArgs offers kinds, and after a kind the names of its objects.
func (o *commandOptions) completeArgs(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
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
		names = append(names, word+"/"+s.ObjectRef.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
