package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/internal/testenv"
	"github.com/podrun/podrun/pod"
)

// intruder is the first argument of a stage of the tests'.
const intruder = "_intrude"

// intrude is that stage: from a pod's network it tries what the kernel offers to reach the
// namespace at the other end of eth0, and prints what came of each.
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

// ethernet is eth0: its index, the index of its other end, and by what number this network
// knows the namespace there.
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

// attribute is a struct rtattr.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// speak asks the kernel's network for one thing and says how it answers.
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
		return err // the thing itself
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
		w.t.Fatal("the pod has no keeper")
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

// S40: a container that administers its network, or is privileged, reaches neither the
// router nor, by it, other pods of the user. Without a user namespace of the pod's own it
// would.
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
		plan.Apart = apart
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
	}
}

// A pod whose containers have a user namespace of their own is as any other: its processes
// may be shared, its ids are the same, and it outlives its supervisor.
func TestApartAsAnyOther(t *testing.T) {
	testenv.NoLeaks(t)
	l := layer(t)
	a, b := shell(l, "a", "exec sleep 1111"), shell(l, "b", "exec sleep 2222")
	plan := newPlan(nil, []pod.Container{a, b})
	plan.Apart, plan.ShareProcessNamespace = true, true
	w := startWhole(t, plan)
	w.until(running)
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		_, out := w.ask("a", "/bin/sh", "-c", "cat /proc/self/uid_map; readlink /proc/self/ns/user; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
		if strings.Contains(out, own) || !strings.Contains(out, "sleep 2222") || !strings.Contains(out, "podrun pause") {
			t.Errorf("in the user namespace %s of all pods, or without the others' processes: %s", own, out)
		}
		var first, outside int
		if _, err := fmt.Sscan(out, &first, &outside); err != nil || first != outside {
			t.Errorf("ids are others: %s", out)
		}
	}
	look()
	supervisor, _ := w.processes()
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	look()
}
