package up_test

import (
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
)

const withSecrets = `apiVersion: v1
kind: Secret
type: kubernetes.io/dockerconfigjson
metadata: {name: here}
stringData: {.dockerconfigjson: '{"auths":{"here":{"auth":"YTpi"}}}'}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  imagePullSecrets: [{name: here}, {name: nosuch}, {name: opaque}]
  containers: [{name: c, image: here/x}]
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec:
  containers: [{name: c, image: there/y}]
`

// TestImagePullSecrets checks that a pull uses the pod's Secrets, from the same file or stored, and that
// Secrets of another type are reported.
func TestImagePullSecrets(t *testing.T) {
	h := clitest.NewHost(t)
	h.Logins = map[string][]string{}
	if got := h.Run("create", "secret", "generic", "opaque", "--from-literal=a=b"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	got := h.Run("apply", "-f", h.File(withSecrets))
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if l := h.Logins["here/x"]; len(l) != 1 || l[0] != `{"auths":{"here":{"auth":"YTpi"}}}` {
		t.Errorf("here: %q", l)
	}
	if l := h.Logins["there/y"]; len(l) != 0 {
		t.Errorf("there: %q", l)
	}
	for _, want := range []string{
		`image here/x is pulled without imagePullSecret nosuch: secret "nosuch" not found`,
		`image here/x is pulled without imagePullSecret opaque: it is of type Opaque, not kubernetes.io/dockerconfigjson`,
	} {
		if !strings.Contains(got.Err, want) {
			t.Errorf("%q is not said in\n%s", want, got.Err)
		}
	}
	if strings.Contains(got.Err+got.Out, "YTpi") {
		t.Error("a login was shown")
	}
}
