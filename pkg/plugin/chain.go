package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
	"github.com/lockstep-dns/lockstep/pkg/plugin/render"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus/subject"
)

func chainCommand(o *commandOptions) *cobra.Command {
	var explain bool
	cmd := &cobra.Command{
		Use:   "chain NAME [TYPE]",
		Short: "Show the chain of DNSSEC from the keys that are trusted to an answer, for each server",
		Long: `Show the chain of DNSSEC from the keys that are trusted to an answer, for each server: keys and their algorithms, what vouches for them, when
signatures expire, and what a validating resolver makes of each link. A broken link is red, and said in words below.

NAME is a DNS name that an object of the namespace declares, or an object as for the other commands. A name that no object declares stands for the
zone that it is in. TYPE is a DNS type; all that are declared at the name if it is left out.

Exit code 0: validating resolvers accept the answers of every server, as proven or, where nothing vouches for the zone, without proof. 1: they
reject one, or it is not known. 2: an error, or nothing to validate.`,
		Example: `  kubectl lockstep chain www.example.com
  kubectl lockstep chain www.example.com AAAA --explain
  kubectl lockstep chain dnszone/example-com`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: o.completeArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := parseChain(args)
			if err == nil {
				err = o.validateTargets([]target{asked.object})
			}
			if err != nil {
				return err
			}
			c, err := o.newClient()
			if err != nil {
				return err
			}
			items, err := c.findChain(cmd.Context(), asked)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprint(out, render.Chain(items, explain, o.newPalette(out)))
			if slices.ContainsFunc(items, isNotValidated) {
				return errNotInSync
			}
			return nil
		},
	}
	o.addNamespacesFlag(cmd.Flags())
	cmd.Flags().BoolVar(&explain, "explain", false, "Say what each link is for, and what to do about one that is broken")
	return cmd
}

func isNotValidated(s v1alpha1.SyncStatus) bool {
	return !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionValidated)
}

// chainQuestion is what chain is asked about: an object, or a DNS name and, unless it is empty, a type.
type chainQuestion struct {
	object       target
	name, rrtype string
}

func parseChain(args []string) (q chainQuestion, err error) {
	if len(args) > 1 {
		if q.rrtype = strings.ToUpper(args[1]); dns.StringToType[q.rrtype] == 0 {
			return q, fmt.Errorf("%s is no DNS type", args[1])
		}
	}
	if _, _, isName := subject.ParseName(args[0]); !isName && !strings.Contains(args[0], "/") {
		q.name, err = rrset.CanonicalName(dns.Fqdn(args[0]))
		return q, err
	}
	if q.object, err = parseTarget(args[0]); err == nil && (q.object.name == "" || q.rrtype != "") {
		err = fmt.Errorf("%s: name one object, without a type, or a DNS name", strings.Join(args, " "))
	}
	return q, err
}

// findChain asks for the objects that a question is about.
func (c *statusClient) findChain(ctx context.Context, q chainQuestion) ([]v1alpha1.SyncStatus, error) {
	if q.object.name != "" {
		s, err := c.getStatus(ctx, q.object)
		if err != nil {
			return nil, err
		}
		return []v1alpha1.SyncStatus{*s}, nil
	}
	all, err := c.listStatuses(ctx, statusQuery{})
	if err != nil {
		return nil, err
	}
	chosen := chooseByName(all, q.name, q.rrtype)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no object declares %s, and no zone contains it: %s", q.name, c.nothingFound())
	}
	for i, s := range chosen {
		of := *c
		of.namespace = s.Namespace
		kind, object, _ := subject.ParseName(s.Name)
		now, err := of.getStatus(ctx, target{kind, object})
		if err != nil {
			return nil, err
		}
		chosen[i] = *now
	}
	return chosen, nil
}

// chooseByName chooses, in each namespace, one object for each RRset that is declared at a name; if there is none, the zones with the longest
// name.
func chooseByName(all []v1alpha1.SyncStatus, name, rrtype string) (chosen []v1alpha1.SyncStatus) {
	seen := map[string]bool{}
	for _, s := range all {
		if s.ObjectRef.Kind == subject.ZoneKind.Kind {
			continue
		}
		isNew := false
		for _, set := range s.RRsets {
			if key := s.Namespace + " " + s.Zone + " " + set.Type; set.Name == name && (rrtype == "" || set.Type == rrtype) && !seen[key] {
				seen[key], isNew = true, true
			}
		}
		if isNew {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	zones := slices.DeleteFunc(slices.Clone(all), func(s v1alpha1.SyncStatus) bool {
		return s.ObjectRef.Kind != subject.ZoneKind.Kind || !rrset.IsSubdomain(name, dns.Fqdn(s.Zone))
	})
	longest := 0
	for _, s := range zones {
		longest = max(longest, len(s.Zone))
	}
	return slices.DeleteFunc(zones, func(s v1alpha1.SyncStatus) bool { return len(s.Zone) < longest })
}
