package debian

import "path/filepath"

// Repository is what apt's sources on this machine offer.
type Repository struct {
	// Dir is the absolute path of the folder that packages are downloaded to.
	Dir string
	// Arch is the architecture of the packages, as Debian names it. They come
	// from lists of their own below Dir, which Update has to fetch first. If it
	// is empty, they are the machine's own and come from the machine's lists.
	Arch string
}

// lists returns the folder where apt keeps what it knows about packages.
func (r Repository) lists() string {
	if r.Arch == "" {
		return "/var/lib/apt/lists"
	}
	return filepath.Join(r.Dir, r.Arch, "state", "lists")
}

// options returns the arguments of a command of apt.
func (r Repository) options(command, flag string, args ...string) []string {
	all := []string{command, flag, "-o", "APT::Sandbox::User=root"}
	if r.Arch != "" {
		private := filepath.Join(r.Dir, r.Arch)
		all = append(all,
			"-o", "APT::Architecture="+r.Arch, "-o", "APT::Architectures="+r.Arch,
			"-o", "Dir::State="+filepath.Join(private, "state"), "-o", "Dir::State::status=/dev/null",
			"-o", "Dir::Cache="+filepath.Join(private, "cache"), "-o", "Acquire::Languages=none")
	}
	return append(all, args...)
}
