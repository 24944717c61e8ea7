package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/podrun/podrun/internal/cli/internal/clitest"
	"github.com/podrun/podrun/internal/cli/internal/cmdline"
	"github.com/podrun/podrun/internal/cli/internal/cmdutil"
	"github.com/podrun/podrun/internal/golden"
)

// everyCommand visits the tree of commands.
func everyCommand(app *cli.App, visit func(path []string, cmd *cli.Command)) {
	var walk func(path []string, cmds []*cli.Command)
	walk = func(path []string, cmds []*cli.Command) {
		for _, c := range cmds {
			full := append(path[:len(path):len(path)], c.Name)
			visit(full, c)
			walk(full, c.Subcommands)
		}
	}
	walk(nil, app.Commands)
}

func TestHelp(t *testing.T) {
	h := clitest.NewHost(t)
	app := commandTree(&cmdutil.Env{Deps: h})
	var all strings.Builder
	show := func(args ...string) {
		got := h.Run(args...)
		if got.Code != 0 || got.Err != "" {
			t.Errorf("%v: %+v", args, got)
		}
		all.WriteString("$ podrun " + strings.Join(args, " ") + "\n" + got.Out + "\n")
	}
	show()
	show("--help")
	everyCommand(app, func(path []string, cmd *cli.Command) {
		show(append(path, "--help")...)
		if same := h.Run(append([]string{"help"}, path...)...); !strings.HasPrefix(same.Out, "podrun "+strings.Join(path, " ")+": "+cmd.Usage) {
			t.Errorf("help %v: %+v", path, same)
		}
		if !strings.Contains(cmd.Description, "\nExamples:\n  podrun "+strings.Join(path, " ")) && !strings.Contains(cmd.Description, "| podrun "+strings.Join(path, " ")) {
			t.Errorf("%v has no examples", path)
		}
		for _, f := range cmd.Flags {
			if doc := f.(cli.DocGenerationFlag); cmdline.HasValue(f) && strings.Count(doc.GetUsage(), "`") != 2 {
				t.Errorf("%v: the usage of --%s does not name its value", path, f.Names()[0])
			}
		}
	})
	for l := range strings.Lines(all.String()) {
		if utf8.RuneCountInString(l) > 81 {
			t.Errorf("longer than 80 columns: %s", l)
		}
	}
	golden.Check(t, "testdata/help.golden", all.String())
}

func TestHelpIsAskedForInManyWays(t *testing.T) {
	h := clitest.NewHost(t)
	want := h.Run("logs", "--help")
	for _, args := range []string{"logs -h", "logs web -h", "logs -f --help web", "help logs", "logs -fh"} {
		if d := cmp.Diff(want, h.Run(strings.Fields(args)...), cmp.AllowUnexported(clitest.Result{})); d != "" {
			t.Errorf("%s:\n%s", args, d)
		}
	}
	if got := h.Run("exec", "web", "--", "ls", "--help"); strings.Contains(got.Out, "Usage") {
		t.Error("the command's own --help was taken for exec's")
	}
}

func TestUnknownWords(t *testing.T) {
	h := clitest.NewHost(t)
	for args, want := range map[string]string{
		"lgos web":           "podrun: \"lgos\" is not a command of podrun\nhint: did you mean podrun logs?\n",
		"frobnicate":         "podrun: \"frobnicate\" is not a command of podrun\nhint: podrun --help lists the commands\n",
		"image lod x":        "podrun: \"lod\" is not a command of podrun image\nhint: did you mean podrun image load?\n",
		"help imag":          "podrun: \"imag\" is not a command of podrun\nhint: did you mean podrun image?\n",
		"help image x1":      "podrun: \"x1\" is not a command of podrun image\nhint: podrun image --help lists the commands\n",
		"image":              "podrun: image requires one of load, pull, import, save, push, ls, inspect, history, tag, rm, prune and verify\nhint: podrun image --help\n",
		"--colour":           "podrun: unknown option --colour\nhint: podrun --help\n",
		"logs --folow":       "podrun: unknown option --folow\nhint: did you mean --follow? podrun logs --help lists the options\n",
		"get pods --all":     "podrun: unknown option --all\nhint: podrun get lists pods that have ended too; -A lists the pods of all namespaces\n",
		"get pods -a":        "podrun: unknown option -a\nhint: podrun get lists pods that have ended too; -A lists the pods of all namespaces\n",
		"get svc -w":         "podrun: only pods can be watched\nhint: podrun get --help\n",
		"down -A":            "podrun: --all-namespaces requires --selector or --all\nhint: podrun down --help\n",
		"get svc,cn":         "podrun: unknown kind \"cn\"\nhint: podrun get --help lists the kinds\n",
		"get cm,svc x":       "podrun: names require a single kind: use KIND/NAME for objects of several kinds\nhint: podrun get --help\n",
		"get cm/a b":         "podrun: use KIND/NAME for all arguments or for none: \"b\" is not\nhint: podrun get --help\n",
		"get x -l a":         "podrun: name cannot be provided when a selector is specified\nhint: podrun get --help\n",
		"ps -l =a":           "podrun: selector \"=a\": found '=', expected: !, identifier, or 'end of string'\nhint: podrun ps --help\n",
		"ps -o jsonpath":     "podrun: output format a template is missing: jsonpath='{.status.phase}'\nhint: podrun ps --help\n",
		"get nodes":          "podrun: podrun does not store Node objects\nhint: there is one node: podrun doctor checks this machine\n",
		"config view":        "podrun: \"config\" is not a command of podrun: it has no meaning on one machine\nhint: podrun works on this machine only; podrun ps -n NAMESPACE names a namespace, and PODRUN_NAMESPACE one for all commands\n",
		"drain node":         "podrun: \"drain\" is not a command of podrun: it has no meaning on one machine\nhint: there is one node, this machine: podrun stop --all stops the pods, podrun doctor checks the machine; podrun node drain drains a node of a cluster\n",
		"sh web":             "podrun: \"sh\" is not a command of podrun\nhint: podrun exec -it POD -- sh runs a shell in a pod\n",
		"-n x kustomize a b": "podrun: specify one path to a kustomization directory\nhint: podrun kustomize --help\n",
		"create sts x":       "podrun: \"sts\" is not a command of podrun create\nhint: write a manifest; podrun create -f FILE creates its objects\n",
		"create x.yaml":      "podrun: \"x.yaml\" is not a command of podrun create\nhint: podrun create --help lists the commands\n",
		"create hpa x":       "podrun: \"hpa\" is not a command of podrun create: it has no meaning on one machine\nhint: podrun does not scale by itself: set replicas in the manifest; podrun create --help lists what it creates\n",
		"volume create x":    "podrun: \"create\" is not a command of podrun volume\nhint: a PersistentVolumeClaim in a manifest creates one: podrun apply -f FILE\n",
		"systemd status":     "podrun: \"status\" is not a command of podrun systemd\nhint: systemctl --user status podrun@NAME does that\n",
		"scale web":          "podrun: the --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0\nhint: podrun scale --help\n",
		"rollout":            "podrun: rollout requires one of status, history, undo, restart, pause and resume\nhint: podrun rollout --help\n",
		"rollout status":     "podrun: rollout status requires a kind and a name, such as deployment/web, or -f and a file\nhint: podrun rollout status --help\n",
		"set env x A=b":      "podrun: \"env\" is not a command of podrun set\nhint: podrun edit KIND/NAME changes an object in an editor, podrun patch KIND/NAME -p PATCH by a patch\n",
		"set image d/x":      "podrun: at least one image update is required: CONTAINER=IMAGE\nhint: podrun set image --help\n",
		"label pod/x":        "podrun: at least one label update is required: KEY=VALUE or KEY-\nhint: podrun label --help\n",
		"label po/x a=b=":    "podrun: invalid label value: \"b=\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')\nhint: podrun label --help\n",
		"label a=b po x":     "podrun: all resources must be specified before changes: po\nhint: podrun label --help\n",
		"annotate po x -":    "podrun: at least one annotate update is required: KEY=VALUE or KEY-\nhint: podrun annotate --help\n",
		"explain":            "podrun: explain requires one kind or field, such as pod.spec.containers\nhint: podrun explain --help\n",
		"explain pod.spc":    "podrun: field \"spc\" does not exist\nhint: podrun explain pod lists the fields\n",
		"explain nodes":      "podrun: podrun does not store Node objects\nhint: there is one node: podrun doctor checks this machine\n",
		"events --for x":     "podrun: --for must be in resource/name form, such as pod/web, not \"x\"\nhint: podrun events --help\n",
		"create secret x":    "podrun: \"x\" is not a command of podrun create secret\nhint: podrun create secret generic NAME creates one from files and values\n",
		"play -f x":          "podrun: \"play\" is not a command of podrun\nhint: podrun up FILE runs the pods of a manifest\n",
		"image list -q":      "podrun: \"list\" is not a command of podrun image\nhint: podrun image --help lists the commands\n",
		"up --timeout 5":     "podrun: option --timeout cannot be \"5\": use a duration such as 90s, 5m or 2h\nhint: podrun up --help\n",
		"logs --tail x":      "podrun: option --tail cannot be \"x\": use a whole number\nhint: podrun logs --help\n",
		"up -d=maybe":        "podrun: option -d cannot be \"maybe\": use true or false\nhint: podrun up --help\n",
		"logs -fx web":       "podrun: unknown option --fx\nhint: podrun logs --help\n",
		"logs web -c":        "podrun: option -c needs a value\nhint: podrun logs --help\n",
		"ps -o":              "podrun: option -o needs a value\nhint: podrun ps --help\n",
		"ps -o=xml":          "podrun: unknown output format \"xml\": use wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=NAME:PATH\nhint: podrun ps --help\n",
		"version 2":          "podrun: version accepts no arguments\nhint: podrun version --help\n",
		"image ls x":         "podrun: image ls accepts no arguments\nhint: podrun image ls --help\n",
		"cluster ls x":       "podrun: cluster ls accepts no arguments: [\"x\"]\nhint: podrun cluster ls --help\n",
		"cluster images x":   "podrun: cluster images accepts no arguments: [\"x\"]\nhint: podrun cluster images --help\n",
		"cluster stop a b":   "podrun: cluster stop accepts one name, not [\"a\" \"b\"]\nhint: podrun cluster stop --help\n",
		"cluster stop " + strings.Repeat("a", 41): "podrun: \"" + strings.Repeat("a", 41) + "\" is not a valid name of a cluster: it has more than 40 characters\nhint: podrun cluster stop --help\n",
		"image import x": "podrun: image import requires a tar file and a name for the image\nhint: podrun image import --help\n",
		"image rm":       "podrun: image rm requires the names or ids of images\nhint: podrun image rm --help\n",
		"image pull":     "podrun: image pull requires the names of images\nhint: podrun image pull --help\n",
		"image load":     "podrun: image load requires the files of archives\nhint: podrun image load --help\n",
		"validate":       "podrun: validate requires the files of pods\nhint: podrun validate --help\n",
	} {
		clitest.CheckResult(t, h.Run(strings.Fields(args)...), 2, "", want)
	}
}

func TestVersion(t *testing.T) {
	h := clitest.NewHost(t)
	for _, args := range []string{"version", "--version", "-v"} {
		got := h.Run(args)
		if got.Code != 0 || !strings.HasPrefix(got.Out, "podrun ") || strings.Count(got.Out, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestArrange(t *testing.T) {
	app := commandTree(&cmdutil.Env{})
	for args, want := range map[string]string{
		"logs web -f":                     "-f -- web",
		"-n shop logs web -f":             "-n shop -f -- web",
		"-n logs logs -f web":             "-n logs -f -- web",
		"compose -f a.yaml logs -f web":   "--file a.yaml -f -- web",
		"compose -fa.yaml up -d web":      "-f=a.yaml -d -- web",
		"compose exec -T web ls -l":       "-T -- web ls -l",
		"compose -p x -n y down -v":       "-p x -n y -v --",
		"--namespace=logs get logs":       "--namespace=logs -- logs",
		"-f web.yaml -n a down --force":   "-f web.yaml -n a --force --",
		"-n shop image -q ls":             "-q --",
		"-nshop version":                  "--",
		"-An x --nosuch get pods":         "-A -n x --nosuch -- pods",
		"-v ps":                           "-v ps", // the app's own option
		"nosuch -n logs":                  "nosuch",
		"exec web -- -n logs":             "-- web -- -n logs",
		"logs -f web -c app":              "-f -c app -- web",
		"logs web --tail -1":              "--tail -1 -- web",
		"exec -it web -- ls -l -- -t":     "-i -t -- web -- ls -l -- -t",
		"exec web -itc app -- sh":         "-i -t -c app -- web -- sh",
		"exec web -itcapp -- sh":          "-i -t -c=app -- web -- sh",
		"get web -oyaml":                  "-o=yaml -- web",
		"get web -o=yaml":                 "-o=yaml -- web",
		"get web --output=yaml":           "--output=yaml -- web",
		"up - -d":                         "-d -- -",
		"down --grace-period 3 a --force": "--grace-period 3 --force -- a",
		"ps -Axo wide":                    "-Axo -- wide", // -x is unknown: the parser's to say
	} {
		_, cmd, rest := cmdline.Find(app, strings.Fields(args))
		if got := strings.Join(cmdline.Arrange(cmd, rest), " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
