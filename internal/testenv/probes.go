package testenv

import (
	"errors"
	"os"

	"github.com/podrun/podrun/internal/host"
)

// Pods is a probe for Need: it returns why this user can run no pods here, in the words of `podrun
// doctor`.
func Pods() error { return host.FirstFailure(hostFindings()) }

// IDs is a probe for Need: it returns why this user's pods have a single user id.
func IDs() error { return errors.Join(probeError(host.IDTools), probeError(host.SubIDs)) }

func hostFindings() []host.Finding {
	return host.Check(host.Setup{Data: os.TempDir(), Runtime: os.TempDir()})
}

func probeError(probe string) error {
	if f, _ := host.FindByName(hostFindings(), probe); f.Level != host.OK {
		return errors.New(f.Detail + " (" + f.Hint + ")")
	}
	return nil
}
