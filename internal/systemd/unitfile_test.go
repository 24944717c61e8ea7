package systemd

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnitFile(t *testing.T) {
	s := Service{
		Name: "web", Description: "Pod web", Program: "/opt/a b/pod$run", Args: []string{"--exit-code-from", "any"},
		Files: []string{`/home/dev/50% "off" $HOME;/web.yaml`}, Manifest: "/home/dev/50%/web.yaml", Source: "/src", Grace: 10 * time.Second, RestartOnFailure: true,
	}
	text := string(s.File("podrun@web.service"))
	for _, want := range []string{
		"\nType=notify\nNotifyAccess=all\n",
		"\n" + `ExecStart="/opt/a b/pod$run" up --exit-code-from any "/home/dev/50%% \"off\" $$HOME;/web.yaml"` + "\n",
		"\n" + `ExecStopPost=-"/opt/a b/pod$run" systemd stop-post` + "\n",
		"\nTimeoutStopSec=40\n", "\nRestart=on-failure\n", "\nWatchdogSec=30\n", "\nKillMode=mixed\n",
		"\nWantedBy=default.target\n", "\nStartLimitIntervalSec=0\n", "\nRestartPreventExitStatus=2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "network-online") || strings.Contains(text, "docker.service") {
		t.Error("a unit of the user waits for a unit of the system, which there is not")
	}
	if !IsGenerated([]byte(text)) || IsGenerated([]byte("[Unit]\n")) {
		t.Error("podrun's units are not told from others")
	}
	if got := ManifestOf([]byte(text)); got != s.Manifest {
		t.Errorf("the manifest of the unit is %q", got)
	}
	if got := ManifestOf([]byte("[Unit]\nManifest=/etc/passwd\n")); got != "" {
		t.Errorf("%q is taken for the unit's own", got)
	}
	s.System, s.RestartOnFailure = true, false
	text = string(s.File("podrun@web.service"))
	for _, want := range []string{"\nAfter=network-online.target\n", "\nAfter=docker.service libvirtd.service firewalld.service ufw.service nftables.service\n", "\nRestart=on-abnormal\n", "\nWantedBy=multi-user.target\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in the system's unit\n%s", want, text)
		}
	}
}

func TestNodeFile(t *testing.T) {
	const want = `# Made by podrun systemd install. Changes are lost when it is run again: put them
# into a drop-in (systemctl --user edit podrun-node.service).

[Unit]
Description=podrun node: pods of a Kubernetes cluster
StartLimitIntervalSec=0

[Service]
ExecStart="/opt/a b/podrun" node --node-labels "a=b c"
KillMode=process
TimeoutStopSec=15min
Restart=always
RestartSec=2
RestartPreventExitStatus=2

[Install]
WantedBy=default.target

[X-Podrun]
Source=podrun systemd install-node
`
	if diff := cmp.Diff(want, string(NodeFile("/opt/a b/podrun", []string{"--node-labels", "a=b c"}, false))); diff != "" {
		t.Error(diff)
	}
	system := string(NodeFile("/usr/bin/podrun", nil, true))
	for _, want := range []string{"\nAfter=network-online.target\n", "\nWantedBy=multi-user.target\n"} {
		if !strings.Contains(system, want) {
			t.Errorf("there is no %q in the system's unit\n%s", want, system)
		}
	}
}

// File is deterministic: an unchanged unit is not installed again.
func TestUnitFileIsTheSameEachTime(t *testing.T) {
	s := Service{Extra: map[string][]string{"Unit": {"A=1"}, "X-C": {"C=1"}, "X-A": {"A=1"}, "X-B": {"B=1"}, "X-D": {"D=1"}}}
	text := string(s.File("web.service"))
	if !strings.Contains(text, "\n[X-A]\nA=1\n\n[X-B]\nB=1\n\n[X-C]\nC=1\n\n[X-D]\nD=1\n") {
		t.Errorf("sections in no order:\n%s", text)
	}
}

func TestTemplate(t *testing.T) {
	text := string(Template("/usr/bin/podrun", false))
	for _, want := range []string{
		"\nExecStart=/usr/bin/podrun up %E/podrun/pods/%i.yaml\n", "\nDescription=Pod %i\n", "\nSyslogIdentifier=%i\n",
		"\nExecReload=/usr/bin/podrun up --detach --timeout 60s %E/podrun/pods/%i.yaml\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "X-Podrun") || strings.Contains(text, "%%") {
		t.Errorf("a template belongs to no file:\n%s", text)
	}
}

func TestUnitOfACgroup(t *testing.T) {
	const user = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
	for cgroup, want := range map[string]Unit{
		user + "/app.slice/app-podrun.slice/podrun@web.service":          {"podrun@web.service", "app-podrun.slice"},
		user + "/app.slice/app-podrun.slice/podrun@web.service/.control": {"podrun@web.service", "app-podrun.slice"},
		user + "/app.slice/q.service/supervisor":                         {"q.service", "app.slice"},
		"/sys/fs/cgroup/system.slice/podrun@web.service":                 {"podrun@web.service", "system.slice"},
		"/sys/fs/cgroup/system.slice/_cpu.service":                       {"cpu.service", "system.slice"},
		user + "/app.slice/podrun-default-web.scope/supervisor":          {},
		user: {}, "/sys/fs/cgroup": {},
	} {
		if got, ok := unitOf(cgroup); got != want || ok != (want != Unit{}) {
			t.Errorf("%s: %+v, want %+v", cgroup, got, want)
		}
	}
}

func TestUnitPath(t *testing.T) {
	if got := unitPath("podrun@web-1.service"); got != "/org/freedesktop/systemd1/unit/podrun_40web_2d1_2eservice" {
		t.Error(got)
	}
}

func TestFilesOf(t *testing.T) {
	files := []string{"/a b/c.yaml", `/q"u\o$te%s.yaml`, "/plain.yaml"}
	s := Service{Name: "x", Program: "/usr/bin/podrun", Args: []string{"--quiet"}, PodOptions: []string{"--allow-unsafe-sysctl", "net.*"}, Files: files}
	if diff := cmp.Diff(files, FilesOf(s.File("podrun@x.service"))); diff != "" {
		t.Error(diff)
	}
	if got := FilesOf([]byte("[Service]\nExecStart=/bin/true\n")); got != nil {
		t.Errorf("of another's unit: %q", got)
	}
}
