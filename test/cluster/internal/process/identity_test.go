package process

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %START% 9 10\n"
	line := func(name string, state string) string {
		return "42 (" + name + ") " + state + " 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 9 10\n"
	}
	cases := map[string]struct {
		in   string
		want processStat
		bad  bool
	}{
		"plain":              {in: line("etcd", "S"), want: processStat{'S', 1, 98765}},
		"blank in the name":  {in: line("a b", "R"), want: processStat{'R', 1, 98765}},
		"brackets in a name": {in: line("x) Z (y", "S"), want: processStat{'S', 1, 98765}},
		"zombie":             {in: line("etcd", "Z"), want: processStat{'Z', 1, 98765}},
		"no name":            {in: "42 etcd S 1 2 3", bad: true},
		"too few fields":     {in: "42 (etcd) S 1 2 3", bad: true},
		"start is no number": {in: "42 (etcd) S" + rest, bad: true},
		"nothing after name": {in: "42 (etcd)", bad: true},
		"empty":              {in: "", bad: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(c.in))
			if (err != nil) != c.bad {
				t.Fatalf("error %v, want one: %v", err, c.bad)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDead(t *testing.T) {
	cases := map[string]struct {
		in   processStat
		want bool
	}{
		"running":              {processStat{state: 'R', threads: 4}, false},
		"zombie":               {processStat{state: 'Z', threads: 1}, true},
		"zombie with a thread": {processStat{state: 'Z', threads: 2}, false},
		"zombie, no threads":   {processStat{state: 'Z'}, true},
	}
	for name, c := range cases {
		if got := c.in.isDead(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAliveIsAboutOneProcess(t *testing.T) {
	self, err := identifyProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() {
		t.Error("this process is said to be dead")
	}
	later := self
	later.Start++
	if later.Alive() {
		t.Error("a process that started at another time is taken for this one")
	}
	rebooted := self
	rebooted.Boot = "another"
	if rebooted.Alive() {
		t.Error("a process of another boot is taken for this one")
	}
}
