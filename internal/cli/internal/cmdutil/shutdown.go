package cmdutil

import (
	"context"
	"io"

	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/systemd"
)

// ShuttingDown reports whether the machine, or the user's manager, is shutting down. If the manager does not answer,
// because it is busy stopping everything, ShuttingDown reports that and returns true: a missing answer must not
// delete the pods' data.
func ShuttingDown(ctx context.Context, errOut io.Writer) bool {
	going, err := systemd.ShuttingDown(ctx)
	if err != nil {
		report.Print(errOut, report.New(report.Failure, "treating this as a shutdown: the pods stop and keep their files; podrun down removes them", "check whether the machine shuts down: %w", err))
		return true
	}
	return going
}
