package conffile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	word := func(words ...string) Statement { return Statement{Words: words} }
	for name, c := range map[string]struct {
		text string
		want []Statement
		err  error
	}{
		"nothing":               {text: "  // all\n# of\n/* it; */"},
		"words":                 {text: "include \"/etc/bind/a b\\\"c\";recursion no;", want: []Statement{word("include", `/etc/bind/a b"c`), word("recursion", "no")}},
		"blocks":                {text: "inet 127.0.0.1 port 9953 allow { any; !10.0.0.0/8; } keys { k; };", want: []Statement{{Words: []string{"inet", "127.0.0.1", "port", "9953", "allow", "keys"}, Block: []Statement{word("any"), word("!10.0.0.0/8"), word("k")}}}},
		"comments":              {text: "options {//a }\n a/* ; */b; };#", want: []Statement{{Words: []string{"options"}, Block: []Statement{word("a", "b")}}}},
		"semicolons in strings": {text: `version "a; }";;`, want: []Statement{word("version", "a; }")}},
		"empty string":          {text: `version "";`, want: []Statement{word("version", "")}},
		"no semicolon":          {text: "recursion no", err: errUnbalanced},
		"no brace":              {text: "options { recursion no;", err: errUnbalanced},
		"one brace too many":    {text: "options { }; };", err: errUnbalanced},
		"open string":           {text: `version "x`, err: errOpen},
		"open comment":          {text: `/* x`, err: errOpen},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.text)
			if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v; (-want +got):\n%s", err, c.err, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("options { listen-on port 5353 { any; }; /* x */ };\nzone \"a\" { };")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text)
		if err != nil && all != nil {
			t.Errorf("%v with %v", err, all)
		}
	})
}
