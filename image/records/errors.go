package records

import (
	"fmt"

	"github.com/podrun/podrun/image/api"
	"github.com/podrun/podrun/internal/report"
)

// NotFound wraps ErrNotFound so that the sentence names the image.
func NotFound(name string) error { return fmt.Errorf("find %s: %w", name, api.ErrNotFound) }

// unknownImage wraps ErrNotFound for who has asked for an image of this machine.
func unknownImage() error {
	return report.New(report.Failure, "podrun image ls shows those that are", "%w", api.ErrNotFound)
}
