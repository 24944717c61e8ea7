package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/report"
)

// pullOptions are what the flags and the environment say about registries.
func (f *front) pullOptions(c *cli.Context) (image.PullOptions, error) {
	var o image.PullOptions
	if c.IsSet("tls-verify") {
		verify := c.Bool("tls-verify")
		o.TLSVerify = &verify
	}
	o.AuthFile = cmp.Or(c.String("authfile"), f.getenv("REGISTRY_AUTH_FILE"))
	if _, err := os.Stat(o.AuthFile); o.AuthFile != "" && err != nil && c.Command.Name != "login" {
		return o, report.New(report.Usage, "podrun login --authfile FILE makes it", "look at the file of logins: %w", err)
	}
	return o, nil
}

func (f *front) warn(err error) {
	fmt.Fprintln(f.err, report.Escape("podrun: warning: "+err.Error()))
}

// pullPolicies are the words of --pull, and what they mean. podman and docker have them.
var pullPolicies = map[string]string{
	"always": image.Always, "missing": image.IfNotPresent, "never": image.Never, "newer": image.Newer,
}

func pullFlag() cli.Flag {
	return &cli.StringFlag{Name: "pull", Usage: "what to do about images instead of their imagePullPolicy, this time: `POLICY` is always, missing, never, or newer, which is always, but takes what is here if the registry cannot be asked"}
}

func checkPull(c *cli.Context) error {
	word := c.String("pull")
	if _, known := pullPolicies[word]; c.IsSet("pull") && !known {
		return usageErrorf("up", "--pull takes always, missing, never or newer, not %q", word)
	}
	return nil
}

// pullAs has all images pulled by one policy, whatever the manifests say.
func (l *launch) pullAs(word string) {
	for _, p := range slices.Concat(l.pods, l.samples) {
		p.pull = pullPolicies[word]
	}
}
