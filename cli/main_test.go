package cli

import (
	"flag"
	"testing"

	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	flag.Parse()
	testenv.UserMain(m)
}
