package image

import (
	"maps"
	"testing"

	"github.com/podrun/podrun/image/server"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	entryPoints := server.EntryPoints()
	maps.Copy(entryPoints, testEntryPoints())
	reexec.Main(entryPoints)
	testenv.MainOutside(m)
}
