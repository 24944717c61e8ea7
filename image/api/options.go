package api

// PullOptions say how a registry is spoken to.
type PullOptions struct {
	// TLSVerify false allows plain HTTP and certificates nobody vouches for, true
	// forbids them. nil leaves it to registries.conf, but allows them for a
	// registry on this machine (localhost, 127.0.0.0/8).
	TLSVerify *bool
	// AuthFile has the credentials; "" means the usual ones:
	// $XDG_RUNTIME_DIR/containers/auth.json, ~/.docker/config.json and so on.
	AuthFile string
	// AuthFiles are texts of auth files. What they have for an image is tried before those
	// of AuthFile.
	AuthFiles [][]byte
	// NoName leaves the names as they are: the image is had by its id.
	NoName bool
	// Warn, if not nil, is called with the reason why a copy at hand is used though the
	// registry was to be asked.
	Warn func(error)
	// BeforePull, if not nil, is called before a registry is asked.
	BeforePull func()
	// Progress, if not nil, is told about every layer.
	Progress func(Progress)
	// LocalOnly asks no registry: where one would be asked, the error is ErrRegistryNeeded.
	LocalOnly bool
}

// SaveOptions say how images are written.
type SaveOptions struct {
	Format   string // OCIArchive, OCIDir or DockerArchive
	Compress string // "", gzip or zstd: of layers
	// Progress, if not nil, is told about every layer.
	Progress func(Progress)
}

// Account is who one is for a registry, or for the repositories of one that begin with a
// path.
type Account struct {
	Registry       string // HOST[:PORT][/PATH]
	User, Password string
}
