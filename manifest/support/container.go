package support

// containerRows are the fields of a container, init containers included.
var containerRows = []Field{
	{Path: "spec.containers", Support: Done, Note: "started in parallel when every init container is done; postStart hooks and launch priorities hold back others"},
	{Path: "spec.containers[].{name,image}", Support: Done},
	{Path: "spec.containers[].imagePullPolicy", Support: Done, Note: "default: Always for the tag latest, else IfNotPresent"},
	{Path: "spec.containers[].{command,args}", Support: Done, Note: "$(VAR) is expanded"},
	{Path: "spec.containers[].workingDir", Support: Done},

	{Path: "spec.containers[].env", Support: Done},
	{Path: "spec.containers[].env[].name", Support: Done, Note: "KRUISE_CONTAINER_PRIORITY orders the start of app containers, as OpenKruise does"},
	{Path: "spec.containers[].env[].value", Support: Done, Note: "$(VAR) is expanded from the variables above it, envFrom and Services"},
	{Path: "spec.containers[].env[].valueFrom", Support: Done, Note: "resolved at each start of the container; a changed object restarts nothing"},
	{Path: "spec.containers[].env[].valueFrom.fieldRef{,.apiVersion,.fieldPath}", Support: Done},
	{Path: "spec.containers[].env[].valueFrom.resourceFieldRef", Support: Done, Note: "a limit that is not set is the one the pod's limits give the container, else the machine's"},
	{Path: "spec.containers[].env[].valueFrom.resourceFieldRef.{containerName,resource,divisor}", Support: Done},
	{Path: "spec.containers[].env[].valueFrom.configMapKeyRef", Support: Done, Note: "a container waits for an object or key that is not there"},
	{Path: "spec.containers[].env[].valueFrom.configMapKeyRef.{name,key,optional}", Support: Done},
	{Path: "spec.containers[].env[].valueFrom.secretKeyRef", Support: Done, Note: "as configMapKeyRef"},
	{Path: "spec.containers[].env[].valueFrom.secretKeyRef.{name,key,optional}", Support: Done},
	{Path: "spec.containers[].env[].valueFrom.fileKeyRef", Support: Done, Note: "lines VAR='value' of a file that an init container has written"},
	{Path: "spec.containers[].env[].valueFrom.fileKeyRef.{volumeName,path,key,optional}", Support: Done},
	{Path: "spec.containers[].envFrom", Support: Done, Note: "env wins over it, later ones over earlier ones"},
	{Path: "spec.containers[].envFrom[].{prefix,configMapRef,configMapRef.name,configMapRef.optional,secretRef,secretRef.name}", Support: Done},
	{Path: "spec.containers[].envFrom[].secretRef.optional", Support: Done},

	{Path: "spec.containers[].ports", Support: Done, Note: "informative without hostPort"},
	{Path: "spec.containers[].ports[].{name,containerPort}", Support: Done},
	{Path: "spec.containers[].ports[].protocol", Support: Done, Note: "default: TCP"},
	{Path: "spec.containers[].ports[].hostPort", Support: Done, Note: "TCP and UDP; the pod sees the client's own address"},
	{Path: "spec.containers[].ports[].hostIP", Support: Done, Note: "default: all addresses, IPv4 and IPv6"},

	{Path: "spec.containers[].resources", Support: Done},
	{Path: "spec.containers[].resources.limits", Support: Done, Note: "a container without one gets the pod's effective limit"},
	{Path: "spec.containers[].resources.limits[{cpu,memory}]", Support: Done},
	{Path: "spec.containers[].resources.limits[ephemeral-storage]", Support: Done, Note: "writable layer and logs, for the pod with its emptyDirs on disk: a pod that exceeds it is evicted"},
	{Path: "spec.containers[].resources.limits[hugepages-{2Mi,1Gi,64Ki,32Mi}]", Support: Done, Note: noteHugePages},
	{Path: "spec.containers[].resources.limits[" + anyDevice + "]", Support: Done, Note: "a device by its CDI name, vendor.com/class=name: 1"},
	{Path: "spec.containers[].resources.limits[*]", Support: Refused, Note: "only cpu, memory, ephemeral-storage and hugepages-…"},
	{Path: "spec.containers[].resources.requests", Support: Done, Note: "default: the limit"},
	{Path: "spec.containers[].resources.requests[{cpu,memory}]", Support: Done},
	{Path: "spec.containers[].resources.requests[ephemeral-storage]", Support: Accepted, Note: NoteScheduling},
	{Path: "spec.containers[].resources.requests[hugepages-{2Mi,1Gi,64Ki,32Mi}]", Support: Done, Note: "as the limit"},
	{Path: "spec.containers[].resources.requests[" + anyDevice + "]", Support: Done, Note: "as the limit"},
	{Path: "spec.containers[].resources.requests[*]", Support: Refused, Note: "only cpu, memory, ephemeral-storage and hugepages-…"},
	{Path: "spec.containers[].resources.claims", Support: Refused, Note: "dynamic resource allocation"},
	{Path: "spec.containers[].resizePolicy", Support: Done, Note: "what podrun up does to a running container whose resources have changed"},
	{Path: "spec.containers[].resizePolicy[].{resourceName,restartPolicy}", Support: Done},

	{Path: "spec.containers[].volumeMounts{,[].name,[].mountPath,[].readOnly}", Support: Done},
	{Path: "spec.containers[].volumeMounts[].recursiveReadOnly", Support: Done, Note: "needs Linux 5.12; with an older one Enabled is refused"},
	{Path: "spec.containers[].volumeMounts[].mountPropagation", Support: Done, Note: "Bidirectional reaches the pod's containers; the host sees a pod's mounts only if root runs it"},
	{Path: "spec.containers[].volumeMounts[].subPath", Support: Done, Note: "made if missing; never leads out of the volume"},
	{Path: "spec.containers[].volumeMounts[].subPathExpr", Support: Done, Note: "$(VAR) is expanded; a variable that is not there is an error"},
	{Path: "spec.containers[].volumeMounts[].bindMountOptions", Support: Done, Note: "volumes other than hostPath are nosuid and nodev anyway"},
	{Path: "spec.containers[].volumeDevices", Support: Refused, Note: "block devices: use a hostPath of type BlockDevice"},

	{Path: "spec.containers[].terminationMessagePath", Support: Done, Note: "default: /dev/termination-log"},
	{Path: "spec.containers[].terminationMessagePolicy", Support: Done, Note: "default: File"},
	{Path: "spec.containers[].restartPolicy", Support: Done, Note: "default: the pod's"},
	{Path: "spec.containers[].restartPolicyRules", Support: Done, Note: "the first that applies counts before the policy"},
	{Path: "spec.containers[].restartPolicyRules[].action", Support: Done, Note: "of RestartAllContainers the container whose end is the cause has its back-off, the others none"},
	{Path: "spec.containers[].restartPolicyRules[].exitCodes{,.operator,.values}", Support: Done},
	{Path: "spec.containers[].stdin", Support: Done, Note: "podrun attach -i writes to it; open until the container ends"},
	{Path: "spec.containers[].stdinOnce", Support: Done, Note: "stdin is closed when the first podrun attach -i ends; without effect with tty"},
	{Path: "spec.containers[].tty", Support: Done, Note: "a new terminal of the container's own; TERM is xterm unless it is set; logs are one stream"},
}

// initRows are the fields of an init container that differ from those of others.
var initRows = []Field{
	{Path: "spec.initContainers", Support: Done, Note: "one after another, each to exit code 0; fields as spec.containers but for these"},
	{Path: "spec.initContainers[].restartPolicy", Support: Done, Note: "Always makes it a sidecar"},
}

// containerSecurityRows are the fields of a container's securityContext.
var containerSecurityRows = []Field{
	{Path: "spec.containers[].securityContext{,.runAsUser,.runAsGroup,.runAsNonRoot,.readOnlyRootFilesystem,.allowPrivilegeEscalation}", Support: Done},
	{Path: "spec.containers[].securityContext.capabilities", Support: Done, Note: "12 by default: podman's and NET_RAW; with any other the pod has a user namespace of its own"},
	{Path: "spec.containers[].securityContext.capabilities.{add,drop}", Support: Done},
	{Path: "spec.containers[].securityContext.privileged", Support: Done, Note: "everything that the user may do, and no more: all capabilities in the pod's user namespace, no seccomp filter, /proc and /sys unmasked and writable, the devices of the host that the user may open"},
	{Path: "spec.containers[].securityContext.procMount", Support: Done},
	{Path: "spec.containers[].securityContext.seccompProfile", Support: Done, Note: "default: the pod's, else RuntimeDefault"},
	{Path: "spec.containers[].securityContext.seccompProfile.type", Support: Done},
	{Path: "spec.containers[].securityContext.seccompProfile.localhostProfile", Support: Done, Note: "a file below ~/.local/share/podrun/seccomp, of root: /var/lib/podrun/seccomp"},
	{Path: "spec.containers[].securityContext.appArmorProfile", Support: Done, Note: "default: the pod's; " + noteAppArmor},
	{Path: "spec.containers[].securityContext.appArmorProfile.type", Support: Done, Note: noteAppArmorDefault},
	{Path: "spec.containers[].securityContext.appArmorProfile.localhostProfile", Support: Done, Note: "a profile that is loaded"},
	{Path: "spec.containers[].securityContext.seLinuxOptions", Support: Done, Note: noteSELinux},
	{Path: "spec.containers[].securityContext.seLinuxOptions.{user,role,type,level}", Support: Done},
	{Path: "spec.containers[].securityContext.windowsOptions", Support: Refused, Note: "Windows"},
}

// noteHugePages is their note in the support table.
const noteHugePages = "needs the cgroup controller hugetlb: root has it, other users need its delegation"
