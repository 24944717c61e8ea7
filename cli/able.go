package cli

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/store"
)

// able finds podrun's directories, or says why no pod can be run here. Nothing has
// been made until then but these directories.
func (f *front) able(ctx context.Context, requireLimits bool) (store.Dirs, error) {
	setup := f.setup()
	if setup.DirsErr != nil {
		return store.Dirs{}, setup.DirsErr
	}
	if err := refusal(f.check(setup), requireLimits); err != nil {
		return store.Dirs{}, err
	}
	dirs, err := f.dirs()
	if err != nil {
		return store.Dirs{}, err
	}
	return dirs, f.rooms.try(ctx, dirs)
}

// setup is what the probes of the host are told.
func (f *front) setup() host.Setup {
	s := host.Setup{Built: built(), Trusted: store.Trusted, RuntimeDefault: f.getenv("XDG_RUNTIME_DIR") == ""}
	s.Program, _ = os.Executable()
	dirs, err := store.FindUserDirs(f.getenv)
	s.Data, s.Runtime, s.DirsErr = dirs.Data, dirs.Runtime, err
	return s
}

// built is the time of the commit this program was built from; zero if it is not
// stamped.
func built() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, _ := time.Parse(time.RFC3339, s.Value)
			return t
		}
	}
	return time.Time{}
}
