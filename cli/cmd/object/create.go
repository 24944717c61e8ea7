// Package object has the commands create and delete for ConfigMaps, Secrets, Namespaces and other
// objects.
package object

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podrun/podrun/cli/internal/cmdline"
	"github.com/podrun/podrun/cli/internal/cmdutil"
	"github.com/podrun/podrun/cli/internal/kindnames"
	"github.com/podrun/podrun/cli/internal/objects"
	"github.com/podrun/podrun/cli/internal/podclient"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/manifest"
	"github.com/podrun/podrun/manifest/printers"
	"github.com/podrun/podrun/pod"
)

// NewCreateCommand returns the command create.
func NewCreateCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "create",
		Usage: "create a ConfigMap, a Secret or a Namespace",
		Description: `Creates objects for pods to refer to, as kubectl create does. An existing object
is not changed; --dry-run -o yaml creates nothing and prints the object, for
podrun apply -f -.

Examples:
  podrun create configmap settings --from-file=app.ini --from-literal=color=blue
  podrun create secret generic login --from-file=password=pw.txt
  podrun create namespace web
`,
		Subcommands: []*cli.Command{createConfigMapCommand(env), createNamespaceCommand(env), createSecretCommand(env)},
		Action:      cmdline.NeedSubcommand("create", "create takes one of configmap, namespace and secret"),
	}
}

func createSecretCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "secret",
		Usage: "create a Secret",
		Description: `Creates a Secret. It is kept in memory only: a reboot clears it.

Examples:
  podrun create secret generic login --from-file=password=pw.txt
  podrun create secret tls site --cert=site.crt --key=site.key
`,
		Subcommands: []*cli.Command{createGenericCommand(env), createRegistryCommand(env), createTLSCommand(env)},
		Action:      cmdline.NeedSubcommand("create secret", "create secret takes one of generic, docker-registry and tls"),
	}
}

func createFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		cmdutil.NamespaceFlag(),
		cmdutil.DryRunFlag("create nothing; -o yaml prints the object (=none, =client or =server)"),
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "print the object in this `FORMAT`: json, yaml or name"},
	}, more...)
}

func dataFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "from-file", Usage: "add the content of a `[KEY=]FILE` under its name or KEY; of a directory every file"},
		&cli.StringSliceFlag{Name: "from-literal", Usage: "add a `KEY=VALUE`"},
		&cli.StringSliceFlag{Name: "from-env-file", Usage: "add the KEY=VALUE lines of a `FILE`"},
	}
}

func createConfigMapCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "configmap", Aliases: []string{"cm"},
		Usage:     "create a ConfigMap from files and values",
		ArgsUsage: "NAME",
		Description: `Creates a ConfigMap. The content of files that are not text becomes binaryData.

Examples:
  podrun create configmap settings --from-file=app.ini --from-literal=color=blue
  podrun create configmap settings --from-env-file=app.env --dry-run -o yaml
`,
		Flags: createFlags(append(dataFlags(), &cli.BoolFlag{Name: "immutable", Usage: "the data cannot be changed"})...),
		Action: func(c *cli.Context) error {
			cm := &corev1.ConfigMap{TypeMeta: typeMeta("ConfigMap")}
			data, err := dataOf(env, c)
			if err != nil {
				return err
			}
			for key, value := range data {
				putText(&cm.Data, &cm.BinaryData, key, value)
			}
			if c.Bool("immutable") {
				cm.Immutable = new(true)
			}
			return createObject(env, c, "ConfigMap", cm)
		},
	}
}

func createGenericCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "generic",
		Usage:     "create a Secret from files and values",
		ArgsUsage: "NAME",
		Description: `Creates a Secret. All users of this machine can see a value of --from-literal
while the command runs; --from-file=KEY=/dev/stdin reads it from a pipe.

Examples:
  podrun create secret generic login --from-file=password=pw.txt
  pass show db | podrun create secret generic db --from-file=pw=/dev/stdin
`,
		Flags: createFlags(append(dataFlags(), &cli.StringFlag{Name: "type", Usage: "the secret's `TYPE` (Opaque if not given)"})...),
		Action: func(c *cli.Context) error {
			data, err := dataOf(env, c)
			if err != nil {
				return err
			}
			return createObject(env, c, "Secret", &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretType(c.String("type")), Data: data})
		},
	}
}

// dockerHub is the registry of images whose names contain none, as auth files name it.
const dockerHub = "https://index.docker.io/v1/"

func createRegistryCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "docker-registry",
		Usage:     "create a Secret for imagePullSecrets",
		ArgsUsage: "NAME",
		Description: `Creates a Secret of type kubernetes.io/dockerconfigjson from a user and a
password, or from an auth file that docker login or podman login has written.

Examples:
  podrun create secret docker-registry hub --from-file=$HOME/.docker/config.json
`,
		Flags: createFlags(
			&cli.StringFlag{Name: "docker-server", Value: dockerHub, Usage: "the `REGISTRY` (Docker Hub if not given)"},
			&cli.StringFlag{Name: "docker-username", Usage: "`USER`"},
			&cli.StringFlag{Name: "docker-password", Usage: "`PASSWORD`"},
			&cli.StringFlag{Name: "docker-email", Usage: "`ADDRESS`"},
			&cli.StringSliceFlag{Name: "from-file", Usage: "an auth `FILE`"},
		),
		Action: func(c *cli.Context) error {
			s := &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretTypeDockerConfigJson}
			if c.IsSet("from-file") {
				data, err := dataOf(env, c)
				if err != nil {
					return err
				}
				for _, value := range data {
					s.Data = map[string][]byte{corev1.DockerConfigJsonKey: value}
				}
				return createObject(env, c, "Secret", s)
			}
			user, password := c.String("docker-username"), c.String("docker-password")
			if user == "" || password == "" {
				return cmdutil.UsageErrorf("create secret docker-registry", "create secret docker-registry takes --docker-username and --docker-password, or --from-file")
			}
			entry := map[string]string{"username": user, "password": password, "auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
			if email := c.String("docker-email"); email != "" {
				entry["email"] = email
			}
			text, err := json.Marshal(map[string]any{"auths": map[string]any{c.String("docker-server"): entry}})
			if err != nil {
				return fmt.Errorf("encode the registry's login: %w", err)
			}
			s.Data = map[string][]byte{corev1.DockerConfigJsonKey: text}
			return createObject(env, c, "Secret", s)
		},
	}
}

func createTLSCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "tls",
		Usage:     "create a Secret from a certificate and its key",
		ArgsUsage: "NAME",
		Description: `Creates a Secret of type kubernetes.io/tls. The key must belong to the
certificate.

Examples:
  podrun create secret tls site --cert=site.crt --key=site.key
`,
		Flags: createFlags(
			&cli.StringFlag{Name: "cert", Usage: "a PEM `FILE`"},
			&cli.StringFlag{Name: "key", Usage: "a PEM `FILE`"},
		),
		Action: func(c *cli.Context) error {
			if c.String("cert") == "" || c.String("key") == "" {
				return cmdutil.UsageErrorf("create secret tls", "create secret tls takes --cert and --key")
			}
			cert, err := readValue(env, c.String("cert"))
			if err != nil {
				return err
			}
			key, err := readValue(env, c.String("key"))
			if err != nil {
				return err
			}
			if _, err := tls.X509KeyPair(cert, key); err != nil {
				return report.New(report.Usage, "", "cannot make the secret: %w", err)
			}
			return createObject(env, c, "Secret", &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretTypeTLS,
				Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}})
		},
	}
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// createObject creates an object that does not exist yet.
func createObject(env *cmdutil.Env, c *cli.Context, kind string, object metav1.Object) error {
	format := c.String("output")
	switch {
	case c.NArg() != 1:
		return cmdutil.UsageErrorf("create", "create takes one name")
	case !slices.Contains([]string{"", "json", "yaml", "name"}, format):
		return cmdutil.UsageErrorf("create", "unknown output format %q: it is json, yaml or name", format)
	}
	object.SetName(c.Args().First())
	if c.IsSet("namespace") || env.Namespace != podclient.DefaultNamespace {
		object.SetNamespace(c.String("namespace"))
	}
	var text []byte
	var err error
	if format == "json" || format == "yaml" { // print it as requested, without defaults
		if text, err = printers.PrintList([]any{object}, true, printers.Format(format)); err != nil {
			return err
		}
	}
	made, err := manifest.NewObject(kind, object)
	if err != nil {
		return report.New(report.Usage, "", "cannot make it\n%w", err)
	}
	if cmdutil.DryRunOf(c) == cmdutil.DryRunNone {
		if err := createOnce(c.Context, env, made); err != nil {
			return err
		}
	}
	if text != nil {
		err = env.WriteSafe(text)
		return err
	}
	word := " created"
	if format == "name" {
		word = ""
	} else if cmdutil.DryRunOf(c) != cmdutil.DryRunNone {
		word += cmdutil.DryRunOf(c).Suffix()
	}
	fmt.Fprintf(env.Out, "%s%s\n", kindnames.Display(made.Stored), word)
	return nil
}

// createOnce stores an object, unless one of its name exists.
func createOnce(ctx context.Context, env *cmdutil.Env, o *manifest.Object) error {
	dirs, err := env.Dirs()
	if err != nil {
		return err
	}
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot keep %s: %w", kindnames.Display(o.Stored), err)
	}
	defer lock.Close()
	k, err := objects.Compare(env, dirs, o)
	if err != nil {
		return err
	}
	if k.Verb != "created" {
		return report.New(report.Failure, "podrun create … --dry-run -o yaml | podrun apply -f - changes it", "%s %q already exists", kindnames.Of(o.Stored.Kind), o.Stored.Name)
	}
	objects.WarnOfDisk(env, dirs, []*pod.Object{k.Object})
	if err := dirs.PutObject(k.Object); err != nil {
		return fmt.Errorf("cannot keep %s: %w", kindnames.Display(k.Object), err)
	}
	objects.NotifyPods(ctx, env, dirs, []*pod.Object{k.Object})
	return nil
}

func createNamespaceCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name: "namespace", Aliases: []string{"ns"},
		Usage:     "create a Namespace",
		ArgsUsage: "NAME",
		Description: `Creates a Namespace. Pods and objects do not need it: it holds labels, such as
those that enforce a Pod Security Standard for its pods.

Examples:
  podrun create namespace web
  podrun create ns web --dry-run -o yaml
`,
		Flags: createFlags()[1:], // a namespace is in no namespace
		Action: func(c *cli.Context) error {
			return createObject(env, c, "Namespace", &corev1.Namespace{TypeMeta: typeMeta("Namespace")})
		},
	}
}
