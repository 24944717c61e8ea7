package systemd

// KeySupport is podrun's support of a key of a .kube file.
type KeySupport string

const (
	keySupported KeySupport = "supported"
	keyRefused   KeySupport = "refused"
	keyNoEffect  KeySupport = "no effect" // accepted; podrun does it anyway
)

// kubeKey is one key of a .kube file. The note of a refused key is the error's text: what to do instead.
type kubeKey struct {
	section, name string
	support       KeySupport
	note          string
}

// otherKeys stands for the keys of a section without a row.
const otherKeys = "other keys"

const (
	noteUserNS = "the user namespace of podrun's pods is fixed (uid 0 is the user, the others are subordinate ids); remove it"
	noteArgs   = "these are options of podman; remove it"
	noteUser   = "the unit runs as the user of the service manager; install it as the user who owns the pods, and remove it"
)

// kubeKeys returns all keys of podman-kube.unit(5), and the keys of other sections that podrun does not only copy.
func kubeKeys() []kubeKey {
	return []kubeKey{
		{"Kube", "AutoUpdate", keySupported, "`registry`, `local`, `CONTAINER/registry`, `CONTAINER/local`: `up --auto-update`; `podrun update --auto` updates the pods, as `podman auto-update` does. For Pods only"},
		{"Kube", "ConfigMap", keySupported, "a file of objects to store for the pods; may occur several times"},
		{"Kube", "ContainersConfModule", keyRefused, "podrun does not read containers.conf; remove it"},
		{"Kube", "ExitCodePropagation", keySupported, "`all`, `any`, `none` (the default, as with podman): `up --exit-code-from`"},
		{"Kube", "GlobalArgs", keyRefused, noteArgs},
		{"Kube", "KubeDownForce", keyNoEffect, "a pod's volumes are always removed with it; claims stay"},
		{"Kube", "LogDriver", keySupported, "`journald`, `passthrough`: the unit's journal. `k8s-file`, `json-file`, `none`: only `podrun logs`"},
		{"Kube", "LogOpt", keySupported, "`max-size=SIZE`: `up --log-max-size`; other options are refused. For Pods only"},
		{"Kube", "Network", keySupported, "`host`, `none`: `up --network`, for pods that do not set it themselves. `bridge`, `pasta`, `private`: podrun's own network. Networks with a name and options are refused. For Pods only"},
		{"Kube", "PodmanArgs", keyRefused, noteArgs},
		{"Kube", "PublishPort", keySupported, "`[IP:]HOSTPORT:PORT[/udp]`, or ranges: `up --publish`, instead of the manifest's hostPort for the port. Without a port of the host it is refused. For Pods only"},
		{"Kube", "RemapGid", keyRefused, noteUserNS},
		{"Kube", "RemapUid", keyRefused, noteUserNS},
		{"Kube", "RemapUidSize", keyRefused, noteUserNS},
		{"Kube", "RemapUsers", keyRefused, noteUserNS},
		{"Kube", "ServiceName", keySupported, "the unit's name, without .service"},
		{"Kube", "SetWorkingDirectory", keySupported, "`yaml`, `unit`, unless `[Service]` has WorkingDirectory"},
		{"Kube", "UserNS", keyRefused, noteUserNS},
		{"Kube", "Yaml", keySupported, "the manifest; may occur several times. Relative to the file; `%h/` is your home"},

		{"Quadlet", "DefaultDependencies", keySupported, "`no`: the system's units do not wait for the network"},

		{"Unit", "After, Before, BindsTo, Conflicts, PartOf, Requires, Requisite, Upholds, Wants", keySupported, "`db.kube` stands for its service; other files of Quadlet are refused: name their services"},
		{"Unit", otherKeys, keySupported, "copied"},

		{"Service", "Type", keySupported, "`notify` (the default), or `oneshot` for manifests whose pods end, or without pods"},
		{"Service", "KillMode", keySupported, "`mixed` (the default) or `control-group`"},
		{"Service", "BusName", keyRefused, "podrun has no bus name"},
		{"Service", "Delegate", keyRefused, "the pod has a delegated scope beside the unit; remove it"},
		{"Service", "DynamicUser", keyRefused, noteUser},
		{"Service", "ExecReload", keyRefused, "podrun sets it: a reload applies the current manifest"},
		{"Service", "ExecStart", keyRefused, "the unit starts podrun up; write a unit of your own for other commands"},
		{"Service", "ExecStop", keyRefused, "podrun stops the pod by itself; use ExecStopPost, or a preStop hook of a container"},
		{"Service", "Group", keyRefused, noteUser},
		{"Service", "NotifyAccess", keyRefused, "podrun sets it"},
		{"Service", "PIDFile", keyRefused, "podrun reports its process to systemd"},
		{"Service", "User", keyRefused, noteUser},
		{"Service", otherKeys, keySupported, "copied"},

		{"Install", otherKeys, keySupported, "copied; without `[Install]` the unit does not start at boot"},
		{"X-…", otherKeys, keySupported, "copied; `X-Podrun` is podrun's own"},
	}
}

// findKey returns the row of a key.
func findKey(section, name string) (kubeKey, bool) {
	for _, k := range kubeKeys() {
		if k.section == section && k.name == name {
			return k, true
		}
	}
	return kubeKey{}, false
}
