package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/pod"
	"github.com/podrun/podrun/internal/testenv"
)

// intruder is the first argument of a re-exec entry point of the tests.
const intruder = "_intrude"

// intrude is that entry point: from a pod's network it tries the kernel's ways to reach the namespace at
// the other end of eth0, and prints each result.
func intrude([]string) int {
	eth, peer, router, err := ethernet()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	target := attribute(unix.IFLA_TARGET_NETNSID, router)
	name := func(n string) []byte { return attribute(unix.IFLA_IFNAME, append([]byte(n), 0)) }
	kind := func(k string) []byte {
		return attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte(k)))
	}
	const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	for _, try := range []struct {
		what        string
		kind, flags uint16
		index       uint32
		attributes  [][]byte
	}{
		{"look", unix.RTM_GETLINK, 0, 0, [][]byte{target, name("lo")}},
		{"make a device", unix.RTM_NEWLINK, create, 0, [][]byte{target, name("spy"), kind("bridge")}},
		{"listen", unix.RTM_NEWLINK, create, 0, [][]byte{name("ear"), attribute(unix.IFLA_LINK_NETNSID, router), attribute(unix.IFLA_LINK, peer), kind("macvlan")}},
		{"change a device", unix.RTM_NEWLINK, 0, binary.NativeEndian.Uint32(peer), [][]byte{target, attribute(unix.IFLA_MTU, []byte{0, 5, 0, 0})}},
		{"move eth0", unix.RTM_NEWLINK, 0, eth, [][]byte{target, name("p77")}},
	} {
		fmt.Printf("%s: %v\n", try.what, speak(try.kind, try.flags, try.index, try.attributes...))
	}
	return 0
}

// ethernet returns eth0's index, the index of its other end, and the id by which this network knows the
// namespace there.
func ethernet() (index uint32, peer, router []byte, err error) {
	eth, err := net.InterfaceByName("eth0")
	if err != nil {
		return 0, nil, nil, err
	}
	table, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return 0, nil, nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWLINK || binary.NativeEndian.Uint32(m.Data[4:]) != uint32(eth.Index) {
			continue
		}
		attrs, _ := syscall.ParseNetlinkRouteAttr(&m)
		for _, a := range attrs {
			switch a.Attr.Type {
			case unix.IFLA_LINK:
				peer = a.Value[:4]
			case unix.IFLA_LINK_NETNSID:
				router = a.Value[:4]
			}
		}
	}
	if err == nil && (peer == nil || router == nil) {
		err = errors.New("eth0 has no other end")
	}
	return uint32(eth.Index), peer, router, err
}

// attribute returns a struct rtattr.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// speak sends one netlink request and returns the kernel's answer as an error.
func speak(kind, flags uint16, index uint32, attributes ...[]byte) error {
	body := binary.NativeEndian.AppendUint32(make([]byte, 4), index) // struct ifinfomsg
	body = append(body, make([]byte, 8)...)
	for _, a := range attributes {
		body = append(body, a...)
	}
	m := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body))) // struct nlmsghdr
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = binary.NativeEndian.AppendUint16(m, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = append(append(m, make([]byte, 8)...), body...)
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1<<16)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return err // the error itself
	}
	if code := -int32(binary.NativeEndian.Uint32(answer[16:])); code != 0 {
		return unix.Errno(code)
	}
	return nil
}

// intrusion runs intrude with every capability that a container of the pod could have.
func (w wholePod) intrusion() map[string]string {
	w.t.Helper()
	pid, _, ok := w.place.PodInit()
	if !ok {
		w.t.Fatal("the pod has no pod init")
	}
	held := func(fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, fd) }
	args := []string{"--net=" + held(5)}
	if to, err := os.Readlink(held(9)); err == nil && strings.HasPrefix(to, "user:") {
		args = append(args, "--user="+held(9))
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		w.t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("nsenter", append(args, "/proc/self/fd/3", intruder)...)
	cmd.ExtraFiles = []*os.File{self}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("intrude: %v: %s", err, out)
	}
	done := map[string]string{}
	for line := range strings.Lines(string(out)) {
		what, result, _ := strings.Cut(strings.TrimSpace(line), ": ")
		done[what] = result
	}
	return done
}

// S40: a container that administers its network, or is privileged, reaches neither the router nor, through
// it, other pods of the user. Without a user namespace of the pod's own it would.
func TestNetAdminDoesNotReachTheRouter(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	b := startWhole(t, withName(newPlan(nil, []pod.Container{shell(l, "b", "echo word > /tmp/word; httpd -f -p 80 -h /tmp")}), "b"))
	b.until(running)
	st, err := b.place.Status()
	if err != nil || len(st.PodIPs) == 0 {
		t.Fatal(st, err)
	}
	c := shell(l, "a", "exec sleep 1000")
	c.Privileged, c.SeccompUnconfined = true, true
	c.Capabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID"}
	for _, apart := range []bool{true, false} {
		plan := newPlan(nil, []pod.Container{c})
		plan.OwnUserNS = apart
		a := b.neighbourOf(plan, fmt.Sprintf("a-%v", apart))
		a.until(running)
		results := a.intrusion()
		if len(results) < 5 {
			t.Errorf("apart %v: not everything was tried: %v", apart, results)
		}
		for what, result := range results {
			denied := result == unix.EPERM.Error() || result == unix.EACCES.Error()
			if denied != apart {
				t.Errorf("apart %v: %s: %s", apart, what, result)
			}
		}
		if !apart {
			continue
		}
		for _, script := range []string{"ip link set eth0 mtu 1400", "ip addr add 10.99.99.99/32 dev lo", "mount -t tmpfs x /tmp && umount /tmp", "echo 1 >/proc/sys/net/ipv4/ip_forward", "wget -q -O- http://" + st.PodIPs[0] + "/word"} {
			if code, out := a.ask("a", "/bin/sh", "-c", script); code != 0 {
				t.Errorf("%s: was not possible in its own network: %s", script, out)
			}
		}
		// The router has fixed neighbour entries: with another address the pod takes nothing from others, and cuts itself off.
		if code, out := a.ask("a", "/bin/sh", "-c", "ip link set eth0 address 02:00:00:00:00:99 && ! wget -q -T 2 -O- http://"+st.PodIPs[0]+"/word"); code != 0 {
			t.Errorf("with another hardware address: %s", out)
		}
	}
}

// A pod whose containers have a user namespace of their own works like any other: its processes may be
// shared, its ids are the same, and it outlives its supervisor.
func TestApartAsAnyOther(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a, b := shell(l, "a", "exec sleep 1111"), shell(l, "b", "exec sleep 2222")
	plan := newPlan(nil, []pod.Container{a, b})
	plan.OwnUserNS, plan.ShareProcessNamespace = true, true
	w := startWhole(t, plan)
	w.until(running)
	namespace, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		_, out := w.ask("a", "/bin/sh", "-c", "cat /proc/self/uid_map; readlink /proc/self/ns/user; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		if strings.Contains(out, namespace) || !strings.Contains(out, "sleep 2222") || !strings.Contains(out, "podrun pause") {
			t.Errorf("in the user namespace %s of all pods, or without the others' processes: %s", namespace, out)
		}
		var first, outside int
		if _, err := fmt.Sscan(out, &first, &outside); err != nil || first != outside {
			t.Errorf("ids are others: %s", out)
		}
	}
	check()
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	check()
}

// ipcScript makes one of each kind of object that a pod's containers share in memory, after it has listed
// those that exist.
const ipcScript = "ls /dev/shm; ls /dev/mqueue; touch /dev/shm/segment /dev/mqueue/queue; echo made"

// S23: all containers of a pod share its shared memory and message queues; no other pod sees them, and they
// end with the pod (CVE-2024-3056). No signal reaches another pod, or another container whose processes are
// not shared.
func TestPodsReachNoOtherPod(t *testing.T) {
	testenv.NoLeaks(t)
	t.Setenv("PODRUN_HIBERNATE_AFTER", "0") // a new supervisor then means that one was killed
	l := layer(t)
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000"), shell(l, "b", "exec sleep 1000")})
	p := startWhole(t, plan)
	other := startWhole(t, withName(newPlan(nil, []pod.Container{shell(l, "c", "exec sleep 1000")}), "q"))
	for _, w := range []wholePod{p, other} { // the cleanup waits for all processes
		defer w.removeBeside()
	}
	p.until(running)
	other.until(running)
	const empty = "made\n"
	if _, out := p.ask("a", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("at first there is %q", out)
	}
	if _, out := p.ask("b", "/bin/sh", "-c", ipcScript); out != "segment\nqueue\nmade\n" {
		t.Errorf("a sibling sees %q", out)
	}
	if _, out := other.ask("c", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("another pod sees %q", out)
	}
	supervisor, podInit := p.processes()
	for _, from := range []struct {
		w wholePod
		c string
	}{{other, "c"}, {p, "b"}} {
		from.w.ask(from.c, "/bin/sh", "-c", "kill -9 -1")
		if code, _ := p.ask("a", "true"); code != 0 {
			t.Errorf("%s has killed a sibling or a stranger", from.c)
		}
	}
	st, err := p.place.Status()
	if err != nil || !running(st) || st.Containers[0].RestartCount+st.Containers[1].RestartCount != 0 {
		t.Errorf("after signals to everybody: %+v, %v", st, err)
	}
	if s, k := p.processes(); s != supervisor || k != podInit {
		t.Errorf("supervisor and pod init were %d and %d, and are %d and %d", supervisor, podInit, s, k)
	}

	p.removeBeside()
	again := startWhole(t, plan)
	defer again.removeBeside()
	again.until(running)
	if _, out := again.ask("a", "/bin/sh", "-c", ipcScript); out != empty {
		t.Errorf("after the pod's end there is still %q", out)
	}
}

// S23: where a pod's containers share their processes, a user without rights over another user's processes
// sees that they exist, but gets none of their memory, files, roots, environments or signals; root of the
// pod does, as in Kubernetes.
func TestSharedProcessesAreTheirUsers(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	user := shell(l, "user", "exec sleep 2222")
	user.User, user.Capabilities = "1000", nil
	victim := shell(l, "victim", "exec sleep 1111")
	victim.Env = append(victim.Env, "PASSWORD=s3cr3t")
	plan := newPlan(nil, []pod.Container{victim, user, shell(l, "root", "exec sleep 3333")})
	plan.ShareProcessNamespace = true
	p := start(t, plan)
	p.running()
	const script = `while test -z "$v"; do
for d in /proc/[0-9]*; do case "$(tr '\0' ' ' <$d/cmdline)" in "sleep 1111 ") v=$d;; esac; done; done 2>/dev/null
{ grep -q s3cr3t $v/environ && echo environ; test -e $v/root/proc && echo root; test -e $v/fd/0 && echo fd
dd if=$v/mem bs=1 count=0 && echo mem; kill -0 ${v#/proc/} && echo signal; } 2>/dev/null; echo end`
	mem := "mem\n"
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && scope[0] != '0' {
		mem = "" // there only a debugger may access it
	}
	for c, want := range map[string]string{"user": "end\n", "root": "environ\nroot\nfd\n" + mem + "signal\nend\n"} {
		if _, out := p.exec(c, "/bin/sh", "-c", script); out != want {
			t.Errorf("%s: %q, want %q", c, out, want)
		}
	}
}

// A pod with hostUsers: false has no id of the user's other pods. It still owns its image, its volumes and
// what podrun makes for it, and it outlives its supervisor.
func TestUsersOfItsOwn(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.WriteFile(l+"/set", []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(l+"/set", 0o4755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l + "/etc"); err != nil { // an image from scratch has none
		t.Fatal(err)
	}
	const look = "touch /etc/made /new/made /made /v/new /m/made && chown 7:8 /v/new && mv /v/new /v/made; exec sleep 1000"
	a, b := shell(l, "a", look), shell(l, "b", "id; touch /v/b; exec sleep 1000")
	b.User, b.SupplementalGroups = "1000:1001", []uint32{2000}
	a.TerminationMessagePath = "/dev/termination-log"
	mounts := []pod.Mount{{Volume: "v", Path: "/v"}, {Volume: "m", Path: "/m"}, {Volume: "f", Path: "/f"}, {Volume: "g", Path: "/g"}}
	a.Mounts, b.Mounts = append([]pod.Mount{{Volume: "m", Path: "/new/deep"}}, mounts...), mounts
	plan := newPlan(nil, []pod.Container{a, b})
	plan.OwnUserNS, plan.Users = true, &pod.IDRange{First: 40960, Count: 4096}
	plan.FSGroup = &pod.Group{ID: 2000}
	plan.Volumes = []pod.Volume{{Name: "v", Kind: pod.EmptyDir}, {Name: "m", Kind: pod.EmptyDirMemory}, {Name: "f", Kind: pod.Files,
		Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "key", Text: "word", Mode: 0o400}}}}},
		{Name: "g", Kind: pod.Files, Sources: []pod.FileSource{{Kind: pod.FromPod, Items: []pod.FileItem{{Path: "key", Text: "word", Mode: 0o644}}}}}}
	w := startWhole(t, plan)
	w.until(running)
	if code, out := w.ask("b", "/bin/sh", "-c", "until test -e /v/made; do usleep 10000; done; id -u; id -g; id -G; touch /made 2>/dev/null || echo not root"); code != 0 || strings.Join(strings.Fields(out), " ") != "1000 1001 1001 2000 not root" {
		t.Errorf("as another user: %d, %s", code, out)
	}
	_, out := w.ask("a", "/bin/sh", "-c", "cat /proc/self/uid_map | tr -s ' '; stat -L -c '%n %u:%g %a' / /etc /etc/hosts /etc/hostname /etc/resolv.conf /new /set /bin/sh /v /m /f /f/key /g/key /dev /dev/termination-log; stat -c '%N %u:%g' /g/key /g/..data; cat /f/key; stat -c ' %u %g' /v/made")
	for _, want := range []string{" 0 40960 4096\n", "/ 0:0 755\n", "/etc 0:0 755\n", "/etc/hosts 0:0 644\n", "/etc/hostname 0:0 644\n", "/etc/resolv.conf 0:0 644\n",
		"/new 0:0 755\n", "/set 0:0 4755\n", "/bin/sh 0:0 ", "/v 0:2000 2777\n", "/m 0:2000 3777\n", "/f 0:2000 2777\n", "/f/key 0:2000 440\n",
		"/g/key 0:2000 644\n", "'/g/key' -> '..data/key' 0:0\n", "/dev 0:0 755\n", "/dev/termination-log 0:0 666\n", "word", " 7 8\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(w.place.VolumesDir(), "v", "made"), &st); err != nil || st.Uid != 40960+7 || st.Gid != 40960+8 {
		t.Errorf("outside its file belongs to %d and %d: %v", st.Uid, st.Gid, err)
	}
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, out := w.ask("a", "/bin/sh", "-c", "ip addr add 10.99.99.99/32 dev lo; nc -l -p 80 -w 1 -e true; echo x >/proc/sys/kernel/core_pattern || id -u"); strings.TrimSpace(lastLine(out)) != "0" {
		t.Errorf("after its supervisor: %d, %s", code, out)
	}
}

// An image with more ids than the pod has gives an error with the file and the hint.
func TestTooFewUsersOfItsOwn(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.Lchown(l+"/bin/busybox", 5000, 0); err != nil {
		t.Fatal(err)
	}
	plan := newPlan(nil, []pod.Container{shell(l, "a", "exec sleep 1000")})
	plan.OwnUserNS, plan.Users = true, &pod.IDRange{First: 40960, Count: 4096}
	w := startWhole(t, plan)
	w.until(func(st *pod.Status) bool {
		waiting := st.Containers[0].State.Waiting
		return waiting != nil && strings.Contains(waiting.Message, "belongs to the id 5000, and the pod has only 4096") && strings.Contains(waiting.Message, "/etc/subuid")
	})
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A user of the image that no pod of the user has gives an error with the hint.
func TestUserOutsideOfTheMap(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	if err := os.WriteFile(l+"/etc/passwd", []byte("far:x:1000000:0::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := shell(l, "a", "exec sleep 1000")
	c.User = "far"
	w := startWhole(t, newPlan(nil, []pod.Container{c}))
	w.until(func(st *pod.Status) bool {
		waiting := st.Containers[0].State.Waiting
		return waiting != nil && waiting.Reason == "CreateContainerConfigError" && strings.Contains(waiting.Message, "user 1000000 is not among the ids of this pod: give its user more of them in /etc/subuid")
	})
}
