package volumes

import (
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

// The path library keeps a descriptor of /proc from its first use on.
func TestMain(m *testing.M) {
	testenv.Main(m, func() error {
		_, err := ReadFileIn("/", "/etc/passwd", 1<<20)
		return err
	})
}
