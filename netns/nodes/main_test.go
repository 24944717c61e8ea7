package nodes

import (
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
