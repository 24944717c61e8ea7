package archtest

const modulePath = "github.com/podrun/podrun"

// A room is a directory with all below it that is not a room itself.
type pkg struct {
	dir string
	may []string // rooms it may import
	why string
	// pure rooms compute: no files, no network, no clock, so that their tests need
	// nothing and their answers depend on their arguments alone.
	pure bool
}

// commonImports are the small rooms that everybody but the pure ones may use.
var commonImports = []string{"internal/wire", "internal/store", "internal/crilog", "internal/host", "internal/undo", "internal/report", "internal/delegation", "internal/nsthread", "internal/rawsys"}

var layout = []pkg{
	{dir: ".", may: []string{"cli", "internal/reexec", "internal/programs", "internal/reexec/fastexec"},
		why: "main is a doorbell: hidden stages first, then the command line"},
	{dir: "cli", may: withCommon("manifest", "manifest/describe", "pod", "workload", "image", "cgroups/stats", "netns/hostport", "netns/relay", "internal/nsprobe", "internal/reexec", "internal/programs", "internal/systemd", "internal/treetar", "internal/cdi", "internal/page", "cli/internal/remote", "cli/internal/reading", "pod/glance"),
		why: "commands turn words into a Plan and talk to a supervisor; they never run a pod themselves"},
	{dir: "cli/internal/remote", may: withCommon("pod", "cli"),
		why: "how a supervisor is spoken to, for both fronts: no flags, no manifests"},
	{dir: "cli/internal/reading", may: withCommon("pod", "cli"),
		why: "what is made of a pod's files for both fronts: no flags, no manifests"},
	{dir: "cli/quick", may: withCommon("cli/internal/remote", "cli/internal/reading", "pod", "pod/glance"),
		why: "the front that has to be quick: TestQuickStaysLean says what it does without"},
	{dir: "environ", may: []string{"pod"}, pure: true,
		why: "both halves must agree on what a variable means; what is referred to is handed in"},
	{dir: "manifest", may: []string{"pod", "pod/glance", "environ", "workload", "internal/report"}, pure: true,
		why: "a manifest means the same on every host, so nothing of a host is reachable from here"},
	{dir: "manifest/describe", may: []string{"internal/report"}, pure: true,
		why: "a page about a Pod is made of the Pod alone"},
	{dir: "manifest/oracle", may: []string{"manifest", "manifest/describe", "environ", "pod"},
		why: "tests in a module of their own, which hold manifests against Kubernetes' code"},
	{dir: "pod", pure: true,
		why: "Plan and Status are what the two halves share: standard library only"},
	{dir: "pod/glance", may: []string{"pod"}, pure: true,
		why: "both fronts make a pod's line: without Kubernetes' types"},
	{dir: "lifecycle", may: []string{"pod"}, pure: true,
		why: "one pure function decides; the runner acts"},
	{dir: "workload", may: []string{"pod"}, pure: true,
		why: "one pure function decides what becomes of a Deployment or a Job; the command line acts"},
	{dir: "runner", may: withCommon("pod", "environ", "lifecycle", "cgroups", "netns", "netns/hostport", "volumes", "internal/reexec", "internal/treetar"),
		why: "the loop of one pod: it knows the Plan and the kernel, no manifest, image or flag"},
	{dir: "netns", may: withCommon("netns/hostport", "netns/relay"), why: kernelPackage},
	{dir: "netns/relay", may: []string{"internal/nsthread", "internal/rawsys"}, why: "what is between two connections is the same in a command and in a supervisor"},
	{dir: "netns/hostport", may: []string{"internal/report"},
		why: "commands open a pod's ports of the host before there is a pod, without the libraries of networks"},
	{dir: "volumes", may: commonImports, why: kernelPackage},
	{dir: "cgroups", may: commonImports, why: kernelPackage},
	{dir: "cgroups/stats", why: "commands look at what is used without a library: the kernel's files, and nothing else"},
	{dir: "image", may: withCommon("pod", "internal/reexec"),
		why: "images become directories of layers; what runs on them is nobody's business here"},

	{dir: "internal/nsprobe", may: withCommon("volumes", "netns", "internal/reexec"),
		why: "a pod's namespaces without a pod: it tries what volumes mounts and how netns connects, before there is anything to undo"},
	{dir: "internal/reexec", may: withCommon("internal/reexec/nsenter"),
		why: "how a process becomes a stage; what the stage does is its room's"},
	{dir: "internal/reexec/nsenter", why: "a C constructor: it runs before Go and knows nothing of it"},
	{dir: "internal/programs", may: withCommon("runner", "netns", "internal/reexec"),
		why: "where the supervisor's program and the network stack's come from: embedded, or this very program"},
	{dir: "internal/programs/supervisor", may: []string{"runner", "internal/reexec"},
		why: "the lean half's main: one blank line more here costs every container start"},
	{dir: "internal/reexec/fastexec", why: "a C constructor: it runs before Go and knows nothing of it"},
	{dir: "internal/programs/netstack", may: []string{"netns", "internal/reexec"},
		why: "the main of the network stack in user space, which most pods never need"},
	{dir: "internal/wire", may: []string{"pod"}, why: basePackage},
	{dir: "internal/store", may: []string{"pod", "internal/report"}, why: basePackage},
	{dir: "internal/host", may: []string{"internal/report", "internal/delegation"}, why: basePackage},
	{dir: "internal/delegation", may: []string{"internal/report"}, why: basePackage},
	{dir: "internal/nsthread", why: basePackage},
	{dir: "internal/rawsys", why: basePackage},
	{dir: "internal/cdi", why: "what a device's name means is found out before there is a pod; a supervisor mounts files"},
	{dir: "internal/page", why: "what a browser is sent, and who may ask for it, can be looked through in one place: it knows no pods and no files"},
	{dir: "internal/systemd", may: commonImports, why: "the service manager is asked by commands; a supervisor does without it"},
	{dir: "internal/crilog", why: "who writes logs and who reads them agree on names and form; " + basePackage},
	{dir: "internal/treetar", why: "files go into and out of a container by the same code on both sides; " + basePackage},
	{dir: "internal/undo", why: basePackage},
	{dir: "internal/report", why: basePackage},
	{dir: "internal/testenv", may: withCommon("internal/reexec", "internal/reexec/nsenter"), why: "only tests import it"},
	{dir: "internal/nettest", may: []string{"netns", "internal/testenv"}, why: "only tests import it"},
	{dir: "internal/golden", why: "only tests import it"},
	{dir: "internal/testwords", why: "only tests import it: words that scripts here and in machines have in common"},
	{dir: "internal/properties", why: "only tests import it"},
	{dir: "internal/archtest", why: "the law reads the other rooms, it does not link them"},
	{dir: "test/examples", why: testPackage},
	{dir: "test/page", why: testPackage},
	{dir: "test/script", why: testPackage},
	{dir: "test/root", why: testPackage},
	{dir: "test/vm", why: testPackage},
	{dir: "test/bench", why: "it measures the built binary from outside, as it does the peer"},
	{dir: "test/netbench", why: "it measures the built binary's network from outside, as it does others"},
}

const (
	kernelPackage = "kernel rooms know neither pods nor each other: they take small structs of their own and can be tested alone"
	basePackage   = "everybody stands on it, so it stands on next to nothing"
	testPackage   = "it tests the built binary from outside, as a user meets it"
)

func withCommon(more ...string) []string { return append(more, commonImports...) }

// testHelpers may be imported by any room's tests.
var testHelpers = []string{"internal/testenv", "internal/nettest", "internal/golden", "internal/properties", "internal/testwords"}

// A library is a third-party module or package and the rooms it lives in.
type module struct {
	prefix string
	rooms  []string
	why    string
}

// everywhere marks a library that every room but the pure ones may use.
const everywhere = "*"

// modules: the longest matching prefix decides.
var modules = []module{
	{"golang.org/x/sys", []string{everywhere}, "system calls: an extension of the standard library"},
	{"github.com/urfave/cli/v2", []string{"cli"}, "flags and help are the command line's"},
	{"golang.org/x/term", []string{"cli"}, "terminals are the command line's"},
	{"golang.org/x/sync", []string{"image"}, "parallel downloads"},
	{"k8s.io", []string{"manifest", "manifest/describe", "manifest/oracle", "cli"}, "Kubernetes' types end where the Plan begins; the command line prints them"},
	{"k8s.io/apimachinery/pkg/util/duration", []string{"pod/glance", "manifest", "manifest/describe", "cli"}, "times as kubectl says them; it imports nothing"},
	{"sigs.k8s.io", []string{"manifest", "cli"}, "Kubernetes' types end where the Plan begins; the command line prints them"},
	{"github.com/robfig/cron/v3", []string{"workload"}, "when a schedule is due"},
	{"go.yaml.in/yaml/v3", []string{"manifest"}, "the line and column of every node, for errors"},
	{"github.com/opencontainers/runc", []string{"runner"}, "libcontainer is no stable interface: one room is rewritten when it changes"},
	{"github.com/opencontainers/selinux", []string{"internal/host"}, "which labels containers have by a host's policy; libcontainer sets them"},
	{"github.com/opencontainers/cgroups", []string{"runner"}, "libcontainer's configuration speaks its types"},
	{"github.com/opencontainers/runtime-spec", []string{"runner"}, "the configuration of a container"},
	{"github.com/moby/profiles", []string{"runner"}, "the default seccomp profile"},
	{"github.com/moby/sys/capability", []string{"runner"}, "capabilities by their names and numbers"},
	{"github.com/moby/sys/signal", []string{"runner"}, "signal names"},
	{"github.com/moby/sys/user", []string{"runner"}, "an image's passwd and group files"},
	{"github.com/containerd/cgroups/v3", []string{"cgroups"}, "the pod's cgroup"},
	{"github.com/cyphar/filepath-securejoin", []string{"volumes"}, "paths inside a volume or a root file system"},
	{"github.com/fsnotify/fsnotify", []string{"cli"}, "following logs and status files"},
	{"golang.org/x/net/dns/dnsmessage", []string{"netns"}, "what names are asked for and answered with; the standard library has a copy of its own in it"},
	{"github.com/vishvananda/netlink", []string{"netns", "internal/nettest"}, "links and addresses"},
	{"github.com/mdlayher/netlink", []string{"netns"}, "the buffers of a socket to nftables"},
	{"gvisor.dev/gvisor", []string{"netns"}, "a network stack in user space, where the kernel's cannot be used"},
	{"github.com/google/nftables", []string{"netns"}, "rules of the kernel, without a program"},
	{"github.com/containers/image/v5", []string{"image"}, "registries and archives"},
	{"github.com/containerd/containerd/v2/pkg/archive", []string{"image"}, "layers are unpacked by it, in a confined child"},
	{"github.com/klauspost/compress", []string{"image", "internal/programs"}, "compressed layers; the programs that the release carries"},
	{"github.com/opencontainers/go-digest", []string{"image"}, "digests"},
	{"github.com/opencontainers/image-spec", []string{"image"}, "manifests and configs of images"},
	{"github.com/google/go-cmp", []string{"internal/golden"}, "differences, for the tests that import it"},
	{"github.com/rogpeppe/go-internal", []string{"internal/testwords", "cli"}, "scripts as tests; and what differs between texts"},
	{"github.com/godbus/dbus/v5", []string{"internal/systemd"}, "the service manager's protocol"},
	{"tags.cncf.io/container-device-interface", []string{"internal/cdi"}, "descriptions of devices"},
	{"github.com/sirupsen/logrus", []string{"runner"}, "libcontainer logs through it"},
}

// testModules are for tests only, in any room.
var testModules = []string{
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"pgregory.net/rapid",
	"github.com/creack/pty",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// pureFiles are as pure as a pure room, in rooms that are not.
var pureFiles = map[string]string{
	"runner/config.go":       "what a container is made of follows from the Plan alone",
	"cgroups/stats/parse.go": "what is used follows from the texts of the kernel's files",
	"cgroups/limits.go":      "cgroup values follow from the limits alone",

	"netns/names/view.go":            "what there is of a name follows from what is known",
	"netns/names/service.go":         "what there is of a name follows from what is known",
	"netns/names/local.go":           "what is answered follows from what is known",
	"netns/names/message.go":         "what is answered follows from the question",
	"netns/services/directory.go":    "where Services lead to follows from what is known",
	"netns/services/rules.go":        "rules follow from where Services lead to",
	"netns/resolvconf/resolvconf.go": "a resolv.conf follows from the pod's wishes and the host's file",
}

// impure are the standard library's ways out of a program.
var impure = []string{"os", "net", "syscall", "io/ioutil", "crypto/rand", "math/rand", "plugin", "log"}

// impureCalls are ways out of it inside packages that are otherwise fine.
var impureCalls = map[string][]string{
	"time":          {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "LoadLocation"},
	"path/filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks", "Abs"},
}

// notInSupervisor may not be reached by the supervisor's program, however deep.
var notInSupervisor = []module{
	{modulePath + "/cli", nil, "flags end at the control socket"},
	{modulePath + "/manifest", nil, "the Plan is all that is left of a manifest"},
	{modulePath + "/image", nil, "layers are directories by then"},
	{modulePath + "/internal/systemd", nil, "what a supervisor waits for is in its own pod"},
	{"k8s.io", nil, "3.7 times the start-up of every container"},
	{"sigs.k8s.io", nil, "3.7 times the start-up of every container"},
	{"github.com/containers", nil, "a registry client has no place in a process that lives for months"},
	{"github.com/urfave/cli", nil, "text/template alone keeps every exported method in the binary"},
	{"gvisor.dev", nil, "a network stack in user space is a program of its own: a quarter more of BACK for what most pods never need"},
	{"tags.cncf.io", nil, "devices are mounts by then"},
	{"text/template", nil, "it keeps every exported method in the binary"},
}

// allowedAnywhere import nothing, whatever the names of their modules are.
var allowedAnywhere = []string{"k8s.io/apimachinery/pkg/util/duration"}

// notInFastPath may not be reached by the quick front, however deep.
var notInFastPath = []module{
	{modulePath + "/cli", nil, "the package of all commands reaches everything"},
	{modulePath + "/internal/reexec", nil, "its constructors are C"},
	{modulePath + "/manifest", nil, "Kubernetes' types take longer to initialise than the command to run"},
	{modulePath + "/image", nil, "a registry client takes longer to initialise than the command to run"},
	{"k8s.io", nil, "Kubernetes' types take longer to initialise than the command to run"},
	{"github.com", nil, "what it knows of libraries is golang.org/x"},
	{"text/template", nil, "it keeps every exported method in the binary"},
	{"net/http", nil, "it is larger than all the rest"},
}

// topLevel are the directories of the root that hold no room.
var topLevel = []string{".ci", ".git", "bin", "changelog", "docs", "examples", "internal", "scripts", "test"}

const (
	maxFile     = 500 // lines
	maxFunction = 80
	maxMain     = 40
)

// longFiles may be longer than maxFile, each for a reason.
var longFiles = map[string]string{}

// allowedInits may have an init(), each for a reason.
var allowedInits = map[string]string{
	"runner/main_test.go": "the test binary is a supervisor: its main goroutine keeps to the main thread, as in main.go",
}

// allowedSleeps may call time.Sleep in a test, each for a reason. Tests in a
// testing/synctest bubble need no entry: their sleep takes no time.
var allowedSleeps = map[string]string{
	"runner/dozetorture_test.go": "it seeks races by acting at random moments, and passes without one",
}

// forbiddenWords that may not stand in the repository, split so that this file passes.
var forbiddenWords = []struct{ a, b, why string }{
	{"proxy.golang", ".org", registries},
	{"sum.golang", ".org", registries},
	{"deb.debian", ".org", registries},
	{"security.debian", ".org", registries},
	{"snapshot.debian", ".org", registries},
	{"archive.raspberrypi", ".org", registries},
	{"archive.raspberrypi", ".com", registries},
	{"archive.ubuntu", ".com", registries},
	{"TO", "DO", "do it, or write an issue"},
	{"FIX", "ME", "fix it, or write an issue"},
	{"/work/", "main", "a path of one machine"},
	{"/work/", "shared", "a path of one machine"},
}

const registries = "mirrors differ from site to site: the tools know theirs"
