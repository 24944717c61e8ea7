package image

import (
	"maps"
	"testing"

	"github.com/podrun/podrun/image/service"
	"github.com/podrun/podrun/internal/reexec"
	"github.com/podrun/podrun/internal/testenv"
)

func TestMain(m *testing.M) {
	stages := service.Stages()
	maps.Copy(stages, testStages())
	reexec.Main(stages)
	testenv.MainOutside(m)
}
