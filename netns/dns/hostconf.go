package dns

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/podrun/podrun/netns/resolvconf"
)

// hostConf is what a host's resolv.conf says to those who ask (resolv.conf(5)).
type hostConf struct {
	servers  []string
	timeout  time.Duration // for each try
	attempts int           // of every server
	rotate   bool          // begin with another server each time
	stream   bool          // by TCP always
}

// Bounds and defaults of the C library (resolv.h).
const (
	maxServers      = 3
	defaultTimeout  = 5 * time.Second
	maxTimeout      = 30 * time.Second
	defaultAttempts = 2
	maxAttempts     = 5

	// totalTimeout bounds all tries: nobody waits for longer.
	totalTimeout = 30 * time.Second

	// nextServerDelay is how long a server is waited for before the next one is asked as well:
	// the client has begun to count, too.
	nextServerDelay = time.Second
)

func parseHost(text string) hostConf {
	c := hostConf{timeout: defaultTimeout, attempts: defaultAttempts}
	file := resolvconf.Parse(text)
	for _, s := range file.Nameservers {
		if a, err := netip.ParseAddr(s); err == nil && len(c.servers) < maxServers { // libc ignores other text, too
			c.servers = append(c.servers, netip.AddrPortFrom(a, 53).String())
		}
	}
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
			c.stream = true
		case err != nil || n < 1:
		case name == "timeout":
			c.timeout = min(time.Duration(n)*time.Second, maxTimeout)
		case name == "attempts":
			c.attempts = min(n, maxAttempts)
		}
	}
	return c
}
