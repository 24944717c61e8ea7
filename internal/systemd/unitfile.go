package systemd

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Service is the content of a unit file of podrun. Paths are absolute.
type Service struct {
	Name             string // of podrun@web.service: web
	Description      string
	Program          string   // podrun's own path
	Args             []string // options of `podrun up` in the foreground
	PodOptions       []string // options of every `podrun up`: what it sets in the pods, or what the manifests may set
	OneShot          bool     // for pods that end, or manifests without pods: Extra has Type=oneshot
	Files            []string // the manifests
	Reload           []string // a command of podrun for a reload of the unit, after the manifests were applied
	Manifest         string   // what uninstall also removes; "" if the file belongs to the user
	Source           string   // what the unit was generated from
	System           bool     // for the system's manager
	Grace            time.Duration
	RestartOnFailure bool // systemd also starts the pod again after a failure; otherwise only after a crash

	// Extra are the lines of a Quadlet file, by section, in their order.
	Extra map[string][]string
}

// generatedHeader begins every unit file of podrun; podrun changes no other.
const generatedHeader = "# Made by podrun systemd install. Changes are lost when it is run again: put them"

// ownSection is the section of a unit file that stores what uninstall needs.
const ownSection = "X-Podrun"

// IsGenerated reports whether a unit file is podrun's.
func IsGenerated(text []byte) bool { return bytes.HasPrefix(text, []byte(generatedHeader)) }

// StopMargin is how much longer than the grace period a stop may take: SIGKILL, unmounting, the
// retry of a failed stop.
const StopMargin = 30 * time.Second

// watchdog is how long a supervisor may be silent. It pings three times as often.
const watchdog = 30 * time.Second

// firewalls are services that set firewall rules of the host when they start. systemd ignores
// missing ones.
const firewalls = "docker.service libvirtd.service firewalld.service ufw.service nftables.service"

// File returns the text of the unit file.
func (s Service) File(unit string) []byte {
	var b strings.Builder
	line := begin(&b, unit, s.Description, s.System)
	if s.System {
		afterNetwork(line)
	}
	// A pod whose images are not available yet waits by itself. A pod that fails at once is
	// restarted for ever, as the kubelet does.
	line("StartLimitIntervalSec=0")
	s.extra(&b, "Unit")
	line("\n[Service]")
	program, podOptions := quoteWord(s.Program, false), joinWords(s.PodOptions)
	line("ExecStart=%s up%s%s%s", program, podOptions, joinWords(s.Args), joinWords(s.Files))
	line("ExecReload=%s up%s%s%s", program, podOptions, reloadOptions, joinWords(s.Files))
	if len(s.Reload) > 0 {
		line("ExecReload=%s%s", program, joinWords(s.Reload))
	}
	line("TimeoutStopSec=%d\nKillMode=mixed", int((s.Grace + StopMargin).Seconds()))
	if s.OneShot {
		s.oneShotLines(line)
	} else {
		s.notifyLines(line)
	}
	line("SyslogIdentifier=%s", EscapeSpecifiers(s.Name))
	s.extra(&b, "Service")
	switch install := s.Extra["Install"]; {
	case s.Extra == nil:
		line("\n[Install]\nWantedBy=%s", bootTarget(s.System))
	case len(install) > 0:
		line("\n[Install]")
		s.extra(&b, "Install")
	}
	for _, section := range s.quadletSections() {
		line("\n[%s]", section)
		s.extra(&b, section)
	}
	line("\n[%s]\nSource=%s", ownSection, EscapeSpecifiers(s.Source))
	if s.Manifest != "" {
		line("Manifest=%s", EscapeSpecifiers(s.Manifest))
	}
	return []byte(b.String())
}

// begin writes the start of a unit file, and returns a function that writes a line.
func begin(b *strings.Builder, unit, description string, system bool) (line func(format string, args ...any)) {
	line = func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	user := " --user"
	if system {
		user = ""
	}
	line("%s\n# into a drop-in (systemctl%s edit %s).", generatedHeader, user, unit)
	line("\n[Unit]\nDescription=%s", EscapeSpecifiers(description))
	return line
}

// afterNetwork makes a unit of the system start when the network is there.
func afterNetwork(line func(string, ...any)) {
	line("Wants=network-online.target\nAfter=network-online.target")
	afterFirewalls(line)
}

// afterFirewalls makes a unit of the system start after the host's firewall rules exist: the pods' egress depends on them.
func afterFirewalls(line func(string, ...any)) { line("After=%s", firewalls) }

// bootTarget returns the target that starts units at boot.
func bootTarget(system bool) string {
	if system {
		return "multi-user.target"
	}
	return "default.target"
}

// NodeUnit is the name of the unit of podrun node.
const NodeUnit = "podrun-node.service"

// NodeFile returns the text of the unit file of podrun node. Its pods are in scopes of their own; where there are no
// scopes, they stay in the unit's cgroup, and survive a stop of the unit nevertheless. At shutdown podrun node ends
// them, within their grace periods.
func NodeFile(program string, args []string, system bool) []byte {
	var b strings.Builder
	line := begin(&b, NodeUnit, "podrun node: pods of a Kubernetes cluster", system)
	if system {
		afterNetwork(line)
	}
	line("StartLimitIntervalSec=0")
	line("\n[Service]\nExecStart=%s node%s", quoteWord(program, false), joinWords(args))
	line("KillMode=process\nTimeoutStopSec=15min\nRestart=always\nRestartSec=2\nRestartPreventExitStatus=2")
	line("\n[Install]\nWantedBy=%s", bootTarget(system))
	line("\n[%s]\nSource=podrun systemd install-node", ownSection)
	return []byte(b.String())
}

// reloadOptions are the options of `podrun up` in a reload, before the files.
const reloadOptions = " --detach --timeout 60s"

// notifyLines writes the properties of a unit whose pods run beside its main process.
func (s Service) notifyLines(line func(string, ...any)) {
	line("Type=notify\nNotifyAccess=all")
	line("ExecStopPost=-%s systemd stop-post", quoteWord(s.Program, false))
	restart := "on-abnormal"
	if s.RestartOnFailure {
		restart = "on-failure"
	}
	line("Restart=%s\nRestartSec=2\nRestartPreventExitStatus=2", restart)
	// A board that starts many units at once takes long before it can extend the timeout.
	line("TimeoutStartSec=15min")
	// The pod lives in a scope of its own: the unit's main process may be killed.
	line("WatchdogSec=%d\nWatchdogSignal=SIGKILL", int(watchdog.Seconds()))
}

// oneShotLines writes the properties of a unit whose start ends with its pods. They are removed when the unit
// stops, as with podman.
func (s Service) oneShotLines(line func(string, ...any)) {
	var files []string
	for _, f := range s.Files {
		files = append(files, "--filename", f)
	}
	line("ExecStopPost=-%s down --keep-objects%s", quoteWord(s.Program, false), joinWords(files))
	line("SuccessExitStatus=143")
}

func (s Service) extra(b *strings.Builder, section string) {
	for _, l := range s.Extra[section] {
		b.WriteString(l + "\n")
	}
}

// quadletSections are the sections of a Quadlet file that systemd ignores.
func (s Service) quadletSections() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Extra)), func(name string) bool { return !strings.HasPrefix(name, "X-") })
}

// ManifestOf returns the manifest that belongs to a unit file of podrun, or "".
func ManifestOf(text []byte) string { return stored(text, "Manifest=") }

// SourceOf returns the file that a unit file of podrun was made from, or "".
func SourceOf(text []byte) string { return stored(text, "Source=") }

// stored returns a value of a unit file's section for podrun.
func stored(text []byte, key string) string {
	_, section, _ := bytes.Cut(text, []byte("\n["+ownSection+"]\n"))
	for line := range strings.Lines(string(section)) {
		if path, ok := strings.CutPrefix(line, key); ok {
			return strings.ReplaceAll(strings.TrimSuffix(path, "\n"), "%%", "%")
		}
	}
	return ""
}

// FilesOf returns the manifests that a unit file of podrun runs.
func FilesOf(text []byte) []string {
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ExecReload=")
		if _, files, found := strings.Cut(rest, reloadOptions); ok && found {
			return splitWords(files)
		}
	}
	return nil
}

// splitWords splits a line of words, quoted as by quoteWord.
func splitWords(line string) []string {
	var list []string
	var word strings.Builder
	inWord, inQuotes := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' && !inQuotes:
			if inWord {
				list = append(list, word.String())
			}
			word.Reset()
			inWord = false
			continue
		case c == '"':
			inQuotes, inWord = !inQuotes, true
			continue
		case strings.IndexByte(`\%$`, c) >= 0 && i+1 < len(line):
			i++
			c = line[i]
		}
		inWord = true
		word.WriteByte(c)
	}
	if inWord {
		list = append(list, word.String())
	}
	return list
}

// EscapeSpecifiers escapes the characters of systemd's specifiers.
func EscapeSpecifiers(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quoteWord quotes a word of a command line for systemd (systemd.service(5), COMMAND LINES),
// without C escapes, specifiers and, except in the program's path, variables.
func quoteWord(word string, variables bool) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word)
	if variables {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	if strings.ContainsAny(word, " \t\"'\\;") {
		return `"` + word + `"`
	}
	return word
}

func joinWords(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" " + quoteWord(a, true))
	}
	return b.String()
}

// Template returns the unit file podrun@.service, for pods whose manifests are in podrun/pods of
// the configuration directory. The stop timeout is extended to the pod's grace period when that is
// known.
func Template(program string, system bool) []byte {
	s := Service{Name: "podrun-%i", Program: program, System: system, Grace: 60 * time.Second, RestartOnFailure: true}
	text := string(s.File("podrun@NAME"))
	text = strings.Replace(text, "Description=\n", "Description=Pod %i\n", 1)
	text = strings.Replace(text, " up\n", " up %E/podrun/pods/%i.yaml\n", 1)
	text = strings.Replace(text, " --timeout 60s\n", " --timeout 60s %E/podrun/pods/%i.yaml\n", 1)
	text = strings.Replace(text, "SyslogIdentifier=podrun-%%i", "SyslogIdentifier=%i", 1)
	text, _, _ = strings.Cut(text, "\n["+ownSection+"]")
	return []byte(text)
}
