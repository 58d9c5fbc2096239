package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// addScriptCalls adds what a shell script or a Makefile calls.
func addScriptCalls(calls map[string]string, path string) error {
	isMakefile := filepath.Base(path) == "Makefile" || filepath.Ext(path) == ".mk"
	if filepath.Ext(path) != "" && !isMakefile {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if isMakefile {
		text = recipes(text)
	} else if !bytes.HasPrefix(text, []byte("#!/usr/bin/env bash\n")) {
		return nil
	}
	parse := exec.Command("go", "tool", "-modfile=tools.mod", "shfmt", "--to-json")
	parse.Stdin, parse.Stderr = bytes.NewReader(text), os.Stderr
	out, err := parse.Output()
	if err != nil {
		return fmt.Errorf("parsing %s: %w", path, err)
	}
	var script node
	if err := json.Unmarshal(out, &script); err != nil {
		return fmt.Errorf("parsing %s: %w", path, err)
	}
	functions := map[string]bool{}
	script.visit("FuncDecl", func(f node) { functions[f.literal("Name")] = true })
	script.visit("CallExpr", func(call node) {
		if name := call.firstWord(); name != "" && !functions[name] && !strings.Contains(name, "/") {
			calls[name] = path
		}
	})
	return nil
}

var (
	continued = regexp.MustCompile(`\\\n\t?`)
	// A reference may hold others, one level deep.
	reference = regexp.MustCompile(`\$\((?:[^()]|\([^()]*\))*\)|\$[@<*]`)
)

// recipes returns the commands of a Makefile as a script, in which make's variables are the word "./variable".
func recipes(makefile []byte) []byte {
	var script bytes.Buffer
	for line := range bytes.Lines(continued.ReplaceAll(makefile, []byte(" "))) {
		if command, ok := bytes.CutPrefix(line, []byte("\t")); ok {
			command = bytes.ReplaceAll(bytes.TrimLeft(command, "@-+"), []byte("$$"), []byte("\x00"))
			command = reference.ReplaceAll(command, []byte("./variable"))
			script.Write(bytes.ReplaceAll(command, []byte("\x00"), []byte("$")))
		}
	}
	return script.Bytes()
}

// node is a part of a parsed script, as shfmt prints it.
type node map[string]any

// visit calls f for each node of the type.
func (n node) visit(kind string, f func(node)) {
	if n["Type"] == kind {
		f(n)
	}
	for _, value := range n {
		visitValue(value, kind, f)
	}
}

func visitValue(value any, kind string, f func(node)) {
	switch value := value.(type) {
	case map[string]any:
		node(value).visit(kind, f)
	case []any:
		for _, element := range value {
			visitValue(element, kind, f)
		}
	}
}

func (n node) literal(field string) string {
	child, _ := n[field].(map[string]any)
	value, _ := child["Value"].(string)
	return value
}

// firstWord returns the command that a call names, or "" if it is not written out.
func (n node) firstWord() string {
	words, _ := n["Args"].([]any)
	if len(words) == 0 {
		return ""
	}
	word, _ := words[0].(map[string]any)
	parts, _ := word["Parts"].([]any)
	if len(parts) != 1 {
		return ""
	}
	part, _ := parts[0].(map[string]any)
	value, _ := part["Value"].(string)
	if part["Type"] != "Lit" {
		return ""
	}
	return value
}
