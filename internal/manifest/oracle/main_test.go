package oracle

import (
	"testing"

	"github.com/podrun/podrun/internal/proptest"
)

// TestMain makes 3,000 random pods for each test, of which a few are valid.
func TestMain(m *testing.M) { proptest.Main(m, "3000") }
