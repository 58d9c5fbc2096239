package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
)

// Tree is what several packages hold, without being installed. Paths have no
// leading slash and are those of a system whose /lib is in /usr.
type Tree struct {
	files map[string]packageFile
	// Controls are the packages' control files, by name.
	Controls map[string][]byte
}

// packageFile is a regular file or, with a link, a symbolic link of a package.
type packageFile struct {
	pkg  string
	body []byte
	link string
}

// Unpack reads packages that have been downloaded.
func (r Repository) Unpack(ctx context.Context, packages []Package) (*Tree, error) {
	t := &Tree{files: map[string]packageFile{}, Controls: map[string][]byte{}}
	for _, p := range packages {
		deb := filepath.Join(r.Dir, p.File)
		control, err := runCommand(ctx, "", "dpkg-deb", "--field", deb)
		if err != nil {
			return nil, err
		}
		t.Controls[p.Name] = []byte(control)
		data, err := runCommand(ctx, "", "dpkg-deb", "--fsys-tarfile", deb)
		if err != nil {
			return nil, err
		}
		if err := t.addPackage(p.Name, strings.NewReader(data)); err != nil {
			return nil, fmt.Errorf("reading package %s: %w", p.Name, err)
		}
	}
	return t, nil
}

func (t *Tree) addPackage(pkg string, data io.Reader) error {
	r := tar.NewReader(data)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f := packageFile{pkg: pkg, link: h.Linkname}
		if h.Typeflag == tar.TypeReg {
			var b bytes.Buffer
			if _, err := b.ReadFrom(r); err != nil {
				return err
			}
			f.body = b.Bytes()
		} else if h.Typeflag != tar.TypeSymlink {
			continue
		}
		t.files[mergedPath(h.Name)] = f
	}
}

// mergedPath returns the path with /lib and /bin moved into /usr.
func mergedPath(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	for _, top := range []string{"lib/", "lib64/", "bin/", "sbin/"} {
		if strings.HasPrefix(name, top) {
			return "usr/" + name
		}
	}
	return name
}

// readFile follows symbolic links and returns the regular file.
func (t *Tree) readFile(name string) (packageFile, error) {
	at := mergedPath(name)
	for range 10 {
		f, ok := t.files[at]
		switch {
		case !ok:
			return packageFile{}, fmt.Errorf("no package has /%s", at)
		case f.link == "":
			return f, nil
		case path.IsAbs(f.link):
			at = mergedPath(f.link)
		default:
			at = mergedPath(path.Join(path.Dir(at), f.link))
		}
	}
	return packageFile{}, fmt.Errorf("/%s leads through too many symbolic links", name)
}
