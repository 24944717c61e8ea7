package cmdutil

import (
	"github.com/podrun/podrun/internal/manifest/compose/api"
	"github.com/podrun/podrun/internal/store"
)

// Compose is what a command adds to the compose files that it reads, or that another command reads which it runs. The
// zero value adds nothing.
type Compose struct {
	Request   api.Request // Profiles, Services and others; who reads the files adds their names
	Search    bool        // without the names of files, the files are searched as docker compose does
	Converted *api.Result // instead of files; nil: who reads the files converts them
	Pod       string      // podrun run: the pod of this name of Converted, instead of one of an image
	Recreate  Recreate
	Leaving   []store.Pod // that up removes before it starts others
	Build     BuildOptions
	Labels    Labels // of up and logs
}

// Labels are the names that stand before the lines of containers, by the names of pod and container. They are padded to
// the same width. A container without one has podrun's own.
type Labels map[[2]string]string

// Recreate is what up does with pods that run. The zero value is podrun up's: a pod that cannot be changed in place is
// refused.
type Recreate string

// Values of Recreate.
const (
	RecreateChanged Recreate = "changed" // it is replaced if it cannot be changed, or if the name of its image stands for another image
	RecreateAlways  Recreate = "always"
	RecreateNever   Recreate = "never" // a running pod stays as it is
)

// BuildOptions are the options for builds of images.
type BuildOptions struct {
	Builder string // the name or the path of a builder; "": the first that is installed
	Force   bool   // build even if nothing has changed
	Never   bool   // build nothing
	NoCache bool   // the builder uses no cache
}
