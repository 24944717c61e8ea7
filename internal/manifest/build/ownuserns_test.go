package build_test

import (
	"testing"

	"github.com/podrun/podrun/internal/pod"
)

// TestApart: a pod has a user namespace of its own if one of its containers has privileges over resources
// that the user's pods share.
func TestApart(t *testing.T) {
	for context, want := range map[string]bool{
		"{}":                            false,
		"{capabilities: {drop: [ALL]}}": false,
		"{capabilities: {add: [NET_RAW, CHOWN]}}":      false,
		"{capabilities: {add: [NET_ADMIN]}}":           true,
		"{capabilities: {add: [MKNOD]}}":               true,
		"{capabilities: {add: [AUDIT_WRITE]}}":         true,
		"{capabilities: {add: [SYS_PTRACE]}}":          true,
		"{capabilities: {add: [sys_admin]}}":           true,
		"{capabilities: {add: [ALL], drop: [KILL]}}":   true,
		"{privileged: true}":                           true,
		"{seccompProfile: {type: Unconfined}}":         true,
		"{seccompProfile: {type: RuntimeDefault}}":     false,
		"{capabilities: {add: [ALL], drop: [ALL]}}":    false,
		"{readOnlyRootFilesystem: true, runAsUser: 1}": false,
	} {
		for _, list := range []string{"containers", "initContainers"} {
			text := podYAML(one("securityContext: " + context))
			if list == "initContainers" {
				text = podYAML("{initContainers: [{name: i, image: busybox:1.36, securityContext: " + context + "}], " + one("")[1:])
			}
			if got := mustBuild(t, text, pod.Image{Cmd: []string{"run"}}).OwnUserNS; got != want {
				t.Errorf("%s of %s: apart %v, want %v", context, list, got, want)
			}
		}
	}
}
