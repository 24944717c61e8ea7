package support

const (
	NoteScheduling      = "scheduling: there is one machine"
	noteAppArmor        = "default: none; where the host has no AppArmor only Unconfined is allowed, as with the kubelet"
	noteAppArmorDefault = "RuntimeDefault is the first of podrun-default, containers-default, cri-containerd.apparmor.d and docker-default that is loaded: only root can load profiles"
	noteSELinux         = "where the host has SELinux; elsewhere there are no labels, and it has no effect. Default: the policy's for containers, with categories of the pod's own; spc_t for privileged ones"
	noteSELinuxChange   = "files are always labelled one by one, as by Recursive, unless a mount of podrun's own has them"

	noteNoToken = "there is no API server, so no account and no token"
)

// podRows are the fields of spec itself.
var podRows = []Field{
	{Path: "spec", Support: Supported},
	{Path: "spec.restartPolicy", Support: Supported, Note: "default: Always"},
	{Path: "spec.terminationGracePeriodSeconds", Support: Supported, Note: "default: 30"},
	{Path: "spec.activeDeadlineSeconds", Support: Supported, Note: "counts initialisation; may be set and lowered while the pod runs"},
	{Path: "spec.hostname", Support: Supported, Note: "default: the pod's name, cut to 63 characters"},
	{Path: "spec.shareProcessNamespace", Support: Supported},
	{Path: "spec.hostUsers", Support: Supported, Note: "false: the pod has ids of its own among the user's, 65536 where /etc/subuid gives so many, else 4096; the image is copied for it; without hostPath and persistentVolumeClaim, whose owners only root could map"},
	{Path: "spec.os", Support: Supported},
	{Path: "spec.os.name", Support: Supported, Only: []string{"linux"}},

	{Path: "spec.resources", Support: Supported, Note: "pod-level resources"},
	{Path: "spec.resources.limits{,[cpu],[memory]}", Support: Supported},
	{Path: "spec.resources.limits[pids]", Support: Supported, Note: "the number of the pod's processes and threads, 128 to 16384; default: 2048"},
	{Path: "spec.resources.limits[*]", Support: Refused, Note: "only cpu, memory and pids"},
	{Path: "spec.resources.requests{,[cpu],[memory]}", Support: Supported},
	{Path: "spec.resources.requests[pids]", Support: Refused, Note: "pids is a limit only"},
	{Path: "spec.resources.requests[*]", Support: Refused, Note: "only cpu and memory"},
	{Path: "spec.resources.claims", Support: Refused, Note: "dynamic resource allocation"},

	{Path: "spec.dnsPolicy", Support: Supported, Note: "default: ClusterFirst: podrun's own resolver, which forwards other names to the host's; in the host's network ClusterFirstWithHostNet is Default"},
	{Path: "spec.dnsConfig{,.nameservers,.searches,.options,.options[].name,.options[].value}", Support: Supported},
	{Path: "spec.{hostAliases,hostAliases[].ip,hostAliases[].hostnames,subdomain,setHostnameAsFQDN}", Support: Supported},
	{Path: "spec.enableServiceLinks", Support: Supported, Note: "default: true: variables have the addresses of the namespace's Services when a container starts"},
	{Path: "spec.automountServiceAccountToken", Support: Supported, Note: noteNoToken + "; unless false, the namespace is mounted where the token would be"},
	{Path: "spec.serviceAccountName", Support: Accepted, Note: noteNoToken + "; fieldRef gives the name, or default"},
	{Path: "spec.serviceAccount", Support: Accepted, Note: "the old name of serviceAccountName"},
	{Path: "spec.nodeName", Support: Accepted, Note: NoteScheduling + "; fieldRef gives the name, or the host's"},
	{Path: "spec.{nodeSelector,affinity}", Support: Accepted, Note: NoteScheduling},
	{Path: "spec.tolerations", Support: Accepted, Note: NoteScheduling + "; may be added while the pod runs"},
	{Path: "spec.topologySpreadConstraints", Support: Accepted, Note: NoteScheduling + ", where they hold trivially"},
	{Path: "spec.{schedulerName,schedulingGroup}", Support: Accepted, Note: NoteScheduling},
	{Path: "spec.priorityClassName", Support: Accepted, Note: NoteScheduling + "; system-node-critical lowers the OOM score as the kubelet does"},
	{Path: "spec.{priority,preemptionPolicy}", Support: Accepted, Note: NoteScheduling},

	{Path: "spec.schedulingGates", Support: Refused, Note: "podrun has no controller that removes them"},
	{Path: "spec.ephemeralContainers", Support: Supported, Note: "podrun apply, up and debug add them to a pod that runs; a new pod has none; fields as spec.containers, without ports, probes, lifecycle, resources and subPath"},
	{Path: "spec.ephemeralContainers[].targetContainerName", Support: Supported, Note: "a container of spec.containers, whose processes it sees"},
	{Path: "spec.hostNetwork", Support: Supported, Note: "/sys is then the host's, to be read only; ports below net.ipv4.ip_unprivileged_port_start are root's"},
	{Path: "spec.hostPID", Support: Supported, Note: "the host's processes, by the rights of the user; requires a cgroup of the pod's own, to kill its processes"},
	{Path: "spec.hostIPC", Support: Supported, Note: "System V and POSIX shared memory, semaphores and queues of the host, by the rights of the user"},
	{Path: "spec.hostnameOverride", Support: Supported, Note: "cut to 63 characters"},
	{Path: "spec.imagePullSecrets", Support: Supported, Note: "tried before the user's own auth file"},
	{Path: "spec.imagePullSecrets[].name", Support: Supported},
	{Path: "spec.readinessGates", Support: Supported, Note: "podrun condition set sets them"},
	{Path: "spec.readinessGates[].conditionType", Support: Supported},
	{Path: "spec.runtimeClassName", Support: Supported, Note: "nvidia: a container that requests no device by a limit gets those in NVIDIA_VISIBLE_DEVICES by their CDI names; crun, podrun, runc: no effect; a RuntimeClass of the same file stands for its handler"},
	{Path: "spec.overhead", Support: Refused, Note: "set by the RuntimeClasses of a cluster"},
	{Path: "spec.resourceClaims", Support: Refused, Note: "dynamic resource allocation"},
	{Path: "spec.evictionResponders", Support: Refused, Note: "eviction"},
}

// podSecurityRows are the fields of spec.securityContext.
var podSecurityRows = []Field{
	{Path: "spec.securityContext{,.runAsUser,.runAsGroup,.runAsNonRoot,.supplementalGroups}", Support: Supported},
	{Path: "spec.securityContext.supplementalGroupsPolicy", Support: Supported, Note: "default: Merge"},
	{Path: "spec.securityContext.sysctls", Support: Supported, Note: "the kubelet's safe list; --allow-unsafe-sysctl permits others of the pod's own namespaces; unless set, every user may listen on all ports of the pod, and use ping"},
	{Path: "spec.securityContext.sysctls[].{name,value}", Support: Supported},
	{Path: "spec.securityContext.seccompProfile", Support: Supported, Note: "default: RuntimeDefault"},
	{Path: "spec.securityContext.seccompProfile.type", Support: Supported},
	{Path: "spec.securityContext.seccompProfile.localhostProfile", Support: Supported, Note: "a file below ~/.local/share/podrun/seccomp, of root: /var/lib/podrun/seccomp"},
	{Path: "spec.securityContext.fsGroup", Support: Supported, Note: "of every volume but hostPath and image"},
	{Path: "spec.securityContext.fsGroupChangePolicy", Support: Supported, Note: "of claims"},
	{Path: "spec.securityContext.appArmorProfile", Support: Supported, Note: noteAppArmor},
	{Path: "spec.securityContext.appArmorProfile.type", Support: Supported, Note: noteAppArmorDefault},
	{Path: "spec.securityContext.appArmorProfile.localhostProfile", Support: Supported, Note: "a profile that is loaded"},
	{Path: "spec.securityContext.seLinuxOptions", Support: Supported, Note: noteSELinux},
	{Path: "spec.securityContext.seLinuxOptions.{user,role,type,level}", Support: Supported},
	{Path: "spec.securityContext.seLinuxChangePolicy", Support: Accepted, Note: noteSELinuxChange},
	{Path: "spec.securityContext.windowsOptions", Support: Accepted, Note: "only Windows uses it, as in Kubernetes"},
}
