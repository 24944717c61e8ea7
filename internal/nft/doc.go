// Package nft changes nftables in one transaction (Transact), and has the parts that rules of IPv4 and
// IPv6 are made of. Which rules there are is decided by the packages of netns.
package nft
