package cmdutil

import (
	"fmt"
	"io/fs"
	"net"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/podrun/podrun/internal/manifest/runpod"
)

// OptionHost returns what options of docker run depend on on this machine.
func (env *Env) OptionHost() runpod.Host {
	dir, _ := os.Getwd() // without a working directory a relative path does not exist
	return runpod.Host{
		Dir:         dir,
		ReadEnvFile: ReadEnvFile,
		ReadFile:    os.ReadFile,
		FreePort:    freePort,
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

// freePort returns a port of this machine that is free now.
func freePort(of corev1.ContainerPort) (int32, error) {
	address := net.JoinHostPort(of.HostIP, "0")
	if of.Protocol == corev1.ProtocolUDP {
		conn, err := net.ListenPacket("udp", address)
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		defer conn.Close()
		return int32(conn.LocalAddr().(*net.UDPAddr).Port), nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port), nil
}
