package quadlet

import (
	"slices"
	"strings"
)

// support is podrun's support of a key.
type support string

const (
	keySupported support = "supported"
	keyRefused   support = "refused"
	keyNoEffect  support = "no effect" // accepted; podrun does it anyway
)

// key is one key of a file of Quadlet. The note of a refused key is the error's text: what to do instead.
type key struct {
	section, name string
	support       support
	note          string
	option        string // of package runpod, which each value sets; "": other code handles the key
	form          form
}

// form is how a key has its values.
type form int

const (
	once  form = iota // the last one counts
	each              // each line has one
	words             // each line has several, separated by spaces
)

// otherKeys stands for the keys of a section without a row.
const otherKeys = "other keys"

const (
	noteUserNS = "the user namespace of podrun's pods is fixed (uid 0 is the user, the others are subordinate ids); remove it"
	noteArgs   = "these are options of podman; remove it"
	noteModule = "podrun does not read containers.conf; remove it"
	noteUser   = "the unit runs as the user of the service manager; install it as the user who owns the pods, and remove it"
)

// kubeKeys returns all keys of podman-kube.unit(5).
func kubeKeys() []key {
	return []key{
		{"Kube", "AutoUpdate", keySupported, "`registry`, `local`, `CONTAINER/registry`, `CONTAINER/local`: `up --auto-update`; `podrun update --auto` updates the pods, as `podman auto-update` does. For Pods only", "", once},
		{"Kube", "ConfigMap", keySupported, "a file of objects to store for the pods; may occur several times", "", once},
		{"Kube", "ContainersConfModule", keyRefused, noteModule, "", once},
		{"Kube", "ExitCodePropagation", keySupported, "`all`, `any`, `none` (the default, as with podman): `up --exit-code-from`", "", once},
		{"Kube", "GlobalArgs", keyRefused, noteArgs, "", once},
		{"Kube", "KubeDownForce", keyNoEffect, "a pod's volumes are always removed with it; claims stay", "", once},
		{"Kube", "LogDriver", keySupported, "`journald`, `passthrough`: the unit's journal. `k8s-file`, `json-file`, `none`: only `podrun logs`", "", once},
		{"Kube", "LogOpt", keySupported, "`max-size=SIZE`: `up --log-max-size`; other options are refused. For Pods only", "", once},
		{"Kube", "Network", keySupported, "`host`, `none`: `up --network`, for pods that do not set it themselves. `bridge`, `pasta`, `private`, `x.network`: podrun's own network. Other names and options are refused. For Pods only", "", once},
		{"Kube", "PodmanArgs", keyRefused, noteArgs, "", once},
		{"Kube", "PublishPort", keySupported, "`[IP:]HOSTPORT:PORT[/udp]`, or ranges: `up --publish`, instead of the manifest's hostPort for the port. Without a port of the host podrun chooses one from 20000 to 29999, always the same: see `podrun port`. For Pods only", "", once},
		{"Kube", "RemapGid", keyRefused, noteUserNS, "", once},
		{"Kube", "RemapUid", keyRefused, noteUserNS, "", once},
		{"Kube", "RemapUidSize", keyRefused, noteUserNS, "", once},
		{"Kube", "RemapUsers", keyRefused, noteUserNS, "", once},
		{"Kube", "ServiceName", keySupported, "the unit's name, without .service", "", once},
		{"Kube", "SetWorkingDirectory", keySupported, "`yaml`, `unit`, unless `[Service]` has WorkingDirectory", "", once},
		{"Kube", "UserNS", keyRefused, noteUserNS, "", once},
		{"Kube", "Yaml", keySupported, "the manifest; may occur several times. Relative to the file; `%h/` is your home", "", once},
	}
}

// sharedKeys returns the keys of the sections that all files may have. Keys that podrun copies are one row.
func sharedKeys() []key {
	return []key{
		{"Quadlet", "DefaultDependencies", keySupported, "`no`: the system's units do not wait for the network", "", once},

		{"Unit", strings.Join(dependencies, ", "), keySupported, "`db.kube`, `db.container` and `db.pod` stand for their services, which may be the pod's of a container; `.volume` and `.network` have no service and are omitted; `.image`, `.build` and `.artifact` are refused", "", once},
		{"Unit", otherKeys, keySupported, "copied", "", once},

		{"Service", "Type", keySupported, "`notify` (the default), or `oneshot` for pods that end, and manifests without pods", "", once},
		{"Service", "KillMode", keySupported, "`mixed` (the default) or `control-group`", "", once},
		{"Service", "BusName", keyRefused, "podrun has no bus name", "", once},
		{"Service", "Delegate", keyRefused, "the pod has a delegated scope beside the unit; remove it", "", once},
		{"Service", "DynamicUser", keyRefused, noteUser, "", once},
		{"Service", "ExecReload", keyRefused, "podrun sets it: a reload applies the current manifest", "", once},
		{"Service", "ExecStart", keyRefused, "the unit starts podrun up; write a unit of your own for other commands", "", once},
		{"Service", "ExecStop", keyRefused, "podrun stops the pod by itself; use ExecStopPost, or a preStop hook of a container", "", once},
		{"Service", "Group", keyRefused, noteUser, "", once},
		{"Service", "NotifyAccess", keyRefused, "podrun sets it", "", once},
		{"Service", "PIDFile", keyRefused, "podrun reports its process to systemd", "", once},
		{"Service", "User", keyRefused, noteUser, "", once},
		{"Service", otherKeys, keySupported, "copied", "", once},

		{"Install", otherKeys, keySupported, "copied; without `[Install]` the unit does not start at boot", "", once},
		{"X-…", otherKeys, keySupported, "copied; `X-Podrun` is podrun's own", "", once},
	}
}

// allKeys returns the keys of all files, by their sections.
func allKeys() []key {
	return slices.Concat(kubeKeys(), containerKeys(), podKeys(), volumeKeys(), networkKeys(), sharedKeys())
}

// findKey returns the row of a key.
func findKey(section, name string) (key, bool) {
	for _, k := range allKeys() {
		if k.section == section && k.name == name {
			return k, true
		}
	}
	return key{}, false
}
