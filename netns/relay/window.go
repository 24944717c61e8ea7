package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// Who sends a stream from nearby is quicker than who passes it on, and the kernel lets it be
// ahead by ever more (net.ipv4.tcp_rmem, 32 MiB of late): what waits so long has left the
// processor's cache when its turn comes. From afar that much is needed. Linux 6.19 holds back
// by itself, too (net.ipv4.tcp_rcvbuf_low_rtt).
const (
	localRTT    = 60 * time.Microsecond // there and back: on this machine; a LAN is farther away
	localWindow = 256 << 10             // bytes, or less by net.core.rmem_max: at that distance 28 Gb/s

	// maxLocalSegment are segments of which ahead are enough. A pod's are larger, and the router's
	// buffers are bounded as it is.
	maxLocalSegment = localWindow / 16
)

// clampWindow is told that a stream is taken, and bounds once how far its sender may be ahead.
func (w *pump) clampWindow() {
	if w.windowClamped {
		return
	}
	w.windowClamped = true
	info, err := unix.GetsockoptTCPInfo(w.src.fd, unix.SOL_TCP, unix.TCP_INFO)
	if err != nil || !isLocal(info) {
		return
	}
	// Without these it is slower only. The second is for kernels that keep the window of the buffer before.
	_ = unix.SetsockoptInt(w.src.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, localWindow)
	_ = unix.SetsockoptInt(w.src.fd, unix.SOL_TCP, unix.TCP_WINDOW_CLAMP, localWindow)
}

// isLocal is whether a sender is nearby. The kernel has measured the least time, in
// microseconds, since both have connected; kernels that do not tell say 0.
func isLocal(sender *unix.TCPInfo) bool {
	away := time.Duration(sender.Min_rtt) * time.Microsecond
	return away > 0 && away <= localRTT && sender.Rcv_mss <= maxLocalSegment
}
