package metrics_test

import (
	"testing"

	"github.com/podrun/podrun/cli"
	"github.com/podrun/podrun/cli/internal/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, cli.Run, cli.EntryPoints()) }
