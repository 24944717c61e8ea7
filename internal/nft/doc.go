// Package nft changes nftables in one transaction (Transact) and has parts of rules for IPv4 and
// IPv6. The packages of netns define the rules.
package nft
