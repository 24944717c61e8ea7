package archtest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// forbiddenModules are libraries of features that podrun does not have, so that nobody has
// to defend them: building images, cloning repositories, checkpoints, and what
// unpacks or runs images outside of the confined child.
var forbiddenModules = []module{
	{"github.com/go-git/go-git", nil, "no Git: nothing is fetched but images"},
	{"github.com/containers/buildah", nil, "no building of images"},
	{"github.com/moby/buildkit", nil, "no building of images"},
	{"github.com/openshift/imagebuilder", nil, "no building of images"},
	{"github.com/checkpoint-restore", nil, "no checkpoints"},
	{"go.podman.io/storage/pkg/archive", nil, "it unpacks outside of its root"},
	{"go.podman.io/storage/pkg/chrootarchive", nil, "layers are unpacked by the confined child only"},
	{"github.com/docker/docker/client", nil, "no daemon, not even another's"},
	{"net/http/cgi", nil, "no server runs programs"},
	{"net/http/pprof", nil, "no server tells of the program"},
	{"plugin", nil, "no code is loaded"},
}

// TestForbiddenModules: what is not linked cannot be attacked.
func TestForbiddenModules(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags", buildTags(t), ".", "./"+supervisorProgram, "./"+imageProgram)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list what the binaries are made of: %v", err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 300 {
		t.Fatalf("only %d packages: looked at the wrong thing", len(deps))
	}
	for _, l := range forbiddenModules {
		for _, d := range deps {
			if within(d, l.prefix) {
				t.Errorf("the binaries reach %s.\n\tWhy not: %s.\n\tDo: `go mod why` names the way; cut it.", d, l.why)
			}
		}
	}
}

// buildTags are the tags of scripts/env.sh, with which the binaries are built.
func buildTags(t *testing.T) string {
	t.Helper()
	var tags string
	for _, m := range regexp.MustCompile(`(?m)^tags\+?=(.*)$`).FindAllStringSubmatch(read(t, "scripts/env.sh"), -1) {
		tags += m[1]
	}
	if !strings.Contains(tags, "runc_nocriu") {
		t.Fatalf("scripts/env.sh has the tags %q: runc_nocriu is missing, or they are spelt in another way", tags)
	}
	return tags
}
