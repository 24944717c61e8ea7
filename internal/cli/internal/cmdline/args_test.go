package cmdline

import (
	"errors"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/report"
)

// logs has a flag of each kind.
func logs() *cli.Command {
	return &cli.Command{Name: "logs", Flags: []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}},
		&cli.StringFlag{Name: "container", Aliases: []string{"c"}},
		&cli.IntFlag{Name: "tail"},
		&cli.DurationFlag{Name: "since"},
	}}
}

func TestSplit(t *testing.T) {
	for args, want := range map[string]string{
		"web -f":                "-f | web | ",
		"-fc app web":           "-f -c app | web | ",
		"-fcapp web":            "-f -c=app | web | ",
		"web --tail -1":         "--tail -1 | web | ",
		"web --tail=3 -- -f":    "--tail=3 | web | -- -f",
		"-x web":                "-x | web | ",
		"-fx web":               "-fx | web | ",
		"- -f":                  "-f | - | ",
		"--container":           "--container |  | ",
		"-- web":                " |  | -- web",
		"--follow --since 1h a": "--follow --since 1h | a | ",
	} {
		flags, words, tail, whole := Split(logs(), strings.Fields(args))
		if got := strings.Join(flags, " ") + " | " + strings.Join(words, " ") + " | " + strings.Join(tail, " "); got != want || whole != (args != "--container") {
			t.Errorf("%s: %q, want %q; whole %t", args, got, want, whole)
		}
	}
	run := &cli.Command{Name: "run", Flags: logs().Flags}
	if flags, words, _, _ := Split(run, strings.Fields("-f busybox ls -f")); strings.Join(flags, " ") != "-f" || strings.Join(words, " ") != "busybox ls -f" {
		t.Errorf("run: %v %v", flags, words)
	}
	exec := &cli.Command{Name: "exec", Flags: logs().Flags}
	if flags, words, tail, _ := Split(exec, strings.Fields("web -c app ls -f -- x")); strings.Join(flags, " ") != "-c app" || strings.Join(words, " ") != "web ls -f -- x" || tail != nil {
		t.Errorf("exec: %v %v %v", flags, words, tail)
	}
}

func TestFlagValue(t *testing.T) {
	for args, want := range map[string]string{
		"web -c app": "app", "web -c=app": "app", "web": "", "-f web": "", "-c a --container=b": "b", "-capp": "app", "-- -c app": "",
	} {
		if got := FlagValue(logs(), strings.Fields(args), "container"); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestNearest: a third of the letters may be wrong, at most two.
func TestNearest(t *testing.T) {
	names := []string{"logs", "image", "describe", "up"}
	for word, want := range map[string]string{"lgos": "logs", "log": "logs", "imag": "image", "descrybe": "describe", "discrybes": "", "xy": "", "u": "", "ub": "up", "frobnicate": ""} {
		if got := nearest(word, names); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestUsageError(t *testing.T) {
	for text, want := range map[string]string{
		"flag provided but not defined: -folow":                                                    "unknown option --folow; did you mean --follow? podrun logs --help lists the options",
		"flag provided but not defined: -cont":                                                     "unknown option --cont; did you mean --container? podrun logs --help lists the options",
		"flag provided but not defined: -z":                                                        "unknown option -z; podrun logs --help",
		"flag needs an argument: --container":                                                      "option --container needs a value; podrun logs --help",
		"flag needs an argument: -c":                                                               "option -c needs a value; podrun logs --help",
		`invalid value "x" for flag -tail: parse error`:                                            `option --tail cannot be "x": use a whole number; podrun logs --help`,
		`invalid value "5" for flag -since: parse error`:                                           `option --since cannot be "5": use a duration such as 90s, 5m or 2h; podrun logs --help`,
		`invalid boolean value "maybe" for -f: strconv.ParseBool: parsing "maybe": invalid syntax`: `option -f cannot be "maybe": use true or false; podrun logs --help`,
	} {
		err := UsageError("podrun logs", logs())(nil, errors.New(text), false)
		if got := err.Error() + "; " + report.Hint(err); got != want || report.ClassOf(err) != report.Usage {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}
