package decode

import (
	"testing"

	"github.com/podrun/podrun/internal/proptest"
)

func TestMain(m *testing.M) { proptest.Main(m, "200") }
