package compose

import "strings"

// level is the support of an attribute of the compose specification.
type level string

const (
	supported level = "supported" // has the effect of docker compose, except for the differences in the note
	accepted  level = "accepted"  // has no effect: it is reported
	refused   level = "refused"   // a file that has it is an error
)

// attribute is podrun's support of one attribute. In its path * stands for any name and [] for the items of
// a list; a{b,c} stands for the two paths ab and ac. A row applies to everything below it that has no row of
// its own.
type attribute struct {
	path  string
	level level
	note  string
}

const (
	noSwarm   = "for Swarm only; docker compose ignores it, too"
	noCgroup  = "only CPU, memory and processes are limited: use deploy.resources"
	ownNames  = "podrun gives every pod its own addresses"
	oneKernel = "Windows"
	fileOwner = "the file belongs to root; only its mode can be set, which is 0444 by default"
)

// table returns every attribute of the specification, in the order of the reference page.
func table() []attribute {
	var out []attribute
	for _, rows := range [][]attribute{topRows, serviceRows, networkRows, deployRows, objectRows} {
		out = append(out, expand(rows)...)
	}
	return out
}

// expand returns the rows with one row for each path.
func expand(rows []attribute) (out []attribute) {
	for _, r := range rows {
		before, rest, _ := strings.Cut(r.path, "{")
		list, after, _ := strings.Cut(rest, "}")
		for word := range strings.SplitSeq(list, ",") {
			r.path = before + word + after
			out = append(out, r)
		}
	}
	return out
}

var topRows = []attribute{
	{"version", supported, "ignored, as by docker compose"},
	{"name", supported, "the label `app.kubernetes.io/part-of`, and the beginning of the names of claims, Secrets and ConfigMaps"},
	{"include", supported, ""},
	{"services", supported, "each is a Pod and a headless Service of its name. A name with `_`, `.` or capital letters becomes a DNS label (`my_db`: `my-db`); other services reach it by both"},
	{"models", refused, "podrun runs no models"},
	{"jobs", refused, "use a Job of Kubernetes"},
}

var serviceRows = []attribute{
	{"services.*.annotations", supported, "annotations of the pod"},
	{"services.*.attach", accepted, "podrun up shows the output of every container"},
	{"services.*.build", supported, "by the first of buildah, buildctl, docker and podman that is installed, or --builder; the image is localhost/PROJECT-SERVICE:latest, or image"},
	{"services.*.build.{cache_from,cache_to}", accepted, "the builder has its own cache"},
	{"services.*.build.{entitlements,isolation,privileged,ulimits}", refused, "set the builder's own options, as in BUILDAH_ISOLATION"},
	{"services.*.build.{additional_contexts,no_cache_filter,platforms,provenance,sbom,secrets,ssh}", refused, "not every builder has it: build the image with yours, add it with podrun image load, and name it in image"},
	{"services.*.blkio_config", accepted, noCgroup},
	{"services.*.cap_{add,drop}", supported, ""},
	{"services.*.{cgroup,cgroup_parent}", refused, "podrun chooses the cgroup of a pod"},
	{"services.*.command", supported, "args; an empty one is refused, unless entrypoint is set, too"},
	{"services.*.configs", supported, "a file of a ConfigMap"},
	{"services.*.configs.[].{uid,gid}", refused, fileOwner},
	{"services.*.secrets.[].{uid,gid}", refused, fileOwner},
	{"services.*.container_name", supported, "another name by which services reach it; the pod has the name of the service"},
	{"services.*.{cpu_count,cpu_percent,credential_spec,isolation}", refused, oneKernel},
	{"services.*.{cpu_period,cpu_quota}", supported, "the limit of CPU; cpus decides if it is set"},
	{"services.*.{cpu_rt_period,cpu_rt_runtime}", refused, "use cpus or deploy.resources"},
	{"services.*.cpu_shares", accepted, "use deploy.resources.reservations.cpus"},
	{"services.*.cpuset", accepted, "the kernel chooses the processors"},
	{"services.*.cpus", supported, "the limit of CPU"},
	{"services.*.depends_on", supported, "the annotation podrun.dev/start-after; service_healthy requires a healthcheck in the file, because an image's is not read"},
	{"services.*.depends_on.*.restart", accepted, "a change of a pod restarts no other"},
	{"services.*.develop", supported, "for `up --watch`: the actions sync, restart, sync+restart and rebuild"},
	{"services.*.develop.watch.[].exec", refused, "use sync+restart"},
	{"services.*.device_cgroup_rules", refused, "name the devices in devices"},
	{"services.*.devices", supported, "device files and directories below /dev with the permissions rwm, and CDI names"},
	{"services.*.dns", supported, "podrun's resolver, which has the names of services, queries them for other names; a loopback address has no effect"},
	{"services.*.{dns_opt,dns_search}", supported, ""},
	{"services.*.domainname", refused, "Services have the names of their namespace"},
	{"services.*.entrypoint", supported, "command; an empty one is refused, unless command is set, too"},
	{"services.*.{env_file,environment}", supported, ""},
	{"services.*.expose", supported, "every port of a pod is reachable for other pods"},
	{"services.*.extends", supported, ""},
	{"services.*.external_links", refused, "pods of one namespace reach each other by their Services"},
	{"services.*.extra_hosts", supported, "hostAliases; host-gateway is the host, whose servers on its loopback are reached, too: the annotations podrun.dev/host-names and host-loopback"},
	{"services.*.gpus", refused, "name the devices in devices by their CDI names, as in nvidia.com/gpu=all"},
	{"services.*.group_add", supported, "ids, or names of the image's /etc/group: the annotation podrun.dev/groups"},
	{"services.*.healthcheck", supported, "a readiness probe: a container that is not healthy is not restarted; an image's is not read, so it has no effect without test"},
	{"services.*.healthcheck.start_period", supported, "failures in it do not keep a service with depends_on from starting"},
	{"services.*.healthcheck.start_interval", supported, "no effect is needed: the pod is not ready before the first success"},
	{"services.*.hostname", supported, "in lower case, with - instead of _; the resolver does not answer it"},
	{"services.*.image", supported, ""},
	{"services.*.init", supported, "shareProcessNamespace: the pause process reaps; services with one network share their processes, too"},
	{"services.*.ipc", supported, "host, private or shareable"},
	{"services.*.{labels,label_file}", supported, "annotations of the pod; podrun.dev/… set its options; what cannot be the name of an annotation is in podrun.dev/labels"},
	{"services.*.links", supported, "the alias is another name; the order is as with depends_on"},
	{"services.*.logging", supported, "the drivers json-file and local with max-size and max-file: annotations of the pod; podrun logs reads them; their other options, such as tag, have no effect"},
	{"services.*.mac_address", accepted, ownNames},
	{"services.*.{mem_limit,mem_reservation}", supported, "limit and request of memory"},
	{"services.*.mem_swappiness", accepted, "a container with a limit of memory never swaps"},
	{"services.*.memswap_limit", supported, "the value of mem_limit; another one has no effect: a container with a limit of memory never swaps"},
	{"services.*.oom_kill_disable", accepted, "cgroup v2 cannot do that; docker ignores it, too"},
	{"services.*.oom_score_adj", accepted, "the QoS class of the pod sets it"},
	{"services.*.storage_opt", refused, "has no counterpart in Kubernetes"},
	{"services.*.models", refused, "podrun runs no models"},
	{"services.*.network_mode", supported, "host, none, bridge, service:NAME, or container:NAME of the same project: a container in the pod of the other service, which has the ports, names and networks"},
	{"services.*.pid", supported, "host"},
	{"services.*.pids_limit", supported, "the limit of processes and threads"},
	{"services.*.platform", supported, "this machine's"},
	{"services.*.ports", supported, "host ports; one without a published port gets a free port of the host: the annotation podrun.dev/free-host-ports; podrun port shows it"},
	{"services.*.ports.[].{app_protocol,mode}", supported, "no effect is needed on one machine"},
	{"services.*.{post_start,pre_start,pre_stop}", refused, "use hooks and init containers of a Pod: podrun convert prints one to begin with"},
	{"services.*.privileged", supported, ""},
	{"services.*.profiles", supported, "--profile and COMPOSE_PROFILES"},
	{"services.*.provider", refused, "podrun runs no plugins of docker"},
	{"services.*.pull_policy", supported, "always, never, missing, if_not_present or build"},
	{"services.*.pull_refresh_after", refused, "use pull_policy"},
	{"services.*.read_only", supported, ""},
	{"services.*.restart", supported, "no: Never; on-failure: OnFailure, with a number the annotation podrun.dev/max-restarts; always and unless-stopped: Always"},
	{"services.*.runtime", refused, "use deploy.resources.reservations.devices for NVIDIA GPUs; other runtimes have no counterpart"},
	{"services.*.scale", supported, "as deploy.replicas"},
	{"services.*.secrets", supported, "a file of a Secret, in /run/secrets unless target is a path"},
	{"services.*.security_opt", supported, "no-new-privileges, apparmor, seccomp:unconfined and label:disable"},
	{"services.*.shm_size", supported, "an emptyDir in memory at /dev/shm"},
	{"services.*.{stdin_open,tty}", supported, ""},
	{"services.*.stop_grace_period", supported, "default: 10 s"},
	{"services.*.stop_signal", supported, "a name, no number"},
	{"services.*.sysctls", supported, "the kubelet's safe list, and all net.* of the pod's own network; --allow-unsafe-sysctl permits others"},
	{"services.*.tmpfs", supported, "an emptyDir in memory, with size, mode, noexec and ro; other options have no effect"},
	{"services.*.ulimits", supported, "the annotation podrun.dev/ulimits; lowered to the user's own hard limits; core has no effect"},
	{"services.*.umask", refused, "has no counterpart in Kubernetes"},
	{"services.*.use_api_socket", refused, "there is no docker daemon"},
	{"services.*.user", supported, "ids, or names of the image's /etc/passwd and /etc/group: the annotation podrun.dev/user"},
	{"services.*.userns_mode", refused, "use the field hostUsers of a Pod"},
	{"services.*.uts", refused, "use hostname"},
	{"services.*.volumes", supported, "volume, bind, tmpfs and image; one without a name is removed with the pod; a new volume is empty: files of the image are not copied into it; docker.sock is refused"},
	{"services.*.volumes.[].consistency", supported, "no effect is needed on Linux"},
	{"services.*.volumes.[].bind.selinux", accepted, "files keep their labels: a label of docker's kind is not written"},
	{"services.*.volumes.[].bind.recursive", refused, "has no counterpart in Kubernetes"},
	{"services.*.volumes.[].volume.labels", accepted, "a claim has the labels of the project"},
	{"services.*.volumes.[].volume.nocopy", supported, "podrun never copies"},
	{"services.*.volumes_from", supported, "the volumes with a name and the paths of the other service"},
	{"services.*.working_dir", supported, ""},
}

var networkRows = []attribute{
	{"services.*.networks", supported, "aliases are further names; services that share no network do not reach each other"},
	{"services.*.networks.*.{driver_opts,interface_name}", refused, "a pod has one interface"},
	{"services.*.networks.*.{gw_priority,priority}", supported, "a pod has one interface"},
	{"services.*.networks.*.{ipv4_address,ipv6_address}", accepted, ownNames + "; a file that has the address elsewhere is refused: use the name of the service"},
	{"services.*.networks.*.{link_local_ips,mac_address}", accepted, ownNames},
	{"services.*.networks.*.use_service_name_alias", refused, "every service has a Service of its name"},
	{"networks", supported, "NetworkPolicies, if some services share no network: a service is reached by pods of its networks, and at published ports, except of 127.0.0.1, by everyone"},
	{"networks.*.driver", supported, "bridge"},
	{"networks.*.{driver_opts,ipam}", accepted, ownNames},
	{"networks.*.internal", supported, "a NetworkPolicy: a service that is on internal networks only reaches nothing else"},
	{"networks.*.{attachable,enable_ipv4,enable_ipv6,labels}", accepted, "podrun makes the network of all pods"},
}

var deployRows = []attribute{
	{"services.*.deploy", supported, ""},
	{"services.*.deploy.{endpoint_mode,labels,placement,rollback_config,update_config}", accepted, noSwarm},
	{"services.*.deploy.mode", supported, "replicated, and global, which is one pod"},
	{"services.*.deploy.replicas", supported, "pods NAME-1, NAME-2, … behind the Service NAME"},
	{"services.*.deploy.resources.reservations.generic_resources", refused, noSwarm},
	{"services.*.deploy.resources.reservations.devices", supported, "driver nvidia with count: all or device_ids, and driver cdi with device_ids: the annotation cdi.k8s.io/devices"},
	{"services.*.deploy.restart_policy.condition", supported, "none, on-failure or any"},
	{"services.*.deploy.restart_policy.max_attempts", supported, "with on-failure: the annotation podrun.dev/max-restarts"},
	{"services.*.deploy.restart_policy.{delay,window}", accepted, "podrun restarts with the kubelet's back-off; docker compose ignores it, too"},
}

var objectRows = []attribute{
	{"volumes", supported, "a PersistentVolumeClaim PROJECT-NAME; an external one must exist"},
	{"volumes.*.driver", supported, "local"},
	{"volumes.*.driver_opts", refused, "a volume is a directory: mount other storage on the host, and name its path in volumes of the service"},
	{"volumes.*.labels", accepted, "a claim has the labels of the project"},
	{"secrets", supported, "a Secret PROJECT-NAME with the key NAME; an external one must exist and have that key"},
	{"configs", supported, "a ConfigMap PROJECT-NAME with the key NAME; an external one must exist and have that key"},
	{"{configs,secrets}.*.labels", accepted, "the object has the labels of the project"},
	{"configs.*.template_driver", refused, noSwarm},
	{"secrets.*.{driver,driver_opts,template_driver}", refused, noSwarm},
}

// rows finds rows by path.
type rows map[string]attribute

func newRows() rows {
	r := rows{}
	for _, a := range table() {
		r[a.path] = a
	}
	return r
}

// find returns the row of an attribute, or of the nearest attribute above it that has one.
func (r rows) find(path string) (attribute, bool) {
	for keyPath := strings.Split(path, "."); len(keyPath) > 0; keyPath = keyPath[:len(keyPath)-1] {
		if a, ok := r[pattern(keyPath)]; ok {
			return a, true
		}
	}
	return attribute{}, false
}

// pattern returns the path of a row: names that a user chooses become *.
func pattern(path []string) string {
	out := make([]string, len(path))
	for i, part := range path {
		named := i == 1 || i == 3 && path[0] == "services" && (path[2] == "networks" || path[2] == "depends_on")
		if out[i] = part; named {
			out[i] = "*"
		}
	}
	return strings.Join(out, ".")
}
