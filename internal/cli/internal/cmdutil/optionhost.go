package cmdutil

import (
	"io/fs"
	"os"

	"github.com/podrun/podrun/internal/manifest/runpod"
)

// OptionHost returns what options of docker run depend on on this machine.
func (env *Env) OptionHost() runpod.Host {
	dir, _ := os.Getwd() // without a working directory a relative path does not exist
	return runpod.Host{
		Dir:         dir,
		ReadEnvFile: ReadEnvFile,
		ReadFile:    os.ReadFile,
		LookupEnv: func(name string) (string, bool) {
			value := env.Getenv(name)
			return value, value != ""
		},
		Stat: func(file string) (fs.FileMode, error) {
			st, err := os.Stat(file)
			if err != nil {
				return 0, err
			}
			return st.Mode(), nil
		},
		SELinux: func() bool {
			_, selinux := env.Deps.SecurityModules()
			return selinux.Enabled
		},
	}
}
