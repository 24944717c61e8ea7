package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/containers/image/v5/types"

	"github.com/podrun/podrun/internal/report"
)

// Registries says in a sentence what registries.conf(5) makes of the names of
// images. The error, with its cure, is that of a file which every pull would fail
// for. Nobody is asked.
func Registries() (string, error) {
	sys := usualConf()
	return registriesOf(&sys)
}

// usualConf is where the files of containers/image are: in their usual places, but for
// registries.conf where a variable names another, as podman and skopeo know it.
func usualConf() types.SystemContext {
	return types.SystemContext{SystemRegistriesConfPath: os.Getenv("CONTAINERS_REGISTRIES_CONF")}
}

func registriesOf(sys *types.SystemContext) (string, error) {
	path := sysregistriesv2.ConfigPath(sys)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "images come from the registry in their name, or docker.io; there is no registries.conf", nil
	}
	all, err := sysregistriesv2.GetRegistries(sys)
	if err != nil {
		return "", report.New(report.Failure, "correct "+path+" or its drop-ins, as registries.conf(5) has it; or remove them: podrun needs none", "%w", err)
	}
	blocked, mirrored := 0, 0
	for _, r := range all {
		if r.Blocked {
			blocked++
		}
		if len(r.Mirrors) > 0 {
			mirrored++
		}
	}
	said := []string{"images come from the registry in their name, or docker.io"}
	if len(all) > 0 {
		said = append(said, fmt.Sprintf("%s has %d registries, %d blocked, %d with mirrors", path, len(all), blocked, mirrored))
	} else {
		said = append(said, path+" changes nothing")
	}
	return strings.Join(said, "; "), nil
}
