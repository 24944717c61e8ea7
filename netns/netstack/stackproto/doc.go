// Package stackproto defines what the supervisor and the process of the network stack exchange:
// messages over a seqpacket socket, some with descriptors. docs/explanation/protocol.md lists them.
package stackproto
