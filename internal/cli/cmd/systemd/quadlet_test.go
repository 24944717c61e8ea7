package systemd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

// published are the .kube files that podman publishes: the example of podman-kube.unit(5) and the files of its tests,
// test/e2e/quadlet, by their names, without sections that are only copied. A file is run as with podman, with these
// lines in its unit, or refused with this text.
var published = []struct {
	name, text string
	unit       []string
	refused    string
}{
	{name: "podman-kube.unit", text: "[Unit]\nDescription=A kubernetes yaml based service\nBefore=local-fs.target\n[Kube]\nYaml=/opt/k8s/deployment.yml\n[Install]\nWantedBy=multi-user.target default.target\n",
		unit: []string{"Description=A kubernetes yaml based service", "Before=local-fs.target", "WantedBy=multi-user.target default.target"}},
	{name: "absolute.path", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\n", unit: []string{"ExecStart=* up --exit-code-from none /opt/k8s/deployment.yml", "Type=notify", "NotifyAccess=all", "KillMode=mixed"}},
	{name: "autoupdate", text: "[Kube]\nYaml=deployment.yml\nAutoUpdate=registry\nAutoUpdate=foobar/local\n", unit: []string{"ExecStart=* up --auto-update registry --auto-update foobar/local --exit-code-from none DIR/deployment.yml"}},
	{name: "basic", text: "[Kube]\nYaml=deployment.yml\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/deployment.yml", "SyslogIdentifier=basic"}},
	{name: "configmap", text: "[Kube]\nYaml=deployment.yml\nConfigMap=rel.yml\nConfigMap=/opt/k8s/abs.yml\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/deployment.yml DIR/rel.yml /opt/k8s/abs.yml"}},
	{name: "containersconfmodule", text: "[Kube]\nYaml=file.yml\nContainersConfModule=/etc/container/1.conf\nContainersConfModule=/etc/container/2.conf\n", refused: "containersconfmodule.kube:4: ContainersConfModule: podrun does not read containers.conf"},
	{name: "dependent", text: "[Unit]\nAfter=basic.build basic.container basic.image basic.kube basic.network basic.pod basic.volume\nRequires=basic.build\n[Kube]\nYaml=deployment.yml\n", refused: "dependent.kube:2: After: basic.image is a unit of podman"},
	{name: "downforce", text: "[Kube]\nYaml=deployment.yml\nKubeDownForce=true\n", unit: []string{"ExecStopPost=-* systemd stop-post"}},
	{name: "exit_code_propagation", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nExitCodePropagation=all\n", unit: []string{"ExecStart=* up --exit-code-from all /opt/k8s/deployment.yml"}},
	{name: "globalargs", text: "[Kube]\nYaml=file.yml\nGlobalArgs=--conmon=/usr/bin/somewhere\nGlobalArgs=--imagestore=/var/lib/somestore --log-level=debug\n", refused: "globalargs.kube:3: GlobalArgs: these are options of podman"},
	{name: "logdriver", text: "[Kube]\nYaml=deployment.yml\nLogDriver=journald\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/deployment.yml"}},
	{name: "logopt", text: "[Kube]\nYaml=deployment.yml\nLogOpt=path=/var/log/some-logs.json\nLogOpt=size=10mb\nLogOpt=tag=\"{{.ImageName}}\"\nLogOpt=label=CONTAINER_LABEL=LabelValue\n", refused: `logopt.kube:3: LogOpt: podrun has the option max-size only, not "path"`},
	{name: "multiple-yaml-set-working-dir-yaml", text: "[Kube]\nYaml=foo.yml\nYaml=bar.yml\nSetWorkingDirectory=yaml\n", refused: "SetWorkingDirectory: yaml requires a single Yaml="},
	{name: "multiple-yaml", text: "[Kube]\nYaml=foo.yml\nYaml=bar.yml\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/foo.yml DIR/bar.yml"}},
	{name: "network", text: "[Kube]\nYaml=deployment.yml\nNetwork=basic\n", refused: `network.kube:3: Network: podrun has no network "basic"`},
	{name: "network.quadlet", text: "[Kube]\nYaml=deployment.yml\nNetwork=basic.network\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/deployment.yml"}},
	{name: "network.quadlet.servicename", text: "[Kube]\nYaml=deployment.yml\nNetwork=service-name.network\n", unit: []string{"ExecStart=* up --exit-code-from none DIR/deployment.yml"}},
	{name: "oneshot", text: "[Kube]\nYaml=deployment.yml\n[Service]\nType=oneshot\n", refused: "Type=oneshot: pod deployment does not end: its restartPolicy is Always"},
	{name: "oneshot-job", text: "[Kube]\nYaml=job.yml\n[Service]\nType=oneshot\nRemainAfterExit=yes\n", unit: []string{"Type=oneshot", "RemainAfterExit=yes", "ExecStart=* up --exit-code-from none DIR/job.yml", "ExecStopPost=-* down --keep-objects --filename DIR/job.yml", "-Restart=", "-Type=notify", "-WatchdogSec=", "-TimeoutStartSec="}},
	{name: "oneshot-claims", text: "[Kube]\nYaml=rel.yml\n[Service]\nType=oneshot\n", unit: []string{"Type=oneshot"}},
	{name: "claims", text: "[Kube]\nYaml=rel.yml\n", refused: "rel.yml has no pod: write Type=oneshot"},
	{name: "podmanargs", text: "[Kube]\nYaml=kube.yaml\nPodmanArgs=\"--foo\" \\\n  --bar\nPodmanArgs=--also\n", refused: "podmanargs.kube:3: PodmanArgs: these are options of podman"},
	{name: "ports", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=127.0.0.1:80:90\nPublishPort=0.0.0.0:81:91\nPublishPort=:82:92\nPublishPort=83:96\nPublishPort=1234:1234/udp\nPublishPort=127.0.0.1:1235:1234/tcp\n",
		unit: []string{"ExecStart=* up --publish 127.0.0.1:80:90 --publish 0.0.0.0:81:91 --publish :82:92 --publish 83:96 --publish 1234:1234/udp --publish 127.0.0.1:1235:1234/tcp --exit-code-from none /opt/k8s/deployment.yml",
			"ExecReload=* up --publish 127.0.0.1:80:90 --publish 0.0.0.0:81:91 --publish :82:92 --publish 83:96 --publish 1234:1234/udp --publish 127.0.0.1:1235:1234/tcp --detach --timeout 60s /opt/k8s/deployment.yml"}},
	{name: "ports-1", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=127.0.0.1::93\n", unit: []string{"ExecStart=* up --publish 127.0.0.1:21176:93 --exit-code-from none /opt/k8s/deployment.yml"}},
	{name: "ports-2", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=::95\n", unit: []string{"ExecStart=* up --publish 25376:95 --exit-code-from none /opt/k8s/deployment.yml"}},
	{name: "ports-3", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=1234/udp\n", unit: []string{"ExecStart=* up --publish 26912:1234/udp --exit-code-from none /opt/k8s/deployment.yml"}},
	{name: "ports_ipv6", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=[::1]:80:90\nPublishPort=[::]:81:91\nPublishPort=[2001:DB8::23]:82:91\nPublishPort=[2001:db8:c0:ff:ee::1]:1234:1234/udp\n", unit: []string{"ExecStart=* --publish [2001:db8:c0:ff:ee::1]:1234:1234/udp --exit-code-from none /opt/k8s/deployment.yml"}},
	{name: "ports_ipv6-1", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nPublishPort=[::1]::93\n", unit: []string{"ExecStart=* up --publish [::1]:28292:93 --exit-code-from none /opt/k8s/deployment.yml"}},
	{name: "remap-auto", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nRemapUsers=auto\n", refused: "remap-auto.kube:3: RemapUsers: the user namespace"},
	{name: "remap-auto2", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nRemapUsers=auto\nRemapUid=0:10000:10\nRemapGid=0:10000:10\nRemapUidSize=20\n", refused: "remap-auto2.kube:6: RemapUidSize: the user namespace"},
	{name: "remap-manual", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nRemapUsers=manual\n", refused: "RemapUsers: the user namespace"},
	{name: "service-dynamicuser", text: "[Kube]\nYaml=deployment.yml\n[Service]\nDynamicUser=foobar\n", refused: "service-dynamicuser.kube:4: DynamicUser: "},
	{name: "service-name", text: "[Kube]\nServiceName=basic\nYaml=deployment.yml\n", unit: []string{"SyslogIdentifier=basic"}},
	{name: "syslog.identifier", text: "[Service]\nSyslogIdentifier=mytest\n[Kube]\nYaml=deployment.yml\n", unit: []string{"SyslogIdentifier=mytest"}},
	{name: "workingdir-service", text: "[Service]\nWorkingDirectory=/etc/containers/systemd\n[Kube]\nYaml=deployment.yml\nSetWorkingDirectory=unit\n", unit: []string{"WorkingDirectory=/etc/containers/systemd", "-WorkingDirectory=DIR"}},
	{name: "workingdir-unit", text: "[Kube]\nYaml=deployment.yml\nSetWorkingDirectory=unit\n", unit: []string{"WorkingDirectory=DIR"}},
	{name: "workingdir-yaml-abs", text: "[Kube]\nYaml=/opt/k8s/deployment.yml\nSetWorkingDirectory=yaml\n", unit: []string{"WorkingDirectory=/opt/k8s"}},
	{name: "workingdir-yaml-rel", text: "[Kube]\nYaml=./myservice/deployment.yml\nSetWorkingDirectory=yaml\n", unit: []string{"WorkingDirectory=DIR/myservice"}},
	{name: "workload", text: "[Kube]\nYaml=workload.yml\nNetwork=host\n", refused: "workload.kube:3: Network: it applies to Pods only, and"},
}

// TestPublishedKubeFiles checks that each .kube file that podman publishes runs, or is refused by name.
func TestPublishedKubeFiles(t *testing.T) {
	h := clitest.NewHost(t)
	dir := t.TempDir()
	pod := func(name, more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n" + more + "  containers: [{name: foobar, image: \"busybox:1\", ports: [{containerPort: 90}]}]\n"
	}
	for name, text := range map[string]string{
		"deployment.yml": pod("deployment", ""), "file.yml": pod("file", ""), "foo.yml": pod("foo", ""), "bar.yml": pod("bar", ""), "kube.yaml": pod("kube", ""),
		"myservice/deployment.yml": pod("deployment", ""), "opt/k8s/deployment.yml": pod("deployment", ""), "job.yml": pod("job", "  restartPolicy: Never\n"),
		"basic.network": "[Network]\n", "service-name.network": "[Network]\nServiceName=basic\nNetworkName=test-network\n",
		"rel.yml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rel}\n",
		"opt/k8s/abs.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: abs}\n",
		"workload.yml":    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range published {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(dir, tc.name+".kube")
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(tc.text, "/opt/", dir+"/opt/")), 0o600); err != nil {
				t.Fatal(err)
			}
			got := h.Run("systemd", "show", path)
			if tc.refused != "" {
				if got.Code != 2 || !strings.Contains(got.Err, tc.refused) {
					t.Errorf("want %q, got %+v", tc.refused, got)
				}
				return
			}
			if got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			text := strings.ReplaceAll(strings.ReplaceAll(got.Out, dir+"/opt/", "/opt/"), dir, "DIR")
			for _, want := range tc.unit {
				without, absent := strings.CutPrefix(want, "-")
				if hasLine(text, without) == absent {
					t.Errorf("line %q in\n%s", want, text)
				}
			}
		})
	}
}

// hasLine reports whether a line is want, in which * stands for any text.
func hasLine(text, want string) bool {
	before, after, _ := strings.Cut(want, "*")
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, before); ok && strings.HasSuffix(rest, after) {
			return true
		}
	}
	return false
}
