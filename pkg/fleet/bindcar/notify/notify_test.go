package notify

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dns/lockstep/pkg/fleet/bindcar"
)

func TestNoticeLog(t *testing.T) {
	type step struct {
		add  []string // "zone serial"
		want []string // what a reader sees who looked after the step before
	}
	cases := map[string][]step{
		"in order":         {{[]string{"a 1", "b 1"}, []string{"a 1", "b 1"}}, {nil, nil}, {[]string{"c 1"}, []string{"c 1"}}},
		"latest only":      {{[]string{"a 1", "b 1", "a 2", "a 3"}, []string{"b 1", "a 3"}}, {[]string{"a 4"}, []string{"a 4"}}},
		"room for three":   {{[]string{"a 1", "b 1", "c 1", "a 2"}, []string{"b 1", "c 1", "a 2"}}},
		"no room for four": {{[]string{"a 1", "b 1", "c 1", "d 1"}, []string{"lost"}}, {[]string{"e 1"}, []string{"e 1"}}},
		"read in time":     {{[]string{"a 1", "b 1"}, []string{"a 1", "b 1"}}, {[]string{"c 1", "d 1"}, []string{"c 1", "d 1"}}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			l := NewLog(3)
			position := l.endPosition()
			for i, s := range steps {
				for _, line := range s.add {
					n := bindcar.Notification{Serial: new(uint32)}
					_, _ = fmt.Sscan(line, &n.Zone, n.Serial)
					l.Add(n)
				}
				var notices []bindcar.Notification
				notices, position, _ = l.readAfter(position)
				var got []string
				for _, n := range notices {
					got = append(got, text(n))
				}
				if diff := cmp.Diff(s.want, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func text(n bindcar.Notification) string {
	if n.Lost {
		return "lost"
	}
	return fmt.Sprint(n.Zone, " ", *n.Serial)
}
