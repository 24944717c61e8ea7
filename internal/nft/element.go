package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ReadElement returns the value of a key in a map; unix.ENOENT if the map does not have it. The library reads only whole
// maps.
func ReadElement(set *nftables.Set, key []byte) (value []byte, err error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to nftables: %w", err)
	}
	defer conn.Close()
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.String(unix.NFTA_SET_ELEM_LIST_TABLE, set.Table.Name)
	e.String(unix.NFTA_SET_ELEM_LIST_SET, set.Name)
	e.Nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func(e *netlink.AttributeEncoder) error {
		e.Nested(unix.NFTA_LIST_ELEM, func(e *netlink.AttributeEncoder) error {
			e.Nested(unix.NFTA_SET_ELEM_KEY, func(e *netlink.AttributeEncoder) error {
				e.Bytes(unix.NFTA_DATA_VALUE, key)
				return nil
			})
			return nil
		})
		return nil
	})
	attributes, err := e.Encode()
	if err != nil {
		return nil, err
	}
	answers, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETSETELEM, Flags: netlink.Request | netlink.Acknowledge},
		Data:   append([]byte{byte(set.Table.Family), unix.NFNETLINK_V0, 0, 0}, attributes...),
	})
	if err != nil {
		return nil, fmt.Errorf("read an element of the set %s: %w", set.Name, err)
	}
	for _, a := range answers {
		if len(a.Data) > nfgenmsgSize && value == nil {
			value, err = findNested(a.Data[nfgenmsgSize:], unix.NFTA_SET_ELEM_LIST_ELEMENTS, unix.NFTA_LIST_ELEM, unix.NFTA_SET_ELEM_DATA, unix.NFTA_DATA_VALUE)
		}
	}
	return value, err
}

const nfgenmsgSize = 4 // of the header of nfnetlink

// findNested returns the value of an attribute by the types of those that contain it, and its own.
func findNested(attributes []byte, types ...uint16) ([]byte, error) {
	d, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return nil, err
	}
	for d.Next() {
		switch {
		case d.Type() != types[0]:
		case len(types) == 1:
			return d.Bytes(), nil
		default:
			return findNested(d.Bytes(), types[1:]...)
		}
	}
	return nil, d.Err()
}
