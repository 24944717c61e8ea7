package netstack

import (
	"encoding/binary"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// link is the stack's end of a TUN device with a header before each packet (linux/virtio_net.h)
// that leaves segmentation and checksums to the last device that needs them: within the host none
// does.
type link struct {
	tun       *os.File
	mtu       uint32
	intercept func(packet []byte) (taken bool) // sees packets first

	reading    sync.RWMutex // held while a packet is handed to the stack
	mu         sync.Mutex
	dispatcher stack.NetworkDispatcher
	done       sync.WaitGroup
}

// The header's length and the offsets of its fields.
const (
	vnetHeader      = 10
	vnetFlags       = 0
	vnetSegments    = 1
	vnetHeadersSize = 2
	vnetSegmentSize = 4
	vnetSumStart    = 6
	vnetSumOffset   = 8
)

// gsoMaxSize is the largest packet that the stack leaves to be segmented.
const gsoMaxSize = 65535 - 60

func (l *link) MTU() uint32                      { return l.mtu }
func (l *link) SetMTU(uint32)                    {}
func (l *link) MaxHeaderLength() uint16          { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress   { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress) {}
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}
func (l *link) Wait()                                   { l.done.Wait() }
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)           {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (l *link) Close()                                  {}
func (l *link) SetOnCloseAction(func())                 {}
func (l *link) GSOMaxSize() uint32                      { return gsoMaxSize }
func (l *link) SupportedGSO() stack.SupportedGSO        { return stack.HostGSOSupported }

func (l *link) IsAttached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dispatcher != nil
}

// Attach starts to read when the stack has made its interface from the link.
func (l *link) Attach(to stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dispatcher == nil && to != nil {
		l.done.Go(l.read)
	}
	l.dispatcher = to
}

func (l *link) read() {
	raw, err := l.tun.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, vnetHeader+1<<16)
	for {
		err := raw.Read(func(fd uintptr) bool {
			l.reading.RLock()
			defer l.reading.RUnlock()
			n, err := unix.Read(int(fd), b)
			if err == unix.EAGAIN {
				return false
			}
			if err == nil && n > vnetHeader {
				l.deliver(b[vnetHeader:n])
			}
			return true
		})
		if err != nil {
			return // it is closed
		}
	}
}

// deliver hands a packet to the stack.
func (l *link) deliver(b []byte) {
	if l.intercept(b) {
		return
	}
	l.mu.Lock()
	to := l.dispatcher
	l.mu.Unlock()
	if to == nil {
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	defer p.DecRef()
	p.RXChecksumValidated = true // the pod's kernel leaves checksums to the last device
	switch b[0] >> 4 {
	case 4:
		to.DeliverNetworkPacket(ipv4.ProtocolNumber, p)
	case 6:
		to.DeliverNetworkPacket(ipv6.ProtocolNumber, p)
	}
}

// WritePackets sends the stack's packets to the pod.
func (l *link) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	raw, err := l.tun.SyscallConn()
	if err != nil {
		return 0, &tcpip.ErrAborted{}
	}
	for i, p := range packets.AsSlice() {
		head := vnetHeaderOf(p)
		pieces := append(make([][]byte, 0, 8), head[:])
		for _, piece := range p.AsSlices() {
			if len(piece) > 0 {
				pieces = append(pieces, piece)
			}
		}
		werr := error(syscall.EINTR)
		for werr == syscall.EINTR {
			cerr := raw.Control(func(fd uintptr) { _, werr = unix.Writev(int(fd), pieces) })
			if cerr != nil {
				return i, &tcpip.ErrAborted{}
			}
		}
		if errno, ok := werr.(syscall.Errno); ok && errno != 0 {
			return i, tcpip.TranslateErrno(errno)
		}
	}
	return packets.Len(), nil
}

// inject sends a complete packet.
func (l *link) inject(b []byte) {
	raw, err := l.tun.SyscallConn()
	if err != nil {
		return
	}
	head := make([]byte, vnetHeader)
	_ = raw.Control(func(fd uintptr) { _, _ = unix.Writev(int(fd), [][]byte{head, b}) }) // a packet may be lost
}

// vnetHeaderOf returns the header that describes the missing segmentation and checksum of a packet.
func vnetHeaderOf(p *stack.PacketBuffer) (h [vnetHeader]byte) {
	g := &p.GSOOptions
	if g.Type == stack.GSONone {
		h[vnetFlags] = unix.VIRTIO_NET_HDR_F_DATA_VALID
		return h
	}
	binary.NativeEndian.PutUint16(h[vnetHeadersSize:], uint16(p.HeaderSize()))
	if g.NeedsCsum {
		h[vnetFlags] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM
		binary.NativeEndian.PutUint16(h[vnetSumStart:], g.L3HdrLen)
		binary.NativeEndian.PutUint16(h[vnetSumOffset:], g.CsumOffset)
	}
	if p.Data().Size() > int(g.MSS) {
		h[vnetSegments] = unix.VIRTIO_NET_HDR_GSO_TCPV4
		if g.Type == stack.GSOTCPv6 {
			h[vnetSegments] = unix.VIRTIO_NET_HDR_GSO_TCPV6
		}
		binary.NativeEndian.PutUint16(h[vnetSegmentSize:], g.MSS)
	}
	return h
}
