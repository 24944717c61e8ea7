package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// A local sender outruns the proxy, and the kernel lets its lead grow (net.ipv4.tcp_rmem, 32 MiB
// recently): data that waits that long has left the processor's cache when its turn comes. Remote
// senders need such a window. Linux 6.19 limits the lead by itself, too
// (net.ipv4.tcp_rcvbuf_low_rtt).
const (
	localRTT    = 60 * time.Microsecond // round trip: on this host; a LAN has more
	localWindow = 256 << 10             // bytes, or less by net.core.rmem_max: enough for 28 Gb/s at that distance

	// maxLocalSegment is the segment size up to which the window is enough. A pod's segments are
	// larger, and the router's buffers are limited anyway.
	maxLocalSegment = localWindow / 16
)

// clampWindow is called when a stream is read, and once limits how far its sender may be ahead.
func (w *pump) clampWindow() {
	if w.windowClamped {
		return
	}
	w.windowClamped = true
	info, err := unix.GetsockoptTCPInfo(w.src.fd, unix.SOL_TCP, unix.TCP_INFO)
	if err != nil || !isLocal(info) {
		return
	}
	// Failure costs speed only. The second option is for kernels that keep the window of the
	// previous buffer.
	_ = unix.SetsockoptInt(w.src.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, localWindow)
	_ = unix.SetsockoptInt(w.src.fd, unix.SOL_TCP, unix.TCP_WINDOW_CLAMP, localWindow)
}

// isLocal reports whether a sender is on this host. The kernel measures the minimum round-trip
// time, in microseconds, from the handshake on; kernels that do not report it return 0.
func isLocal(sender *unix.TCPInfo) bool {
	away := time.Duration(sender.Min_rtt) * time.Microsecond
	return away > 0 && away <= localRTT && sender.Rcv_mss <= maxLocalSegment
}
