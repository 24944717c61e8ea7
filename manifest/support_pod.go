package manifest

const (
	scheduling = "scheduling: there is one machine"
	noToken    = "there is no API server, so no account and no token"
	netLater   = "networking beyond localhost"
)

// podRows are the fields of spec itself.
var podRows = []Field{
	{Path: "spec", Support: Done},
	{Path: "spec.restartPolicy", Support: Done, Note: "default: Always"},
	{Path: "spec.terminationGracePeriodSeconds", Support: Done, Note: "default: 30"},
	{Path: "spec.activeDeadlineSeconds", Support: Done, Note: "counts initialisation"},
	{Path: "spec.hostname", Support: Done, Note: "default: the pod's name, cut to 63 characters"},
	{Path: "spec.shareProcessNamespace", Support: Done},
	{Path: "spec.hostUsers", Support: Done, Only: []string{"true"}, Note: "all pods of a user share one user namespace"},
	{Path: "spec.os", Support: Done},
	{Path: "spec.os.name", Support: Done, Only: []string{"linux"}},

	{Path: "spec.resources", Support: Done, Note: "pod-level resources"},
	{Path: "spec.resources.limits", Support: Done},
	{Path: "spec.resources.limits[cpu]", Support: Done},
	{Path: "spec.resources.limits[memory]", Support: Done},
	{Path: "spec.resources.limits[*]", Support: Refused, Note: "only cpu and memory"},
	{Path: "spec.resources.requests", Support: Done},
	{Path: "spec.resources.requests[cpu]", Support: Done},
	{Path: "spec.resources.requests[memory]", Support: Done},
	{Path: "spec.resources.requests[*]", Support: Refused, Note: "only cpu and memory"},
	{Path: "spec.resources.claims", Support: Refused, Note: "dynamic resource allocation"},

	{Path: "spec.dnsPolicy", Support: Accepted, Only: []string{"ClusterFirst", "Default", "ClusterFirstWithHostNet"}, Note: "the pod has the host's resolver, if any"},
	{Path: "spec.enableServiceLinks", Support: Done, Note: "default: true: variables tell of the Services of the namespace that are there when a container starts"},
	{Path: "spec.automountServiceAccountToken", Support: Accepted, Note: noToken},
	{Path: "spec.serviceAccountName", Support: Accepted, Note: noToken + "; fieldRef gives the name, or default"},
	{Path: "spec.serviceAccount", Support: Accepted, Note: "the old name of serviceAccountName"},
	{Path: "spec.nodeName", Support: Accepted, Note: scheduling + "; fieldRef gives the name, or the host's"},
	{Path: "spec.nodeSelector", Support: Accepted, Note: scheduling},
	{Path: "spec.affinity", Support: Accepted, Note: scheduling},
	{Path: "spec.tolerations", Support: Accepted, Note: scheduling},
	{Path: "spec.topologySpreadConstraints", Support: Accepted, Note: scheduling + ", where they hold trivially"},
	{Path: "spec.schedulerName", Support: Accepted, Note: scheduling},
	{Path: "spec.schedulingGroup", Support: Accepted, Note: scheduling},
	{Path: "spec.priorityClassName", Support: Accepted, Note: scheduling + "; system-node-critical lowers the OOM score as the kubelet does"},
	{Path: "spec.priority", Support: Accepted, Note: scheduling},
	{Path: "spec.preemptionPolicy", Support: Accepted, Note: scheduling},

	{Path: "spec.schedulingGates", Support: Refused, Note: "nobody would lift them"},
	{Path: "spec.ephemeralContainers", Support: Refused, Note: "debug containers"},
	{Path: "spec.hostNetwork", Support: Refused, Note: "the host's network"},
	{Path: "spec.hostPID", Support: Refused, Note: "the host's processes"},
	{Path: "spec.hostIPC", Support: Refused, Note: "the host's IPC"},
	{Path: "spec.dnsConfig", Support: Refused, Note: netLater},
	{Path: "spec.hostAliases", Support: Refused, Note: netLater},
	{Path: "spec.subdomain", Support: Refused, Note: netLater},
	{Path: "spec.setHostnameAsFQDN", Support: Done, Only: []string{"false"}, Note: netLater},
	{Path: "spec.hostnameOverride", Support: Refused, Note: "use hostname"},
	{Path: "spec.imagePullSecrets", Support: Refused, Note: "log in with podrun's auth file"},
	{Path: "spec.readinessGates", Support: Done, Note: "podrun condition set opens them"},
	{Path: "spec.readinessGates[].conditionType", Support: Done},
	{Path: "spec.runtimeClassName", Support: Refused, Note: "there is one runtime"},
	{Path: "spec.overhead", Support: Refused, Note: "belongs to runtime classes"},
	{Path: "spec.resourceClaims", Support: Refused, Note: "dynamic resource allocation"},
	{Path: "spec.evictionResponders", Support: Refused, Note: "eviction"},
}

// podSecurityRows are the fields of spec.securityContext.
var podSecurityRows = []Field{
	{Path: "spec.securityContext", Support: Done},
	{Path: "spec.securityContext.runAsUser", Support: Done},
	{Path: "spec.securityContext.runAsGroup", Support: Done},
	{Path: "spec.securityContext.runAsNonRoot", Support: Done},
	{Path: "spec.securityContext.supplementalGroups", Support: Done},
	{Path: "spec.securityContext.supplementalGroupsPolicy", Support: Done, Only: []string{"Merge"}},
	{Path: "spec.securityContext.sysctls", Support: Done, Note: "the kubelet's safe list only"},
	{Path: "spec.securityContext.sysctls[].name", Support: Done},
	{Path: "spec.securityContext.sysctls[].value", Support: Done},
	{Path: "spec.securityContext.seccompProfile", Support: Done, Note: "default: RuntimeDefault"},
	{Path: "spec.securityContext.seccompProfile.type", Support: Done, Only: []string{"RuntimeDefault", "Unconfined"}},
	{Path: "spec.securityContext.seccompProfile.localhostProfile", Support: Refused, Note: "own seccomp profiles"},
	{Path: "spec.securityContext.fsGroup", Support: Refused, Note: "group ownership of volumes"},
	{Path: "spec.securityContext.fsGroupChangePolicy", Support: Refused, Note: "group ownership of volumes"},
	{Path: "spec.securityContext.appArmorProfile", Support: Refused, Note: "AppArmor profiles"},
	{Path: "spec.securityContext.seLinuxOptions", Support: Refused, Note: "SELinux labels"},
	{Path: "spec.securityContext.seLinuxChangePolicy", Support: Refused, Note: "SELinux labels"},
	{Path: "spec.securityContext.windowsOptions", Support: Refused, Note: "Windows"},
}
