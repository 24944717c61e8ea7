package validation_test

import (
	"strings"
	"testing"
)

func TestConfinementMistakes(t *testing.T) {
	for _, c := range []struct{ spec, container, want string }{
		{"", ", securityContext: {seccompProfile: {type: Localhost}}", "must be set when seccomp type is Localhost"},
		{"", ", securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: a}}", "can only be set when seccomp type is Localhost"},
		{"", ", securityContext: {seccompProfile: {type: Localhost, localhostProfile: /etc/a}}", "must be a relative path"},
		{"", ", securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/../../b}}", "must not contain '..'"},
		{"", ", securityContext: {procMount: Unmasked}", "`hostUsers` must be false to use `Unmasked`"},
		{"  hostUsers: true\n", ", securityContext: {privileged: true, procMount: Unmasked}", "`hostUsers` must be false to use `Unmasked`"},
		{"  hostPID: true\n  shareProcessNamespace: true\n", "", "ShareProcessNamespace and HostPID cannot both be enabled"},
		{"", ", securityContext: {appArmorProfile: {type: Localhost}}", "must be set when AppArmor type is Localhost"},
		{"", ", securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ' a'}}", "must not be padded with whitespace"},
		{"", ", securityContext: {appArmorProfile: {type: Unconfined, localhostProfile: a}}", "can only be set when AppArmor type is Localhost"},
		{"", ", securityContext: {appArmorProfile: {localhostProfile: a}}", "type is required when appArmorProfile is set"},
		{"  securityContext: {seLinuxChangePolicy: Often}\n", "", "seLinuxChangePolicy"},
		{"  hostIPC: true\n  securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: '1'}]}\n", "", "is not allowed with the host's IPC"},
	} {
		reported := strings.Join(mistakes("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i, command: [x]"+c.container+"}]\n"+c.spec), "\n")
		if !strings.Contains(reported, c.want) {
			t.Errorf("%s%s: %q, want %q", c.spec, c.container, reported, c.want)
		}
	}
}
