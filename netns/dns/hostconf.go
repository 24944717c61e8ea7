package dns

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/netns/resolvconf"
)

// hostConf is the content of a host's resolv.conf (resolv.conf(5)).
type hostConf struct {
	servers  []string
	timeout  time.Duration // for each try
	attempts int           // for every server
	rotate   bool          // start with another server each time
	useTCP   bool          // for all queries
}

// Limits and defaults of the C library (resolv.h).
const (
	maxServers      = 3
	defaultTimeout  = 5 * time.Second
	maxTimeout      = 30 * time.Second
	defaultAttempts = 2
	maxAttempts     = 5

	// totalTimeout limits all attempts together.
	totalTimeout = 30 * time.Second

	// nextServerDelay is how long to wait for a server before the next one is queried as well: the
	// client's own timeout is running, too.
	nextServerDelay = time.Second
)

func parseHost(text string) hostConf {
	c := hostConf{timeout: defaultTimeout, attempts: defaultAttempts}
	file := resolvconf.Parse(text)
	c.servers = nameServers(file.Nameservers)
	if len(c.servers) == 0 {
		c.servers = []string{"127.0.0.1:53", "[::1]:53"}
	}
	for _, o := range file.Options {
		name, value, _ := strings.Cut(o, ":")
		n, err := strconv.Atoi(value)
		switch {
		case name == "rotate":
			c.rotate = true
		case name == "use-vc":
			c.useTCP = true
		case err != nil || n < 1:
		case name == "timeout":
			c.timeout = min(time.Duration(n)*time.Second, maxTimeout)
		case name == "attempts":
			c.attempts = min(n, maxAttempts)
		}
	}
	return c
}

// nameServers returns where to query name servers with the given addresses.
func nameServers(addresses []string) (servers []string) {
	for _, s := range addresses {
		if a, err := netip.ParseAddr(s); err == nil && len(servers) < maxServers { // libc ignores other text, too
			servers = append(servers, netip.AddrPortFrom(a, 53).String())
		}
	}
	return servers
}
