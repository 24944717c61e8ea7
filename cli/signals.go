package cli

import (
	"os"

	"github.com/podrun/podrun/cli/internal/remote"
)

// notify delivers signals until stop, which closes the channel.
func notify(sigs ...os.Signal) (arrived <-chan os.Signal, stop func()) {
	return remote.Signals(sigs...)
}
