package follow_test

import (
	"testing"

	"github.com/podrun/podrun/internal/cli"
	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, cli.Run, cli.EntryPoints()) }
