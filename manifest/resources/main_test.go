package resources

import (
	"testing"

	"github.com/podrun/podrun/internal/properties"
)

func TestMain(m *testing.M) { properties.Main(m, "200") }
