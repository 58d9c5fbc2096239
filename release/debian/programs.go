package debian

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Programs are executables and all that they need in order to run.
type Programs struct {
	// Executables and Libraries are files by path, without a leading slash.
	Executables, Libraries map[string][]byte
	// Packages are the names of those that the files are from.
	Packages []string
}

// Programs collects the named executables with the shared libraries and the
// dynamic loaders that they need.
func (t *Tree) Programs(names ...string) (Programs, error) {
	p := Programs{Executables: map[string][]byte{}, Libraries: map[string][]byte{}}
	c := programCollector{tree: t, programs: &p}
	for _, name := range names {
		f, err := t.readFile(name)
		if err != nil {
			return p, err
		}
		p.Executables[mergedPath(name)] = f.body
		c.recordPackage(f)
		if err := c.addDependencies(f); err != nil {
			return p, fmt.Errorf("collecting what %s needs: %w", name, err)
		}
	}
	slices.Sort(p.Packages)
	return p, nil
}

// Copyrights returns the packages' licenses by path. A package may refer to the
// folder of another that it was built together with.
func (t *Tree) Copyrights(packages []string) map[string][]byte {
	found := map[string][]byte{}
	for _, name := range packages {
		dir := path.Join("usr/share/doc", name)
		at := path.Join(dir, "copyright")
		from := at
		if f, ok := t.files[dir]; ok && f.link != "" {
			from = path.Join(path.Dir(dir), f.link, "copyright")
		}
		if f, err := t.readFile(from); err == nil {
			found[at] = f.body
		}
	}
	return found
}

type programCollector struct {
	tree     *Tree
	programs *Programs
}

func (c programCollector) recordPackage(f packageFile) {
	if !slices.Contains(c.programs.Packages, f.pkg) {
		c.programs.Packages = append(c.programs.Packages, f.pkg)
	}
}

// addDependencies adds the loader and the libraries that an ELF file names.
func (c programCollector) addDependencies(f packageFile) error {
	e, err := elf.NewFile(bytes.NewReader(f.body))
	if err != nil {
		return err
	}
	defer e.Close()
	if loader := elfInterpreter(e); loader != "" {
		if err := c.addLibrary(mergedPath(loader)); err != nil {
			return err
		}
	}
	sonames, err := e.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, soname := range sonames {
		at, err := c.tree.findLibrary(soname)
		if err != nil {
			return err
		}
		if err := c.addLibrary(at); err != nil {
			return err
		}
	}
	return nil
}

func (c programCollector) addLibrary(at string) error {
	if _, ok := c.programs.Libraries[at]; ok {
		return nil
	}
	f, err := c.tree.readFile(at)
	if err != nil {
		return err
	}
	c.programs.Libraries[at] = f.body
	c.recordPackage(f)
	return c.addDependencies(f)
}

// findLibrary finds a library by the name that it is linked by, in a folder that
// the loader searches: /usr/lib or one for the machine's kind right below it.
func (t *Tree) findLibrary(soname string) (string, error) {
	var found []string
	for at := range t.files {
		dir := path.Dir(at)
		if path.Base(at) == soname && (dir == "usr/lib" || dir == "usr/lib64" || path.Dir(dir) == "usr/lib") {
			found = append(found, at)
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no package has the library %s", soname)
	}
	// ld.so may have a name in several folders; the one of the machine's kind
	// sorts after /usr/lib itself.
	return slices.Max(found), nil
}

func elfInterpreter(e *elf.File) string {
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return ""
		}
		return strings.TrimRight(string(b), "\x00")
	}
	return ""
}
