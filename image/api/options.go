package api

import (
	"io"

	"github.com/opencontainers/go-digest"
)

// PullOptions configures the access to registries.
type PullOptions struct {
	// TLSVerify false allows plain HTTP and unverified certificates, true forbids them. With nil
	// registries.conf decides, but they are allowed for a registry on this machine (localhost,
	// 127.0.0.0/8).
	TLSVerify *bool
	// AuthFile has the credentials; "" means the usual files: $XDG_RUNTIME_DIR/containers/auth.json,
	// ~/.docker/config.json and so on.
	AuthFile string
	// AuthTexts are the contents of auth files. Their credentials for an image are tried before
	// AuthFile's.
	AuthTexts [][]byte
	// NoName leaves the names unchanged: the image is found by its id.
	NoName bool
	// Warn, if not nil, is called with the reason why a stored copy is used instead of the registry's
	// image.
	Warn func(error) `json:"-"`
	// BeforePull, if not nil, is called before a registry is contacted.
	BeforePull func() `json:"-"`
	// Progress, if not nil, is called for every layer.
	Progress func(Progress) `json:"-"`
	// LocalOnly disables access to registries: the error is then ErrRegistryNeeded.
	LocalOnly bool
}

// SaveOptions configures how images are written.
type SaveOptions struct {
	Format   string // OCIArchive, OCIDir or DockerArchive
	Compress string // of layers: "", gzip or zstd
	// Progress, if not nil, is called for every layer.
	Progress func(Progress) `json:"-"`
}

// Account holds the credentials for one registry, or for the repositories of it that begin with a path.
type Account struct {
	Registry       string // HOST[:PORT][/PATH]
	User, Password string
}

// Target is where images are saved: a directory, or Out.
type Target struct {
	Dir     string    `json:"dir,omitempty"`
	Out     io.Writer `json:"-"`                 // receives a tar archive
	Scratch string    `json:"scratch,omitempty"` // with Out: a directory with room for a layer
}

// Added is an image that has been added to a store.
type Added struct {
	ID   digest.Digest `json:"id"`
	Name string        `json:"name,omitempty"` // the first of its names
}
