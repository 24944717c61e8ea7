package hostdeps

import (
	"flag"
	"testing"

	"github.com/podrun/podrun/internal/nsprobe"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	reexec.Main(nsprobe.EntryPoints())
	flag.Parse()
	testenv.UserMain(m)
}
