package archtest

const modulePath = "github.com/podrun/podrun"

// Directories that rules name.
const (
	programs          = "internal/programs"
	supervisorProgram = "internal/programs/supervisor"
	netstackProgram   = "internal/programs/netstack"
	fastPathProgram   = "internal/cli/fastpath"
	imageProgram      = "internal/programs/image"
	reexec            = "internal/reexec"
)

// A directory is one package, with its tests. An entry is for that directory alone, not for those below it.
type directory struct {
	dir string
	why string
	// pure packages use no files, no network and no clock: their results follow from their arguments.
	pure bool
}

// layers order the layout from top to bottom: a package imports packages of lower layers, or of its own layer
// unless the layer is flat. The longest pattern decides; a pattern that ends in /* is for every directory below.
var layers = []struct {
	name string
	dirs []string
	flat bool // packages of the layer do not import each other
}{
	{name: "tests of the whole", dirs: []string{"test/*", "internal/manifest/oracle", "internal/archtest"}, flat: true},
	{name: "test helpers", dirs: []string{"internal/testenv", "internal/nettest", "internal/golden", "internal/reexec/cparser", "internal/proptest", "internal/scriptcmd", "internal/cli/internal/clitest", "internal/testmanifest", "internal/node/nodetest", "internal/systemd/systemdtest", "internal/cosigntest", "test/internal/*"}},
	{name: "programs", dirs: []string{".", supervisorProgram, netstackProgram, fastPathProgram, imageProgram, "packaging", "packaging/*"}, flat: true},
	{name: "command tree", dirs: []string{"internal/cli"}},
	{name: "commands", dirs: []string{"internal/cli/cmd/*"}, flat: true},
	{name: "controller", dirs: []string{"internal/cli/controller", "internal/cli/podset", "internal/cli/unit"}},
	{name: "what commands share", dirs: []string{"internal/cli/internal/*"}},
	{name: "node agent", dirs: []string{"internal/node"}},
	{name: "embedded programs", dirs: []string{programs}},
	{name: "facades", dirs: []string{"internal/manifest", "image", "runner", "internal/nsprobe"}},
	{name: "their parts", dirs: []string{"internal/manifest/*", "image/*", "runner/*"}},
	{name: "kernel and pure packages", dirs: []string{"netns", "netns/*", "volumes", "cgroups", "cgroups/*", "internal/lifecycle", "internal/workload", "internal/environ", "internal/pod/*"}},
	{name: "parts of a Kubernetes node", dirs: []string{"internal/node/*"}},
	{name: "base", dirs: []string{"internal/*"}},
	{name: "pod", dirs: []string{"internal/pod"}},
}

// A module is a third-party module or package, and the directories that use it; "a/*" are all below a.
type module struct {
	prefix string
	dirs   []string
	why    string
}

// everywhere marks a module that every package but the pure ones may use.
const everywhere = "*"

// testModules are for tests only, in any package.
var testModules = []string{
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"pgregory.net/rapid",
	"github.com/creack/pty",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// pureFiles are as pure as a pure package, in packages that are not.
var pureFiles = map[string]string{
	"runner/container/spec.go": "the configuration of a container follows from the Plan alone",
	"cgroups/stats/parse.go":   "usage follows from the text of the kernel's files",
	"cgroups/limits.go":        "cgroup values follow from the limits alone",

	"netns/dns/view.go":         "records follow from the directory",
	"netns/dns/service.go":      "records follow from the directory",
	"netns/dns/answer.go":       "answers follow from the directory",
	"netns/dns/message.go":      "answers follow from the question",
	"netns/services/catalog.go": "routes follow from the catalog",
	"netns/services/rules.go":   "rules follow from the routes",
}

// impure are the packages of the standard library that a pure package must not import.
var impure = []string{"os", "net", "syscall", "io/ioutil", "crypto/rand", "math/rand", "plugin", "log"}

// impureCalls are functions that a pure package must not call, of packages that it may import.
var impureCalls = map[string][]string{
	"time":          {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "LoadLocation"},
	"path/filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks", "Abs"},
}

// notInSupervisor must not be reached by the supervisor program, however deep.
var notInSupervisor = []module{
	{modulePath + "/internal/cli", nil, "flags end at the control socket"},
	{modulePath + "/internal/manifest", nil, "the Plan is all that is left of a manifest"},
	{modulePath + "/image", nil, "layers are directories by then"},
	{modulePath + "/internal/systemd", nil, "the supervisor does not talk to the service manager"},
	{"k8s.io", nil, "3.7 times the start-up of every container"},
	{"sigs.k8s.io", nil, "3.7 times the start-up of every container"},
	{"go.podman.io", nil, "no registry client in a process that lives for months"},
	{"github.com/urfave/cli", nil, "text/template alone keeps every exported method in the binary"},
	{"gvisor.dev", nil, "the network stack is a program of its own: a quarter more of this one for what most pods never need"},
	{"tags.cncf.io", nil, "devices are mounts by then"},
	{"text/template", nil, "it keeps every exported method in the binary"},
}

// allowedAnywhere import nothing, whatever the names of their modules are.
var allowedAnywhere = []string{"k8s.io/apimachinery/pkg/util/duration"}

// notInCLI must not be reached by the release's first program, however deep.
var notInCLI = []module{
	{modulePath + "/image/server", nil, "registries and signatures are the image program's"},
	{modulePath + "/runner", nil, "pods are the supervisor program's"},
	{"go.podman.io", nil, "every command would initialise a registry client"},
	{"github.com/compose-spec", nil, "every command would initialise a library for compose files"},
	{"sigs.k8s.io/kustomize", nil, "every command would initialise kustomize's schemas"},
	{"k8s.io/apimachinery/pkg/util/strategicpatch", nil, "every command would initialise the types of OpenAPI"},
	{"github.com/sigstore", nil, "every command would initialise a signature library"},
	{"github.com/ProtonMail/go-crypto", nil, "every command would initialise a signature library"},
	{"google.golang.org/protobuf", nil, "every command would initialise its registries of types"},
}

// notInFastPath must not be reached by the fast path, however deep.
var notInFastPath = []module{
	{modulePath + "/internal/cli", nil, "the package of all commands reaches everything"},
	{modulePath + "/" + reexec, nil, "its constructors are C"},
	{modulePath + "/internal/manifest", nil, "Kubernetes types take longer to initialise than the command to run"},
	{modulePath + "/image", nil, "a registry client takes longer to initialise than the command to run"},
	{"k8s.io", nil, "Kubernetes types take longer to initialise than the command to run"},
	{"github.com", nil, "it links golang.org/x and nothing else"},
	{"text/template", nil, "it keeps every exported method in the binary"},
	{"net/http", nil, "it is larger than all the rest"},
}

// topLevel are the directories of the root without Go files of their own.
var topLevel = []string{".ci", ".git", "bin", "changelog", "docs", "examples", "internal", "scripts", "test"}

const (
	maxFile       = 500 // lines
	maxFiles      = 25  // of a directory, without tests
	maxFunction   = 80  // lines
	maxComplexity = 20  // as gocyclo counts: 1, and 1 for each if, for, case, && and ||
	maxParameters = 6
	maxMain       = 40  // lines of main.go
	maxUntested   = 200 // lines of a package without tests
)

// Exceptions, each with its reason. An entry that is not needed any more fails.
var (
	longFiles        = map[string]string{} // by path
	largeDirs        = map[string]string{} // by directory
	largeFunctions   = map[string]string{} // by directory.Type.Name
	complexFunctions = map[string]string{
		"image.Store.Ensure": "it is to be divided",
	}
	manyParameters = map[string]string{
		"internal/node/server.session.ExecInContainer": "an interface of k8s.io/cri-streaming",
		"internal/node/server.session.AttachContainer": "an interface of k8s.io/cri-streaming",
	}
)

// contextUsers are the directories that use cli.Context outside of Complete.
var contextUsers = map[string]string{
	"internal/cli":                   "the actions of podrun alone and of help",
	"internal/cli/internal/cmdline":  "actions that are errors",
	"internal/cli/internal/cmdutil":  "Action, and flags that commands share",
	"internal/cli/internal/resource": "flags that commands share: --selector, --all",

	"internal/cli/cmd/image": "its commands are to become cmdutil.Commands",
}

// allowedInits may have an init().
var allowedInits = map[string]string{
	"runner/main_test.go": "the test binary is a supervisor: its main goroutine keeps to the main thread, as in main.go",
}

// allowedSleeps may call time.Sleep in a test. Tests in a testing/synctest bubble need no entry: their sleep
// takes no time.
var allowedSleeps = map[string]string{
	"runner/torture_test.go": "it looks for races by acting at random moments, and passes without one",
}
