package masquerade

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podrun/podrun/netns/services"
)

// IsHostRoot reports whether this process is root of the host. Only then does it administer the
// host's network.
func IsHostRoot() bool {
	const initial = 0xEFFFFFFD // PROC_USER_INIT_INO (linux/proc_ns.h)
	var st unix.Stat_t
	return os.Geteuid() == 0 && unix.Stat("/proc/self/ns/user", &st) == nil && st.Ino == initial
}

// Check returns a one-line reason why the kernel cannot masquerade the pods' traffic, or nil if it
// can. It refuses where the host has packet rules of its own, even if they accept everything: they
// were not written for pods' packets and may change at any time.
func Check() error {
	if err := MayAdminister(); err != nil {
		return err
	}
	if b, err := os.ReadFile("/proc/thread-self/net/ip_tables_names"); err == nil && len(b) > 0 {
		return fmt.Errorf("the host has rules of iptables-legacy, in %s", strings.Join(strings.Fields(string(b)), ", "))
	}
	if err := checkForwarding(); err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyINet} {
		chains, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return fmt.Errorf("list the host's rules of nftables: %w", err)
		}
		for _, chain := range chains {
			if err := checkChain(c, chain); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkChain returns an error if a chain of the host affects packets.
func checkChain(c *nftables.Conn, chain *nftables.Chain) error {
	if chain.Hooknum == nil || isOwnTable(chain.Table.Name) || chain.Table.Name == services.NodeTable {
		return nil
	}
	name := chain.Table.Name + " " + chain.Name
	if chain.Policy != nil && *chain.Policy == nftables.ChainPolicyDrop {
		return fmt.Errorf("the host has a firewall: nftables' chain %s drops other packets", name)
	}
	if rules, err := c.GetRules(chain.Table, chain); err != nil || len(rules) > 0 { // unreadable rules come from iptables
		return fmt.Errorf("the host has a firewall: there are rules in nftables' chain %s", name)
	}
	return nil
}

// MayAdminister returns an error unless this process may change the network of the calling thread.
func MayAdminister() error {
	errOthers := errors.New("only root may change the host's network")
	file, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer file.Close()
	owner, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return errOthers
	}
	defer unix.Close(owner)
	var its, mine unix.Stat_t
	if err := errors.Join(unix.Fstat(owner, &its), unix.Stat("/proc/self/ns/user", &mine)); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	switch lacks := data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0; {
	case its.Ino != mine.Ino || lacks && os.Geteuid() != 0:
		return errOthers
	case lacks:
		return errors.New("this process may not change the host's network: it lacks the capability NET_ADMIN")
	}
	return nil
}

const ipForward = "/proc/sys/net/ipv4/ip_forward"

// checkForwarding returns the reason why the host's kernel does not forward packets and must not be
// made to.
func checkForwarding() error {
	b, err := os.ReadFile(ipForward)
	if err == nil && strings.TrimSpace(string(b)) != "1" {
		err = unix.Access(ipForward, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("the host does not forward packets, and net.ipv4.ip_forward cannot be set: %w", err)
	}
	return nil
}
