package systemd

import (
	"context"

	"github.com/podrun/podrun/internal/delegation"
)

// GoingDown says whether a manager is ending all of its units: the machine is being stopped
// or restarted, or, of a user's, the user's last login has ended.
func GoingDown(ctx context.Context, m delegation.Manager) (bool, error) {
	v, err := getProperty(ctx, m, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "SystemState")
	if err != nil {
		return false, err
	}
	return v.Value() == "stopping", nil
}
