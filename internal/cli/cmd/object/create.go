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

	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/kindnames"
	"github.com/podrun/podrun/internal/cli/internal/objects"
	"github.com/podrun/podrun/internal/cli/internal/podclient"
	"github.com/podrun/podrun/internal/cli/internal/resource"
	"github.com/podrun/podrun/internal/manifest"
	"github.com/podrun/podrun/internal/manifest/printers"
	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/report"
)

// NewCreateCommand returns the command create. fromFiles has the flags and the action of create -f.
func NewCreateCommand(env *cmdutil.Env, fromFiles *cli.Command) *cli.Command {
	none := cmdline.NeedSubcommand("create", "create requires -f and a file, or one of configmap, deployment, job, namespace and secret")
	return &cli.Command{
		Name:      "create",
		Usage:     "create objects from files, or one object from options",
		ArgsUsage: "COMMAND | -f FILE",
		Description: `Creates objects, as kubectl create does, and returns. With -f FILE it creates
the objects of a file, and their pods; with one of the commands below it creates
one object from options. An object that exists is an error: podrun apply changes
it. With --dry-run -o yaml these commands create nothing and print the object,
for podrun apply -f -.

Examples:
  podrun create -f web.yaml
  podrun create deployment web --image=nginx --replicas=2
  podrun create configmap settings --from-file=app.ini --from-literal=color=blue
  podrun create secret generic login --from-file=password=pw.txt
`,
		Flags:       fromFiles.Flags,
		Subcommands: []*cli.Command{createConfigMapCommand(env), createDeploymentCommand(env), createJobCommand(env), createNamespaceCommand(env), createSecretCommand(env)},
		Action:      cmdline.IfSet("filename", fromFiles.Action, cmdline.IfSet("kustomize", fromFiles.Action, none)),
	}
}

func createSecretCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:  "secret",
		Usage: "create a Secret",
		Description: `Creates a Secret. It is stored in memory only: a reboot clears it.

Examples:
  podrun create secret generic login --from-file=password=pw.txt
  podrun create secret tls site --cert=site.crt --key=site.key
`,
		Subcommands: []*cli.Command{createGenericCommand(env), createRegistryCommand(env), createTLSCommand(env)},
		Action:      cmdline.NeedSubcommand("create secret", "create secret requires one of generic, docker-registry and tls"),
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
		Flags:  createFlags(append(dataFlags(), &cli.BoolFlag{Name: "immutable", Usage: "make the data immutable"})...),
		Action: createAction(env, "ConfigMap", (*createOptions).configMap),
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
		Flags:  createFlags(append(dataFlags(), &cli.StringFlag{Name: "type", Usage: "the secret's `TYPE` (Opaque if not given)"})...),
		Action: createAction(env, "Secret", (*createOptions).genericSecret),
	}
}

// dockerHub is the key of docker.io in auth files. docker.io is the registry of images whose names contain
// none.
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
			&cli.StringFlag{Name: "docker-username", Usage: "the name of the `USER`"},
			&cli.StringFlag{Name: "docker-password", Usage: "the `PASSWORD` of the user"},
			&cli.StringFlag{Name: "docker-email", Usage: "the mail `ADDRESS` of the user"},
			&cli.StringSliceFlag{Name: "from-file", Usage: "use the logins in this auth `FILE`"},
		),
		Action: createAction(env, "Secret", (*createOptions).registrySecret),
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
		Action: createAction(env, "Secret", (*createOptions).tlsSecret),
	}
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

// createOptions are the options of all commands of create; most commands have only some.
type createOptions struct {
	env    *cmdutil.Env
	kind   string
	object func(*createOptions) (metav1.Object, error)

	words             []string
	namespace, format string // namespace "": the environment's
	dryRun            cmdutil.DryRun

	fromFile, fromLiteral, fromEnvFile []string
	immutable                          bool
	secretType                         string
	server, user, password, email      string
	cert, key                          string

	images         []string
	replicas, port int      // port 0: none
	command        []string // after "--"
	from           string   // KIND/NAME
	cron           *pod.Object
}

func createAction(env *cmdutil.Env, kind string, object func(*createOptions) (metav1.Object, error)) cli.ActionFunc {
	return cmdutil.Action(func() cmdutil.Command { return &createOptions{env: env, kind: kind, object: object} })
}

func (o *createOptions) Complete(c *cli.Context) error {
	o.words, o.format, o.dryRun = c.Args().Slice(), c.String("output"), cmdutil.DryRunOf(c)
	if c.IsSet("namespace") || o.env.Namespace != podclient.DefaultNamespace {
		o.namespace = c.String("namespace")
	}
	o.fromFile, o.fromLiteral, o.fromEnvFile = c.StringSlice("from-file"), c.StringSlice("from-literal"), c.StringSlice("from-env-file")
	o.immutable, o.secretType = c.Bool("immutable"), c.String("type")
	o.server, o.user, o.password, o.email = c.String("docker-server"), c.String("docker-username"), c.String("docker-password"), c.String("docker-email")
	o.cert, o.key = c.String("cert"), c.String("key")
	o.images, o.replicas, o.port, o.from = c.StringSlice("image"), c.Int("replicas"), c.Int("port"), c.String("from")
	if i := slices.Index(o.words, "--"); i >= 0 && cmdline.FindFlag(c.Command, "image") != nil {
		o.words, o.command = o.words[:i], o.words[i+1:]
	}
	return nil
}

func (o *createOptions) Validate() error {
	switch {
	case len(o.words) != 1:
		return cmdutil.UsageErrorf("create", "create requires one name")
	case !slices.Contains([]string{"", "json", "yaml", "name"}, o.format):
		return cmdutil.UsageErrorf("create", "unknown output format %q: use json, yaml or name", o.format)
	}
	return nil
}

// Run creates an object that does not exist yet.
func (o *createOptions) Run(ctx context.Context) error {
	object, err := o.object(o)
	if err != nil {
		return err
	}
	object.SetName(o.words[0])
	object.SetNamespace(o.namespace)
	var text []byte
	if o.format == "json" || o.format == "yaml" { // print it as requested, without defaults
		if text, err = printers.PrintList([]any{object}, true, printers.Format(o.format)); err != nil {
			return err
		}
	}
	made, err := manifest.NewObject(o.kind, object)
	if err != nil {
		return report.New(report.Usage, "", "cannot create the object\n%w", err)
	}
	if o.cron != nil {
		made.Stored.Owner = &pod.Owner{Kind: o.cron.Kind, Name: o.cron.Name, UID: o.cron.UID}
		made.Stored.RequireLimits, made.Stored.TLSVerify = o.cron.RequireLimits, o.cron.TLSVerify
	}
	if o.dryRun == cmdutil.DryRunNone {
		if err := createOnce(ctx, o.env, made); err != nil {
			return err
		}
		if err := o.startController(made.Stored); err != nil {
			return err
		}
	}
	if text != nil {
		return o.env.WriteSafe(text)
	}
	word := " created"
	if o.format == "name" {
		word = ""
	} else if o.dryRun != cmdutil.DryRunNone {
		word += o.dryRun.Suffix()
	}
	fmt.Fprintf(o.env.Out, "%s%s\n", kindnames.Display(made.Stored), word)
	return nil
}

func (o *createOptions) configMap() (metav1.Object, error) {
	cm := &corev1.ConfigMap{TypeMeta: typeMeta("ConfigMap")}
	data, err := o.data()
	for key, value := range data {
		putText(&cm.Data, &cm.BinaryData, key, value)
	}
	if o.immutable {
		cm.Immutable = new(true)
	}
	return cm, err
}

func (o *createOptions) genericSecret() (metav1.Object, error) {
	data, err := o.data()
	return &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretType(o.secretType), Data: data}, err
}

func (o *createOptions) registrySecret() (metav1.Object, error) {
	s := &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretTypeDockerConfigJson}
	if len(o.fromFile) > 0 {
		data, err := o.data()
		for _, value := range data {
			s.Data = map[string][]byte{corev1.DockerConfigJsonKey: value}
		}
		return s, err
	}
	if o.user == "" || o.password == "" {
		return nil, cmdutil.UsageErrorf("create secret docker-registry", "create secret docker-registry requires --docker-username and --docker-password, or --from-file")
	}
	entry := map[string]string{"username": o.user, "password": o.password, "auth": base64.StdEncoding.EncodeToString([]byte(o.user + ":" + o.password))}
	if o.email != "" {
		entry["email"] = o.email
	}
	text, err := json.Marshal(map[string]any{"auths": map[string]any{o.server: entry}})
	if err != nil {
		return nil, fmt.Errorf("encode the registry's login: %w", err)
	}
	s.Data = map[string][]byte{corev1.DockerConfigJsonKey: text}
	return s, nil
}

func (o *createOptions) tlsSecret() (metav1.Object, error) {
	if o.cert == "" || o.key == "" {
		return nil, cmdutil.UsageErrorf("create secret tls", "create secret tls requires --cert and --key")
	}
	cert, err := readValue(o.env, o.cert)
	if err != nil {
		return nil, err
	}
	key, err := readValue(o.env, o.key)
	if err != nil {
		return nil, err
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return nil, report.New(report.Usage, "", "cannot create the secret: %w", err)
	}
	return &corev1.Secret{TypeMeta: typeMeta("Secret"), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}}, nil
}

// createOnce stores an object, unless one of its name exists.
func createOnce(ctx context.Context, env *cmdutil.Env, o *manifest.Object) error {
	dirs, err := env.Dirs()
	if o.IsWorkload() && err == nil {
		_, err = env.Preflight(ctx, false)
	}
	if err != nil {
		return err
	}
	lock, err := dirs.LockObjects()
	if err != nil {
		return fmt.Errorf("cannot store %s: %w", kindnames.Display(o.Stored), err)
	}
	defer lock.Close()
	if err := admission.CheckPodSecurity(env, dirs, resource.Documents{Workloads: workloadsOf(o)}, ""); err != nil {
		return err
	}
	k, err := objects.Compare(env, dirs, o)
	if err != nil {
		return err
	}
	if k.Verb != "created" {
		return report.New(report.Failure, "podrun create … --dry-run -o yaml | podrun apply -f - changes it", "%s %q already exists", kindnames.Of(o.Stored.Kind), o.Stored.Name)
	}
	objects.WarnOfDisk(env, dirs, []*pod.Object{k.Object})
	if err := dirs.PutObject(k.Object); err != nil {
		return fmt.Errorf("cannot store %s: %w", kindnames.Display(k.Object), err)
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
		Action: createAction(env, "Namespace", func(*createOptions) (metav1.Object, error) {
			return &corev1.Namespace{TypeMeta: typeMeta("Namespace")}, nil
		}),
	}
}
