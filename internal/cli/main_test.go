package cli

import (
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, Run, EntryPoints()) }
