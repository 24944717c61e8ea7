package support

// containerRows are the fields of a container, init containers included.
var containerRows = []Field{
	{Path: "spec.containers", Support: Supported, Note: "started in parallel when every init container is done; postStart hooks and launch priorities delay others"},
	{Path: "spec.containers[].{name,image}", Support: Supported},
	{Path: "spec.containers[].imagePullPolicy", Support: Supported, Note: "default: Always for the tag latest, else IfNotPresent"},
	{Path: "spec.containers[].{command,args}", Support: Supported, Note: "$(VAR) is expanded"},
	{Path: "spec.containers[].workingDir", Support: Supported},

	{Path: "spec.containers[].env", Support: Supported},
	{Path: "spec.containers[].env[].name", Support: Supported, Note: "KRUISE_CONTAINER_PRIORITY orders the start of app containers, as OpenKruise does"},
	{Path: "spec.containers[].env[].value", Support: Supported, Note: "$(VAR) is expanded from the variables above it, envFrom and Services"},
	{Path: "spec.containers[].env[].valueFrom", Support: Supported, Note: "resolved at each start of the container; a changed object restarts nothing"},
	{Path: "spec.containers[].env[].valueFrom.fieldRef{,.apiVersion,.fieldPath}", Support: Supported},
	{Path: "spec.containers[].env[].valueFrom.resourceFieldRef", Support: Supported, Note: "a limit that is not set is the pod's limit, else the machine's capacity; on a node of a cluster, its allocatable"},
	{Path: "spec.containers[].env[].valueFrom.resourceFieldRef.{containerName,resource,divisor}", Support: Supported},
	{Path: "spec.containers[].env[].valueFrom.configMapKeyRef", Support: Supported, Note: "a container waits until the object and key exist"},
	{Path: "spec.containers[].env[].valueFrom.configMapKeyRef.{name,key,optional}", Support: Supported},
	{Path: "spec.containers[].env[].valueFrom.secretKeyRef", Support: Supported, Note: "as configMapKeyRef"},
	{Path: "spec.containers[].env[].valueFrom.secretKeyRef.{name,key,optional}", Support: Supported},
	{Path: "spec.containers[].env[].valueFrom.fileKeyRef", Support: Supported, Note: "lines VAR='value' of a file that an init container has written"},
	{Path: "spec.containers[].env[].valueFrom.fileKeyRef.{volumeName,path,key,optional}", Support: Supported},
	{Path: "spec.containers[].envFrom", Support: Supported, Note: "env overrides it, later entries override earlier ones"},
	{Path: "spec.containers[].envFrom[].{prefix,configMapRef,configMapRef.name,configMapRef.optional,secretRef,secretRef.name}", Support: Supported},
	{Path: "spec.containers[].envFrom[].secretRef.optional", Support: Supported},

	{Path: "spec.containers[].ports", Support: Supported, Note: "informative without hostPort"},
	{Path: "spec.containers[].ports[].{name,containerPort}", Support: Supported},
	{Path: "spec.containers[].ports[].protocol", Support: Supported, Note: "default: TCP"},
	{Path: "spec.containers[].ports[].hostPort", Support: Supported, Note: "TCP and UDP; the pod sees the client's own address"},
	{Path: "spec.containers[].ports[].hostIP", Support: Supported, Note: "default: all addresses, IPv4 and IPv6"},

	{Path: "spec.containers[].resources", Support: Supported},
	{Path: "spec.containers[].resources.limits", Support: Supported, Note: "a container without one gets the pod's effective limit"},
	{Path: "spec.containers[].resources.limits[{cpu,memory}]", Support: Supported},
	{Path: "spec.containers[].resources.limits[ephemeral-storage]", Support: Supported, Note: "limits the container's writable layer and logs; the sum of the limits also limits the pod with its emptyDirs on disk; a pod that exceeds one is evicted"},
	{Path: "spec.containers[].resources.limits[hugepages-{2Mi,1Gi,64Ki,32Mi}]", Support: Supported, Note: noteHugePages},
	{Path: "spec.containers[].resources.limits[pids]", Support: Supported, Note: "podrun's own: the number of the container's processes and threads"},
	{Path: "spec.containers[].resources.limits[" + anyDevice + "]", Support: Supported, Note: "a device by its CDI name, vendor.com/class=name: 1"},
	{Path: "spec.containers[].resources.limits[" + anyDeviceKind + "]", Support: Supported, Note: "vendor.com/class: N, that many devices of the CDI kind, for this container only; app containers use the devices of init containers again"},
	{Path: "spec.containers[].resources.limits[*]", Support: Refused, Note: "only cpu, memory, ephemeral-storage, hugepages-…, pids and CDI devices"},
	{Path: "spec.containers[].resources.requests", Support: Supported, Note: "default: the limit"},
	{Path: "spec.containers[].resources.requests[{cpu,memory}]", Support: Supported},
	{Path: "spec.containers[].resources.requests[ephemeral-storage]", Support: Accepted, Note: NoteScheduling},
	{Path: "spec.containers[].resources.requests[hugepages-{2Mi,1Gi,64Ki,32Mi}]", Support: Supported, Note: "as the limit"},
	{Path: "spec.containers[].resources.requests[pids]", Support: Refused, Note: "pids is a limit only"},
	{Path: "spec.containers[].resources.requests[" + anyDevice + "]", Support: Supported, Note: "as the limit"},
	{Path: "spec.containers[].resources.requests[" + anyDeviceKind + "]", Support: Supported, Note: "as the limit"},
	{Path: "spec.containers[].resources.requests[*]", Support: Refused, Note: "only cpu, memory, ephemeral-storage, hugepages-… and CDI devices"},
	{Path: "spec.containers[].resources.claims", Support: Refused, Note: "dynamic resource allocation"},
	{Path: "spec.containers[].resizePolicy", Support: Supported, Note: "what podrun up does to a running container whose resources have changed"},
	{Path: "spec.containers[].resizePolicy[].{resourceName,restartPolicy}", Support: Supported},

	{Path: "spec.containers[].volumeMounts{,[].name,[].mountPath,[].readOnly}", Support: Supported},
	{Path: "spec.containers[].volumeMounts[].recursiveReadOnly", Support: Supported, Note: "needs Linux 5.12; with an older one Enabled is refused"},
	{Path: "spec.containers[].volumeMounts[].mountPropagation", Support: Supported, Note: "Bidirectional reaches the pod's containers; the host sees a pod's mounts only if root runs it"},
	{Path: "spec.containers[].volumeMounts[].subPath", Support: Supported, Note: "created if missing; cannot lead out of the volume"},
	{Path: "spec.containers[].volumeMounts[].subPathExpr", Support: Supported, Note: "$(VAR) is expanded; an undefined variable is an error"},
	{Path: "spec.containers[].volumeMounts[].bindMountOptions", Support: Supported, Note: "volumes other than hostPath are nosuid and nodev anyway"},
	{Path: "spec.containers[].volumeDevices", Support: Refused, Note: "block devices: use a hostPath of type BlockDevice"},

	{Path: "spec.containers[].terminationMessagePath", Support: Supported, Note: "default: /dev/termination-log"},
	{Path: "spec.containers[].terminationMessagePolicy", Support: Supported, Note: "default: File"},
	{Path: "spec.containers[].restartPolicy", Support: Supported, Note: "default: the pod's"},
	{Path: "spec.containers[].restartPolicyRules", Support: Supported, Note: "the first rule that matches overrides the policy"},
	{Path: "spec.containers[].restartPolicyRules[].action", Support: Supported, Note: "RestartAllContainers: back-off applies only to the container that triggered it"},
	{Path: "spec.containers[].restartPolicyRules[].exitCodes{,.operator,.values}", Support: Supported},
	{Path: "spec.containers[].stdin", Support: Supported, Note: "podrun attach -i writes to it; open until the container ends"},
	{Path: "spec.containers[].stdinOnce", Support: Supported, Note: "stdin is closed when the first podrun attach -i ends; without effect with tty"},
	{Path: "spec.containers[].tty", Support: Supported, Note: "a new terminal of the container's own; TERM is xterm unless it is set; logs are one stream"},
}

// initRows are the fields of an init container that other containers do not have, or not so.
var initRows = []Field{
	{Path: "spec.initContainers", Support: Supported, Note: "run one after another, each until exit code 0; fields as spec.containers but for these"},
	{Path: "spec.initContainers[].restartPolicy", Support: Supported, Note: "Always makes it a sidecar"},
}

// containerSecurityRows are the fields of a container's securityContext.
var containerSecurityRows = []Field{
	{Path: "spec.containers[].securityContext{,.runAsUser,.runAsGroup,.runAsNonRoot,.readOnlyRootFilesystem,.allowPrivilegeEscalation}", Support: Supported},
	{Path: "spec.containers[].securityContext.capabilities", Support: Supported, Note: "12 by default: podman's and NET_RAW; with any other the pod has a user namespace of its own"},
	{Path: "spec.containers[].securityContext.capabilities.{add,drop}", Support: Supported},
	{Path: "spec.containers[].securityContext.privileged", Support: Supported, Note: "all rights of the user, and no more: all capabilities in the pod's user namespace, no seccomp filter, /proc and /sys unmasked and writable, the devices of the host that the user may open"},
	{Path: "spec.containers[].securityContext.procMount", Support: Supported, Note: "Unmasked: only with hostUsers: false"},
	{Path: "spec.containers[].securityContext.seccompProfile", Support: Supported, Note: "default: the pod's, else RuntimeDefault"},
	{Path: "spec.containers[].securityContext.seccompProfile.type", Support: Supported},
	{Path: "spec.containers[].securityContext.seccompProfile.localhostProfile", Support: Supported, Note: "a file below ~/.local/share/podrun/seccomp, of root: /var/lib/podrun/seccomp"},
	{Path: "spec.containers[].securityContext.appArmorProfile", Support: Supported, Note: "default: the pod's; " + noteAppArmor},
	{Path: "spec.containers[].securityContext.appArmorProfile.type", Support: Supported, Note: noteAppArmorDefault},
	{Path: "spec.containers[].securityContext.appArmorProfile.localhostProfile", Support: Supported, Note: "a profile that is loaded"},
	{Path: "spec.containers[].securityContext.seLinuxOptions", Support: Supported, Note: noteSELinux},
	{Path: "spec.containers[].securityContext.seLinuxOptions.{user,role,type,level}", Support: Supported},
	{Path: "spec.containers[].securityContext.windowsOptions", Support: Accepted, Note: "only Windows uses it, as in Kubernetes"},
}

// noteHugePages is their note in the support table.
const noteHugePages = "needs the cgroup controller hugetlb: root has it, other users need its delegation"
