package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
)

// TestResources: the formats and filters, in kubectl's order and columns.
func TestResources(t *testing.T) {
	group := "apps"
	for _, c := range []struct {
		o    resourcesOptions
		want string
	}{
		{resourcesOptions{format: "name", scoped: true}, "namespaces\npersistentvolumes\n"},
		{resourcesOptions{format: "name", group: &group}, "daemonsets.apps\ndeployments.apps\nreplicasets.apps\nstatefulsets.apps\n"},
		{resourcesOptions{group: &group, noHeaders: true}, "daemonsets     ds       apps/v1   true   DaemonSet\ndeployments    deploy   apps/v1   true   Deployment\nreplicasets    rs       apps/v1   true   ReplicaSet\nstatefulsets   sts      apps/v1   true   StatefulSet\n"},
	} {
		var out strings.Builder
		c.o.env = &cmdutil.Env{Out: &out}
		if err := c.o.Run(t.Context()); err != nil || out.String() != c.want {
			t.Errorf("%+v: %v\n%s\nwant\n%s", c.o, err, out.String(), c.want)
		}
	}
	if got := fmt.Sprint(apiResources()[5:8]); got != "[{pods  Pod [po] true true} {replicationcontrollers  ReplicationController [rc] true true} {secrets  Secret [] true false}]" {
		t.Error(got)
	}
	for want, o := range map[string]resourcesOptions{"": {format: "wide"}, "is not available": {format: "yaml"}, "unexpected arguments: [x]": {words: []string{"x"}}} {
		if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
