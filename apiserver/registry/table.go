package registry

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dns/lockstep/apiserver/listing"
	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	"github.com/lockstep-dns/lockstep/pkg/syncstatus"
)

// table renders SyncStatus objects as `kubectl get` shows them.
type table struct{}

var tableColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Kind of the object in lower case, a dot, and its name."},
	{Name: "Zone", Type: "string", Description: "DNS zone that the object belongs to."},
	{Name: "Phase", Type: "string", Description: "The verdict: InSync, Propagating, OutOfSync, Failed or Unknown."},
	{Name: "Servers", Type: "string", Description: "Servers in sync, of all."},
	{Name: "Serial", Type: "string", Description: "The newest serial of the zone."},
	{Name: "Lag", Type: "string", Description: "By how many serials the last server is behind."},
	{Name: "Reason", Type: "string", Description: "Why the phase is not InSync."},
	{Name: "Observed", Type: "string", Description: "How long ago the servers were asked."},
	{Name: "Kind", Type: "string", Priority: 1, Description: "Kind of the object."},
	{Name: "RTT", Type: "string", Priority: 1, Description: "Round trip to the slowest server."},
	{Name: "Message", Type: "string", Priority: 1, Description: "What to know about it."},
}

// ConvertToTable implements rest.TableConvertor.
func (table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = tableColumns
	}
	now := time.Now()
	if l, ok := object.(*listing.List); ok {
		object = l.SyncStatusList
	}
	switch o := object.(type) {
	case *v1alpha1.SyncStatus:
		out.ResourceVersion = o.ResourceVersion
		out.Rows = []metav1.TableRow{newRow(o, now)}
	case *v1alpha1.SyncStatusList:
		out.ListMeta = o.ListMeta
		out.Rows = make([]metav1.TableRow, 0, len(o.Items))
		for i := range o.Items {
			out.Rows = append(out.Rows, newRow(&o.Items[i], now))
		}
	default:
		return nil, fmt.Errorf("cannot show a %T as a table", object)
	}
	return out, nil
}

func newRow(s *v1alpha1.SyncStatus, now time.Time) metav1.TableRow {
	serial, lag := serialAndLag(s)
	condition := decidingCondition(s)
	reason, message := allReasons(condition.Reason, s.Servers), condition.Message
	if s.Status.InSync {
		reason = ""
	}
	if s.Status.FailureReason != "" {
		reason, message = s.Status.FailureReason, s.Status.FailureMessage
	}
	return metav1.TableRow{
		Object: runtime.RawExtension{Object: s},
		Cells: []any{
			s.Name, s.Zone, string(s.Status.Phase), fmt.Sprintf("%d/%d", s.Summary.InSync, s.Summary.Servers),
			serial, lag, reason, formatObserved(s, now), s.ObjectRef.Kind, slowestRoundTrip(s), message,
		},
	}
}

// serialAndLag are the newest serial of the zone and how far the last server is behind it. An object in several zones has no one serial.
func serialAndLag(s *v1alpha1.SyncStatus) (serial, lag string) {
	var most int64
	for _, server := range s.Servers {
		if server.Serial == nil || server.SerialLag == nil {
			continue
		}
		newest := uint32(*server.Serial + *server.SerialLag) //nolint:gosec // serials wrap (RFC 1982)
		serial, most = strconv.FormatUint(uint64(newest), 10), max(most, *server.SerialLag)
		lag = strconv.FormatInt(most, 10)
	}
	if strings.Contains(s.Zone, ",") {
		serial = ""
	}
	return serial, lag
}

// decidingCondition is the condition that the phase follows from.
func decidingCondition(s *v1alpha1.SyncStatus) metav1.Condition {
	if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionPropagated); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// allReasons are a reason that is a state of servers and the states of others: some are silent, and what these hold would stay unseen.
func allReasons(reason string, servers []v1alpha1.ServerStatus) string {
	states := syncstatus.StatesNotInSync(servers)
	if len(states) == 0 || string(states[0]) != reason {
		return reason
	}
	for _, state := range states[1:] {
		reason += "," + string(state)
	}
	return reason
}

func formatObserved(s *v1alpha1.SyncStatus, now time.Time) string {
	if s.ObservedAt == nil {
		return ""
	}
	ago := max(0, now.Sub(s.ObservedAt.Time))
	if ago < 10*time.Second {
		return ago.Round(time.Millisecond).String()
	}
	return ago.Round(time.Second).String()
}

func slowestRoundTrip(s *v1alpha1.SyncStatus) string {
	var most time.Duration
	for _, server := range s.Servers {
		if server.RTT != nil {
			most = max(most, server.RTT.Duration)
		}
	}
	if most == 0 {
		return ""
	}
	return most.Round(10 * time.Microsecond).String()
}
