package runpod

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// testHost is a machine with two devices, and SELinux.
func testHost() Host {
	return Host{
		Dir:         "/home/dev",
		LookupEnv:   func(name string) (string, bool) { return "outside", name == "FROM" },
		ReadEnvFile: func(path string) ([]string, error) { return []string{"A=1", "A=2", "FROM"}, nil },
		ReadFile:    func(path string) ([]byte, error) { return []byte("# mine\na=1\n\n b=2 \n"), nil },
		SELinux:     func() bool { return true },
		Stat: func(path string) (fs.FileMode, error) {
			switch path {
			case "/dev/null":
				return fs.ModeDevice | fs.ModeCharDevice, nil
			case "/dev/sda":
				return fs.ModeDevice, nil
			case "/etc":
				return fs.ModeDir, nil
			case "/etc/hosts":
				return 0, nil
			}
			return 0, errors.New("no such file")
		},
	}
}

// set makes a Pod of options, NAME VALUE.
func set(lines ...string) (*Pod, error) {
	p := New("web")
	c := p.Add("app", "image", testHost())
	c.Command([]string{"run"})
	for _, line := range lines {
		option, value, _ := strings.Cut(line, " ")
		if err := c.Set(option, value); err != nil {
			return p, err
		}
	}
	return p, p.Finish()
}

// TestOptions: what each option becomes; the texts are parts of the Pod's JSON.
func TestOptions(t *testing.T) {
	for line, want := range map[string]string{
		"add-host a;b:10.0.0.1":                      `"hostAliases":[{"ip":"10.0.0.1","hostnames":["a","b"]}]`,
		"add-host a=[::1]":                           `"hostAliases":[{"ip":"::1","hostnames":["a"]}]`,
		"add-host host.docker.internal:host-gateway": `"annotations":{"podrun.dev/host-loopback":"true","podrun.dev/host-names":"host.docker.internal"}`,
		"annotation a/b=c d":                         `"annotations":{"a/b":"c d"}`,
		"cap-add cap_net_admin":                      `"capabilities":{"add":["NET_ADMIN"]}`,
		"cap-drop ALL":                               `"capabilities":{"drop":["ALL"]}`,
		"cpus 1.5":                                   `"limits":{"cpu":"1500m"}`,
		"device /dev/null:/dev/x:rwm":                `"hostPath":{"path":"/dev/null","type":"CharDevice"}`,
		"device /dev/sda":                            `"hostPath":{"path":"/dev/sda","type":"BlockDevice"}`,
		"device vendor.com/class=one":                `"limits":{"vendor.com/class=one":"1"}`,
		"dns 9.9.9.9":                                `"annotations":{"podrun.dev/dns-servers":"9.9.9.9"}`,
		"dns-option ndots:1":                         `"dnsConfig":{"options":[{"name":"ndots","value":"1"}]}`,
		"dns-search example.org":                     `"dnsConfig":{"searches":["example.org"]}`,
		"entrypoint sh":                              `"command":["sh"],"args":["run"]`,
		`entrypoint ["sh","-c"]`:                     `"command":["sh","-c"],"args":["run"]`,
		"entrypoint ":                                `"command":["run"]`,
		"env A=$(B)":                                 `"env":[{"name":"A","value":"$$(B)"}]`,
		"env-file x":                                 `"env":[{"name":"A","value":"2"},{"name":"FROM","value":"outside"}]`,
		"gpus all":                                   `"limits":{"nvidia.com/gpu=all":"1"}`,
		"gpus 2":                                     `"limits":{"nvidia.com/gpu":"2"}`,
		"group-add video":                            `"annotations":{"groups.podrun.dev/app":"video"}`,
		"health-cmd curl -f x":                       `"readinessProbe":{"exec":{"command":["/bin/sh","-c","curl -f x"]},"timeoutSeconds":30,"periodSeconds":30,"failureThreshold":3}`,
		`health-cmd ["CMD","a","b"]`:                 `"exec":{"command":["a","b"]}`,
		`health-cmd ["CMD-SHELL","a b"]`:             `"exec":{"command":["/bin/sh","-c","a b"]}`,
		"hostname box":                               `"hostname":"box"`,
		"hostname box.example.org":                   `"hostnameOverride":"box.example.org"`,
		"init true":                                  `"shareProcessNamespace":true`,
		"label a=b":                                  `"labels":{"a":"b"}`,
		"label a=b c":                                `"annotations":{"a":"b c"}`,
		"label domains[0]=x":                         `"annotations":{"podrun.dev/labels":"{\"domains[0]\":\"x\"}"}`,
		"label io.containers.autoupdate=registry":    `"annotations":{"io.containers.autoupdate/app":"registry"}`,
		"label-file x":                               `"labels":{"a":"1","b":"2"}`,
		"memory 512m":                                `"limits":{"memory":"512Mi"}`,
		"mount type=bind,src=./x,dst=/y,ro":          `"volumes":[{"name":"volume-1","hostPath":{"path":"/home/dev/x"}}]`,
		"mount type=bind,src=/x,dst=/y,bind-propagation=rslave": `"volumeMounts":[{"name":"volume-1","mountPath":"/y","mountPropagation":"HostToContainer"}]`,
		"mount source=v,target=/y,readonly":                     `"volumeMounts":[{"name":"volume-1","readOnly":true,"mountPath":"/y"}]`,
		"mount type=tmpfs,dst=/y,tmpfs-size=1m,tmpfs-mode=700":  `"emptyDir":{"medium":"Memory","sizeLimit":"1Mi","mode":448}`,
		"mount type=image,source=tools,dst=/y":                  `"image":{"reference":"tools","pullPolicy":"IfNotPresent"}`,
		`mount type=bind,src=/tmp,"dst=/a,b"`:                   `"mountPath":"/a,b"`,
		"network host":                                          `"hostNetwork":true`,
		"network none":                                          `"annotations":{"podrun.dev/network":"none"}`,
		"no-healthcheck true":                                   `"image":"image"`,
		"pids-limit 5":                                          `"limits":{"pids":"5"}`,
		"privileged true":                                       `"privileged":true`,
		"publish 127.0.0.1:53:54/udp":                           `"ports":[{"hostPort":53,"containerPort":54,"protocol":"UDP","hostIP":"127.0.0.1"}]`,
		"publish 80":                                            `"annotations":{"podrun.dev/free-host-ports":"true"}`,
		"publish [::1]:8-9:1-2":                                 `"ports":[{"hostPort":8,"containerPort":1,"protocol":"TCP","hostIP":"::1"},{"hostPort":9,"containerPort":2,"protocol":"TCP","hostIP":"::1"}]`,
		"pull always":                                           `"imagePullPolicy":"Always"`,
		"read-only true":                                        `"readOnlyRootFilesystem":true`,
		"restart unless-stopped":                                `"restartPolicy":"Always"`,
		"restart on-failure:3":                                  `"annotations":{"max-restarts.podrun.dev/app":"3"}`,
		"secret s":                                              `"secret":{"secretName":"s","items":[{"key":"s","path":"s"}],"defaultMode":292}`,
		"secret s,type=env,target=S":                            `"env":[{"name":"S","valueFrom":{"secretKeyRef":{"name":"s","key":"s"}}}]`,
		"secret s,type=mount,target=/etc/s,mode=400":            `"mountPath":"/etc/s","subPath":"s"`,
		"security-opt no-new-privileges":                        `"allowPrivilegeEscalation":false`,
		"security-opt apparmor=unconfined":                      `"appArmorProfile":{"type":"Unconfined"}`,
		"security-opt apparmor=mine":                            `"appArmorProfile":{"type":"Localhost","localhostProfile":"mine"}`,
		"security-opt seccomp=unconfined":                       `"seccompProfile":{"type":"Unconfined"}`,
		"security-opt seccomp=mine.json":                        `"seccompProfile":{"type":"Localhost","localhostProfile":"mine.json"}`,
		"security-opt label=disable":                            `"seLinuxOptions":{"type":"spc_t"}`,
		"security-opt label:level:s0:c1,c2":                     `"seLinuxOptions":{"level":"s0:c1,c2"}`,
		"shm-size 256m":                                         `"emptyDir":{"medium":"Memory","sizeLimit":"256Mi"}`,
		"stop-signal int":                                       `"lifecycle":{"stopSignal":"SIGINT"}`,
		"stop-timeout 20":                                       `"terminationGracePeriodSeconds":20`,
		"sysctl net.core.somaxconn=5":                           `"securityContext":{"sysctls":[{"name":"net.core.somaxconn","value":"5"}]}`,
		"tmpfs /run:rw,size=1m,mode=1777":                       `"emptyDir":{"medium":"Memory","sizeLimit":"1Mi","mode":1023}`,
		"tz Europe/Berlin":                                      `"hostPath":{"path":"/usr/share/zoneinfo/Europe/Berlin","type":"File"}`,
		"tz local":                                              `"hostPath":{"path":"/etc/localtime","type":"File"}`,
		"ulimit nofile=1024:4096":                               `"annotations":{"ulimits.podrun.dev/app":"nofile=1024:4096"}`,
		"user 1:2":                                              `"runAsUser":1,"runAsGroup":2`,
		"user www-data":                                         `"annotations":{"user.podrun.dev/app":"www-data"}`,
		"volume /a:/b:ro,rslave":                                `"volumeMounts":[{"name":"volume-1","readOnly":true,"mountPath":"/b","mountPropagation":"HostToContainer"}]`,
		"volume data:/b":                                        `"persistentVolumeClaim":{"claimName":"data"}`,
		"volume /b":                                             `"volumes":[{"name":"volume-1","emptyDir":{}}]`,
		"workdir /srv":                                          `"workingDir":"/srv"`,
	} {
		p, err := set(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		text, err := json.Marshal(p.Pod)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v; want %s", line, text, err, want)
		}
	}
}

// TestTogether: options that are set together, separated by semicolons, and what they become.
func TestTogether(t *testing.T) {
	for lines, want := range map[string]string{
		"dns 9.9.9.9;network host": `"dnsPolicy":"None","hostNetwork":true`,
		"health-cmd a;health-interval 1m30s;health-timeout 5;health-retries 9":                                             `"timeoutSeconds":5,"periodSeconds":90,"failureThreshold":9`,
		"health-cmd a;health-on-failure kill;health-interval 10s;health-start-period 25s":                                  `"startupProbe":{"exec":{"command":["/bin/sh","-c","a"]},"timeoutSeconds":30,"periodSeconds":10,"failureThreshold":6}`,
		"health-cmd a;health-startup-cmd b;health-startup-interval 5s;health-startup-retries 10;health-startup-timeout 2h": `"startupProbe":{"exec":{"command":["/bin/sh","-c","b"]},"timeoutSeconds":7200,"periodSeconds":5,"failureThreshold":10}`,
		"ulimit nofile=1;ulimit nproc=2":          `"ulimits.podrun.dev/app":"nofile=1,nproc=2"`,
		"label a[0]=x;label a[1]=y":               `"podrun.dev/labels":"{\"a[0]\":\"x\",\"a[1]\":\"y\"}"`,
		"stop-timeout 20;stop-timeout 5":          `"terminationGracePeriodSeconds":20`,
		"volume /a:/b;volume /a:/c":               `"volumes":[{"name":"volume-1","hostPath":{"path":"/a"}}]`,
		"add-host a:10.0.0.1;add-host b:10.0.0.1": `"hostnames":["a","b"]`,
		"sysctl net.a=1;sysctl net.a=2":           `"sysctls":[{"name":"net.a","value":"2"}]`,
	} {
		p, err := set(strings.Split(lines, ";")...)
		text, _ := json.Marshal(p.Pod)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v; want %s", lines, text, err, want)
		}
	}
}

// TestRefusals: forms without a counterpart say what to do instead.
func TestRefusals(t *testing.T) {
	for lines, want := range map[string]string{
		"nosuch x": "no such option", "add-host a": "use NAME:IP", "add-host a:b": "not an IP address", "annotation =x": "has no key",
		"cpus none": "use a number", "device dev/a": "use PATH", "device /dev/null:/dev/b:r": "access", "device /etc/hosts": "is not a device", "device /etc": "is not a device", "device /dev/gone": "no such file",
		"dns x": "not the IP address", "dns 127.0.0.1": "that pods reach", "dns-search a_b": "is no domain", "env =x": "has no name", "gpus 0": "use all or a number",
		"health-cmd ": "name the command", "health-interval disable": "is no duration", "health-retries x": "is no number", "health-on-failure restart": "use kill",
		"health-on-failure x": "use none, kill or stop", "health-startup-success 2": "one success", "health-interval 5s": "require a health command",
		"health-cmd a;no-healthcheck true": "mutually exclusive", "health-cmd a;health-startup-interval 3s": "require its command",
		"hostname A_b": "is no host name", "label =x": "has no key", "memory lots": "is no size", "memory 0": "is no size", "memory 9e18g": "is no size",
		"mount type=bind,dst=/x": "source of a bind mount is missing", "mount type=glob,src=/x,dst=/x": "the type is", "mount type=bind,src=/a": "path in the container is missing",
		"mount type=bind,src=/a,dst=/b,U=true": `"U=true" is refused`, "mount type=bind,src=/a,dst=/b,relabel=shared": "SELinux label", `mount "`: "is no list",
		"mount type=tmpfs,dst=/a,tmpfs-mode=9": "is no mode", "network web": "use host, none or default", "network container:x": "one Pod",
		"network host;publish 80:80": "no effect with the network host", "network none;publish 80:80": "no effect with the network none",
		"pids-limit x": "use a number", "privileged maybe": "use true or false", "publish 80:80/sctp": "the protocol must be", "publish x:80": "is not a port",
		"publish 0:80": "is not a port", "publish 1-2:1": "different lengths", "publish 1.2.3:80:80": "not an IP address", "publish 65536:1": "is not a port",
		"pull newer": "use always", "restart sometimes": "use no", "restart always:3": "use no", "secret s,uid=1": `"uid=1" is refused`, "secret s,mode=9": "is no mode",
		"security-opt mask=/x": "podrun has", "security-opt label=nested": "podrun has label=disable", "security-opt seccomp=/a/b.json": "copy the file",
		"stop-signal 9": "name the signal", "stop-timeout -1": "use a number of seconds", "sysctl x": "use NAME=VALUE", "tmpfs x": "not an absolute path",
		"tmpfs /x:uid=1": "has no counterpart", "tz ../x": "name of a zone", "ulimit host": "name the limits",
		"volume a:b": "not an absolute path", "volume A:/b": "neither a path", "volume /a:/b:U": "unknown option", "volume /a:/b:Z": "SELinux label", "workdir x": "not an absolute path",
	} {
		if _, err := set(strings.Split(lines, ";")...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
	p := New("web")
	if err := p.Add("a", "b", testHost()).Set("entrypoint", ""); err != nil {
		t.Error(err)
	}
	if err := p.Finish(); err == nil || !strings.Contains(err.Error(), "requires a command") {
		t.Error(err)
	}
}

func TestLiteral(t *testing.T) {
	for in, want := range map[string]string{
		"":                "",
		"echo $HOME $":    "echo $HOME $",
		"$(A) $$(A) $$ x": "$$(A) $$$$(A) $$$ x",
		"100$$":           "100$$$",
	} {
		if got := literal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1024": 1024, "64b": 64, "512m": 512 << 20, "512MB": 512 << 20, "512Mi": 512 << 20, "1.5g": 3 << 29, "2GiB": 2 << 30,
		"b": 0, "": 0, "m": 0, "-1m": 0, "0": 0, "1x": 0, "nan": 0, "inf": 0, "9e18g": 0,
	} {
		got, err := parseSize(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}
