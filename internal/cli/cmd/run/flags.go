package run

import "github.com/urfave/cli/v2"

// containerFlags are the options of the container and its Pod, by the names that package runpod has for them. Their
// order is the order in which they are set: a variable of env overrides one of env-file.
func containerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "publish", Aliases: []string{"p"}, Usage: "forward a `PORT` of this machine: [IP:][HOST:]CONTAINER[/udp]; without HOST a free one"},
		&cli.StringSliceFlag{Name: "volume", Aliases: []string{"v"}, Usage: "mount a `VOLUME`, a path of this machine or a name: [PATH|NAME:]MOUNT[:ro]"},
		&cli.StringSliceFlag{Name: "mount", Usage: "mount what this `LIST` describes: type=bind,source=DIR,target=DIR[,readonly]; also type=volume, tmpfs or image"},
		&cli.StringSliceFlag{Name: "tmpfs", Usage: "mount a file system in memory at this `PATH`[:size=64m,mode=1777]"},
		&cli.StringSliceFlag{Name: "env-file", Usage: "set the variables of this `FILE`, a NAME=VALUE on each line"},
		&cli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; NAME alone takes the value from podrun's own environment"},
		&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "run the command in this `DIRECTORY` of the container"},
		&cli.StringFlag{Name: "user", Aliases: []string{"u"}, Usage: "run it as this `USER[:GROUP]`, by number or by a name that the image has"},
		&cli.StringSliceFlag{Name: "group-add", Usage: "a further `GROUP` of the user, by number or by a name that the image has"},
		&cli.StringFlag{Name: "restart", Value: "no", Usage: "the `POLICY` when it has ended: no, on-failure[:TIMES], always or unless-stopped"},
		&cli.StringFlag{Name: "memory", Aliases: []string{"m"}, Usage: "limit its memory to this `SIZE`: 512m, 2g"},
		&cli.StringFlag{Name: "cpus", Usage: "limit it to this `NUMBER` of processors: 1.5"},
		&cli.StringFlag{Name: "pids-limit", Usage: "limit it to this `NUMBER` of processes and threads"},
		&cli.StringSliceFlag{Name: "ulimit", Usage: "a `LIMIT` of its processes, NAME=SOFT[:HARD]: nofile=1024:4096"},
		&cli.StringFlag{Name: "shm-size", Usage: "the `SIZE` of /dev/shm: 256m"},
		&cli.StringSliceFlag{Name: "device", Usage: "give it a `DEVICE` of this machine: PATH[:PATH], or a name of CDI, vendor.com/class=name"},
		&cli.StringFlag{Name: "gpus", Usage: "give it GPUs of NVIDIA, by CDI: `COUNT` is all, or how many"},
		&cli.BoolFlag{Name: "read-only", Usage: "mount its root file system read-only"},
		&cli.StringSliceFlag{Name: "cap-add", Usage: "add a `CAPABILITY`, or ALL"},
		&cli.StringSliceFlag{Name: "cap-drop", Usage: "drop a `CAPABILITY`, or ALL"},
		&cli.BoolFlag{Name: "privileged", Usage: "every capability and device, as far as the user who runs podrun has them"},
		&cli.StringSliceFlag{Name: "security-opt", Usage: "an `OPTION`: no-new-privileges, apparmor=PROFILE, seccomp=unconfined, label=disable"},
		&cli.StringSliceFlag{Name: "sysctl", Usage: "set a kernel parameter of the pod, `NAME=VALUE`"},
		&cli.BoolFlag{Name: "init", Usage: "an init process in front of it, which reaps orphans"},
		&cli.StringFlag{Name: "network", Aliases: []string{"net"}, Usage: "its `NETWORK`: host, none or default"},
		&cli.StringFlag{Name: "hostname", Aliases: []string{"h"}, Usage: "its host `NAME` (the name of the pod if not given)"},
		&cli.StringSliceFlag{Name: "add-host", Usage: "a line of /etc/hosts, `NAME:IP`; the IP host-gateway is this machine"},
		&cli.StringSliceFlag{Name: "dns", Usage: "the `IP` of a name server to query instead of this machine's"},
		&cli.StringSliceFlag{Name: "dns-search", Usage: "a `DOMAIN` in which names are searched"},
		&cli.StringSliceFlag{Name: "dns-option", Aliases: []string{"dns-opt"}, Usage: "an `OPTION` of resolv.conf: ndots:1"},
		&cli.StringSliceFlag{Name: "label-file", Usage: "set the labels of this `FILE`, a KEY=VALUE on each line"},
		&cli.StringSliceFlag{Name: "label", Aliases: []string{"l"}, Usage: "a label of the pod, `KEY=VALUE`; an annotation if Kubernetes has no such label"},
		&cli.StringSliceFlag{Name: "annotation", Usage: "an annotation of the pod, `KEY=VALUE`"},
		&cli.StringFlag{Name: "health-cmd", Usage: "it is ready when this `COMMAND` of its shell succeeds"},
		&cli.StringFlag{Name: "health-interval", Usage: "the `TIME` between two checks (30s if not given)"},
		&cli.StringFlag{Name: "health-timeout", Usage: "how much `TIME` a check may take (30s if not given)"},
		&cli.StringFlag{Name: "health-retries", Usage: "how many checks in a row must fail, a `NUMBER` (3 if not given)"},
		&cli.StringFlag{Name: "health-start-period", Usage: "in this `TIME` after its start failures do not count"},
		&cli.StringFlag{Name: "health-on-failure", Usage: "what becomes of it when the checks have failed, an `ACTION`: none, kill or stop"},
		&cli.BoolFlag{Name: "no-healthcheck", Usage: "run no health check, as without --health-cmd"},
		&cli.StringFlag{Name: "stop-signal", Usage: "the `SIGNAL` that ends it (the image's if not given)"},
		&cli.StringFlag{Name: "stop-timeout", Usage: "the `SECONDS` between that signal and SIGKILL (10 if not given)"},
		&cli.StringFlag{Name: "entrypoint", Usage: "the `PROGRAM` instead of the image's entrypoint"},
		&cli.StringFlag{Name: "pull", Value: "missing", Usage: "when to pull the image: `POLICY` is always, missing or never"},
	}
}
