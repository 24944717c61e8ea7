package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/cli/internal/tty"
	"github.com/podrun/podrun/internal/report"
)

// NewLoginCommand returns the command login.
func NewLoginCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "login",
		Usage:     "log in to a registry",
		ArgsUsage: "[REGISTRY]",
		Description: `Checks the user name and the password with the registry and stores them for
pulls: in ${XDG_RUNTIME_DIR}/containers/auth.json, as podman does, which is gone
after a reboot, or in the file of --authfile or the variable REGISTRY_AUTH_FILE.
If registries.conf or that file names a credential helper, the helper stores
them. podrun also uses logins of docker and podman. The default registry is
docker.io; REGISTRY may have a path, for some repositories only.

Examples:
  podrun login registry.example.org
  pass registry | podrun login -u me --password-stdin registry.example.org
  podrun login --get-login registry.example.org
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "username", Aliases: []string{"u"}, Usage: "the `USER`; on a terminal the command prompts for it"},
			&cli.StringFlag{Name: "password", Aliases: []string{"p"}, Usage: "the `PASSWORD`; other users can see it in the list of processes: prefer --password-stdin"},
			&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from standard input"},
			&cli.BoolFlag{Name: "get-login", Usage: "print the user of the stored login, and do not log in"},
			cmdutil.AuthfileFlag(), cmdutil.TLSVerifyFlag(),
		},
		Action: func(c *cli.Context) error { return runLogin(env, c) },
	}
}

func runLogin(env *cmdutil.Env, c *cli.Context) error {
	registryName, err := registryArg(c, "login")
	if err != nil {
		return err
	}
	options, err := env.PullOptions(c)
	if err != nil {
		return err
	}
	program, err := env.ImageProgram()
	if err != nil {
		return err
	}
	if c.Bool("get-login") {
		user, err := program.LoginUser(c.Context, registryName, options)
		if err == nil {
			fmt.Fprintln(env.Out, report.Escape(user))
		}
		return err
	}
	a, err := readAccount(env, c, registryName)
	if err != nil {
		return err
	}
	where, err := program.Login(c.Context, a, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.ErrOut, "podrun: logged in to %s; the login is stored in %s\n", registryName, report.Escape(where))
	return nil
}

// registryArg returns the registry that a command names.
func registryArg(c *cli.Context, command string) (string, error) {
	switch c.NArg() {
	case 0:
		return "docker.io", nil
	case 1:
		return image.RegistryKey(c.Args().First())
	}
	return "", cmdutil.UsageErrorf(command, "%s requires one registry", command)
}

// readAccount prompts for the credentials that the flags do not contain.
func readAccount(env *cmdutil.Env, c *cli.Context, registry string) (image.Account, error) {
	a := image.Account{Registry: registry, User: c.String("username"), Password: c.String("password")}
	if c.Bool("password-stdin") {
		if a.User == "" || c.IsSet("password") {
			return a, cmdutil.UsageErrorf("login", "--password-stdin requires --username, and excludes --password")
		}
		text, err := io.ReadAll(io.LimitReader(env.In, 64<<10))
		if err != nil {
			return a, fmt.Errorf("read the password: %w", err)
		}
		a.Password = strings.TrimRight(string(text), "\r\n")
		return a, passwordGiven(a)
	}
	terminal, ok := tty.File(env.In)
	if !ok && (a.User == "" || a.Password == "") {
		return a, cmdutil.UsageErrorf("login", "there is no terminal: --username and --password-stdin are required")
	}
	if a.User == "" {
		fmt.Fprint(env.ErrOut, "User name: ")
		line, err := bufio.NewReader(terminal).ReadString('\n')
		if a.User = strings.TrimSpace(line); err != nil || a.User == "" {
			return a, errors.Join(errors.New("no user name was given"), err)
		}
	}
	if a.Password == "" {
		fmt.Fprint(env.ErrOut, "Password: ")
		text, err := tty.Hidden(terminal)
		fmt.Fprintln(env.ErrOut)
		if err != nil {
			return a, fmt.Errorf("read the password: %w", err)
		}
		a.Password = text
	}
	return a, passwordGiven(a)
}

func passwordGiven(a image.Account) error {
	if a.Password == "" {
		return report.New(report.Usage, "", "no password was given")
	}
	return nil
}

// NewLogoutCommand returns the command logout.
func NewLogoutCommand(env *cmdutil.Env) *cli.Command {
	return &cli.Command{
		Name:      "logout",
		Usage:     "remove the login to a registry",
		ArgsUsage: "[REGISTRY]",
		Description: `Removes the stored login to a registry (default: docker.io).

Examples:
  podrun logout registry.example.org
  podrun logout --all
`,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "remove all logins"}, cmdutil.AuthfileFlag()},
		Action: func(c *cli.Context) error {
			registryName, err := registryArg(c, "logout")
			if err != nil {
				return err
			}
			options, err := env.PullOptions(c)
			if err != nil {
				return err
			}
			if c.Bool("all") {
				if c.Args().Present() {
					return cmdutil.UsageErrorf("logout", "--all and a registry are mutually exclusive")
				}
				registryName = ""
			}
			program, err := env.ImageProgram()
			if err != nil {
				return err
			}
			if err := program.Logout(c.Context, registryName, options); err != nil {
				return err
			}
			if registryName == "" {
				registryName = "all registries"
			}
			fmt.Fprintf(env.ErrOut, "podrun: logged out of %s\n", registryName)
			return nil
		},
	}
}
