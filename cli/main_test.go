package cli

import (
	"flag"
	"testing"

	"github.com/podrun/podrun/internal/stage"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	stage.Main(Stages())
	flag.Parse()
	testenv.UserMain(m)
}
