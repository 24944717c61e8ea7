package quadlet

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/golden"
)

// supportedKeys are podman's keys of the sections (podman 5.8, pkg/systemd/quadlet, groupsInfo).
var supportedKeys = map[string]string{
	"Container": `AddCapability AddDevice AddHost Annotation AppArmor AutoUpdate CgroupsMode ContainerName ContainersConfModule DNS DNSOption DNSSearch
		DropCapability Entrypoint Environment EnvironmentFile EnvironmentHost Exec ExposeHostPort GIDMap GlobalArgs Group GroupAdd HealthCmd
		HealthInterval HealthLogDestination HealthMaxLogCount HealthMaxLogSize HealthOnFailure HealthRetries HealthStartPeriod HealthStartupCmd
		HealthStartupInterval HealthStartupRetries HealthStartupSuccess HealthStartupTimeout HealthTimeout HostName HttpProxy IP IP6 Image Label
		LogDriver LogOpt Mask Memory Mount Network NetworkAlias NoNewPrivileges Notify PidsLimit Pod PodmanArgs PublishPort Pull ReadOnly
		ReadOnlyTmpfs ReloadCmd ReloadSignal RemapGid RemapUid RemapUidSize RemapUsers Retry RetryDelay Rootfs RunInit SeccompProfile Secret
		SecurityLabelDisable SecurityLabelFileType SecurityLabelLevel SecurityLabelNested SecurityLabelType ServiceName ShmSize StartWithPod
		StopSignal StopTimeout SubGIDMap SubUIDMap Sysctl Timezone Tmpfs UIDMap Ulimit Unmask User UserNS VolatileTmp Volume WorkingDir`,
	"Pod": `AddHost ContainersConfModule DNS DNSOption DNSSearch ExitPolicy GIDMap GlobalArgs HostName IP IP6 Label Network NetworkAlias PodName
		PodmanArgs PublishPort RemapGid RemapUid RemapUidSize RemapUsers ServiceName ShmSize StopTimeout SubGIDMap SubUIDMap UIDMap UserNS Volume`,
	"Volume":  "ContainersConfModule Copy Device Driver GlobalArgs Group Image Label Options PodmanArgs ServiceName Type User VolumeName",
	"Network": "ContainersConfModule DNS DisableDNS Driver Gateway GlobalArgs IPAMDriver IPRange IPv6 InterfaceName Internal Label NetworkDeleteOnStop NetworkName Options PodmanArgs ServiceName Subnet",
}

// TestEveryKeyHasARow: the tables have podman's keys, in order, and a refused key is refused by its note.
func TestEveryKeyHasARow(t *testing.T) {
	for section, keys := range supportedKeys {
		var rows []string
		for _, k := range allKeys() {
			if k.section != section {
				continue
			}
			rows = append(rows, k.name)
			s := testSet("# a.container\n[Container]\nImage=x\n", "# x."+strings.ToLower(section)+"\n["+section+"]\n"+k.name+"=\x01\n")
			p, err := s.open("x." + strings.ToLower(section))
			if err != nil {
				t.Fatal(err)
			}
			refused := len(p.errs) == 1 && strings.Contains(p.errs[0].Error(), ":2: "+k.name+": "+k.note)
			if refused != (k.support == keyRefused) {
				t.Errorf("%s: %v", k.name, p.errs)
			}
		}
		if got, want := strings.Join(rows, " "), strings.Join(strings.Fields(keys), " "); got != want {
			t.Errorf("[%s] has\n%s\nwant\n%s", section, got, want)
		}
	}
}

// TestReference checks the page of the keys.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Keys of Quadlet's files

<!-- Generated: go test ./internal/manifest/quadlet -update -->

What ` + "`podrun systemd install FILE`" + ` and the [generator](../how-to/from-podman.md#units) do with each key of ` + "`.kube`, `.container`, `.pod`, `.volume` and `.network`" + `
files (podman-systemd.unit(5) of podman 5.8). A refused key is an error that names the file, the line and the reason.

A ` + "`.container`" + ` file becomes a Pod with one container, a ` + "`.pod`" + ` file a Pod of the ` + "`.container`" + ` files that name it, a ` + "`.volume`" + ` file a
PersistentVolumeClaim of the pods that name it. A ` + "`.network`" + ` file stands for podrun's own network. ` + "`podrun systemd show FILE`" + ` prints the unit
and the manifest. Values may have systemd's specifiers (` + "`%h`, `%t`, `%i`, `%N` and others" + `) and ` + "`${NAME}`" + ` for variables that ` + "`Environment=`" + ` of
` + "`[Service]`" + ` sets.
`)
	section := ""
	for _, k := range allKeys() {
		if k.section != section {
			section = k.section
			b.WriteString("\n## [" + section + "]\n\n| key | support | what |\n|---|---|---|\n")
		}
		name := "`" + strings.ReplaceAll(k.name, ", ", "` `") + "`"
		if k.name == otherKeys {
			name = otherKeys
		}
		note := k.note
		if k.option != "" && !strings.Contains(note, "podrun run") {
			note = strings.TrimSuffix("`podrun run --"+k.option+"`; "+note, "; ")
			if noFlag[k.option] {
				note = k.note
			}
		}
		b.WriteString("| " + name + " | " + string(k.support) + " | " + note + " |\n")
	}
	golden.Check(t, "../../../docs/reference/quadlet.md", b.String())
}

// noFlag are options of package runpod that podrun run has no flag for.
var noFlag = map[string]bool{
	"secret": true, "tz": true, "health-startup-cmd": true, "health-startup-interval": true, "health-startup-retries": true,
	"health-startup-success": true, "health-startup-timeout": true,
}
