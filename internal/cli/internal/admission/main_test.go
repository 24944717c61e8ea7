package admission

import (
	"flag"
	"testing"

	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	reexec.Main(nil)
	flag.Parse()
	testenv.UserMain(m)
}
