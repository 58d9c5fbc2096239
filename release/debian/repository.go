package debian

import "path/filepath"

// Repository is what apt's sources on this machine offer.
type Repository struct {
	// Dir is the absolute path of the folder that packages are downloaded to.
	Dir string
	// Suite is the codename of the Debian release of the packages. If it is empty, or that of this machine, they come from the machine's
	// sources. Those of another release come from the same mirrors, into lists of their own below Dir, which Update has to fetch first.
	Suite string
	// Arch is the architecture of the packages, as Debian names it. They come
	// from lists of their own below Dir, which Update has to fetch first. If it
	// is empty, they are the machine's own and come from the machine's lists.
	Arch string
}

// private returns the folder of the repository's own lists; empty if it reads the machine's.
func (r Repository) private() string {
	if r.Arch == "" && !r.isForeign() {
		return ""
	}
	return filepath.Join(r.Dir, r.foreignSuite(), r.Arch)
}

// foreignSuite is the suite if it is not this machine's.
func (r Repository) foreignSuite() string {
	if r.isForeign() {
		return r.Suite
	}
	return ""
}

func (r Repository) isForeign() bool { return r.Suite != "" && r.Suite != machineSuite() }

// lists returns the folder where apt keeps what it knows about packages.
func (r Repository) lists() string {
	if private := r.private(); private != "" {
		return filepath.Join(private, "state", "lists")
	}
	return "/var/lib/apt/lists"
}

// options returns the arguments of a command of apt.
func (r Repository) options(command, flag string, args ...string) []string {
	all := []string{command, flag, "-o", "APT::Sandbox::User=root"}
	if private := r.private(); private != "" {
		if r.Arch != "" {
			all = append(all, "-o", "APT::Architecture="+r.Arch, "-o", "APT::Architectures="+r.Arch)
		}
		if r.isForeign() {
			all = append(all, "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts="+r.sources())
		}
		all = append(all, "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
			"-o", "Dir::State="+filepath.Join(private, "state"), "-o", "Dir::State::status=/dev/null",
			"-o", "Dir::Cache="+filepath.Join(private, "cache"), "-o", "Acquire::Languages=none")
	}
	return append(all, args...)
}
