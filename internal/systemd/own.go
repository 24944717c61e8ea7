package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/report"
)

// UnitDirs are the directories of units and of their manifests.
type UnitDirs struct {
	System           bool
	Units, Manifests string
}

// OwnUnitDirs returns the directories of the calling user.
func OwnUnitDirs(getenv func(string) string) (UnitDirs, error) {
	if os.Geteuid() == 0 {
		return UnitDirs{true, "/etc/systemd/system", "/etc/podrun/pods"}, nil
	}
	config := getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(getenv("HOME"), ".config")
	}
	if !filepath.IsAbs(config) {
		return UnitDirs{}, report.New(report.Usage, "set HOME, or XDG_CONFIG_HOME to an absolute path", "find the directory of units: %q is not absolute", config)
	}
	return UnitDirs{false, filepath.Join(config, "systemd/user"), filepath.Join(config, "podrun/pods")}, nil
}

// ConnectOwn connects to the caller's service manager.
func ConnectOwn(ctx context.Context) (*Manager, error) {
	where, ok := delegation.FindManager()
	if !ok {
		_, err := os.Stat("/run/systemd/system")
		return nil, noManagerError(err == nil)
	}
	return connect(ctx, where)
}

// ErrNotBooted means that the machine does not run systemd.
var ErrNotBooted = errors.New("systemd does not run on this machine")

// noManagerError returns the error for a missing service manager; booted is whether systemd runs
// this machine at all (sd_booted(3)).
func noManagerError(booted bool) error {
	if !booted {
		return report.New(report.Failure, "podrun up -d FILE runs the pods without a unit", "%w", ErrNotBooted)
	}
	return report.New(report.Failure, "log in again, or as root: loginctl enable-linger USER", "there is no systemd for this user")
}
