package quadlet

import (
	"slices"
	"strings"
)

const (
	noteAddresses = "podrun chooses the addresses of pods; reach them by name, and remove it"
	notePath      = "podrun does not change which files of /proc and /sys are hidden; remove it"
	noteKeepUser  = "the user namespace of podrun's pods is fixed (uid 0 is the user, the others are subordinate ids); run the program as root of the container (User=0) to own files as your user, and remove it"
	noteUnit      = "a name for systemd: podrun makes no unit of the file"
	noteNotEnv    = "podrun does not pass on its environment: name the variables in Environment="
)

// set returns the row of a key that becomes an option of package runpod.
func set(section, name, option string, f form, note string) key {
	return key{section, name, keySupported, note, option, f}
}

// containerKeys returns all keys of podman-container.unit(5).
func containerKeys() []key {
	return byName(containerKeysToL(), containerKeysFromM(), namespaceKeys("Container"))
}

// byName returns the keys of lists in the order of their names.
func byName(lists ...[]key) []key {
	return slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b key) int { return strings.Compare(a.name, b.name) })
}

// namespaceKeys returns the keys that [Container] and [Pod] have in common: mostly of the network and the user namespace.
func namespaceKeys(section string) []key {
	return []key{
		set(section, "AddHost", "add-host", each, ""),
		{section, "ContainersConfModule", keyRefused, noteModule, "", each},
		set(section, "DNS", "dns", each, ""),
		set(section, "DNSOption", "dns-option", each, ""),
		set(section, "DNSSearch", "dns-search", each, ""),
		{section, "GIDMap", keyRefused, noteUserNS, "", each},
		{section, "GlobalArgs", keyRefused, noteArgs, "", each},
		set(section, "HostName", "hostname", once, ""),
		{section, "IP", keyRefused, noteAddresses, "", once},
		{section, "IP6", keyRefused, noteAddresses, "", once},
		set(section, "Label", "label", words, "an annotation if Kubernetes has no such label"),
		{section, "Network", keySupported, "`host`, `none`. `bridge`, `pasta`, `private`, `x.network`: podrun's own network. Other names and options are refused", "", each},
		{section, "NetworkAlias", keySupported, "a Service of that name, which resolves to the pod", "", each},
		{section, "RemapGid", keyRefused, noteKeepUser, "", each},
		{section, "RemapUid", keyRefused, noteKeepUser, "", each},
		{section, "RemapUidSize", keyRefused, noteKeepUser, "", once},
		{section, "RemapUsers", keySupported, "`auto`: the Pod has ids of its own, `hostUsers: false`; others are refused", "", once},
		{section, "SubGIDMap", keyRefused, noteUserNS, "", once},
		{section, "SubUIDMap", keyRefused, noteUserNS, "", once},
		{section, "UIDMap", keyRefused, noteUserNS, "", each},
		{section, "UserNS", keySupported, "`auto`: the Pod has ids of its own, `hostUsers: false`; others are refused", "", once},
	}
}

// containerKeysToL returns the other keys up to the letter L.
func containerKeysToL() []key {
	const c = "Container"
	return []key{
		set(c, "AddCapability", "cap-add", words, ""),
		set(c, "AddDevice", "device", each, "with `-` in front of it only if the device is there"),
		set(c, "Annotation", "annotation", words, ""),
		{c, "AppArmor", keySupported, "a profile that is loaded, or `unconfined`", "", once},
		{c, "AutoUpdate", keySupported, "`registry`, `local`: `podrun update --auto` updates the container", "", once},
		{c, "CgroupsMode", keyNoEffect, "a pod has cgroups of its own; `disabled` is refused", "", once},
		{c, "ContainerName", keySupported, "the name of the Pod, or of the container in the Pod of a `.pod` file; capitals and `_` become small letters and `-`", "", once},
		set(c, "DropCapability", "cap-drop", words, ""),
		{c, "Entrypoint", keySupported, "a program, or a list of words in JSON; empty: `Exec` names the program", "", once},
		set(c, "Environment", "env", words, ""),
		set(c, "EnvironmentFile", "env-file", words, "read when the unit is made"),
		{c, "EnvironmentHost", keyNoEffect, "`no`; `yes` is refused", "", once},
		{c, "Exec", keySupported, "the words after the image", "", once},
		{c, "ExposeHostPort", keyNoEffect, "pods reach every port of each other", "", each},
		{c, "Group", keySupported, "with `User`: `podrun run --user USER:GROUP`", "", once},
		{c, "GroupAdd", keySupported, "`podrun run --group-add`; `keep-groups` is refused", "", each},
		set(c, "HealthCmd", "health-cmd", once, "the container is ready when it succeeds: a readiness probe"),
		set(c, "HealthInterval", "health-interval", once, ""),
		{c, "HealthLogDestination", keyNoEffect, "`podrun events` and `podrun describe` show failed checks", "", once},
		{c, "HealthMaxLogCount", keyNoEffect, "`podrun events` and `podrun describe` show failed checks", "", once},
		{c, "HealthMaxLogSize", keyNoEffect, "`podrun events` and `podrun describe` show failed checks", "", once},
		set(c, "HealthOnFailure", "health-on-failure", once, "`none`, `kill`, `stop`: a liveness probe, too; `Restart=` decides what follows"),
		set(c, "HealthRetries", "health-retries", once, ""),
		set(c, "HealthStartPeriod", "health-start-period", once, ""),
		set(c, "HealthStartupCmd", "health-startup-cmd", once, "a startup probe"),
		set(c, "HealthStartupInterval", "health-startup-interval", once, "of the startup probe: the time between two checks"),
		set(c, "HealthStartupRetries", "health-startup-retries", once, "of the startup probe: how many checks in a row must fail"),
		set(c, "HealthStartupSuccess", "health-startup-success", once, "`1` only"),
		set(c, "HealthStartupTimeout", "health-startup-timeout", once, "of the startup probe: how long a check may take"),
		set(c, "HealthTimeout", "health-timeout", once, ""),
		{c, "HttpProxy", keyNoEffect, "`no`; `yes` is refused", "", once},
		{c, "Image", keySupported, "the image; `.image` and `.build` files are refused", "", once},
		{c, "LogDriver", keySupported, "`journald`, `passthrough`: the unit's journal. `k8s-file`, `json-file`, `none`: only `podrun logs`", "", once},
		{c, "LogOpt", keySupported, "`max-size=SIZE`; other options are refused", "", each},
	}
}

// containerKeysFromM returns the other keys from the letter M on.
func containerKeysFromM() []key {
	const c = "Container"
	return []key{
		{c, "Mask", keyRefused, notePath, "", each},
		set(c, "Memory", "memory", once, ""),
		{c, "Mount", keySupported, "`podrun run --mount`; `x.volume` stands for its volume", "", words},
		{c, "NoNewPrivileges", keySupported, "`podrun run --security-opt no-new-privileges`", "", once},
		{c, "Notify", keySupported, "`healthy`: the unit is active when the container is ready; requires `HealthCmd`. `no`: when it runs. `yes` is refused", "", once},
		set(c, "PidsLimit", "pids-limit", once, ""),
		{c, "Pod", keySupported, "`x.pod`: the container is in the Pod of that file, whose unit runs it", "", once},
		{c, "PodmanArgs", keySupported, "the long options that `podrun run` has, too; others are refused", "", words},
		{c, "PublishPort", keySupported, "`podrun run --publish`; without a port of the host podrun chooses one from 20000 to 29999, always the same: see `podrun port`. In the Pod of a `.pod` file it is refused", "publish", each},
		set(c, "Pull", "pull", once, "`always`, `missing`, `never`"),
		set(c, "ReadOnly", "read-only", once, ""),
		{c, "ReadOnlyTmpfs", keySupported, "with `ReadOnly`, and unless it is `no`: file systems in memory at /run, /tmp and /var/tmp", "", once},
		{c, "ReloadCmd", keySupported, "`systemctl reload` applies the manifest, then runs the command: `podrun exec`", "", once},
		{c, "ReloadSignal", keySupported, "`systemctl reload` applies the manifest, then sends the signal: `podrun kill --signal`", "", once},
		{c, "Retry", keyNoEffect, "podrun tries a pull again until it succeeds", "", once},
		{c, "RetryDelay", keyNoEffect, "podrun tries a pull again until it succeeds", "", once},
		{c, "Rootfs", keyRefused, "make an image of the directory: tar c -C DIR . | podrun image import - NAME; and write Image=NAME", "", once},
		set(c, "RunInit", "init", once, ""),
		{c, "SeccompProfile", keySupported, "`unconfined`, or a file below `~/.local/share/podrun/seccomp`", "", once},
		set(c, "Secret", "secret", each, "the Secret of that name, with the name as key: `podrun create secret generic NAME --from-file NAME=FILE`; `uid` and `gid` are refused"),
		{c, "SecurityLabelDisable", keySupported, "`podrun run --security-opt label=disable`", "", once},
		{c, "SecurityLabelFileType", keyRefused, "podrun does not label files; remove it", "", once},
		{c, "SecurityLabelLevel", keySupported, "`podrun run --security-opt label=level:LEVEL`", "", once},
		{c, "SecurityLabelNested", keyRefused, "podrun does not let a container change labels; remove it", "", once},
		{c, "SecurityLabelType", keySupported, "`podrun run --security-opt label=type:TYPE`", "", once},
		{c, "ServiceName", keySupported, "the unit's name, without .service", "", once},
		set(c, "ShmSize", "shm-size", once, ""),
		{c, "StartWithPod", keySupported, "`yes`; `no` is refused: the containers of a Pod start together", "", once},
		set(c, "StopSignal", "stop-signal", once, ""),
		set(c, "StopTimeout", "stop-timeout", once, "a Pod has the longest one of its containers"),
		set(c, "Sysctl", "sysctl", words, ""),
		set(c, "Timezone", "tz", once, "the machine's rules of the zone at /etc/localtime"),
		set(c, "Tmpfs", "tmpfs", each, ""),
		set(c, "Ulimit", "ulimit", each, ""),
		{c, "Unmask", keyRefused, notePath, "", each},
		{c, "User", keySupported, "`podrun run --user`", "", once},
		{c, "VolatileTmp", keySupported, "without `ReadOnly`: a file system in memory at /tmp", "", once},
		{c, "Volume", keySupported, "`podrun run --volume`; `x.volume` stands for its volume. A volume is empty at first: podrun copies no files of the image into it", "", each},
		set(c, "WorkingDir", "workdir", once, ""),
	}
}

// podKeys returns all keys of podman-pod.unit(5).
func podKeys() []key {
	const p = "Pod"
	return byName(namespaceKeys(p), []key{
		{p, "ExitPolicy", keySupported, "`stop`: the Pod ends with its last container; `continue` is refused", "", once},
		{p, "PodName", keySupported, "the name of the Pod; capitals and `_` become small letters and `-`", "", once},
		{p, "PodmanArgs", keyRefused, noteArgs, "", each},
		set(p, "PublishPort", "publish", each, "as in a `.container` file"),
		{p, "ServiceName", keySupported, "the unit's name, without .service; otherwise it is the file's name with -pod", "", once},
		{p, "ShmSize", keySupported, "the size of /dev/shm of each container", "", once},
		set(p, "StopTimeout", "stop-timeout", once, ""),
		{p, "Volume", keySupported, "a volume of all containers", "", each},
	})
}

// volumeKeys returns all keys of podman-volume.unit(5).
func volumeKeys() []key {
	const v = "Volume"
	return []key{
		{v, "ContainersConfModule", keyRefused, noteModule, "", each},
		{v, "Copy", keyNoEffect, "`no`; `yes` is refused: podrun copies no files of an image into a volume", "", once},
		{v, "Device", keySupported, "with `Type=bind` a path of this machine, with `Type=tmpfs` a file system in memory; other types are refused: mount the device on the machine, and name its path", "", once},
		{v, "Driver", keySupported, "`local`, the PersistentVolumeClaim; `image`, the files of `Image`; others are refused", "", once},
		{v, "GlobalArgs", keyRefused, noteArgs, "", each},
		{v, "Group", keyRefused, "a volume belongs to root of the container: write fsGroup into a manifest, and remove it", "", once},
		{v, "Image", keySupported, "with `Driver=image`: the image; `.image` and `.build` files are refused", "", once},
		{v, "Label", keySupported, "labels of the claim, or annotations if Kubernetes has no such labels", "", words},
		{v, "Options", keySupported, "with `Type=bind` `rw`, `bind` and `rbind`; others are refused", "", once},
		{v, "PodmanArgs", keyRefused, noteArgs, "", each},
		{v, "ServiceName", keyNoEffect, noteUnit, "", once},
		{v, "Type", keySupported, "`bind` or `tmpfs`", "", once},
		{v, "User", keySupported, "`root` or `0`, as podrun's volumes have; others are refused", "", once},
		{v, "VolumeName", keySupported, "the name of the PersistentVolumeClaim, otherwise systemd-NAME; capitals and `_` become small letters and `-`", "", once},
	}
}

// networkKeys returns all keys of podman-network.unit(5).
func networkKeys() []key {
	const (
		n      = "Network"
		noName = "all pods of a user share podrun's network: a NetworkPolicy separates them"
	)
	return []key{
		{n, "ContainersConfModule", keyRefused, noteModule, "", each},
		{n, "DNS", keySupported, "name servers of the pods of the network, as `podrun run --dns`", "", each},
		{n, "DisableDNS", keyNoEffect, "`no`; `yes` is refused: pods find each other by name", "", once},
		{n, "Driver", keyNoEffect, "`bridge`; others are refused: Network=host gives a pod the machine's network", "", once},
		{n, "Gateway", keyNoEffect, "podrun chooses addresses", "", each},
		{n, "GlobalArgs", keyRefused, noteArgs, "", each},
		{n, "IPAMDriver", keyNoEffect, "`host-local`; others are refused: podrun chooses addresses", "", once},
		{n, "IPRange", keyNoEffect, "podrun chooses addresses", "", each},
		{n, "IPv6", keyNoEffect, "pods have addresses of both families", "", once},
		{n, "InterfaceName", keyNoEffect, "a name of the machine's interface: podrun's network has none there", "", once},
		{n, "Internal", keyNoEffect, "`no`; `yes` is refused: a NetworkPolicy without egress keeps a pod from other networks", "", once},
		{n, "Label", keyNoEffect, noName, "", words},
		{n, "NetworkDeleteOnStop", keyNoEffect, "podrun's network ends with its last pod", "", once},
		{n, "NetworkName", keyNoEffect, noName, "", once},
		{n, "Options", keyRefused, "podrun's network has no options; a NetworkPolicy separates pods; remove it", "", words},
		{n, "PodmanArgs", keyRefused, noteArgs, "", each},
		{n, "ServiceName", keyNoEffect, noteUnit, "", once},
		{n, "Subnet", keyNoEffect, "podrun chooses addresses", "", each},
	}
}
