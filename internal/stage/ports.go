package stage

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// portsEnv names, as "NAME=DESCRIPTOR …", the ports of the host that a supervisor is given.
const portsEnv = "_PODRUN_PORTS"

func handPorts(cmd *exec.Cmd, ports map[string]*os.File) {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		cmd.ExtraFiles = append(cmd.ExtraFiles, ports[name])
		list = append(list, fmt.Sprintf("%s=%d", name, 2+len(cmd.ExtraFiles)))
	}
	if len(list) > 0 {
		cmd.Env = append(cmd.Env, portsEnv+"="+strings.Join(list, " "))
	}
}

// HandedPorts are the ports of the host that the supervisor was given at its start, by
// the names of PodStart.Ports. It can be asked once.
func HandedPorts() map[string]*os.File {
	files := map[string]*os.File{}
	for name, fd := range keptFiles(os.Getenv(portsEnv)) {
		files[name] = os.NewFile(fd, name)
	}
	os.Unsetenv(portsEnv)
	return files
}
