package systemd

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Service is what a unit file of podrun's says. Paths are absolute.
type Service struct {
	Name             string // web: of podrun@web.service
	Description      string
	Program          string   // podrun's own
	Args             []string // options of `podrun up` in the foreground
	Files            []string // the manifests
	Manifest         string   // what uninstall removes too; "" if the file stays its user's
	Source           string   // what the unit was made from
	System           bool     // of the system's manager
	Grace            time.Duration
	RestartOnFailure bool // systemd starts the pod again when it has failed; otherwise only after a crash

	// What a Quadlet file adds, as lines of each section, in its order.
	Extra map[string][]string
}

// generatedHeader begins every unit file of podrun's: others are left alone.
const generatedHeader = "# Made by podrun systemd install. Changes are lost when it is run again: put them"

// ownSection is where podrun keeps, in a unit file, what uninstall must know.
const ownSection = "X-Podrun"

// IsGenerated says whether a unit file is podrun's.
func IsGenerated(text []byte) bool { return bytes.HasPrefix(text, []byte(generatedHeader)) }

// StopMargin is what a stop may take beyond the grace period: SIGKILL, unmounting, the
// next try of a stop that failed.
const StopMargin = 30 * time.Second

// watchdog is how long a supervisor may say nothing. It pings three times as often.
const watchdog = 30 * time.Second

// firewalls make rules of the host's when it starts; those that there are not are nothing
// to wait for.
const firewalls = "docker.service libvirtd.service firewalld.service ufw.service nftables.service"

// File is the unit file.
func (s Service) File(unit string) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	user := " --user"
	if s.System {
		user = ""
	}
	line("%s\n# into a drop-in (systemctl%s edit %s).", generatedHeader, user, unit)
	line("\n[Unit]\nDescription=%s", escapeSpecifiers(s.Description))
	if s.System {
		line("Wants=network-online.target\nAfter=network-online.target")
		// How the pods leave depends on the host's rules for packets: they are to be there.
		line("After=%s", firewalls)
	}
	// A pod whose images cannot be had yet waits by itself; one that fails at once is
	// tried for ever, as the kubelet does.
	line("StartLimitIntervalSec=0")
	s.extra(&b, "Unit")
	line("\n[Service]\nType=notify\nNotifyAccess=all")
	line("ExecStart=%s up%s%s", quoteWord(s.Program, false), joinWords(s.Args), joinWords(s.Files))
	line("ExecReload=%s up --detach --timeout 60s%s", quoteWord(s.Program, false), joinWords(s.Files))
	line("ExecStopPost=-%s systemd stop-post", quoteWord(s.Program, false))
	restart := "on-abnormal"
	if s.RestartOnFailure {
		restart = "on-failure"
	}
	line("Restart=%s\nRestartSec=2\nRestartPreventExitStatus=2", restart)
	// On a board that starts many units at once it takes long until one can ask for more.
	line("TimeoutStartSec=15min\nTimeoutStopSec=%d", int((s.Grace + StopMargin).Seconds()))
	// The pod lives in a scope of its own: the unit's main process may be killed.
	line("WatchdogSec=%d\nWatchdogSignal=SIGKILL\nKillMode=mixed", int(watchdog.Seconds()))
	line("SyslogIdentifier=%s", escapeSpecifiers(s.Name))
	s.extra(&b, "Service")
	switch install := s.Extra["Install"]; {
	case s.Extra == nil && s.System:
		line("\n[Install]\nWantedBy=multi-user.target")
	case s.Extra == nil:
		line("\n[Install]\nWantedBy=default.target")
	case len(install) > 0:
		line("\n[Install]")
		s.extra(&b, "Install")
	}
	for _, section := range s.quadletSections() {
		line("\n[%s]", section)
		s.extra(&b, section)
	}
	line("\n[%s]\nSource=%s", ownSection, escapeSpecifiers(s.Source))
	if s.Manifest != "" {
		line("Manifest=%s", escapeSpecifiers(s.Manifest))
	}
	return []byte(b.String())
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

// ManifestOf is the manifest that a unit file of podrun's says is its own, or "".
func ManifestOf(text []byte) string {
	_, own, _ := bytes.Cut(text, []byte("\n["+ownSection+"]\n"))
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(line, "Manifest="); ok {
			return strings.ReplaceAll(strings.TrimSuffix(path, "\n"), "%%", "%")
		}
	}
	return ""
}

// FilesOf are the manifests that a unit file of podrun's runs.
func FilesOf(text []byte) []string {
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ExecReload=")
		if _, files, found := strings.Cut(rest, " up --detach --timeout 60s"); ok && found {
			return splitWords(files)
		}
	}
	return nil
}

// splitWords are the words that words has written.
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

// escapeSpecifiers escapes what systemd would take for a specifier.
func escapeSpecifiers(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quoteWord is a word of a command line as systemd reads it (systemd.service(5), COMMAND
// LINES): in quotes, without C escapes, specifiers and, but in the program's path,
// variables.
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

// Template is the unit file podrun@.service, for pods whose manifests lie in
// podrun/pods of the configuration directory. The stop's time-out is extended to the
// pod's grace period when it is known.
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
