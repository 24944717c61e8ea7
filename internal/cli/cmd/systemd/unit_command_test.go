package systemd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/systemd"
	"github.com/podrun/podrun/internal/systemd/systemdtest"
)

const multi = clitest.OneContainer + "---" + `
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: prod}
spec:
  terminationGracePeriodSeconds: 90
  containers:
  - {name: app, image: "busybox:1"}
`

func TestShowUnit(t *testing.T) {
	h := clitest.NewHost(t)
	h.Env["XDG_CONFIG_HOME"] = t.TempDir()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := h.Env["XDG_CONFIG_HOME"]
	for name, tc := range map[string]struct {
		file, text string
		want       []string
	}{
		"a pod": {"x.yaml", clitest.OneContainer, []string{
			"# " + config + "/systemd/user/podrun@web.service\n", "\nRestart=on-abnormal\n", "\nTimeoutStopSec=37\n", " up " + config + "/podrun/pods/web.yaml\n"}},
		"several pods": {"site.yaml", multi, []string{"/podrun@site.service\n", "\nDescription=Pods web, db\n", "\nTimeoutStopSec=120\n", "\nRestart=on-failure\n"}},
		"Quadlet": {"q.kube", "[Kube]\nYaml=x.yaml\nLogDriver=none\n[Service]\nRestart=always\n", []string{
			"/q.service\n", " up --exit-code-from none --quiet " + dir + "/x.yaml\n", "\nRestart=always\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			write("x.yaml", clitest.OneContainer)
			got := h.Run("systemd", "show", write(tc.file, tc.text))
			if got.Code != 0 || got.Err != "" {
				t.Fatalf("%+v", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("there is no %q in\n%s", want, got.Out)
				}
			}
		})
	}
	if got := h.Run("systemd", "show", "--template"); got.Code != 0 || !strings.Contains(got.Out, "up %E/podrun/pods/%i.yaml\n") {
		t.Errorf("%+v", got)
	}
	for scope, target := range map[string]string{"--user": "default.target", "--system": "multi-user.target"} { // both, whoever asks
		if got := h.Run("systemd", "show", "--template", scope); got.Code != 0 || !strings.Contains(got.Out, "WantedBy="+target+"\n") {
			t.Errorf("%s: %+v", scope, got)
		}
	}
}

func TestUnitRefusals(t *testing.T) {
	h := clitest.NewHost(t)
	h.Env["XDG_CONFIG_HOME"] = t.TempDir()
	bad := h.File("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {}\n")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing":              {[]string{"install"}, 2, "systemd install requires one file"},
		"both":                 {[]string{"install", "--user", "--system", "x"}, 2, "--user and --system are mutually exclusive"},
		"the system's":         {[]string{"install", "--system", "x"}, 2, "--system requires root"},
		"a bad manifest":       {[]string{"install", bad}, 2, "spec.containers: Required value"},
		"a bad name":           {[]string{"install", "--name", "A B", h.File(clitest.OneContainer)}, 2, `"A B" cannot be the unit's name`},
		"standard input":       {[]string{"install", "-"}, 2, "requires a name"},
		"no unit":              {[]string{"show", "web"}, 1, `there is no unit "web" of podrun`},
		"a path to uninstall":  {[]string{"show", "../web"}, 1, "there is no unit"},
		"nothing to uninstall": {[]string{"uninstall"}, 2, "uninstall requires the names of units"},
		"an unknown command":   {[]string{"instal"}, 2, "did you mean podrun systemd install?"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(append([]string{"systemd"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Err, tc.want) {
				t.Errorf("%+v", got)
			}
		})
	}
	entries, err := os.ReadDir(h.Env["XDG_CONFIG_HOME"])
	if err != nil || len(entries) > 0 {
		t.Errorf("something was made: %v %v", entries, err)
	}
}

// TestInstallNodeWords: options of podrun node come after --, and none is ignored.
func TestInstallNodeWords(t *testing.T) {
	h := clitest.NewHost(t)
	for message, args := range map[string][]string{
		"options of podrun node come after --, not attic": {"systemd", "install-node", "attic"},
		"node takes no arguments: --node-name attic":      {"node", "--", "--node-name", "attic"},
	} {
		if got := h.Run(args...); got.Code != 2 || !strings.Contains(got.Err, message) {
			t.Errorf("%v: %+v, not %q", args, got, message)
		}
	}
}

// TestShowFollow: the service of podrun follow is shown with its timer.
func TestShowFollow(t *testing.T) {
	h := clitest.NewHost(t)
	h.Env["XDG_CONFIG_HOME"] = t.TempDir()
	dir := filepath.Join(h.Env["XDG_CONFIG_HOME"], "systemd/user")
	f := systemd.Follow{Name: "set", Program: "/usr/bin/podrun", Source: "/srv/set"}
	service, timer := filepath.Join(dir, f.ServiceName()), filepath.Join(dir, systemd.FollowTimer(f.ServiceName()))
	for path, text := range map[string][]byte{service: f.ServiceFile(), timer: f.TimerFile()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := "# " + service + "\n" + string(f.ServiceFile()) + "\n# " + timer + "\n" + string(f.TimerFile())
	for _, word := range []string{"follow-set", "podrun-follow-set", "podrun-follow-set.service"} {
		clitest.CheckResult(t, h.Run("systemd", "show", word), 0, want, "")
	}
	if got := h.Run("systemd", "show", "set"); got.Code != 1 {
		t.Errorf("the name of the set alone: %+v", got)
	}
}

// TestInstallFollow installs, changes, starts and uninstalls the units of podrun follow.
func TestInstallFollow(t *testing.T) {
	h := clitest.NewHost(t)
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	h.Env["XDG_CONFIG_HOME"] = t.TempDir()
	manager := systemdtest.Start(t, runtime)
	dir := filepath.Join(h.Env["XDG_CONFIG_HOME"], "systemd/user")
	const service, timer, source = "podrun-follow-set.service", "podrun-follow-set.timer", "oci://registry.example.org/team/set:1"
	has := func(file, line string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), line+"\n") {
			t.Errorf("there is no %q in %s: %v\n%s", line, file, err, text)
		}
	}
	run := func(code int, out, message, calls string, args ...string) {
		t.Helper()
		got := h.Run(append([]string{"systemd"}, args...)...)
		if got.Code != code || got.Out != out || !strings.Contains(got.Err, message) {
			t.Errorf("%v: %+v", args, got)
		}
		if made := strings.ReplaceAll(strings.ReplaceAll(manager.Calls(), service, "S"), timer, "T"); made != strings.ReplaceAll(calls, ", ", "\n") {
			t.Errorf("%v: the manager was asked\n%s", args, made)
		}
	}
	const enable = "Reload, EnableUnitFiles T, Reload, Reload, DisableUnitFiles S, EnableUnitFiles S, Reload"
	run(0, service+" installed\n"+timer+" installed\n", "systemctl --user start podrun-follow-set.timer podrun-follow-set starts them now", enable,
		"install-follow", "--every", "1h", source, "--", "--allow-older")
	has(service, " follow --once --name set --allow-older "+source)
	has(timer, "OnUnitInactiveSec=3600s")

	const unchanged = "EnableUnitFiles T, Reload, EnableUnitFiles S, Reload"
	run(0, service+" unchanged\n"+timer+" unchanged\n", "", unchanged+", StartUnit T, ResetFailedUnit S, StartUnit S",
		"install-follow", "--now", "--every", "1h", source, "--", "--allow-older")
	manager.Refuse(false, "StartUnit")
	run(1, service+" unchanged\n"+timer+" unchanged\n", timer+" does not start", unchanged+", StartUnit T", "install-follow", "--now", "--every", "1h", source, "--", "--allow-older")

	manager.Refuse(true, "") // and the former timer stays
	run(2, "", `systemd does not accept --on-calendar "sometimes"`, "Reload, Reload, TryRestartUnit T", "install-follow", "--on-calendar", "sometimes", source)
	has(timer, "OnUnitInactiveSec=3600s")
	manager.Refuse(false, "")
	run(0, service+" unchanged\n"+timer+" installed\n", "", "Reload, TryRestartUnit T, "+unchanged, "install-follow", "--on-calendar", "daily", source, "--", "--allow-older")
	has(timer, "OnCalendar=daily")
	run(1, "", "podrun-follow-set.service follows "+source, "", "install-follow", "oci://registry.example.org/other/set")

	run(0, timer+" uninstalled\n"+service+" uninstalled\n", "podrun follow rm set removes them",
		"StopUnit T, StopUnit S, DisableUnitFiles T, DisableUnitFiles S, Reload, ResetFailedUnit T, ResetFailedUnit S", "uninstall", "follow-set")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	manager.Refuse(true, "")
	run(2, "", "systemd does not accept", "Reload, Reload", "install-follow", "--on-calendar", "sometimes", source)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left after a refusal: %v, %v", left, err)
	}
}

func TestInstallFollowRefusals(t *testing.T) {
	h := clitest.NewHost(t)
	h.Env["XDG_CONFIG_HOME"] = t.TempDir()
	for message, args := range map[string][]string{
		"systemd install-follow requires one source":       {"--", "--once"},
		"options of podrun follow come after --, not b":    {"oci://a/b", "b"},
		"--every must be at least 1s, not 10ms":            {"oci://a/b", "--every", "10ms"},
		"--every and --on-calendar are mutually exclusive": {"oci://a/b", "--every", "10m", "--on-calendar", "daily"},
		"control characters":                               {"oci://a/b", "--on-calendar", "daily\nUnit=x.service"},
		"cannot follow oci://a/B":                          {"oci://a/B"},
		"cannot follow it: stat nosuch: no such file":      {"nosuch"},
		`"a.b" cannot be the name of a set`:                {"oci://a/b", "--name", "a.b"},
		`"a_b" cannot be the name of a set`:                {"oci://registry.example.org/a_b"},
		"--every comes before --":                          {"oci://a/b", "--", "--every", "1m"},
		"--user and --system are mutually exclusive":       {"--user", "--system", "oci://a/b"},
	} {
		if got := h.Run(append([]string{"systemd", "install-follow"}, args...)...); got.Code != 2 || !strings.Contains(got.Err, message) {
			t.Errorf("%v: %+v, not %q", args, got, message)
		}
	}
}
