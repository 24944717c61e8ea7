package hostdeps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/podrun/podrun/image"
	"github.com/podrun/podrun/internal/cli/internal/admission"
	"github.com/podrun/podrun/internal/delegation"
	"github.com/podrun/podrun/internal/host"
	"github.com/podrun/podrun/internal/nsprobe"
	"github.com/podrun/podrun/internal/podinit"
	"github.com/podrun/podrun/internal/programs"
	"github.com/podrun/podrun/internal/report"
	"github.com/podrun/podrun/internal/store"
	"github.com/podrun/podrun/internal/systemd"
)

// probeTime is how long `up` waits for a probe. It only ends probes that hang: it is longer than any
// probe takes on a small board that starts thirty pods at once.
const probeTime = time.Minute

// DiagnoseHost runs the quick probes and all others.
func (Deps) DiagnoseHost(ctx context.Context, s host.Setup) []host.Finding {
	// Shorter than the others' time-out, so that it can clean up before that.
	ctx, cancel := context.WithTimeout(ctx, host.Timeout*3/4)
	defer cancel()
	more := nsprobe.Probes(ctx, func() (string, error) { return lowestDir(s.Data), s.DirsErr })
	more = append(more, host.Probe{Name: "service manager", Run: func() host.Finding { return managerFinding(ctx) }},
		host.Probe{Name: host.Registries, Run: func() host.Finding { return registriesFinding(ctx, s) }},
		host.Probe{Name: "pod network", Run: func() host.Finding { return podNetworkFinding(store.Dirs{Data: s.Data, Runtime: s.Runtime}) }},
		host.Probe{Name: "processes", Run: func() host.Finding { return processesFinding(s) }},
		host.Probe{Name: "devices", Run: func() host.Finding { return admission.DevicesFinding(os.Getenv) }},
		host.Probe{Name: "SELinux", Run: func() host.Finding { return admission.SELinuxFinding(host.FindSELinux()) }})
	return host.Check(s, more...)
}

// managerFinding probes the service manager that makes the scopes of pods.
func managerFinding(ctx context.Context) host.Finding {
	m, ok := delegation.FindManager()
	if !ok {
		return host.Finding{Level: host.OK, Detail: "there is none for this user; podrun uses none"}
	}
	version, err := systemd.Version(ctx, m)
	if err != nil {
		return host.Finding{Level: host.Warning, Detail: fmt.Sprintf("systemd cannot give pods a scope: %v", err), Hint: "for the reason: systemctl --user status, journalctl --user -n 20"}
	}
	return host.Finding{Level: host.OK, Detail: "systemd " + version + " answers at " + m.Socket}
}

// registriesFinding checks the configuration of registries.
func registriesFinding(ctx context.Context, s host.Setup) host.Finding {
	program := image.NewProgram(func() (string, func(), error) {
		return programs.ImageInMemory(store.Dirs{Data: s.Data, Runtime: s.Runtime})
	})
	detail, err := program.DescribeRegistries(ctx)
	if err != nil {
		return host.Finding{Level: host.Warning, Detail: "images cannot be pulled: " + err.Error(), Hint: report.Hint(err)}
	}
	return host.Finding{Level: host.OK, Detail: detail}
}

// processesFinding names the pods that no command reaches: their runtime directories or locks were deleted.
func processesFinding(s host.Setup) host.Finding {
	if s.DirsErr != nil {
		return host.Finding{Level: host.OK, Detail: "there are no pods"}
	}
	dirs := store.Dirs{Data: s.Data, Runtime: s.Runtime}
	pods, err := dirs.Pods()
	if err != nil {
		return host.Finding{Level: host.Warning, Detail: err.Error(), Hint: "make " + dirs.Data + " readable for its owner"}
	}
	for _, p := range pods {
		if _, lost := p.LostRuntime(); lost {
			hint := "podrun ps starts its containers again"
			if secrets := p.MissingSecrets(); len(secrets) > 0 {
				hint = "create its Secrets again (" + strings.Join(secrets, ", ") + "), then " + hint
			}
			return host.Finding{Level: host.Warning, Detail: fmt.Sprintf("the runtime directory of pod %s in namespace %s was deleted: %s", p.Name, p.Namespace, p.RuntimeDir()), Hint: hint}
		}
	}
	for _, stray := range podinit.Strays(dirs) {
		return host.Finding{Level: host.Warning, Detail: fmt.Sprintf("process %d belongs to a pod %s in namespace %s whose lock was deleted", stray.PID, stray.Pod.Name, stray.Pod.Namespace), Hint: fmt.Sprintf("podrun down %s -n %s ends it", stray.Pod.Name, stray.Pod.Namespace)}
	}
	return host.Finding{Level: host.OK, Detail: fmt.Sprintf("%d pods; no process is left of another", len(pods))}
}

// podNetworkFinding returns how pods of other nodes are reached, if this host is a node of a cluster.
func podNetworkFinding(d store.Dirs) host.Finding {
	if _, err := os.Stat(filepath.Join(d.Data, "node", "kubeconfig")); err != nil {
		return host.Finding{Level: host.OK, Detail: "this host has not joined a cluster"}
	}
	n, err := d.PodNetwork()
	switch {
	case err != nil:
		return host.Finding{Level: host.Warning, Detail: err.Error(), Hint: "start podrun node again"}
	case len(n.CIDRs) == 0:
		return host.Finding{Level: host.Note, Detail: "this host has joined a cluster, and pods of other nodes are not reached", Hint: "podrun node --pod-network wireguard"}
	}
	way := "WireGuard"
	if n.Node.IsValid() {
		way = "routes"
	}
	return host.Finding{Level: host.OK, Detail: fmt.Sprintf("pods have addresses of the cluster's %s; the pods of %d other nodes are reached by %s", n.CIDRs[0], len(n.Peers), way)}
}

// lowestDir returns dir, or its lowest parent directory that exists.
func lowestDir(dir string) string {
	for dir != filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
