package cmdutil

import (
	"cmp"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/report"
)

// NamespaceFlag returns the flag --namespace for commands on existing pods and objects.
func NamespaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: podclient.DefaultNamespace, Usage: "use this `NAMESPACE` ($PODRUN_NAMESPACE or \"default\" if not given)"}
}

// ManifestNamespaceFlag returns the flag --namespace for commands that read manifests.
func ManifestNamespaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: podclient.DefaultNamespace, Usage: "the `NAMESPACE` of objects that name none ($PODRUN_NAMESPACE or \"default\" if not given); objects of another are refused"}
}

// StrictFlag returns the flag --strict.
func StrictFlag() cli.Flag {
	return &cli.BoolFlag{Name: "strict", Usage: "refuse objects that have no effect on one machine, instead of printing a warning"}
}

// PolicyFlag returns the flag --policy.
func PolicyFlag() cli.Flag {
	return &cli.StringFlag{Name: "policy", Usage: "refuse pods that this `LEVEL` of the Pod Security Standards does not allow: baseline or restricted (privileged allows everything)"}
}

// EnvFileFlag returns the flag --env-file.
func EnvFileFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "env-file", Usage: "replace ${NAME} and ${NAME:=DEFAULT} in manifests by variables of this `FILE`, as Flux does; of a compose file, read it in the place of .env"}
}

// PathFlag returns the flag --path.
func PathFlag() cli.Flag {
	return &cli.StringFlag{Name: "path", Usage: "of an artifact or a directory only the manifests, or the kustomization, in this `DIRECTORY` of it"}
}

// KustomizeFlag returns the flag -k.
func KustomizeFlag() cli.Flag {
	return &cli.StringFlag{Name: "kustomize", Aliases: []string{"k"}, Usage: "the objects of the kustomization in this `DIRECTORY`, instead of files"}
}

// AllowRemoteFlag returns the flag --allow-remote.
func AllowRemoteFlag() cli.Flag {
	return &cli.BoolFlag{Name: "allow-remote", Usage: "a kustomization may fetch bases and files by git and http"}
}

// UnsafeSysctlFlag returns the flag --allow-unsafe-sysctl.
func UnsafeSysctlFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-unsafe-sysctl", Usage: "allow sysctls of the pod's own namespaces that are not on the kubelet's list of safe ones, by `NAME` or a beginning: net.core.somaxconn, kernel.msg*"}
}

// TLSVerifyFlag returns the flag --tls-verify.
func TLSVerifyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "tls-verify", Value: true, Usage: "verify certificates of registries; --tls-verify=false allows plain HTTP and unknown certificates"}
}

// BuilderFlag returns the flag --builder.
func BuilderFlag() cli.Flag {
	return &cli.StringFlag{Name: "builder", Usage: "build with this `PROGRAM`: buildah, buildctl, docker or podman, or its path (the first that is installed if not given)"}
}

// AuthfileFlag returns the flag --authfile.
func AuthfileFlag() cli.Flag {
	return &cli.StringFlag{Name: "authfile", Usage: "store and read logins in this `FILE` (or $REGISTRY_AUTH_FILE)"}
}

// ResultFormatFlag returns the flag -o of commands that create or change objects.
func ResultFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print the objects in this `FORMAT`, json or yaml, and an error as an object of kind Status"}
}

// PullOptions returns the settings for registries from the flags and the environment, after a check of the
// auth file.
func (env *Env) PullOptions(c *cli.Context) (image.PullOptions, error) {
	o := env.RegistryOptions(c)
	if c.Command.Name == "login" { // it makes the auth file
		return o, nil
	}
	return o, CheckAuthFile(o)
}

// RegistryOptions returns the settings for registries from the flags and the environment.
func (env *Env) RegistryOptions(c *cli.Context) (o image.PullOptions) {
	if c.IsSet("tls-verify") {
		verify := c.Bool("tls-verify")
		o.TLSVerify = &verify
	}
	o.AuthFile = cmp.Or(c.String("authfile"), env.Getenv("REGISTRY_AUTH_FILE"))
	return o
}

// CheckAuthFile returns an error if there is no such file.
func CheckAuthFile(o image.PullOptions) error {
	if _, err := os.Stat(o.AuthFile); o.AuthFile != "" && err != nil {
		return report.New(report.Usage, "podrun login --authfile FILE creates it", "find the auth file: %w", err)
	}
	return nil
}
