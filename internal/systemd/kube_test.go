package systemd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parseKube(text string, dropIns ...string) (*Kube, error) {
	files := []KubeFile{{"/q/web.kube", text}}
	for _, d := range dropIns {
		files = append(files, KubeFile{"/q/web.kube.d/10.conf", d})
	}
	return ParseKube("/q/web.kube", "/home/dev", files)
}

func TestKube(t *testing.T) {
	got, err := parseKube(`
# A pod.
[Unit]
Description=The site
Requires=db.kube \
  # in between
  other.service

[Kube]
Yaml="web.yaml"
Yaml=%h/50%%/more.yaml
ExitCodePropagation=any
KubeDownForce=yes
LogDriver=k8s-file
Network=none
ServiceName=site
SetWorkingDirectory=yaml
PublishPort=8080:80
PublishPort=

[Service]
TimeoutStartSec=900

[Install]
WantedBy=default.target

[X-Mine]
Key=value
`, "[Service]\nRestart=always\n")
	if err == nil {
		t.Fatal("PublishPort was taken: it is refused wherever it has a value")
	}
	got, err = parseKube("[Unit]\nDescription=The site\nRequires=db.kube \\\n # in between\n other.service\n"+
		"[Kube]\nYaml=\"web.yaml\"\nYaml=%h/50%%/more.yaml\nConfigMap=settings.yaml\nExitCodePropagation=any\nKubeDownForce=yes\nLogDriver=k8s-file\nNetwork=none\nServiceName=site\nSetWorkingDirectory=yaml\n"+
		"[Service]\nTimeoutStartSec=900\n[Install]\nWantedBy=default.target\n[X-Mine]\nKey=value\n[Quadlet]\nDefaultDependencies=false\n", "[Service]\nRestart=always\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Kube{
		Yaml: []string{"/q/web.yaml", "/home/dev/50%/more.yaml", "/q/settings.yaml"}, Service: "site", ExitFrom: "any", Network: "none", Quiet: true,
		Extra: map[string][]string{
			"Unit":    {"Description=The site", "Requires=db.service other.service"},
			"Service": {"TimeoutStartSec=900", "Restart=always", "WorkingDirectory=/q"},
			"Install": {"WantedBy=default.target"},
			"X-Mine":  {"Key=value"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestKubeDefaults(t *testing.T) {
	got, err := parseKube("[Kube]\nYaml=/a.yaml\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Kube{Yaml: []string{"/a.yaml"}, Service: "web", ExitFrom: "none", NeedsNetwork: true, Extra: map[string][]string{"Install": nil}}, got); d != "" {
		t.Error(d)
	}
}

// quadletKeys are the keys of [Kube] in podman 5 (pkg/systemd/quadlet, supportedKubeKeys).
var quadletKeys = strings.Fields(`AutoUpdate ConfigMap ContainersConfModule ExitCodePropagation GlobalArgs KubeDownForce LogDriver LogOpt
	Network PodmanArgs PublishPort RemapGid RemapUid RemapUidSize RemapUsers ServiceName SetWorkingDirectory UserNS Yaml`)

// Every key is supported, or refused by name with what to do.
func TestEveryKeyOfQuadletIsKnown(t *testing.T) {
	for _, key := range quadletKeys {
		_, err := parseKube("[Kube]\nYaml=/a.yaml\n" + key + "=\x01\n")
		if err == nil && (key == "ServiceName" || key == "Yaml" || key == "ConfigMap") {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "/q/web.kube:3: "+key+": ") || strings.Contains(err.Error(), "no such key") {
			t.Errorf("%s: %v", key, err)
		}
	}
	if len(knownKeys)+len(refusedKeys) != len(quadletKeys) {
		t.Errorf("podrun knows %d keys, Quadlet %d", len(knownKeys)+len(refusedKeys), len(quadletKeys))
	}
}

func TestKubeRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"[Container]\nImage=x\n":                                    "there is no section [Kube]",
		"[Kube]\n":                                                  "[Kube] has no Yaml=",
		"Yaml=x\n":                                                  `/q/web.kube:1: "Yaml=x" is not an assignment in a section`,
		"[Kube]\nYaml=x\nyaml=y\n":                                  "/q/web.kube:3: yaml: Quadlet has no such key of [Kube]",
		"[Kube]\nYaml=https://x/y.yaml\n":                           "download it first",
		"[Kube]\nYaml=%t/x.yaml\n":                                  "write the path out",
		"[Kube]\nYaml=x\nNetwork=my.network\n":                      "use host or none",
		"[Kube]\nYaml=x\nNetwork=host:--mtu,1500\n":                 "write Network=host",
		"[Kube]\nYaml=x\n[Service]\nType=oneshot\n":                 "/q/web.kube:4: Type: podrun's units are Type=notify",
		"[Kube]\nYaml=x\n[Service]\nExecStart=/bin/true\n":          "/q/web.kube:4: ExecStart: ",
		"[Kube]\nYaml=x\n[Unit]\nAfter=db.container\n":              "db.container is a unit of podman",
		"[Kube]\nYaml=x\n[Pod]\nPodName=x\n":                        "podrun does not support section [Pod]",
		"[Kube]\nYaml=x\n[Quadlet]\nDefaultDependencies=perhaps\n":  "DefaultDependencies=yes or no",
		"[Kube]\nYaml=x\n[X-Podrun]\nManifest=/etc/passwd\n":        "/q/web.kube:4: Manifest: podrun writes section [X-Podrun] itself",
		"[Kube]\nYaml=x\nKubeDownForce=perhaps\n":                   "use yes or no",
		"[Kube]\nYaml=x\nLogDriver=syslog\n":                        "use journald or passthrough",
		"[Kube]\nYaml=x\nSetWorkingDirectory=home\n":                "use yaml or unit",
		"[Kube]\nYaml=x\nAutoUpdate=registry\nPublishPort=80:80\n":  "PublishPort: ",
		"[Kube]\nYaml=x\nPublishPort=80:80\nAutoUpdate=registry\n ": "AutoUpdate: ",
	} {
		if _, err := parseKube(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
