package system_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// TestComplete checks the completion of commands, options, their values and names.
func TestComplete(t *testing.T) {
	h := clitest.NewHost(t)
	h.UpDetached(clitest.ThreeContainers, nil)
	if got := h.Run("apply", "-f", h.File("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	for args, want := range map[string]string{
		"lo|":                "logs login logout",
		"image lo|":          "load",
		"logs --foll|":       "--follow",
		"logs |":             "web",
		"logs w|":            "web",
		"logs x|":            "",
		"logs web |":         "",
		"logs web -c |":      "prepare app log-shipper",
		"logs web -n x -c |": "",
		"exec web -- l|":     "",
		"get p|":             "pods persistentvolumeclaim persistentvolume",
		"get cm |":           "settings",
		"get cm/s|":          "cm/settings",
		"get pods -o js|":    "json jsonpath=",
		"get -o=x|":          "",
		"down -n d|":         "default",
		"down web |":         "web",
		"up |":               ":files",
		"up --network tp|":   "tproxy",
		"up -f |":            ":files",
		"cp we|":             "web: :files",
		"help image lo|":     "load",
		"completion f|":      "fish",
		"nosuch |":           "",
		"|":                  "up",
	} {
		words := strings.Split(strings.TrimSuffix(args, "|"), " ")
		got := h.Run(append([]string{"__complete"}, words...)...)
		var have []string
		for line := range strings.Lines(got.Out) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			have = append(have, word)
		}
		if args == "|" && len(have) > 1 {
			have = have[:1]
		}
		if got.Code != 0 || got.Err != "" || strings.Join(have, " ") != want {
			t.Errorf("%s: %q, want %q; %+v", args, strings.Join(have, " "), want, got)
		}
	}
	clitest.CheckResult(t, h.Run("completion", "tcsh"), 2, "", "podrun: no completion for \"tcsh\": use bash, zsh or fish\nhint: podrun completion --help\n")
}
