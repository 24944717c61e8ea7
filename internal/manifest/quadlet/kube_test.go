package quadlet

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podrun/podrun/internal/manifest/runpod"
)

// testSet are files, named in their first line as in "# web.kube", of a machine.
func testSet(texts ...string) *Set {
	s := &Set{Files: map[string][]File{}, Specifiers: map[byte]string{'h': "/home/dev"}, Host: runpod.Host{
		SELinux:     func() bool { return false },
		ReadEnvFile: func(path string) ([]string, error) { return []string{"FILE=" + path}, nil },
		Stat: func(path string) (fs.FileMode, error) {
			if path == "/dev/null" || path == "/dev/fuse" {
				return fs.ModeDevice | fs.ModeCharDevice, nil
			}
			return 0, fs.ErrNotExist
		},
	}}
	for _, text := range texts {
		first, rest, _ := strings.Cut(text, "\n")
		name := strings.TrimPrefix(first, "# ")
		file, _, dropIn := strings.Cut(name, ".d/")
		if dropIn {
			name = file + ".d/" + strings.TrimPrefix(name, file+".d/")
		}
		s.Files[file] = append(s.Files[file], File{"/q/" + name, rest})
	}
	return s
}

func parseKube(text string, dropIns ...string) (*Unit, error) {
	s := testSet("# web.kube\n"+text, "# db.kube\n[Kube]\nYaml=db.yaml\n", "# basic.network\n[Network]\n")
	for _, d := range dropIns {
		s.Files["web.kube"] = append(s.Files["web.kube"], File{"/q/web.kube.d/10.conf", d})
	}
	return s.Unit("web.kube")
}

func TestKube(t *testing.T) {
	got, err := parseKube("[Unit]\nDescription=The site\nRequires=db.kube \\\n # in between\n other.service\n"+
		"[Kube]\nYaml=\"web.yaml\"\nYaml=%h/50%%/more.yaml\nConfigMap=settings.yaml\nExitCodePropagation=any\nKubeDownForce=yes\nLogDriver=k8s-file\nNetwork=none\nServiceName=site\nSetWorkingDirectory=unit\nPublishPort=1:1\nPublishPort=\nPublishPort=8080:80\nAutoUpdate=registry\nAutoUpdate=app/local\nLogOpt=max-size=10mb\n"+
		"[Service]\nTimeoutStartSec=900\n[Install]\nWantedBy=default.target\n[X-Mine]\nKey=value\n[Quadlet]\nDefaultDependencies=false\n", "[Service]\nRestart=always\n")
	if err != nil {
		t.Fatal(err)
	}
	publish := Assignment{"PublishPort", "8080:80", "/q/web.kube:18"}
	update := []Assignment{{"AutoUpdate", "registry", "/q/web.kube:19"}, {"AutoUpdate", "app/local", "/q/web.kube:20"}}
	want := &Unit{
		LogMaxSize: "10000000", Publish: []Assignment{publish}, AutoUpdate: update,
		PodsOnly: append([]Assignment{{"Network", "none", "/q/web.kube:13"}, {"LogOpt", "max-size=10mb", "/q/web.kube:21"}, publish}, update...),
		Yaml:     []string{"/q/web.yaml", "/home/dev/50%/more.yaml", "/q/settings.yaml"}, Service: "site", ExitFrom: "any", Network: "none", Quiet: true,
		Extra: map[string][]string{
			"Unit":    {"Description=The site", "Requires=db.service other.service"},
			"Service": {"WorkingDirectory=/q", "TimeoutStartSec=900", "Restart=always"},
			"Install": {"WantedBy=default.target"},
			"X-Mine":  {"Key=value"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if options := strings.Join(got.PodOptions(), " "); options != "--network none --log-max-size 10000000 --publish 8080:80 --auto-update registry --auto-update app/local" {
		t.Error(options)
	}
}

func TestKubeDefaults(t *testing.T) {
	got, err := parseKube("[Kube]\nYaml=/a.yaml\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Unit{Yaml: []string{"/a.yaml"}, Service: "web", ExitFrom: "none", NeedsNetwork: true, Extra: map[string][]string{"Install": nil}}, got); d != "" {
		t.Error(d)
	}
}

// quadletKeys are the keys of [Kube] in podman 5 (pkg/systemd/quadlet, supportedKubeKeys).
var quadletKeys = strings.Fields(`AutoUpdate ConfigMap ContainersConfModule ExitCodePropagation GlobalArgs KubeDownForce LogDriver LogOpt
	Network PodmanArgs PublishPort RemapGid RemapUid RemapUidSize RemapUsers ServiceName SetWorkingDirectory UserNS Yaml`)

// Every key of Quadlet has a row, and is refused if its row refuses it.
func TestEveryKeyOfQuadletIsKnown(t *testing.T) {
	var rows []string
	for _, k := range kubeKeys() {
		rows = append(rows, k.name)
		_, err := parseKube("[Kube]\nYaml=/a.yaml\n" + k.name + "=\x01\n")
		if refused := err != nil && strings.Contains(err.Error(), "/q/web.kube:3: "+k.name+": "+k.note); refused != (k.support == keyRefused) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if d := cmp.Diff(quadletKeys, rows); d != "" {
		t.Error(d)
	}
}

func TestKubeRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"[Container]\nImage=x\n":                                   "there is no section [Kube]",
		"[Kube]\n":                                                 "[Kube] has no Yaml=",
		"Yaml=x\n":                                                 `/q/web.kube:1: "Yaml=x" is not an assignment in a section`,
		"[Kube]\nYaml=x\nyaml=y\n":                                 "/q/web.kube:3: yaml: Quadlet has no such key of [Kube]",
		"[Kube]\nYaml=https://x/y.yaml\n":                          "download it first",
		"[Kube]\nYaml=%t/x.yaml\n":                                 "does not know the specifier %t",
		"[Kube]\nYaml=x\nNetwork=my.network\n":                     "/q/web.kube:3: Network: there is no file my.network",
		"[Kube]\nYaml=x\nNetwork=mine\n":                           `/q/web.kube:3: Network: podrun has no network "mine": use host or none`,
		"[Kube]\nYaml=x\nNetwork=container:db\n":                   `no network "container:db"`,
		"[Kube]\nYaml=x\nNetwork=none\nNetwork=bridge\n":           "/q/web.kube:4: Network: a pod has one network",
		"[Kube]\nYaml=x\nLogOpt=path=/var/log/x\n":                 "/q/web.kube:3: LogOpt: podrun has the option max-size only",
		"[Kube]\nYaml=x\nLogOpt=tag=x\n":                           "write SyslogIdentifier=",
		"[Kube]\nYaml=x\nLogOpt=max-size=4k\n":                     "at least 4096 bytes",
		"[Kube]\nYaml=x\nLogOpt=max-size=ﬀ\n":                      "at least 4096 bytes",
		"[Kube]\nYaml=x\nYaml=y\nSetWorkingDirectory=yaml\n":       "yaml requires a single Yaml=",
		"[Kube]\nYaml=x\n[Service]\nType=oneshot\nWatchdogSec=3\n": "a unit of Type=oneshot has no watchdog",
		"[Kube]\nYaml=x\n[Service]\nKillMode=process\n":            "use mixed",
		"[Kube]\nYaml=x\n[Service]\nDynamicUser=yes\n":             "/q/web.kube:4: DynamicUser: the unit runs as the user",
		"[Kube]\nYaml=x\nNetwork=host:--mtu,1500\n":                "write Network=host",
		"[Kube]\nYaml=x\n[Service]\nType=forking\n":                "/q/web.kube:4: Type: use notify",
		"[Kube]\nYaml=x\n[Service]\nExecStart=/bin/true\n":         "/q/web.kube:4: ExecStart: ",
		"[Kube]\nYaml=x\n[Unit]\nAfter=db.container\n":             "there is no file db.container beside this one",
		"[Kube]\nYaml=x\n[Pod]\nPodName=x\n":                       "podrun does not support section [Pod] in a .kube file",
		"[Kube]\nYaml=x\n[Quadlet]\nDefaultDependencies=perhaps\n": "DefaultDependencies=yes or no",
		"[Kube]\nYaml=x\n[X-Podrun]\nManifest=/etc/passwd\n":       "/q/web.kube:4: Manifest: podrun writes section [X-Podrun] itself",
		"[Kube]\nYaml=x\nKubeDownForce=perhaps\n":                  "use yes or no",
		"[Kube]\nYaml=x\nLogDriver=syslog\n":                       "use journald or passthrough",
		"[Kube]\nYaml=x\nSetWorkingDirectory=home\n":               "use yaml or unit",
	} {
		if _, err := parseKube(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
