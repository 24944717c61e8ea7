package quadlet

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podrun/podrun/internal/manifest/podutil"
	"github.com/podrun/podrun/internal/manifest/runpod"
)

// labelUnit is a label of the pods that Services of NetworkAlias= select: the unit's name.
const labelUnit = "podrun.dev/unit"

// host returns the machine, as the values of the file depend on it: relative paths begin at the file, and a device that is
// missing now may be there when the pod starts.
func (p *parser) host() runpod.Host {
	host := p.set.Host
	host.Dir = filepath.Dir(p.path)
	host.LookupEnv = p.variable
	stat := host.Stat
	host.Stat = func(path string) (fs.FileMode, error) {
		mode, err := stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fs.ModeDevice | fs.ModeCharDevice, nil
		}
		return mode, err
	}
	readEnv := host.ReadEnvFile
	host.ReadEnvFile = func(path string) ([]string, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(host.Dir, path)
		}
		return readEnv(path)
	}
	return host
}

// serviceName sets the unit's name.
func (p *parser) serviceName(otherwise string) {
	p.unit.Service, p.unit.ExitFrom, p.unit.WhenRunning = otherwise, "any", true
	if name := p.q.last(p.section, "ServiceName"); name != "" {
		p.unit.Service = strings.TrimSuffix(name, ".service")
	}
}

// containerUnit makes the Pod of a .container file.
func (p *parser) containerUnit() {
	for _, a := range p.q.all("Container", "Pod") {
		if a.Value != "" {
			p.fail(a, "the unit of %s runs it: podrun systemd install %[1]s", a.Value)
		}
	}
	if strings.HasSuffix(p.stem, "@") {
		if p.stem += p.q.last("Install", "DefaultInstance"); strings.HasSuffix(p.stem, "@") {
			p.errs = append(p.errs, errors.New(p.path+": a template has no unit of its own: name an instance, "+p.stem+"NAME.container, or write DefaultInstance= into [Install]"))
		}
	}
	p.serviceName(p.stem)
	pod := runpod.New(p.objectName("ContainerName"))
	c := p.addContainer(pod)
	p.networks(c)
	p.userNamespace(pod)
	p.aliases(pod)
	p.finish(pod)
}

// objectName returns the name of a Pod: the value of a key, or the file's name.
func (p *parser) objectName(key string) string {
	name := p.stem
	for _, a := range p.q.all(p.section, key) {
		value, err := p.value(a.Value)
		if err != nil {
			p.fail(a, "%v", err)
		}
		if value != "" {
			name = value
		}
	}
	return runpod.ObjectName(name)
}

// finish adds the Pod to the objects of the unit.
func (p *parser) finish(pod *runpod.Pod) {
	if err := pod.Finish(); err != nil {
		p.errs = append(p.errs, errors.New(p.path+": "+err.Error()))
	}
	if list := validation.IsDNS1123Subdomain(pod.Name); len(list) > 0 {
		p.errs = append(p.errs, errors.New(p.path+": "+pod.Name+" cannot be the name of a Pod: "+list[0]))
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[podutil.AnnotationRunAtBoot] = "true" // as podman, whose units make their containers at each start
	claims := make([]any, 0, len(pod.Claims))
	for _, c := range pod.Claims {
		claims = append(claims, c)
	}
	p.unit.Objects = slices.Concat(claims, p.unit.Objects, []any{pod.Pod})
}

// addContainer adds the container of the file to a Pod.
func (p *parser) addContainer(pod *runpod.Pod) *runpod.Container {
	image := ""
	for _, a := range p.q.all("Container", "Image") {
		var err error
		if image, err = p.value(a.Value); err != nil {
			p.fail(a, "%v", err)
		}
		if ext := filepath.Ext(image); ext == ".image" || ext == ".build" {
			p.fail(a, "podrun has no %s files: write the name of the image, which podrun pulls; podrun image load and import add images without a registry", ext)
		}
	}
	if image == "" {
		p.errs = append(p.errs, errors.New(p.path+": [Container] has no Image=, the image to run"))
	}
	c := pod.Add(strings.ReplaceAll(p.objectName("ContainerName"), ".", "-"), image, p.host())
	p.options(c)
	p.command(c)
	p.userOf(c)
	p.security(c)
	p.files(c)
	p.podmanArgs(c)
	p.autoUpdate(pod, c)
	p.refusedValues()
	p.logDriver()
	p.logOpt()
	p.notify()
	p.reload(pod, c)
	return c
}

// options sets the options of the keys whose rows name one.
func (p *parser) options(c *runpod.Container) {
	for _, k := range allKeys() {
		if k.section != p.section || k.option == "" {
			continue
		}
		list := p.q.all(k.section, k.name)
		if k.form == once && len(list) > 1 {
			list = list[len(list)-1:]
		}
		for _, a := range list {
			p.option(c, k, a)
		}
	}
}

// option sets an option by one line.
func (p *parser) option(c *runpod.Container, k key, a Assignment) {
	if a.Value == "" {
		return
	}
	var values []string
	value, err := "", error(nil)
	switch {
	case k.form == words:
		values, err = p.wordList(a.Value)
	case runpod.Flag(k.option):
		if on, ok := parseBool(a.Value); !ok {
			err = errors.New("use yes or no")
		} else if on {
			values = []string{"true"}
		}
	default:
		value, err = p.value(a.Value)
		values = []string{value}
	}
	if err != nil {
		p.fail(a, "%v", err)
		return
	}
	for _, v := range values {
		if optional, ok := strings.CutPrefix(v, "-"); ok && k.option == "device" {
			path, _, _ := strings.Cut(optional, ":")
			if _, err := p.set.Host.Stat(path); err != nil {
				continue
			}
			v = optional
		}
		if k.option == "publish" {
			v = p.withHostPort(v)
		}
		p.set1(c, a, k.option, v)
	}
}

// set1 sets an option, or fails with the line of the key.
func (p *parser) set1(c *runpod.Container, a Assignment, option, value string) {
	if err := c.Set(option, value); err != nil {
		p.fail(a, "%v", err)
	}
}

// command sets the entrypoint and the words after the image.
func (p *parser) command(c *runpod.Container) {
	for _, a := range p.q.sections["Container"] {
		if a.Key == "Entrypoint" { // an empty one counts
			value, err := p.value(a.Value)
			if err != nil {
				p.fail(a, "%v", err)
			}
			p.set1(c, a, "entrypoint", value)
		}
	}
	for _, a := range p.q.all("Container", "Exec") {
		list, err := p.wordList(a.Value)
		if err != nil {
			p.fail(a, "%v", err)
		}
		c.Command(list)
	}
}

// userOf sets user and group.
func (p *parser) userOf(c *runpod.Container) {
	user, group := p.q.all("Container", "User"), p.q.all("Container", "Group")
	word := ""
	for _, a := range slices.Concat(user, group) {
		value, err := p.value(a.Value)
		switch {
		case err != nil:
			p.fail(a, "%v", err)
		case a.Key == "User":
			word = value
		case len(user) == 0 && value != "":
			p.fail(a, "it requires User=")
		case value != "":
			word += ":" + value
		}
	}
	if word != "" {
		p.set1(c, user[len(user)-1], "user", word)
	}
	for _, a := range p.q.all("Container", "GroupAdd") {
		switch {
		case a.Value == "keep-groups":
			p.fail(a, "name the groups by number: podrun's pods have the user's subordinate ids only")
		case a.Value != "":
			p.set1(c, a, "group-add", a.Value)
		}
	}
}

// security sets the keys that are values of --security-opt, and the keys for the root file system and tmpfs.
func (p *parser) security(c *runpod.Container) {
	for key, option := range map[string]string{
		"AppArmor": "apparmor=", "SeccompProfile": "seccomp=", "SecurityLabelLevel": "label=level:", "SecurityLabelType": "label=type:",
	} {
		for _, a := range p.q.all("Container", key) {
			if a.Value != "" {
				p.set1(c, a, "security-opt", option+trimQuotes(a.Value))
			}
		}
	}
	at := Assignment{Key: "NoNewPrivileges", Where: p.path}
	if p.flag("NoNewPrivileges") {
		p.set1(c, at, "security-opt", "no-new-privileges")
	}
	if p.flag("SecurityLabelDisable") {
		p.set1(c, at, "security-opt", "label=disable")
	}
}

// autoUpdate sets how an automatic update finds a newer image.
func (p *parser) autoUpdate(pod *runpod.Pod, c *runpod.Container) {
	for _, a := range p.q.all("Container", "AutoUpdate") {
		switch a.Value {
		case "":
		case podutil.AutoUpdateRegistry, podutil.AutoUpdateLocal:
			p.set1(c, a, "annotation", podutil.AnnotationAutoUpdate+"/"+c.Name+"="+a.Value)
		default:
			p.fail(a, "use registry or local")
		}
	}
}

// refusedValues refuses values of keys that otherwise have no effect.
func (p *parser) refusedValues() {
	if p.flag("EnvironmentHost") {
		p.fail(p.lastOf("EnvironmentHost"), noteNotEnv)
	}
	if p.flag("HttpProxy") {
		p.fail(p.lastOf("HttpProxy"), noteNotEnv)
	}
	for _, a := range p.q.all("Container", "CgroupsMode") {
		if a.Value == "disabled" {
			p.fail(a, "a pod has cgroups, by which podrun limits and ends it; remove it")
		}
	}
	if len(p.q.all("Container", "StartWithPod")) > 0 && !p.flag("StartWithPod") {
		p.fail(p.lastOf("StartWithPod"), "the containers of a Pod start together: put this one into a pod of its own")
	}
}

// lastOf returns the last assignment of a key, for an error.
func (p *parser) lastOf(key string) Assignment {
	list := p.q.all(p.section, key)
	if len(list) == 0 {
		return Assignment{Key: key, Where: p.path}
	}
	return list[len(list)-1]
}

// notify sets when the unit is active.
func (p *parser) notify() {
	for _, a := range p.q.all("Container", "Notify") {
		on, ok := parseBool(a.Value)
		switch {
		case strings.EqualFold(a.Value, "healthy"):
			if p.unit.WhenRunning = false; p.q.last("Container", "HealthCmd") == "" {
				p.fail(a, "healthy requires HealthCmd=: podrun does not read the HEALTHCHECK of an image")
			}
		case !ok && a.Value != "":
			p.fail(a, "use healthy, yes or no")
		case on:
			p.fail(a, "podrun notifies systemd itself: write HealthCmd= and Notify=healthy")
		}
	}
}

// reload sets the command of a reload.
func (p *parser) reload(pod *runpod.Pod, c *runpod.Container) {
	commands, signals := p.q.all("Container", "ReloadCmd"), p.q.all("Container", "ReloadSignal")
	if len(commands) > 0 && len(signals) > 0 {
		p.fail(signals[0], "it and ReloadCmd= are mutually exclusive")
	}
	for _, a := range commands {
		list, err := p.wordList(a.Value)
		switch {
		case err != nil:
			p.fail(a, "%v", err)
		case len(list) > 0:
			p.unit.Reload = append([]string{"exec", pod.Name, "-c", c.Name, "--"}, list...)
		}
	}
	for _, a := range signals {
		if a.Value != "" {
			p.unit.Reload = []string{"kill", pod.Name, "-c", c.Name, "--signal", a.Value}
		}
	}
}

// podmanArgs sets the options of PodmanArgs= that podrun has, too.
func (p *parser) podmanArgs(c *runpod.Container) {
	for _, a := range p.q.all("Container", "PodmanArgs") {
		list, err := p.wordList(a.Value)
		if err != nil {
			p.fail(a, "%v", err)
		}
		for i := 0; i < len(list); i++ {
			name, value, hasValue := strings.Cut(strings.TrimPrefix(list[i], "--"), "=")
			switch {
			case !strings.HasPrefix(list[i], "--") || !runpod.Known(name):
				p.fail(a, "podrun has no option %s of podman run: use a key of Quadlet, or remove it", list[i])
				continue
			case !hasValue && !runpod.Flag(name) && i+1 == len(list):
				p.fail(a, "%s requires a value", list[i])
				continue
			case !hasValue && !runpod.Flag(name):
				i++
				value = list[i]
			}
			p.set1(c, a, name, value)
		}
	}
}

// networks sets the network of the Pod, and the name servers of .network files.
func (p *parser) networks(c *runpod.Container) {
	modes := map[string]bool{}
	for _, a := range p.q.all(p.section, "Network") {
		a.Value = trimQuotes(a.Value)
		mode := p.network(a)
		if modes[mode] = true; len(modes) > 1 {
			p.fail(a, "a pod has one network")
		}
		p.set1(c, a, "network", mode)
		for _, server := range p.networkServers(a.Value) {
			p.set1(c, a, "dns", server)
		}
	}
}

// userNamespace gives the Pod ids of its own, as podman's --userns auto does.
func (p *parser) userNamespace(pod *runpod.Pod) {
	for _, key := range []string{"RemapUsers", "UserNS"} {
		for _, a := range p.q.all(p.section, key) {
			switch a.Value {
			case "":
			case "auto":
				pod.Spec.HostUsers = new(false)
			default:
				p.fail(a, noteKeepUser)
			}
		}
	}
}

// aliases makes a Service of each NetworkAlias=, which resolves to the pod, ready or not.
func (p *parser) aliases(pod *runpod.Pod) {
	for _, a := range p.q.all(p.section, "NetworkAlias") {
		name, err := p.value(a.Value)
		if list := validation.IsDNS1035Label(name); err == nil && len(list) > 0 && name != "" {
			err = errors.New(name + " cannot be the name of a Service: " + list[0])
		}
		switch {
		case err != nil:
			p.fail(a, "%v", err)
			continue
		case name == "":
			continue
		}
		label := runpod.ObjectName(p.unit.Service)
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[labelUnit] = label
		p.unit.Objects = append(p.unit.Objects, &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{labelUnit: label}},
		})
	}
}
