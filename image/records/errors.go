package records

import (
	"fmt"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// NotFound wraps ErrNotFound with the image's name.
func NotFound(name string) error { return fmt.Errorf("find %s: %w", name, api.ErrNotFound) }

// unknownImage wraps ErrNotFound for commands that name a stored image.
func unknownImage() error {
	return report.New(report.Failure, "podrun image ls shows those that are", "%w", api.ErrNotFound)
}
