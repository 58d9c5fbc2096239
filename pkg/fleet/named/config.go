package named

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/declared/serving"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/clause"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/layout"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/releases"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named/rndc"
)

// Names of the configuration files in Layout.ConfigDir. MainFile includes the others in this order; a user's ConfigMap
// can replace any but ControlFile.
const (
	MainFile    = "named.conf"
	ControlFile = "named.conf.control"
	OptionsFile = "named.conf.options"
	ZonesFile   = "named.conf.zones"
)

// Layout says where named finds its files and listens. PodLayout is that of our pods; tests use another.
type Layout struct {
	ConfigDir, KeyDir, CacheDir, ZonesDir, RunDir string
	ControlKeyFile                                string
	Port, ControlPort, StatisticsPort, NoticePort int
}

// PodLayout returns the layout inside an instance's pods.
func PodLayout() Layout {
	return Layout{
		ConfigDir: layout.ConfigDir, KeyDir: layout.KeyDir, CacheDir: layout.CacheDir, ZonesDir: layout.ZonesDir, RunDir: layout.RunDir,
		ControlKeyFile: layout.ControlKeyFile, Port: serving.Port,
		ControlPort: layout.ControlPort, StatisticsPort: layout.StatisticsPort, NoticePort: layout.NoticePort,
	}
}

// Config is everything that the configuration of one server depends on.
type Config struct {
	Layout Layout
	// Release of BIND that reads the configuration; empty if nothing says it.
	Release releases.Release
	Role    v1beta1.ServerRole
	// Options are the cluster's and the instance's options, merged by MergeOptions.
	Options v1beta1.Bind9Config
	// ACLs are named address match lists that the other lists can refer to.
	ACLs map[string]v1beta1.AddressMatchList
}

// Render returns the content of each configuration file by name. The error names every field that cannot be rendered
// and wraps ErrConfig: only a change of the specification can help.
func Render(c Config) (map[string]string, error) {
	files, err := c.render()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return files, nil
}

func (c Config) render() (map[string]string, error) {
	acls, aclErr := c.renderACLs()
	options, err := c.renderOptions()
	if err := errors.Join(aclErr, err); err != nil {
		return nil, err
	}
	return map[string]string{
		MainFile:    c.renderMain(),
		ControlFile: c.renderControl() + acls,
		OptionsFile: options,
		ZonesFile:   "// Zones are added at run time.\n",
	}, nil
}

// ErrConfig says that a specification cannot be turned into a configuration.
var ErrConfig = errors.New("invalid configuration")

func (c Config) renderMain() string {
	var b strings.Builder
	for _, file := range []string{ControlFile, OptionsFile, ZonesFile} {
		fmt.Fprintf(&b, "include %q;\n", c.Layout.ConfigDir+"/"+file)
	}
	return b.String()
}

// renderControl holds what the sidecar and the controller rely on: keys, control and statistics channels, logging.
func (c Config) renderControl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "include %q;\n", c.Layout.ControlKeyFile)
	for _, role := range c.keyRoles() {
		fmt.Fprintf(&b, "include %q;\n", c.Layout.KeyDir+"/"+string(role)+"/"+KeyClauseEntry)
	}
	fmt.Fprintf(&b, `controls {
	inet 127.0.0.1 port %d allow { 127.0.0.1; } keys { %q; };
};
statistics-channels {
	inet 127.0.0.1 port %d allow { 127.0.0.1; };
};
logging {
	channel console { stderr; severity info; print-time iso8601; print-category yes; print-severity yes; };
	category default { console; };
	category update { null; };
};
`, c.Layout.ControlPort, rndc.KeyName, c.Layout.StatisticsPort)
	return b.String()
}

// keyRoles returns the keys that a server needs: only primaries take updates.
func (c Config) keyRoles() []KeyRole {
	if c.Role.Normalize() == v1beta1.RolePrimary {
		return []KeyRole{KeyUpdate, KeyTransfer}
	}
	return []KeyRole{KeyTransfer}
}

// keyACLs lists the address match lists of the server's keys.
func (c Config) keyACLs() string {
	var b strings.Builder
	for _, role := range c.keyRoles() {
		fmt.Fprintf(&b, "%q; ", clause.KeyACL(role))
	}
	return b.String()
}

func (c Config) matchList(field string, elements []string) (string, error) {
	return clause.MatchList(field, elements, func(acl string) bool { _, defined := c.ACLs[acl]; return defined })
}

func (c Config) renderACLs() (string, error) {
	var b strings.Builder
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c.ACLs)) {
		if !clause.IsIdentifier(name) || clause.IsBuiltinACL(name) || name == clause.TransferACL || name == clause.QueryACL {
			problems = append(problems, fmt.Errorf("acls[%s]: %q is not a name for an ACL", name, name))
			continue
		}
		list, err := c.matchList("acls["+name+"]", c.ACLs[name])
		problems = append(problems, err)
		fmt.Fprintf(&b, "acl %q { %s };\n", name, list)
	}
	transfer, _ := c.matchList("allowTransfer", c.Options.AllowTransfer) // Its error is one of the options.
	query := "any; "
	if len(c.Options.AllowQuery) > 0 {
		list, err := c.matchList("allowQuery", c.Options.AllowQuery)
		problems = append(problems, err)
		query = c.keyACLs() + list
	}
	fmt.Fprintf(&b, "acl %q { %s};\nacl %q { %s};\n", clause.TransferACL, transfer, clause.QueryACL, query)
	return b.String(), errors.Join(problems...)
}
